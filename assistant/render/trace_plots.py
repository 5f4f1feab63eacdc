"""Plots of a few lines for a terminal, in characters that every terminal has (and in plain ASCII where it has not)."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from itertools import pairwise

_EIGHTHS = " ▏▎▍▌▋▊▉█"
_LEVELS = "▁▂▃▄▅▆▇█"
_ASCII_LEVELS = "_.:-=+*#"


def drawable(text: str = "█▁│…") -> bool:
    """Whether stdout can show block characters; a pipe is taken to be read as UTF-8 when it says so."""
    encoding = getattr(sys.stdout, "encoding", None) or "ascii"
    try:
        text.encode(encoding)
    except (UnicodeEncodeError, LookupError):
        return False
    return True


def bar(fraction: float | None, columns: int, fine: bool = True) -> str:
    """A bar of `fraction` (0 to 1) of `columns`, to an eighth of a character; empty for none."""
    if fraction is None or not fraction > 0 or columns < 1:
        return ""
    eighths = max(1, round(min(1.0, fraction) * columns * 8))
    if not fine:
        return "#" * max(1, round(eighths / 8))
    whole, part = divmod(eighths, 8)
    return "█" * whole + (_EIGHTHS[part] if part else "")


def spark(values: Sequence[float | None], top: float | None = None, fine: bool = True) -> str:
    """One character a value, its height the share of `top` (the largest without it); a blank for None."""
    levels = _LEVELS if fine else _ASCII_LEVELS
    known = [v for v in values if v is not None]
    highest = top if top is not None else max(known, default=0.0)
    if highest <= 0:
        return "".join(" " if v is None else levels[0] for v in values)
    out = []
    for v in values:
        step = 0 if v is None else min(len(levels) - 1, max(0, int(v / highest * len(levels))))
        out.append(" " if v is None else levels[step])
    return "".join(out)


def binned(values: Sequence[float], columns: int) -> list[float]:
    """`values` averaged into at most `columns` bins of equal width."""
    n = len(values)
    if n <= columns:
        return list(values)
    edges = [i * n // columns for i in range(columns + 1)]
    return [sum(values[a:b]) / (b - a) for a, b in pairwise(edges)]


def stacked(parts: Sequence[tuple[float, str]], columns: int) -> str:
    """Parts of a whole in one line of `columns`: (share, character). Rounded so that the line is full when the parts are."""
    out, total, done = "", 0.0, 0
    for part, character in parts:
        total += max(0.0, part)
        upto = min(columns, round(total * columns))
        out += character * (upto - done)
        done = max(done, upto)
    return out
