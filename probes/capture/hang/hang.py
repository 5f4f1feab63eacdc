"""The hang path: every rank is looked at twice, its stacks and what /proc tells, and nothing runs in any of them.

py-spy reads the memory of the processes without stopping them (``--nonblocking``), so a job that hangs is not touched, and
one that does not hang is not either. What it found is kept raw; `standing` and `standing_job` conclude from it.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, TypeVar

from knowledge.text import digits
from probes.capture.hang import hang_proc
from probes.capture.hang.standing import LEAST_S, members, standing, threads_of
from probes.capture.hang.standing_job import jobs
from probes.capture.model import Target
from probes.capture.stacks import sources, stacks

GAP_S: Final = 0.5
PATIENCE_S: Final = LEAST_S + 0.3  # after which a third look decides, where two do not
DUMP_S: Final = 2.0  # for one py-spy: it needs 0.05 s; a process whose memory is locked lets it wait for ever
ENVIRONMENT_S: Final = 1.0
_AT_ONCE: Final = 16
_T = TypeVar("_T")


def look(
    targets: Sequence[Target], gap: float = GAP_S, *, patience: float = PATIENCE_S, gpus: Mapping[str, float] | None = None,
    flight: Mapping[str, Any] | None = None,
) -> dict[str, Any]:  # fmt: skip
    """The ``hang`` part of a capture: looks at all `targets` `gap` seconds apart, and one more where two cannot tell.

    Takes `gap` and a tenth of a second a rank; `patience` where a third look is needed. Never raises, never injects. `gpus`:
    utilisation in percent by PCI address, where it is known; `flight`: what `flight_files.gather` found.
    """
    began = time.monotonic_ns()
    pids = [t.process.pid for t in targets]
    part = _begun(targets, gpus, flight)
    _look(part, targets)
    part["sources"] = _sources(part, pids)
    _sleep_until(began, gap)
    _look(part, targets)
    if _undecided(part):
        _sleep_until(began, max(patience, gap))
        _look(part, targets)
    part["proc"]["sockets"] = {str(pid): found for pid in pids if (found := hang_proc.sockets(pid))}
    part["began"], part["ended"] = began, time.monotonic_ns()
    return part


def _begun(
    targets: Sequence[Target], gpus: Mapping[str, float] | None, flight: Mapping[str, Any] | None
) -> dict[str, Any]:
    pids = [t.process.pid for t in targets]
    none: dict[str, str] = {}  # an environment lies in the process's memory, which may be locked
    env = dict(zip(pids, _side_by_side(hang_proc.environment, pids, ENVIRONMENT_S, none), strict=True))
    sizes = {str(pid): digits(e.get("LOCAL_WORLD_SIZE", "")) for pid, e in env.items()}
    worlds = {pid: size for pid, size in sizes.items() if size is not None}
    proc: dict[str, Any] = {"machine": os.uname().machine, "looks": [], "local_world": worlds}
    if worlds:
        known = _side_by_side(lambda _: hang_proc.ranks_of_job(env), [0], ENVIRONMENT_S, None)
        if known[0] is not None:
            proc["ranks"] = known[0]
    rows = [
        {"process": {"pid": t.process.pid}, "rank": t.rank, "local_rank": t.local_rank, "world_size": t.world_size, "job": t.job,
         "helpers": [{"pid": h.pid} for h in t.helpers]} for t in targets
    ]  # fmt: skip
    return {
        "dumps": [],
        "proc": proc,
        "targets": rows,
        "gpus": dict(gpus) if gpus else None,
        "flight": dict(flight) if flight else None,
    }


def _sleep_until(began: int, seconds: float) -> None:
    time.sleep(max(began / 1e9 + seconds - time.monotonic(), 0))


def _look(part: dict[str, Any], targets: Sequence[Target]) -> None:
    """One look: /proc first, for it is the quicker, then the stacks."""
    everyone = [p.pid for t in targets for p in (t.process, *t.helpers)]
    part["proc"]["looks"].append(hang_proc.look(dict.fromkeys(everyone)))
    pids = [t.process.pid for t in targets]
    late = {"at": time.monotonic_ns(), "error": "py-spy hangs and cannot be ended", "code": "timeout", "threads": []}
    for pid, found in zip(
        pids, _side_by_side(lambda pid: stacks.dump(pid, DUMP_S), pids, DUMP_S + 1, late), strict=True
    ):
        part["dumps"].append({"pid": pid} | found)


def _side_by_side(do: Callable[[int], _T], pids: Sequence[int], deadline: float, late: _T) -> list[_T]:
    """`do` of each pid, some at a time; `late` for those that do not return in `deadline` seconds. Their threads are left behind."""
    found: dict[int, _T] = {}
    turns = threading.Semaphore(_AT_ONCE)

    def run(at: int, pid: int) -> None:
        try:
            found[at] = do(pid)
        finally:
            turns.release()

    threads = []
    for at, pid in enumerate(pids):
        if not turns.acquire(timeout=deadline):
            break
        threads.append(threading.Thread(target=run, args=(at, pid), daemon=True))
        threads[-1].start()
    until = time.monotonic() + deadline
    for thread in threads:
        thread.join(max(until - time.monotonic(), 0))
    return [found.get(at, late) for at in range(len(pids))]


def _undecided(part: Mapping[str, Any]) -> bool:
    """Whether a further look may tell what these cannot: something stood still, but for a short time, or it polls or spins."""
    found = members(part["targets"])
    if any(verdict.hung is None for verdict in jobs(part, found)):
        return True
    return any(standing(part, m).still is None for m in found)


def _sources(part: Mapping[str, Any], pids: Iterable[int]) -> dict[str, dict[str, str]]:
    """The source lines that the threads stand on, by pid and ``file:line``: some calls wait in C, and only the line names them."""
    tops = {d["pid"]: {(s[-1][1], s[-1][2]) for s in threads_of(d).values() if s} for d in part["dumps"]}
    wanted = [pid for pid in pids if tops.get(pid)]
    none: dict[str, str] = {}
    found = _side_by_side(lambda pid: sources.lines(pid, sorted(tops[pid]), 1.0), wanted, 2.0, none)
    return {str(pid): lines for pid, lines in zip(wanted, found, strict=True) if lines}
