"""Facts that follow from others: limits, sums, shares; out-of-memory arithmetic; coverage of implied XIDs."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from knowledge.derive import derive
from knowledge.derive.app import BESIDE
from knowledge.derive.gpu import REPLAYS_PER_LANE, replay_limit
from knowledge.facts import vocabulary
from knowledge.observation import Clock, Event, Observation, Origin, Scope, Source, Status, Subject, gpu, node

CARD = gpu("0000:3b:00.0", "n1")


def seen(fact: str, value: float, line: int = 1, call: str = "f", subject: Subject = CARD) -> Observation:
    return Observation(fact, subject, value, source=Source("test", call, line))


def value_of(batch: list[Observation], fact: str) -> object:
    return next((o.value for o in batch if o.fact == fact), None)


def test_replay_limit_is_dcgms_for_known_links() -> None:
    # 16 lanes: generation 4 allows 16 a minute, generation 5 allows 31 (DCGM, GetExpectedPcieReplayRate).
    assert replay_limit(4, 16) == 16
    assert replay_limit(5, 16) == 31


@given(st.integers(-2, 9), st.integers(-4, 32))
def test_replay_limit_is_never_made_up(gen: int, lanes: int) -> None:
    limit = replay_limit(gen, lanes)
    if gen not in REPLAYS_PER_LANE or lanes <= 0:
        assert limit is None
    else:
        assert limit == math.ceil(lanes * REPLAYS_PER_LANE[gen])


def test_a_sum_needs_both_parts() -> None:
    both = derive([seen("gpu.retired_pages.single_bit", 60), seen("gpu.retired_pages.double_bit", 3)])
    assert value_of(both, "gpu.retired_pages.total") == 63
    assert value_of(derive([seen("gpu.retired_pages.single_bit", 60)]), "gpu.retired_pages.total") is None


def test_a_share_of_nothing_is_not_a_share() -> None:
    assert value_of(derive([seen("gpu.power.draw", 70.0), seen("gpu.power.limit", 0.0)]), "gpu.power.share") is None


def test_the_last_sample_of_a_file_counts() -> None:
    batch = [seen("gpu.memory.used", 0, 10), seen("gpu.memory.total", 100, 11), seen("gpu.memory.used", 50, 200)]
    assert value_of(derive(batch), "gpu.memory.share") == 50.0


def test_values_of_two_sources_are_not_mixed() -> None:
    batch = [seen("gpu.memory.used", 50, call="a"), seen("gpu.memory.total", 100, call="b")]
    assert value_of(derive(batch), "gpu.memory.share") is None


@given(
    st.permutations([("gpu.memory.used", 10), ("gpu.memory.total", 40), ("gpu.power.draw", 5), ("gpu.power.limit", 10)])
)
def test_order_changes_nothing_and_a_second_pass_adds_nothing(facts: list[tuple[str, int]]) -> None:
    once = derive([seen(name, value) for name, value in facts])
    assert value_of(once, "gpu.memory.share") == 25.0
    assert value_of(once, "gpu.power.share") == 50.0
    assert sorted(map(repr, derive(once))) == sorted(map(repr, once))


def test_every_derived_fact_is_in_the_vocabulary() -> None:
    batch = derive([seen(f, 1) for f in ("gpu.power.draw", "gpu.power.limit", "gpu.clock.sm", "gpu.clock.sm.max")])
    for o in batch:
        assert vocabulary()[o.fact].accepts(o.value), o


def oom(**fields: float) -> Event:
    o = Observation("cuda_oom", Subject(Scope.DOCUMENT, "log"), Event(None, dict(fields)))
    found = derive([o])[0].value
    assert isinstance(found, Event)
    return found


def test_out_of_memory_tells_by_how_much() -> None:
    event = oom(requested=2048.0, free=10.0, total=24000.0, reserved_unallocated=240.0)
    assert (event.get("shortfall"), event.get("unallocated_share"), event.get("in_reserve")) == (2038.0, 0.01, False)
    assert oom(requested=2048.0, free=10.0, total=24000.0, reserved_unallocated=2038.0).get("in_reserve") is True


def test_out_of_memory_tells_what_others_hold_and_what_can_never_fit() -> None:
    exact = oom(requested=512.0, free=100.0, total=24000.0, in_use_process=9000.0)
    assert exact.get("elsewhere") == 14900.0
    old_format = oom(requested=600.0, free=569.9, total=24105.0, reserved=12697.6)
    assert old_format.get("elsewhere") == pytest.approx(24105.0 - 569.9 - 12697.6 - BESIDE)
    assert oom(requested=600.0, free=10.0, total=24105.0, reserved=23500.0).get("elsewhere") == 0.0
    assert oom(requested=48000.0, total=24000.0).get("request_share") == 2.0


def test_out_of_memory_without_numbers_stays_without() -> None:
    assert oom().get("shortfall") is None
    assert oom(requested=2048.0).get("shortfall_share") is None
    assert oom(requested=2048.0, reserved_unallocated=9000.0).get("in_reserve") is None
    assert oom(reserved_unallocated=5.0, total=0.0).get("unallocated_share") is None


def test_who_read_for_xids_read_for_those_that_lines_name() -> None:
    covered = Observation("xid", node("n1"), status=Status.NONE_SEEN, window=(0, 9), clock=Clock.BOOT)
    batch = derive([covered])
    assert [(o.fact, o.status) for o in batch if o.fact == "xid_implied"] == [("xid_implied", Status.NONE_SEEN)]


def test_an_exported_xid_is_implied_once_and_only_without_its_line() -> None:
    exported = Observation("xid_exported", CARD, Event(62, {"count": 1}))
    implied = [o for o in derive(derive([exported])) if o.fact == "xid_implied"]
    assert [(o.value.code if isinstance(o.value, Event) else None, o.origin) for o in implied] == [(62, Origin.DERIVED)]
    printed = Observation("xid", CARD, Event(62, {"text": "223b6a66"}))
    assert not [o for o in derive([exported, printed]) if o.fact == "xid_implied"]
