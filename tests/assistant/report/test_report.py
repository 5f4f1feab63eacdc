"""The report as a file: whole, closed to strangers, free of anything to fetch, and complete without its script."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import tracemalloc
import zlib
from collections.abc import Callable
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from assistant.diagnosis import diagnose
from assistant.report import build, write
from assistant.report.markup import data
from assistant.report.pack import Pack
from assistant.report.words import _WORDS, PAGE
from probes.trace.breakdown import timeline
from probes.trace.columns import Cat, Group, Strings, Table
from probes.trace.reading.reader import Trace
from rules.loader import load
from tests.assistant.report import pages
from tests.trace_files import TraceFile, data_bound
from tests.trace_jobs import Cluster

VOID = {"meta", "br", "wbr", "img", "input", "link", "hr", "rect"}


class Reader(HTMLParser):
    """Tags that open and close in order; text outside of scripts and styles."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.words: list[str] = []
        self.ids: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        self.ids += [v for k, v in attrs if k == "id" and v]
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if not {"script", "style"} & set(self.open):
            self.words.append(data)


def parsed(page: str) -> Reader:
    reader = Reader()
    reader.feed(page)
    reader.close()
    assert reader.open == []
    return reader


def scripts(page: str) -> dict[str, str]:
    """Contents of script elements by their id; our own code stands under an empty one."""
    return {
        m[1] or "": m[2] for m in re.finditer(r'<script(?: type="[^"]*" id="(\w+)")?>(.*?)</script>', page, re.DOTALL)
    }


@pytest.fixture(scope="module")
def single(tmp_path_factory: pytest.TempPathFactory) -> str:
    return pages.one(tmp_path_factory.mktemp("one"))


@pytest.fixture(scope="module")
def double(tmp_path_factory: pytest.TempPathFactory) -> str:
    return pages.two(tmp_path_factory.mktemp("two"))


def test_the_page_is_whole_and_in_order(double: str) -> None:
    read = parsed(double)
    assert len(read.ids) == len(set(read.ids))
    sections = [a["id"] for tag, a in read.tags if tag == "section"]
    assert sections == ["findings", "breakdown", "iterations", "over-time", "heat-map", "kernels", "operators", "stacks",
                        *(s for s in sections if s in ("roofline", "memory")), "ranks", "difference", "notes"]  # fmt: skip
    links = [a["href"] for tag, a in read.tags if tag == "a"]
    assert [link for link in links if link and link[1:] not in read.ids] == []
    levels = [int(tag[1]) for tag, _ in read.tags if re.fullmatch(r"h[1-6]", tag)]
    assert levels[0] == 1
    assert all(b <= a + 1 for a, b in pairwise(levels))
    assert {"header", "nav", "main", "footer"} <= {tag for tag, _ in read.tags}


def test_each_table_has_a_caption_and_headers(single: str) -> None:
    for inner in re.findall(r'<div class="scroll".*?</div>', single, re.DOTALL):
        assert "<caption>" in inner
        assert '<th scope="col"' in inner
        assert '<th scope="row"' in inner or inner.count("<tr>") == 2  # one row alone needs no name


def test_each_picture_has_words(single: str) -> None:
    read = parsed(single)
    pictures = [a for tag, a in read.tags if a.get("role") in ("img", "group")]
    assert len(pictures) >= 5
    for attributes in pictures:
        assert attributes["aria-labelledby"] in read.ids


def test_nothing_is_fetched(single: str) -> None:
    for tag, attributes in parsed(single).tags:
        assert tag not in ("link", "iframe", "object", "embed", "img", "base")
        assert not {"src", "srcset", "data", "action", "poster"} & {k for k in attributes if not k.startswith("data-")}
        assert all(not k.startswith("on") for k in attributes)
    own = scripts(single)[""]
    assert "http" not in own.replace("http://www.w3.org/2000/svg", "")
    assert "url(" not in single
    assert "@import" not in single
    assert "//cdn" not in single


def test_only_our_own_scripts_may_run(single: str) -> None:
    policy = re.search(r'http-equiv="Content-Security-Policy" content="([^"]*)"', single)
    assert policy is not None
    rules = dict(part.strip().split(" ", 1) for part in policy[1].split(";"))
    assert rules["default-src"] == "'none'"
    assert rules["connect-src"] == "'none'"
    assert rules["img-src"] == "data:"
    assert "unsafe" not in rules["script-src"] + rules["style-src"]
    found = scripts(single)
    library = zlib.decompress(base64.b64decode(found["library"])).decode()
    assert library.startswith("/**\n* plotly.js")
    for text in (found[""], library):
        assert f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'" in rules["script-src"]


