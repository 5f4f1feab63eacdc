"""Columns that grow past a memory limit: they go to a temporary file and come back as mapped arrays.

The file is deleted as soon as it is open, so that nothing is left behind however the process ends.
"""

from __future__ import annotations

import mmap
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import field
from typing import BinaryIO, Final, TypeAlias, cast

import numpy as np

from knowledge.record import dataclass
from probes.trace.columns import BASE, I64, Array, Group, Mask, Table, constant, dtype_of, is_constant, thinned

Columns: TypeAlias = dict[str, Array]

_SAMPLE: Final = 1 << 18  # starts that are looked at to cut the time into parts of about equal size


@dataclass(slots=True)
class Part:
    """Columns of one length, in memory or in the file."""

    rows: int
    columns: Columns  # in memory; once they were written, only those that are constant
    places: dict[str, int] = field(default_factory=dict)  # where in the file each stands
    low: int = 0  # least and greatest start
    high: int = 0

    def load(self, name: str, file: BinaryIO | None) -> Array:
        """One column."""
        if name in self.columns or file is None:
            return self.columns[name]
        dtype = np.dtype(dtype_of(name))
        file.seek(self.places[name])
        return cast("Array", np.frombuffer(file.read(self.rows * dtype.itemsize), dtype))

    def write(self, file: BinaryIO) -> None:
        """Moves the columns to the end of `file`."""
        start = self.columns["start"]
        self.low, self.high = int(start.min()), int(start.max())
        for name, column in self.columns.items():
            if not is_constant(column):
                self.places[name] = file.seek(0, 2)
                file.write(np.ascontiguousarray(column).data)
        self.columns = {n: c for n, c in self.columns.items() if is_constant(c)}


