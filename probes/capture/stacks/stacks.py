"""Python stacks of running processes, by py-spy from outside: nothing runs in the target, and no thread of it is stopped.

`Recording` samples several processes over the same window, one py-spy a process; `dump` looks once. Times are CLOCK_MONOTONIC ns. py-spy
counts from its own start, which is known to within `clock_error` ns of each document: it lies between our starting it and the time
of its last event, which is when its file appears.
"""

from __future__ import annotations

import ctypes
import json
import math
import os
import shutil
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from knowledge.text import clean, digits
from probes.capture.model import STACK_RATE
from probes.capture.stacks import chrometrace, pyspy, thread_ids
from probes.capture.stacks.stack_document import StackDoc, ThreadSamples, clipped, empty, failure, restored

__all__ = [
    "Recording",
    "StackDoc",
    "ThreadSamples",
    "clipped",
    "command",
    "dump",
    "empty",
    "failure",
    "rate_for",
    "restored",
]

LARGEST: Final = 64 << 20  # bytes of py-spy's file that are read: of a usual job 1 MB for 10 s
SLOWEST_RATE: Final = 15  # Hz: two seconds give 30 samples, some more than the 20 that a share needs
STACKS: Final = (
    1000  # a second, of all threads of a process, whatever the machine: 0.15 ms of a CPU each (bench/stacks.py)
)
STACKS_PER_CPU: Final = 64  # and so many more for each CPU: 1 % of the machine
_COARSE: Final = 10_000_000  # ns: how late a file's time may be, a tick of the slowest kernel (CONFIG_HZ=100)
_PREFIX = "gpudiag-stacks-"
_MARGIN = 5  # s that py-spy would go on if nobody ended it
_TALK = 64 << 10  # bytes of py-spy's messages that are kept
_NICE = 5  # sampling gives way to the job where CPUs are short
_LEFT = 86400.0  # seconds after which a folder is taken away that a killed gpudiag left
_PDEATHSIG = 1
_PRCTL = ctypes.CDLL(None).prctl
_ENV: Final = {"PATH": os.defpath, "LANG": "C.UTF-8", "RUST_BACKTRACE": "0", "NO_COLOR": "1"}


