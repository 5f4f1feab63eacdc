"""`gpudiag check` on logs and captured outputs: verdicts, exit codes, every format, both languages."""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path

import pytest
import zstandard

from tests.assistant.stories import DBE, HOSTILE, QUIET, write
from tests.conftest import Gpudiag

EVENT_KEYS = {"kind", "code", "pci", "time", "line", "source", "text", "decoded"}
FINDING_KEYS = {
    "id", "rule", "title", "subject", "severity", "grade", "role", "xid", "first", "last", "count", "events", "explains",
    "explained_by", "impact", "action", "because", "missing", "proof",
}  # fmt: skip
TOP_KEYS = {
    "schema",
    "as_of",
    "ruleset",
    "query",
    "verdict",
    "events",
    "findings",
    "undecided",
    "ruled_out",
    "coverage",
}


def test_the_first_line_is_the_verdict(gpudiag: Gpudiag, tmp_path: Path) -> None:
    answer = gpudiag("check", "--log", write(tmp_path, "kern.log", DBE))
    assert answer.code == 1
    assert answer.err == ""
    first = answer.out.splitlines()[0]
    assert first.startswith("UNHEALTHY  ")
    assert "0000:3b:00.0" in first
    assert answer.out.index("Do next") < answer.out.index("Found")
    assert re.search(r"kern\.log:1\s", answer.out)
    assert "XID 45 x2" in answer.out  # symptoms are folded under their root, and counted


def test_nothing_wrong_is_0(gpudiag: Gpudiag, tmp_path: Path) -> None:
    answer = gpudiag("check", "--log", write(tmp_path, "kern.log", QUIET))
    assert answer.code == 0
    assert answer.out.startswith("OK  ")


def test_json_has_every_field_of_the_schema(gpudiag: Gpudiag, tmp_path: Path) -> None:
    log = write(tmp_path, "kern.log", DBE)
    answer = gpudiag("check", "--log", log, "--format", "json", "--verbose")
    data = json.loads(answer.out)
    assert answer.code == data["exit"] == 1
    assert set(data) >= TOP_KEYS
    assert data["schema"] == "gpudiag/diagnosis/1"
    assert data["query"] is None
    assert data["as_of"] is None  # a log with seconds since boot tells no date
    assert "timing" not in data
    assert set(data["verdict"]) == {"state", "usable", "until", "text"}
    assert data["verdict"]["state"] == "unhealthy"
    assert [(e["kind"], e["code"]) for e in data["events"]] == [("xid", c) for c in (48, 63, 94, 45, 45)]
    for event in data["events"]:
        assert set(event) >= EVENT_KEYS
        assert event["pci"] == "0000:3b:00.0"
        assert re.fullmatch(r"boot\+43095[45]\.\d{6}s", event["time"])
        assert event["text"].startswith("[ 43095")
    assert [e["line"] for e in data["events"]] == [1, 2, 3, 4, 5]
    assert data["coverage"].keys() == {"asked", "answered", "denied", "failed"}
    root = data["findings"][0]
    assert set(root) >= FINDING_KEYS
    assert (root["role"], root["xid"]) == ("root", 48)
    assert root["subject"] == {"scope": "gpu", "id": "0000:3b:00.0", "host": None}
    assert set(root["action"]) >= {"bucket", "text", "command", "risk", "runbook", "then"}
    assert 0 in root["events"]
    ids = {f["id"] for f in data["findings"]}
    for finding in data["findings"]:
        assert set(finding["explains"]) | set(finding["explained_by"]) <= ids
        assert all(0 <= i < len(data["events"]) for i in finding["events"])
        assert finding["because"]
        assert all(b["text"] and b["observation"]["source"] for b in finding["because"])
        assert tree_is_sound(finding["proof"])
    assert [f["role"] for f in data["findings"]] == sorted(f["role"] for f in data["findings"])  # roots come first
    brief = json.loads(gpudiag("check", "--log", log, "--format", "json").out)
    without = [f | {"proof": None} for f in data["findings"]]
    assert brief == data | {
        "findings": without,
        "undecided": [u | {"because": [], "proof": None} for u in data["undecided"]],
    }


