from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from knowledge.observation import Status
from probes.parse import nvidia_smi_q, nvidia_smi_xml
from probes.parse.nvidia_smi_xml import FORMAT
from tests.probes.parse import smi_pair
from tests.probes.parse.smi_case import (
    CONTEXT,
    all_of,
    capture,
    check_any,
    check_cut,
    one,
    parse,
    plain,
    shuffled_lines,
    status,
    value,
)  # fmt: skip
from tests.probes.parse.vocabulary_check import assert_in_vocabulary

NAMES = ("hopper-590-sick.xml", "mig-590.xml", "vgpu-513.xml")
LEAVES = [i for i, row in enumerate(smi_pair.LAYOUT) if row.value is not None]
PRINTED = ("N/A", "[N/A]", "Unknown Error", "GPU is lost", "Insufficient Permissions", "Not Supported", "0", "17",
           "3 C", "250.00 W", "1980 MHz", "97 %", "12 us", "5 bank(s)", "4x", "512 MiB", "Active", "Not Active",
           "Enabled", "Disabled", "Yes", "No", "P8", "Completed", "9223372036854775792", "<&>", "")  # fmt: skip


@pytest.mark.parametrize("name", ["hopper-590-sick", "mig-590"])
def test_text_and_xml_of_one_machine_give_the_same_facts(name: str) -> None:
    assert plain(parse(nvidia_smi_q.FORMAT, f"smi/{name}.txt")) == plain(parse(FORMAT, f"smi/{name}.xml"))


@given(st.dictionaries(st.sampled_from(LEAVES), st.sampled_from(PRINTED), max_size=25))
def test_text_and_xml_agree_whatever_is_printed(values: dict[int, str]) -> None:
    text = nvidia_smi_q.FORMAT.parse(smi_pair.text(values), CONTEXT)
    xml = nvidia_smi_xml.FORMAT.parse(smi_pair.xml(values), CONTEXT)
    assert_in_vocabulary(xml, FORMAT)
    assert plain(text) == plain(xml)


def test_line_numbers_are_those_of_the_file() -> None:
    found = one(parse(FORMAT, "smi/hopper-590-sick.xml"), "gpu.row_remap.failure")
    assert found.source.line is not None
    assert "<remapped_row_failure>" in capture("smi/hopper-590-sick.xml").splitlines()[found.source.line - 1]


def test_what_a_vgpu_guest_cannot_read_is_not_zero() -> None:
    got = parse(FORMAT, "smi/vgpu-513.xml")
    assert value(got, "gpu.virtualization") == "vgpu"
    assert value(got, "gpu.vgpu.licensed") is False
    for fact in ("gpu.temperature.core", "gpu.clock.sm"):
        assert status(got, fact) is Status.UNSUPPORTED
    assert status(got, "gpu.clock.event.hw_slowdown") is Status.UNSUPPORTED
    assert status(got, "process.gpu_memory", "1188") is Status.UNSUPPORTED
    assert status(got, "process.name", "1188") is Status.UNSUPPORTED  # printed, but empty
    assert value(got, "gpu.memory.used") == 807
    assert not all_of(got, "gpu.index")  # one GPU without a minor number may be one of several


def test_zero_is_a_reading_on_a_real_gpu() -> None:
    text = capture("smi/vgpu-513.xml").replace("VGPU", "None")
    assert value(FORMAT.parse(text, CONTEXT), "gpu.temperature.core") == 0


def test_a_cut_report_gives_what_it_holds_and_says_so() -> None:
    text = capture("smi/hopper-590-sick.xml")
    got = FORMAT.parse(text[: text.index("<gpu_temp>") + 12], CONTEXT)
    assert value(got, "gpu.row_remap.failure") is True
    assert not all_of(got, "gpu.temperature.core")  # the element was open: its text may go on
    found = one(got, "node.gpu.listed")
    assert found.status is Status.FAILED
    assert "ends early" in found.detail


def test_entities_are_refused() -> None:
    bomb = (
        '<?xml version="1.0"?><!DOCTYPE nvidia_smi_log [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;">]>'
        "<nvidia_smi_log><driver_version>&b;</driver_version></nvidia_smi_log>"
    )
    got = FORMAT.parse(bomb, CONTEXT)
    assert not all_of(got, "node.driver.version")
    assert "entities" in one(got, "node.gpu.listed").detail


def test_elements_that_nest_without_end_are_refused() -> None:
    got = FORMAT.parse("<nvidia_smi_log>" + "<a>" * 10_000, CONTEXT)
    assert "deeper" in one(got, "node.gpu.listed").detail


def test_recognition() -> None:
    for name in NAMES:
        assert FORMAT.sniff(capture(f"smi/{name}")) == 100
    assert FORMAT.sniff(capture("smi/hopper-590-sick.txt")) == 0
    assert FORMAT.sniff("<html><body>nvidia_smi_log</body></html>") == 0


@given(st.sampled_from(NAMES), st.integers(0, 10**6))
def test_any_cut_is_answered(name: str, at: int) -> None:
    check_cut(FORMAT, f"smi/{name}", at)


@given(shuffled_lines([f"smi/{name}" for name in NAMES]))
def test_any_text_is_answered(text: str) -> None:
    check_any(FORMAT, text)