def rate_for(threads: int, rate: int = STACK_RATE, cpus: int | None = None) -> int:
    """The rate in Hz at which a process with so many threads is sampled: `rate`, or less where py-spy would need too much of the machine."""
    budget = max(STACKS, STACKS_PER_CPU * (cpus or os.cpu_count() or 1))
    return max(min(SLOWEST_RATE, rate), min(rate, budget // max(threads, 1)))


class Recording:
    """Samples the stacks of processes from `start` to `stop`, at most `seconds` and a little more if nobody stops it.

    ``with Recording([4242, 4243], 50, 2.0) as r: time.sleep(2)``, then ``r.documents``. Never raises for what py-spy or a target does.
    """

    def __init__(self, pids: Sequence[int], rate: int = STACK_RATE, seconds: float = 2.0) -> None:
        self.documents: dict[int, StackDoc] = {}
        self._pids = tuple(dict.fromkeys(pids))
        self._rate, self._seconds = rate, seconds
        self._children: list[_Child] = []
        self._folder: Path | None = None

    def __enter__(self) -> Recording:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def start(self, patience: float = 3.0) -> None:
        """Returns when every py-spy has found its interpreter or has failed, at the latest after `patience` seconds."""
        path = pyspy.program()
        if path is None:
            self.documents = {pid: empty("pyspy-missing", rate=self._rate) for pid in self._pids}
            return
        limit = math.ceil(self._seconds) + _MARGIN
        rate = rate_for(sum(map(_threads, self._pids)), self._rate)  # one for all, so that ranks can be compared
        try:
            _sweep()
            self._folder = Path(tempfile.mkdtemp(prefix=_PREFIX))
            for pid in self._pids:
                self._children.append(_Child(path, pid, rate, limit, self._folder / str(pid)))
        except OSError as error:  # no more processes, or no room for files
            begun = {child.pid for child in self._children}
            self.documents = {pid: empty("failed", str(error), rate=rate) for pid in self._pids if pid not in begun}
        until = time.monotonic() + patience
        for child in self._children:
            child.sampling.wait(max(0.0, until - time.monotonic()))

    def stop(self, patience: float = 5.0) -> dict[int, StackDoc]:
        """Ends the sampling and reads what was written. A py-spy that does not end within `patience` seconds is killed."""
        try:
            for child in self._children:
                child.interrupt()
            until = time.monotonic() + patience
            for child in self._children:
                self.documents[child.pid] = child.document(max(0.1, until - time.monotonic()))
        finally:
            for child in self._children:
                child.kill()
            self._children = []
            if self._folder is not None:
                shutil.rmtree(self._folder, ignore_errors=True)
        return self.documents


def _threads(pid: int) -> int:
    try:
        return len(os.listdir(f"/proc/{pid}/task"))  # noqa: PTH208 - names only
    except OSError:
        return 1


def command(path: str, pid: int, rate: int, seconds: int, output: Path) -> list[str]:
    """How py-spy is called: never with ``--native`` (stalls of 0.4 to 3 s) and never stopping the target at each sample."""
    return [path, "record", "--format", "chrometrace", "--nonblocking", "--idle", "--threads", "--full-filenames",
            "--rate", str(rate), "--duration", str(seconds), "--output", str(output), "--pid", str(pid)]  # fmt: skip


def _end_with_us() -> None:
    """In the child: it is killed with the thread that began it, and does not sample on for nobody (prctl PR_SET_PDEATHSIG)."""
    _PRCTL(_PDEATHSIG, signal.SIGKILL)


def _sweep() -> None:
    """Folders of ours that were left long ago."""
    for path in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
        with suppress(OSError):
            told = path.lstat()
            if told.st_uid == os.geteuid() and time.time() - told.st_mtime > _LEFT:
                shutil.rmtree(path, ignore_errors=True)


class _Child:
    """One py-spy at work."""

    def __init__(self, path: str, pid: int, rate: int, limit: int, folder: Path) -> None:
        self.pid, self.rate, self.file = pid, rate, folder / "stacks.json"
        self.sampling = threading.Event()  # it has begun, or will not
        self.said = bytearray()
        self._tool = pyspy.version(path)
        self._wrote = 0  # ns when it said that its file is there
        self._before = thread_ids.numbers(pid)
        folder.mkdir()
        argv = command(path, pid, rate, limit, self.file)
        self._called = time.monotonic_ns()
        self._process = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                         env=_ENV, start_new_session=True, preexec_fn=_end_with_us)  # noqa: PLW1509  # fmt: skip
        with suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, self._process.pid, _NICE)
        self._reader = threading.Thread(target=self._listen, daemon=True)
        self._reader.start()

    def _listen(self) -> None:
        assert self._process.stdout is not None
        with suppress(OSError, ValueError):
            for line in self._process.stdout:
                if b"Wrote" in line:
                    self._wrote = time.monotonic_ns()
                if len(self.said) < _TALK:
                    self.said += line
                if b"Sampling process" in line:
                    self.sampling.set()
        self.sampling.set()

    def interrupt(self) -> None:
        """Asks for an end: py-spy writes its file then."""
        with suppress(OSError):
            self._process.send_signal(signal.SIGINT)

    def kill(self) -> None:
        """Ends it for good; a py-spy that samples without stopping its target can be killed at any moment."""
        with suppress(OSError):
            self._process.kill()
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(1)
        if self._process.stdout is not None:
            self._reader.join(1)
            with suppress(OSError):
                self._process.stdout.close()

    def document(self, patience: float) -> StackDoc:
        try:
            self._process.wait(patience)
        except subprocess.TimeoutExpired:
            return empty("timeout", tool=self._tool, rate=self.rate)
        self._reader.join(1)
        said = bytes(self.said).decode("utf-8", "replace")
        try:
            with self.file.open("rb") as file:
                data = file.read(LARGEST)
                size = os.fstat(file.fileno()).st_size
        except OSError:
            code = pyspy.code_of(said, self.pid) if said.strip() else "timeout"  # ended before it had begun to sample
            return empty(code, pyspy.message(said), tool=self._tool, rate=self.rate)
        trace = chrometrace.read(data, cut=size > len(data))
        if not any(t.spans for t in trace.threads.values()):
            code = "ended" if "process exited" in said else "nothing-sampled"
            return empty(code, tool=self._tool, rate=self.rate)
        return self._made(trace, said)

    def _made(self, trace: chrometrace.Trace, said: str) -> StackDoc:
        start, error = self._start(trace.last * 1000)
        after = thread_ids.numbers(self.pid)
        names = _numbers(self.pid, trace, self._before | after)
        period = 1_000_000 // self.rate  # us
        threads: dict[str, ThreadSamples] = {}
        for label, thread in trace.threads.items():
            key = names.get(label, label)
            spans = thread.spans
            # py-spy goes on with the last stack of a thread that has ended
            if spans and sum(spans[-1][:2]) >= trace.last and digits(key) not in (None, *after.values()):
                spans[-1] = (spans[-1][0], min(spans[-1][1], period), spans[-1][2])
            rows = [[start + since * 1000, us * 1000, stack] for since, us, stack in spans]
            threads[key] = {"name": clean(thread.name)[:100], "samples": rows}
        times = [row for t in threads.values() for row in t["samples"]]
        looked = _told(said, "Samples") * 10**9 / sum(r[1] for r in times)  # it counts each thread of each sample
        return {
            "tool": self._tool, "rate": self.rate, "began": min(r[0] for r in times), "ended": max(r[0] + r[1] for r in times), "error": "",
            "frames": [[name, file, line] for name, file, line in trace.frames], "stacks": [list(s) for s in trace.stacks],
            "threads": threads, "clock_error": error, "torn": trace.torn, "misses": _told(said, "Errors"), "cut": trace.cut,
            "left_early": "process exited" in said, "real_rate": round(looked, 2) if looked else float(self.rate),
        }  # fmt: skip

    def _start(self, last: int) -> tuple[int, int]:
        """When py-spy's clock stood at 0, and by how much that may be wrong, ns. `last`: its last event, on its clock."""
        low, high = self._called, (self._wrote or time.monotonic_ns()) - last
        with suppress(OSError):
            # the folder changed when the file was made, right before the last event; kernels stamp files by the tick
            now = time.time_ns() - time.monotonic_ns()
            made = self.file.parent.stat().st_mtime_ns - now - last
            low, high = max(low, made), min(high, made + _COARSE)
        if high < low:  # the wall clock was set meanwhile
            low, high = self._called, (self._wrote or time.monotonic_ns()) - last
        high = max(low, high)
        return (low + high) // 2, (high - low) // 2


