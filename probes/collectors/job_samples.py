"""Threads, I/O, limits and the node around some processes, read many times a second over a window. Nothing is touched.

Run alone: ``python -I -S -B job_samples.py --deadline 5 --pid 4242 [--pid ...] [--runtime 4242:7f00-7fff] [--hz 50]
[--seconds 2 | --until-mono NS] [--root DIR]``. Needs Linux's /proc and the standard library of Python 3.8. Prints one JSON
document, schema ``gpudiag/job-samples/1``, at the end of the window, before its deadline, or on SIGTERM.

Times are CLOCK_MONOTONIC ns; counters are raw and cumulative (CPU and run-queue wait in ns, from schedstat). A column of
`rows` has one value per time of `at`, null where the thread was not there or was not asked then (`blkio`, in ticks, stands there
only where it counts at all). What cannot be read is
``{"status": "unsupported|denied|failed", "detail": ...}``.

``--runtime PID:START-END`` (hexadecimal) is where the object `_PyRuntime` lies in the process: a thread that waits in
futex on an address inside it waits for the interpreter's own lock (`gil` 1).

The sampler keeps itself below `BUDGET` of a core: with many threads it looks less often, and says so in `slowed`. What
may sleep in the kernel is asked by threads of its own; what does not answer is named in `hung` and left behind.
"""

# thousands of small reads: pathlib would cost more than they do
# ruff: noqa: PTH116, PTH123, PTH208, B905 - zip() takes no `strict` in Python 3.9
from __future__ import annotations

import argparse
import errno
import json
import os
import resource
import select
import signal
import sys
import threading
import time

TYPE_CHECKING = False  # importing typing would cost a tenth of the start
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

SCHEMA = "gpudiag/job-samples/1"
BUDGET = 0.018  # of a core, for looking at threads; all else together stays below half of that
SLOW_BUDGET = 0.004  # of a core: processes, groups, node
SLOW = 0.25  # seconds between two looks at what is not a thread
RESCAN = 0.25  # seconds between two looks for new threads, where their number has not changed
STATUS = 1.0  # seconds between two counts of context switches: the file is dear
MARGIN = 0.6  # seconds kept of the deadline for the last look and for printing
LEAVE = 0.25  # seconds that the last look may take
MAX_PIDS = 512
MAX_THREADS = 2048  # of all processes together
MAX_CELLS = 100_000  # threads times samples that are kept; then every second sample is dropped, and the rate halved
MAX_SLOW = 2400  # looks at processes and node: ten minutes
LEADERS = 6  # threads of a process, beside the main one, that are looked at every time when there are too many
ALL_LEADERS = 16  # of all processes together; the main thread of each and its busiest are always among them
MAX_LEVELS = 24  # of a cgroup's path
NUMA_MOST = 8 << 30  # resident bytes: above, reading numa_maps would hold the lock of the memory for too long
NUMA_PIECE, NUMA_BYTES, NUMA_CPU = 4096, 4 << 20, 0.05  # one read, all reads, seconds of CPU
FUTEX = {"x86_64": (b"202",), "aarch64": (b"98",), "i686": (b"240", b"422")}
TICKS = os.sysconf("SC_CLK_TCK")
PAGE = os.sysconf("SC_PAGE_SIZE")
COLUMNS = ("state", "cpu", "wait", "syscall", "gil", "voluntary", "involuntary", "cpu_number", "blkio")
VMSTAT = (
    "pswpin", "pswpout", "pgmajfault", "pgfault", "pgscan_direct", "pgsteal_direct", "allocstall_normal", "allocstall_movable",
    "numa_hit", "numa_miss", "numa_foreign", "numa_local", "numa_other", "numa_pages_migrated", "numa_hint_faults", "oom_kill",
    "compact_stall", "thp_fault_alloc", "thp_fault_fallback",
)  # fmt: skip
RDMA = (
    "counters/port_rcv_data", "counters/port_xmit_data", "counters/port_xmit_wait", "counters/port_rcv_errors",
    "counters/link_downed", "hw_counters/out_of_sequence", "hw_counters/packet_seq_err", "hw_counters/rnr_nak_retry_err",
    "hw_counters/local_ack_timeout_err", "hw_counters/rp_cnp_handled", "hw_counters/np_cnp_sent",
)  # fmt: skip
GROUP_FILES = {  # of a cgroup, by version: read at every look
    1: ("cpu.stat", "cpu.cfs_quota_us", "cpu.cfs_period_us", "cpuacct.usage"),
    2: ("cpu.stat", "cpu.max"),
}
MEMORY_FILES = {  # read at both ends
    1: ("memory.usage_in_bytes", "memory.limit_in_bytes", "memory.failcnt", "memory.oom_control",
        "memory.memsw.usage_in_bytes"),
    2: ("memory.current", "memory.max", "memory.high", "memory.events", "memory.swap.current", "io.stat"),
}  # fmt: skip


def said(error: OSError) -> dict[str, str]:
    """Why something could not be read."""
    number = error.errno or errno.EIO
    status = "denied" if number in (errno.EACCES, errno.EPERM) else "failed"
    if number in (errno.ENOENT, errno.ENOTDIR, errno.ENODEV, errno.ENXIO, errno.EOPNOTSUPP):
        status = "unsupported"
    return {"status": status, "detail": errno.errorcode.get(number, "EIO") + ": " + (error.strerror or str(error))}


def missing(status: str, detail: str) -> dict[str, str]:
    """A value that there is not, with the reason."""
    return {"status": status, "detail": detail}


def read(path: str, size: int = 65536) -> bytes:
    """The beginning of a file. OSError when it cannot be read."""
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return os.read(fd, size)
    finally:
        os.close(fd)


