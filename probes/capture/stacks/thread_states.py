"""What the kernel said of a thread while its stacks were sampled: one `State` for each part of a span.

Reads the ThreadsDoc of a capture; what it does not hold is None, and stays so.
"""

from __future__ import annotations

import platform
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from probes.capture.stacks.activity import State

_STALE: Final = 2.0  # periods between two readings: an older reading says nothing about a span
# Numbers of system calls by architecture: arch/x86/entry/syscalls/syscall_64.tbl, include/uapi/asm-generic/unistd.h
_CALLS: Final[dict[str, dict[State, frozenset[int]]]] = {
    "x86_64": {
        State.LOCK: frozenset({202, 449, 454, 455, 456}),  # futex, futex_waitv, futex_wake/wait/requeue
        State.POLL: frozenset(
            {7, 23, 232, 270, 271, 281, 441}
        ),  # poll, select, epoll_wait, pselect6, ppoll, epoll_pwait
        State.SLEEP: frozenset(
            {34, 35, 61, 128, 230, 247}
        ),  # pause, nanosleep, wait4, rt_sigtimedwait, clock_nanosleep, waitid
        # read, write, pread64, pwrite64, readv, writev, sendfile, connect, accept, sendto, recvfrom, sendmsg, recvmsg, fsync, fdatasync, preadv, ...
        State.READ: frozenset({0, 1, 17, 18, 19, 20, 40, 42, 43, 44, 45, 46, 47, 74, 75, 295, 296, 326, 327, 328}),
    },
    "aarch64": {
        State.LOCK: frozenset({98, 449, 454, 455, 456}),
        State.POLL: frozenset({22, 72, 73, 441}),
        State.SLEEP: frozenset({95, 101, 115, 137, 260}),
        State.READ: frozenset(
            {63, 64, 65, 66, 67, 68, 69, 70, 71, 82, 83, 202, 203, 206, 207, 211, 212, 285, 286, 287}
        ),
    },
}


def state_of(letter: str | None, call: int | str | None, gil: int | None, machine: str = "") -> State | None:
    """One reading. `letter`: of /proc/PID/task/TID/stat; `call`: number of the system call, or "running"; `gil`: 1 when blocked on it."""
    if letter is None:
        return None
    if letter == "R":
        return State.CPU
    if gil == 1:
        return State.GIL
    if letter == "D":
        return State.DISK
    if letter in "Tt":
        return State.STOPPED
    if not isinstance(call, int):
        return State.BLOCKED if letter == "S" else None
    calls = _CALLS.get(machine or platform.machine(), {})
    return next((s for s, numbers in calls.items() if call in numbers), State.BLOCKED)


class States:
    """The states of the threads of one process over the window."""

    def __init__(self, threads: Mapping[str, Any] | None, pid: int, machine: str = "") -> None:
        document = threads if isinstance(threads, Mapping) else {}
        rows = document.get("rows")
        mine = rows.get(str(pid)) if isinstance(rows, Mapping) else None
        self._rows: Mapping[str, Any] = mine if isinstance(mine, Mapping) else {}
        at = document.get("at")
        self._at: list[int] = [t for t in at if isinstance(t, int)] if isinstance(at, list) else []
        hz = document.get("hz")
        period = 10**9 / hz if isinstance(hz, int | float) and hz > 0 else 0
        self._reach = int(period * _STALE)
        self._machine = machine
        self._states: dict[str, list[State | None]] = {}

    def known(self, tid: str) -> bool:
        """Whether anything is known of a thread."""
        return any(s is not None for s in self.of(tid))

    def gil_known(self, tid: str) -> bool:
        """Whether waits for the GIL could be told."""
        return any(g is not None for g in _column(self._rows.get(tid), "gil"))

    def of(self, tid: str) -> list[State | None]:
        """The state at each reading."""
        if tid not in self._states:
            row = self._rows.get(tid)
            letters, called, gil = (_column(row, name) for name in ("state", "syscall", "gil"))
            self._states[tid] = [
                state_of(_at(letters, i), _at(called, i), _at(gil, i), self._machine) for i in range(len(self._at))
            ]
        return self._states[tid]

    def parts(self, tid: str, began: int, ns: int) -> Iterator[tuple[int, int, State | None]]:
        """A span as (when, how long, state), divided evenly among the readings within it; they add up to `ns` exactly."""
        states = self.of(tid)
        first, last = bisect_left(self._at, began), bisect_left(self._at, began + ns)
        if first == last:
            yield began, ns, self._near(states, began + ns // 2)
            return
        share, rest = divmod(ns, last - first)
        for i in range(first, last):
            yield self._at[i], share + (rest if i == first else 0), states[i]

    def at(self, tid: str, when: int) -> State | None:
        """The state read nearest to a moment; None when that is too long ago."""
        return self._near(self.of(tid), when)

    def _near(self, states: Sequence[State | None], when: int) -> State | None:
        place = bisect_left(self._at, when)
        near = min(
            (i for i in (place - 1, place) if 0 <= i < len(self._at)),
            key=lambda i: abs(self._at[i] - when),
            default=None,
        )
        if near is None or abs(self._at[near] - when) > self._reach:
            return None
        return states[near]


def _column(row: object, name: str) -> list[Any]:
    column = row.get(name) if isinstance(row, Mapping) else None
    return column if isinstance(column, list) else []


def _at(column: list[Any], place: int) -> Any:
    return column[place] if place < len(column) else None