def tree_is_sound(proof: dict[str, object]) -> bool:
    assert proof["truth"] in ("true", "false", "unknown")
    children = proof.get("children")
    if isinstance(children, list):
        assert proof["op"] in ("all", "any")
        return all(tree_is_sound(child) for child in children)
    return proof["op"] in ("event", "fact", "known") and bool(proof["clause"])


def test_the_same_answer_every_time(gpudiag: Gpudiag, tmp_path: Path) -> None:
    log = write(tmp_path, "kern.log", DBE)
    assert (
        gpudiag("check", "--log", log, "--format", "json").out == gpudiag("check", "--log", log, "--format", "json").out
    )


def test_timing_only_when_asked(gpudiag: Gpudiag, tmp_path: Path) -> None:
    log = write(tmp_path, "kern.log", DBE)
    timed = json.loads(gpudiag("check", "--log", log, "--format", "json", "--timing").out)
    assert set(timed["timing"]) == {"read_s", "total_s", "cpu_s"}
    assert all(v >= 0 for v in timed["timing"].values())
    assert "timing: " in gpudiag("check", "--log", log, "--timing").err


@pytest.mark.parametrize(
    ("pack", "suffix"), [(gzip.compress, ".gz"), (zstandard.ZstdCompressor().compress, ".zst")], ids=["gzip", "zstd"]
)
@pytest.mark.parametrize("option", ["--log", "--input"])
def test_packed_logs_say_the_same(
    gpudiag: Gpudiag, tmp_path: Path, pack: Callable[[bytes], bytes], suffix: str, option: str
) -> None:
    packed = tmp_path / f"kern.log{suffix}"
    packed.write_bytes(pack(DBE.encode()))
    data = json.loads(gpudiag("check", option, str(packed), "--format", "json").out)
    assert [e["code"] for e in data["events"]] == [48, 63, 94, 45, 45]


@pytest.mark.parametrize("option", ["--log", "--input"])
def test_standard_input(gpudiag: Gpudiag, option: str) -> None:
    for content in (DBE.encode(), gzip.compress(DBE.encode())):
        data = json.loads(gpudiag("check", option, "-", "--format", "json", stdin=content).out)
        assert [e["code"] for e in data["events"]] == [48, 63, 94, 45, 45]
        assert {e["source"] for e in data["events"]} == {"stdin"}


def test_a_file_named_twice_counts_once(gpudiag: Gpudiag, tmp_path: Path) -> None:
    log = write(tmp_path, "kern.log", DBE)
    link = tmp_path / "link.log"
    link.symlink_to(log)
    once = json.loads(gpudiag("check", "--log", log, "--format", "json").out)
    twice = json.loads(gpudiag("check", "--log", log, str(link), "--input", log, "--format", "json").out)
    assert len(once["events"]) == len(twice["events"]) == 5
    assert len([n for n in twice["notes"] if "read once" in n]) == 2


def test_host_names_the_node(gpudiag: Gpudiag, tmp_path: Path) -> None:
    log = write(tmp_path, "kern.log", DBE)
    data = json.loads(gpudiag("check", "--log", log, "--host", "gpu-12", "--format", "json").out)
    assert {f["subject"]["host"] for f in data["findings"]} == {"gpu-12"}


def test_what_is_told_is_a_fact(gpudiag: Gpudiag, tmp_path: Path) -> None:
    """Told facts alone are no answer: nothing was looked at."""
    log = write(tmp_path, "kern.log", QUIET)
    assert gpudiag("check", "--log", log, "--expect-gpus", "8").code in (0, 1)
    junk = write(tmp_path, "junk.txt", "hello\nworld\n")
    answer = gpudiag("check", "--input", junk, "--expect-gpus", "8")
    assert answer.code == 3


