"""Many traces at once, each in a process of its own: ``read_many(paths, work, wanted)``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TypeVar

from probes.base import Progress
from probes.many import Outcome, cores, in_processes
from probes.trace.columns import Wanted
from probes.trace.reading.reader import Trace, read

R = TypeVar("R")


def read_many(
    paths: Sequence[str],
    work: Callable[[Trace], R],
    wanted: Wanted,
    *,
    jobs: int | None = None,
    memory: int = 1 << 30,
    progress: Progress | None = None,
    deadline_s: float | None = None,
) -> list[Outcome[R]]:
    """``work(trace)`` for each file, in order of `paths`, as `probes.many.in_processes`; the processes share `memory`."""
    jobs = max(min(jobs or cores(), len(paths)), 1)
    one = partial(_one, work, wanted, memory // jobs)
    return in_processes(paths, one, jobs=jobs, progress=progress, deadline_s=deadline_s)


def _one(work: Callable[[Trace], R], wanted: Wanted, memory: int, path: str, progress: Progress | None) -> R:
    return work(read(path, wanted, memory=memory, progress=progress))
