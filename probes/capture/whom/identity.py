"""Who a process is: read from /proc so that another one with the same pid is never taken for it, and its helpers.

What may wait for a lock of the process's memory (its command line) is read by a `Host`, whose helper can be given up.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from knowledge.errors import UsageError
from knowledge.observation import Status
from knowledge.text import clean
from probes.capture.model import Process, Python
from probes.capture.whom._kin import Kin, is_python, kind
from probes.collectors import processes as collector
from probes.host import Host
from probes.live_host import LiveHost
from probes.parse._process_place import Place, place_of

_READING = collector.Reading("")
MOST_NAMES = 512  # threads whose names are read


class NoProcessError(UsageError):
    """There is no such process, or none that may be seen. `code`: gone, hidden."""

    def __init__(self, message: str, *, code: str = "gone", hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.code = code


def read(pid: int, host: Host | None = None) -> Process:
    """The process `pid`, or the one that thread `pid` belongs to. NoProcessError where there is none to be seen."""
    try:
        status = status_of(pid)
        pid = int(status.get("Tgid", pid))
        row = collector.row_of(pid, stat_of(pid))
        named = [int(n) for n in status.get("NSpid", "").split()]
        uid = int((status.get("Uid", "").split() or ["0", "0"])[1])
    except (OSError, ValueError, IndexError) as error:
        raise _missing(pid) from error
    command, hung = _command(pid, host)
    found = Process(
        pid=pid, start=row[collector.START], name=clean(row[collector.NAME]), command=command, uid=uid, user=user(uid),
        state=row[collector.STATE], tracer=_number(status.get("TracerPid", "")), threads=row[collector.THREADS],
        parent=row[collector.PPID], inner_pid=named[-1] if named else pid, contained=_contained(pid, named),
        container=place(pid).container, python=None if hung else _python(pid),
    )  # fmt: skip
    if not same(found):  # it ended, and perhaps another one took its pid, between these reads
        raise _missing(pid)
    return found


def same(process: Process) -> bool:
    """Whether this very process is still there (as a zombie too): the pid, and the start that goes with it."""
    try:
        row = collector.row_of(process.pid, stat_of(process.pid))
    except (OSError, ValueError, IndexError):
        return False
    return bool(row[collector.START] == process.start)


def lives(process: Process) -> bool:
    """Whether this very process is still there, and has not ended: a zombie has."""
    try:
        row = collector.row_of(process.pid, stat_of(process.pid))
    except (OSError, ValueError, IndexError):
        return False
    return bool(row[collector.START] == process.start and row[collector.STATE] not in ("Z", "X"))


def helpers(pid: int, host: Host | None = None, table: Mapping[int, list[object]] | None = None) -> tuple[Process, ...]:
    """The workers of a process: of its data loaders and pools, forked or started by multiprocessing.

    Left out are its ranks, resource trackers, fork servers (but not their workers), torch.compile's workers and other programs.
    `table`: rows by pid, where they were just read.
    """
    with opened(host) as live:
        found = [child for child, of in kin(pid, live, table) if of is Kin.WORKER]
        return tuple(_readable(found, live))


def kin(pid: int, host: Host, table: Mapping[int, list[object]] | None = None) -> list[tuple[int, Kin]]:
    """Children of a process that run Python, and those behind its fork servers, with what they are."""
    rows = rows_now() if table is None else table
    out: list[tuple[int, Kin]] = []
    waiting = [pid]
    while waiting:
        parent = waiting.pop()
        for child in (p for p, row in sorted(rows.items()) if row[collector.PPID] == parent and p != parent):
            what = kin_of(child, parent, host)
            if what is None:
                continue
            out.append((child, what))
            if what is Kin.SERVER:
                waiting.append(child)
    return sorted(out)


def kin_of(child: int, parent: int, host: Host) -> Kin | None:
    """What one process is to its parent; None when it runs no Python, or has ended."""
    words, above = command(child, host), command(parent, host)
    program = program_of(child)
    if not (is_python(program) if program else bool(words) and is_python(words[0])):
        return None
    forked = program == program_of(parent) and _forked(child, parent, words == above)
    return kind(words, thread_names(child), above, forked=forked, computes=_computes(child) and not _computes(parent))


def rows_now() -> dict[int, list[object]]:
    """A row of /proc/PID/stat for each process, columns as in the collector `processes`. Empty without /proc."""
    try:
        return dict(collector.Table(_READING).rows)
    except OSError:
        return {}


def command(pid: int, host: Host) -> tuple[str, ...]:
    """The command line, secrets masked; empty when it cannot be read."""
    return _command(pid, host)[0]


def program_of(pid: int) -> str:
    """What ``/proc/PID/exe`` names; empty when that may not be read."""
    found = _READING.link(f"/proc/{pid}/exe")
    return found if isinstance(found, str) else ""


def thread_names(pid: int) -> list[str]:
    """Names of the threads, the main one first; empty when the process is gone."""
    folder = f"/proc/{pid}/task"
    try:
        tasks = sorted(os.listdir(folder), key=lambda t: (t != str(pid), int(t)))  # noqa: PTH208
    except (OSError, ValueError):
        return []
    names = []
    for task in tasks[:MOST_NAMES]:
        with suppress(OSError):
            names.append(clean(_READING.head(f"{folder}/{task}/comm", 64).decode("utf-8", "replace").strip()))
    return names


def status_of(pid: int) -> dict[str, str]:
    """All lines of /proc/PID/status. OSError."""
    text = _READING.head(f"/proc/{pid}/status", 8192).decode("utf-8", "replace")
    pairs = (line.partition(":") for line in text.splitlines())
    return {name: value.strip() for name, _, value in pairs}


def stat_of(pid: int) -> bytes:
    """/proc/PID/stat. OSError."""
    return _READING.head(f"/proc/{pid}/stat", 2048)


def place(pid: int) -> Place:
    """Where its control groups say that it runs."""
    text = _READING.text(pid, "cgroup")
    return place_of(clean(line) for line in text.splitlines()) if isinstance(text, str) else Place()


def namespace(pid: int | str, name: str) -> str:
    """``pid:[4026531836]``; empty when it may not be read."""
    found = _READING.link(f"/proc/{pid}/ns/{name}")
    return found if isinstance(found, str) else ""


def user(uid: int) -> str:
    """Name of a user by /etc/passwd alone (a directory on the network may not answer), else the number."""
    return clean(str(collector.users_of(_READING, {uid}).get(str(uid), uid)))


@contextmanager
def opened(host: Host | None) -> Iterator[Host]:
    """`host`, or this machine for as long as the block lasts."""
    if host is not None:
        yield host
        return
    with LiveHost() as live:
        yield live


def _readable(pids: list[int], host: Host) -> Iterator[Process]:
    for pid in pids:
        with suppress(NoProcessError):
            yield read(pid, host)


def _command(pid: int, host: Host | None) -> tuple[tuple[str, ...], bool]:
    """The command line, and whether reading it hung."""
    with opened(host) as live:
        reply = live.read(f"/proc/{pid}/cmdline")
    if reply.status is not Status.OK:
        return (), reply.status is Status.TIMEOUT
    return tuple(clean(word) for word in collector.command_of(reply.data[: collector.MAX_COMMAND])), False


def _python(pid: int) -> Python | None:
    from probes.capture.inject import interpreter  # reads ELF files

    return interpreter.read(pid)


def _forked(child: int, parent: int, alike: bool) -> bool:
    """Whether a child shares its parent's stack, as it does until it executes a program; `alike` where that is not shown."""
    own, other = collector.start_stack(_READING, child), collector.start_stack(_READING, parent)
    return own == other if own not in (b"", b"0") and other not in (b"", b"0") else alike


def _computes(pid: int) -> bool:
    counts = dict.fromkeys(("looked_at", "denied", "gone", "cut"), 0)
    return "/dev/nvidia-uvm" in collector.devices_of(_READING, pid, counts)


def _contained(pid: int, named: list[int]) -> bool:
    if len(named) > 1:
        return True
    pairs = [(namespace(pid, name), namespace("self", name)) for name in ("pid", "mnt")]
    return any(theirs and ours and theirs != ours for theirs, ours in pairs)


def _number(text: str) -> int:
    return int(text) if text.isascii() and text.isdigit() else 0


def _answers(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except (OSError, OverflowError) as error:
        return isinstance(error, PermissionError)
    return True


def _missing(pid: int) -> NoProcessError:
    """Why nothing is read of `pid`: signal 0 tells of processes that /proc hides. (0 and less would mean a whole group.)"""
    if pid > 0 and _answers(pid) and not Path(f"/proc/{pid}").exists():
        why = f"process {pid} is there, but /proc does not show it (hidepid, or the /proc of another pid namespace)"
        return NoProcessError(why, code="hidden", hint="run as root, or as the user that it belongs to")
    return NoProcessError(f"there is no process {pid}")
