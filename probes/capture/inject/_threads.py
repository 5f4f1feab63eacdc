"""Which thread to borrow: best one that sleeps in a system call, where it holds no lock of a few instructions."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from knowledge.record import dataclass

# x86-64 system calls that report EINTR after a stop even when no signal is delivered (signal(7)): epoll_wait, epoll_pwait,
# epoll_pwait2, semop, semtimedop, rt_sigtimedwait, io_getevents, io_pgetevents, io_uring_enter, msgrcv, msgsnd
EPOLL = frozenset({232, 281, 441})
EINTR_CALLS = EPOLL | {65, 220, 128, 208, 333, 426, 70, 69}
# those that the kernel begins again by itself: read, poll, select, pselect6, ppoll, nanosleep, clock_nanosleep, futex, wait4,
# waitid, accept, accept4, recvfrom
_GENTLE = frozenset({0, 7, 23, 270, 271, 35, 230, 202, 61, 247, 43, 288, 45})


@dataclass(frozen=True, slots=True)
class Candidate:
    """A thread and how it stands."""

    tid: int
    grade: int  # the lower the better


def candidates(pid: int) -> list[Candidate]:
    """Threads that may be borrowed, best first; those that sleep in the kernel for good (D) or have ended are left out."""
    found = []
    with suppress(OSError):
        for task in Path(f"/proc/{pid}/task").iterdir():
            grade = _grade(task)
            if grade is not None:
                found.append(Candidate(int(task.name), grade))
    # the main thread last of its grade: it has the most to lose
    return sorted(found, key=lambda c: (c.grade, c.tid == pid, c.tid))


def state(tid: int) -> str:
    """State of a thread as /proc tells it: R, S, D, t; empty when it has ended."""
    try:
        return Path(f"/proc/{tid}/stat").read_text(errors="replace").rpartition(")")[2].split()[0]
    except (OSError, IndexError):
        return ""


def _grade(task: Path) -> int | None:
    try:
        stands = (task / "stat").read_text(errors="replace").rpartition(")")[2].split()[0]
        call = (task / "syscall").read_text().split()
    except (OSError, IndexError):
        return None
    if stands not in ("S", "R"):
        return None
    if not call or call[0] == "running" or not call[0].isdigit():
        return 3
    number = int(call[0])
    if number in _GENTLE:
        return 0
    return 2 if number in EINTR_CALLS else 1
