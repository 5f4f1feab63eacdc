"""Ways to a trace that need no call in the target: a server that traces itself, and a job that asks a daemon for orders.

Both write a file themselves, where we tell them or where they were told; it is taken over as a stranger's: through the
target's root, no link followed, no larger than it may be.
"""

from __future__ import annotations

import os
import secrets
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Event
from typing import Final

from knowledge.language import Text
from knowledge.text import excerpt
from probes.capture import _kept
from probes.capture._inroot import file_at, open_at
from probes.capture.model import Item, Outcome, Part, Process, Refusal, Rung, Target, Window
from probes.capture.serve import dynolog, endpoints
from probes.capture.whom import _room

MOST: Final = 1 << 30  # bytes of a trace
PATIENCE: Final = 30.0  # seconds that a trace is waited for after the window
FOLDERS: Final = ("/tmp", "/var/tmp", "/dev/shm")


def ways(target: Target, window: Window) -> tuple[Rung, ...]:
    """Which of them are open. Looks, and touches nothing."""
    found = []
    if isinstance(endpoints.find(target.process), endpoints.Endpoint):
        found.append(Rung.ENDPOINT)
    if not window.by_iterations and dynolog.listens(
        target.process
    ):  # its iterations need a job that counts them for it
        found.append(Rung.DYNOLOG)
    return tuple(found)


def capture(
    target: Target, items: Sequence[Item], rung: Rung, window: Window, folder: Path, *, stop: Event
) -> list[Part]:
    """The parts that came by `rung`. Never raises for what the server or the job does."""
    began = time.monotonic_ns()
    try:
        with _private(target.process) as place:
            work = _endpoint if rung is Rung.ENDPOINT else _dynolog
            got = work(target, items, window, place, stop)
            if isinstance(got, Refusal):
                return [Part(i, Outcome.FAILED, rung, got.why, got.remedy) for i in items]
            name = _taken(target.process, got, folder)
    except endpoints.Unavailable as error:
        return [Part(i, Outcome.FAILED, rung, error.refusal.why, error.refusal.remedy) for i in items]
    except (OSError, ValueError) as error:
        why = excerpt(getattr(error, "strerror", None) or str(error), 200)
        return [Part(i, Outcome.FAILED, rung, Text(why, why)) for i in items]
    return [Part(i, Outcome.OK, rung, file=name, began=began, ended=time.monotonic_ns()) for i in items]


def _endpoint(target: Target, items: Sequence[Item], window: Window, place: str, stop: Event) -> str | Refusal:
    """The trace of the server, as its process names it."""
    found = endpoints.find(target.process)
    if not isinstance(found, endpoints.Endpoint):
        return found or Refusal("no-endpoint", Text("its server has no endpoint any more", "其服务已没有端点"))
    seconds = window.duration_ns / 1e9 + PATIENCE
    paths = endpoints.capture(found, window, frozenset(items), place, deadline=seconds, stop=stop)
    own = [p for p in paths if str(target.process.inner_pid or target.process.pid) in p.rsplit("/", 1)[-1]]
    return (own or list(paths))[0]


def _dynolog(target: Target, items: Sequence[Item], window: Window, place: str, stop: Event) -> str | Refusal:
    """The trace that the job writes when it takes the order."""
    process = target.process
    log = f"{place}/trace.json"
    order = dynolog.Order(process, dynolog.order(window, frozenset(items), log))
    with dynolog.handing_out([order], stop=stop) as refusal:
        if refusal is not None:
            return refusal
        if not order.taken:
            return Refusal("not-asked", Text("the job did not ask for orders in time", "作业未在限期内请求指令"))
        return _awaited(process, dynolog.written(log, process), window, stop)


def _awaited(process: Process, path: str, window: Window, stop: Event) -> str | Refusal:
    """The trace at `path` once it no longer grows."""
    until = time.monotonic() + dynolog.WARM_UP + window.duration_ns / 1e9 + PATIENCE
    size = -1
    while time.monotonic() < until and not stop.is_set():
        with suppress(OSError):
            now = _size(process, path)
            if now and now == size:
                return path
            size = now
        stop.wait(0.3)
    return Refusal("no-trace", Text("the job wrote no trace in time", "作业未在限期内写出轨迹"))


# --- files of the target ---------------------------------------------------------------------


@contextmanager
def _private(process: Process) -> Iterator[str]:
    """A folder where the target may write, as it calls it; it is gone afterwards. OSError where there is no place."""
    above = _room.folder(process)
    if not above:
        raise OSError(28, "no folder of the target has room")
    name = f".gpudiag-{process.inner_pid or process.pid}-{secrets.token_hex(6)}"
    parent = open_at(process.root, above, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.mkdir(name, 0o700, dir_fd=parent)
        at = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=parent)
        try:
            if os.fstat(at).st_uid != os.geteuid() or os.listdir(at):  # noqa: PTH208 - it would be no new one
                raise OSError(1, "the folder was taken by another")
            if os.geteuid() != process.uid:
                os.fchown(at, process.uid, -1)
            yield f"{above}/{name}"
        finally:
            for made in os.listdir(at):  # noqa: PTH208 - of a descriptor
                with suppress(OSError):
                    os.unlink(made, dir_fd=at)
            os.close(at)
            with suppress(OSError):
                os.rmdir(name, dir_fd=parent)
    finally:
        os.close(parent)


def _size(process: Process, path: str) -> int:
    handle = open_at(process.root, path, os.O_PATH)
    try:
        return os.fstat(handle).st_size
    finally:
        os.close(handle)


def _taken(process: Process, path: str, folder: Path) -> str:
    """Copies the trace that the target calls `path`; the name of the copy. OSError when it is no plain file, or too large."""
    name = f"trace-{process.pid}.json{'.gz' if path.endswith('.gz') else ''}"
    handle = file_at(process.root, path, os.O_RDONLY | os.O_NOFOLLOW)
    with os.fdopen(handle, "rb") as stream:
        told = os.fstat(stream.fileno())
        if told.st_nlink != 1 or told.st_size > MOST:
            raise OSError(1, "the trace that it wrote is no plain file, or too large")
        _kept.copy(stream, folder / name, MOST)
    return name
