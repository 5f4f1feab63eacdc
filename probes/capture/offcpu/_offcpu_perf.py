"""perf: one child that records every switch of the targets' threads with the kernel's stack, and its text into spans.

The threads pay for it at each switch (bench/offcpu.py): so it is left alone where they are switched very often, see `offcpu.BUSIEST`.
"""

from __future__ import annotations

import math
import os
import re
import resource
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from knowledge.text import excerpt
from probes.capture.offcpu import _offcpu_why
from probes.capture.offcpu._offcpu_spans import Spans, function, state_letter
from probes.capture.offcpu._offcpu_standing import tasks

METHODS: Final = ("sched_switch", "context-switches")
MOST_EVENTS: Final = 8192  # descriptors of one perf: it opens an event for each thread and CPU
LARGEST: Final = "24M"  # of perf's file: 3 s of 100,000 switches a second; it stops there
KERNEL_HZ: Final = 49  # samples of the kernel's work for a thread; no divisor of what else goes on at 50 Hz
_TALK = 64 << 10
_LINES = 4_000_000  # of perf script
_NICE = 5
_EVENTS: Final = {"sched_switch": "sched:sched_switch", "context-switches": "context-switches:k"}


def program() -> str | None:
    """Path of perf; None when there is none."""
    return shutil.which("perf")


def environment(folder: Path) -> dict[str, str]:
    """perf reads settings of its user and keeps copies of binaries below HOME."""
    return {
        "PATH": f"{os.defpath}:/usr/sbin:/sbin",
        "LANG": "C.UTF-8",
        "HOME": str(folder),
        "PERF_CONFIG": "/dev/null",
        "PAGER": "cat",
        "NO_COLOR": "1",
    }


def per_thread(threads: int, cpus: int) -> bool:
    """Whether an event for each thread and CPU would be too many. Threads that begin later are not seen then."""
    return threads * cpus * 3 > MOST_EVENTS


def command(
    path: str,
    method: str,
    pids: Sequence[int],
    seconds: float,
    folder: Path,
    control: str,
    wide: bool = False,
) -> list[str]:
    """How perf is called. It is quiet until it is told to begin, and ends by itself when `sleep` does."""
    return [path, "record", "-D", "-1", f"--control=fd:{control}", "-k", "CLOCK_MONOTONIC", "-T", "-B", "-N", "-m", "64",
            "--max-size", LARGEST, "--switch-events", "-e", _EVENTS[method], "-e", f"cpu-clock/freq={KERNEL_HZ}/k", "-c", "1",
            "-g", "--kernel-callchains", *(["--per-thread"] if wide else []), "-p", ",".join(map(str, pids)),
            "-o", str(folder / "perf.data"), "--", "sleep", str(math.ceil(seconds))]  # fmt: skip


class Perf:
    """One perf at work."""

    def __init__(self, path: str, pids: Sequence[int], seconds: float, folder: Path) -> None:
        self.tool, self.method, self.code, self.detail = _version(path), "", "", ""
        self.began = self.ended = 0
        self._path, self._pids, self._seconds, self._folder = path, pids, seconds, folder
        self._child: subprocess.Popen[bytes] | None = None
        self._tell = self._hear = -1
        self._said = bytearray()
        self._reader: threading.Thread | None = None

    def start(self, patience: float = 5.0) -> bool:
        """Whether it records now; `code` says why not. The best method that the kernel permits."""
        for method in METHODS:
            if self._try(method, patience):
                self.method = method
                return True
            said = bytes(self._said).decode("utf-8", "replace")
            late = not said and self._child is not None and self._child.poll() is None
            code = "timeout" if late else _offcpu_why.code_of(said)
            if not self.code or code == "not-permitted":  # what would help the most
                self.code, self.detail = code, _first(said)
            self.kill()
            if code not in ("not-permitted", "no-event"):
                break
        return False

    def _try(self, method: str, patience: float) -> bool:
        ours, tell = os.pipe()
        hear, theirs = os.pipe()
        self._tell, self._hear = tell, hear
        wide = per_thread(sum(len(tasks(pid)) for pid in self._pids), os.cpu_count() or 1)
        argv = command(self._path, method, self._pids, self._seconds, self._folder, f"{ours},{theirs}", wide)
        self._said = bytearray()
        try:
            self._child = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                           env=environment(self._folder), start_new_session=True, pass_fds=(ours, theirs))  # fmt: skip
        except OSError as error:
            self._said += str(error).encode()
            return False
        finally:
            os.close(ours)
            os.close(theirs)
        self._prepare(self._child.pid)
        self._reader = threading.Thread(target=self._listen, args=(self._child,), daemon=True)
        self._reader.start()
        return self._order("enable", patience)

    @staticmethod
    def _prepare(pid: int) -> None:
        with suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, pid, _NICE)
        with suppress(OSError, ValueError):
            hard = resource.prlimit(pid, resource.RLIMIT_NOFILE)[1]
            resource.prlimit(pid, resource.RLIMIT_NOFILE, (hard, hard))

    def _listen(self, child: subprocess.Popen[bytes]) -> None:
        assert child.stdout is not None
        with suppress(OSError, ValueError):
            for line in child.stdout:
                if len(self._said) < _TALK:
                    self._said += line

    def _order(self, word: str, patience: float) -> bool:
        """Tells perf something, and whether it has done so."""
        import select

        gone = False
        try:
            os.write(self._tell, f"{word}\n".encode())
            now = time.monotonic_ns()
            if select.select([self._hear], [], [], patience)[0]:
                gone = not os.read(self._hear, 16)
                if not gone:
                    if word == "enable":
                        self.began = time.monotonic_ns()
                    else:
                        self.ended = now
                    return True
        except OSError:
            gone = True
        if self._child is not None and self._reader is not None:
            if gone:  # it hung up before it has ended: what it says why comes until then
                with suppress(subprocess.TimeoutExpired):
                    self._child.wait(patience)
            if self._child.poll() is not None:
                self._reader.join(1)
        return False

    def stop(self, patience: float = 5.0) -> bool:
        """Ends it; whether its file is whole."""
        if self._child is None:
            return False
        if self._child.poll() is None:
            self._order("disable", min(patience, 2.0))
            with suppress(OSError):
                self._child.send_signal(signal.SIGINT)
        self.ended = self.ended or time.monotonic_ns()
        try:
            self._child.wait(patience)
        except subprocess.TimeoutExpired:
            self.code = "timeout"
            return False
        return (self._folder / "perf.data").exists()

    def kill(self) -> None:
        """It and its `sleep` are gone afterwards."""
        if self._child is not None:
            with suppress(OSError):
                os.killpg(self._child.pid, signal.SIGKILL)
            with suppress(subprocess.TimeoutExpired):
                self._child.wait(2)
            if self._reader is not None:
                self._reader.join(1)
            if self._child.stdout is not None:
                with suppress(OSError):
                    self._child.stdout.close()
        for fd in (self._tell, self._hear):
            with suppress(OSError):
                if fd >= 0:
                    os.close(fd)
        self._child, self._tell, self._hear = None, -1, -1

    def spans(self, patience: float = 10.0) -> Spans:
        """What it recorded. What perf script does not print within `patience` seconds is cut."""
        spans = Spans(self._pids)
        argv = [self._path, "script", "-i", str(self._folder / "perf.data"), "--ns", "--show-switch-events", "--show-lost-events",
                "-F", "pid,tid,time,event,trace,ip,sym"]  # fmt: skip
        child = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                                 env=environment(self._folder), start_new_session=True)  # fmt: skip
        late = threading.Timer(patience, child.kill)
        late.start()
        try:
            assert child.stdout is not None
            read(spans, (line.decode("utf-8", "replace") for line in child.stdout))
        finally:
            late.cancel()
            child.kill()
            spans.cut |= child.wait() != 0
            if child.stdout is not None:
                child.stdout.close()
        size = (self._folder / "perf.data").stat().st_size
        spans.cut |= size >= int(LARGEST[:-1]) << 20
        return spans


