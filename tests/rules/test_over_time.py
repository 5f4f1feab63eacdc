"""Numbers over time: counters that restart, percentiles, what was sustained, and how much must have been seen."""

from __future__ import annotations

import math
import statistics
from itertools import accumulate, pairwise
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from knowledge.observation import Clock, Observation, Series, Status
from rules.overtime import increase, percentile
from rules.proof import LeafProof, Truth
from tests.cases import each
from tests.rules.lab import GPU, MINUTE, NOW, SECOND, base, proof, quiet, seen, silent, truth

T, F, U = Truth.TRUE, Truth.FALSE, Truth.UNKNOWN

NUMBERS = st.lists(st.integers(0, 1000).map(float), min_size=1, max_size=30)


def samples(values: list[float], step: int = MINUTE, name: str = "errors", **more: Any) -> list[Observation]:
    """One observation a step, the last one now."""
    start = -step * (len(values) - 1)
    return [seen(name, int(v), at=start + i * step, **more) for i, v in enumerate(values)]


# --- counters -----------------------------------------------------------------------------


@st.composite
def counters(draw: st.DrawFn) -> tuple[list[float], float]:
    """What a counter showed at each sample, and by how much it must have grown.

    Between two samples it grows, or it restarts at zero and then shows less than before.
    """
    shown, grown = [float(draw(st.integers(0, 100)))], 0.0
    for _ in range(draw(st.integers(1, 12))):
        last = shown[-1]
        now = float(draw(st.integers(0, int(last) - 1))) if last > 0 and draw(st.integers(0, 3)) == 0 else None
        step = float(draw(st.integers(0, 50)))
        shown.append(last + step if now is None else now)
        grown += step if now is None else now
    return shown, grown


@given(counters())
def test_growth_survives_restarts(counter: tuple[list[float], float]) -> None:
    shown, grown = counter
    assert increase(shown) == grown


@given(NUMBERS, NUMBERS)
def test_growth_adds_up_and_is_never_negative(first: list[float], second: list[float]) -> None:
    whole = increase(first + second)
    assert whole == increase(first) + increase([first[-1], *second])
    assert whole >= 0


@given(NUMBERS)
def test_growth_without_a_restart_is_the_difference(steps: list[float]) -> None:
    shown = list(accumulate(steps))
    assert increase(shown) == shown[-1] - shown[0]


@given(counters(), st.integers(0, 40))
def test_the_increase_of_a_leaf_is_that_of_its_samples(counter: tuple[list[float], float], bound: int) -> None:
    shown, grown = counter
    within = f"{len(shown)}m"
    leaf = {"fact": "errors", "take": "increase", "within": within, "op": "at_least", "value": bound}
    assert truth(leaf, samples(shown)) is (T if grown >= bound else F)
    minutes = len(shown) - 1
    rate = leaf | {"take": "rate", "per": "1h"}
    assert truth(rate, samples(shown)) is (T if grown * 60 / minutes >= bound else F)


def test_only_the_window_counts() -> None:
    leaf = {"fact": "errors", "take": "increase", "within": "3m", "op": "is", "value": 3}
    assert truth(leaf, samples([0, 50, 90, 91, 92, 93])) is T


# --- how much must have been seen ---------------------------------------------------------


@given(st.integers(1, 10), st.integers(1, 100))
def test_the_samples_span_as_much_of_the_window_as_is_demanded(minutes: int, percent: int) -> None:
    leaf = {"fact": "errors", "take": "increase", "within": "10m", "coverage": percent / 100, "op": "above", "value": 0}
    enough = minutes * 10 >= percent
    got = proof(leaf, samples([0.0, 5.0], step=minutes * MINUTE))
    assert got.truth is (T if enough else U)
    assert isinstance(got, LeafProof)
    if not enough:
        assert "2 samples" in got.missing[0].reason
        assert f"{percent}%" in got.missing[0].reason


@each("take", ["increase", "rate", "sustained", "percentile"])
def test_one_sample_is_no_course(take: str) -> None:
    leaf: dict[str, Any] = {
        "fact": "errors",
        "take": take,
        "within": "10m",
        "coverage": 0,
        "op": "at_least",
        "value": 0,
    }
    assert truth(leaf, samples([5])) is U
    same_moment = seen("errors", Series((NOW, NOW), (1.0, 2.0)))
    assert truth(leaf, [same_moment]) is U, "and neither are two of one moment"
    assert truth(leaf, [silent("errors")]) is U
    assert truth(leaf, samples([5, 6])) is T


