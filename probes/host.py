"""The outside of a probe: a machine that answers calls, live or from a recording.

A probe asks a `Host` for files and for the output of commands and gets a `Reply`, which says
why there is none when there is none. Rules cannot tell a recording from a machine. No method
of a host acts on the machine: probes only read.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import PurePosixPath
from typing import Protocol, TypeAlias

from knowledge.observation import Status
from knowledge.text import clean


class CallKind(StrEnum):
    """What was asked of the host."""

    FILE = "file"
    COMMAND = "command"


Call: TypeAlias = tuple[CallKind, tuple[str, ...]]  # the path alone, or the argument vector

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
    call: tuple[str, ...]  # (path,) of a file, the argument vector of a command
    status: Status = Status.OK
    data: bytes = b""  # the file, or standard output
    exit_code: int | None = None  # None for files and for commands that did not end
    stderr: bytes = b""
    cut: bool = False  # too long: head and tail are kept, the middle is not
    started: int | None = None  # ns since 1970, UTC
    detail: str = ""  # why there is no (whole) answer

    def __post_init__(self) -> None:
        if not self.call or (self.kind is CallKind.FILE and len(self.call) != 1):
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

    def files(self, pattern: str) -> list[str]:
        """Paths that match a glob such as ``/var/log/kern.log*``, sorted; ``*`` does not cross a slash."""
        ...


def title(kind: CallKind, call: Sequence[str]) -> str:
    """A call as people write it, on one line and without control characters."""
    return clean(call[0] if kind is CallKind.FILE else shlex.join(call)).replace("\n", "\\n")


def not_asked(kind: CallKind, call: Sequence[str]) -> Reply:
    """The reply of a recording that does not hold the call."""
    return Reply(kind, tuple(call), Status.NOT_ASKED, detail=f"{title(kind, call)} was not recorded")


def matching(paths: Iterable[str], pattern: str) -> list[str]:
    """The `paths` that match a glob, sorted."""
    return sorted({p for p in paths if pattern and PurePosixPath(p).match(pattern)})


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
    head, tail = reply.data[:half], reply.data[len(reply.data) - half :]
    head = head[: head.rfind(b"\n") + 1] or head
    tail = tail[tail.find(b"\n") + 1 :] or tail
    lost = len(reply.data) - len(head) - len(tail)
    said = f"{lost} bytes in the middle were left out"
    joint = (b"" if head.endswith(b"\n") or not head else b"\n") + f"[gpudiag: {said}]\n".encode()
    detail = f"{reply.detail}; {said}" if reply.detail else said
    return replace(reply, data=head + joint + tail, cut=True, detail=detail)


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

    def files(self, pattern: str) -> list[str]:
        """The recorded files that match: those that somebody read, which need not be all there were."""
        there = (r.call[0] for r in self.replies if r.kind is CallKind.FILE and r.status is Status.OK)
        return matching(there, pattern)

    def _answer(self, kind: CallKind, call: tuple[str, ...]) -> Reply:
        return self._replies.get((kind, call)) or not_asked(kind, call)


class RecordingHost:
    """Another host, of which every reply is kept for a bundle.

    A call is made once: who asks again gets what was kept, so that a replay of the recording
    gives what the recorded run gave.
    """

    def __init__(self, inner: Host) -> None:
        self._inner = inner
        self._kept: dict[Call, Reply] = {}

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
        return tuple(in_order(self._kept.values()))

    def read(self, path: str) -> Reply:
        """The file, read now or before."""
        key = (CallKind.FILE, (path,))
        if key not in self._kept:
            self._kept[key] = self._inner.read(path)
        return self._kept[key]

    def run(self, argv: Sequence[str], *, deadline: float) -> Reply:
        """The output, asked for now or before."""
        key = (CallKind.COMMAND, tuple(argv))
        if key not in self._kept:
            self._kept[key] = self._inner.run(argv, deadline=deadline)
        return self._kept[key]

    def files(self, pattern: str) -> list[str]:
        """The listing is not kept: a replay lists the files that were read."""
        return self._inner.files(pattern)
