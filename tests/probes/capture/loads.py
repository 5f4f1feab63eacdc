"""Processes with one thing the matter with them, for the tests of samples, and what the samplers say of them."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from knowledge.observation import Observation, Scope, Status, Subject, node
from probes.capture.inject import interpreter
from probes.capture.model import Process, Target
from probes.capture.readings import thread_facts
from probes.capture.readings.samples import Recording, Samples
from probes.live_host import LiveHost
from tests.components import cannot
from tests.probes.capture.real_processes import started

HOST = "gpu-1"
PYTHON = [sys.executable, "-I", "-S", "-B", "-u", "-c"]
SLEEP = "import time; print('ready'); time.sleep(60)"
BURN = "print('ready')\nwhile True: pass"
FIGHT = """
import threading
def score():
    while True: sum(range(1000))
for _ in range(2): threading.Thread(target=score, daemon=True).start()
print('ready', flush=True)
score()
"""
READER = """
import os, sys
fd = os.open(sys.argv[1], os.O_RDONLY)
print('ready', flush=True)
while True:
    os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
    for at in range(0, os.fstat(fd).st_size, 1 << 20): os.pread(fd, 1 << 20, at)
"""
COMES_AND_GOES = """
import threading, time
print('ready', flush=True)
while True:
    threads = [threading.Thread(target=time.sleep, args=(0.3,)) for _ in range(3)]
    for t in threads: t.start()
    for t in threads: t.join()
    time.sleep(0.1)
"""
ENDS = "import os, sys, time; print('ready', flush=True)\nwhile not os.path.exists(sys.argv[1]): time.sleep(0.02)"


def python(code: str, *words: str) -> Any:
    """A Python that runs `code`, which says that it is ready."""
    return started([*PYTHON, code, *words])


def target(pid: int, *helpers: int, gpus: Sequence[str] = ()) -> Target:
    """A target of a capture."""
    return Target(Process(pid, 0, "x"), gpus=tuple(gpus), helpers=tuple(Process(h, 0, "worker") for h in helpers))


def subject(pid: int) -> Subject:
    """The process as facts name it."""
    return Subject(Scope.PROCESS, str(pid), node(HOST))


def sampled(*pids: int, seconds: float = 1.0, until: Callable[[], bool] | None = None, hz: float = 50.0) -> Samples:
    """What the samplers tell of processes over a window."""
    runtimes = {pid: found for pid in pids if (found := interpreter.runtime_range(pid))}
    with LiveHost(HOST) as host:
        recording = Recording(host, pids, runtimes=runtimes, gpus=False, hz=hz, longest=60)
        recording.start()
        assert recording.ready(60)
        time.sleep(seconds)
        end = time.monotonic() + 30
        while until is not None and not until() and time.monotonic() < end:
            time.sleep(0.05)
        return recording.stop()


def facts(document: Mapping[str, Any], pid: int, *helpers: int, **more: Any) -> dict[str, Observation]:
    """The facts of one process by name."""
    return {o.fact: o for o in thread_facts.observations(document, target(pid, *helpers), subject(pid), **more)}


def value(found: Mapping[str, Observation], fact: str) -> float:
    """The number that a fact has to have."""
    one = found[fact]
    assert one.status is Status.OK, (fact, one.status, one.detail)
    assert isinstance(one.value, int | float)
    return float(one.value)


@contextmanager
def quota(share: float) -> Iterator[Path]:
    """A control group of our own that may use `share` of a core; skips where none can be made."""
    period = 100_000
    for base, limits in (
        (Path("/sys/fs/cgroup"), {"cpu.max": f"{int(share * period)} {period}"}),
        (Path("/sys/fs/cgroup/unified"), {"cpu.max": f"{int(share * period)} {period}"}),
        (Path("/sys/fs/cgroup/cpu"), {"cpu.cfs_period_us": str(period), "cpu.cfs_quota_us": str(int(share * period))}),
        (
            Path("/sys/fs/cgroup/cpu,cpuacct"),
            {"cpu.cfs_period_us": str(period), "cpu.cfs_quota_us": str(int(share * period))},
        ),
    ):
        group = base / f"gpudiag-test-{os.getpid()}"
        try:
            group.mkdir()
        except OSError:
            continue
        try:
            for name, text in limits.items():
                put(group / name, text)
        except OSError:  # no CPU controller there, or no control groups at all
            group.rmdir()
            continue
        try:
            yield group
        finally:
            _empty(group, base)
        return
    cannot("cgroup", "no control group with a CPU quota can be made here")


def put(path: Path, text: str) -> None:
    """Write to a file of the kernel. OSError when there is none: nothing is ever made."""
    fd = os.open(path, os.O_WRONLY)
    try:
        os.write(fd, text.encode())
    finally:
        os.close(fd)


def _empty(group: Path, base: Path) -> None:
    """Remove it; the processes in it are killed by whoever started them, or moved up."""
    end = time.monotonic() + 10
    while True:
        for pid in (group / "cgroup.procs").read_text().split():
            with suppress(OSError):
                put(base / "cgroup.procs", pid)
        with suppress(OSError):
            group.rmdir()
            return
        assert time.monotonic() < end, f"{group} cannot be removed"
        time.sleep(0.05)
