"""The outside of a probe: a machine that answers calls, live or from a recording.

A probe asks a `Host` for files, listings, the output of commands and snapshots, and gets a `Reply`,
which says why there is none when there is none. A snapshot is what one of the small programs in
`probes/collectors` prints: NVML calls, two readings of /proc a moment apart, all processes. Rules cannot tell a recording from a machine. No method
of a host acts on the machine: probes only read.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field, replace
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from pathlib import PurePosixPath
from threading import Lock
from typing import Any, Protocol, TypeAlias

from knowledge.observation import Status
from knowledge.record import dataclass
from knowledge.text import clean


class CallKind(StrEnum):
    """What was asked of the host."""

    FILE = "file"
    COMMAND = "command"
    SNAPSHOT = "snapshot"  # a collector's output: its name, then its arguments
    LISTING = "listing"  # paths that match a glob, one a line


Call: TypeAlias = tuple[CallKind, tuple[str, ...]]  # the path or pattern alone, or the argument vector
SINGLE = frozenset({CallKind.FILE, CallKind.LISTING})  # kinds whose call is one word

# What a call can come to. NONE_SEEN and its like are conclusions from a text: a reply never draws them.
REPLY_STATUS = frozenset(
    {Status.OK, Status.UNSUPPORTED, Status.DENIED, Status.TIMEOUT, Status.FAILED, Status.NOT_ASKED}
)


@dataclass(frozen=True, slots=True)
class Reply:
    """What a host answered to one call, byte for byte.

    OK means that the call came to its own end; how a command ended is told by `exit_code`. With
    any other status `data` holds what had been printed by then. ValueError for a status that no
    call can have, and for output of a call that was never made.
    """

    kind: CallKind
    call: tuple[str, ...]  # (path,) of a file, (pattern,) of a listing, else the argument vector
    status: Status = Status.OK
    data: bytes = b""  # the file, or standard output
    exit_code: int | None = None  # None for files and for commands that did not end
    stderr: bytes = b""
    cut: bool = False  # too long: head and tail are kept, the middle is not
    started: int | None = None  # ns since 1970, UTC
    detail: str = ""  # why there is no (whole) answer

    def __post_init__(self) -> None:
        if not self.call or (self.kind in SINGLE and len(self.call) != 1):
            raise ValueError(f"a {self.kind} cannot be asked for with {self.call!r}")
        if self.status not in REPLY_STATUS:
            raise ValueError(f"a call cannot come to {self.status}")
        if self.status is Status.NOT_ASKED and (self.data or self.stderr):
            raise ValueError("output of a call that was not made")

    @property
    def key(self) -> Call:
        """What was asked."""
        return self.kind, self.call

    @property
    def title(self) -> str:
        """The call as people write it: a path, or a command line quoted for a shell."""
        return title(self.kind, self.call)

    @property
    def text(self) -> str:
        """The output as text; bytes that are no UTF-8 become U+FFFD."""
        return self.data.decode("utf-8-sig", "replace")

    @property
    def errors(self) -> str:
        """Standard error as text."""
        return self.stderr.decode("utf-8", "replace")

    @property
    def whole(self) -> bool:
        """True when nothing of the output is known to be lacking."""
        return self.status is Status.OK and not self.cut and self.exit_code in (0, None)


class Host(Protocol):
    """A machine that can be looked at."""

    @property
    def name(self) -> str:
        """Its host name; empty when it is not known."""
        ...

    @property
    def as_of(self) -> int | None:
        """When it is looked at, ns since 1970 UTC: the time of the recording; None when that is not known."""
        ...

    def read(self, path: str) -> Reply:
        """A file. Never raises: what cannot be read is a reply with a status."""
        ...

    def run(self, argv: Sequence[str], *, deadline: float) -> Reply:
        """Output of a command that only reads, given `deadline` seconds. No shell stands between."""
        ...

    def snapshot(self, name: str, *args: str, deadline: float) -> Reply:
        """What the collector `name` of `probes/collectors` prints, given `deadline` seconds."""
        ...

    def files(self, pattern: str) -> list[str]:
        """Paths that match a glob such as ``/var/log/kern.log*``, sorted; ``*`` does not cross a slash."""
        ...


def title(kind: CallKind, call: Sequence[str]) -> str:
    """A call as people write it, on one line and without control characters."""
    text = call[0] if kind in SINGLE else shlex.join(call)
    return clean(f"snapshot {text}" if kind is CallKind.SNAPSHOT else text).replace("\n", "\\n")


def not_asked(kind: CallKind, call: Sequence[str]) -> Reply:
    """The reply of a recording that does not hold the call."""
    return Reply(kind, tuple(call), Status.NOT_ASKED, detail=f"{title(kind, call)} was not recorded")


def matching(paths: Iterable[str], pattern: str) -> list[str]:
    """The `paths` that match a glob, sorted."""
    return sorted({p for p in paths if pattern and PurePosixPath(p).match(pattern)})


def listing(pattern: str, paths: Iterable[str], **more: Any) -> Reply:
    """The reply that keeps what `Host.files` answered. Paths that hold a line break are left out."""
    text = "".join(f"{p}\n" for p in sorted(set(paths)) if "\n" not in p)
    return Reply(CallKind.LISTING, (pattern,), data=os.fsencode(text), **more)


def listed(replies: Mapping[Call, Reply], pattern: str) -> list[str]:
    """What `Host.files` answers from recordings: the kept listing, else the recorded files that match."""
    kept = replies.get((CallKind.LISTING, (pattern,)))
    if kept is not None:
        return os.fsdecode(kept.data).splitlines()
    there = (r.call[0] for r in replies.values() if r.kind is CallKind.FILE and r.status not in _NOT_THERE)
    return matching(there, pattern)


_NOT_THERE = frozenset({Status.NOT_ASKED, Status.UNSUPPORTED})


def in_order(replies: Iterable[Reply]) -> list[Reply]:
    """Sorted by call: the order in which calls were made says nothing."""
    return sorted(replies, key=lambda reply: reply.key)


def by_call(replies: Iterable[Reply]) -> dict[Call, Reply]:
    """The replies by what was asked, in order. ValueError when a call was answered twice."""
    out: dict[Call, Reply] = {}
    for reply in in_order(replies):
        if reply.key in out:
            raise ValueError(f"{reply.title} has two replies")
        out[reply.key] = reply
    return out


def capped(reply: Reply, limit: int) -> Reply:
    """`reply` with at most about `limit` bytes of output: whole lines of its head and its tail, and a line that says so."""
    if len(reply.data) <= limit:
        return reply
    half = limit // 2
    tail = reply.data[len(reply.data) - half :]
    data, said = cut_between(reply.data[:half], tail, len(reply.data) - 2 * half)
    return replace(reply, data=data, cut=True, detail=f"{reply.detail}; {said}" if reply.detail else said)


def cut_between(head: bytes, tail: bytes, lost: int) -> tuple[bytes, str]:
    """Whole lines of `head` and `tail` around a line that says how many bytes are left out; and what it says."""
    whole_head = head[: head.rfind(b"\n") + 1] or head
    whole_tail = tail[tail.find(b"\n") + 1 :] or tail
    lost += len(head) - len(whole_head) + len(tail) - len(whole_tail)
    said = f"{lost} bytes in the middle were left out"
    joint = (b"" if whole_head.endswith(b"\n") or not whole_head else b"\n") + f"[gpudiag: {said}]\n".encode()
    return whole_head + joint + whole_tail, said


class ReplayHost:
    """A host that answers from recordings in memory."""

    def __init__(self, name: str, replies: Iterable[Reply] = (), as_of: int | None = None) -> None:
        """ValueError when two replies answer the same call."""
        self.name = name
        self.as_of = as_of
        self._replies: Mapping[Call, Reply] = by_call(replies)

    @property
    def replies(self) -> tuple[Reply, ...]:
        """All recordings, sorted by call."""
        return tuple(self._replies.values())

    def read(self, path: str) -> Reply:
        """The recorded file."""
        return self._answer(CallKind.FILE, (path,))

    def run(self, argv: Sequence[str], *, deadline: float) -> Reply:  # noqa: ARG002 - part of the protocol
        """The recorded output; a recording needs no time."""
        return self._answer(CallKind.COMMAND, tuple(argv))

    def snapshot(self, name: str, *args: str, deadline: float) -> Reply:  # noqa: ARG002 - part of the protocol
        """The recorded output of a collector."""
        return self._answer(CallKind.SNAPSHOT, (name, *args))

    def files(self, pattern: str) -> list[str]:
        """The recorded listing; without one the recorded files that match, which need not be all there were."""
        return listed(self._replies, pattern)

    def _answer(self, kind: CallKind, call: tuple[str, ...]) -> Reply:
        return self._replies.get((kind, call)) or not_asked(kind, call)


_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def iso(at: int | None) -> str | None:
    """ns since 1970 UTC as ``2026-03-03T12:00:00.000000001Z``, without a fraction when there is none."""
    if at is None:
        return None
    seconds, fraction = divmod(at, 10**9)
    text = (_EPOCH + timedelta(seconds=seconds)).replace(tzinfo=None).isoformat()
    return f"{text}.{fraction:09d}".rstrip("0") + "Z" if fraction else f"{text}Z"


@dataclass(frozen=True, slots=True)
class Recording:
    """Which probes a recording was made by; a replay runs these and no others."""

    probes: tuple[str, ...]
    unasked: tuple[str, ...] = ()  # those that there was no time for
    options: Mapping[str, Mapping[str, str]] = field(default_factory=dict)  # what probes were told: whose stacks, ...


class RecordingHost:
    """Another host, of which every reply is kept for a bundle. Threads may share it.

    A call is made once: who asks again gets what was kept, so that a replay of the recording
    gives what the recorded run gave.
    """

    def __init__(self, inner: Host) -> None:
        self._inner = inner
        self._kept: dict[Call, Reply] = {}
        self._locks: dict[Call, Lock] = {}
        self._lock = Lock()

    @property
    def name(self) -> str:
        """Name of the host behind."""
        return self._inner.name

    @property
    def as_of(self) -> int | None:
        """Time of the host behind."""
        return self._inner.as_of

    @property
    def replies(self) -> tuple[Reply, ...]:
        """Everything that was answered so far, sorted by call."""
        with self._lock:
            return tuple(in_order(self._kept.values()))

    def read(self, path: str) -> Reply:
        """The file, read now or before."""
        return self._once((CallKind.FILE, (path,)), lambda: self._inner.read(path))

    def run(self, argv: Sequence[str], *, deadline: float) -> Reply:
        """The output, asked for now or before."""
        return self._once((CallKind.COMMAND, tuple(argv)), lambda: self._inner.run(argv, deadline=deadline))

    def snapshot(self, name: str, *args: str, deadline: float) -> Reply:
        """The collector's output, asked for now or before."""
        key = (CallKind.SNAPSHOT, (name, *args))
        return self._once(key, lambda: self._inner.snapshot(name, *args, deadline=deadline))

    def files(self, pattern: str) -> list[str]:
        """The listing, made now or before."""
        key = (CallKind.LISTING, (pattern,))
        reply = self._once(key, lambda: listing(pattern, self._inner.files(pattern)))
        return os.fsdecode(reply.data).splitlines()

    def _once(self, key: Call, ask: Callable[[], Reply]) -> Reply:
        with self._lock:
            lock = self._locks.setdefault(key, Lock())
        with lock:  # two probes that ask the same share one call; others go on
            if key not in self._kept:
                reply = ask()
                with self._lock:
                    self._kept[key] = reply
            return self._kept[key]