def _version(path: str) -> str:
    try:
        done = subprocess.run(
            [path, "--version"], capture_output=True, timeout=5, check=False, stdin=subprocess.DEVNULL
        )
    except (OSError, subprocess.TimeoutExpired):
        return "perf"
    return excerpt(done.stdout.decode("utf-8", "replace"), 60) or "perf"


def _first(said: str) -> str:
    """The first words of perf that say something."""
    lines = [line.strip() for line in said.splitlines() if line.strip() and not line.startswith(("Error:", "Events "))]
    return excerpt(lines[0], 200) if lines else ""


# 7454/7454  48169.447589838: sched:sched_switch: prev_comm=python3 prev_pid=7454 prev_prio=120 prev_state=S ==> next_comm=python3 ...
# 10064/10138 48258.460446631: PERF_RECORD_SWITCH OUT preempt
# 10064/10140 48258.462940584:          4 context-switches:k:
# PERF_RECORD_LOST lost 12
_HEAD = re.compile(r"(?:^|\s)(?P<pid>\d{1,10})/(?P<tid>\d{1,10})\s+(?P<s>\d{1,12})\.(?P<ns>\d{9}):\s+(?P<rest>\S.*)$")
# 	ffffffff821f8298 __schedule
_STACK = re.compile(r"^\s+[0-9a-f]{1,16} (?P<name>\S.*)$")
_STATE = re.compile(r"prev_state=(\S{1,12}) ==>")
_LOST = re.compile(r"PERF_RECORD_LOST\D+(\d{1,15})")


def read(spans: Spans, lines: Iterable[str]) -> None:
    """What perf script prints, into `spans`."""
    at: tuple[int, int, int, str] | None = None  # process, thread, ns, event of the sample whose stack is read
    stack: list[str] = []
    for number, line in enumerate(lines):
        if number >= _LINES:
            spans.cut = True
            break
        if at is not None and (frame := _STACK.match(line)):
            stack.append(function(frame["name"]))
            continue
        if at is not None:
            _sample(spans, at, stack)
            at, stack = None, []
        head = _HEAD.search(line)
        if head is None:
            if lost := _LOST.search(line):
                spans.lost += int(lost[1])
            continue
        pid, tid, ns, rest = int(head["pid"]), int(head["tid"]), int(head["s"]) * 10**9 + int(head["ns"]), head["rest"]
        if rest.startswith("PERF_RECORD_SWITCH IN"):
            spans.enter(pid, tid, ns)
        elif rest.startswith("PERF_RECORD_SWITCH OUT"):
            spans.leave(pid, tid, ns, -1, "R" if "preempt" in rest else "?", sample=False)
        elif lost := _LOST.search(rest):
            spans.lost += int(lost[1])
        else:
            at = (pid, tid, ns, rest)
    if at is not None:
        _sample(spans, at, stack)


def _sample(spans: Spans, at: tuple[int, int, int, str], stack: Sequence[str]) -> None:
    pid, tid, ns, event = at
    number = spans.stack(stack[::-1])
    if "cpu-clock" in event:
        spans.work(pid, tid, ns, number)
    elif "switch" in event:
        found = _STATE.search(event)
        spans.leave(pid, tid, ns, number, state_letter(found[1]) if found else "?", sample=True)
