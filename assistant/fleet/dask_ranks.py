"""Traces of many ranks, each read where it lies, through Dask: the same call for a laptop, SSH, Slurm and Kubernetes.

Only digests travel. Every path gets a status: one that fails, is late, or whose worker dies is a result like the others,
and no task waits for a worker that is gone: placement is by what the workers see, and watched until the deadline.
"""

from __future__ import annotations

import asyncio
import re
import socket
import time
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import CancelledError
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from assistant.fleet.clusters import client, distributed, parse
from assistant.fleet.workers import ANSWER, Client, Future, View, host_of, look, on_host
from knowledge.errors import GpudiagError, UsageError
from knowledge.language import NO_TEXT, Text
from knowledge.record import dataclass
from knowledge.text import excerpt

if TYPE_CHECKING:
    from probes.trace.across.ranks import RankDigest
    from probes.trace.model import Ranks

Work: TypeAlias = Callable[[str], Any]
Progress: TypeAlias = Callable[[int, int], None]  # paths with a final status, paths in all

_TICK: Final = 0.1  # s between looks at the workers
_GONE: Final = Text("the Dask scheduler is gone", "Dask scheduler 已断开")
_DESERTED: Final = Text("all workers are gone", "所有 worker 都已终止")
_ON_HOST: Final = re.compile(r"([A-Za-z0-9][\w.-]+):(/.*)", re.DOTALL)  # two letters at least: C:/x is a drive


class State(StrEnum):
    """How the reading of one rank ended."""

    DONE = "done"
    FAILED = "failed"  # the work raised: no trace, damaged beyond use
    INVISIBLE = "invisible"  # no worker sees the file, or none runs on its host
    LOST = "lost"  # its workers died
    LATE = "late"  # not done at the deadline


@dataclass(frozen=True, slots=True)
class RankStatus:
    """One path's outcome."""

    path: str
    state: State
    reason: Text = NO_TEXT
    worker: str = ""  # address of the worker, where known
    host: str = ""
    seconds: float | None = None  # the work itself
    value: Any = None  # what the work returned


@dataclass(frozen=True, slots=True)
class Fleet:
    """All paths' outcomes, in the order of the paths."""

    statuses: tuple[RankStatus, ...]

    @property
    def values(self) -> tuple[Any, ...]:
        """What was returned for the paths that were done."""
        return tuple(s.value for s in self.statuses if s.state is State.DONE)

    def failed(self, lang: str = "en") -> dict[str, str]:
        """Path -> why it gave nothing."""
        return {s.path: s.reason.in_(lang) for s in self.statuses if s.state is not State.DONE}


def digest_of(path: str) -> RankDigest:
    """The work on a worker: one trace's digest for `ranks.compare`."""
    from probes.trace.across.ranks import NEEDS, digest
    from probes.trace.reading.reader import read

    return digest(read(path, NEEDS))


def compare(fleet: Fleet, lang: str = "en") -> Ranks:
    """The comparison of all ranks that were done; the others are in `failed`."""
    from probes.trace.across.ranks import compare as compared

    return compared(fleet.values, fleet.failed(lang))


@dataclass(slots=True)
class _Task:
    """A path on its way."""

    path: str  # as given
    file: str  # on the worker
    host: str  # pinned to; empty: anywhere the file is seen
    future: Future | None = None
    worker: str = ""  # address
    tries: int = 0
    status: RankStatus | None = None


@dataclass(frozen=True, slots=True)
class _Job:
    """What is asked for."""

    work: Work
    until: float  # of time.monotonic
    retries: int
    workers: int | None  # that will come up; None: not known
    progress: Progress | None


def analyse(paths: Sequence[str], where: str = "local", deadline_s: float = 600.0, *, work: Work = digest_of, retries: int = 1,
            progress: Progress | None = None) -> Fleet:  # fmt: skip
    """Runs `work` on every path on the cluster at `where` (`clusters.FORMS`) and gives each path's status, at the deadline at
    the latest (and what it takes to close the cluster). ``host:/path`` runs on that host only.

    `retries`: how often a path is tried again when its worker dies. Work that hangs ends with a cluster that was started
    here; on a scheduler that was there before it keeps its worker's thread, and the status says so by being late.
    UsageError when the cluster cannot be reached.
    """
    if deadline_s <= 0 or not paths:
        raise UsageError("nothing to read: no path, or no time", hint="give paths and a deadline above 0 s")
    place = parse(where)
    job = _Job(work, time.monotonic() + deadline_s, retries, place.workers, progress)
    tasks = [_Task(p, *_placed(p)) for p in paths]
    with client(place, min(ANSWER, deadline_s)) as c:
        try:
            _run(c, tasks, job)
        finally:
            c.cancel([t.future for t in tasks if t.future is not None], force=True)
    return Fleet(tuple(_final(t) for t in tasks))


def _placed(path: str) -> tuple[str, str]:
    m = _ON_HOST.fullmatch(path)
    return (m[2], m[1]) if m else (str(Path(path).absolute()), "")


