"""Where threads stand in the kernel at one moment, by /proc: a thread that never leaves its wait is in no record of switches."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from probes.capture.offcpu._offcpu_spans import Standing, function

MOST: Final = 1024  # threads of a process that are looked at
# [<0>] do_nanosleep+0x5e/0x130
_LINE = re.compile(r"^\[<[0-9a-f]+>\] (\S+)", re.MULTILINE)


def tasks(pid: int) -> list[int]:
    """The threads of a process, the main one first."""
    try:
        found = [int(name) for name in os.listdir(f"/proc/{pid}/task") if name.isdigit()]  # noqa: PTH208 - names only
    except OSError:
        return []
    return sorted(found, key=lambda tid: (tid != pid, tid))[:MOST]


def look(pids: Sequence[int]) -> dict[int, Standing]:
    """Every thread of the processes; a stack only of those that do not run."""
    return {tid: found for pid in pids for tid in tasks(pid) if (found := one(pid, tid)) is not None}


def switches(pids: Iterable[int]) -> int:
    """How often their threads have been switched so far."""
    total = 0
    for pid in pids:
        for tid in tasks(pid):
            with suppress(OSError, ValueError):
                text = Path(f"/proc/{pid}/task/{tid}/status").read_text("utf-8", "replace")
                total += sum(
                    int(n) for n in re.findall(r"^(?:non)?voluntary_ctxt_switches:\s+(\d+)$", text, re.MULTILINE)
                )
    return total


def one(pid: int, tid: int) -> Standing | None:
    """How one thread stands; None when it is gone."""
    folder = f"/proc/{pid}/task/{tid}"
    try:
        stood = _stood(folder, pid)
        if stood.state in "RXZ":
            return stood
        if functions := _functions(folder):
            return stood._replace(functions=functions)
        # A thread on a CPU has no stack to be read: it may have woken since its state was read.
        now = _stood(folder, pid)
        if now.state in "RXZ" or now == stood:
            return now
        return now._replace(state="R")
    except (OSError, IndexError):
        return None


def _stood(folder: str, pid: int) -> Standing:
    head, _, tail = Path(f"{folder}/stat").read_text("utf-8", "replace").rpartition(")")
    ran = -1
    with suppress(OSError, ValueError, IndexError):
        ran = int(Path(f"{folder}/schedstat").read_text("ascii").split()[0])
    return Standing(pid, head.partition("(")[2], tail.split()[0], ran, ())


def _functions(folder: str) -> tuple[str, ...]:
    """Outermost first. The whole stack needs CAP_SYS_ADMIN; the function alone that it waits in needs what py-spy needs."""
    with suppress(OSError):
        found = _LINE.findall(Path(f"{folder}/stack").read_text("ascii", "replace"))
        if found:
            return tuple(function(f) for f in reversed(found))
    with suppress(OSError):
        name = function(Path(f"{folder}/wchan").read_text("ascii", "replace"))
        return (name,) if name not in ("?", "0") else ()
    return ()
