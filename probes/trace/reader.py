"""From a trace file to its tables: ``read(path, wanted)``."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, TypeAlias

import numpy as np

from knowledge.language import Text
from probes.trace.columns import BASE, I64, Array, Group, Strings, Table, Wanted, dtype_of
from probes.trace.decode import Decoder, Meta
from probes.trace.document import Document, blocks

Progress: TypeAlias = Callable[[str, int, int | None], None]  # file, bytes done, bytes in all

LONGEST: Final = 30 * 86_400 * 10**9  # ns: a longer event is a fault of CUPTI's clock (HTA issue 325: 236 years)


@dataclass(slots=True)
class Trace:
    """One rank's trace, as far as it was asked for."""

    path: str
    strings: Strings
    tables: dict[Group, Table]
    keys: dict[str, Any] = field(default_factory=dict)  # beside the events: deviceProperties, distributedInfo, ...
    meta: Meta = field(default_factory=Meta)
    notes: list[Text] = field(default_factory=list)  # what a reader of the numbers must know
    rank: int | None = None
    rank_from: str = ""  # distributedInfo, file name; empty: not known
    world_size: int | None = None
    whole: bool = True  # the file was not cut off
    events: int = 0  # in the file
    kind: str = "kineto"  # or jax, nsys

    def __getitem__(self, group: Group) -> Table:
        """The group's table. KeyError when it was not asked for."""
        return self.tables[group]

    @property
    def gpu(self) -> Table:
        """Kernels, copies and sets."""
        return self.tables[Group.GPU]

    @property
    def device_name(self) -> str:
        """Product name of the first device; empty when the trace does not say."""
        for device in self.devices:
            if name := str(device.get("name") or ""):
                return name
        return ""

    @property
    def devices(self) -> list[dict[str, Any]]:
        """``deviceProperties``."""
        found = self.keys.get("deviceProperties")
        return [d for d in found if isinstance(d, dict)] if isinstance(found, list) else []

    @property
    def base_ns(self) -> int:
        """What to add to a time of the trace for one since 1970 (``baseTimeNanoseconds``); 0 when they are that already."""
        base = self.keys.get("baseTimeNanoseconds")
        return base if isinstance(base, int) else 0


def read(path: str, wanted: Wanted, *, memory: int = 1 << 30, progress: Progress | None = None) -> Trace:
    """Read the groups and argument columns of `wanted` from the trace at `path`.

    `memory` bounds the bytes of columns that are kept in memory; what is more is spilled to a temporary file.
    InputError when the file cannot be opened or holds no events; a damaged or truncated one gives what is whole
    of it, and a note.
    """
    del memory
    document = Document(path)
    strings = Strings()
    decoder = Decoder(wanted, strings)
    parts: dict[Group, list[dict[str, Array]]] = {g: [] for g in wanted}
    try:
        for block in blocks(document):
            for group, columns in decoder.feed(block).items():
                parts[group].append(columns)
            if progress is not None:
                progress(path, document.consumed, document.size)
            if decoder.done:
                break
        for group, columns in decoder.feed(b"", last=True).items():
            parts[group].append(columns)
        if decoder.done:
            document.finish(decoder.rest)
        else:
            document.stop()
    finally:
        document.close()
    trace = Trace(
        path,
        strings,
        {},
        document.meta,
        decoder.meta,
        whole=decoder.done and not document.problem,
        events=decoder.tally.events,
    )
    for group, args in wanted.items():
        trace.tables[group] = _table(trace, group, parts.pop(group), args)
    if not trace.whole:
        trace.notes.append(Text(
            f"the file ends before its end{': ' + document.problem if document.problem else ''}; the {trace.events} whole events of it were read",
            f"文件不完整{'：' + document.problem if document.problem else ''}；已读取其中 {trace.events} 个完整事件"))  # fmt: skip
    if decoder.tally.skipped:
        n = decoder.tally.skipped
        trace.notes.append(Text(f"{n} events could not be understood and were left out", f"{n} 个事件无法解析，已忽略"))
    _rank(trace)
    return trace


def _table(trace: Trace, group: Group, parts: list[dict[str, Array]], args: frozenset[str]) -> Table:
    names = [*BASE, *sorted(args)]
    table = Table({n: np.concatenate([p[n] for p in parts]) if parts else np.empty(0, dtype_of(n)) for n in names})
    dur = table.dur
    impossible = (dur < 0) | (dur > LONGEST)
    if impossible.any():
        n = int(impossible.sum())
        trace.notes.append(Text(f"{n} {group.name.lower()} events have impossible durations and were left out",
                                f"{n} 个 {group.name.lower()} 事件的时长不可能，已忽略"))  # fmt: skip
        table = table.take(~impossible)
    start = table.start
    if len(start) and not ordered(start, table.dur):
        table = table.take(np.lexsort((-table.dur, start)))
    return table


def ordered(start: I64, dur: I64) -> bool:
    """In order of start, and longer first among equals: so that what contains stands before what it contains."""
    later = start[1:] > start[:-1]
    return bool((later | ((start[1:] == start[:-1]) & (dur[1:] <= dur[:-1]))).all())


_IN_NAME: Final = re.compile(r"(?:^|[^a-z])(?:rank|worker|trainer)[-_.]?(\d{1,6})(?!\d)", re.IGNORECASE)


def _rank(trace: Trace) -> None:
    info = trace.keys.get("distributedInfo")
    if isinstance(info, dict):
        rank, world = info.get("rank"), info.get("world_size")
        trace.world_size = world if isinstance(world, int) and not isinstance(world, bool) else None
        if isinstance(rank, int) and not isinstance(rank, bool):
            trace.rank, trace.rank_from = rank, "distributedInfo"
            return
    if found := _IN_NAME.search(Path(trace.path).name):
        trace.rank, trace.rank_from = int(found[1]), "file name"
