"""One real process: an argument list, an environment of its own, a deadline, and an end for all that it started."""

from __future__ import annotations

import hashlib
import os
import select
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from enum import StrEnum
from pathlib import Path

from knowledge.record import dataclass

HALF = 32 << 10  # bytes that are kept of the beginning and of the end of its output
GRACE = 2.0  # seconds between SIGTERM and SIGKILL
DRAIN = 0.5  # seconds that output is waited for once it has ended: something it started may hold the pipe
_TICK = 0.1  # seconds between two looks at the clock
_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:/opt/slurm/bin"
_KEPT = ("HOME", "USER", "KUBECONFIG", "SLURM_CONF")  # of ours: they name an account and files, and run nothing


class End(StrEnum):
    """How a command ended."""

    EXITED = "exited"
    TIMEOUT = "timeout"
    STOPPED = "stopped"
    """By a person, or because gpudiag itself was ended."""
    NOT_STARTED = "not_started"


@dataclass(frozen=True, slots=True)
class Result:
    """What came of a command."""

    end: End
    exit_code: int | None  # negative: the signal that ended it
    seconds: float
    output: str  # both streams, the middle left out where it was long
    digest: str  # SHA-256 of all of it
    size: int  # bytes of all of it
    detail: str = ""  # why it was not started


def environment(ours: Mapping[str, str] = os.environ) -> dict[str, str]:
    """What a command sees: the system's own programs, and messages that read the same everywhere."""
    kept = {name: ours[name] for name in _KEPT if name in ours}
    return {"PATH": _PATH, "LANG": "C.UTF-8", "LC_ALL": "C.UTF-8", "TERM": "dumb", **kept}


def run(argv: Sequence[str], seconds: float, stop: Callable[[], bool] = lambda: False) -> Result:
    """Run `argv` for at most `seconds`. Ctrl-C, and `stop`, end it with all that it started: that is a result, too."""
    begin = time.monotonic()
    kept, child = _Kept(), None
    try:
        with _whole():
            child = _started(argv)
        if isinstance(child, str):
            return Result(End.NOT_STARTED, None, 0.0, "", kept.hash.hexdigest(), 0, f"{argv[0]}: {child}")
        end = _followed(child, kept, begin + seconds, stop)
    except KeyboardInterrupt:
        if not isinstance(child, subprocess.Popen):
            raise
        end = End.STOPPED
    if end is not End.EXITED:
        _end(child.pid, child)
        _drain(child, kept)
    assert child.stdout is not None  # PIPE
    child.stdout.close()
    return Result(end, child.returncode, time.monotonic() - begin, kept.text(), kept.hash.hexdigest(), kept.size)


def _started(argv: Sequence[str]) -> subprocess.Popen[bytes] | str:
    """The process, or why there is none."""
    try:
        return subprocess.Popen(
            argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=environment(),
            start_new_session=True, cwd="/",
        )  # fmt: skip
    except (OSError, ValueError) as error:
        return error.strerror if isinstance(error, OSError) and error.strerror else str(error)


@contextmanager
def _whole() -> Iterator[None]:
    """Ctrl-C counts afterwards: a process that has begun, and that nobody knows of yet, would run on."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    told: list[int] = []
    before = signal.getsignal(signal.SIGINT)
    if not callable(before):  # it is ignored, or not ours
        yield
        return
    signal.signal(signal.SIGINT, lambda number, _: told.append(number))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
        if told:
            before(told[0], None)


def _followed(child: subprocess.Popen[bytes], kept: _Kept, until: float, stop: Callable[[], bool]) -> End:
    """Read what it prints until it has ended."""
    open_ = True
    while True:
        if open_:
            open_ = _read(child, kept, _TICK)
        else:
            with suppress(subprocess.TimeoutExpired):
                child.wait(_TICK)
        if child.poll() is not None:
            _drain(child, kept)
            return End.EXITED
        if time.monotonic() > until:
            return End.TIMEOUT
        if stop():
            return End.STOPPED


def _read(child: subprocess.Popen[bytes], kept: _Kept, wait: float) -> bool:
    """Take in what is there; False at the end of its output."""
    assert child.stdout is not None  # PIPE
    if not select.select([child.stdout], [], [], wait)[0]:
        return True
    data = os.read(child.stdout.fileno(), 1 << 16)
    kept.add(data)
    return bool(data)


def _drain(child: subprocess.Popen[bytes], kept: _Kept) -> None:
    until = time.monotonic() + DRAIN
    while time.monotonic() < until and _read(child, kept, 0.05):
        pass


def _end(group: int, child: subprocess.Popen[bytes]) -> None:
    """End the whole group: asked, then killed. One that even that does not end sleeps in the kernel and is left behind."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(group, number)
        until = time.monotonic() + GRACE
        while time.monotonic() < until and _alive(group, child):
            time.sleep(0.02)
        if not _alive(group, child):
            return


def _alive(group: int, child: subprocess.Popen[bytes]) -> bool:
    """Whether anything of the group is left that is no corpse: orphans may wait for long for who collects them."""
    child.poll()
    if child.returncode is None:
        return True
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return any(_member(path, group) for path in Path("/proc").glob("[0-9]*/stat"))


def _member(path: Path, group: int) -> bool:
    try:
        state, _, of = path.read_text(errors="replace").rpartition(")")[2].split()[:3]
    except (OSError, ValueError):
        return False
    return int(of) == group and state not in "ZX"


class _Kept:
    """The beginning and the end of a stream, and a digest of it all."""

    def __init__(self) -> None:
        self._head, self._tail = bytearray(), bytearray()
        self.size, self.hash = 0, hashlib.sha256()

    def add(self, data: bytes) -> None:
        self.size += len(data)
        self.hash.update(data)
        room = HALF - len(self._head)
        self._head += data[:room]
        self._tail += data[room:] if room > 0 else data
        del self._tail[:-HALF]

    def text(self) -> str:
        """As text, with a line that says what was left out."""
        lost = self.size - len(self._head) - len(self._tail)
        middle = f"\n[{lost} bytes left out]\n" if lost else ""
        return self._head.decode(errors="replace") + middle + self._tail.decode(errors="replace")
