"""Child processes that may hang, ignore signals or print without end.

A child gets a session of its own, no input, and a deadline. At the deadline it is asked to end
(SIGTERM), then killed, with all that it started. One that even SIGKILL does not end sleeps in the
kernel: it is given up and described, and nobody waits for it.
"""

from __future__ import annotations

import os
import selectors
import signal
import subprocess
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO

from knowledge.record import dataclass

TERM_GRACE = 0.3  # seconds between SIGTERM and SIGKILL
KILL_GRACE = 0.3  # seconds that a killed process has for going away
DRAIN_GRACE = 0.2  # seconds that output of an ended process is waited for: something it started may hold the pipe
ERRORS_CAP = 64 << 10  # bytes of standard error that are kept
LEAVE_GRACE = 1.0  # seconds between the end of its output and the end of a child
_CHUNK = 1 << 18
LOOK, LEAST_LOOK = (
    0.25,
    0.5,
)  # the last share of a deadline, and at least so many seconds, in which a child is looked at
STILL = 0.05  # of that while: a process that was awake for less stands still
STARVED = 0.2  # of the deadline: one that waited longer for a CPU was kept from it
BUSY = "it was still running"


@dataclass(frozen=True, slots=True)
class Stuck:
    """A process that cannot be killed: where it waits."""

    pid: int
    started: str  # field 22 of /proc/PID/stat: with the pid, and within a boot, it names one process
    where: str  # "state D in nvidia_ioctl"


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a child ended."""

    head: bytes
    tail: bytes
    errors: bytes
    lost: int  # bytes of output left out between head and tail
    exit_code: int | None  # None when the deadline ended it; negative: the signal that did
    timed_out: bool = False  # the deadline came before the end of its output
    stuck: Stuck | None = None
    busy: str = (
        ""  # of one that the deadline ended: that it was still running, or waiting for a CPU, and so did not hang
    )


@dataclass(frozen=True, slots=True)
class Spent:
    """Seconds that the threads of a process have been on a CPU, and runnable without one, since they started."""

    cpu: float
    delay: float

    @property
    def total(self) -> float:
        """Seconds for which it was not asleep."""
        return self.cpu + self.delay


class Kept:
    """The head and the tail of a stream, at most about `cap` bytes."""

    def __init__(self, cap: int) -> None:
        self._half = cap // 2
        self._head = bytearray()
        self._tail: deque[bytes] = deque()
        self._held = 0
        self._total = 0

    def add(self, part: bytes) -> None:
        """More of the stream."""
        self._total += len(part)
        room = self._half - len(self._head)
        if room > 0:
            self._head += part[:room]
            part = part[room:]
        if not part:
            return
        self._tail.append(part)
        self._held += len(part)
        while self._held - len(self._tail[0]) >= self._half:
            self._held -= len(self._tail.popleft())

    @property
    def head(self) -> bytes:
        """The first bytes."""
        return bytes(self._head)

    @property
    def tail(self) -> bytes:
        """The last bytes."""
        joined = b"".join(self._tail)
        return joined[-self._half :] if len(joined) > self._half else joined

    @property
    def lost(self) -> int:
        """Bytes between head and tail that are not kept."""
        return self._total - len(self._head) - len(self.tail)


def run(
    program: str, argv: Sequence[str], *, deadline: float, cap: int, env: Mapping[str, str],
    on_start: Callable[[int], None],
) -> Outcome:  # fmt: skip
    """Run `program`, called by the first word of `argv`. OSError when it cannot be started; ValueError for a word that holds a NUL.

    `on_start` is told the process id, which is the id of its process group as well.
    """
    child = subprocess.Popen(
        list(argv), executable=program, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=dict(env),
        start_new_session=True, close_fds=True,
    )  # fmt: skip
    on_start(child.pid)
    assert child.stdout is not None
    assert child.stderr is not None
    out, errors = Kept(cap), Kept(ERRORS_CAP)
    pipes = {child.stdout: out, child.stderr: errors}
    ended, said, busy = _within(child, pipes, max(deadline, 0.0))
    stuck = None
    if ended:
        kill_group(child.pid)  # whatever it left running in its session
    else:
        stuck = _end(child, pipes)
    for pipe in pipes:
        pipe.close()
    return Outcome(
        out.head,
        out.tail,
        errors.head + errors.tail,
        out.lost,
        child.returncode if ended else None,
        not (ended or said),
        stuck,
        "" if ended or said or stuck else busy,
    )


def _within(child: subprocess.Popen[bytes], pipes: Mapping[IO[bytes], Kept], deadline: float) -> tuple[bool, bool, str]:
    """Wait at most `deadline` seconds: whether it ended, whether it said all and cannot leave, and why it is not asleep.

    One that was kept from the CPU gets once more as long as it waited for one: that time was not its own.
    """
    began = time.monotonic()
    until, before = began + deadline, Spent(0.0, 0.0)
    for end in (until - min(max(LOOK * deadline, LEAST_LOOK), deadline / 2), until):
        before, at = spent(child.pid), time.monotonic()
        if _drain(child, pipes, end):
            return True, False, ""
        if time.monotonic() < end:
            return False, True, ""
    now = spent(child.pid)
    awake = now.total - before.total >= STILL * (time.monotonic() - at)
    if awake and now.delay > STARVED * (time.monotonic() - began):
        if _drain(child, pipes, time.monotonic() + min(now.delay, deadline)):
            return True, False, ""
        now = spent(child.pid)
    if not awake:
        stopped = next(iter(_stat(child.pid)), "") in ("T", "t")
        return False, False, f"{BUSY}: somebody had stopped it" if stopped else ""
    return False, False, f"{BUSY}: {now.cpu:.1f} s on a CPU, {now.delay:.1f} s waiting for one"


def spent(pid: int) -> Spent:
    """What a process has used of CPUs and waited for them, as its threads tell it (``/proc/PID/task/*/schedstat``); nothing when
    it has gone or the kernel does not say."""
    cpu = delay = 0
    for path in Path(f"/proc/{pid}/task").glob("*/schedstat"):
        with suppress(OSError, ValueError, IndexError):
            fields = path.read_text().split()
            cpu, delay = cpu + int(fields[0]), delay + int(fields[1])
    return Spent(cpu / 1e9, delay / 1e9)


def _drain(child: subprocess.Popen[bytes], pipes: Mapping[IO[bytes], Kept], until: float) -> bool:
    """Read until the child has ended and its output with it. False at the deadline."""
    with selectors.DefaultSelector() as selector:
        for pipe, kept in pipes.items():
            os.set_blocking(pipe.fileno(), False)
            selector.register(pipe, selectors.EVENT_READ, kept)
        last: float | None = None  # when to stop waiting for output of a child that has ended
        while True:
            now = time.monotonic()
            if child.poll() is not None:
                last = last or now + DRAIN_GRACE
                if not selector.get_map() or now >= last:
                    return True
            elif now >= until:
                return False
            elif not selector.get_map():  # it has said everything, and goes on or cannot leave
                with suppress(subprocess.TimeoutExpired):
                    child.wait(min(until - now, LEAVE_GRACE))
                    continue
                return False
            limit = min(until, last) if last else until
            # a child can end while something that it started holds the pipe: look up now and then
            for key, _ in selector.select(min(max(limit - now, 0.0), 0.05)):
                _pump(key, selector)


def _pump(key: selectors.SelectorKey, selector: selectors.BaseSelector) -> None:
    try:
        part = os.read(key.fd, _CHUNK)
    except BlockingIOError:
        return
    except OSError:
        part = b""
    if part:
        key.data.add(part)
    else:
        selector.unregister(key.fileobj)


def _end(child: subprocess.Popen[bytes], pipes: Mapping[IO[bytes], Kept]) -> Stuck | None:
    for sent, grace in ((signal.SIGTERM, TERM_GRACE), (signal.SIGKILL, KILL_GRACE)):
        _signal(child.pid, sent)
        if _drain(child, pipes, time.monotonic() + grace):
            kill_group(child.pid)
            return None
    # Not reaped: Popen would wait for it when it is collected.
    stuck = Stuck(child.pid, start_time(child.pid), where(child.pid))
    child.returncode = -signal.SIGKILL
    return stuck


def kill_group(pid: int) -> None:
    """Kill a child and all that it started."""
    _signal(pid, signal.SIGKILL)


def _signal(pid: int, number: int) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, number)


def start_time(pid: int) -> str:
    """Field 22 of /proc/PID/stat (clock ticks since boot); empty when there is no such process."""
    return next(iter(_stat(pid)[19:20]), "")


def _stat(pid: int) -> list[str]:
    """Fields of /proc/PID/stat from the third on: the second is a name that may hold anything."""
    try:
        return Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()
    except OSError:
        return []


def where(pid: int) -> str:
    """The state of a process and the kernel function that it sleeps in, as far as /proc tells."""
    states = []
    try:
        tasks = sorted(Path(f"/proc/{pid}/task").iterdir(), key=lambda p: int(p.name))
    except OSError:
        tasks = []
    for task in tasks or [Path(f"/proc/{pid}")]:
        try:
            state = (task / "stat").read_text(errors="replace").rpartition(")")[2].split()[0]
        except (OSError, IndexError):
            continue
        try:
            function = (task / "wchan").read_text(errors="replace").strip()
        except OSError:
            function = ""
        states.append((state != "D", f"state {state}" + (f" in {function}" if function not in ("", "0") else "")))
    return min(states)[1] if states else "it is gone from /proc"
