"""How fast the steps of a program were: whether they became slower, when, and whether some of them stand out.

Worked out on what steps took, or on the inverse of their rate. A difference counts from a fifth on, where three quarters of the
values on one side lie beyond three quarters of those on the other: noise, a single slow step and the first steps do not.
A fifth, and a tenth of the time for steps that stand out, are our habit: less is within what a healthy job shows.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate, pairwise

from knowledge.record import dataclass

SLOWER = 1.2
WARM_UP = 2  # values that are left out at the start: compiling, filling caches
LEAST = 12  # values that are needed
SIDE = 4  # of them on each side
STANDS_OUT = 1.5  # of the usual: a step that takes so much longer
MOST = 0.6  # of all steps that may stand out
APART = 1.25  # of the usual: below it lie 19 of 20 of the other steps
FEW = 5  # values of which two steady levels are told apart all the same: of a log that was cut, or of one line each hundred steps
STEADY = 0.03  # of the level: how far such few values may lie from it
APART_FEW = 1.1  # how far the others of such few ranks may lie from each other
WASTED = 10.0  # % of the time that such steps take beyond what they should


@dataclass(frozen=True, slots=True)
class Value:
    """What one line told: the number of the line and the step, how long the step took, when the line was written."""

    line: int
    step: int | None
    took: float  # s, or the inverse of a rate
    at: int | None = None


@dataclass(frozen=True, slots=True)
class Change:
    """The steps became slower: all at once, little by little, or for a while."""

    kind: str  # jump, rise, while
    before: float
    after: float
    since: Value
    until: Value | None = None  # of a while: the first that is fast again

    @property
    def times(self) -> float:
        """How many times as long steps take."""
        return self.after / self.before


@dataclass(frozen=True, slots=True)
class Peaks:
    """Steps that take much longer than the others."""

    usual: float
    peak: float
    many: int
    share: float  # % of the time that is lost to them
    every: int | None  # lines between two of them, where it is always alike
    steps: int | None  # and steps
    first: Value
    where: int | None  # what the step number of each is a multiple of


def quantile(values: Iterable[float], share: float) -> float:
    """The value below which such a share of `values` lies. (`statistics` takes as long to load as a small log to read.)"""
    ordered = sorted(values)
    place = share * (len(ordered) - 1)
    low = int(place)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (place - low)


def median(values: Iterable[float]) -> float:
    """The value in the middle."""
    return quantile(values, 0.5)


def slowest_of_few(ranks: Mapping[str, Sequence[float]]) -> tuple[str, float, float] | None:
    """The same of a few lines each: the slow one told twice at least, all of it a fifth beyond the slowest line of any other, and
    the others alike."""
    if len(ranks) < 4 or max(map(len, ranks.values())) >= SIDE:
        return None
    name = max(ranks, key=lambda n: median(ranks[n]))
    others = [took for n, own in ranks.items() if n != name for took in own]
    if len(ranks[name]) < 2 or min(ranks[name]) < SLOWER * max(others) or max(others) > APART_FEW * min(others):
        return None
    return name, median(ranks[name]), median(others)


def change(values: Sequence[Value]) -> Change | None:
    """Where the steps became slower; None where they did not."""
    if len(values) < WARM_UP + LEAST:
        return _few(values)
    values = values[WARM_UP:]
    smooth = _smooth([v.took for v in values])
    at, by_jump = _split(smooth)
    before, after = smooth[:at], smooth[at:]
    if min(len(before), len(after)) >= SIDE and median(after) >= SLOWER * median(before):
        if back := _back(after, median(before)):
            return _of(values, "while", before, after[: back[0]], at, at + back[0])
        if _apart(before, after):
            third = max(SIDE, len(smooth) // 4)
            if _by_line(smooth) < by_jump and _apart(smooth[:third], smooth[-third:]):
                end = max(SIDE, len(smooth) // 20)
                return Change("rise", median(smooth[:end]), median(smooth[-end:]), values[0])
            return _of(values, "jump", before, after, at)
    return _hump(values, smooth)


def _few(values: Sequence[Value]) -> Change | None:
    """Of few values a step from one level to a slower one, both steady to the end: two at least before it, and three behind it."""
    took = [v.took for v in values]
    for at in range(2, len(took) - 2) if len(took) >= FEW else ():
        before, after = took[:at], took[at:]
        level, slow = median(before), median(after)
        steady = all(abs(v - level) <= STEADY * level for v in before) and all(abs(v - slow) <= STEADY * slow for v in after)  # fmt: skip
        if steady and slow >= SLOWER * level:
            return _of(values, "jump", before, after, at)
    return None


def _hump(values: Sequence[Value], smooth: Sequence[float]) -> Change | None:
    """A while in the middle, of which a split in two halves shows nothing: what lies a fifth above the lower half of all."""
    usual = quantile(smooth, 0.25)
    slow = [i for i, took in enumerate(smooth) if took >= SLOWER * usual]
    if len(slow) < SIDE:
        return None
    first, last = slow[0], slow[-1] + 1
    inside, outside = smooth[first:last], [*smooth[:first], *smooth[last:]]
    if len(slow) < 0.8 * len(inside) or first < SIDE or len(smooth) - last < SIDE or not _apart(outside, inside):
        return None
    return _of(values, "while", outside, inside, first, last)


def _of(values: Sequence[Value], kind: str, before: Sequence[float], after: Sequence[float], at: int, until: int | None = None) -> Change:  # fmt: skip
    return Change(kind, median(before), median(after), values[at], values[until] if until is not None else None)


def _smooth(took: Sequence[float]) -> list[float]:
    """The middle of each five, so that a single step that stands out does not count."""
    return [median(took[max(0, min(i - 2, len(took) - 5)) : max(5, i + 3)]) for i in range(len(took))]


def _split(values: Sequence[float]) -> tuple[int, float]:
    """The place where two levels describe the values best, and how far they then lie from them, squared."""
    sums = [0.0, *accumulate(values)]
    squares = [0.0, *accumulate(v * v for v in values)]
    n = len(values)

    def rest(low: int, high: int) -> float:
        return (squares[high] - squares[low]) - (sums[high] - sums[low]) ** 2 / (high - low)

    best = min(range(SIDE, n - SIDE + 1), key=lambda at: rest(0, at) + rest(at, n))
    return best, rest(0, best) + rest(best, n)


def _by_line(values: Sequence[float]) -> float:
    """How far the values lie from the straight line that describes them best, squared."""
    n = len(values)
    middle, mean = (n - 1) / 2, sum(values) / n
    spread = sum((i - middle) ** 2 for i in range(n))
    slope = sum((i - middle) * (v - mean) for i, v in enumerate(values)) / spread
    return sum((v - mean - slope * (i - middle)) ** 2 for i, v in enumerate(values))


def _apart(before: Sequence[float], after: Sequence[float]) -> bool:
    return quantile(before, 0.75) < quantile(after, 0.25) and median(after) >= SLOWER * median(before)


def _back(after: Sequence[float], usual: float) -> tuple[int, float] | None:
    """Where what became slower is fast again, to the end."""
    at = len(after)
    while at > 0 and after[at - 1] < (1 + SLOWER) / 2 * usual:
        at -= 1
    return (at, usual) if SIDE <= at <= len(after) - SIDE else None


def apart(values: Sequence[Value]) -> list[Value] | None:
    """What each step took, where the values add up from the start of the run: of steps alone nearly none would lie below the one
    before. None where they do not."""
    pairs = list(pairwise(values))
    if len(pairs) < LEAST or sum(b.took > a.took for a, b in pairs) < 0.95 * len(pairs):
        return None
    out = []
    for a, b in pairs:
        steps = b.step - a.step if a.step is not None and b.step is not None else 1
        if steps > 0 and b.took > a.took:
            out.append(Value(b.line, b.step, (b.took - a.took) / steps, b.at))
    return out


def peaks(values: Sequence[Value]) -> Peaks | None:
    """Steps that stand out, where they take a share of the time that is worth a word."""
    values = values[WARM_UP:]
    if len(values) < LEAST:
        return None
    lower = quantile((v.took for v in values), 0.25)
    others = sorted(v.took for v in values if v.took < STANDS_OUT * lower)
    usual = median(others)
    slow = [i for i, v in enumerate(values) if v.took >= STANDS_OUT * usual]
    starts = [i for n, i in enumerate(slow) if n == 0 or slow[n - 1] != i - 1]
    if len(starts) < 3 or len(slow) > MOST * len(values):
        return None
    if others[len(others) * 19 // 20] > APART * usual:
        return None  # the times are spread out, and these are the ends of that
    lost = sum(values[i].took - usual for i in slow)
    share = 100.0 * lost / sum(v.took for v in values)
    if share < WASTED:
        return None
    apart = [b - a for a, b in pairwise(starts)]
    every = round(median(apart))
    regular = every > 1 and sum(abs(gap - every) <= max(1, every // 20) for gap in apart) >= 0.7 * len(apart)
    found = [values[i] for i in starts]
    slowed = [values[i].took for i in slow]
    steps = [
        b.step - a.step for a, b in pairwise(found) if a.step is not None and b.step is not None and b.step > a.step
    ]
    many = round(median(steps)) if regular and steps else None
    where = many if many and all(v.step is not None and v.step % many == 0 for v in found[:50]) else None
    peak = median(slowed)
    return Peaks(usual, peak, len(starts), share, every if regular else None, many, found[0], where)


def slowest(ranks: dict[str, Sequence[float]]) -> tuple[str, float, float] | None:
    """Of at least three that do the same the one that takes a fifth longer than the others: its name, what it and they take."""
    told = {name: took for name, took in ranks.items() if len(took) >= SIDE}
    if len(told) < 3:
        return None
    middles = {name: median(took) for name, took in told.items()}
    name = max(middles, key=lambda n: middles[n])
    others = [took for n, own in told.items() if n != name for took in own]
    if not _apart(others, told[name]):
        return None
    return name, middles[name], median(others)
