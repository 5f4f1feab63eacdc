from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from knowledge.observation import Scope, Status
from probes.parse.dcgmi_nvlink import FORMAT
from tests.probes.parse.smi_case import (
    CONTEXT,
    all_of,
    capture,
    check_any,
    check_cut,
    one,
    parse,
    shuffled_lines,
    status,
    value,
)  # fmt: skip

NAMES = ("dcgm/nvlink-e.json", "dcgm/nvlink-e.txt", "dcgm/nvlink-s.txt")


def test_json_counters() -> None:
    got = parse(FORMAT, NAMES[0])
    assert value(got, "link.errors.crc_data", "0") == 12
    assert value(got, "link.errors.recovery", "0") == 1
    assert value(got, "link.errors.crc_data", "11") == 0
    assert {o.subject.up(Scope.GPU) for o in got} == {one(got, "link.errors.crc_flit").subject.parent}
    assert one(got, "link.errors.crc_flit").subject.parent is not None
    assert str(one(got, "link.errors.crc_flit").subject) == "gpu index:4 link 0"


def test_tables_one_after_another() -> None:
    got = parse(FORMAT, NAMES[1])
    assert value(got, "link.errors.crc_data", "0") == 12
    assert value(got, "gpu.nvlink.errors.malformed_packet", "index:5") == 2
    assert value(got, "gpu.nvlink.ber.effective", "index:5") == 1.5e-254
    missing = one(got, "link.errors.replay", "2")
    assert (missing.status, missing.detail) == (Status.FAILED, "No data is available")


def test_states_of_links() -> None:
    got = parse(FORMAT, NAMES[2])
    states = [(o.subject.id, o.value) for o in all_of(got, "link.state") if o.subject.up(Scope.GPU)]
    assert states == [("0", "active"), ("1", "active"), ("2", "inactive"), ("3", "disabled")]
    assert value(got, "gpu.nvlink.active") == 2  # GPU 1 has no links: nothing is said about them
    assert value(got, "gpu.nvlink.inactive") == 1
    switch = [o for o in all_of(got, "link.state") if o.subject.up(Scope.NVSWITCH)]
    assert [o.value for o in switch] == ["active", "inactive"]


def test_a_refusal_is_told() -> None:
    got = FORMAT.parse("Error: Unable to retrieve NvLink link status from DCGM. Return: Not supported.\n", CONTEXT)
    assert status(got, "gpu.nvlink.active") is Status.FAILED


def test_recognition() -> None:
    assert [FORMAT.sniff(capture(name)) for name in NAMES] == [100, 100, 100]
    for other in ("smi/nvlink-e.txt", "smi/nvlink-s.txt", "dcgm/diag-v4.json", "dcgm/health-v4.json"):
        assert FORMAT.sniff(capture(other)) == 0, other


@given(st.sampled_from(NAMES), st.integers(0, 10**6))
def test_any_cut_is_answered(name: str, at: int) -> None:
    check_cut(FORMAT, name, at)


@given(shuffled_lines(NAMES))
def test_any_text_is_answered(text: str) -> None:
    check_any(FORMAT, text)
