"""Traces of the JAX (XLA) profiler: the Chrome trace that stands next to each ``.xplane.pb``.

Its events have no category. A device is a process called ``/device:GPU:0``, its streams are threads called
``Stream #13(Compute,MemcpyD2D)``; the threads ``XLA Ops``, ``XLA Modules``, ``Framework Ops``, ``Steps`` show the same
time again and must not count twice (names: xla/tsl/profiler/utils/xplane_schema.cc). A TPU has no streams, there ``XLA Ops`` is
what ran. On ``/host:CPU`` a Python frame is ``$file.py:12 name``, a driver call ``cuLaunchKernel``, and a
``StepTraceAnnotation`` has ``step_num``.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

import numpy as np

from probes.trace.columns import (
    ABSENT,
    ARGS,
    BASE,
    DTYPES,
    NO_TEXT,
    ArgKind,
    Array,
    Cat,
    Group,
    Mask,
    Strings,
    Table,
    Wanted,
    wanted,
)

if TYPE_CHECKING:
    from probes.trace.reading.reader import Trace

NEEDS: Final = wanted(other="correlation hlo_module step_num")
_DEVICE = re.compile(r"/device:([A-Za-z_]+):(\d+)")
_STREAM = re.compile(r"Stream #(\d+)")
_CALL = re.compile(r"(?:cu[A-Z]|cuda[A-Z]|hip[A-Z])\w*")
_HEAD: Final = 1 << 16  # bytes in which a JAX trace names its processes


def recognised(first: bytes) -> bool:
    """Whether the events that begin so are a JAX trace's."""
    head = first[:_HEAD]
    return b'"process_name"' in head and (b'"/host:CPU"' in head or b'"/device:' in head) and b'"cat"' not in head


def translate(trace: Trace, asked: Wanted) -> None:
    """Puts the events into the tables of `asked`; what a table cannot know of them is absent."""
    source = trace.tables.pop(Group.OTHER)
    trace.kind = "jax"
    cat, device, stream = _places(trace, source)
    _name_steps(trace.strings, source, cat)
    for group in asked:
        rows = np.flatnonzero(_of(group, cat))
        columns: dict[str, Array] = {name: source[name][rows] for name in BASE}
        columns["cat"] = cat[rows]
        for name in asked[group]:
            columns[name] = _argument(name, source, rows, device, stream)
        trace.tables[group] = Table(columns)


_GROUPS: Final = {
    Group.GPU: (Cat.KERNEL, Cat.MEMCPY, Cat.MEMSET), Group.RUNTIME: (Cat.RUNTIME, Cat.DRIVER), Group.OP: (Cat.OP,),
    Group.PYTHON: (Cat.PYTHON,), Group.MARK: (Cat.CPU_MARK, Cat.GPU_MARK), Group.OTHER: (Cat.OTHER,),
}  # fmt: skip


def _of(group: Group, cat: Array) -> Mask:
    return np.isin(cat, [int(c) for c in _GROUPS.get(group, ())])


def _places(trace: Trace, source: Table) -> tuple[Array, Array, Array]:
    """Kind, device and stream (a text) of each row, from its process and thread and its name."""
    keys = source.ids("pid").astype(np.int64) << 32 | source.ids("tid")
    threads, row = np.unique(keys, return_inverse=True)
    streams = _with_streams(trace)
    found = [_thread(trace, key >> 32, key & 0xFFFFFFFF, streams) for key in threads.tolist()]
    kind = np.array([f[0] for f in found], np.uint8)[row]
    device = np.array([f[1] for f in found], np.int64)[row]
    stream = np.array([f[2] for f in found], np.int32)[row]
    names, texts = source.name, trace.strings.texts
    ran = kind == Cat.KERNEL
    kind[ran & trace.strings.where(t.startswith(("Memcpy", "memcpy")) for t in texts)[names]] = Cat.MEMCPY
    kind[ran & trace.strings.where(t.startswith(("Memset", "memset")) for t in texts)[names]] = Cat.MEMSET
    host = kind == Cat.OP
    kind[host & trace.strings.where(t.startswith("$") for t in texts)[names]] = Cat.PYTHON
    kind[host & trace.strings.where(_CALL.fullmatch(t) is not None for t in texts)[names]] = Cat.DRIVER
    kind[host & (source.ints("step_num") != ABSENT)] = Cat.CPU_MARK
    return kind, device, stream


def _with_streams(trace: Trace) -> set[str]:
    """Processes that have threads for streams."""
    return {pid for (pid, _), name in trace.meta.thread.items() if name.startswith("Stream #")}


def _thread(trace: Trace, pid: int, tid: int, streams: set[str]) -> tuple[int, int, int]:
    """Kind of the events of a thread, device, stream."""
    process, thread = trace.strings[pid], trace.strings[tid]
    name = trace.meta.process.get(process, {}).get("name", "")
    line = trace.meta.thread.get((process, thread), "")
    device = _DEVICE.search(name)
    if device is None:
        return int(Cat.OP if name.startswith("/host:CPU") else Cat.OTHER), int(ABSENT), NO_TEXT
    number = int(device[2][:9])
    if found := _STREAM.match(line):
        return int(Cat.KERNEL), number, trace.strings.id(found[1])
    if line == "XLA Ops" and process not in streams:
        return int(Cat.KERNEL), number, trace.strings.id(line)
    return int(Cat.GPU_MARK if line in ("Steps", "XLA Modules") else Cat.OTHER), number, NO_TEXT


def _name_steps(strings: Strings, source: Table, cat: Array) -> None:
    """``train`` with step_num 3 becomes ``train#3``, the way other profilers number their steps."""
    rows = np.flatnonzero(cat == Cat.CPU_MARK)
    if len(rows):
        numbers = source.ints("step_num")[rows].tolist()
        names = source.name[rows].tolist()
        source.columns["name"] = source.name.copy()
        source.name[rows] = [strings.id(f"{strings[n]}#{step}") for n, step in zip(names, numbers, strict=True)]


def _argument(name: str, source: Table, rows: Array, device: Array, stream: Array) -> Array:
    if name == "device":
        return device[rows]
    if name == "stream":
        return stream[rows]
    if name in ("module", "hlo_module"):
        return source["hlo_module"][rows]
    if name in source:
        return source[name][rows]
    kind = ARGS[name].kind
    empty = {ArgKind.INT: ABSENT, ArgKind.TEXT: NO_TEXT, ArgKind.FLOAT: np.nan}[kind]
    return np.full(len(rows), empty, DTYPES[kind])
