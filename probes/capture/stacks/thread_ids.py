"""Threads as the kernel numbers them. py-spy gives the pthread's address up to Python 3.10, and from 3.11 on the number that the thread knows itself by,
which in a container is another one than ours.

The address is that of glibc's (or musl's) ``struct pthread``, which holds the thread's number; it is read, nothing is written or stopped.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final

_OFFSETS: Final = (0x2D0, 0xD0, 0x30, 0x38)  # glibc on x86-64 and on aarch64, musl: tried first
_LOOK = 1024  # bytes of struct pthread that are searched for the number


def numbers(pid: int) -> dict[int, int]:
    """Our number of each thread, by the number that it has in its own namespace. Empty when the process is gone."""
    found: dict[int, int] = {}
    try:
        tasks = [int(name) for name in os.listdir(f"/proc/{pid}/task")]  # noqa: PTH208 - names only
    except (OSError, ValueError):
        return found
    for tid in tasks:
        found[_inner(pid, tid)] = tid
    return found


def _inner(pid: int, tid: int) -> int:
    with suppress(OSError, ValueError, IndexError):
        for line in Path(f"/proc/{pid}/task/{tid}/status").read_text("utf-8", "replace").splitlines():
            if line.startswith("NSpid:"):
                return int(line.split()[-1])
    return tid


def by_address(pid: int, addresses: Collection[int], threads: Mapping[int, int]) -> dict[int, int]:
    """Our number of the threads whose pthread structures stand at `addresses`; those that cannot be told are left out.

    `threads`: what `numbers` gave.
    """
    blocks: dict[int, bytes] = {}
    try:
        memory = os.open(f"/proc/{pid}/mem", os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return {}
    try:
        for address in addresses:
            with suppress(OSError, OverflowError):
                blocks[address] = os.pread(memory, _LOOK, address)
    finally:
        os.close(memory)
    for offset in (*_OFFSETS, *range(0, _LOOK, 4)):
        held = {a: int.from_bytes(b[offset : offset + 4], "little") for a, b in blocks.items()}
        found = {a: threads[v] for a, v in held.items() if v in threads}
        # a thread that has ended leaves 0 behind; at an offset that is only guessed everything has to fit
        enough = bool(found) and (len(found) == len(held) or (offset in _OFFSETS and 2 * len(found) >= len(held)))
        if enough and len(set(found.values())) == len(found):
            return found
    return {}
