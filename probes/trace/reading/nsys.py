"""Nsight Systems exports as a `Trace`: ``nsys export --type sqlite``, and ``nsys stats --report cuda_gpu_trace --format csv``.

Tables and columns: Nsight Systems, SQLite Export Schema Reference (tables are created lazily and columns differ
between versions, so each is taken if it is there). Times are integer nanoseconds since the session began. NVTX
ranges become annotations, so that iterations are found in them; there are no operators, shapes or Python frames.
The file may be hostile: it is opened read-only, only real tables are read, and none of its own SQL is run.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Callable, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

import numpy as np

from knowledge.errors import InputError
from knowledge.language import Text
from probes.trace.columns import ABSENT, I64, NO_TEXT, Array, Cat, Group, Strings, Wanted
from probes.trace.reading.nsys_names import call_name, copy_name, is_driver, possible, table
from probes.trace.reading.reader import LONGEST, Trace

MAGIC: Final = b"SQLite format 3\x00"
_ROWS: Final = 1 << 16  # fetched together
_MOST: Final = 200_000_000  # rows of a table
_TEXT: Final = 1 << 16  # characters of a name that are kept
_CELL: Final = 16 << 20  # bytes of a cell: more is no name
_RANGES: Final = (59, 60, 70, 71)  # NVTX_EVENTS.eventType: push/pop and start/end ranges, from programs and text files
_RANK: Final = re.compile(r"(?:^|[^a-z])(?:rank|worker|trainer)[-_.]?(\d{1,6})(?!\d)", re.IGNORECASE)

_KERNEL, _COPY, _SET = (f"CUPTI_ACTIVITY_KIND_{x}" for x in ("KERNEL", "MEMCPY", "MEMSET"))
_CALL, _SYNC, _GRAPH = (f"CUPTI_ACTIVITY_KIND_{x}" for x in ("RUNTIME", "SYNCHRONIZATION", "GRAPH_TRACE"))
_NVTX: Final = "NVTX_EVENTS"
_COMMON: Final = ("start", "end", "deviceId", "streamId", "correlationId", "globalPid")
_READ: Final[Mapping[str, tuple[str, ...]]] = {
    _KERNEL: (*_COMMON, "demangledName", "shortName", "mangledName", "registersPerThread", "staticSharedMemory",
              "dynamicSharedMemory", "gridX", "gridY", "gridZ", "blockX", "blockY", "blockZ"),
    _COPY: (*_COMMON, "bytes", "copyKind", "srcKind", "dstKind"),
    _SET: (*_COMMON, "bytes"),
    _GRAPH: (*_COMMON, "graphId"),
    _SYNC: (*_COMMON, "syncType"),
    _CALL: ("start", "end", "correlationId", "globalTid", "nameId"),
    _NVTX: ("start", "end", "globalTid", "textId", "eventType"),
}  # fmt: skip
_GROUPS: Final = {_KERNEL: Group.GPU, _COPY: Group.GPU, _SET: Group.GPU, _GRAPH: Group.GPU, _SYNC: Group.SYNC,
                  _CALL: Group.RUNTIME, _NVTX: Group.MARK}  # fmt: skip
_CATS: Final = {_KERNEL: Cat.KERNEL, _COPY: Cat.MEMCPY, _SET: Cat.MEMSET, _GRAPH: Cat.KERNEL, _SYNC: Cat.SYNC,
                _CALL: Cat.RUNTIME, _NVTX: Cat.CPU_MARK}  # fmt: skip
_FIXED: Final = {_SET: "Memset (Device)", _GRAPH: "CUDA graph", _SYNC: "CUDA synchronization"}
_NAMES: Final = ("demangledName", "shortName", "mangledName", "nameId", "textId")  # numbers of StringIds
# columns that are read only for the argument that they become
_FOR: Final = {"registersPerThread": "registers", "staticSharedMemory": "shared_memory", "dynamicSharedMemory": "shared_memory",
               "bytes": "bytes"} | {f"{what}{axis}": what for what in ("grid", "block") for axis in "XYZ"}  # fmt: skip
_MISSING: Final = np.array(ABSENT, np.int64)
_ABOUT: Final = ("StringIds", "TARGET_INFO_GPU", "TARGET_INFO_SESSION_START_TIME")
_KNOWN: Final = frozenset({*_GROUPS, *_ABOUT})


def looks_like(head: bytes) -> bool:
    """Whether a file that begins with `head` is a SQLite database; `read_sqlite` tells whether it is nsys's."""
    return head.startswith(MAGIC)


