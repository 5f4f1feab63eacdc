"""What is kept of a trace: tables of columns, one table for each group of events, and the strings they share.

Times are int64 nanoseconds of the trace's own clock, parsed from the decimal text (a float64 of
microseconds since 1970 resolves a quarter of a microsecond). `ABSENT` and -1 stand for "the event does not
say"; no analysis may take them for a number.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import field
from enum import IntEnum, StrEnum
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from knowledge.record import dataclass

I64: TypeAlias = NDArray[np.int64]
I32: TypeAlias = NDArray[np.int32]
U8: TypeAlias = NDArray[np.uint8]
F64: TypeAlias = NDArray[np.float64]
Mask: TypeAlias = NDArray[np.bool_]
Array: TypeAlias = I64 | I32 | U8 | F64

ABSENT: Final = np.iinfo(np.int64).min  # of an integer column: the event has no such argument
NO_TEXT: Final = -1  # of a text column


class Group(IntEnum):
    """The tables of a trace."""

    GPU = 0  # kernels, copies and sets, as the device ran them
    RUNTIME = 1  # calls of the CUDA or HIP runtime and driver
    OP = 2  # operators of the framework
    PYTHON = 3  # Python functions (with_stack)
    MARK = 4  # annotations: record_function, NVTX ranges, and their GPU side
    MEMORY = 5  # the allocator's [memory] events
    SYNC = 6  # cuda_sync: waits that CUPTI records on the device's side; never busy time
    OTHER = 7


class Cat(IntEnum):
    """Kinds of events within the groups. Old and vendor names of a kind are one kind (`CATEGORIES`)."""

    KERNEL = 0
    MEMCPY = 1
    MEMSET = 2
    RUNTIME = 3
    DRIVER = 4
    OP = 5
    PYTHON = 6
    CPU_MARK = 7
    GPU_MARK = 8
    MEMORY = 9
    SYNC = 10
    OTHER = 11


GROUP_OF: Final[Mapping[Cat, Group]] = {
    Cat.KERNEL: Group.GPU, Cat.MEMCPY: Group.GPU, Cat.MEMSET: Group.GPU, Cat.RUNTIME: Group.RUNTIME,
    Cat.DRIVER: Group.RUNTIME, Cat.OP: Group.OP, Cat.PYTHON: Group.PYTHON, Cat.CPU_MARK: Group.MARK,
    Cat.GPU_MARK: Group.MARK, Cat.MEMORY: Group.MEMORY, Cat.SYNC: Group.SYNC, Cat.OTHER: Group.OTHER,
}  # fmt: skip

# `cat` as libkineto and its forerunners write it (libkineto/include/ActivityType.h; capitals: before 2022).
CATEGORIES: Final[Mapping[str, Cat]] = {
    "kernel": Cat.KERNEL, "Kernel": Cat.KERNEL, "gpu_memcpy": Cat.MEMCPY, "Memcpy": Cat.MEMCPY, "gpu_memset": Cat.MEMSET,
    "Memset": Cat.MEMSET, "cuda_runtime": Cat.RUNTIME, "Runtime": Cat.RUNTIME, "hip_runtime": Cat.RUNTIME, "xpu_runtime": Cat.RUNTIME,
    "privateuse1_runtime": Cat.RUNTIME, "cuda_driver": Cat.DRIVER, "privateuse1_driver": Cat.DRIVER, "xpu_driver": Cat.DRIVER,
    "cpu_op": Cat.OP, "Operator": Cat.OP, "python_function": Cat.PYTHON, "PythonFunction": Cat.PYTHON, "user_annotation": Cat.CPU_MARK,
    "nvtx": Cat.CPU_MARK, "gpu_user_annotation": Cat.GPU_MARK, "cpu_instant_event": Cat.MEMORY, "cuda_sync": Cat.SYNC,
}  # fmt: skip


class ArgKind(StrEnum):
    """How an argument is stored."""

    INT = "int"  # int64, ABSENT
    FLOAT = "float"  # float64, nan
    TEXT = "text"  # int32 id of a string, NO_TEXT; of a value that is no string, its JSON text


@dataclass(frozen=True, slots=True)
class Arg:
    """A column that is filled from ``args``."""

    name: str
    keys: tuple[str, ...]  # spellings of one thing over the years; the first that is present counts
    kind: ArgKind


def _args(*specs: tuple[str, ArgKind, tuple[str, ...]]) -> dict[str, Arg]:
    return {name: Arg(name, keys, kind) for name, kind, keys in specs}


ARGS: Final = _args(
    ("correlation", ArgKind.INT, ("correlation", "correlation_id")),
    ("external", ArgKind.INT, ("External id", "external id")),
    ("device", ArgKind.INT, ("device", "Device Id")),
    ("stream", ArgKind.TEXT, ("stream",)),
    ("bytes", ArgKind.INT, ("bytes", "Bytes")),
    ("grid", ArgKind.TEXT, ("grid",)),
    ("block", ArgKind.TEXT, ("block",)),
    ("registers", ArgKind.INT, ("registers per thread",)),
    ("shared_memory", ArgKind.INT, ("shared memory",)),
    ("occupancy", ArgKind.FLOAT, ("est. achieved occupancy %",)),
    ("dims", ArgKind.TEXT, ("Input Dims", "Input dims")),
    ("types", ArgKind.TEXT, ("Input type",)),
    ("concrete", ArgKind.TEXT, ("Concrete Inputs",)),
    ("sequence", ArgKind.INT, ("Sequence number",)),
    ("forward_thread", ArgKind.INT, ("Fwd thread id",)),
    ("module", ArgKind.TEXT, ("Module Hierarchy",)),
    ("call_stack", ArgKind.TEXT, ("Call stack",)),
    ("python_id", ArgKind.INT, ("Python id",)),
    ("python_parent", ArgKind.INT, ("Python parent id",)),
    ("python_module", ArgKind.INT, ("Python module id",)),
    ("address", ArgKind.INT, ("Addr",)),
    ("allocated", ArgKind.INT, ("Total Allocated",)),
    ("reserved", ArgKind.INT, ("Total Reserved",)),
    ("device_type", ArgKind.INT, ("Device Type",)),
    ("collective", ArgKind.TEXT, ("Collective name",)),
    ("in_elements", ArgKind.INT, ("In msg nelems",)),
    ("out_elements", ArgKind.INT, ("Out msg nelems",)),
    ("dtype", ArgKind.TEXT, ("dtype",)),
    ("group_size", ArgKind.INT, ("Group size",)),
    ("process_group", ArgKind.TEXT, ("Process Group Name",)),
    ("group_ranks", ArgKind.TEXT, ("Process Group Ranks",)),
    ("group_what", ArgKind.TEXT, ("Process Group Description",)),
    ("source_rank", ArgKind.INT, ("Src Rank",)),
    ("target_rank", ArgKind.INT, ("Dst Rank",)),
    ("collective_seq", ArgKind.INT, ("Seq",)),
    ("loss", ArgKind.FLOAT, ("loss",)),
    ("gradnorm", ArgKind.FLOAT, ("gradnorm", "grad_norm")),
    ("hlo_module", ArgKind.TEXT, ("hlo_module",)),
    ("step_num", ArgKind.INT, ("step_num",)),
)  # fmt: skip

BASE: Final[Mapping[str, type[np.generic]]] = {
    "start": np.int64, "dur": np.int64, "name": np.int32, "cat": np.uint8, "pid": np.int32, "tid": np.int32,
}  # fmt: skip
DTYPES: Final[Mapping[ArgKind, type[np.generic]]] = {
    ArgKind.INT: np.int64, ArgKind.FLOAT: np.float64, ArgKind.TEXT: np.int32,
}  # fmt: skip


def dtype_of(column: str) -> type[np.generic]:
    """The numpy type of a column. KeyError for a name that is none."""
    return BASE[column] if column in BASE else DTYPES[ARGS[column].kind]


def constant(value: float, rows: int, dtype: np.dtype[np.generic]) -> NDArray[np.generic]:
    """A column that reads `value` in every row and takes no memory (read-only, of stride 0)."""
    return np.broadcast_to(np.array(value, dtype), (rows,))


def is_constant(column: NDArray[np.generic]) -> bool:
    """Whether it is such a column."""
    return column.strides == (0,)


def thinned(column: Array) -> Array:
    """The column, as a `constant` where all its rows are equal (the process, the device of most traces)."""
    if len(column) < 2 or is_constant(column) or column[0] != column[-1] or not (column == column[0]).all():
        return column
    return constant(column[0], len(column), column.dtype)  # type: ignore[return-value]


def _taken(column: Array, which: Mask | I64, rows: int) -> Array:
    if rows and is_constant(column):
        return constant(column[0], rows, column.dtype)  # type: ignore[return-value]
    return column[which]


Wanted: TypeAlias = Mapping[Group, frozenset[str]]  # group -> argument columns beside the base ones


def wanted(**groups: str) -> dict[Group, frozenset[str]]:
    """``wanted(gpu="stream correlation", op="")``: these groups, with these argument columns."""
    found = {Group[name.upper()]: frozenset(columns.split()) for name, columns in groups.items()}
    for columns in found.values():
        for column in columns:
            ARGS[column]  # KeyError names a column that nobody fills
    return found


def both(*wishes: Wanted) -> dict[Group, frozenset[str]]:
    """All that any of `wishes` names: one reading serves several analyses."""
    groups = {g for wish in wishes for g in wish}
    return {g: frozenset().union(*(wish.get(g, frozenset()) for wish in wishes)) for g in sorted(groups)}


@dataclass(slots=True)
class Strings:
    """The strings of a trace, each once; a text column holds their numbers."""

    texts: list[str] = field(default_factory=list)
    _ids: dict[str, int] = field(default_factory=dict)

    def id(self, text: str) -> int:
        """The number of `text`, a new one if it was never seen."""
        found = self._ids.get(text)
        if found is None:
            found = self._ids[text] = len(self.texts)
            self.texts.append(text)
        return found

    def find(self, text: str) -> int:
        """The number of `text`; -1 when the trace does not hold it."""
        return self._ids.get(text, NO_TEXT)

    def __getitem__(self, number: int) -> str:
        """The text; empty for -1."""
        return self.texts[number] if number >= 0 else ""

    def __len__(self) -> int:
        return len(self.texts)

    def where(self, test: Iterable[bool]) -> Mask:
        """A mask over the numbers, to be indexed with a text column (whose -1 reads the last entry, which is False)."""
        return np.fromiter([*test, False], dtype=np.bool_)


@dataclass(slots=True)
class Table:
    """Events of one group: columns of one length, in order of start, longer first among equals."""

    columns: dict[str, Array]

    @classmethod
    def empty(cls, args: Iterable[str] = ()) -> Table:
        """No events."""
        return cls({name: np.empty(0, dtype_of(name)) for name in [*BASE, *sorted(args)]})

    def __len__(self) -> int:
        return len(self.columns["start"])

    def __getitem__(self, column: str) -> Array:
        return self.columns[column]

    def __contains__(self, column: object) -> bool:
        return column in self.columns

    def __iter__(self) -> Iterator[str]:
        return iter(self.columns)

    def ints(self, column: str) -> I64:
        """A column of 64-bit integers: times, and arguments of kind INT."""
        return self.columns[column]  # type: ignore[return-value]

    def ids(self, column: str) -> I32:
        """A column of string numbers."""
        return self.columns[column]  # type: ignore[return-value]

    @property
    def start(self) -> I64:
        """ns of the trace's clock."""
        return self.columns["start"]  # type: ignore[return-value]

    @property
    def dur(self) -> I64:
        """ns, never negative."""
        return self.columns["dur"]  # type: ignore[return-value]

    @property
    def end(self) -> I64:
        """ns; computed, so keep it where it is used often."""
        return self.start + self.dur

    @property
    def name(self) -> I32:
        """Numbers of the events' names."""
        return self.columns["name"]  # type: ignore[return-value]

    @property
    def cat(self) -> U8:
        """`Cat` of each event."""
        return self.columns["cat"]  # type: ignore[return-value]

    def take(self, which: Mask | I64) -> Table:
        """The rows of a mask or of row numbers, in that order."""
        rows = int(np.count_nonzero(which)) if which.dtype == np.bool_ else len(which)
        return Table({name: _taken(column, which, rows) for name, column in self.columns.items()})

    def between(self, start_ns: int, end_ns: int) -> Table:
        """Events that start in [start_ns, end_ns)."""
        low, high = np.searchsorted(self.start, [start_ns, end_ns], side="left")
        return Table({name: column[low:high] for name, column in self.columns.items()})