@pytest.mark.parametrize(
    ("content", "code", "word"),
    [(DBE, 2, "CRITICAL"), (QUIET, 0, "OK"), ("hello\n", 3, "UNKNOWN")],
    ids=["sick", "healthy", "nothing"],
)
def test_nagios(gpudiag: Gpudiag, tmp_path: Path, content: str, code: int, word: str) -> None:
    answer = gpudiag("check", "--input", write(tmp_path, "in.log", content), "--nagios")
    assert answer.code == code
    assert re.fullmatch(rf"GPUDIAG {word} - [^|\n]+ \| findings=\d+ symptoms=\d+\n", answer.out), "a log counts no GPUs"


@pytest.mark.parametrize(("count", "shown"), [("0", "gpus=0 "), ("8", "gpus=8 ")])
def test_nagios_counts_the_inventory(count: str, shown: str) -> None:
    """A GPU that only the kernel log names is none of them."""
    from assistant.diagnosis import diagnose
    from assistant.render.nagios import render
    from knowledge.observation import Event, Observation, Source, gpu, node
    from rules.loader import load

    source = Source("t", "t")
    told = Observation("node.pci.gpu_count", node("n1"), int(count), source=source)
    named = Observation("xid", gpu("0000:3b:00.0", "n1"), Event(13, {}), source=source, excerpt="NVRM: Xid")
    assert f"| {shown}" in render(diagnose([told, named], load()))
    assert "gpus=" not in render(diagnose([named], load()))


def test_nagios_never_takes_a_missing_file_for_critical(gpudiag: Gpudiag, tmp_path: Path) -> None:
    answer = gpudiag("check", "--log", str(tmp_path / "absent"), "--nagios")
    assert answer.code == 3
    assert answer.out.startswith("GPUDIAG UNKNOWN - ")


# --- other shapes -------------------------------------------------------------------------


