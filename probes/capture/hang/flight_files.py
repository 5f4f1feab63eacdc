"""Dumps of PyTorch's flight recorder of collectives: where they lie, how a job is asked for one, and what is in them.

The recorder is on when ``TORCH_FR_BUFFER_SIZE`` (before 2.8 ``TORCH_NCCL_TRACE_BUFFER_SIZE``) is not 0. It writes on a timeout, and,
where ``TORCH_NCCL_DEBUG_INFO_PIPE_FILE`` was set at the start, when anything is written into the pipe ``<value><rank>.pipe``: a
thread of NCCL's process group looks into it each second. Dumps lie at ``<prefix><rank>`` (torch/csrc/distributed/c10d/FlightRecorder*.cpp).
Most are pickles; they are read without unpickling, and all that is in them is taken for hostile.
"""

from __future__ import annotations

import errno
import json
import os
import stat
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final

from knowledge.errors import InputError
from knowledge.record import dataclass
from knowledge.text import excerpt
from probes.capture._inroot import KindError, content, file_at
from probes.capture.hang import hang_proc
from probes.capture.model import Process, Target
from probes.parse._host_snapshot import mapping, mappings, whole
from probes.trace.allocator import pickled

LARGEST: Final = 256 << 20  # bytes of a dump: 2,000 entries with their stacks are some megabytes
ANSWER_S: Final = 4.0  # the pipe is looked into each second
ENTRIES: Final = 300  # the last of each rank are kept
_FRAMES: Final = 12
_WORDS: Final = 400
PIPES: Final = ("TORCH_NCCL_DEBUG_INFO_PIPE_FILE", "TORCH_FR_DEBUG_INFO_PIPE_FILE")
FILES: Final = ("TORCH_FR_DUMP_TEMP_FILE", "TORCH_NCCL_DEBUG_INFO_TEMP_FILE")
SIZES: Final = ("TORCH_FR_BUFFER_SIZE", "TORCH_NCCL_TRACE_BUFFER_SIZE")
_ALL: Final = (*PIPES, *FILES, *SIZES, "RANK", "HOME", "XDG_CACHE_HOME")
_NO_PIPE: Final = "what has the pipe's name is no pipe of the job's"


@dataclass(frozen=True, slots=True)
class Places:
    """Where the recorder of one rank listens and writes, as its process names the files."""

    pipe: str  # empty: it was not asked to listen
    files: tuple[str, ...]  # the first that is there counts
    on: bool | None  # None: the environment does not tell


def places(environment: Mapping[str, str], rank: int) -> Places:
    """Where rank `rank` listens and writes, by the environment it was started with."""
    stem = next((environment[n] for n in PIPES if environment.get(n)), "")
    prefix = next((environment[n] for n in FILES if environment.get(n)), "")
    cache = environment.get("XDG_CACHE_HOME") or f"{environment.get('HOME') or '/tmp'}/.cache"
    usual = (f"{cache}/torch/comm_lib_trace_rank_", f"{environment.get('HOME') or '/tmp'}/.cache/torch/nccl_trace_rank_",
             "/tmp/nccl_trace_rank_")  # fmt: skip
    size = next((environment[n] for n in SIZES if environment.get(n)), "")
    on = int(size) > 0 if size.isascii() and size.isdigit() and len(size) < 12 else None
    return Places(
        f"{stem}{rank}.pipe" if stem else "", tuple(f"{p}{rank}" for p in ([prefix] if prefix else usual)), on
    )


def gather(targets: Sequence[Target], *, ask: bool = False, wait: float = ANSWER_S) -> dict[str, Any]:
    """The ``flight`` part of a capture: the dumps of the targets' ranks that lie there.

    `ask`: the jobs are asked for new ones where they listen; only with the consent of whom they belong to. Never raises.
    """
    known = [(t, places(_environment(t.process), t.rank)) for t in targets if t.rank is not None]
    out: dict[str, Any] = {"asked": ask, "ranks": {}}
    before = time.time_ns()
    rows = {
        t.process.pid: {"pid": t.process.pid, "on": p.on, "pipe": p.pipe, "path": "", "error": ""} for t, p in known
    }
    if ask:
        for t, p in known:
            rows[t.process.pid]["asked"] = _ask(t.process, p)
    until = time.monotonic() + wait
    asked = {t.process.pid for t, _ in known if rows[t.process.pid].get("asked") == "written"}
    while asked and time.monotonic() < until:
        asked -= {t.process.pid for t, p in known if t.process.pid in asked and _newest(t.process, p, before)}
        time.sleep(0.05)
    for t, p in known:
        _fetch(rows[t.process.pid], t.process, p)
        out["ranks"][str(t.rank)] = rows[t.process.pid]
    return out


