"""From a trace file to its tables: ``read(path, wanted)``."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import field
from pathlib import Path
from typing import Any, Final, TypeAlias

from knowledge.errors import InputError
from knowledge.language import Text
from knowledge.record import dataclass
from probes.trace.columns import Array, Group, Strings, Table, Wanted
from probes.trace.reading import jax
from probes.trace.reading.document import HINT, STDIN, Document, blocks
from probes.trace.reading.lenient import WHITE
from probes.trace.reading.scanner import Reader, decoder
from probes.trace.reading.spill import Store, let_go
from probes.trace.reading.tally import TOO_MANY, Meta, Tally

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

    def let_go(self) -> None:
        """Takes tables that lie in a file out of memory: between analyses, each of which maps what it looks at."""
        for table in self.tables.values():
            let_go(table)

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
    """Read the groups and argument columns of `wanted` from the trace at `path` (``-``: standard input).

    `memory` bounds the bytes of columns that are kept in memory; what is more is spilled to a temporary file.
    InputError when the file cannot be opened or is no trace, or there is no room for what was asked; a damaged or
    truncated one gives what is whole of it, and a note.
    """
    strings = Strings()
    try:
        with closing(Document(path)) as document:
            first = document.open_events() or b""
            foreign = jax.recognised(first)
            asked = jax.NEEDS if foreign else wanted
            reading = _Reading(document, asked, strings, memory, progress)
            reading.run(first)
            if not reading.tally.events and document.bare and first.lstrip(WHITE)[:1] not in (b"", b"{", b"]"):
                raise InputError(f"{path} is no trace: it begins with a list of something else than events", hint=HINT)
        trace = Trace(path, strings, {}, document.meta, reading.meta, events=reading.tally.events)
        trace.whole = reading.whole and not document.problem
        for group, args in asked.items():
            trace.tables[group] = _sound(trace, group, reading.store.table(group, args))
    except OSError as error:
        raise InputError(
            f"{path}: {error.strerror or error}", hint="columns beyond --memory are kept in TMPDIR"
        ) from error
    except MemoryError as error:
        raise InputError(f"{path}: not enough memory for its events", hint="give a smaller --memory limit") from error
    if foreign:
        jax.translate(trace, wanted)
    _notes(trace, reading.tally, document.problem)
    _rank(trace)
    return trace


class _Reading:
    """The events of one document on their way into a store."""

    def __init__(
        self, document: Document, wanted: Wanted, strings: Strings, memory: int, progress: Progress | None
    ) -> None:
        self.store = Store(wanted, memory - memory // 4)
        self.tally = Tally()
        self.meta = Meta()
        self.whole = True  # each list of events was closed
        self._document = document
        self._hold = memory // 4
        self._wanted, self._strings, self._progress = wanted, strings, progress

    def run(self, first: bytes) -> None:
        """Reads the whole document; `first` stands behind the bracket of the list."""
        begun: bytes | None = first
        while begun is not None:
            decoding = self._list(begun)
            self.tally.add(decoding.tally)
            self.meta.process |= decoding.meta.process
            self.meta.thread |= decoding.meta.thread
            self.whole = decoding.done
            begun = self._document.open_events(decoding.rest, 1) if decoding.done else None
        if self.whole:
            self._document.finish()
        else:
            self._document.stop()

    def _list(self, first: bytes) -> Reader:
        """One list of events."""
        document = self._document
        decoding = decoder(self._wanted, self._strings, self._hold)
        for block in blocks(document, first):
            self._keep(decoding.feed(block))
            if self._progress is not None:
                self._progress(document.path, document.consumed, document.size)
            if decoding.done:
                break
        self._keep(decoding.feed(b"", last=True))
        return decoding

    def _keep(self, found: dict[Group, dict[str, Array]]) -> None:
        for group, columns in found.items():
            self.store.add(group, columns)


def _sound(trace: Trace, group: Group, table: Table) -> Table:
    """The rows whose durations can be."""
    dur = table.dur
    impossible = (dur < 0) | (dur > LONGEST)
    if not impossible.any():
        return table
    n = int(impossible.sum())
    trace.notes.append(Text(f"{n} {group.name.lower()} events have impossible durations and were left out",
                            f"{n} 个 {group.name.lower()} 事件的时长不可能，已忽略"))  # fmt: skip
    return table.take(~impossible)


def _notes(trace: Trace, tally: Tally, problem: str) -> None:
    if not trace.whole:
        trace.notes.append(Text(
            f"the file ends before its end{': ' + problem if problem else ''}; the {trace.events} whole events of it were read",
            f"文件不完整{'：' + problem if problem else ''}；已读取其中 {trace.events} 个完整事件"))  # fmt: skip
    if n := tally.skipped:
        trace.notes.append(Text(f"{n} events could not be understood and were left out", f"{n} 个事件无法解析，已忽略"))
    if n := tally.texts_lost:
        trace.notes.append(Text(
            f"the trace holds more distinct texts than are kept; {n} values read {TOO_MANY!r} instead",
            f"轨迹中不同的文本过多，超出保留上限；有 {n} 个值以 {TOO_MANY!r} 代替"))  # fmt: skip
    if not trace.events:
        trace.notes.append(Text("the trace holds no events", "轨迹中没有任何事件"))


_SUFFIXES: Final = (".json", ".json.gz", ".json.zst", ".trace.gz")


def files(paths: Sequence[str]) -> list[str]:
    """The trace files that `paths` mean: files as they are, folders for the traces below them, in natural order.

    InputError for a folder that holds none.
    """
    found: list[str] = []
    for path in paths:
        if path == STDIN or not Path(path).is_dir():
            found.append(path)
            continue
        inside = [str(p) for p in Path(path).rglob("*") if p.name.endswith(_SUFFIXES) and p.is_file() and not _ours(p)]
        if not inside:
            raise InputError(f"{path} holds no trace files", hint=f"their names end in {', '.join(_SUFFIXES)}")
        found += sorted(inside, key=_natural)
    return list(dict.fromkeys(found))


_OWN: Final = re.compile(rb'\s{0,20}\{\s{0,20}"schema"\s{0,4}:\s{0,4}"gpudiag/')


def _ours(path: Path) -> bool:
    """Whether a file is a document of gpudiag's own: a capture lies beside its traces."""
    if not path.name.endswith(".json"):
        return False
    try:
        with path.open("rb") as stream:
            return _OWN.match(stream.read(128)) is not None
    except OSError:
        return False


def _natural(path: str) -> list[tuple[int, str]]:
    """rank2 before rank10."""
    return [(int(part[:18]), "") if part.isdigit() else (-1, part) for part in re.split(r"([0-9]+)", path)]


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
