"""What the terminal app costs, beside nvitop in the same run.

    python bench/tui.py [--seconds 20] [--rounds 5] [--nvitop FOLDER]

Both run in a terminal of 160x50 (a pty that this program reads), over the same 8 GPUs: those of tests/native/nvml.c, whose
calls cost nothing, so that only the programs are measured. Rounds alternate between them; the median counts. Printed are:
first paint (from the start of the process to the first frame with its content), a key until it is seen on the
screen while the machine is probed once a second, processor time with nobody at the keyboard (the program and its children, as a share of a core),
memory (proportional set size, with children). A key is a letter that is typed, the page of help that is called up (the one thing that both programs
have), and of the app a page further in a log of 10,000 lines. Of the app alone also: a recording of ten minutes and 8 GPUs, replayed at the speed at which it was recorded.

nvitop is installed into an environment of its own (`--nvitop`, else a temporary one); without it only the app is measured.
Exit code 1 when a promise is broken: 700 ms to the first paint, 50 ms for a key, 1 % of a core idle.
"""

from __future__ import annotations

import argparse
import fcntl
import os
import pty
import select
import shutil
import signal
import statistics
import struct
import subprocess
import sys
import tempfile
import termios
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))

import psutil  # noqa: E402 - needs the path above

from tests import nvml_lab as lab  # noqa: E402
from tests.tui.live_lab import recording  # noqa: E402

SIZE = (160, 50)
PAINT, KEY, IDLE = 0.7, 0.05, 0.01  # what is promised: seconds, seconds, share of a core
PATIENCE = 60.0
PACE = 0.37  # seconds between two keys, so that they fall into every part of the second
LINES = 10_000


class Screen:
    """A program in a terminal of its own, all that it writes, and when."""

    def __init__(self, argv: Sequence[str], environ: Mapping[str, str]) -> None:
        self.begun = time.perf_counter()
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.chdir(ROOT)
            os.execve(argv[0], list(argv), {**environ, "TERM": "xterm-256color", "COLORTERM": "truecolor"})
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", SIZE[1], SIZE[0], 0, 0))
        self.seen = b""

    def read(self, seconds: float) -> bytes:
        """What comes within `seconds`; at once when something has."""
        ready, _, _ = select.select([self.fd], [], [], max(0.0, seconds))
        if not ready:
            return b""
        try:
            part = os.read(self.fd, 1 << 16)
        except OSError:
            part = b""
        self.seen += part
        return part

    def until(self, wanted: bytes, since: int = 0) -> float:
        """The time at which `wanted` stands in what was written from position `since` on."""
        end = time.perf_counter() + PATIENCE
        while wanted not in self.seen[since:]:
            self.read(0.5)
            if time.perf_counter() > end:
                raise SystemExit(f"{wanted!r} did not come: {self.seen[-2000:]!r}")
        return time.perf_counter()

    def idle(self, seconds: float) -> None:
        """Let it be, and read what it writes."""
        end = time.perf_counter() + seconds
        while (left := end - time.perf_counter()) > 0:
            self.read(left)

    def key(self, sent: bytes, wanted: bytes) -> float:
        """Seconds from a key to what it brings; to whatever is drawn next when `wanted` is empty."""
        since, begun = len(self.seen), time.perf_counter()
        os.write(self.fd, sent)
        if wanted:
            return self.until(wanted, since) - begun
        self.read(PATIENCE)
        return time.perf_counter() - begun

    def family(self) -> list[psutil.Process]:
        """It and its children."""
        own = psutil.Process(self.pid)
        return [own, *own.children(recursive=True)]

    def cpu(self) -> float:
        """Seconds of processor time, with those of children that have ended."""
        total = 0.0
        for process in self.family():
            try:
                t = process.cpu_times()
            except psutil.Error:
                continue
            total += t.user + t.system
            if process.pid == self.pid:
                total += t.children_user + t.children_system
        return total

    def memory(self) -> int:
        """Bytes, pages that several share divided between them."""
        total = 0
        for process in self.family():
            try:
                total += process.memory_full_info().pss
            except psutil.Error:
                continue
        return total

    def close(self) -> None:
        """End it and all that it started."""
        processes = self.family()
        os.kill(self.pid, signal.SIGTERM)
        end = time.monotonic() + 10
        while time.monotonic() < end:
            self.read(0.1)
            if os.waitpid(self.pid, os.WNOHANG)[0]:
                break
        else:
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
        os.close(self.fd)
        psutil.wait_procs(processes[1:], timeout=5)


@dataclass
class Job:
    """One program as it is started."""

    name: str
    argv: Sequence[str]
    environ: Mapping[str, str]
    frame: bytes  # what stands in its first frame
    first: bytes = b""  # keys when it has settled
    typed: bool = False  # whether letters are seen when they are typed
    page: tuple[bytes, bytes] = (b"", b"")  # the key of its help, and what stands there
    walk: bytes = b""  # a key that shows other lines
    figures: dict[str, list[float]] = field(default_factory=dict)

    def add(self, name: str, value: float) -> None:
        """One figure more."""
        self.figures.setdefault(name, []).append(value)

    def median(self, name: str) -> float | None:
        """Of a figure; None when it was not measured."""
        return statistics.median(self.figures[name]) if self.figures.get(name) else None