def _environment(process: Process) -> dict[str, str]:
    return hang_proc.environment(process.pid, _ALL)


def _ask(process: Process, found: Places) -> str:
    """Write into the pipe of one rank: "written", or why not."""
    if not found.pipe.startswith("/"):
        return "it was not started with a pipe" if not found.pipe else "the pipe's name is not absolute"
    try:
        descriptor = file_at(process.root, found.pipe, os.O_WRONLY | os.O_NOFOLLOW, stat.S_IFIFO)
    except KindError:
        return _NO_PIPE
    except OSError as error:
        return (
            "nobody listens at the pipe"
            if error.errno == errno.ENXIO
            else f"{errno.errorcode.get(error.errno or 0)}: the pipe"
        )
    try:
        if os.fstat(descriptor).st_uid != process.uid:
            return _NO_PIPE
        os.write(descriptor, b"1")
        return "written"
    except OSError as error:
        return f"{errno.errorcode.get(error.errno or 0)}: the pipe"
    finally:
        os.close(descriptor)


def _newest(process: Process, found: Places, since: int) -> bool:
    """Whether a dump was written after `since` (ns UTC) and is whole."""
    for path in found.files:
        row = _read(process, path)
        if isinstance(row, tuple) and row[1] >= since:
            with suppress(InputError):
                load(row[0])
                return True
    return False


def _fetch(row: dict[str, Any], process: Process, found: Places) -> None:
    """The dump of one rank into `row`, or why there is none."""
    row["error"] = "no dump lies there"
    for path in found.files:
        got = _read(process, path)
        if got is None:
            continue
        row["path"] = path
        if isinstance(got, str):
            row["error"] = got
            return
        data, written = got
        if written < _started(process):
            row["error"] = "the dump is older than the process"
            continue
        row["written"] = written
        try:
            row["dump"], row["error"] = load(data), ""
        except InputError as error:
            row["error"] = error.message
        return


def _read(process: Process, path: str) -> tuple[bytes, int] | str | None:
    """Content and time (ns UTC) of a dump; why it cannot be read; None when there is none."""
    if not path.startswith("/"):
        return None
    try:
        descriptor = file_at(process.root, path)
    except KindError:
        return f"{path} is no file of the job's"
    except OSError as error:
        return (
            None if error.errno in (errno.ENOENT, errno.ENOTDIR) else f"{errno.errorcode.get(error.errno or 0)}: {path}"
        )
    try:
        told = os.fstat(descriptor)
        if told.st_uid not in (process.uid, 0):
            return f"{path} is no file of the job's"
        if told.st_size > LARGEST:
            return f"{path} is larger than {LARGEST >> 20} MiB"
        return content(descriptor, LARGEST), told.st_mtime_ns
    except OSError as error:
        return f"{errno.errorcode.get(error.errno or 0)}: {path}"
    finally:
        os.close(descriptor)


def _started(process: Process) -> int:
    """When a process began, ns UTC, to the second."""
    if not process.start:
        return 0
    ago = time.clock_gettime(time.CLOCK_BOOTTIME) - process.start / os.sysconf("SC_CLK_TCK")
    return int((time.time() - ago - 1) * 1e9)


# --- what is in a dump -------------------------------------------------------------------------------