def number(text: bytes, base: int = 10) -> int | None:
    """A whole number of the kernel; None when it is none (``max``)."""
    try:
        return int(text, base)
    except ValueError:
        return None


def added(*numbers: int | None) -> int | None:
    """The sum; None where a part of it is not known."""
    return None if None in numbers else sum(n for n in numbers if n is not None)


def pairs(data: bytes) -> dict[str, int]:
    """Lines of a name and a number: cpu.stat, vmstat, io."""
    found = {}
    for line in data.splitlines()[:400]:
        name, _, value = line.replace(b":", b" ").partition(b" ")
        figure = number(value)
        if figure is not None:
            found[name.decode("ascii", "replace")] = figure
    return found


def after_name(data: bytes) -> list[bytes]:
    """Fields of a stat file from the third, the state, on: the name before may hold anything."""
    return data[data.rfind(b")") + 2 :].split()


def clocks() -> dict[str, int]:
    """The clocks at one moment; `error` ns is half of what the tightest of some tries took."""
    best: dict[str, int] = {}
    for _ in range(5):
        before = time.monotonic_ns()
        real, boot = time.time_ns(), time.clock_gettime_ns(time.CLOCK_BOOTTIME)
        after = time.monotonic_ns()
        if not best or (after - before) // 2 < best["error"]:
            best = {
                "realtime": real,
                "monotonic": (before + after) // 2,
                "boottime": boot,
                "error": (after - before) // 2,
            }
    return best


# --- threads ------------------------------------------------------------------------------


