"""Of one fault that a GPU tells in several codes the gravest leads, and its action is the answer, in whatever order they come."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from knowledge.facts import vocabulary
from knowledge.observation import Clock, Event, Observation, Source, gpu
from rules.engine import Evaluation, Finding, Role, run
from rules.factbase import FactBase
from rules.loader import load
from rules.resolve import buckets

CARD = gpu("0000:3b:00.0", "n1")
BUCKETS = {
    48: "RESET_GPU", 63: "IGNORE", 64: "RESET_GPU", 94: "RESTART_APP", 95: "RESET_GPU", 140: "RESET_GPU",
    74: "WORKFLOW_NVLINK_ERR", 144: "XID_154_EVAL", 145: "RESET_GPU", 146: "XID_154_EVAL", 149: "RESET_GPU",
    62: "RESET_GPU", 79: "RESTART_BM", 119: "RESET_GPU", 120: "RESET_GPU",
}  # fmt: skip
FAMILIES = ((48, 63, 64, 94, 95, 140), (144, 145, 146, 149, 95, 48), (62, 79, 119, 120), (74, 79))

RULES = load().rules


def line(code: int, number: int) -> Observation:
    event = Event(code, {"bucket": BUCKETS[code], "severity": "error"})
    return Observation(
        "xid", CARD, event, at=number * 10**9, clock=Clock.BOOT, source=Source("kmsg", "kern.log", line=number)
    )


def told(codes: Sequence[int], apart: int = 1) -> Evaluation:
    return run(RULES, FactBase([line(code, 1 + i * apart) for i, code in enumerate(codes)], vocabulary()))


def grave(f: Finding) -> tuple[int, int]:
    return f.severity.rank, buckets()[f.advice.bucket].strength


@given(
    st.sampled_from(FAMILIES).flatmap(lambda f: st.lists(st.sampled_from(f), min_size=2, max_size=4, unique=True)),
    st.integers(1, 40),
)
def test_the_gravest_of_a_family_leads(codes: list[int], apart: int) -> None:
    found = told(codes, apart).findings
    first = found[0]
    assert first.role is Role.ROOT
    assert grave(first) == max(map(grave, found))


def test_a_repair_that_failed_stands_above_the_error_that_asked_for_it() -> None:
    first, *rest = told([48, 64, 95]).findings
    assert (first.xid, first.advice.bucket) == (64, "RESET_GPU")
    assert {f.xid for f in rest if f.role is Role.SYMPTOM} == {48, 95}


def test_of_two_gpus_neither_outweighs_the_other() -> None:
    other = line(95, 2)
    there = Observation(
        "xid", gpu("0000:af:00.0", "n1"), other.value, at=other.at, clock=other.clock, source=other.source
    )
    found = run(RULES, FactBase([line(48, 1), line(63, 1), there], vocabulary())).findings
    assert {f.xid for f in found if f.role is Role.ROOT} == {48, 95}
