from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from probes.base import best
from probes.parse import nvidia_smi_bundle, nvidia_smi_q
from probes.parse.nvidia_smi_bundle import FORMAT
from tests.probes.parse import smi_pair
from tests.probes.parse.smi_case import (
    CONTEXT,
    all_of,
    capture,
    check_any,
    check_cut,
    parse,
    plain,
    shuffled_lines,
    value,
)  # fmt: skip
from tests.probes.parse.vocabulary_check import assert_provides_exist

NAME = "smi/bundle.txt"


def test_each_section_is_read_by_the_parser_of_its_command() -> None:
    got = parse(FORMAT, NAME)
    assert {o.source.probe for o in got} == {"nvidia-smi", "nvidia-smi-q", "nvlink-status", "nvidia-smi-csv"}
    assert value(got, "link.speed") == 26.562
    assert value(got, "mig.profile") == "3g.40gb"
    assert value(got, "gpu.power.draw", "index:0") == 630.0
    alone = plain(nvidia_smi_q.FORMAT.parse(smi_pair.text(), CONTEXT))
    assert plain(o for o in got if o.source.probe == "nvidia-smi-q") == alone


def test_line_numbers_are_those_of_the_whole_file() -> None:
    lines = capture(NAME).splitlines()
    found = next(o for o in parse(FORMAT, NAME) if o.fact == "gpu.temperature.tlimit")
    assert found.source.line is not None
    assert "GPU T.Limit Temp" in lines[found.source.line - 1]


def test_help_texts_are_not_read() -> None:
    assert not [o for o in parse(FORMAT, NAME) if "help text" in o.excerpt]


def test_a_bundle_is_preferred_to_the_report_in_it() -> None:
    head = capture(NAME)
    assert best([nvidia_smi_q.FORMAT, FORMAT], head) is FORMAT
    assert best([nvidia_smi_q.FORMAT, FORMAT], smi_pair.text()) is nvidia_smi_q.FORMAT


def test_a_report_ends_where_the_next_output_begins() -> None:
    twice = smi_pair.text() + "\n" + "#" * 80 + "\n# load\n" + "#" * 80 + "\n" + smi_pair.text()
    assert len(all_of(nvidia_smi_q.FORMAT.parse(twice, CONTEXT), "gpu.temperature.core")) == 1


def test_commands() -> None:
    reader = nvidia_smi_bundle.reader_of
    names = {
        "": "nvidia-smi", "-L": "nvidia-smi", "-q": "nvidia-smi-q", "-q -x": "nvidia-smi-xml", "topo -m": "nvidia-smi-topo",
        "nvlink -s": "nvlink-status", "nvlink -e": "nvlink-errors", "pmon -c 5": "nvidia-smi-csv",
        "--query-gpu=name --format=csv": "nvidia-smi-csv", "-q -d ECC": "nvidia-smi-q",
    }  # fmt: skip
    for command, name in names.items():
        found = reader(command)
        assert found is not None, command
        assert found[0] == name
    assert [reader(c) for c in ("-h", "--help-query-gpu", "--version", "nvlink -c", "topo -h")] == [None] * 5


def test_what_is_provided_exists() -> None:
    assert_provides_exist(FORMAT)


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10**6))
def test_any_cut_is_answered(at: int) -> None:
    check_cut(FORMAT, NAME, at)


@settings(max_examples=40, deadline=None)
@given(shuffled_lines([NAME]))
def test_any_text_is_answered(text: str) -> None:
    check_any(FORMAT, text)
