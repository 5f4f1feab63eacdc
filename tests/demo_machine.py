"""Runs one program of ours as if on a machine that `tests.demo_lab` has made: its clock, its file systems.

``python -I -B demo_machine.py CONFIG PROGRAM [ARGUMENT ...]``. CONFIG is a JSON file: `now_ns` and `uptime_ns` of the
clocks, `root` of the tree, `later` (a folder whose files hide those of the tree once the program has slept between two
readings), and what statvfs answers for a mount point: eight figures, or "hung". The clocks move only by sleeping,
and by all else when that takes longer than two seconds, so that what two runs print is the same. Standard library only.
"""

from __future__ import annotations

# ruff: noqa: PTH110
import json
import os
import runpy
import sys
import time
from pathlib import Path
from typing import Any

FREE = 2.0  # seconds of work that count as none
STEP = 0.25  # in which the clocks move after that: something hangs
BETWEEN = 0.2  # who sleeps longer waits for the second reading


class Clock:
    """Time as the program sees it."""

    def __init__(self, now_ns: int, uptime_ns: int) -> None:
        self.now_ns, self.uptime_ns = now_ns, uptime_ns
        self.real, self.sleep_for = time.monotonic, time.sleep
        self.begun, self.slept, self.later = time.monotonic(), 0.0, False
        self.stands = False  # for gpudiag itself, whose children's time does not add up to its own

    def passed(self) -> float:
        """Seconds since the program started."""
        other = self.real() - self.begun - self.slept
        return self.slept + (0.0 if other < FREE else other // STEP * STEP)

    def sleep(self, seconds: float) -> None:
        """Sleep, and be later."""
        before = self.slept
        self.sleep_for(seconds)
        self.slept = max(self.slept, before + seconds)  # threads sleep side by side
        self.later = self.later or seconds >= BETWEEN

    def install(self) -> None:
        """Replace the clocks of the module `time`."""
        set_: Any = time
        if self.stands:
            set_.time_ns, set_.time = lambda: self.now_ns, lambda: self.now_ns / 1e9
            return
        set_.sleep = self.sleep
        set_.time_ns = lambda: self.now_ns + int(self.passed() * 1e9)
        set_.time = lambda: time.time_ns() / 1e9
        set_.monotonic = lambda: self.uptime_ns / 1e9 + self.passed()
        set_.monotonic_ns = lambda: self.uptime_ns + int(self.passed() * 1e9)
        set_.process_time = lambda: 0.0312
        set_.perf_counter = time.monotonic


def answer_files(clock: Clock, root: str, later: str) -> None:
    """Let files of `later` stand in the tree after the pause."""
    true_open = os.open

    def opened(path: Any, *args: Any, **more: Any) -> int:
        if clock.later and isinstance(path, str) and path.startswith(root + "/"):
            other = later + path[len(root) :]
            path = other if os.path.exists(other) else path
        return true_open(path, *args, **more)

    os.open = opened


def answer_mounts(clock: Clock, root: str, mounts: dict[str, Any]) -> None:
    """Let the mount points of the tree be file systems of their own."""
    true_statvfs, true_stat = os.statvfs, os.stat

    def at(path: Any) -> str:
        text = os.fsdecode(path) if isinstance(path, (str, bytes)) else ""
        return (text[len(root) :] or "/") if text.startswith(root) else ""

    def statvfs(path: Any) -> Any:
        answer = mounts.get(at(path))
        if answer == "hung":
            while True:
                clock.sleep_for(60)
        if answer is None:
            return true_statvfs(path)
        return os.statvfs_result((*answer[:8], answer[8] if len(answer) > 8 else 4096, 255))

    def stat(path: Any, *args: Any, **more: Any) -> Any:
        found = true_stat(path, *args, **more)
        if at(path) not in mounts:
            return found
        return os.stat_result((*found[:2], found[2] + 1 + sorted(mounts).index(at(path)), *found[3:10]))

    os.statvfs, os.stat = statvfs, stat


def answer_clock_discipline() -> None:
    """The kernel's clock is kept by a time server: adjtimex answers for the machine, not for this one."""
    import ctypes

    real: Any = ctypes.CDLL

    class Library:
        def __init__(self, name: Any, *args: Any, **more: Any) -> None:
            self._real = real(name, *args, **more)

        def __getattr__(self, name: str) -> Any:
            return adjtimex if name == "adjtimex" else getattr(self._real, name)

    def adjtimex(reference: Any) -> int:
        timex = reference._obj
        timex.status, timex.maxerror, timex.esterror = 0x2001, 21500, 190
        return 0

    set_: Any = ctypes
    set_.CDLL = lambda name=None, *a, **k: Library(name, *a, **k) if name is None else real(name, *a, **k)


def main() -> None:
    """Become PROGRAM."""
    config = json.loads(Path(sys.argv[1]).read_text())
    words = sys.argv[2:]
    while words and words[0].startswith("-") and words[0] != "-m":
        words = words[1:]
    clock = Clock(config["now_ns"], config["uptime_ns"])
    clock.stands = words[0] == "-m"
    clock.install()
    system = os.uname()
    os.uname = lambda: os.uname_result((system[0], config["name"], config["release"], "#132-Ubuntu SMP", system[4]))
    answer_files(clock, config["root"], config["later"])
    answer_mounts(clock, config["root"], config["mounts"])
    answer_clock_discipline()
    if words[0] == "-m":  # gpudiag itself: its children are run by the same interpreter as it is
        sys.executable = config["python"]
        sys.path.insert(0, config["repository"])
        import probes.live_host

        live: Any = probes.live_host
        live.FOLDERS = ()  # no tool of this machine
        live.boot_id = lambda: ""  # no memory of calls that hung here
        sys.argv = words[1:]
        runpy.run_module(words[1], run_name="__main__", alter_sys=True)
        return
    sys.argv = words
    runpy.run_path(words[0], run_name="__main__")


if __name__ == "__main__":
    main()
