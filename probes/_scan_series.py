"""Lines of which a program writes one each step, of a log of any length: the first, the last, and a sample of those between.

Which lines are in the sample hangs on their numbers, scattered: what comes back each so many lines, as the same rank or a
checkpoint, is neither always nor never in it.
"""

from __future__ import annotations

from collections import deque
from typing import Final

FIRST: Final = 2048  # lines
BETWEEN: Final = 2048
LAST: Final = 1024
_SCATTER: Final = 0x9E3779B1  # 2**32 over the golden ratio: the multiples of it lie evenly


class Series:
    """The lines of one format."""

    def __init__(self) -> None:
        self._first: list[tuple[int, bytes]] = []
        self._between: list[tuple[int, bytes]] = []
        self._last: deque[tuple[int, bytes]] = deque()
        self._one_of = 1

    def add(self, number: int, line: bytes) -> None:
        """The next line, and its number in the file."""
        if len(self._first) < FIRST:
            self._first.append((number, line))
            return
        self._last.append((number, line))
        if len(self._last) > LAST:
            self._sample(self._last.popleft())

    def _sample(self, row: tuple[int, bytes]) -> None:
        if not self._chosen(row):
            return
        self._between.append(row)
        while len(self._between) > BETWEEN:
            self._one_of *= 2
            self._between = [row for row in self._between if self._chosen(row)]

    def _chosen(self, row: tuple[int, bytes]) -> bool:
        return ((row[0] * _SCATTER & 0xFFFFFFFF) >> 12) % self._one_of == 0

    def rows(self) -> list[tuple[int, bytes]]:
        """What is kept, in order."""
        return [*self._first, *self._between, *self._last]