class Page(HTMLParser):
    """Collects what a browser would act on."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.links: list[str] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.links += [v or "" for k, v in attrs if k in ("src", "href") or k.startswith("on")]

    def handle_data(self, data: str) -> None:
        self.text += data


def test_html_is_one_file_without_network_or_script(gpudiag: Gpudiag, tmp_path: Path) -> None:
    answer = gpudiag("check", "--log", write(tmp_path, "kern.log", HOSTILE), "--format", "html", "--verbose")
    page = Page()
    page.feed(answer.out)
    assert "script" not in page.tags
    assert page.links == []
    assert "<script>alert(1)</script>" in page.text
    assert "default-src 'none'" in answer.out
    assert "\x1b" not in answer.out
    assert "\u202e" not in answer.out


def test_html_in_a_browser(gpudiag: Gpudiag, require: Callable[[str], str], tmp_path: Path) -> None:
    import subprocess

    chromium = require("chromium")
    file = tmp_path / "answer.html"
    file.write_text(gpudiag("demo", "--format", "html").out, encoding="utf-8")
    picture = tmp_path / "answer.png"
    flags = "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking"
    subprocess.run(
        [chromium, *flags.split(), "--disable-component-update", "--disable-sync", f"--user-data-dir={tmp_path}/profile",
         "--window-size=900,1200", f"--screenshot={picture}", file.as_uri()],
        check=True, capture_output=True, timeout=120,
    )  # fmt: skip
    assert picture.stat().st_size > 20_000  # an empty page of this size is a fifth of that


def test_markdown_keeps_strangers_out(gpudiag: Gpudiag, tmp_path: Path) -> None:
    answer = gpudiag("check", "--log", write(tmp_path, "kern.log", HOSTILE), "--format", "markdown")
    assert answer.out.startswith("# UNHEALTHY: ")
    for line in answer.out.splitlines():
        outside = re.sub(r"(`+)(?:(?!\1).)*\1", "", line)  # code spans are literal
        assert "<script" not in outside.replace("\\<", "")
        assert "](http" not in outside.replace("\\]", "")
    assert "\x1b" not in answer.out


def test_text_carries_no_escapes_of_strangers(gpudiag: Gpudiag, tmp_path: Path) -> None:
    log = write(tmp_path, "kern.log", HOSTILE)
    plain = gpudiag("check", "--log", log, "--color", "never").out
    assert "\x1b" not in plain
    assert "\u202e" not in plain
    assert "\u200b" not in plain
    coloured = gpudiag("check", "--log", log, "--color", "always").out
    assert re.sub(r"\x1b\[[0-9;]*m", "", coloured) == plain
    assert set(re.findall(r"\x1b\[([0-9;]*)m", coloured)) <= {
        "0",
        "1",
        "2",
        "31",
        "32",
        "33",
        "36",
        "31;1",
        "33;1",
        "32;1",
        "1;37;41",
    }


def test_no_colour_without_a_terminal(gpudiag: Gpudiag, tmp_path: Path) -> None:
    assert "\x1b" not in gpudiag("check", "--log", write(tmp_path, "kern.log", DBE)).out


@pytest.mark.parametrize("columns", [40, 60, 100, 140])
def test_prose_keeps_to_the_width(gpudiag: Gpudiag, tmp_path: Path, columns: int) -> None:
    from assistant.render.cells import width

    for lang in ("en", "zh"):
        out = gpudiag("demo", "--lang", lang, env={"COLUMNS": str(columns)}).out
        for line in out.splitlines():
            if "$ " in line or "gpudiag runbook" in line:
                continue  # commands are never broken
            longest = max((width(w) for w in line.split()), default=0)
            assert width(line) <= max(columns, longest + 8) + 2


# --- languages ----------------------------------------------------------------------------


def words_of_labels() -> set[str]:
    """English label words of two letters and more whose Chinese is another word."""
    from assistant.render.labels import _LABELS

    return {t.en.strip(" :") for t in _LABELS.values() if t.en != t.zh and "{" not in t.en and len(t.en) > 3}


@pytest.mark.parametrize("shape", ["text", "markdown", "html"])
def test_chinese_answers_have_no_english_labels(gpudiag: Gpudiag, tmp_path: Path, shape: str) -> None:
    for name in ("off-the-bus", "double-bit-error", "power-brake"):
        out = gpudiag("demo", name, "--lang", "zh", "--format", shape, "--verbose").out
        if shape == "html":
            page = Page()
            page.feed(re.sub(r"<style>.*?</style>|<code>.*?</code>|<pre>.*?</pre>", "", out, flags=re.DOTALL))
            out = page.text
        raw = re.compile(r"^.*(?:kernel: |NVRM|\[rank|NCCL|https?:).*$|^ {6,}.*$", re.MULTILINE)
        prose = re.sub(r"`+[^`]*`+|gpudiag [a-z]+ show [a-z-]+", "", raw.sub("", out))
        for label in words_of_labels():
            assert not re.search(rf"(?<![\w./-]){re.escape(label)}(?![\w./-])", prose), label
        assert re.search(r"[\u4e00-\u9fff]", prose)


def test_both_languages_say_the_same_things(gpudiag: Gpudiag, tmp_path: Path) -> None:
    log = write(tmp_path, "kern.log", DBE)
    en = json.loads(gpudiag("check", "--log", log, "--format", "json", "--lang", "en").out)
    zh = json.loads(gpudiag("check", "--log", log, "--format", "json", "--lang", "zh").out)
    assert [f["id"] for f in en["findings"]] == [f["id"] for f in zh["findings"]]
    assert en["verdict"]["state"] == zh["verdict"]["state"]
    assert en["verdict"]["text"] != zh["verdict"]["text"]
    assert en["events"] == zh["events"]