def _numbers(pid: int, trace: chrometrace.Trace, threads: dict[int, int]) -> dict[str, str]:
    """The key of each of py-spy's threads: our OS number where it can be told."""
    known = {k: str(threads[n]) for k in trace.threads if (n := digits(k)) is not None and n in threads}
    addresses = {int(k, 16): k for k in trace.threads if k.startswith("0x")}
    if addresses:
        known |= {addresses[a]: str(tid) for a, tid in thread_ids.by_address(pid, addresses, threads).items()}
        for key in addresses.values():
            if key not in known and trace.threads[key].name == "MainThread" and str(pid) not in known.values():
                known[key] = str(pid)
    return known


def _told(said: str, name: str) -> int:
    """A number of py-spy's last line, 0 without one."""
    # py-spy> Wrote chrome trace to 't.json'. Samples: 198 Errors: 0
    tail = said.rpartition(f"{name}: ")[2].split()
    return (digits(tail[0]) or 0) if tail else 0


def dump(pid: int, deadline: float = 3.0) -> dict[str, Any]:
    """The stacks of a process right now: {"at": ns, "error", "code", "detail", "threads": [{"tid", "name", "active", "owns_gil", "frames"}]}.

    Frames are [function, file, line], outermost first; `tid` is None where it cannot be told; `active` is what the kernel says (state R).
    Nothing is stopped. Asked twice when the first answer is none. Never raises.
    """
    path = pyspy.program()
    if path is None:
        return _none("pyspy-missing", "")
    answer: dict[str, Any] = {}
    until = time.monotonic() + deadline
    for _ in range(2):
        answer = _dumped(path, pid, max(0.2, until - time.monotonic()))
        if not answer["error"] or answer["code"] in ("no-permission", "ended"):
            break
    return answer


def _none(code: str, detail: str) -> dict[str, Any]:
    return {
        "at": time.monotonic_ns(),
        "error": pyspy.why(code, detail).why.en,
        "code": code,
        "detail": detail,
        "threads": [],
    }


def _dumped(path: str, pid: int, deadline: float) -> dict[str, Any]:
    at = time.monotonic_ns()
    try:
        done = subprocess.run([path, "dump", "--json", "--nonblocking", "--pid", str(pid)], capture_output=True, timeout=deadline,
                              check=False, stdin=subprocess.DEVNULL, env=_ENV)  # fmt: skip
    except subprocess.TimeoutExpired:
        return _none("timeout", "")
    except OSError as error:
        return _none("failed", str(error))
    try:
        rows = json.loads(done.stdout[:LARGEST]) if done.returncode == 0 else []
    except (ValueError, RecursionError):
        rows = []
    threads = [_thread(row) for row in rows if isinstance(row, dict)] if isinstance(rows, list) else []
    if not threads:
        said = done.stderr.decode("utf-8", "replace")
        return _none(pyspy.code_of(said, pid), pyspy.message(said))
    _name(pid, threads)
    return {"at": at, "error": "", "code": "", "detail": "", "threads": threads}


def _thread(row: dict[str, Any]) -> dict[str, Any]:
    frames = row.get("frames")
    kept = [
        [str(f.get("name") or "?"), str(f.get("filename") or ""), int(f.get("line") or 0)]
        for f in reversed(frames if isinstance(frames, list) else [])
        if isinstance(f, dict)
    ]
    return {"tid": row.get("os_thread_id"), "address": row.get("thread_id"), "name": clean(str(row.get("thread_name") or ""))[:100],
            "active": bool(row.get("active")), "owns_gil": bool(row.get("owns_gil")), "frames": kept[-chrometrace.DEEPEST :]}  # fmt: skip


def _name(pid: int, threads: list[dict[str, Any]]) -> None:
    """OS numbers as we see them, and whether the kernel lets a thread run."""
    known = thread_ids.numbers(pid)
    unknown = [t["address"] for t in threads if t["tid"] is None and isinstance(t["address"], int)]
    told = thread_ids.by_address(pid, unknown, known) if unknown else {}
    for thread in threads:
        address, tid = thread.pop("address"), thread["tid"]
        thread["tid"] = known.get(tid, tid) if isinstance(tid, int) else told.get(address)
        if thread["tid"] is None and thread["name"] == "MainThread":
            thread["tid"] = pid
        with suppress(OSError, IndexError):
            if thread["tid"] is not None:
                stat = Path(f"/proc/{pid}/task/{thread['tid']}/stat").read_text("utf-8", "replace")
                thread["active"] = stat.rpartition(")")[2].split()[0] == "R"
