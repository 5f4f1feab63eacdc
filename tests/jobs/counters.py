# mypy: ignore-errors
# ruff: noqa: ANN001, ANN201, ANN202, ANN204, PTH110, PTH118, PTH123, PTH208, UP031
"""What the jobs of the tests share: a file with their counters, and code that is run on their main thread on SIGUSR1.

The file is four unsigned 64-bit numbers: iterations, the longest one (ns; a reader may set it to 0), the end of the last
(CLOCK_MONOTONIC ns), and one that a job may use. Python 3.8, standard library.
"""

import mmap
import os
import signal
import struct
import sys
import time


class Counters:
    """`path`: the file; empty for memory of its own."""

    def __init__(self, path=None):
        path = os.environ.get("GPUDIAG_JOB_COUNTERS", "") if path is None else path
        if path:
            with open(path, "r+b") as file:
                self._map = mmap.mmap(file.fileno(), 32)
        else:
            self._map = mmap.mmap(-1, 32)
        self._count = 0
        self._last = time.monotonic_ns()

    def tick(self):
        """An iteration ended."""
        now = time.monotonic_ns()
        took, self._last = now - self._last, now
        self._count += 1
        longest = struct.unpack_from("<Q", self._map, 8)[0]
        struct.pack_into("<QQQ", self._map, 0, self._count, max(longest, took), now)
        rest()

    def note(self, number):
        """The number that a job may use."""
        struct.pack_into("<Q", self._map, 24, number)


def rest():
    """A pause of an iteration: GPUDIAG_JOB_PAUSE seconds.

    Where GPUDIAG_JOB_CAPTURES names the folder of captures, each of which has its document when it is over, only while there is
    none under way: a test pays for the window of a capture, and not for what is before and after.
    """
    pause = float(os.environ.get("GPUDIAG_JOB_PAUSE", "0"))
    folder = os.environ.get("GPUDIAG_JOB_CAPTURES")
    if pause and not (folder and _watched(folder)):
        time.sleep(pause)


def _watched(folder):
    try:
        return any(not os.path.exists(os.path.join(folder, name, "capture.json")) for name in os.listdir(folder))
    except FileNotFoundError:
        return False
    except OSError:  # of another user: it cannot be seen
        return True


def ready():
    """Say that the job runs; from now on SIGUSR1 runs the statement in the file that GPUDIAG_JOB_EXEC names."""
    if os.environ.get("GPUDIAG_JOB_EXEC"):
        signal.signal(signal.SIGUSR1, _run)
    print("ready", flush=True)


def _run(_number, _frame):
    with open(os.environ["GPUDIAG_JOB_EXEC"]) as file:
        code = file.read()
    try:
        exec(code, sys.modules["__main__"].__dict__)
    except BaseException as e:  # noqa: BLE001 - a test reads what was raised
        print("raised %r" % (e,), flush=True)


def burn(seconds):
    """Pure Python for about so long, on the CPU and with the interpreter's lock held."""
    until = time.perf_counter() + seconds
    total = 0
    while time.perf_counter() < until:
        for i in range(100):
            total = (total * 31 + i) & 0xFFFFFFFF
    return total
