"""Collectives over ranks: each rank's communication kernels by group and order, and who waited for whom in them.

A kernel of a collective starts when its rank arrives and ends when the data is there, on all ranks nearly at once. So the
longest participation is that of the first to arrive and the shortest that of the last: waiting shows without any
clock in common; and the ends give the offset between two ranks' clocks.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

import numpy as np

from knowledge.record import dataclass
from knowledge.text import excerpt
from probes.trace.columns import ABSENT, I64, Cat, Group, Mask, Table, wanted
from probes.trace.groups import combined
from probes.trace.links import Links, enclosing
from probes.trace.reading.reader import Trace
from probes.trace.steps.iterations import communicates, launched_in
from probes.trace.steps.markers import Marks, find, numbers

NEEDS: Final = wanted(
    gpu="correlation stream collective in_elements out_elements dtype group_size process_group group_ranks group_what "
    "source_rank target_rank collective_seq",
    runtime="correlation",
    mark="",
    op="",
    python="",
)

# Bytes of the types that PyTorch and NCCL name (c10/core/ScalarType.h, toString).
_BYTES: Final = {"float": 4, "double": 8, "half": 2, "bfloat16": 2, "byte": 1, "char": 1, "short": 2, "int": 4, "long": 8,
                 "bool": 1, "float8_e4m3fn": 1, "float8_e5m2": 1, "float8_e4m3fnuz": 1, "float8_e5m2fnuz": 1,
                 "complexfloat": 8, "complexdouble": 16}  # fmt: skip
_KERNEL: Final = re.compile(r"[nr]ccl(?:Dev|Symk?Dev)?Kernel_?(?:Func_)?([A-Za-z]+)", re.IGNORECASE)
_BARE: Final = re.compile(r"(?:void\s+)?(?:[A-Za-z_]\w*::)*([A-Za-z_]\w*)")
_SAME: Final = {"allreduce": "all_reduce", "allgather": "all_gather", "allgatherbase": "all_gather", "broadcast": "broadcast",
                "reducescatter": "reduce_scatter", "reducescatterbase": "reduce_scatter", "sendrecv": "send_recv",
                "alltoall": "all_to_all", "alltoallv": "all_to_all", "alltoallbase": "all_to_all", "reduce": "reduce",
                "allgatherintotensorcoalesced": "all_gather", "reducescattertensorcoalesced": "reduce_scatter",
                "allgatherintotensor": "all_gather", "reducescattertensor": "reduce_scatter",
                "allreducecoalesced": "all_reduce", "send": "send_recv", "recv": "send_recv", "gather": "gather",
                "scatter": "scatter"}  # fmt: skip
ROOTED: Final = frozenset({"broadcast", "reduce", "gather", "scatter"})  # the root may leave before the others arrive
POINT: Final = "send_recv"
UNTOLD: Final = "send_recv or all_to_all"  # one kernel does both, and neither arguments nor annotations tell


@dataclass(frozen=True, slots=True)
class Calls:
    """The communication kernels of one rank in one group; arrays of one length, in order of time. Small and picklable."""

    group: str  # how people name it
    members: tuple[int, ...]  # ranks; empty: not recorded
    keyed: str  # what tells one call from the next on all ranks: "seq", "iteration" and order in it, "order"
    key: I64
    start: I64  # ns, the rank's own clock
    end: I64
    op: I64  # CRC-32 of the operation's name: equal on all ranks
    bytes: I64  # of the message, as nccl-tests counts them; -1: not recorded
    ops: Mapping[int, str]
    recorded: bool = True  # the group stands in the trace; False: the stream stands for it


def operation(name: str) -> str:
    """The collective in one spelling: ``all_reduce``; unknown names in lower case."""
    bare = excerpt(name.rsplit(":", 1)[-1], 60).lower()
    return _SAME.get(bare.strip("_").replace("_", ""), bare or "unknown")


def of_kernel(name: str) -> str:
    """The operation that a kernel's name tells: ``ncclDevKernel_AllGather_RING_LL(..)``, ``cross_device_reduce_1stage<..>``."""
    if m := _KERNEL.search(name):
        return operation(m[1])
    m = _BARE.match(name)
    return excerpt(m[1] if m else name, 60)


