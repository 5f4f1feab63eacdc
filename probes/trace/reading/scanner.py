"""The compiled scanner (`scanner.c`) behind the interface of `decode.Decoder`, and which of both reads.

The library is built with the package where a C compiler is (`hatch_build.py`). It carries the hash of the source
it was built from: an older one is not used. Without it msgspec does the work, about ten times slower.
"""

from __future__ import annotations

import ctypes
import os
import weakref
from collections.abc import Mapping, Sequence
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any, Final, TypeAlias

import numpy as np

from probes import native
from probes.trace.columns import (
    ABSENT,
    ARGS,
    BASE,
    CATEGORIES,
    GROUP_OF,
    NO_TEXT,
    ArgKind,
    Array,
    Cat,
    Group,
    Strings,
    Wanted,
    constant,
    is_constant,
)
from probes.trace.columns import dtype_of as _dtype
from probes.trace.reading.decode import Decoder
from probes.trace.reading.tally import LABELS, LIMITS, TEXT_COST, TOO_MANY, Limits, Meta, Tally, take_metadata
from probes.trace.reading.values import text_of

SOURCE: Final = Path(__file__).with_name("scanner.c")
LIBRARY: Final = Path(__file__).with_name("_scanner.so")
VARIABLE: Final = "GPUDIAG_TRACE_SCANNER"  # python: never the compiled one
_KINDS: Final = {ArgKind.INT: 0, ArgKind.FLOAT: 1, ArgKind.TEXT: 2}
_LOST: Final = -2
_MISSING: Final = {"i": ABSENT, "f": float("nan")}  # by numpy's kinds; of texts NO_TEXT
Values: TypeAlias = np.ndarray[tuple[int], np.dtype[np.generic]]

_pointer, _size, _int = ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int
_SIGNATURES: Final[Mapping[str, tuple[Any, Sequence[Any]]]] = {
    "scanner_source": (ctypes.c_char_p, []),
    "scanner_new": (_pointer, [ctypes.c_uint64, _size, _int, _size, _size, _size]),
    "scanner_free": (None, [_pointer]),
    "scanner_kinds": (None, [_pointer, _int, _int, _int]),
    "scanner_category": (_int, [_pointer, ctypes.c_char_p, _size, _int, _int]),
    "scanner_want": (None, [_pointer, _int]),
    "scanner_column": (_int, [_pointer, _int, _int]),
    "scanner_key": (_int, [_pointer, _int, ctypes.c_char_p, _size]),
    "scanner_feed": (ctypes.c_int64, [_pointer, _pointer, _size, _int]),
    "scanner_done": (_int, [_pointer]),
    "scanner_rest": (_pointer, [_pointer, ctypes.POINTER(_size)]),
    "scanner_counts": (None, [_pointer, ctypes.POINTER(ctypes.c_int64)]),
    "scanner_labels": (_size, [_pointer]),
    "scanner_label": (_pointer, [_pointer, _size, ctypes.POINTER(_size), ctypes.POINTER(ctypes.c_int64)]),
    "scanner_strings": (_size, [_pointer, ctypes.POINTER(_pointer), ctypes.POINTER(_pointer)]),
    "scanner_metas": (_size, [_pointer, ctypes.POINTER(_pointer), ctypes.POINTER(_pointer)]),
    "scanner_rows": (_size, [_pointer, _int]),
    "scanner_bytes": (_size, [_pointer]),
    "scanner_release": (_pointer, [_pointer, _int, _int]),
    "scanner_drop": (None, [_pointer]),
    "scanner_clear": (None, [_pointer]),
}  # fmt: skip


@cache
def library(path: Path = LIBRARY) -> ctypes.CDLL | None:
    """The compiled scanner; None when it is not there, does not load, or was built from another source."""
    return native.loaded(path, SOURCE, _SIGNATURES)


