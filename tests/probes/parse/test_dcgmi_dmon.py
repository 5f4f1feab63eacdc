from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from knowledge.observation import Observation, Scope, Status, Subject, gpu
from probes.parse.dcgmi_dmon import FORMAT, SAMPLES
from tests.probes.parse.smi_case import CONTEXT, capture, check_any, check_cut, parse, shuffled_lines

NAME = "dcgm/dcgmi-dmon.txt"


def of(got: list[Observation], fact: str, number: int) -> list[Observation]:
    return [o for o in got if o.fact == fact and o.subject.id == f"index:{number}"]


def test_every_sample_of_a_gpu_counts_in_its_unit() -> None:
    got = parse(FORMAT, NAME)
    assert [o.value for o in of(got, "gpu.activity.sm", 0)] == [7.2, 6.9]
    assert [o.value for o in of(got, "gpu.pcie.rx", 0)] == [0.3104, 0.298]
    assert [o.value for o in of(got, "gpu.utilization.core", 1)] == [100, 100]
    assert {o.subject for o in got if o.subject.scope is Scope.MIG} == {
        Subject(Scope.MIG, "GPU-I 3", gpu("index:0", CONTEXT.host))
    }
    assert {o.subject.id for o in got if o.subject.scope is Scope.GPU} == {"index:0", "index:1"}, (
        "an instance is no GPU"
    )


def test_what_was_not_read_is_no_number() -> None:
    got = parse(FORMAT, NAME)
    assert [o.status for o in of(got, "gpu.power.draw", 0)] == [Status.OK, Status.UNSUPPORTED]
    assert of(got, "gpu.pcie.rx", 1)[1].value is None


def test_what_is_no_measurement_is_read_too() -> None:
    text = "#Entity   XIDER  EDVDV  RRF  RRP\nID\nGPU 0     0  0  0  0\nGPU 1     79  2  1  0\n"
    got = {(o.subject.id, o.fact): o.value for o in FORMAT.parse(text, CONTEXT)}
    assert got["index:1", "gpu.xid.last"] == 79
    assert got["index:1", "gpu.ecc.volatile.uncorrected.dram"] == 2
    assert (got["index:1", "gpu.row_remap.failure"], got["index:1", "gpu.row_remap.pending"]) == (True, False)
    assert got["index:0", "gpu.row_remap.failure"] is False


def test_a_long_listing_keeps_its_end() -> None:
    rows = "".join(f"GPU 0     {i % 100}\n" for i in range(3 * SAMPLES))
    got = FORMAT.parse("#Entity   GPUTL\nID\n" + rows, CONTEXT)
    assert len(got) == SAMPLES
    assert got[-1].source.line == 3 * SAMPLES + 2


def test_recognition() -> None:
    assert FORMAT.sniff(capture(NAME)) == 96
    for other in ("# gpu    pwr\n", "#Entity\n", "Entity GPUTL POWER\n", "GPU 0  99  131\n", ""):
        assert FORMAT.sniff(other) == 0
    assert FORMAT.parse("#Entity   GPUTL  POWER\nID\nGPU 0     99\n", CONTEXT) == [], "a row that was cut"


@given(st.integers(0, 600))
def test_cut_anywhere(at: int) -> None:
    check_cut(FORMAT, NAME, at)


@given(shuffled_lines((NAME,)))
def test_lines_in_any_order(text: str) -> None:
    check_any(FORMAT, text)


def test_times_of_violations_are_microseconds() -> None:
    (heat, power) = FORMAT.parse("#Entity   TVIOL  PVIOL\nID\nGPU 0     6000000000  9223372036854775794\n", CONTEXT)
    assert (heat.fact, heat.value) == ("gpu.violation.thermal", 6_000_000)
    assert (power.fact, power.status) == ("gpu.violation.power", Status.UNSUPPORTED)


@given(st.integers(0, 60), st.sampled_from(["", "  NVLCRCERR", "  some_name", "  X%/y"]))
def test_padding_and_columns_of_other_names_take_nothing_away(blanks: int, other: str) -> None:
    text = f"#Entity   POWER{other}{' ' * blanks}\nID        W{' ' * blanks}\nGPU 3     131.052{'  7' if other else ''}{' ' * blanks}\n"
    assert FORMAT.sniff(text) == 96
    assert [(o.subject.id, o.value) for o in FORMAT.parse(text, CONTEXT)] == [("index:3", 131.052)]
