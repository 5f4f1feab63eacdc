"""One search for the triggers of all log formats: RE2, or Hyperscan where its module is installed and it pays."""

from __future__ import annotations

import importlib
import importlib.util
import threading
from array import array
from collections.abc import Iterator, Sequence
from functools import cache, cached_property
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import re2

from knowledge import compiled as compiled_data
from probes._scan_fold import lines_at
from probes.base import LogFormat

MUCH = 24 << 20  # bytes: making Hyperscan's database takes as long as RE2 takes longer for these
SOME = 4 << 20  # bytes: the same of loading it, and the database that was kept
FEW = (
    16 << 10
)  # bytes: to ask for each line whose it is, as has to be done anyway, takes less than to compile one more search
MATCH = 2048  # bytes: as long as RE2 takes longer for a line that matches
MEMORY = 64 << 20  # for RE2's automaton: the alternation of all triggers never has to start over


@cache
def compiled(triggers: tuple[str, ...]) -> Any:
    """The alternation of `triggers` over bytes. Newlines never match; ``^`` and ``$`` are those of a line."""
    pattern = "|".join(f"(?:{trigger})" for trigger in triggers)
    return re2.compile(f"(?m){pattern}".encode(), _latin())


def _latin() -> Any:
    options = re2.Options()
    options.encoding = re2.Options.Encoding.LATIN1
    options.never_capture = True
    options.never_nl = True
    options.log_errors = False
    options.max_mem = MEMORY
    return options


@cache
def _every(triggers: tuple[tuple[str, ...], ...]) -> Any:
    """The triggers of all formats, each apart: one search tells whose a line is."""
    found = re2.Set.SearchSet(_latin())
    for own in triggers:
        found.Add(f"(?m){'|'.join(f'(?:{t})' for t in own)}".encode())
    found.Compile()
    return found


class Matched(NamedTuple):
    """The lines of a region in which a trigger matches."""

    places: array[int]  # start and end, without the newline, of each, one behind the other
    triggers: frozenset[int] | None = (
        None  # those that match in some line, and others of their formats; None: nobody looked
    )


class Matcher:
    """Finds the lines in which any trigger of any format matches, and tells whose they are."""

    def __init__(self, formats: Sequence[LogFormat], engine: str = "auto") -> None:
        self.places = [i for i, f in enumerate(formats) if f.triggers]
        self.own: Any = _every(tuple(f.triggers for f in formats if f.triggers))
        self.triggers = tuple(trigger for f in formats for trigger in f.triggers)
        self.homes = [own for own, i in enumerate(self.places) for _ in formats[i].triggers]  # of each trigger
        self.fast: _Hyperscan | None = None
        self.turn = threading.Lock()
        self.searched = 0  # bytes, by RE2
        self.only = engine == "re2" or not self.triggers
        if engine == "hyperscan":
            self.expect(MUCH)

    @cached_property
    def any(self) -> Any:
        """The search for all of them at once."""
        return compiled(self.triggers)

    def expect(self, size: int) -> None:
        """So many bytes are to be searched yet: with those that were, a search that takes a while to set up may pay."""
        with self.turn:
            size += self.searched
            if self.only or self.fast is not None or size < SOME:
                return
            self.only = importlib.util.find_spec("hyperscan") is None
            if not self.only and (size >= MUCH or _Hyperscan.is_kept(self.triggers)):
                self.fast = _Hyperscan(self.triggers)

    def matches(self, line: bytes) -> bool:
        """True when some trigger matches in this line or piece of a line."""
        return bool(self.triggers) and self.any.search(line) is not None

    def whose(self, line: bytes) -> tuple[int, ...]:
        """Places, in the sequence of formats, of those with a trigger that matches."""
        return tuple(self.places[i] for i in sorted(self.own.Match(line)))

    def lines(self, data: bytes, start: int, end: int) -> Matched:
        """Each matching line within ``data[start:end]``.

        Hyperscan may name a line too many: `whose` says that nobody wants it.
        """
        if not self.triggers:
            return Matched(array("q"))
        if self.fast is not None:
            ends, triggers = self.fast.ends(data, start, end)
            return Matched(lines_at(data, start, end, ends), triggers)
        if self.searched + end - start <= FEW:
            matched = self._few(data, start, end)
        else:
            matched = Matched(array("q", chain.from_iterable(searched(self.any, data, start, end))))
        with self.turn:
            self.searched += end - start + MATCH * len(matched.places) // 2
        self.expect(0)
        return matched

    def _few(self, data: bytes, start: int, end: int) -> Matched:
        """`lines`, of few."""
        places, own = array("q"), set[int]()
        while start < end:
            tail = data.find(b"\n", start, end)
            tail = end if tail < 0 else tail
            if found := self.own.Match(data[start:tail]):
                places.extend((start, tail))
                own.update(found)
            start = tail + 1
        return Matched(places, frozenset(n for n, home in enumerate(self.homes) if home in own))


def searched(pattern: Any, data: bytes, start: int, end: int) -> Iterator[tuple[int, int]]:
    """Start and end, without the newline, of each line within ``data[start:end]`` in which `pattern` matches."""
    position = start
    while position < end and (found := pattern.search(data, position, end)) is not None:
        first, last = found.span()
        head = data.rfind(b"\n", start, first) + 1 or start
        tail = data.find(b"\n", last, end)
        tail = end if tail < 0 else tail
        yield head, tail
        position = tail + 1


def _place(triggers: Sequence[str]) -> Path | None:
    """Where their database is kept. Hyperscan refuses that of another version or processor, and what is damaged."""
    return compiled_data.kept("triggers", "\n".join(triggers).encode())


class _Hyperscan:
    """A database of all triggers in block mode; a superset of what RE2 finds."""

    def __init__(self, triggers: Sequence[str]) -> None:
        self.library = importlib.import_module("hyperscan")
        self.turn = threading.Lock()
        self.database = self._kept(triggers) or self._made(triggers)

    @staticmethod
    def is_kept(triggers: Sequence[str]) -> bool:
        """Whether a database of these was made before."""
        path = _place(triggers)
        return path is not None and path.is_file()

    def _kept(self, triggers: Sequence[str]) -> Any:
        """The database that was made before; None when there is none, or none that this version and this processor take."""
        path = _place(triggers)
        try:
            found = self.library.loadb(path.read_bytes(), self.library.HS_MODE_BLOCK) if path is not None else None
        except (OSError, self.library.error):
            return None
        if found is not None:
            found.scratch = self.library.Scratch(found)
        return found

    def _made(self, triggers: Sequence[str]) -> Any:
        """A new database, which is kept."""
        made = self.library.Database()
        flags = self.library.HS_FLAG_MULTILINE
        made.compile(
            expressions=[trigger.encode() for trigger in triggers],
            ids=list(range(len(triggers))),
            elements=len(triggers),
            flags=[flags] * len(triggers),
        )
        if (path := _place(triggers)) is not None:
            compiled_data.keep(path, self.library.dumpb(made))
        return made

    def ends(self, data: bytes, start: int, end: int) -> tuple[list[int], frozenset[int]]:
        """Offsets in `data` behind each match, ascending, and the triggers that match."""
        found: list[int] = []
        triggers: set[int] = set()

        def note(trigger: int, _from: int, to: int, _flags: int, _context: object) -> None:
            found.append(start + to)
            triggers.add(trigger)

        with self.turn:  # a database has one scratch space
            self.database.scan(memoryview(data)[start:end], match_event_handler=note)
        found.sort()
        return found, frozenset(triggers)
