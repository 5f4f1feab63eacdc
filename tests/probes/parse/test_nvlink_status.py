from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from knowledge.observation import Scope, Status
from probes.parse.nvlink_status import FORMAT
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

NAME = "smi/nvlink-s.txt"
GPUS = [f"GPU-11111111-2222-3333-4444-{d * 12}" for d in "5678"]


def test_links_with_speeds_and_an_inactive_one() -> None:
    got = parse(FORMAT, NAME)
    assert [o.value for o in all_of(got, "link.state")] == ["active", "inactive", "active"]
    assert [o.value for o in all_of(got, "link.speed")] == [25.0, 25.0]
    assert value(got, "gpu.nvlink.active", GPUS[0]) == 2
    assert value(got, "gpu.nvlink.inactive", GPUS[0]) == 1
    link = one(got, "link.state", "1")
    assert link.subject.scope is Scope.LINK
    assert link.subject.up(Scope.GPU) == one(got, "gpu.index", GPUS[0]).subject


def test_all_links_down_is_known_without_their_number() -> None:
    got = parse(FORMAT, NAME)
    assert value(got, "gpu.nvlink.active", GPUS[1]) == 0
    assert not all_of(got, "gpu.nvlink.inactive", GPUS[1])


def test_a_refusal_is_not_zero_links() -> None:
    got = parse(FORMAT, NAME)
    assert status(got, "gpu.nvlink.active", GPUS[2]) is Status.UNSUPPORTED
    assert status(got, "gpu.nvlink.active", GPUS[3]) is Status.FAILED


def test_a_state_that_is_not_understood_makes_the_count_unknown() -> None:
    text = capture(NAME).replace("<inactive>", "Unknown Error")
    got = FORMAT.parse(text, CONTEXT)
    assert status(got, "link.state", "1") is Status.FAILED
    assert status(got, "gpu.nvlink.active", GPUS[0]) is Status.FAILED


def test_recognition() -> None:
    assert FORMAT.sniff(capture(NAME)) == 100
    assert (
        FORMAT.sniff(
            "GPU 0: X (UUID: GPU-11111111-1)\nNVML: Unable to retrieve NVLink information as all links are inActive\n"
        )
        == 90
    )
    for other in ("smi/nvlink-e.txt", "smi/hopper-590-sick.txt", "smi/table-590-mig.txt", "dcgm/nvlink-s.txt"):
        assert FORMAT.sniff(capture(other)) == 0, other


@given(st.integers(0, 10**6))
def test_any_cut_is_answered(at: int) -> None:
    check_cut(FORMAT, NAME, at)


@given(shuffled_lines([NAME]))
def test_any_text_is_answered(text: str) -> None:
    check_any(FORMAT, text)