class Thread:
    """One thread: open files, and a column per thing that is read."""

    def __init__(self, base: str, tid: int, filled: int) -> None:
        """`base` is the folder of the process's threads; `filled` samples were taken before it was seen."""
        self.folder = base + "/" + str(tid)
        self.fds: list[int] = []
        self.why: dict[str, dict[str, str]] = {}
        self.ended = False
        self.comm = ""
        self.columns: list[list[Any]] = [[None] * filled for _ in COLUMNS]
        self.last_schedule = self.last_call = b""
        self.last: tuple[Any, ...] = (None,) * len(COLUMNS)
        self.mark = 0  # CPU at the last look at all threads
        self.stat = self._open("stat")
        if self.stat < 0:
            self.ended = True
            return
        self.schedstat, self.call, self.status = self._open("schedstat"), self._open("syscall"), self._open("status")

    def _open(self, name: str) -> int:
        try:
            fd = os.open(self.folder + "/" + name, os.O_RDONLY | os.O_CLOEXEC)
        except OSError as error:
            self.why[name] = said(error)
            return -1
        self.fds.append(fd)
        return fd

    def close(self) -> None:
        """It has ended."""
        self.ended = True
        for fd in self.fds:
            os.close(fd)
        self.fds = []

    def look(self, runtime: tuple[int, int] | None, futex: tuple[bytes, ...], switches: bool, filled: int) -> None:
        """One sample; a thread that has ended is closed, and its columns are not filled any more."""
        if len(self.columns[0]) < filled:  # it was not looked at for a while
            for column in self.columns:
                column.extend([None] * (filled - len(column)))
        try:
            values = self._values(runtime, futex)
            more = self._switches() if switches else (None, None)
        except OSError:  # ESRCH: it has ended
            self.close()
            return
        self.last = values
        for column, value in zip(self.columns, (*values[:5], *more, *values[7:])):
            column.append(value)

    def _values(self, runtime: tuple[int, int] | None, futex: tuple[bytes, ...]) -> tuple[Any, ...]:
        schedule = os.pread(self.schedstat, 128, 0) if self.schedstat >= 0 else b""
        asleep = self.last[0] not in (None, "R")
        if asleep and schedule and schedule == self.last_schedule and self.call >= 0:
            # It has not run since it was last seen asleep. Does it still sleep there, or is it ready?
            call = self._syscall()
            if call == self.last_call:
                return self.last
        fields = after_name(os.pread(self.stat, 1024, 0))
        if len(fields) < 20:
            raise ProcessLookupError(errno.ESRCH, "empty")
        state = fields[0].decode("ascii", "replace")
        self.last_schedule = schedule
        parts = schedule.split()
        if len(parts) >= 2:
            cpu, wait = number(parts[0]), number(parts[1])
        else:
            ticks = added(number(fields[11]), number(fields[12]))
            cpu, wait = None if ticks is None else ticks * (1_000_000_000 // TICKS), None
        where: Any = None
        gil = 0 if runtime is not None else None
        if state == "R":
            where, self.last_call = "running", b""
        elif self.call >= 0:
            where, waits = self._where(runtime, futex)
            gil = waits if runtime is not None else None
        processor, blkio = (number(fields[i]) if len(fields) > i else None for i in (36, 39))
        return (state, cpu, wait, where, gil, None, None, processor, blkio)

    def _syscall(self) -> bytes:
        try:
            return os.pread(self.call, 256, 0)
        except OSError as error:
            if error.errno == errno.ESRCH:
                raise
            self.why["syscall"] = said(error)
            self.call = -1
            return b""

    def _where(self, runtime: tuple[int, int] | None, futex: tuple[bytes, ...]) -> tuple[Any, int]:
        call = self.last_call = self._syscall()
        words = call.split(None, 2)
        if not words:
            return None, 0
        if words[0] == b"running":
            self.last_call = b""
            return "running", 0
        waits = 0
        if runtime is not None and words[0] in futex and len(words) > 1:
            waits = int(runtime[0] <= (number(words[1], 16) or 0) < runtime[1])
        return number(words[0]), waits

    def _switches(self) -> tuple[Any, Any]:
        if self.status < 0:
            return None, None
        data = os.pread(self.status, 8192, 0)
        name = data.split(b"\n", 1)[0][6:].decode("utf-8", "replace").strip()
        self.comm = name or self.comm  # threads are named late
        at = data.rfind(b"\nvoluntary_ctxt_switches:")
        words = data[at:].split() if at >= 0 else []
        return (number(words[1]), number(words[3])) if len(words) >= 4 else (None, None)

    def migrations(self) -> int | None:
        """How often the scheduler has moved it to another CPU; None where the kernel does not tell."""
        try:
            data = read(self.folder + "/sched", 16384)
        except OSError:
            return None
        at = data.find(b"se.nr_migrations")
        return number(data[at:].split(b"\n", 1)[0].rpartition(b":")[2].strip()) if at >= 0 else None


class Job:
    """One process: its threads as they come and go."""

    def __init__(self, proc: str, pid: int, runtime: tuple[int, int] | None) -> None:
        self.pid, self.runtime = pid, runtime
        self.folder = proc + "/" + str(pid)
        self.tasks = self.folder + "/task"
        self.threads: dict[int, Thread] = {}
        self.past: list[tuple[int, Thread]] = []  # thread numbers are used again
        self.left_out = 0
        self.leaders: set[int] = {pid}  # looked at every time
        self.most = LEADERS
        self.links = 0
        self.scanned = 0.0
        self.ended: int | None = None
        self.problem: dict[str, str] | None = None
        self.start: int | None = None
        try:
            self.start = int(after_name(read(self.folder + "/stat"))[19])
        except (OSError, IndexError, ValueError) as error:
            self.problem = said(error) if isinstance(error, OSError) else missing("failed", "no such process")
            self.ended = time.monotonic_ns()

    def scan(self, filled: int, room: int, now: float) -> int:
        """Look for new threads, where there may be any: at most `room`. How many were found."""
        if self.ended is not None:
            return 0
        try:
            links = os.stat(self.tasks).st_nlink  # it counts the threads
            if links == self.links and now - self.scanned < RESCAN:
                return 0
            names = sorted(int(n) for n in os.listdir(self.tasks) if n.isdecimal())
        except OSError:
            self.ended = time.monotonic_ns()
            return 0
        self.links, self.scanned = links, now
        found = 0
        for tid in names:
            if tid in self.threads:
                continue
            if found >= room:
                self.left_out = max(self.left_out, len(names) - len(self.threads))
                break
            thread = Thread(self.tasks, tid, filled)
            if thread.ended:
                continue
            try:
                data = os.pread(thread.stat, 1024, 0)
            except OSError:
                thread.close()
                continue
            thread.comm = data[data.find(b"(") + 1 : data.rfind(b")")].decode("utf-8", "replace")
            self.threads[tid] = thread
            found += 1
        return found

    def look(self, futex: tuple[bytes, ...], switches: bool, full: bool, filled: int) -> None:
        """One sample of each thread; when not `full`, of the main one and of those that were busiest."""
        gone = []
        for tid in self.threads if full else self.leaders & self.threads.keys():
            thread = self.threads[tid]
            thread.look(self.runtime, futex, switches, filled)
            if thread.ended:
                gone.append(tid)
        for tid in gone:
            self.past.append((tid, self.threads.pop(tid)))
            if tid == self.pid:
                self.links = 0
        if not self.threads and self.ended is None:
            self.scan(0, 0, 0.0)
        if full:
            self._lead()

    def _lead(self) -> None:
        """Who is looked at every time from now on."""
        used = []
        for tid, thread in self.threads.items():
            cpu = thread.last[1] or 0
            if cpu > thread.mark:
                used.append((cpu - thread.mark, tid))
            thread.mark = cpu
        used.sort(reverse=True)
        self.leaders = {self.pid, *(tid for _, tid in used[: self.most])}

    def all(self) -> list[tuple[int, Thread]]:
        """Threads that ended and threads that are."""
        return [*self.past, *self.threads.items()]


class Fast:
    """Looks at all threads, `hz` times a second or as often as the budget allows. `most`: threads times samples that it keeps."""

    def __init__(self, jobs: list[Job], proc: str, hz: float, *, most: int = MAX_CELLS) -> None:
        self.jobs, self.hz, self.most = jobs, hz, most
        for job in jobs:
            job.most = min(max(ALL_LEADERS // len(jobs) - 1, 1), LEADERS)
        self.at: list[int] = []
        self.took: list[int] = []
        self.running: list[int | None] = []  # of the whole node, this program included
        self.interval = 1.0 / hz
        self.cost = [0.0, 0.0]  # CPU seconds of one look at the leading threads, at all, smoothed
        self.stride = 1  # every so many looks, all threads are looked at
        self.full_at = self.fulls = 0
        self.halved = 0
        self.dead = 0  # threads that are gone and whose columns are kept
        self.now = ""
        self.moved: dict[Thread, list[int | None]] = {}
        self.futex = FUTEX.get(os.uname().machine, ())
        try:
            self.load = os.open(proc + "/loadavg", os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            self.load = -1

    def run(self, stop: threading.Event) -> None:
        """Until `stop`, then once more: the counters at both ends give the shares."""
        counted = 0.0
        next_at = time.monotonic()
        while True:
            now = time.monotonic()
            last = stop.is_set()
            switches = last or not self.at or now - counted >= STATUS
            full = switches or len(self.at) - self.full_at >= self.stride
            cpu = time.thread_time()
            self._look(now, switches, full)
            if switches:
                counted = now
            if len(self.at) == 1:
                self._migrations()
            elif not switches:  # the switches are read once a second: they are no part of the usual look
                self._pace(time.thread_time() - cpu, full)
            if last:
                self._migrations()
                self.now = ""
                return
            next_at = max(next_at + self.interval, time.monotonic())
            stop.wait(max(next_at - time.monotonic(), 0.0005))

    def _look(self, now: float, switches: bool, full: bool) -> None:
        begun = time.monotonic_ns()
        filled = len(self.at)
        room = MAX_THREADS - sum(len(j.threads) for j in self.jobs) - self.dead
        for job in self.jobs:
            self.now = job.tasks
            room -= job.scan(filled, max(room, 0), now)
            before = len(job.past)
            job.look(self.futex, switches, full, filled)
            self.dead += len(job.past) - before
        if full:
            self.full_at = filled
            self.fulls += 1
        self.running.append(self._running())
        self.at.append(begun)
        self.took.append(time.monotonic_ns() - begun)
        self._bound()

    def _running(self) -> int | None:
        if self.load < 0:
            return None
        try:
            return number(os.pread(self.load, 128, 0).split()[3].partition(b"/")[0])
        except (OSError, IndexError):
            return None

    def _pace(self, cost: float, full: bool) -> None:
        """Look as often as the budget allows: at all threads, or else at the leading ones often and at all now and then."""
        which = int(full)
        self.cost[which] = cost if not self.cost[which] else 0.8 * self.cost[which] + 0.2 * cost
        wanted = (1 << self.halved) / self.hz
        if self.cost[1] <= BUDGET * wanted:
            self.stride, self.interval = 1, wanted
            return
        lead = self.cost[0] or self.cost[1] / 4
        self.interval = max(wanted, lead / (BUDGET / 2))
        self.stride = max(int(self.cost[1] / (BUDGET / 2 * self.interval)) + 1, 1)

    def _bound(self) -> None:
        """Drop every second sample where there are too many: counters stay right."""
        if len(self.at) * max(sum(len(j.threads) for j in self.jobs) + self.dead, 1) <= self.most or len(self.at) < 8:
            return
        for job in self.jobs:
            for _, thread in job.all():
                for column in thread.columns:
                    column[:-1:2] = [a if a is not None else b for a, b in zip(column[:-1:2], column[1::2])]
                    del column[1::2]
        for column in (self.at, self.took, self.running):
            del column[1::2]
        self.halved += 1
        self.full_at = len(self.at) - 1
        self.interval *= 2

    def _migrations(self) -> None:
        for job in self.jobs:
            for _, thread in list(job.threads.items())[:256]:
                self.moved.setdefault(thread, []).append(thread.migrations())

    def told(self) -> dict[str, Any]:
        """What was seen."""
        count = len(self.took)
        rows: dict[str, dict[str, Any]] = {}
        for job in self.jobs:
            threads = rows.setdefault(str(job.pid), {})
            for tid, thread in job.all():
                key = str(tid) if str(tid) not in threads else str(tid) + "+"
                threads[key] = self._row(thread, count)
        seconds = (self.at[count - 1] - self.at[0]) / 1e9 if count > 1 else 0.0
        got = (count - 1) / seconds if seconds else 0.0
        every = got / max(count / max(self.fulls, 1), 1.0)
        slowed = ""
        if self.halved:
            slowed = f"{self.hz:g} looks a second would not fit into {self.most} values: {got:.1f}"
        elif every < 0.66 * self.hz:
            many = sum(len(j.threads) for j in self.jobs)
            slowed = (
                f"{many} threads: the busiest are looked at {got:.1f} times a second, all of them {every:.1f} times, instead of "
                f"{self.hz:g}, so that the sampler uses about {BUDGET:.0%} of a core"
            )
        return {
            "hz": self.hz, "hz_got": round(got, 3), "hz_all": round(every, 3), "slowed": slowed, "at": self.at[:count], "took": self.took[:count], "rows": rows,
            "running": self.running[:count],
        }  # fmt: skip

    def _row(self, thread: Thread, count: int) -> dict[str, Any]:
        row: dict[str, Any] = {"comm": thread.comm}
        for name, column in zip(COLUMNS, thread.columns):
            row[name] = (column + [None] * (count - len(column)))[:count]
        if "syscall" in thread.why:
            row["syscall"] = thread.why["syscall"]
            row["gil"] = thread.why["syscall"]
        if "schedstat" in thread.why:
            row["wait"] = thread.why["schedstat"]
        row["migrations"] = self.moved.get(thread, [])
        if not any(thread.columns[COLUMNS.index("blkio")]):
            del row["blkio"]  # delay accounting is off, or it has never waited for a disk
        return row


# --- processes ----------------------------------------------------------------------------


class Series:
    """Times, and a column per name; all columns are as long as the times."""

    def __init__(self) -> None:
        self.at: list[int] = []
        self.columns: dict[str, list[Any]] = {}
        self.why: dict[str, dict[str, str]] = {}

    def add(self, values: dict[str, Any]) -> None:
        """What was read now. A name that was not seen before, or is not now, is null then."""
        if len(self.at) >= MAX_SLOW:  # the last one is always there
            self.at.pop()
            for column in self.columns.values():
                column.pop()
        for name, value in values.items():
            self.columns.setdefault(name, [None] * len(self.at)).append(value)
        self.at.append(time.monotonic_ns())
        for column in self.columns.values():
            if len(column) < len(self.at):
                column.append(None)

    def told(self) -> dict[str, Any]:
        """As JSON; names with a dot are folders."""
        count = len(self.at)  # it may be in the middle of a look
        out: dict[str, Any] = {"at": self.at[:count]}
        for name, column in {**self.columns, **self.why}.items():
            folder, _, bare = name.rpartition(".")
            if name in self.why and self.columns.get(name):
                column = self.columns[name]
            (out.setdefault(folder, {}) if folder else out)[bare] = (
                column[:count] if isinstance(column, list) else column
            )
        return out


class Process:
    """What is read of a process as a whole."""

    def __init__(self, job: Job) -> None:
        self.job, self.series = job, Series()
        self.once: dict[str, Any] = {"start": job.start}

    def look(self) -> None:
        """One look; nothing when it has ended."""
        if self.job.problem is not None:
            return
        values: dict[str, Any] = {}
        try:
            fields = after_name(read(self.job.folder + "/stat"))
            values["faults.minor"], values["faults.major"] = int(fields[7]), int(fields[9])
            values["threads"] = int(fields[17])
            values["rss"] = int(fields[21]) * PAGE
            values["cpu"] = (int(fields[11]) + int(fields[12])) * (1_000_000_000 // TICKS)
            status = read(self.job.folder + "/status", 8192)
        except (OSError, IndexError, ValueError):
            return
        words = dict(line.split(b":", 1) for line in status.splitlines() if b":" in line)
        swap = number(b"".join(words.get(b"VmSwap", b"").split()[:1]))
        values["swap"] = None if swap is None else swap * 1024
        if "cpus_allowed" not in self.once:
            self.once["cpus_allowed"] = words.get(b"Cpus_allowed_list", b"").strip().decode("ascii", "replace")
            self.once["mems_allowed"] = words.get(b"Mems_allowed_list", b"").strip().decode("ascii", "replace")
        try:
            values.update({"io." + k: v for k, v in pairs(read(self.job.folder + "/io")).items()})
            self.series.why.pop("io", None)
        except OSError as error:
            if error.errno != errno.ESRCH and not any(n.startswith("io.") for n in self.series.columns):
                self.series.why["io"] = said(error)
        self.series.add(values)

    def told(self) -> dict[str, Any]:
        """As JSON."""
        if self.job.problem is not None:
            return dict(self.job.problem)
        out = {**self.series.told(), **self.once, "threads_left_out": self.job.left_out}
        if self.job.ended is not None:
            out["ended"] = self.job.ended
        if self.job.runtime is None:
            out["gil"] = missing("unsupported", "where the interpreter's lock lies was not told")
        return out


def nodes(root: str) -> dict[str, str] | dict[str, Any]:
    """CPUs of each NUMA node."""
    base = root + "/sys/devices/system/node"
    try:
        found = sorted(n for n in os.listdir(base) if n.startswith("node") and n[4:].isdigit())
        return {n[4:]: read(base + "/" + n + "/cpulist").decode("ascii", "replace").strip() for n in found[:256]}
    except OSError as error:
        return said(error)


def numa(folder: str, many: int) -> dict[str, Any]:
    """Pages of a process by NUMA node, as far as they were counted within the budget."""
    if many < 2:
        return missing("unsupported", "this machine has one NUMA node")
    try:
        resident = int(read(folder + "/statm").split()[1]) * PAGE
        if resident > NUMA_MOST:
            return missing(
                "unsupported", f"{resident >> 30} GiB are resident: counting their pages would hold the memory's lock"
            )
        fd = os.open(folder + "/numa_maps", os.O_RDONLY | os.O_CLOEXEC)
    except (OSError, IndexError, ValueError) as error:
        return said(error) if isinstance(error, OSError) else missing("failed", "statm is not understood")
    pages: dict[str, int] = {}
    begun, got, rest, whole = time.thread_time(), 0, b"", False
    try:
        while got < NUMA_BYTES and time.thread_time() - begun < NUMA_CPU:
            part = os.read(fd, NUMA_PIECE)
            if not part:
                whole = True
                break
            got += len(part)
            lines = (rest + part).split(b"\n")
            rest = lines.pop()
            for line in lines:
                _count(line, pages)
            time.sleep(0.001)
    except OSError as error:
        return said(error)
    finally:
        os.close(fd)
    return {"bytes": pages, "complete": whole, "resident": resident}


def _count(line: bytes, bytes_: dict[str, int]) -> None:
    """``7f00 default anon=3 N0=2 N1=1 kernelpagesize_kB=4``."""
    words = line.split()
    size = next((number(w[18:]) for w in words if w.startswith(b"kernelpagesize_kB=")), PAGE >> 10)
    for word in words[2:]:
        name, _, value = word.partition(b"=")
        count = number(value) if name[:1] == b"N" and name[1:].isdigit() and value.isdigit() else None
        if count is not None and size is not None:
            key = name[1:].decode()
            bytes_[key] = bytes_.get(key, 0) + count * (size << 10)


# --- control groups -----------------------------------------------------------------------


def mounts(data: bytes) -> list[tuple[int, frozenset[str], str, str]]:
    """Mounted cgroup hierarchies in a mountinfo: version, controllers, root, mount point."""
    found = []
    for line in data.splitlines():
        head, _, tail = line.partition(b" - ")
        words, kind = head.split(), tail.split()
        if len(words) < 5 or len(kind) < 3 or kind[0] not in (b"cgroup", b"cgroup2"):
            continue
        version = 2 if kind[0] == b"cgroup2" else 1
        names = frozenset(kind[2].decode("utf-8", "replace").split(",")) if version == 1 else frozenset()
        found.append((version, names, _plain(words[3]), _plain(words[4])))
    return found


def _plain(word: bytes) -> str:
    """A word of mountinfo: spaces are written ``\\040``."""
    for code in (b"040", b"011", b"012", b"134"):
        word = word.replace(b"\\" + code, bytes([int(code, 8)]))
    return os.fsdecode(word)


def memberships(data: bytes) -> list[tuple[int, frozenset[str], str]]:
    """The groups in /proc/PID/cgroup: version, controllers, path."""
    found = []
    for line in data.splitlines():
        parts = os.fsdecode(line).split(":", 2)
        if len(parts) == 3:
            found.append((2 if not parts[1] else 1, frozenset(parts[1].split(",")), parts[2]))
    return found


def below(path: str, top: str) -> str | None:
    """`path` of a group as it is seen under a mount whose root is `top`; None when it is not visible there."""
    if path.startswith("/.."):
        return None
    if top == "/":
        return path.rstrip("/")
    return path[len(top) :].rstrip("/") if path == top or path.startswith(top + "/") else None


class Groups:
    """The control groups of the processes and all that those are in."""

    def __init__(self, root: str, jobs: list[Job]) -> None:
        self.of: dict[str, Any] = {}
        self.groups: dict[str, Series] = {}
        self.files: dict[str, tuple[int, str]] = {}
        self.usage: dict[str, str] = {}  # version 1 counts CPU time in a hierarchy of its own
        self.once: dict[str, dict[str, Any]] = {}
        self.rest: dict[str, tuple[int, str]] = {}
        try:
            seen = mounts(read(root + "/proc/" + ("1" if root else "self") + "/mountinfo", 1 << 20))
        except OSError as error:
            self.of = {str(job.pid): said(error) for job in jobs}
            return
        for job in jobs:
            try:
                member = memberships(read(job.folder + "/cgroup"))
            except OSError as error:
                self.of[str(job.pid)] = said(error)
                continue
            cpu = self._levels(root, seen, member, "cpu", self.files)
            counted = self._levels(root, seen, member, "cpuacct", {})
            if isinstance(cpu, list) and isinstance(counted, list) and _same(member):
                self.usage.update(zip(cpu, counted))
            self.of[str(job.pid)] = {"cpu": cpu, "memory": self._levels(root, seen, member, "memory", self.rest)}

    def _levels(
        self, root: str, seen: list[tuple[int, frozenset[str], str, str]], member: list[tuple[int, frozenset[str], str]],
        controller: str, files: dict[str, tuple[int, str]],
    ) -> Any:  # fmt: skip
        """Folders from a process's own group up to the top that is mounted here."""
        # version 1 counts where the controller is; else the unified hierarchy has it
        mine = next((m for m in member if m[0] == 1 and controller in m[1]), None)
        mine = mine or next((m for m in member if m[0] == 2), None)
        if mine is None:
            return missing("unsupported", f"the kernel has no {controller} controller")
        mount = next((m for m in seen if m[0] == mine[0] and (m[0] == 2 or controller in m[1])), None)
        if mount is None:
            return missing("unsupported", f"the {controller} hierarchy is not mounted here")
        path = below(mine[2], mount[2])
        if path is None:
            return missing("unsupported", "its group lies outside of what is mounted here: look from the node")
        levels = []
        for _ in range(MAX_LEVELS):
            folder = root + mount[3] + path
            levels.append(folder)
            if len(files) < 256:
                files[folder] = (mine[0], folder)
            if not path:
                break
            path = path.rpartition("/")[0]
        return levels

    def look(self) -> None:
        """CPU time, limits and throttling of each group."""
        for key, (version, folder) in self.files.items():
            values: dict[str, Any] = {}
            for name in GROUP_FILES[version]:
                try:
                    data = read((self.usage.get(folder, folder) if name == "cpuacct.usage" else folder) + "/" + name)
                except OSError:
                    continue
                if name == "cpu.stat":
                    values.update(_throttling(pairs(data)))
                elif name == "cpu.max":
                    words = data.split()
                    values["quota_us"] = number(words[0]) if words else None
                    values["period_us"] = number(words[1]) if len(words) > 1 else None
                elif name == "cpuacct.usage":
                    values["usage_ns"] = number(data)
                else:
                    figure = number(data)
                    values[name.split("_")[1] + "_us"] = figure if figure is None or figure > 0 else None
            if values:
                self.groups.setdefault(key, Series()).add(values)

    def ends(self, which: str) -> None:
        """Memory and I/O of the groups, at one end of the window."""
        for key, (version, folder) in self.rest.items():
            values: dict[str, Any] = {}
            for name in MEMORY_FILES[version]:
                try:
                    data = read(folder + "/" + name, 16384)
                except OSError:
                    continue
                plain = number(data)
                values[name] = plain if plain is not None else data.decode("ascii", "replace").strip() if name == "io.stat" else (
                    pairs(data) or None)  # fmt: skip
            if values:
                self.once.setdefault(key, {})[which] = values

    def told(self) -> dict[str, Any]:
        """As JSON."""
        return {"of": self.of, "cpu": {k: s.told() for k, s in list(self.groups.items())}, "memory": self.once}


def _same(member: list[tuple[int, frozenset[str], str]]) -> bool:
    """Whether a process is in the same group for the time it may use and the time that is counted (version 1)."""
    paths = {name: m[2] for m in member if m[0] == 1 for name in m[1]}
    return "cpu" in paths and paths.get("cpu") == paths.get("cpuacct")


def _throttling(stat: dict[str, int]) -> dict[str, Any]:
    """cpu.stat of both versions, in ns."""
    values: dict[str, Any] = {k: stat[k] for k in ("nr_periods", "nr_throttled") if k in stat}
    if "throttled_usec" in stat:
        values["throttled_ns"] = stat["throttled_usec"] * 1000
    if "throttled_time" in stat:
        values["throttled_ns"] = stat["throttled_time"]
    if "usage_usec" in stat:
        values["usage_ns"] = stat["usage_usec"] * 1000
    return values


# --- the node -----------------------------------------------------------------------------


class Node:
    """What the whole machine does meanwhile."""

    def __init__(self, root: str) -> None:
        self.root, self.proc = root, root + "/proc"
        self.series = {name: Series() for name in ("stat", "vmstat", "pressure", "network", "rdma")}
        self.why: dict[str, dict[str, str]] = {}
        self.ports: list[str] | None = None

    def look(self) -> None:
        """Everything but RDMA, whose counters the adapter's firmware is asked for."""
        for name, call in (
            ("stat", self._stat),
            ("vmstat", self._vmstat),
            ("pressure", self._pressure),
            ("network", self._network),
        ):
            try:
                values = call()
            except (OSError, IndexError, ValueError) as error:
                self.why[name] = said(error) if isinstance(error, OSError) else missing("failed", "not understood")
                continue
            self.series[name].add(values)

    def _stat(self) -> dict[str, Any]:
        data = read(self.proc + "/stat", 1 << 20)
        names = ("user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal")
        line = data.split(b"\n", 1)[0].split()[1:9]
        values: dict[str, Any] = {n: int(v) * (1_000_000_000 // TICKS) for n, v in zip(names, line)}
        found = pairs(data[max(data.rfind(b"\nctxt"), 0) :].lstrip(b"\n"))
        return {**values, **{n: found[n] for n in ("ctxt", "procs_running", "procs_blocked") if n in found}}

    def _vmstat(self) -> dict[str, Any]:
        found = pairs(read(self.proc + "/vmstat"))
        return {n: found[n] for n in VMSTAT if n in found}

    def _pressure(self) -> dict[str, Any]:
        values: dict[str, Any] = {}
        for name in ("cpu", "memory", "io"):
            for line in read(self.proc + "/pressure/" + name).splitlines():
                words = line.split()
                values[name + "." + words[0].decode("ascii", "replace")] = int(words[-1].partition(b"=")[2]) * 1000
        return values

    def _network(self) -> dict[str, Any]:
        values: dict[str, Any] = {}
        data = read(self.proc + ("/1" if self.root else "") + "/net/dev")
        for line in data.splitlines()[2:66]:
            name, _, rest = line.partition(b":")
            words = rest.split()
            device = name.strip().decode("utf-8", "replace")
            if len(words) >= 12 and device != "lo":
                for label, i in (("rx_bytes", 0), ("rx_dropped", 3), ("tx_bytes", 8), ("tx_dropped", 11)):
                    values[device + "." + label] = int(words[i])
        return values

    def devices(self) -> None:
        """RDMA ports."""
        base = self.root + "/sys/class/infiniband"
        if self.ports is None:
            try:
                self.ports = [
                    f"{device}/ports/{port}"
                    for device in sorted(os.listdir(base))[:64]
                    for port in sorted(os.listdir(f"{base}/{device}/ports"))[:8]
                ]
            except OSError as error:
                self.ports = []
                self.why["rdma"] = said(error)
            if not self.ports:
                self.why.setdefault("rdma", missing("unsupported", "there is no RDMA device"))
        values: dict[str, Any] = {}
        for port in self.ports:
            for name in RDMA:
                try:
                    values[port + "." + name.rpartition("/")[2]] = number(read(base + "/" + port + "/" + name))
                except OSError:
                    continue
        if values:
            self.series["rdma"].add(values)

    def told(self) -> dict[str, Any]:
        """As JSON."""
        return {name: series.told() if series.at else self.why.get(name, missing("failed", "not read"))
                for name, series in self.series.items()}  # fmt: skip


class Slow:
    """Processes, groups and the node, some times a second."""

    def __init__(self, root: str, jobs: list[Job]) -> None:
        self.processes = [Process(job) for job in jobs]
        self.groups = Groups(root, jobs)
        self.node = Node(root)
        self.interval = SLOW
        self.now = ""

    def run(self, stop: threading.Event) -> None:
        """Until `stop`, then once more."""
        self.now = "control groups"
        self.groups.ends("first")
        first = True
        while True:
            last = stop.is_set()
            cpu = time.thread_time()
            for process in self.processes:
                self.now = process.job.folder
                process.look()
            self.now = "control groups"
            self.groups.look()
            self.now = "node"
            self.node.look()
            if not first:
                self.interval = max(SLOW, (time.thread_time() - cpu) / SLOW_BUDGET)
            first = False
            if last:
                self.now = "control groups"
                self.groups.ends("last")
                self.now = ""
                return
            stop.wait(self.interval)

    def devices(self, stop: threading.Event, root: str, into: list[str]) -> None:
        """What may sleep: RDMA counters, and pages by NUMA node. In a thread of its own; `into` names what it does."""
        into[:] = ["NUMA"]
        spread = nodes(root)
        many = len(spread) if "status" not in spread else 0
        for process in self.processes:
            process.once["nodes"] = spread
            process.once["numa"] = missing("failed", "not read in time")
            into[:] = [process.job.folder + "/numa_maps"]
            process.once["numa"] = numa(process.job.folder, many)
        while True:
            last = stop.is_set()
            into[:] = ["/sys/class/infiniband"]
            self.node.devices()
            if last:
                into.clear()
                return
            stop.wait(1.0)


# --- the whole ----------------------------------------------------------------------------


def room_for_files() -> None:
    """Four open files a thread: as many as we are allowed."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = MAX_THREADS * 4 + 256
    most = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    if soft != resource.RLIM_INFINITY and soft < most:
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
        except (OSError, ValueError):
            return


def ranges(words: list[str]) -> dict[int, tuple[int, int]]:
    """``PID:START-END`` in hexadecimal. ValueError for anything else."""
    found = {}
    for word in words:
        pid, _, place = word.partition(":")
        start, _, end = place.partition("-")
        found[int(pid)] = (int(start, 16), int(end, 16))
    return found


class Asked:
    """Waits for the end of the window or for SIGTERM. A pipe: an Event must not be set where a signal has interrupted its wait."""

    def __init__(self) -> None:
        self.reader, writer = os.pipe()
        os.set_blocking(writer, False)
        signal.signal(signal.SIGTERM, lambda *_: os.write(writer, b"."))

    def wait(self, until: float) -> None:
        """Until then (monotonic seconds), or until SIGTERM, or until nobody reads our output any more: whoever asked was killed."""
        poll = select.poll()
        poll.register(self.reader, select.POLLIN)
        poll.register(sys.stdout.fileno(), 0)  # the end of a pipe's reader is always told
        poll.poll(max(until - time.monotonic(), 0) * 1000)


def ending(options: argparse.Namespace, latest: float) -> float:
    """When a window that begins now ends, monotonic seconds: before the deadline in any case."""
    return min(
        float(options.until_mono) / 1e9 if options.until_mono else time.monotonic() + float(options.seconds), latest
    )


def collect(options: argparse.Namespace, asked: Asked, latest: float) -> dict[str, Any]:
    """The document."""
    root = options.root.rstrip("/")
    proc = root + "/proc"
    room_for_files()
    first, stop = clocks(), threading.Event()
    known = ranges(options.runtime)
    jobs = [Job(proc, pid, known.get(pid)) for pid in dict.fromkeys(options.pid[:MAX_PIDS])]
    fast, slow = Fast(jobs, proc, options.hz), Slow(root, jobs)
    doing: list[str] = []
    faults: list[str] = []
    threads = {
        "threads": _thread(fast.run, faults, stop),
        "processes": _thread(slow.run, faults, stop),
        "devices": _thread(slow.devices, faults, stop, root, doing),
    }
    for thread in threads.values():
        thread.start()
    announce()
    asked.wait(ending(options, latest))
    stop.set()
    leave = time.monotonic() + LEAVE
    for thread in threads.values():
        thread.join(max(leave - time.monotonic(), 0))
    where = {"threads": fast.now, "processes": slow.now, "devices": " ".join(doing)}
    hung = [{"what": name, "where": where[name]} for name, thread in threads.items() if thread.is_alive()]
    return {
        "schema": SCHEMA, "host": _text(proc + "/sys/kernel/hostname"), "boot_id": _text(proc + "/sys/kernel/random/boot_id"),
        "at_ns": first["realtime"], "clocks": [first, clocks()], "ticks_per_s": TICKS, "page_bytes": PAGE, "machine": os.uname().machine,
        "cpus": os.cpu_count(), **fast.told(),
        "process": {str(p.job.pid): p.told() for p in slow.processes}, "cgroup": slow.groups.told(), **slow.node.told(),
        "hung": hung, "faults": faults[:8], "pids_left_out": max(len(options.pid) - MAX_PIDS, 0),
        "cost": {"cpu_s": round(time.process_time(), 4)},
    }  # fmt: skip


def _thread(work: Callable[..., None], faults: list[str], *args: Any) -> threading.Thread:
    def run() -> None:
        try:
            work(*args)
        except Exception as error:  # noqa: BLE001 - a fault of ours must not lose the rest
            faults.append(type(error).__name__ + ": " + str(error)[:200])

    return threading.Thread(target=run, daemon=True)


def _text(path: str) -> str:
    try:
        return read(path, 256).decode("utf-8", "replace").strip()
    except OSError:
        return ""


def announce() -> None:
    """Take a name of our own: whoever started us sees that we look."""
    try:
        with open("/proc/self/comm", "w", encoding="ascii") as handle:
            handle.write("job_samples")
    except OSError:
        return


def leave(document: dict[str, Any]) -> None:
    """Print, and go without waiting for any thread."""
    data = (json.dumps(document, separators=(",", ":"), default=str) + "\n").encode("utf-8", "replace")
    try:
        while data:
            data = data[os.write(1, data) :]
    except OSError:
        pass
    for handle in (1, 2):
        try:
            os.close(handle)
        except OSError:
            continue
    os._exit(0)


def main() -> None:
    """Collect, print, leave."""
    asked, begun = Asked(), time.monotonic()
    parser = argparse.ArgumentParser()
    parser.add_argument("--deadline", type=float, default=20.0)
    parser.add_argument("--root", default="")
    parser.add_argument("--pid", type=int, action="append", default=[])
    parser.add_argument("--runtime", action="append", default=[])
    parser.add_argument("--hz", type=float, default=50.0)
    parser.add_argument("--seconds", type=float, default=2.0)
    parser.add_argument("--until-mono", type=int, default=0)
    options = parser.parse_args()
    try:
        ranges(options.runtime)
    except ValueError:
        parser.error("--runtime takes PID:START-END in hexadecimal")
    options.hz = min(max(options.hz, 1.0), 100.0)
    leave(collect(options, asked, begun + max(options.deadline - MARGIN, options.deadline / 2)))


if __name__ == "__main__":
    if sys.platform != "linux":
        raise SystemExit("this reads /proc: Linux only")
    main()
