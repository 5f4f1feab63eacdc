"""Calls of one collective on several ranks: matched, put on one clock, and divided into waiting and transfer."""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Final

import numpy as np

from knowledge.record import dataclass
from probes.trace.across.collectives import POINT, ROOTED, Calls
from probes.trace.columns import I64, Mask

# A rank with under half the calls of the others (cut off, other window) would take theirs away from the comparison.
_HALF: Final = 0.5
# The ends of a collective differ by the last hops of a ring or tree: microseconds. More than this, and more than a
# tenth of the collective, and clocks (or groups) do not fit together.
_ENDS_NS: Final = 100_000
_ENDS_SHARE: Final = 0.1
# With one or two calls some offset always fits: it takes three to see that clocks agree.
_CALLS: Final = 3
_ROOTED: Final = tuple(zlib.crc32(op.encode()) for op in sorted(ROOTED))
_FREE: Final = (*_ROOTED, zlib.crc32(POINT.encode()))  # operations without a common end


@dataclass(slots=True)
class Matched:
    """The calls of one group that several ranks recorded: arrays [rank, call]."""

    group: str
    who: I64  # positions of the ranks
    start: I64
    end: I64
    op: I64  # [call]
    bytes: I64  # [call], -1: not recorded
    ops: Mapping[int, str]
    members: tuple[int, ...]
    keyed: str
    recorded: bool
    wait: I64 = field(default_factory=lambda: np.empty((0, 0), np.int64))  # [rank, call], -1: cannot be told
    late: I64 = field(default_factory=lambda: np.empty(0, np.int64))  # [call] row of the last to arrive

    @property
    def symmetric(self) -> Mask:
        """Calls that no rank leaves before all have arrived."""
        return ~np.isin(self.op, _FREE)


@dataclass(frozen=True, slots=True)
class Clocks:
    """What to take from each rank's clock; how well the ends of collectives agree after that."""

    offset: I64  # [rank]
    known: Mask  # [rank]
    residual_ns: int | None
    aligned: bool


def match(ranks: Sequence[Sequence[Calls]]) -> tuple[list[Matched], int]:
    """The calls that ranks have in common, by group and key; and how many calls found no partner."""
    by_group: dict[str, list[tuple[int, Calls]]] = {}
    for position, calls in enumerate(ranks):
        for call in calls:
            by_group.setdefault(call.group, []).append((position, call))
    found, alone = [], 0
    for group, parts in sorted(by_group.items()):
        matched = _match(group, parts)
        used = 0 if matched is None else matched.start.size
        alone += sum(len(c.key) for _, c in parts) - used
        if matched is not None:
            found.append(matched)
    return found, alone


def _match(group: str, parts: list[tuple[int, Calls]]) -> Matched | None:
    usual = float(np.median([len(c.key) for _, c in parts]))
    kinds = [c.keyed for _, c in parts]
    keyed = max(sorted(set(kinds)), key=kinds.count)
    parts = [(p, c) for p, c in parts if c.keyed == keyed and len(c.key) >= _HALF * usual]
    if len(parts) < 2 or (keyed == "order" and len({len(c.key) for _, c in parts}) > 1):
        return None
    common = parts[0][1].key
    for _, call in parts[1:]:
        common = np.intersect1d(common, call.key, assume_unique=True)
    rows = [np.argsort(c.key)[np.searchsorted(np.sort(c.key), common)] for _, c in parts]
    ops = np.stack([c.op[r] for (_, c), r in zip(parts, rows, strict=True)])
    same = (ops == ops[0]).all(axis=0)
    if not same.any():
        return None
    start, end, size = (np.stack([getattr(c, name)[r][same] for (_, c), r in zip(parts, rows, strict=True)])
                        for name in ("start", "end", "bytes"))  # fmt: skip
    names = {code: name for _, c in parts for code, name in c.ops.items()}
    members = tuple(sorted({m for _, c in parts for m in c.members}))
    who = np.array([p for p, _ in parts], np.int64)
    return Matched(group, who, start, end, ops[0][same], size.max(axis=0), names, members, keyed, all(c.recorded for _, c in parts))  # fmt: skip


def middle(values: I64) -> int:
    """The lower median: an exact integer, so that shifting all values shifts it by as much."""
    return int(np.sort(values)[(len(values) - 1) // 2])


def _nine_in_ten(values: I64) -> int:
    """What nine of ten values do not exceed; of fewer than ten the largest."""
    return int(np.sort(values)[min(len(values) - 1, (9 * len(values)) // 10)])


def clocks(groups: Sequence[Matched], count: int) -> Clocks:
    """Offsets between the ranks' clocks from the ends of collectives, which are nearly simultaneous on all ranks.

    The reference of each connected set of ranks is the rank whose calls last longest; it depends on no clock.
    """
    offset, known = np.zeros(count, np.int64), np.zeros(count, np.bool_)
    usable = [g for g in groups if g.symmetric.any()]
    weight = np.zeros(count, np.int64)
    for g in usable:
        np.add.at(weight, g.who, (g.end - g.start)[:, g.symmetric].sum(axis=1))
    for root in np.argsort(-weight, kind="stable").tolist():
        if known[root] or not any(root in g.who for g in usable):
            continue
        known[root] = True
        _spread(usable, offset, known)
    spreads = [_spread_of(g, offset) for g in usable]
    if not spreads:
        return Clocks(offset, known, None, aligned=False)
    residual = _nine_in_ten(np.concatenate(spreads))
    usual = middle(np.concatenate([(g.end - g.start)[:, g.symmetric].max(axis=0) for g in usable]))
    agree = residual <= max(_ENDS_NS, int(_ENDS_SHARE * usual))
    return Clocks(offset, known, residual, aligned=agree and min(len(s) for s in spreads) >= _CALLS)


def _spread(groups: Sequence[Matched], offset: I64, known: Mask) -> None:
    """From ranks whose offset is known to those that share a group with them, until no more are found."""
    more = True
    while more:
        more = False
        for g in groups:
            have = known[g.who]
            if not have.any() or have.all():
                continue
            base = int(np.flatnonzero(have)[0])
            ends = g.end[:, g.symmetric]
            for row in np.flatnonzero(~have).tolist():
                offset[g.who[row]] = middle(ends[row] - ends[base]) + offset[g.who[base]]
                known[g.who[row]] = True
            more = True


def _spread_of(g: Matched, offset: I64) -> I64:
    ends = g.end[:, g.symmetric] - offset[g.who][:, None]
    spread: I64 = ends.max(axis=0) - ends.min(axis=0)
    return spread


def fits(g: Matched, times: Clocks) -> bool:
    """Whether a group that was only assumed (one stream each) is one: the ends of its calls agree."""
    if g.recorded or int(g.symmetric.sum()) < _CALLS:
        return True
    usual = middle((g.end - g.start)[:, g.symmetric].max(axis=0))
    return _nine_in_ten(_spread_of(g, times.offset)) <= max(_ENDS_NS, int(_ENDS_SHARE * usual))


def divide(g: Matched, times: Clocks) -> None:
    """Fills `wait` and `late`: by arrival where clocks compare, else by the shortest participation.

    Without comparable clocks an operation with a root cannot be told (-1): the root may leave first.
    """
    dur = g.end - g.start
    if times.aligned and bool(times.known[g.who].all()):
        start = g.start - times.offset[g.who][:, None]
        g.late = start.argmax(axis=0)
        g.wait = np.clip(start.max(axis=0) - start, 0, dur)
        return
    g.late = dur.argmin(axis=0)
    g.wait = np.where(np.isin(g.op, _ROOTED), -1, dur - dur.min(axis=0))