def load(data: bytes) -> dict[str, Any]:
    """What a dump tells, as plain data: ``version``, ``groups`` {name: {desc, ranks}}, ``status`` {id: {enqueued, started, completed}},
    ``entries`` [{...}, oldest first]. InputError when it is no dump: of either form, pickle or JSON, or the list of torch 2.2.
    """
    if pickled.looks_like(data[:16]):
        raw = pickled.load(data, memory=1 << 30)
    else:
        try:
            raw = json.loads(data)
        except (ValueError, RecursionError) as error:
            raise InputError("no dump of the flight recorder: neither a pickle nor JSON") from error
    if isinstance(raw, list) and mappings(raw):  # torch 2.2: the entries alone
        raw = {"version": "1", "entries": raw}
    if not isinstance(raw, dict) or not {"entries", "pg_status", "pg_config"} & raw.keys():
        raise InputError("no dump of the flight recorder: it holds neither entries nor groups")
    return {
        "version": _text(raw.get("version"), 20),
        "groups": {_text(n): g for n, g in _groups(mapping(raw.get("pg_config")))},
        "status": {_text(n): s for n, s in _status(mapping(raw.get("pg_status")))},
        "entries": [_entry(e) for e in mappings(raw.get("entries"))[-ENTRIES:]],
    }


def _groups(config: Mapping[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    for name, row in list(config.items())[:1024]:
        about = mapping(row)
        yield (
            _text(about.get("name", name)),
            {"desc": _text(about.get("desc")), "ranks": _ranks(about.get("ranks"))},
        )


def _ranks(value: object) -> list[int]:
    """``"[0, 1]"``: the recorder writes the list as text. (Its own reader evaluates that; here it is taken apart.)"""
    words = value.strip("[] ").split(",") if isinstance(value, str) else value if isinstance(value, list) else []
    found = (_int(w.strip() if isinstance(w, str) else w) for w in words[:100_000])
    return sorted({n for n in found if n is not None and n < 1 << 24})


def _status(status: Mapping[str, Any]) -> Iterator[tuple[str, dict[str, int | None]]]:
    for name, row in list(status.items())[:1024]:
        about = mapping(row)
        yield _text(name), {k: _int(about.get(f"last_{k}_collective")) for k in ("enqueued", "started", "completed")}


def _text(value: object, most: int = 80) -> str:
    """A name; empty when the value is none. Nothing else is turned into text: a list may hold itself, or much."""
    return excerpt(str(value), most) if isinstance(value, str | int) else ""


def _int(value: object) -> int | None:
    """A whole number; JSON dumps write it as text, and -1 for none."""
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 20:
        return int(value)
    return whole(value)


def _entry(e: Mapping[str, Any]) -> dict[str, Any]:
    group = e.get("process_group")
    name, desc = (
        (_text(group[0]), _text(group[1]))
        if isinstance(group, list | tuple) and len(group) == 2
        else (_text(e.get("pg_id")), "")
    )
    state = _text(e.get("state"), 20)
    return {
        "group": name, "desc": desc, "id": _int(e.get("pg_id")),
        "seq": _int(e.get("collective_seq_id", e.get("seq_id"))), "op": _int(e.get("op_id")),
        "p2p": e.get("is_p2p") is True, "name": _text(e.get("profiling_name")),
        "sizes": [_sizes(e.get("input_sizes")), _sizes(e.get("output_sizes"))],
        "types": [_words(e.get("input_dtypes")), _words(e.get("output_dtypes"))],
        # Gloo's recorder retires what has ended, but leaves its state as it was.
        "state": "completed" if e.get("retired") is True or state == "completed" else state,
        "created": _int(e.get("time_created_ns")), "frames": list(map(_frame, mappings(e.get("frames"))[:_FRAMES])),
    }  # fmt: skip


def _sizes(value: object) -> list[list[int]]:
    rows = value[:64] if isinstance(value, list) else []
    return [[n for n in (whole(x) for x in row[:16]) if n is not None] for row in rows if isinstance(row, list)]


def _words(value: object) -> list[str]:
    return [excerpt(w, 20) for w in value[:64] if isinstance(w, str)] if isinstance(value, list) else []


def _frame(f: Mapping[str, Any]) -> list[Any]:
    return [
        _text(f.get("name"), 120),
        _text(f.get("filename"), _WORDS),
        whole(f.get("line")) or 0,
    ]