class Scanner:
    """Columns of the wanted groups, from text in portions; as `Decoder`, which it equals on every input.

    Events are kept back until they take `hold` bytes: so that their columns need no putting together.
    """

    def __init__(
        self, wanted: Wanted, strings: Strings, lib: ctypes.CDLL, hold: int = 0, limits: Limits = LIMITS
    ) -> None:
        self.tally = Tally()
        self.meta = Meta()
        self.done = False
        self.rest = b""
        self._wanted = wanted
        self._strings = strings
        self._lib = lib
        self._hold = hold
        self._ids = np.empty(0, np.int32)  # number of a text in the scanner -> in `strings`; then those of _LOST and -1
        self._same = True  # they are equal so far
        seed = int.from_bytes(os.urandom(8), "little")
        self._at: int | None = lib.scanner_new(seed, *limits, TEXT_COST, LABELS)
        if self._at is None:
            raise MemoryError
        self._set_up()

    def __del__(self) -> None:
        if getattr(self, "_at", None) is not None:
            self._lib.scanner_free(self._at)
            self._at = None

    def _set_up(self) -> None:
        lib, at = self._lib, self._at
        lib.scanner_kinds(at, int(GROUP_OF[Cat.OTHER]), int(Cat.OTHER), int(Cat.MEMORY))
        fits = True
        for label, cat in CATEGORIES.items():
            raw = b'"' + label.encode() + b'"'
            fits &= bool(lib.scanner_category(at, raw, len(raw), int(GROUP_OF[cat]), int(cat)))
        for group, columns in self._wanted.items():
            lib.scanner_want(at, int(group))
            for arg in (ARGS[column] for column in sorted(columns)):
                fits &= bool(lib.scanner_column(at, int(group), _KINDS[arg.kind]))
                for key in arg.keys:
                    fits &= bool(lib.scanner_key(at, int(group), key.encode(), len(key.encode())))
        if not fits:
            raise ValueError("more categories or arguments than scanner.c has room for")

    def feed(self, data: bytes | memoryview, last: bool = False) -> dict[Group, dict[str, Array]]:
        """The events that are complete in what was fed so far. After `last` nothing is kept back.

        MemoryError when there is none for them.
        """
        if self.done:
            return {}
        lib, at = self._lib, self._at
        used = lib.scanner_feed(at, _address(data), len(data), last)
        if used < 0:
            raise MemoryError
        if lib.scanner_done(at):
            size = _size()
            text = lib.scanner_rest(at, ctypes.byref(size))
            self.done, self.rest = True, ctypes.string_at(text, size.value) + bytes(data[used:])
        found: dict[Group, dict[str, Array]] = {}
        if last or self.done or lib.scanner_bytes(at) >= self._hold:
            self._count()
            self._names()
            found = {g: columns for g in self._wanted if (columns := self._columns(g))}
        self._metadata()
        lib.scanner_clear(at)
        return found

    def _count(self) -> None:
        counts = (ctypes.c_int64 * 5)()
        self._lib.scanner_counts(self._at, counts)
        tally = self.tally
        tally.events, tally.flows, tally.skipped, tally.texts_lost, more = counts
        tally.ignored.clear()
        size, hits = _size(), ctypes.c_int64()
        for i in range(self._lib.scanner_labels(self._at)):
            label = self._lib.scanner_label(self._at, i, ctypes.byref(size), ctypes.byref(hits))
            text = text_of(ctypes.string_at(label, size.value))
            tally.ignored[text] = tally.ignored.get(text, 0) + hits.value
        if more:
            tally.ignored[TOO_MANY] = tally.ignored.get(TOO_MANY, 0) + more

    def _names(self) -> None:
        """Takes over the texts that are new."""
        arena, offsets = _pointer(), _pointer()
        count = self._lib.scanner_strings(self._at, ctypes.byref(arena), ctypes.byref(offsets))
        known = max(len(self._ids) - 2, 0)
        lost = self._strings.id(TOO_MANY) if self.tally.texts_lost else NO_TEXT
        if count == known and len(self._ids) and self._ids[_LOST] == lost:
            return
        ends = _array(offsets.value, count + 1, np.uint64)[known:].tolist()
        text = ctypes.string_at((arena.value or 0) + ends[0], ends[-1] - ends[0])
        fresh = [self._strings.id(text_of(text[a - ends[0] : b - ends[0]])) for a, b in pairwise(ends)]
        self._ids = np.concatenate([self._ids[:known], np.array([*fresh, lost, NO_TEXT], np.int32)])
        self._same = self._same and fresh == list(range(known, known + len(fresh)))

    def _metadata(self) -> None:
        text, ends = _pointer(), _pointer()
        count = self._lib.scanner_metas(self._at, ctypes.byref(text), ctypes.byref(ends))
        begin = 0
        for end in [] if self.meta.full else _array(ends.value, count, np.uint64).tolist():
            take_metadata(self.meta, ctypes.string_at((text.value or 0) + begin, end - begin))
            begin = end

    def _columns(self, group: Group) -> dict[str, Array]:
        rows = self._lib.scanner_rows(self._at, int(group))
        found: dict[str, Array] = {}
        if rows:
            for i, name in enumerate([*BASE, *sorted(self._wanted[group])]):
                dtype = _dtype(name)
                values = self._released(int(group), i, rows, np.dtype(dtype))
                if dtype is np.int32 and not is_constant(values) and (not self._same or self.tally.texts_lost):
                    values = self._ids[values]
                found[name] = values  # type: ignore[assignment]
        return found

    def _released(self, group: int, column: int, rows: int, dtype: np.dtype[np.generic]) -> Values:
        """A column whose memory is the scanner's no more; it is freed with the last array that shows it."""
        at = self._lib.scanner_release(self._at, group, column)
        if at is None:
            return constant(NO_TEXT if dtype == np.int32 else _MISSING[dtype.kind], rows, dtype)
        memory = (ctypes.c_char * (rows * dtype.itemsize)).from_address(at)
        weakref.finalize(memory, self._lib.scanner_drop, at).atexit = False
        return np.frombuffer(memoryview(memory), dtype)


def _address(data: bytes | memoryview) -> Any:
    """What ctypes takes for a pointer to `data`, of which nothing is copied."""
    return data if isinstance(data, bytes) else (ctypes.c_char * len(data)).from_buffer(data)


def _array(at: int | None, count: int, dtype: type[np.generic]) -> Values:
    """A copy of `count` values at an address."""
    return np.frombuffer(ctypes.string_at(at, count * np.dtype(dtype).itemsize) if at and count else b"", dtype)


Reader: TypeAlias = Decoder | Scanner


def decoder(wanted: Wanted, strings: Strings, hold: int = 0) -> Reader:
    """The fastest decoder that is there. `hold`: as of `Scanner`."""
    lib = None if os.environ.get(VARIABLE) == "python" else library()
    return Decoder(wanted, strings) if lib is None else Scanner(wanted, strings, lib, hold)
