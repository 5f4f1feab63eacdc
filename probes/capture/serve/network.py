"""The network namespace of a process: entered by one thread, which ends with what it did there."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable
from pathlib import Path
from threading import Thread
from typing import Generic, TypeVar

T = TypeVar("T")
_CLONE_NEWNET = 0x40000000


def of(pid: int) -> int:
    """What tells the network namespace of `pid` from others; 0 where that cannot be read."""
    try:
        return Path(f"/proc/{pid}/ns/net").stat().st_ino
    except OSError:
        return 0


def enter(pid: int) -> None:
    """The calling thread into the network namespace of `pid`, for good; nothing when it is there. OSError when it may not."""
    there = Path(f"/proc/{pid}/ns/net")
    if there.stat().st_ino == Path("/proc/thread-self/ns/net").stat().st_ino:
        return
    libc = ctypes.CDLL(None, use_errno=True)
    fd = os.open(there, os.O_RDONLY | os.O_CLOEXEC)
    try:
        if libc.setns(fd, _CLONE_NEWNET):
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number))
    finally:
        os.close(fd)


def inside(pid: int, work: Callable[[], T]) -> T:
    """What `work` gives in the network namespace of `pid`; what it raises is raised here."""
    call = _Call(pid, work)
    call.thread.start()
    call.thread.join()
    if call.error is not None:
        raise call.error
    return call.result[0]


class _Call(Generic[T]):
    def __init__(self, pid: int, work: Callable[[], T]) -> None:
        self.result: list[T] = []
        self.error: BaseException | None = None
        self._pid, self._work = pid, work
        self.thread = Thread(target=self._run, name="network", daemon=True)

    def _run(self) -> None:
        try:
            enter(self._pid)
            self.result.append(self._work())
        except BaseException as error:  # noqa: BLE001 - handed to the thread that waits, which raises it
            self.error = error
