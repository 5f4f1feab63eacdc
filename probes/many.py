"""Many files at once, each in a process of its own: ``in_processes(paths, work)``.

A worker serves file after file. What kills one (no memory left) costs the file it held; another takes its place.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from time import monotonic
from typing import Any, Final, Generic, TypeVar

from knowledge.errors import GpudiagError
from knowledge.record import dataclass
from probes.base import Progress

R = TypeVar("R")
_SAID_EVERY: Final = 0.2  # s between two words on progress
_GRACE: Final = 2.0  # s for a worker to end after it was told to


@dataclass(frozen=True, slots=True)
class Outcome(Generic[R]):
    """What became of one file: a value, or why there is none."""

    path: str
    value: R | None = None
    error: str = ""  # one sentence; empty: `value` is the result

    @property
    def ok(self) -> bool:
        """Whether there is a result."""
        return not self.error


def in_processes(
    paths: Sequence[str],
    work: Callable[[str, Progress | None], R],
    *,
    jobs: int | None = None,
    progress: Progress | None = None,
    deadline_s: float | None = None,
) -> list[Outcome[R]]:
    """``work(path, progress)`` for each file, in order of `paths`; `work` and its result must be picklable.

    `jobs` processes (default: a core each). A file that fails is an outcome and stops no other one; after `deadline_s` seconds
    what is not ready is one too. Whatever happens, no process is left behind.
    """
    jobs = max(min(jobs or cores(), len(paths)), 1)
    if jobs == 1 and deadline_s is None:
        return [_outcome(path, *_answer(path, work, progress)) for path in paths]
    until = None if deadline_s is None else monotonic() + deadline_s
    found: dict[int, Outcome[R]] = {}
    with _pool(work) as pool:
        for number, path, answer in pool.run(list(enumerate(paths)), jobs, until, progress):
            found[number] = _outcome(path, *answer)
    late = f"not ready within {deadline_s:g} s" if deadline_s is not None else "not read"
    return [found.get(i) or Outcome(path, None, late) for i, path in enumerate(paths)]


def cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _outcome(path: str, value: Any, error: str) -> Outcome[Any]:
    return Outcome(path, value, error)


def _answer(path: str, work: Callable[[str, Progress | None], Any], progress: Progress | None) -> tuple[Any, str]:
    """The result, or why there is none."""
    try:
        return work(path, progress), ""
    except GpudiagError as error:
        return None, str(error)
    except MemoryError:
        return None, f"{path}: not enough memory"


def _serve(pipe: Connection, work: Callable[[str, Progress | None], Any]) -> None:
    """A worker: takes paths and sends progress and answers until the other side is gone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C goes to the whole group; the parent ends the workers
    last = 0.0

    def say(path: str, done: int, size: int | None) -> None:
        nonlocal last
        if monotonic() - last > _SAID_EVERY:
            last = monotonic()
            pipe.send((path, done, size))

    try:
        while True:
            pipe.send(_answer(pipe.recv(), work, say))
    except (EOFError, BrokenPipeError, ConnectionResetError):
        return


class _Pool:
    """Workers and what each is at."""

    def __init__(self, work: Callable[[str, Progress | None], Any]) -> None:
        self._work = work
        self._busy: dict[Connection, tuple[BaseProcess, int, str]] = {}

    def run(
        self, todo: list[tuple[int, str]], jobs: int, until: float | None, progress: Progress | None
    ) -> Iterator[tuple[int, str, tuple[Any, str]]]:
        """Number, path and answer of each file as it is ready; ends when all are, or at `until` (monotonic)."""
        todo.reverse()
        while todo and len(self._busy) < jobs:
            self._start(*todo.pop())
        while self._busy:
            ready = wait(list(self._busy), None if until is None else max(until - monotonic(), 0))
            if not ready:
                return
            for pipe in [p for p in self._busy if p in ready]:
                process, number, path = self._busy.pop(pipe)
                try:
                    answer = pipe.recv()
                except (EOFError, ConnectionResetError):
                    process.join(_GRACE)
                    yield number, path, (None, f"{path}: the process that read it ended ({_how(process.exitcode)})")
                    if todo:
                        self._start(*todo.pop())
                    continue
                if len(answer) == 3:
                    self._busy[pipe] = process, number, path
                    if progress is not None:
                        progress(*answer)
                    continue
                yield number, path, answer
                self._next(pipe, process, todo)

    def _start(self, number: int, path: str) -> None:
        context = get_context("spawn")
        ours, theirs = context.Pipe()
        process = context.Process(target=_serve, args=(theirs, self._work), daemon=True)
        process.start()
        theirs.close()
        self._busy[ours] = process, number, path
        ours.send(path)

    def _next(self, pipe: Connection, process: BaseProcess, todo: list[tuple[int, str]]) -> None:
        """Gives the worker another file, or lets it go."""
        if todo:
            number, path = todo.pop()
            self._busy[pipe] = process, number, path
            pipe.send(path)
        else:
            pipe.close()
            process.join(_GRACE)

    def stop(self) -> None:
        """Ends all workers, kindly and then not."""
        for process, _, _ in self._busy.values():
            process.terminate()
        for pipe, (process, _, _) in self._busy.items():
            process.join(_GRACE)
            if process.is_alive():
                process.kill()
                process.join()
            pipe.close()


def _how(code: int | None) -> str:
    if code is not None and code < 0:
        return f"signal {-code}" + (", often for want of memory" if -code == signal.SIGKILL else "")
    return f"exit code {code}"


@contextmanager
def _pool(work: Callable[[str, Progress | None], Any]) -> Iterator[_Pool]:
    pool = _Pool(work)
    try:
        yield pool
    finally:
        pool.stop()
