"""Laws of the parsers of application logs, network tools, PCI listings, benchmarks and bundles."""

from __future__ import annotations

from pathlib import Path

import pytest
import re2
from hypothesis import given
from hypothesis import strategies as st

from knowledge.facts import Kind, vocabulary
from knowledge.observation import Event, Observation, Status
from knowledge.text import clean
from probes import registry
from probes.base import Context, Format, Line, LogFormat, lines_of
from tests.probes.parse.vocabulary_check import faults_of

CAPTURES = Path(__file__).parents[2] / "captures"
FIXTURES = {
    "app/cuda.device-assert.log": "cuda-error",
    "app/nccl.complaints.log": "nccl-log",
    "app/nccl.one-rank-behind.log": "nccl-log",
    "app/oom.formats.log": "cuda-oom",
    "app/python.job-died.log": "python-traceback",
    "app/nvidia-bug-report.log": "output-bundle",
    "app/transcript.txt": "output-bundle",
    "network/ibstat.cut.txt": "ibstat",
    "network/ibstat.front-down.txt": "ibstat",
    "network/ibstat.rails-down.txt": "ibstat",
    "network/ibstatus.one-init.txt": "ibstatus",
    "network/ip-link.json": "ip-link",
    "network/ip-link.txt": "ip-link",
    "network/lspci.gpu-gone.txt": "lspci",
    "bench/gpcnet.load.txt": "gpcnet",
    "bench/gpcnet.refused.txt": "gpcnet",
    "bench/gpu-burn.faulty.txt": "gpu-burn",
    "bench/nccl-tests.wrong.txt": "nccl-tests",
    "bench/nvbandwidth.two-gpus.txt": "nvbandwidth",
    "bench/perftest.read-lat.txt": "perftest",
    "bench/perftest.write-bw.txt": "perftest",
    "bench/superbench-monitor.jsonl": "superbench-monitor",
}
OURS = sorted(set(FIXTURES.values()))
BY_NAME = {format_.name: format_ for format_ in registry.formats()}


def read(name: str) -> str:
    return (CAPTURES / name).read_bytes().decode()


def parse(format_: Format, text: str) -> list[Observation]:
    context = Context("input.txt")
    return format_.parse(lines_of(text), context) if isinstance(format_, LogFormat) else format_.parse(text, context)


def is_clean(text: str) -> bool:
    """Nothing in it can move a cursor or hide."""
    return clean(text) == text and "\n" not in text


def check(observations: list[Observation], last_line: int) -> None:
    """Every observation is one that the vocabulary accepts, with a place in the text, and nothing in it hides."""
    assert faults_of(observations, instead=True) == []
    for o in observations:
        assert o.status is not Status.NONE_SEEN or (o.detail and vocabulary()[o.fact].kind is Kind.EVENT)
        assert o.source.line is None or 1 <= o.source.line <= last_line
        fields = o.value.fields.values() if isinstance(o.value, Event) else ()
        assert all(is_clean(text) for text in (o.excerpt, o.subject.id, *fields) if isinstance(text, str))


@pytest.mark.parametrize(("name", "format_name"), sorted(FIXTURES.items()))
def test_a_fixture_is_recognised_as_what_it_is_and_gives_facts(name: str, format_name: str) -> None:
    text = read(name)
    chosen = registry.sniff(text[:65536])
    assert chosen is not None
    assert chosen.name == format_name
    found = parse(BY_NAME[format_name], text)
    assert any(o.status is Status.OK for o in found)
    check(found, len(lines_of(text)))


PIECES = sorted({line for name in FIXTURES for line in read(name).splitlines()} | {"", "\x1b[31m", "{", "[" * 2000})


@pytest.mark.parametrize("format_name", OURS)
@given(text=st.text(max_size=400))
def test_arbitrary_text_is_never_an_error(format_name: str, text: str) -> None:
    format_ = BY_NAME[format_name]
    assert 0 <= format_.sniff(text) <= 100
    check(parse(format_, text), len(lines_of(text)))


@pytest.mark.parametrize("format_name", OURS)
@given(lines=st.lists(st.sampled_from(PIECES) | st.text(max_size=40), max_size=30))
def test_lines_of_any_tool_in_any_order_are_never_an_error(format_name: str, lines: list[str]) -> None:
    text = "\n".join(lines)
    format_ = BY_NAME[format_name]
    assert 0 <= format_.sniff(text) <= 100
    check(parse(format_, text), len(lines_of(text)))


@pytest.mark.parametrize(("name", "format_name"), sorted(FIXTURES.items()))
@given(data=st.data())
def test_a_fixture_cut_or_damaged_anywhere_is_never_an_error(name: str, format_name: str, data: st.DataObject) -> None:
    text = read(name)
    start = data.draw(st.integers(0, len(text)))
    end = data.draw(st.integers(start, len(text)))
    kept = text[:end] if data.draw(st.booleans()) else text[:start] + data.draw(st.text(max_size=5)) + text[end:]
    check(parse(BY_NAME[format_name], kept), len(lines_of(kept)))


@pytest.mark.parametrize("format_name", [name for name in OURS if isinstance(BY_NAME[name], LogFormat)])
def test_triggers_are_re2_and_find_every_event_within_a_long_log(format_name: str) -> None:
    """What the scanner hands over gives the same events as the whole text."""
    format_ = BY_NAME[format_name]
    assert isinstance(format_, LogFormat)
    triggers = [re2.compile(trigger) for trigger in format_.triggers]
    for name, owner in FIXTURES.items():
        if owner != format_name:
            continue
        filler = [f"step {i}: all is well" for i in range(200)]
        body = read(name).rstrip("\n").splitlines()
        lines = [Line(i, text) for i, text in enumerate([*filler, *body, *filler], 1)]
        hits = [line.number for line in lines if any(t.search(line.text) for t in triggers)]
        wanted = {n for hit in hits for n in range(hit - format_.before, hit + format_.after + 1)}
        handed = [line for line in lines if line.number in wanted or line.number < 65 or line.number > len(lines) - 64]
        whole = format_.parse(lines, Context("x"))
        part = format_.parse(handed, Context("x"))
        assert [(o.fact, o.subject, o.value, o.source) for o in part] == [
            (o.fact, o.subject, o.value, o.source) for o in whole
        ]
        assert hits
        assert not any(t.search(line) for t in triggers for line in filler)


@given(words=st.lists(st.from_regex(r"[a-z]{1,9}", fullmatch=True), max_size=60))
def test_prose_is_recognised_by_none_of_ours(words: list[str]) -> None:
    text = " ".join(words)
    assert not [name for name in OURS if BY_NAME[name].sniff(text)]


def test_the_registry_is_the_folder() -> None:
    names = [format_.name for format_ in registry.formats()]
    assert names == sorted(set(names))
    assert set(OURS) <= set(names)
    assert set(registry.document_formats()) | set(registry.log_formats()) == set(registry.formats())
    assert registry.sniff("nothing that any tool prints") is None
