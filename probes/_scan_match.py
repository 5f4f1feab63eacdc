"""One search for the triggers of all log formats: RE2, or Hyperscan where its module is installed."""

from __future__ import annotations

import importlib
import importlib.util
import threading
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any

import re2

from probes.base import LogFormat

MEMORY = 64 << 20  # for RE2's automaton: the alternation of all triggers never has to start over


@cache
def compiled(triggers: tuple[str, ...]) -> Any:
    """The alternation of `triggers` over bytes. Newlines never match; ``^`` and ``$`` are those of a line."""
    options = re2.Options()
    options.encoding = re2.Options.Encoding.LATIN1
    options.never_capture = True
    options.never_nl = True
    options.log_errors = False
    options.max_mem = MEMORY
    pattern = "|".join(f"(?:{trigger})" for trigger in triggers)
    return re2.compile(f"(?m){pattern}".encode(), options)


class Matcher:
    """Finds the lines in which any trigger of any format matches, and tells whose they are."""

    def __init__(self, formats: Sequence[LogFormat], engine: str = "auto") -> None:
        self.own = [compiled(f.triggers) if f.triggers else None for f in formats]
        triggers = tuple(trigger for f in formats for trigger in f.triggers)
        self.any: Any = compiled(triggers) if triggers else None
        wanted = engine == "hyperscan" or (engine == "auto" and importlib.util.find_spec("hyperscan") is not None)
        self.fast = _Hyperscan(triggers) if wanted and triggers else None

    def matches(self, line: bytes) -> bool:
        """True when some trigger matches in this line or piece of a line."""
        return self.any is not None and self.any.search(line) is not None

    def whose(self, line: bytes) -> tuple[int, ...]:
        """Places, in the sequence of formats, of those with a trigger that matches."""
        if len(self.own) == 1:
            return (0,)
        return tuple(i for i, own in enumerate(self.own) if own is not None and own.search(line) is not None)

    def lines(self, data: bytes, start: int, end: int) -> list[tuple[int, int]]:
        """Start and end, without the newline, of each matching line within ``data[start:end]``."""
        if self.any is None:
            return []
        if self.fast is not None:
            return list(self._confirmed(data, start, end))
        return list(self._searched(data, start, end))

    def _searched(self, data: bytes, start: int, end: int) -> Iterator[tuple[int, int]]:
        position = start
        while position < end and (found := self.any.search(data, position, end)) is not None:
            first, last = found.span()
            head = data.rfind(b"\n", start, first) + 1 or start
            tail = data.find(b"\n", last, end)
            tail = end if tail < 0 else tail
            yield head, tail
            position = tail + 1

    def _confirmed(self, data: bytes, start: int, end: int) -> Iterator[tuple[int, int]]:
        """Lines in which Hyperscan reports the end of a match, checked by RE2: the same answer."""
        assert self.fast is not None
        done = start
        for last in self.fast.ends(data, start, end):
            if last < done:
                continue
            head = data.rfind(b"\n", start, max(start, last - 1)) + 1 or start
            tail = data.find(b"\n", max(start, last - 1), end)
            tail = end if tail < 0 else tail
            done = tail + 1
            if self.any.search(data, head, tail) is not None:
                yield head, tail


class _Hyperscan:
    """A database of all triggers in block mode; a superset of what RE2 finds."""

    def __init__(self, triggers: Sequence[str]) -> None:
        hyperscan = importlib.import_module("hyperscan")
        self.turn = threading.Lock()
        self.database = hyperscan.Database()
        flags = hyperscan.HS_FLAG_MULTILINE
        self.database.compile(
            expressions=[trigger.encode() for trigger in triggers],
            ids=list(range(len(triggers))),
            elements=len(triggers),
            flags=[flags] * len(triggers),
        )

    def ends(self, data: bytes, start: int, end: int) -> list[int]:
        """Offsets in `data` behind each match, ascending."""
        found: list[int] = []

        def note(_id: int, _from: int, to: int, _flags: int, _context: object) -> None:
            found.append(start + to)

        part = data[start:end] if start or end != len(data) else data
        with self.turn:  # a database has one scratch space
            self.database.scan(part, match_event_handler=note)
        found.sort()
        return found