class Store:
    """Portions of columns by group; `memory` bytes are kept at most, the rest lies in a file."""

    def __init__(self, groups: Iterable[Group], memory: int) -> None:
        self._parts: dict[Group, list[Part]] = {g: [] for g in groups}
        self._memory = memory
        self._kept = 0
        self._file: BinaryIO | None = None

    @property
    def spilled(self) -> bool:
        """Whether anything went to the file."""
        return self._file is not None

    def add(self, group: Group, columns: Columns) -> None:
        """Takes a portion: columns of one length, at least one row. OSError when the disk is full."""
        self._parts[group].append(Part(len(columns["start"]), columns))
        self._kept += sum(c.nbytes for c in columns.values() if not is_constant(c))
        if self._kept > self._memory:
            if self._file is None:
                self._file = _file()
            for parts in self._parts.values():
                for part in parts:
                    if not part.places:
                        part.write(self._file)
            self._kept = 0

    def table(self, group: Group, args: Iterable[str]) -> Table:
        """The group's portions as one table in order (see `Table`); they are given up."""
        parts = self._parts.pop(group)
        names = [*BASE, *sorted(args)]
        each = sum(np.dtype(dtype_of(n)).itemsize for n in names)
        rows = sum(part.rows for part in parts)
        if self._file is not None and rows * each > self._memory // 4:
            return Table(_mapped(parts, self._file, names, rows * each // max(self._memory // 4, 1 << 20) + 1))
        return Table(_joined(parts, self._file, names))


def let_go(table: Table) -> None:
    """Takes what of a table lies in a file out of the process's memory; it is mapped again where it is looked at."""
    for column in table.columns.values():
        mapped = getattr(column, "_mmap", None)  # of a numpy.memmap
        if isinstance(mapped, mmap.mmap) and hasattr(mmap, "MADV_DONTNEED"):
            mapped.madvise(mmap.MADV_DONTNEED)


def ordered(start: I64, dur: I64) -> bool:
    """In order of start, and longer first among equals: so that what contains stands before what it contains."""
    later = start[1:] > start[:-1]
    if later.all():
        return True
    equal = np.flatnonzero(~later)
    return bool(((start[equal + 1] == start[equal]) & (dur[equal + 1] <= dur[equal])).all())


def order_of(start: I64, dur: I64) -> I64 | None:
    """Row numbers in the order of a table; None when the rows stand in it. Equal rows keep their order.

    A trace is a few long ordered runs, which the stable sort merges; only equal starts are looked at again.
    """
    if ordered(start, dur):
        return None
    order = np.argsort(start, kind="stable")
    sorted_start, sorted_dur = start[order], dur[order]
    same = sorted_start[1:] == sorted_start[:-1]
    wrong = same & (sorted_dur[1:] > sorted_dur[:-1])
    if wrong.any():
        tied = np.flatnonzero(np.concatenate([same, [False]]) | np.concatenate([[False], same]))
        rows = order[tied]
        order[tied] = rows[np.lexsort((-dur[rows], start[rows]))]
    return order


def _joined(parts: list[Part], file: BinaryIO | None, names: list[str]) -> Columns:
    """One table in memory: a column at a time, and each portion's column is dropped as soon as it was copied."""
    start, dur = (cast("I64", _column(parts, file, name)) for name in ("start", "dur"))
    order = order_of(start, dur)
    found: Columns = {}
    for name in names:
        whole = start if name == "start" else dur if name == "dur" else thinned(_column(parts, file, name))
        found[name] = whole if order is None or is_constant(whole) else whole[order]
    return found


def _column(parts: list[Part], file: BinaryIO | None, name: str) -> Array:
    taken = []
    for part in parts:
        taken.append(part.load(name, file))
        part.columns.pop(name, None)
    if len(taken) == 1:
        return taken[0]
    if (same := _same(taken)) is not None:
        return same
    return cast("Array", np.concatenate(taken) if taken else np.empty(0, dtype_of(name)))


def _same(taken: list[Array]) -> Array | None:
    """Constant columns of one value as one; None where there is any other."""
    if not taken or not all(is_constant(c) for c in taken) or len({c[:1].tobytes() for c in taken}) > 1:
        return None
    return cast("Array", constant(taken[0][0], sum(len(c) for c in taken), taken[0].dtype))


def _mapped(parts: list[Part], source: BinaryIO, names: list[str], count: int) -> Columns:
    """One table in a file of its own, sorted in `count` parts of the time, one after another."""
    rows = sum(part.rows for part in parts)
    constants = {
        n: c
        for n in names
        if (c := _same([p.columns[n] for p in parts if n in p.columns])) is not None and len(c) == rows
    }
    names = [n for n in names if n not in constants]
    sizes = {n: np.dtype(dtype_of(n)).itemsize for n in names}
    base, end = {}, 0
    for name in names:
        base[name] = end
        end += -(-rows * sizes[name] // 4096) * 4096
    file = _file()
    file.truncate(end)
    done = 0
    for low, high in _spans(parts, source, rows, count):
        picked = _picked(parts, source, low, high)
        start, dur = (cast("I64", _gathered(picked, source, n)) for n in ("start", "dur"))
        order = order_of(start, dur)
        for name in names:
            values = start if name == "start" else dur if name == "dur" else _gathered(picked, source, name)
            file.seek(base[name] + done * sizes[name])
            file.write(np.ascontiguousarray(values if order is None else values[order]).data)
        done += len(start)
    file.flush()
    whole = np.memmap(file, np.uint8, "r")
    found = {n: cast("Array", whole[base[n] : base[n] + rows * sizes[n]].view(dtype_of(n))) for n in names}
    return found | constants


def _picked(parts: list[Part], file: BinaryIO, low: int, high: int) -> list[tuple[Part, Mask]]:
    """The portions that have rows that start in [low, high), and which."""
    found = []
    for part in parts:
        if not part.places or (part.low < high and part.high >= low):
            start = part.load("start", file)
            mask = (start >= low) & (start < high)
            if mask.any():
                found.append((part, mask))
    return found


def _gathered(picked: list[tuple[Part, Mask]], file: BinaryIO, name: str) -> Array:
    if not picked:
        return cast("Array", np.empty(0, dtype_of(name)))
    return cast("Array", np.concatenate([part.load(name, file)[mask] for part, mask in picked]))


def _spans(parts: list[Part], file: BinaryIO, rows: int, count: int) -> Iterator[tuple[int, int]]:
    """Times [low, high) that cut all rows into about `count` parts."""
    step = max(rows // _SAMPLE, 1)
    sample = np.sort(np.concatenate([part.load("start", file)[::step] for part in parts]))
    cuts = np.unique(sample[np.linspace(0, len(sample) - 1, count + 1).astype(np.int64)[1:-1]]).tolist()
    yield from zip([-(2**62), *cuts], [*cuts, 2**62], strict=True)


def _file() -> BinaryIO:
    return cast("BinaryIO", tempfile.TemporaryFile(prefix="gpudiag-"))  # closed with what maps it