def read_sqlite(path: str, wanted: Wanted) -> Trace:
    """The groups and columns of `wanted` out of an export; columns that nsys does not record are ABSENT.

    Correlation ids are made unique over processes. InputError when the file cannot be opened, is no database, or
    holds none of nsys's tables.
    """
    try:
        with closing(_open(path)) as db:
            return _Export(db, path, wanted).read()
    except (sqlite3.Error, OverflowError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: {error}", hint="nsys export --type sqlite report.nsys-rep") from error


def _open(path: str) -> sqlite3.Connection:
    if not Path(path).is_file():
        raise InputError(f"{path}: No such file")
    db = sqlite3.connect(f"file:{quote(str(Path(path).absolute()))}?mode=ro&immutable=1", uri=True)
    db.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _CELL)
    db.text_factory = lambda raw: raw[: 4 * _TEXT].decode("utf-8", "replace")[:_TEXT]
    db.execute("PRAGMA trusted_schema = OFF")
    db.execute("PRAGMA cell_size_check = ON")
    return db


_WHOLE: Final = 'CASE typeof("{0}") WHEN \'integer\' THEN "{0}" WHEN \'real\' THEN CAST("{0}" AS INTEGER) ELSE ?1 END'
_WRITTEN: Final = 'CASE WHEN typeof("text") = \'text\' THEN gpudiag_number(CAST("text" AS BLOB)) ELSE {} END'


def _pid(serialized: I64) -> I64:
    """The process out of a globalPid or globalTid (export reference: Serialized process and thread identifiers)."""
    return np.where(serialized == ABSENT, ABSENT, serialized >> 24 & 0xFFFFFF)


