"""What a thread that stands still stands in: a collective, data, a lock, a file, the device, sleep; and who called it.

A frame is ``(function, file, line)``, and a stack begins at its root. Its activity is that of `activity`; what the frames
do not show, the system call does in which the kernel says that the thread waits: locks are taken, and sleeps begun, in C.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Final

from knowledge.record import dataclass
from knowledge.text import excerpt
from probes.capture.stacks import activity
from probes.capture.stacks.activity import Frame, State
from probes.capture.stacks.source_lines import calls

Stack = tuple[Frame, ...]  # root first


class Kind(StrEnum):
    """What is waited for: the values of the fact ``process.hung.kind``."""

    COLLECTIVE = "collective"
    DATA = "data"
    LOCK = "lock"
    IO = "io"
    DEVICE = "device"
    SLEEP = "sleep"
    PYTHON = "python"
    UNKNOWN = "unknown"


class Cause(StrEnum):
    """What is known beyond the kind."""

    NONE = ""
    ENDED = "ended"  # there is no such process any more
    STOPPED = "stopped"  # SIGSTOP, SIGTSTP
    TRACED = "traced"  # another program holds it
    DEBUGGER = "debugger"  # a prompt of pdb
    STDIN = "stdin"  # reads what nobody types
    DEADLOCK = "deadlock"  # two threads, each in a lock
    WORKERS_DEAD = "workers-dead"  # of the data loader
    STORAGE = "storage"  # state D in a file system or a disk
    DRIVER = "driver"  # state D in the GPU's driver
    CHECKPOINT = "checkpoint"
    BACKWARD = "backward"  # in the autograd engine: gradients are reduced there
    RENDEZVOUS = "rendezvous"  # the ranks have not met yet
    IDLE = "idle"  # a server without requests


@dataclass(frozen=True, slots=True)
class Native:
    """Where the kernel says that a thread is."""

    state: str = ""  # R, S, D, T, t, Z; empty: no such thread
    call: str = ""  # name of the system call, "running", or empty
    arguments: tuple[str, ...] = ()
    wchan: str = ""


@dataclass(frozen=True, slots=True)
class Place:
    """What a stack stands in."""

    kind: Kind
    name: str = ""  # of a collective: all_reduce
    cause: Cause = Cause.NONE
    frame: Frame | None = None  # of the program, that called it


# Numbers of the calls in which a process waits (Linux: arch/x86/entry/syscalls/syscall_64.tbl, include/uapi/asm-generic/unistd.h).
_CALLS: Final[Mapping[str, Mapping[int, str]]] = {
    "x86_64": {0: "read", 1: "write", 2: "open", 7: "poll", 16: "ioctl", 17: "pread", 18: "pwrite", 19: "readv", 20: "writev",
               23: "select", 24: "sched_yield", 34: "pause", 35: "nanosleep", 42: "connect", 43: "accept", 44: "sendto",
               45: "recvfrom", 46: "sendmsg", 47: "recvmsg", 61: "wait4", 72: "fcntl", 73: "flock", 74: "fsync",
               75: "fdatasync", 202: "futex", 230: "clock_nanosleep", 232: "epoll_wait", 247: "waitid", 257: "openat",
               270: "pselect", 271: "ppoll", 281: "epoll_wait", 288: "accept"},
    "aarch64": {22: "epoll_wait", 25: "fcntl", 29: "ioctl", 32: "flock", 56: "openat", 63: "read", 64: "write", 65: "readv",
                66: "writev", 67: "pread", 68: "pwrite", 72: "pselect", 73: "ppoll", 82: "fsync", 83: "fdatasync",
                95: "waitid", 98: "futex", 101: "nanosleep", 115: "clock_nanosleep", 124: "sched_yield", 202: "accept",
                203: "connect", 206: "sendto", 207: "recvfrom", 211: "sendmsg", 212: "recvmsg", 242: "accept", 260: "wait4"},
}  # fmt: skip
_SLEEPS: Final = frozenset({"nanosleep", "clock_nanosleep", "pause"})
_LOCKS: Final = frozenset({"futex", "flock", "fcntl"})
_POLLS: Final = frozenset({"poll", "ppoll", "epoll_wait", "select", "pselect"})
_IO: Final = frozenset({"read", "write", "open", "openat", "pread", "pwrite", "readv", "writev", "recvfrom", "recvmsg", "sendto",
                        "sendmsg", "connect", "accept", "wait4", "waitid", "fsync", "fdatasync"})  # fmt: skip

_SHORT: Final = re.compile(r"^.{0,4000}/(?:site-packages|dist-packages|lib(?:64)?/python3\.\d{1,3}t?)/", re.DOTALL)
_LOGGED: Final = re.compile(r"(?:^|/)torch/distributed/c10d_logger\.py$")  # `wrapper` stands around each collective
# `_create_c10d_store (torch/distributed/rendezvous.py:189)`, `init_process_group (torch/distributed/distributed_c10d.py:1764)`
_MEETS: Final = frozenset(
    {"init_process_group", "_new_process_group_helper", "_store_based_barrier", "_create_c10d_store", "rendezvous"}
)
# `interaction (pdb.py:428)`, `_do_wait_suspend (debugpy/_vendored/pydevd/pydevd.py:2057)`, `interact (code.py:268)`
_DEBUGGER: Final = re.compile(
    r"(?:^|/)(?:pdb|bdb|remote_pdb|code|ipdb/[^\n]*|pudb/[^\n]*|IPython/(?:core|terminal)/debugger|debugpy/[^\n]*)\.py$"
)
_PROMPTS: Final = frozenset(
    {"interaction", "cmdloop", "_cmdloop", "interact", "_do_wait_suspend", "do_wait_suspend", "user_line"}
)
# `serve_forever (socketserver.py:238)`, `_run_once (asyncio/base_events.py:1884)`: where servers wait for requests
_SERVES: Final = re.compile(
    r"(?:^|/)(?:asyncio|zmq|grpc|uvicorn|uvloop|gunicorn)/[^\n]*\.pyx?$|(?:^|/)socketserver\.py$"
)
_TAKES: Final = re.compile(
    r"(?:^|/)(?:threading|queue)\.py$|(?:^|/)(?:multiprocessing|concurrent/futures|filelock|portalocker)/"
)
# `_try_get_data (torch/utils/data/dataloader.py:1131)`: only where there are worker processes
_LOADER: Final = re.compile(r"(?:^|/)torch/utils/data/dataloader\.py$")
_GPU_DRIVER: Final = re.compile(r"nv(?:idia|kms|_|u)|uvm|os_acquire|amdgpu|kfd")


def call_name(machine: str, text: str) -> tuple[str, tuple[str, ...]]:
    """Name and arguments of a line of ``/proc/PID/syscall``; ("", ()) when it tells none."""
    number, *rest = text.split() or [""]
    if not (number.isascii() and number.isdigit() and len(number) < 10):
        return ("running" if number == "running" else "", ())
    return _CALLS.get(machine, {}).get(int(number), f"syscall {number}"), tuple(rest)


def short(file: str) -> str:
    """A file as people know it: below the library that holds it, or its bare name."""
    found = _SHORT.match(file)
    return file[found.end() :] if found else file.rpartition("/")[2] or file


def ours(frame: Frame) -> bool:
    """Whether a frame is of the user's program, as against an installed package or the interpreter's library."""
    return activity.known(frame[0], frame[1]).kind is activity.Kind.USER


def where(frame: Frame) -> str:
    """A frame for people: ``stuck_in_data_loader (ranks.py:5)``."""
    return excerpt(f"{frame[0]} ({short(frame[1])}:{frame[2]})", 200)


def normal(stack: Sequence[Frame]) -> tuple[str, ...]:
    """A stack by which ranks are grouped: functions and files without lines."""
    return tuple(excerpt(f"{name} ({short(file)})", 200) for name, file, _ in stack)


def place(stack: Sequence[Frame], native: Native, line: str = "", *, distributed: bool = False) -> Place:
    """What a thread stands in. `line`: source of its deepest frame, where that is known; `distributed`: it is one of several ranks."""
    told = activity.classify(stack, _state(native), line)
    caller = stack[told.blamed] if 0 <= told.blamed < len(stack) else None
    found = _place(stack, native, line, told, distributed)
    return Place(found.kind, found.name, found.cause, caller)


def uses_workers(stack: Sequence[Frame]) -> bool:
    """Whether a stack waits for worker processes of a data loader."""
    return any(
        _LOADER.search(file) and activity.function(name) in ("_try_get_data", "_get_data") for name, file, _ in stack
    )


def _state(native: Native) -> State | None:
    """What `activity` calls it."""
    fixed = {"T": State.STOPPED, "t": State.STOPPED, "D": State.DISK, "R": State.CPU, "": None}
    if native.state in fixed:
        return fixed[native.state]
    groups = ((_SLEEPS, State.SLEEP), (_LOCKS, State.LOCK), (_POLLS, State.POLL), (_IO, State.READ))
    return next((state for group, state in groups if native.call in group), State.BLOCKED)


def _place(stack: Sequence[Frame], native: Native, line: str, told: activity.Classified, distributed: bool) -> Place:
    if native.state in ("T", "t"):
        return Place(Kind.UNKNOWN, cause=Cause.STOPPED if native.state == "T" else Cause.TRACED)
    if any(_DEBUGGER.search(file) and activity.function(name) in _PROMPTS for name, file, _ in stack):
        return Place(Kind.IO, cause=Cause.DEBUGGER)
    if native.state == "D":
        driver = _GPU_DRIVER.search(native.wchan) is not None
        return Place(Kind.DEVICE, cause=Cause.DRIVER) if driver else Place(Kind.IO, cause=Cause.STORAGE)
    match told.activity:
        case "collective":
            name = _collective(stack, told.decided, line)
            return Place(Kind.COLLECTIVE, name, Cause.RENDEZVOUS if _meets(stack) else Cause.NONE)
        case "data_wait" | "data_work":
            return Place(Kind.DATA)
        case "sync":
            return Place(Kind.DEVICE)
        case "backward":
            reduces = Place(Kind.COLLECTIVE, "backward", Cause.BACKWARD)
            return reduces if distributed else Place(Kind.DEVICE, cause=Cause.BACKWARD)
        case "checkpoint":
            return Place(Kind.IO, cause=Cause.CHECKPOINT)
        case _:
            return _waits(stack, native)


def _meets(stack: Sequence[Frame]) -> bool:
    return any(activity.function(name) in _MEETS and "torch/distributed/" in file for name, file, _ in stack)


def _collective(stack: Sequence[Frame], decided: int, line: str) -> str:
    """The collective as the program asked for it: of ``all_gather_object``, ``all_gather``, ... the outermost."""
    names: list[str] = []
    for name, file, _ in reversed(stack[: decided + 1]):
        if _LOGGED.search(file):
            continue
        if not any(a.id == "collective" for a, _ in activity.known(name, file).hits):
            break
        names.append(activity.function(name))
    if not names:  # the call has no frame: it is C, and the line names it
        names = sorted(c.rpartition(".")[2] for c in calls(line) if "*" not in c and "(" not in c)
        names = [n for n in names if n != "wait"] or names
    return excerpt(names[-1], 80) if names else ""


def _waits(stack: Sequence[Frame], native: Native) -> Place:
    """What the kernel says, where the frames are the program's own or say only that somebody waits."""
    call, first = native.call, native.arguments[:1]
    if call == "read" and first == ("0x0",):
        return Place(Kind.IO, cause=Cause.STDIN)
    if call in _SLEEPS or (call in ("select", "pselect") and first == ("0x0",)):
        return Place(Kind.SLEEP)
    deepest = [file for _, file, _ in stack[-8:]]
    if any(_TAKES.search(file) for file in deepest):
        return Place(Kind.LOCK)
    if call in _POLLS and any(_SERVES.search(file) for file in deepest):
        return Place(Kind.IO, cause=Cause.IDLE)
    if call in _LOCKS:
        return Place(Kind.LOCK)
    if call in _IO or call in _POLLS:
        return Place(Kind.IO)
    if call == "ioctl" and _GPU_DRIVER.search(native.wchan):
        return Place(Kind.DEVICE)
    return Place(Kind.PYTHON if native.state == "R" or call == "running" else Kind.UNKNOWN)