def _run(c: Client, tasks: Sequence[_Task], job: _Job) -> None:
    view, done = View(), -1
    while any(t.status is None for t in tasks) and time.monotonic() < job.until:
        if c.status not in ("running", "connecting"):
            break
        look(c, view, [t.file for t in tasks])
        if view.deserted:
            break
        busy = Counter(t.worker for t in tasks if t.status is None and t.future is not None)
        for task in tasks:
            if task.status is None:
                _advance(c, task, view, busy, job)
        count = sum(t.status is not None for t in tasks)
        if job.progress is not None and count != done:
            job.progress(count, len(tasks))
        done = count
        _pause([t.future for t in tasks if t.status is None and t.future is not None], job.until)
    gone = _GONE if c.status not in ("running", "connecting") else _DESERTED if view.deserted else None
    for task in tasks:
        if task.status is None:
            task.status = RankStatus(task.path, State.LOST, gone) if gone else _late(task)


def _pause(futures: Sequence[Future], until: float) -> None:
    """Until a task ends, a tick has passed, or the deadline."""
    left = max(0.0, min(_TICK, until - time.monotonic()))
    if not futures:
        time.sleep(left)
        return
    try:
        distributed().wait(list(futures), timeout=left or 0.01, return_when="FIRST_COMPLETED")
    except TimeoutError:
        return


def _advance(c: Client, task: _Task, view: View, busy: Counter[str], job: _Job) -> None:
    """One step of a task: place it, take its result, or place it again when its workers are gone."""
    if task.future is None:
        _place(c, task, view, busy, job)
    elif task.future.status == "finished":
        task.status = _done(task, job.retries)
    elif task.future.status in ("error", "cancelled", "lost"):
        _ended(task, job.retries)
    elif task.worker not in view.alive:
        _again(task, job.retries)


def _place(c: Client, task: _Task, view: View, busy: Counter[str], job: _Job) -> None:
    """On a worker that sees the file and has a free thread: where one dies, it is known with whose work."""
    able = [a for a in view.alive if task.file in view.sees.get(a, ()) and on_host(task.host, view.names[a])]
    free = [a for a in able if busy[a] < view.alive[a]]
    if free:
        task.worker = min(free, key=lambda a: (busy[a], a))
        busy[task.worker] += 1
        task.tries += 1
        task.future = c.submit(_timed, job.work, task.file, workers=[task.worker], pure=False, retries=0)
    elif not able and view.settled(job.workers):
        task.status = RankStatus(task.path, State.INVISIBLE, _unseen(task, view))


def _timed(work: Work, file: str) -> tuple[str, str, float, Any, str]:
    """On a worker: the work, and its expected failures as words (an exception's own class may not exist elsewhere)."""
    began = time.monotonic()
    value, fault = None, ""
    try:
        value = work(file)
    except (GpudiagError, OSError) as e:
        fault = str(e) or type(e).__name__
    return distributed().get_worker().address, socket.gethostname(), time.monotonic() - began, value, fault


def _done(task: _Task, retries: int) -> RankStatus | None:
    """The result; None when it went with its worker before it was fetched."""
    assert task.future is not None
    try:
        worker, host, seconds, value, fault = task.future.result(timeout=ANSWER)
    except TimeoutError:
        return None  # its worker is busy, or just died: the next look tells
    except (asyncio.CancelledError, CancelledError, distributed().KilledWorker):
        _again(task, retries)
        return task.status
    if fault:
        said = excerpt(fault)
        return RankStatus(task.path, State.FAILED, Text(said, said), worker, host, seconds)
    return RankStatus(task.path, State.DONE, worker=worker, host=host, seconds=seconds, value=value)


def _ended(task: _Task, retries: int) -> None:
    """The work raised, or its worker died."""
    assert task.future is not None
    fault = task.future.exception(timeout=ANSWER) if task.future.status == "error" else None
    if fault is None or isinstance(fault, distributed().KilledWorker):
        _again(task, retries)
        return
    said = excerpt(f"{type(fault).__name__}: {fault}")
    task.status = RankStatus(task.path, State.FAILED, Text(said, said))


def _again(task: _Task, retries: int) -> None:
    """Back to be placed anew, among the workers that are there now; lost when that was tried often enough."""
    assert task.future is not None
    task.future.cancel()
    task.future, task.worker = None, ""
    if task.tries > retries:
        task.status = RankStatus(task.path, State.LOST, Text(f"its worker died {task.tries} times while it was read",
                                                             f"读取时其 worker 终止了 {task.tries} 次"))  # fmt: skip


def _unseen(task: _Task, view: View) -> Text:
    near = [a for a in view.sees if on_host(task.host, view.names[a])]
    if task.host and not near:
        return Text(f"no worker runs on {task.host}", f"{task.host} 上没有 worker")
    where = task.host or ", ".join(sorted({host_of(a) for a in near})[:4])
    return Text(
        f"no worker sees the file ({len(near)} looked, on {where})",
        f"没有 worker 能看到该文件（{where} 上 {len(near)} 个已检查）",
    )


def _late(task: _Task) -> RankStatus:
    if task.future is None:
        return RankStatus(task.path, State.LATE, Text("not begun at the deadline: no worker that sees the file was free", "截止时间前未开始：能看到该文件的 worker 都不空闲"))  # fmt: skip
    return RankStatus(task.path, State.LATE, Text("not done at the deadline", "截止时间前未完成"))


def _final(task: _Task) -> RankStatus:
    return task.status or _late(task)