def measure(job: Job, seconds: float, settle: float) -> None:
    """One round."""
    screen = Screen(job.argv, job.environ)
    try:
        job.add("paint", screen.until(job.frame) - screen.begun)
        screen.idle(settle)
        if job.first:
            os.write(screen.fd, job.first)
            screen.idle(1.0)
        for letter in "ЖЩЪЭЮЯДЛФЦ" if job.typed else "":  # letters that nothing else on the screen has
            job.add("key", screen.key(letter.encode(), letter.encode()))
            screen.idle(PACE)
        for _ in range(5 if job.page[0] else 0):
            job.add("page", screen.key(*job.page))
            screen.idle(PACE)
            os.write(screen.fd, b"\x1b")
            screen.idle(1.0)
        for _ in range(20 if job.walk else 0):
            job.add("walk", screen.key(job.walk, b""))
            screen.idle(PACE)
        screen.idle(1.0)
        before, begun = screen.cpu(), time.perf_counter()
        screen.idle(seconds)
        job.add("idle", (screen.cpu() - before) / (time.perf_counter() - begun))
        job.add("memory", screen.memory())
    finally:
        screen.close()


def nvitop(folder: Path) -> Path | None:
    """nvitop in an environment of its own; None where it cannot be had."""
    program = folder / "bin" / "nvitop"
    if not program.exists():
        made = subprocess.run([sys.executable, "-m", "venv", str(folder)], check=False)
        if made.returncode:
            return None
        pip = [
            str(folder / "bin" / "python"),
            "-m",
            "pip",
            "install",
            "--quiet",
            "--disable-pip-version-check",
            "nvitop",
        ]
        if subprocess.run(pip, check=False).returncode:
            return None
    return program


def log(folder: Path) -> Path:
    """A kernel log of 10,000 lines, some of them of GPUs."""
    target = folder / "kern.log"
    lines = [
        f"2026-07-08T12:{n // 600 % 60:02d}:{n // 10 % 60:02d}.{n % 10}00000+00:00 gpu-12 kernel: "
        + (
            f"NVRM: Xid (PCI:0000:3b:00): 31, pid={n}, name=python, Ch 00000008"
            if n % 97 == 0
            else f"usb 1-1: message {n} of a device"
        )
        for n in range(LINES)
    ]
    target.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return target


def jobs(folder: Path, program: Path | None) -> list[Job]:
    """What is measured."""
    fake = lab.environment(lab.folder(folder, "healthy8"))
    kept = {k: v for k, v in fake.items() if not k.startswith("GPUDIAG_") and k not in ("NO_COLOR", "COLUMNS", "LINES")}
    kept["LANG"] = "C.UTF-8"
    mine = {**kept, "GPUDIAG_HISTORY_URL": "off", "GPUDIAG_STATE_DIR": str(folder / "state"), "PYTHONPATH": str(ROOT),
            "GPUDIAG_CACHE_DIR": str(folder / "cache"), "PYTHONPYCACHEPREFIX": str(folder / "pyc")}  # fmt: skip
    mine.pop("PYTHONDONTWRITEBYTECODE", None)
    gpudiag = [sys.executable, "-P", "-m", "assistant", "tui", "--new"]
    page = (b"\x1bOP", b"Ctrl-P finds")  # F1
    over_time = recording(folder)
    out = [
        Job("gpudiag, live", gpudiag, mine, b"Findings", typed=True, page=page),
        Job(
            "gpudiag, replay",
            [*gpudiag, "--bundle", over_time, "--screen", "live"],
            mine,
            b"Findings",
            first=b" ",
            page=page,
        ),
        Job(
            "gpudiag, log", [*gpudiag, "--log", str(log(folder)), "--screen", "log"], mine, b"Findings", walk=b"\x1b[5~"
        ),
    ]
    if program is not None:
        out.append(Job("nvitop", [str(program), "--monitor", "full"], kept, b"H100", page=(b"h", b"coloring rules")))
    return out


def table(found: Sequence[Job]) -> None:
    """Print it."""

    def shown(job: Job, name: str, factor: float, unit: str, digits: int = 0) -> str:
        value = job.median(name)
        return "–" if value is None else f"{value * factor:.{digits}f} {unit}"

    print(
        f"{'':18}{'first paint':>13}{'a letter':>10}{'worst':>9}{'help page':>11}{'lines on':>10}{'idle, of a core':>17}{'memory':>10}"
    )
    for job in found:
        worst = f"{max(job.figures['key']) * 1e3:.0f} ms" if "key" in job.figures else "–"
        print(
            f"{job.name:18}{shown(job, 'paint', 1e3, 'ms'):>13}{shown(job, 'key', 1e3, 'ms'):>10}{worst:>9}"
            f"{shown(job, 'page', 1e3, 'ms'):>11}{shown(job, 'walk', 1e3, 'ms'):>10}{shown(job, 'idle', 100, '%', 1):>17}"
            f"{shown(job, 'memory', 2**-20, 'MiB'):>10}"
        )


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--seconds", type=float, default=20.0, help="how long nobody touches a key")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--settle", type=float, default=8.0, help="seconds until the first looks are over")
    parser.add_argument("--nvitop", default="", help="folder of an environment with nvitop, or where to make one")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        program = nvitop(Path(args.nvitop) if args.nvitop else folder / "nvitop")
        found = jobs(folder, program)
        for job in found:  # compiles modules and data
            measure(replace(job, figures={}, typed=False, page=(b"", b""), walk=b""), 0.1, args.settle)
        shutil.rmtree(folder / "state", ignore_errors=True)
        for _ in range(args.rounds):
            for job in found:
                measure(job, args.seconds, args.settle)
    table(found)
    live, replay = found[:2]
    promises = {
        "first paint": (live.median("paint"), PAINT),
        "key": (live.median("key"), KEY),
        "idle": (replay.median("idle"), IDLE),
    }
    broken = [name for name, (value, most) in promises.items() if value is None or value > most]
    print("over its promise: " + ", ".join(broken) if broken else "within all promises")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