def calls(trace: Trace, links: Links | None = None) -> tuple[Calls, ...]:
    """The communication kernels of `trace` by process group, or by stream where groups are not recorded."""
    links = links or Links(trace)
    rows = np.flatnonzero(np.equal(trace.gpu.cat, Cat.KERNEL) & communicates(trace))
    if not len(rows):
        return _on_host(trace)
    gpu = trace.gpu.take(rows)
    kinds, which = kinds_of(trace, links, rows)
    ops = [_operation(trace, k) for k in kinds]
    labels, members = _groups(trace, kinds, ops)
    sizes = _sizes(trace, gpu, np.array([op == "all_gather" for op in ops], np.bool_)[which])
    step = _iteration_of(trace, links)
    step = step[rows] if step is not None else None
    codes = np.array([zlib.crc32(op.encode()) for op in ops], np.int64)
    found = []
    for label in sorted(set(labels)):
        mine = np.flatnonzero(np.array([x == label for x in labels], np.bool_)[which])
        if step is not None and not _has_sequence(gpu, mine):
            mine = mine[step[mine] >= 0]
        if len(mine):
            how, key = _keys(gpu, mine, step, point=" -> " in label)
            names = {int(codes[i]): ops[i] for i in np.unique(which[mine]).tolist()}
            found.append(Calls(label, members[label], how, key, gpu.start[mine], gpu.end[mine], codes[which[mine]], sizes[mine],
                               names, not label.startswith("stream ")))  # fmt: skip
    return tuple(found)


def _on_host(trace: Trace) -> tuple[Calls, ...]:
    """Collectives that run on the processor: the marks of Gloo's and MPI's own threads last as long as the calls do."""
    marks = trace.tables.get(Group.MARK)
    if marks is None or not len(marks):
        return ()
    found, steps = [], find(trace)
    for backend in ("gloo", "mpi"):
        names = [n for n in np.unique(marks.name).tolist() if trace.strings[n].startswith(f"{backend}:")]
        table = marks.take(np.isin(marks.name, names) & np.equal(marks.cat, Cat.CPU_MARK))
        step = _step_at(steps, table.start)
        table, step = (table.take(step >= 0), step[step >= 0]) if len(steps) else (table, step)
        if len(table):
            ops = {n: operation(trace.strings[n]) for n in names}
            codes = np.array([zlib.crc32(ops[n].encode()) for n in table.name.tolist()], np.int64)
            how, key = ("iteration", _counted(step)) if len(steps) else ("order", np.arange(len(table)))
            found.append(Calls(f"stream {backend}", (), how, key, table.start, table.end, codes, np.full(len(table), -1, np.int64),
                               {zlib.crc32(op.encode()): op for op in ops.values()}, recorded=False))  # fmt: skip
    return tuple(found)


def _step_at(marks: Marks, at: I64) -> I64:
    """The number of the mark that holds each point of the host's clock; -1 for none."""
    if not len(marks):
        return np.full(len(at), -1, np.int64)
    row = np.searchsorted(marks.start, at, side="right") - 1
    inside = (row >= 0) & (at < marks.end[np.maximum(row, 0)])
    return np.where(inside, np.array(list(numbers(marks)), np.int64)[np.maximum(row, 0)], -1)


class CallKind(NamedTuple):
    """What a call's operation and group are read from; calls share few of them. Text numbers, or -1; ranks or ABSENT."""

    recorded: int
    around: int
    name: int
    group: int
    ranks: int
    stream: int
    source: int
    target: int


def kinds_of(trace: Trace, links: Links, rows: I64) -> tuple[list[CallKind], I64]:
    """The distinct kinds of the calls at device rows `rows`, and which one each call is."""
    gpu, around = trace.gpu, _around(trace, links, rows)
    columns = [around if c == "around" else gpu[c][rows].astype(np.int64) if c in gpu else np.full(len(rows), d, np.int64)
               for c, d in (("collective", -1), ("around", -1), ("name", -1), ("process_group", -1), ("group_ranks", -1),
                            ("stream", -1), ("source_rank", ABSENT), ("target_rank", ABSENT))]  # fmt: skip
    which = combined(*columns)
    _, first = np.unique(which, return_index=True)
    return [CallKind(*row) for row in np.stack([c[first] for c in columns], axis=1).tolist()], which


def _around(trace: Trace, links: Links, rows: I64) -> I64:
    """The name of the ``nccl:...`` annotation around each call's launch; -1 for none."""
    marks = trace.tables.get(Group.MARK)
    launch = links.launch[rows]
    made = np.unique(launch[launch >= 0])
    if marks is None or not len(marks) or not len(made):
        return np.full(len(rows), -1, np.int64)
    of_nccl = [n for n in np.unique(marks.name).tolist() if trace.strings[n].startswith("nccl:")]
    table = marks.take(np.isin(marks.name, of_nccl) & np.equal(marks.cat, Cat.CPU_MARK))
    if not len(table):
        return np.full(len(rows), -1, np.int64)
    at = np.minimum(np.searchsorted(made, np.maximum(launch, 0)), len(made) - 1)
    row = enclosing(trace[Group.RUNTIME].take(made), table)[at]
    return np.where((launch >= 0) & (row >= 0), table.name[np.maximum(row, 0)].astype(np.int64), -1)


