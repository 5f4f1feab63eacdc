"""Counters between two looks: growth is told with both values, and nothing else is."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from random import Random

from hypothesis import given
from hypothesis import strategies as st

from knowledge.derive import derive
from knowledge.observation import Clock, Event, Observation, Scope, Source, Subject, gpu, node

GPU = gpu("0000:3b:00.0", "n1")
FACT = "gpu.ecc.aggregate.uncorrected.dram"
HOUR = 3600 * 10**9
LOOKS = st.lists(st.integers(0, 6), min_size=2, max_size=6)


def timed(values: Sequence[float], fact: str = FACT) -> list[Observation]:
    return [
        Observation(fact, GPU, v, source=Source("nvidia-smi-q", f"{i}.txt", 5), at=i * HOUR, clock=Clock.LOCAL)
        for i, v in enumerate(values)
    ]


def grown(batch: Sequence[Observation]) -> list[Event]:
    return [o.value for o in derive(batch) if o.fact == "gpu_counter_growth" and isinstance(o.value, Event)]


@given(LOOKS, st.randoms())
def test_growth_is_told_once_where_a_look_tells_more_than_the_one_before_in_any_order(
    values: list[int], random: Random
) -> None:
    batch = timed(values)
    random.shuffle(batch)
    found = grown(batch)
    assert len(found) == any(b > a for a, b in pairwise(values))
    for event in found:
        before, after = event.get("before"), event.get("after")
        assert isinstance(before, int)
        assert isinstance(after, int)
        assert before < after
        assert {before, after} <= set(values)


@given(LOOKS)
def test_without_times_the_order_of_the_inputs_tells(values: list[int]) -> None:
    given_ = [
        Observation(FACT, GPU, v, source=Source("nvlink-errors", f"{-i}.txt", 5, order=i + 1))
        for i, v in enumerate(values)
    ]
    assert [e.fields for e in grown(given_)] == [
        {k: v for k, v in e.fields.items() if k not in ("since", "until", "per_minute")} for e in grown(timed(values))
    ]


def test_of_two_files_of_which_nothing_tells_which_was_first_no_growth_is_told() -> None:
    assert not grown([Observation(FACT, GPU, v, source=Source("nvlink-errors", f"{v}.txt", 5)) for v in (0, 3)])


def test_two_boards_in_one_slot_have_no_common_counter() -> None:
    boards = [Observation("gpu.uuid", GPU, f"GPU-{i}", source=Source("nvidia-smi-q", f"{i}.txt", 1)) for i in range(2)]
    assert not grown([*timed([0, 3]), *boards])


def test_a_sum_is_not_told_beside_its_parts() -> None:
    both = [*timed([0, 3]), *timed([0, 3], "gpu.ecc.aggregate.uncorrected.total")]
    assert [e.get("counter") for e in grown(both)] == [FACT]


def test_the_times_are_those_between_which_it_grew() -> None:
    (event,) = grown(timed([0, 0, 3, 3]))
    assert (event.get("since"), event.get("until")) == ("1970-01-01 01:00", "02:00")


def test_what_the_history_remembers_is_no_look() -> None:
    now, then = timed([3, 0])
    past = Observation(FACT, GPU, 0, source=Source("nvidia-smi-q", "history:1"), at=-HOUR, clock=Clock.LOCAL)
    assert not grown([now, past])
    assert then


@given(st.lists(st.one_of(st.integers(), st.floats(), st.booleans()), min_size=2, max_size=5))
def test_odd_numbers_break_nothing(values: list[float]) -> None:
    for event in grown(timed(values)):
        assert event.get("before") is not None


def test_a_counter_that_has_stopped_at_its_highest_value_did_not_grow() -> None:
    port = Subject(Scope.PORT, "lid7/1", node("n1"))
    both = [
        Observation("port.counters.symbol_error", port, v, source=Source("ib-errors", "f.txt", n))
        for n, v in ((3, 65535), (30, 88121))
    ]
    assert not [o for o in derive(both) if isinstance(o.value, Event)]
