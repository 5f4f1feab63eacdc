"""The memory of another process, through /proc/PID/mem. Standard library only."""

from __future__ import annotations

import errno
import os


class Memory:
    """Open memory of one process; it stays that process's, also when the pid is used again. OSError as the kernel gives it."""

    def __init__(self, pid: int) -> None:
        self._fd = os.open(f"/proc/{pid}/mem", os.O_RDWR | os.O_CLOEXEC)

    def close(self) -> None:
        """Let go."""
        os.close(self._fd)

    def read(self, address: int, size: int) -> bytes:
        """`size` bytes. OSError when they are not all there, or the process has gone."""
        data = os.pread(self._fd, size, address)
        if len(data) != size:
            raise OSError(errno.EIO, "not all of it is mapped")
        return data

    def write(self, address: int, data: bytes) -> None:
        """Write all of `data`. OSError when it does not fit."""
        if os.pwrite(self._fd, data, address) != len(data):
            raise OSError(errno.EIO, "not all of it is mapped")
