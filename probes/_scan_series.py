"""Lines of which a program writes one each step, of a log of any length: the first, the last, and a sample of those between.

Which lines are in the sample hangs on their numbers, scattered: what comes back each so many lines, as the same rank or a
checkpoint, is neither always nor never in it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, TypeAlias

FIRST: Final = 2048  # lines
BETWEEN: Final = 2048
LAST: Final = 1024
_SCATTER: Final = 0x9E3779B1  # 2**32 over the golden ratio: the multiples of it lie evenly
Row: TypeAlias = tuple[int, bytes]  # number in the file, line


class Series:
    """The lines of one format."""

    def __init__(self) -> None:
        self._first: list[Row] = []
        self._between: list[Row] = []
        self._last: list[Row] = []
        self._one_of = 1

    def add(self, rows: Sequence[Row]) -> None:
        """The next lines."""
        room = FIRST - len(self._first)
        self._first += rows[:room]
        rows = [*self._last, *rows[room:]]
        self._last = rows[-LAST:]
        self._between += self._sampled(rows[:-LAST])
        while len(self._between) > BETWEEN:
            self._one_of *= 2
            self._between = self._sampled(self._between)

    def _sampled(self, rows: Sequence[Row]) -> list[Row]:
        mask = self._one_of - 1  # of a power of two
        return [row for row in rows if not row[0] * _SCATTER >> 12 & mask]

    def rows(self) -> list[Row]:
        """What is kept, in order."""
        return [*self._first, *self._between, *self._last]
