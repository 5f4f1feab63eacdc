"""What a capture from inside costs a training job: python bench/capture.py [--rounds N] [options of tests/jobs/train.py]

Needs an interpreter with torch (GPUDIAG_TORCH_PYTHON). Prints, for windows of time and of iterations, the job's rate before,
within and after, its longest iteration in quiet and during the capture, what the stop took, and what stays.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))
from probes.capture.guest.guest import Guest
from probes.capture.inject import inject
from probes.capture.model import Item, Target, Window
from probes.capture.whom import identity
from tests.live_jobs import Job, torch_python

QUIET = 2.0  # seconds
CASES = {
    "2 s": ((Item.TORCH,), Window(duration_ns=2_000_000_000)),
    "2 s, shapes": ((Item.TORCH, Item.SHAPES), Window(duration_ns=2_000_000_000)),
    "skip 3, then 5": ((Item.TORCH,), Window(iterations=5, skip=3)),
    "5, shapes, loss, gradnorm": ((Item.TORCH, Item.SHAPES, Item.LOSS, Item.GRADNORM), Window(iterations=5)),
    "2 s, loss alone": ((Item.LOSS,), Window(duration_ns=2_000_000_000)),
}


def status(pid: int, word: str) -> int:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith(word):
            return int(line.split()[1])
    return 0


def state(job: Job) -> str:
    opened = len(list(Path(f"/proc/{job.pid}/fd").iterdir()))
    return f"RSS {status(job.pid, 'VmRSS') >> 10} MiB, threads {status(job.pid, 'Threads')}, descriptors {opened}"


def cpu(job: Job) -> int:
    """ns that the driving thread has computed so far."""
    return int(Path(f"/proc/{job.pid}/task/{job.pid}/schedstat").read_text().split()[0])


def quiet(job: Job) -> tuple[float, float, float]:
    """Iterations a second, ms of the longest, and CPU ms of one: that, other work on the machine touches least."""
    job.forget_longest()
    count, spent = job.iterations, cpu(job)
    rate = job.rate(QUIET)
    return rate, job.longest_ns / 1e6, (cpu(job) - spent) / max(1, job.iterations - count) / 1e6


def measure(job: Job, name: str, folder: Path) -> float:
    """What the job costs afterwards, against before: percent of CPU time an iteration."""
    items, window = CASES[name]
    before, normal, price = quiet(job)
    target = Target(identity.read(job.pid))
    one = Guest(target, items, window)
    one.prepare()
    job.forget_longest()
    count, at = job.iterations, time.monotonic()
    done = inject.run(target.process, one.code)
    longest: dict[str, float] = {}
    phase = "inject"
    while not (state_now := one.poll()).over:
        longest[phase] = max(longest.get(phase, 0.0), job.longest_ns / 1e6)
        if state_now.phase != phase:
            phase = state_now.phase
            job.forget_longest()
        time.sleep(0.005)
    longest[phase] = max(longest.get(phase, 0.0), job.longest_ns / 1e6)
    took = time.monotonic() - at
    within = (job.iterations - count) / took
    parts, iterations, torch = one.collect(folder)
    one.clean()
    after, _, then = quiet(job)
    profiler = (torch or {}).get("profiler", {})
    inside = 0
    if iterations is not None:
        inside = sum(iterations["began"] < e <= iterations["ended"] for e in iterations["ends"])
    worst = max(longest.values())
    print(f"{name:28} {done.rung.value}: rate {before:.1f} -> {within:.1f} -> {after:.1f} /s, CPU an iteration {price:.2f} -> {then:.2f} ms, "
          f"longest {normal:.0f} -> {worst:.0f} ms, iterations in the window {inside}, events {profiler.get('events', 0)}, "
          f"stop {profiler.get('stop_ns', 0) / 1e6:.0f} ms, save {profiler.get('save_ns', 0) / 1e6:.0f} ms, took {took:.1f} s")  # fmt: skip
    print(f"{'':28} by phase: {', '.join(f'{k} {v:.0f}' for k, v in longest.items())} ms; {parts[0].outcome}: {parts[0].why.en}; {state(job)}")  # fmt: skip
    return 100 * (then / price - 1)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=1)
    options, words = parser.parse_known_args()
    print(f"load of this machine: {os.getloadavg()[0]:.1f} on {os.cpu_count()} CPUs")
    with tempfile.TemporaryDirectory() as folder, Job("train.py", *words, interpreter=torch_python()) as job:
        print(f"{'at the begin':28} {state(job)}")
        found = [measure(job, name, Path(folder)) for _ in range(options.rounds) for name in CASES]
    if len(found) > 1:
        error = statistics.stdev(found) / len(found) ** 0.5
        print(
            f"CPU time an iteration after a capture, against before: median {statistics.median(found):+.1f} ± {error:.1f} %"
        )


if __name__ == "__main__":
    main()
