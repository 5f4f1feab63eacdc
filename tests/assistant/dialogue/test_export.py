"""Answers as files: every format, whole, under a name of their own, and over nothing unasked."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from assistant.config import Settings
from assistant.config import load as load_settings
from assistant.diagnosis import diagnose
from assistant.dialogue import Turn
from assistant.dialogue.export import answer
from assistant.intent.query import Intent, Query
from assistant.render.sheet import Paragraph
from assistant.reply import Reply
from assistant.session.export import write
from assistant.session.steps import Write, Written
from knowledge.observation import Clock, Event, Observation, Source, gpu
from rules.loader import load as load_rules

AT = 1_763_700_000 * 10**9  # 2025-11-21
SETTINGS: Settings = load_settings({"lang": "en"}, {}, ())


def reply(host: str = "gpu-12", lang: str = "en") -> Reply:
    line = "NVRM: Xid (PCI:0000:3b:00): 79, GPU has fallen off the bus. <script>alert(1)</script>"
    seen = Observation(
        "xid", gpu("0000:3b:00.0", host), Event(79, {"text": line}), source=Source("kernel-log", "kern.log", 1), at=AT,
        clock=Clock.REALTIME, excerpt=line,
    )  # fmt: skip
    return Reply(lang, "", (Paragraph("A remark below."),), diagnose([seen], load_rules(), as_of=AT))


@pytest.fixture(autouse=True)
def _inside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize(
    ("path", "form", "begins"),
    [
        ("r.md", "", "# "),
        ("r.html", "", "<!doctype html>"),
        ("r.htm", "", "<!doctype html>"),
        ("r.json", "", "{"),
        ("r.txt", "", "UNHEALTHY"),
        ("report", "", "# "),
        ("report", "html", "<!doctype html>"),
        ("r.txt", "json", "{"),
    ],
)
def test_the_suffix_or_the_word_says_the_format(path: str, form: str, begins: str) -> None:
    assert write(Write(reply(), path, form), SETTINGS) == Written(path)
    text = Path(path).read_text(encoding="utf-8")
    assert text.casefold().startswith(begins.casefold())
    assert "A remark below." in text
    assert "fallen off the bus" in text
    assert "\x1b" not in text
    if begins.startswith("<"):
        assert "<script>alert" not in text


def test_json_is_the_diagnosis_with_the_answer_beside_it() -> None:
    write(Write(reply(), "r.json"), SETTINGS)
    data = json.loads(Path("r.json").read_bytes())
    assert data["schema"] == "gpudiag/diagnosis/1"
    assert data["reply"]["blocks"] == [{"type": "paragraph", "text": "A remark below."}]


def test_the_answers_own_language() -> None:
    write(Write(reply(lang="zh"), "r.txt"), SETTINGS)
    assert "掉线" in Path("r.txt").read_text(encoding="utf-8")


def test_a_name_of_its_own_is_numbered_when_it_is_taken() -> None:
    names = [write(Write(reply()), SETTINGS).path for _ in range(3)]
    assert names == [f"gpudiag-gpu-12-2025-11-21{n}.md" for n in ("", "-2", "-3")]
    assert all(Path(n).stat().st_size for n in names)
    assert write(Write(reply(), format="html"), SETTINGS).path == "gpudiag-gpu-12-2025-11-21.html"


@pytest.mark.parametrize("host", ["../../etc/passwd", "a/b", "-rf", "名字", "x" * 500, ".."])
def test_no_host_name_leads_elsewhere(host: str, tmp_path: Path) -> None:
    made = write(Write(reply(host)), SETTINGS)
    assert made.trouble == ""
    assert Path(made.path).resolve().parent == tmp_path
    assert Path(made.path).name.startswith("gpudiag-")


def test_nothing_is_overwritten_without_consent() -> None:
    Path("r.md").write_text("mine")
    assert write(Write(reply(), "r.md"), SETTINGS) == Written("r.md", exists=True)
    assert Path("r.md").read_text() == "mine"
    assert [p.name for p in Path().iterdir()] == ["r.md"], "nothing is left behind"
    assert write(Write(reply(), "r.md", replace=True), SETTINGS) == Written("r.md")
    assert Path("r.md").read_text(encoding="utf-8").startswith("# ")


@pytest.mark.parametrize(
    ("path", "trouble"),
    [
        ("no/such/r.md", "there is no folder no/such"),
        ("folder", "not a plain file"),
        ("link.md", "not a plain file"),
        ("pipe.md", "not a plain file"),
        ("r.pdf", ".pdf is not a format"),
        ("/", "names no file"),
        ("n" * 400 + ".md", "too long"),
        ("~nobody-has-this-name/r.md", "home"),
    ],
)
@pytest.mark.parametrize("replace", [False, True])
def test_what_stands_in_the_way_is_told(path: str, trouble: str, replace: bool) -> None:
    Path("folder").mkdir()
    Path("link.md").symlink_to("elsewhere.md")
    os.mkfifo("pipe.md")
    done = write(Write(reply(), path, replace=replace), SETTINGS)
    assert trouble in done.trouble
    assert not done.exists
    assert not Path("elsewhere.md").exists()


def test_control_characters_of_a_name_are_not_used() -> None:
    done = write(Write(reply(), "a\x1b[31m\u202eb.md"), SETTINGS)
    assert (done.path, done.trouble) == ("ab.md", "")


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_the_answer_says_where_it_is(lang: str) -> None:
    def said(*rows: Written) -> Reply:
        query = Query("export", lang, Intent.EXPORT)
        return answer(Turn(query, lang, load_rules(), recalled=rows))

    assert "r.md" in said(Written("r.md")).headline
    assert said(Written("r.md")).settled
    assert not said(Written("r.md", "no space")).settled
    assert "no space" in said(Written("r.md", "no space")).headline
    assert not said(Written("r.md", exists=True)).settled
    assert not said().settled
