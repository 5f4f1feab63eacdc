"""A heat map: functions down, time across, how much of each stretch a function took."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil
from typing import NamedTuple

from assistant.store.profiles import S, Slice

_SHADES = " ░▒▓█"
_ASCII = " .:+#"


class Heat(NamedTuple):
    """Shares of functions in columns of time."""

    since: int  # ns UTC
    width: int  # ns of a column
    samples: tuple[int, ...]  # of each column; 0: nothing was sampled
    rows: tuple[tuple[str, tuple[float | None, ...]], ...]  # function, its share in each column; None: not sampled


def heat(slices: Sequence[Slice], since: int, until: int, columns: int, rows: int, own: bool = False) -> Heat:
    """The `rows` functions that take most of any column. `own`: only where a function is innermost.

    Columns are no finer than the samples' grain.
    """
    grain = max((s.length for s in slices), default=1) * S
    columns = max(1, min(columns, (until - since) // grain))
    width = -(-(until - since) // columns)
    counts: dict[str, list[int]] = {}
    whole = [0] * columns
    for one in slices:
        column = min(columns - 1, max(0, (one.at + one.length * S // 2 - since) // width))
        for stack, count in one.stacks.items():
            whole[column] += count
            for name in {stack[-1]} if own else set(stack[1:]):
                counts.setdefault(name, [0] * columns)[column] += count
    shares = {name: [n / w if w else None for n, w in zip(row, whole, strict=True)] for name, row in counts.items()}
    told = sorted(shares, key=lambda name: (-_worth(shares[name]), name))[:rows]
    return Heat(since, width, tuple(whole), tuple((name, tuple(shares[name])) for name in told))


def _worth(row: Sequence[float | None]) -> float:
    """How much a function says: what it takes at its most, and how much that changes. One that is always there says little."""
    known = [v for v in row if v is not None]
    return max(known) * (0.25 + max(known) - min(known)) if known else 0.0


def cells(row: Sequence[float | None], fine: bool = True) -> str:
    """One character a column; a dot in the middle where nothing was sampled."""
    shades, gap = (_SHADES, "·") if fine else (_ASCII, "-")
    return "".join(gap if v is None else shades[_step(v, len(shades))] for v in row)


def _step(value: float, steps: int) -> int:
    return 0 if value <= 0.02 else min(steps - 1, max(1, ceil(value * (steps - 1) - 1e-9)))