def test_strangers_stay_in_their_place(tmp_path: Path) -> None:
    page = pages.hostile(tmp_path)
    read = parsed(page)
    assert [a for tag, a in read.tags if tag in ("img", "b") and a] == []
    assert "<img" not in page
    assert "<!--" not in page.removeprefix("<!doctype html>")
    assert "\u2028" not in page
    assert any("<img src=x onerror=alert(1)>" in w for w in read.words)
    values = json.loads(scripts(page)["values"])
    assert any("</script>" in n for n in values["timeline"]["names"])
    texts = [t for c in values["charts"].values() for d in c["data"] for t in d.get("text", [])]
    assert not any("<" in t for t in texts)  # plotly would read them as its own tags


@given(
    st.recursive(
        st.text() | st.integers() | st.none(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
        max_leaves=12,
    )
)
def test_values_cannot_end_their_element(value: Any) -> None:
    text = data(value)
    assert not re.search("[<>&\u2028\u2029]", text)
    assert json.loads(text) == value


@given(st.lists(st.lists(st.integers(0, 2**53), max_size=30), min_size=1, max_size=5))
def test_columns_come_back(columns: list[list[int]]) -> None:
    pack = Pack()
    for n, values in enumerate(columns):
        pack.add(str(n), np.array(values, np.int64))
    raw = zlib.decompress(base64.b64decode(pack.blob))
    for n, values in enumerate(columns):
        kind, offset, length = pack.header[str(n)]
        assert offset % 8 == 0
        assert np.frombuffer(raw, f"<{kind}", length, offset).astype(np.int64).tolist() == values


def test_levels_come_back(single: str) -> None:
    """What the script adds up is what the timeline holds: steps to starts, and every event once."""
    found = scripts(single)
    values, raw = json.loads(found["values"]), zlib.decompress(base64.b64decode(found["columns"]))

    def column(name: str) -> Any:
        kind, offset, length = values["columns"][name]
        return np.frombuffer(raw, f"<{kind}", length, offset).astype(np.int64)

    line = values["timeline"]
    events = sum(lane["events"] for lane in line["lanes"])
    for level in line["levels"]:
        key = level["key"]
        rows = column(f"{key}.rows")
        assert int(column(f"{key}.count").sum()) == events
        assert int(column(f"{key}.name").max()) < len(line["names"])
        for low, high in pairwise(rows.tolist()):
            start = np.cumsum(column(f"{key}.step")[low:high])
            assert not len(start) or 0 <= start[0] <= start[-1] <= line["span"]


def test_both_languages_say_everything(tmp_path: Path, single: str) -> None:
    chinese = pages.one(tmp_path, lang="zh")
    assert '<html lang="zh-CN">' in chinese
    assert '<html lang="en">' in single
    words = "".join(parsed(chinese).words)
    for key in ("findings", "breakdown", "iterations", "timeline", "heat", "kernels_title", "ops", "flame", "notes"):
        assert _WORDS[key].zh in words
    assert not re.search("[\u4e00-\u9fff]", "".join(parsed(single).words))


def test_fields_are_the_same_in_both_languages() -> None:
    for key, text in {**_WORDS, **PAGE}.items():
        assert set(re.findall(r"{\w+}", text.en)) == set(re.findall(r"{\w+}", text.zh)), key


@pytest.mark.slow
def test_many_iterations_stay_readable(tmp_path: Path) -> None:
    file = TraceFile(rank=0)
    for i in range(900):
        file.annotation(f"ProfilerStep#{i}", i * 100, 60 + i % 37)
        file.launch(i * 100 + 1, 4, correlation=i + 1).kernel("gemm", i * 100 + 10, 30, stream=7, correlation=i + 1)
    page = pages.page(file.save(tmp_path / "t.json"))
    listed = page[page.index('<section id="iterations"') : page.index('<section id="over-time"')]
    assert listed.count("<tr>") == 401
    assert "The 400 longest of 900 are listed." in listed
    assert len(json.loads(scripts(page)["values"])["charts"]["iterations-0"]["data"][0]["x"]) == 900


def test_without_traces_there_is_still_a_page() -> None:
    page = build((), diagnose([], load()))
    read = parsed(page)
    assert [a["id"] for tag, a in read.tags if tag == "section"] == ["findings", "notes"]
    assert len(page) < 100_000  # and no library where nothing is drawn


def test_without_gpu_activity_nothing_is_a_zero(tmp_path: Path) -> None:
    file = TraceFile(rank=3).op("aten::mm", 10, 50)
    for i in range(4):
        file.annotation(f"ProfilerStep#{i}", i * 100, 90)
    page = pages.page(file.save(tmp_path / "cpu.json"))
    breakdown = page[page.index('<section id="breakdown"') :]
    breakdown = breakdown[: breakdown.index("</section>")]
    assert "No GPU activity was recorded in rank 3" in breakdown
    assert "<table" not in breakdown
    row = re.search(r"<tr><th[^>]*>0</th>(?:(?!</tr>).)*</tr>", page[page.index('<section id="iterations"') :])
    assert row is not None
    assert row[0].count(">-<") == 5  # of the device nothing is known: computing, communication, both exposed ones, idle
    assert '<section id="over-time"' in page  # the host's side is shown


def test_one_trace_is_not_named_again_and_again(tmp_path: Path) -> None:
    page = pages.page(data_bound(0.6).save(tmp_path / "a-long-name-of-a-trace.json"))
    body = page[page.index("<main>") : page.index("<footer>")]
    body = re.sub(r"<pre>.*?</pre>|<p class=.soft. title=.*?</p>", "", body, flags=re.DOTALL)
    assert "a-long-name" not in body
    assert '<th scope="col">Rank' not in body
    assert "Communication, exposed</th>" not in body  # there was none


def test_of_many_ranks_the_odd_ones_are_drawn(gpudiag: Callable[..., Any], tmp_path: Path) -> None:
    job = Cluster(compute=[4000 + 2000 * (r == 17) for r in range(24)], steps=3)
    (tmp_path / "job").mkdir()
    job.save(tmp_path / "job")
    target = tmp_path / "report.html"
    gpudiag("trace", "report", "-o", str(target), str(tmp_path / "job"))
    page = target.read_text(encoding="utf-8")
    verdict = page[page.index('<p class="verdict') :].split("</p>")[0]
    assert "Imbalance" in verdict
    assert "rank 17" in verdict
    bars = page[page.index('<div id="bars"') :].split("</figure>")[0]
    assert bars.count('class="end"') == 16
    assert ">rank 17<" in bars
    assert "24 ranks" in bars
    assert re.search(r"24 ranks: rank \d+(, rank \d+){7}, \.\.\.", page)


def test_the_command_compares_two_traces(gpudiag: Callable[..., Any], tmp_path: Path) -> None:
    a = data_bound(0.3, rank=0).save(tmp_path / "a.json")
    b = data_bound(0.7, rank=0).save(tmp_path / "b.json")
    target = tmp_path / "report.html"
    answer = gpudiag("trace", "report", "-o", str(target), a, b)
    assert "Traceback" not in answer.err
    page = target.read_text(encoding="utf-8")
    assert '<section id="difference"' in page
    assert "a.json" in page[page.index('<section id="difference"') :]


def test_the_file_is_replaced_at_once(tmp_path: Path) -> None:
    target = tmp_path / "report.html"
    size = write(str(target), (), diagnose([], load()), lang="zh")
    assert target.stat().st_size == size
    with pytest.raises(OSError, match="No such file"):
        write(str(tmp_path / "none" / "report.html"), (), diagnose([], load()))


def test_the_numbers_stand_in_the_page_without_its_script(single: str) -> None:
    words = " ".join(parsed(re.sub(r"<script.*?</script>", "", single, flags=re.DOTALL)).words)
    assert "computing" in words
    assert "8 iterations" in words
    assert "sm90_xmma_gemm" in "".join(words.split())  # names may be broken at their joints


@pytest.mark.slow
def test_millions_of_events_stay_within_bounds() -> None:
    """Two million events of a thread and four streams, as tables: the bound of the page and of the memory beside them."""
    n = 500_000
    strings = Strings()
    names = np.array([strings.id(f"kernel {i}") for i in range(300)], np.int32)
    lanes = np.array([strings.id(str(i)) for i in range(4)], np.int32)
    which = np.arange(n)

    def events(step: int, length: int, cat: Cat, lane: Any) -> Table:
        columns = {"start": 10**18 + which * step, "dur": np.full(n, length), "name": names[which % 300], "cat": np.full(n, cat, np.uint8),
                   "pid": np.full(n, lanes[0]), "tid": lane, "device": np.zeros(n, np.int64), "stream": lane}  # fmt: skip
        return Table({k: np.asarray(v) for k, v in columns.items()})

    tables = {Group.GPU: events(20_000, 19_000, Cat.KERNEL, lanes[which % 4]), Group.OP: events(20_000, 15_000, Cat.OP, np.full(n, lanes[0])),
              Group.RUNTIME: events(20_000, 2_000, Cat.RUNTIME, np.full(n, lanes[0])), Group.MARK: events(20_000, 500, Cat.CPU_MARK, np.full(n, lanes[1]))}  # fmt: skip
    tracemalloc.start()
    made = timeline.timeline(Trace("big.json", strings, tables))
    page = build((), diagnose([], load()), timeline=made)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert made.events == 4 * n
    assert len(page) < 8_000_000
    assert peak < 400 << 20