def _operation(trace: Trace, kind: CallKind) -> str:
    """By the recorded collective, else the annotation around its launch, else the kernel's name."""
    told = kind.recorded if kind.recorded >= 0 else kind.around
    named = operation(trace.strings[told]) if told >= 0 else ""
    if named and named != "coalesced":
        return named
    kernel = of_kernel(trace.strings[kind.name])
    return UNTOLD if kernel == POINT and not named else kernel


def _sizes(trace: Trace, gpu: Table, gathers: Mask) -> I64:
    """Message bytes as nccl-tests counts them (doc/PERFORMANCE.md): what all ranks gather, what each puts in to the rest."""
    if "in_elements" not in gpu or "dtype" not in gpu:
        return np.full(len(gpu), -1, np.int64)
    kinds = {n: _BYTES.get(trace.strings[n].lower(), 0) for n in np.unique(gpu.ids("dtype")).tolist()}
    numbers, which = np.unique(gpu.ids("dtype"), return_inverse=True)
    width = np.array([kinds[n] for n in numbers.tolist()], np.int64)[which]
    elements = np.where(gathers, gpu.ints("out_elements"), gpu.ints("in_elements"))
    known = (elements >= 0) & (elements < 1 << 50) & (width > 0)
    return np.where(known, np.where(known, elements, 0) * width, -1)


def _iteration_of(trace: Trace, links: Links) -> I64 | None:
    """For each device row the number of the iteration that launched it, -1 for none; None without iterations."""
    marks = find(trace)
    if not len(marks):
        return None
    row = launched_in(trace, marks, links)
    own = np.array([*numbers(marks), -1], np.int64)
    return own[np.where(row >= 0, row, len(marks))]


def ranks_in(text: str) -> tuple[int, ...]:
    """``[0, 1, 8]``; empty when the list is cut off (``[0, 1, ...]``) or none."""
    return tuple(int(n) for n in re.findall(r"\d{1,7}", text)) if re.fullmatch(r"\[[\d,\s]*\]", text) else ()


def _groups(
    trace: Trace, kinds: Sequence[CallKind], ops: Sequence[str]
) -> tuple[list[str], dict[str, tuple[int, ...]]]:
    """The label of each kind's group, and each group's ranks.

    Sends and receives of a recorded peer make a group of two for each direction. Without a recorded group the streams
    of communication stand for it, numbered in their own order: NCCL gives each communicator one.
    """
    texts, labels, members = trace.strings, [], dict[str, tuple[int, ...]]()
    streams = sorted({k.stream for k in kinds}, key=lambda n: _stream(texts[n]))
    for kind, op in zip(kinds, ops, strict=True):
        inside = ranks_in(texts[kind.ranks])
        label = f"{excerpt(texts[kind.group], 60)} {excerpt(texts[kind.ranks], 60)}".strip()
        label = label or f"stream {streams.index(kind.stream)}"
        if op == POINT and len(inside) != 2:
            label, inside = _pair(label, inside, kind.source, kind.target, trace.rank)
        elif op == POINT:
            label = f"{label} -> "
        labels.append(label)
        members[label] = inside
    return labels, members


def _stream(text: str) -> tuple[int, str]:
    return (int(text), "") if text.isdigit() and len(text) < 16 else (1 << 60, text)


def _pair(
    label: str, inside: tuple[int, ...], source: int, target: int, rank: int | None
) -> tuple[str, tuple[int, ...]]:
    """The direction's own label and its two ranks, where sender and receiver are known; they count within the group."""
    peer = target if target >= 0 else source
    if rank is None or peer < 0 or (inside and peer >= len(inside)):
        return f"{label} -> ?", ()
    other = inside[peer] if inside else peer
    pair = (rank, other) if target >= 0 else (other, rank)
    return f"{label} {pair[0]} -> {pair[1]}", pair


def _has_sequence(gpu: Table, rows: I64) -> bool:
    return "collective_seq" in gpu and bool((gpu.ints("collective_seq")[rows] != ABSENT).all())


def _keys(gpu: Table, rows: I64, step: I64 | None, *, point: bool) -> tuple[str, I64]:
    """What identifies each call on all ranks. Calls of one sequence number (coalesced) are told apart by their order."""
    if _has_sequence(gpu, rows) and not point:
        return "seq", _counted(gpu.ints("collective_seq")[rows])
    if step is not None:
        return "iteration", _counted(step[rows])
    return "order", np.arange(len(rows))


def _counted(values: I64) -> I64:
    """`values` with their occurrence in the low 20 bits; rows are in order of time."""
    order = np.argsort(values, kind="stable")
    ordered = values[order]
    first = np.searchsorted(ordered, ordered, side="left")
    count = np.empty(len(values), np.int64)
    count[order] = np.arange(len(values)) - first
    return (values << 20) + np.minimum(count, (1 << 20) - 1)