def test_a_series_counts_like_its_samples() -> None:
    leaf = {"fact": "errors", "take": "increase", "within": "10m", "op": "at_least", "value": 9}
    times = tuple(NOW - (9 - i) * MINUTE for i in range(10))
    assert truth(leaf, [seen("errors", Series(times, tuple(map(float, range(10)))))]) is T
    assert truth(leaf, [seen("errors", Series(times, (0.0, *[math.nan] * 8, 9.0)))]) is T, "a gap is no number"
    assert truth(leaf, [seen("errors", Series(times, (math.nan,) * 10))]) is U


def test_the_last_number_of_a_series_is_the_level() -> None:
    leaf = {"fact": "level", "op": "is", "value": 3}
    assert truth(leaf, [seen("level", Series((1, 2, 3), (9.0, 3.0, math.nan)))]) is T
    assert truth(leaf, [seen("level", Series((), ()))]) is U


def test_two_sources_are_not_one_counter() -> None:
    # Taken together they would seem to restart at every step.
    leaf = {"fact": "errors", "take": "increase", "within": "5m", "op": "above", "value": 20}
    world = samples([100, 101, 102, 103], probe="a") + samples([90, 91, 92], step=70 * SECOND, probe="b")
    assert truth(leaf, world) is F


def test_two_clocks_are_not_one_counter() -> None:
    leaf = {"fact": "errors", "take": "increase", "within": "5m", "op": "above", "value": 5}
    world = samples([100, 101, 102, 103]) + samples([3, 4], clock=Clock.BOOT)
    assert truth(leaf, world) is F


def test_none_seen_is_zero_over_any_window() -> None:
    leaf = {"fact": "errors", "take": "rate", "within": "10m", "op": "at_most", "value": 0}
    assert truth(leaf, [seen("errors", None, status=Status.NONE_SEEN)]) is T


# --- percentile and sustained -------------------------------------------------------------


@given(st.lists(st.floats(-1e6, 1e6), min_size=2, max_size=40), st.integers(1, 99))
def test_percentiles_are_those_of_the_standard_library(values: list[float], p: int) -> None:
    expected = statistics.quantiles(values, n=100, method="inclusive")[p - 1]
    assert math.isclose(percentile(values, p), expected, rel_tol=1e-9, abs_tol=1e-6)


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=40), st.floats(0, 100), st.floats(0, 100))
def test_percentiles_rise_from_the_least_to_the_greatest(values: list[float], p: float, q: float) -> None:
    low, high = sorted((p, q))
    assert min(values) <= percentile(values, low) <= percentile(values, high) + 1e-6
    assert percentile(values, high) <= max(values)
    assert (percentile(values, 0), percentile(values, 100)) == (min(values), max(values))


@given(st.lists(st.integers(0, 9).map(float), min_size=2, max_size=12), st.integers(0, 9))
def test_sustained_means_every_sample_of_the_window(values: list[float], bound: int) -> None:
    leaf = {"fact": "level", "take": "sustained", "within": "5m", "coverage": 0, "op": "at_least", "value": bound}
    assert truth(leaf, samples(values, name="level")) is (T if all(v >= bound for v in values[-6:]) else F)


def test_sustained_yes_or_no() -> None:
    leaf = {"fact": "good", "take": "sustained", "within": "5m", "op": "is", "value": True}
    world = [seen("good", True, at=-i * MINUTE) for i in range(6)]
    assert truth(leaf, world) is T
    assert truth(leaf, [*world[:5], seen("good", False, at=-5 * MINUTE)]) is F


def test_percentile_of_a_leaf() -> None:
    leaf = {"fact": "level", "take": "percentile", "percentile": 90, "within": "10m", "op": "is", "value": 9.0}
    assert truth(leaf, samples([float(n) for n in range(11)], name="level")) is T


def test_the_evidence_of_a_course_is_its_ends() -> None:
    got = proof(
        {"fact": "errors", "take": "increase", "within": "10m", "op": "above", "value": 1},
        [*samples([1, 2, 3, 4, 5, 6]), quiet()],
    )
    assert isinstance(got, LeafProof)
    assert [o.value for o in got.observations] == [1, 6]
    assert got.seen == "increase 5"
    assert all(a.at is not None and b.at is not None and a.at < b.at for a, b in pairwise(got.observations))


def test_the_rows_of_one_time_count_once() -> None:
    facts = base([seen("errors", 5, at=0, line=1), seen("errors", 7, at=0, line=2), seen("errors", 1, at=-MINUTE)])
    series, kept = facts.series("errors", GPU)
    assert series.values == (1.0, 7.0)
    assert len(kept) == 2