class _Export:
    """One database on its way to a trace."""

    def __init__(self, db: sqlite3.Connection, path: str, wanted: Wanted) -> None:
        self.db, self.wanted = db, wanted
        self.strings = Strings()
        self.trace = Trace(path, self.strings, {}, kind="nsys")
        # neither views nor virtual tables: they would run what the file says
        self.tables = {str(name): {str(c[1]) for c in db.execute(f'PRAGMA table_info("{name}")')}
                       for name, sql in db.execute("SELECT name, sql FROM sqlite_master WHERE type = 'table'").fetchall()
                       if isinstance(name, str) and name in _KNOWN and "virtual" not in str(sql)[:40].lower()}  # fmt: skip
        self.names: dict[int, int] = {}  # StringIds.id -> number in `strings`
        self.processes = np.empty(0, np.int64)
        db.create_function("gpudiag_number", 1, self.number_of)

    def read(self) -> Trace:
        if not any(name in self.tables for name in _GROUPS):
            raise InputError(f"{self.trace.path} is a database without tables of Nsight Systems",
                             hint="nsys export --type sqlite report.nsys-rep")  # fmt: skip
        rows = {name: self.numbers(name) for name, group in _GROUPS.items() if group in self.wanted}
        self.name_strings(rows)
        self.processes = self.pids(rows)
        parts: dict[Group, list[dict[str, Array]]] = {group: [] for group in self.wanted}
        for name, found in rows.items():
            if len(found["start"]):
                parts[_GROUPS[name]].append(self.events(name, found))
        for group, args in self.wanted.items():
            self.trace.tables[group] = table(parts[group], args)
        self.trace.events = sum(len(t) for t in self.trace.tables.values())
        self.about()
        return self.trace

    def pids(self, rows: Mapping[str, Mapping[str, I64]]) -> I64:
        """The processes that called CUDA; none where it is not recorded which process a kernel is of."""
        said = [
            found[c]
            for found in rows.values()
            for c in ("globalPid", "globalTid")
            if c in found and "correlationId" in found
        ]
        every = np.concatenate(said) if said else np.empty(0, np.int64)
        return np.unique(_pid(every)) if not (every == ABSENT).any() else np.empty(0, np.int64)

    def numbers(self, name: str) -> dict[str, I64]:
        """The integer columns of a table that it has, ABSENT where a cell holds none; rows without a length left out."""
        args = self.wanted[_GROUPS[name]]
        columns = [c for c in _READ[name] if c in self.tables.get(name, ()) and _FOR.get(c, c) in {c, *args}]
        if not {"start", "end"} <= set(columns):
            return {c: np.empty(0, np.int64) for c in _READ[name]}
        written = name == _NVTX and "text" in self.tables[name]
        columns += ["textId"] if written and "textId" not in columns else []
        known = self.tables.get(name, set())
        cells = ", ".join(
            _WRITTEN.format(_WHOLE.format(c) if c in known else "?1") if written and c == "textId" else _WHOLE.format(c)
            for c in columns
        )
        query = self.db.execute(f'SELECT {cells} FROM "{name}" LIMIT {_MOST}', (ABSENT,))
        batches = [np.array(batch, np.int64) for batch in iter(lambda: query.fetchmany(_ROWS), [])]
        grid = np.concatenate(batches) if batches else np.empty((0, len(columns)), np.int64)
        found = {c: grid[:, i] for i, c in enumerate(columns)}
        return self.sound(name, {c: found.get(c, np.broadcast_to(_MISSING, len(grid))) for c in _READ[name]})

    def sound(self, name: str, found: dict[str, I64]) -> dict[str, I64]:
        keep = possible(found["start"], found["end"], LONGEST)
        if name == _NVTX:  # marks and open ranges have no end
            keep &= np.isin(found["eventType"], [*_RANGES, ABSENT])
        elif not keep.all():
            n = int((~keep).sum())
            self.trace.notes.append(Text(f"{n} rows of {name} have impossible times and were left out",
                                         f"{name} 中 {n} 行的时间不可能，已忽略"))  # fmt: skip
        return found if keep.all() else {c: v[keep] for c, v in found.items()}

    def name_strings(self, rows: Mapping[str, Mapping[str, I64]]) -> None:
        """The texts that the rows name, of `StringIds`."""
        used = [v for found in rows.values() for c, v in found.items() if c in _NAMES]
        ids = np.unique(np.concatenate(used)) if used else np.empty(0, np.int64)
        if not {"id", "value"} <= self.tables.get("StringIds", set()) or not len(ids):
            return
        wanted = set(ids.tolist())
        query = self.db.execute('SELECT "id", "value" FROM "StringIds"')
        for batch in iter(lambda: query.fetchmany(_ROWS), []):
            for number, text in batch:
                if number in wanted and isinstance(text, str):
                    self.names[number] = self.strings.id(text)

    def events(self, name: str, found: dict[str, I64]) -> dict[str, Array]:
        """The columns of one table as those of its group."""
        count = len(found["start"])
        columns: dict[str, Array] = {"start": found["start"], "dur": found["end"] - found["start"]}
        columns["name"], columns["cat"] = self.named(name, found), np.full(count, _CATS[name], np.uint8)
        if "globalTid" in found:
            thread = found["globalTid"]
            columns["pid"], columns["tid"] = (
                self.texts(_pid(thread)),
                self.texts(np.where(thread == ABSENT, ABSENT, thread & 0xFFFFFF)),
            )
            if name == _CALL:
                driver = self.strings.where(is_driver(t) for t in self.strings.texts)
                columns["cat"] = np.where(driver[columns["name"]], Cat.DRIVER, Cat.RUNTIME).astype(np.uint8)
        else:
            columns["pid"], columns["tid"] = self.texts(found["deviceId"]), self.texts(found["streamId"])
            columns |= {"device": found["deviceId"], "stream": columns["tid"]}
        if "correlationId" in found:
            columns["correlation"] = self.correlation(found)
        if "bytes" in found:
            columns["bytes"] = found["bytes"]
        return columns | (self.launch(found) if name == _KERNEL else {})

    def correlation(self, found: dict[str, I64]) -> I64:
        """Each process counts its calls from one: where there are several, their number goes in front."""
        said = found["correlationId"]
        if len(self.processes) < 2:
            return said
        process = np.searchsorted(self.processes, _pid(found["globalPid" if "globalPid" in found else "globalTid"]))
        return np.where(said == ABSENT, ABSENT, process << 40 | (said & (1 << 40) - 1))

    def launch(self, found: dict[str, I64]) -> dict[str, Array]:
        """What the launch of kernels was like, as far as it was asked for."""
        args = self.wanted[Group.GPU]
        columns: dict[str, Array] = {"registers": found["registersPerThread"]}
        if "shared_memory" in args:
            static, dynamic = found["staticSharedMemory"], found["dynamicSharedMemory"]
            both = (static != ABSENT) & (dynamic != ABSENT)
            columns["shared_memory"] = np.where(both, np.where(both, static, 0) + np.where(both, dynamic, 0), ABSENT)
        return columns | {what: self.triples(found, what) for what in ("grid", "block") if what in args}

    def triples(self, found: dict[str, I64], what: str) -> Array:
        sizes, at = np.unique(np.stack([found[what + axis] for axis in "XYZ"], axis=1), axis=0, return_inverse=True)
        ids = np.array([NO_TEXT if ABSENT in x else self.strings.id(str(x)) for x in sizes.tolist()], np.int32)
        return ids[at.reshape(-1)]

    def texts(self, numbers: I64) -> Array:
        """Numbers as texts; empty for ABSENT."""
        values, at = np.unique(numbers, return_inverse=True)
        ids = [self.strings.id("" if v == ABSENT else str(v)) for v in values.tolist()]
        return np.array(ids, np.int32)[at.reshape(-1)]

    def named(self, name: str, found: dict[str, I64]) -> Array:
        if name == _COPY:
            return self.coded(found, ("copyKind", "srcKind", "dstKind"), copy_name)
        if name in _FIXED:
            return np.full(len(found["start"]), self.strings.id(_FIXED[name]), np.int32)
        column = next((c for c in _NAMES if c in found and (found[c] != ABSENT).any()), "")
        ids: I64 = found[column] if column else np.full(len(found["start"]), ABSENT)
        values, at = np.unique(ids, return_inverse=True)
        texts = [self.strings[self.names.get(v, NO_TEXT)] or "?" for v in values.tolist()]
        plain: I64 = np.array([self.strings.id(call_name(t) if name == _CALL else t) for t in texts], np.int64)
        return plain[at.reshape(-1)]

    def coded(self, found: dict[str, I64], columns: tuple[str, ...], label: Callable[..., str]) -> Array:
        codes, at = np.unique(np.stack([found[c] for c in columns], axis=1), axis=0, return_inverse=True)
        ids: I64 = np.array([self.strings.id(label(*code)) for code in codes.tolist()], np.int64)
        return ids[at.reshape(-1)]

    def number_of(self, raw: bytes) -> int:
        """A number for a name that stands in its row, as those of NVTX ranges may: below all numbers of `StringIds`."""
        number = -2 - self.strings.id(raw[: 4 * _TEXT].decode("utf-8", "replace")[:_TEXT])
        self.names[number] = -2 - number
        return number

    def about(self) -> None:
        """Devices, the session's beginning, the rank, and what must be said."""
        trace = self.trace
        trace.keys["deviceProperties"] = self.devices()
        if "utcEpochNs" in self.tables.get("TARGET_INFO_SESSION_START_TIME", ()):
            row = self.db.execute('SELECT "utcEpochNs" FROM "TARGET_INFO_SESSION_START_TIME" LIMIT 1').fetchone()
            if row is not None and type(row[0]) is int and row[0] > 0:
                trace.keys["baseTimeNanoseconds"] = row[0]
        if found := _RANK.search(Path(trace.path).name):
            trace.rank, trace.rank_from = int(found[1]), "file name"
        if len(self.processes) > 1:
            n = len(self.processes)
            trace.notes.append(Text(f"the report holds {n} processes; they are taken together as one rank (nsys profile one process each tells them apart)",
                                    f"报告包含 {n} 个进程，合并为一个 rank（用 nsys 分别采集各进程可区分）"))  # fmt: skip
        if self.strings.find(_FIXED[_GRAPH]) >= 0:
            trace.notes.append(Text("graph launches were recorded whole, not by kernel (nsys profile --cuda-graph-trace=node): their gaps count as busy",
                                    "CUDA 图按整次启动记录，而非按 kernel（nsys profile --cuda-graph-trace=node）：其中的间隙计为忙碌"))  # fmt: skip

    def devices(self) -> list[dict[str, Any]]:
        """``TARGET_INFO_GPU`` in the words of Kineto's ``deviceProperties``."""
        has = self.tables.get("TARGET_INFO_GPU", set())
        columns = [c for c in ("id", "name", "totalMemory", "smCount") if c in has]
        if "name" not in columns:
            return []
        words = {"id": "id", "name": "name", "totalMemory": "totalGlobalMem", "smCount": "numSms"}
        listed = ", ".join(f'"{c}"' for c in columns)
        rows = self.db.execute(f'SELECT {listed} FROM "TARGET_INFO_GPU" LIMIT 64').fetchall()
        return [{words[c]: v for c, v in zip(columns, row, strict=True)} for row in rows]
