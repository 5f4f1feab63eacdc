"""What a number did over time: its increase, its rate, how long it held, a percentile."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from knowledge.observation import Observation, Scalar, Subject
from rules.compare import compare
from rules.condition import FactLeaf, Take
from rules.factbase import FactBase
from rules.proof import LeafProof, Missing, Truth


def over_time(
    leaf: FactLeaf,
    subject: Subject,
    facts: FactBase,
    wanted: Scalar | tuple[Scalar, ...],
    other: tuple[Observation, ...],
) -> LeafProof:
    """The truth of a leaf that asks what a number did within its window, where samples cover enough of it."""
    series, samples = facts.series(leaf.fact, subject)
    assert leaf.within is not None
    end = series.times[-1] if series.times else 0
    inside = [i for i, t in enumerate(series.times) if t >= end - leaf.within]
    span = end - series.times[inside[0]] if inside else 0
    if len(inside) < 2 or span <= 0 or span < leaf.coverage * leaf.within:
        reason = (
            f"{len(inside)} samples over {span / 1e9:.6g} s, {leaf.coverage:.0%} of {leaf.within / 1e9:.6g} s needed"
        )
        return LeafProof(leaf, Truth.UNKNOWN, tuple(samples), (Missing(leaf.fact, subject, reason),))
    values = [series.values[i] for i in inside]
    shown = (*samples[:1], *samples[-1:], *other) if len(samples) > 1 else (*samples, *other)
    if leaf.take is Take.SUSTAINED:
        held = all(compare(bool(v) if isinstance(wanted, bool) else v, leaf.op, wanted) for v in values)
        return LeafProof(
            leaf, Truth.TRUE if held else Truth.FALSE, shown, seen=f"{len(values)} samples over {span / 1e9:.6g} s"
        )
    if leaf.take is Take.PERCENTILE:
        number = percentile(values, leaf.percentile)
    else:
        number = increase(values)
        if leaf.take is Take.RATE:
            number = number * leaf.per / span
    truth = Truth.TRUE if compare(number, leaf.op, wanted) else Truth.FALSE
    return LeafProof(leaf, truth, shown, seen=f"{leaf.take} {number:.6g}")


def increase(values: Sequence[float]) -> float:
    """Growth of a counter; a value below its predecessor means it began again at zero."""
    return sum((b - a if b >= a else b) for a, b in pairwise(values))


def percentile(values: Sequence[float], p: float) -> float:
    """Linear interpolation between closest ranks (the method of numpy's default)."""
    ordered = sorted(values)
    place = (len(ordered) - 1) * p / 100
    low = int(place)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (place - low)
