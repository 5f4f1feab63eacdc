"""What `watch --profile` costs: CPU of the sampler and of py-spy, rate of the target with and without, bytes of the history.

    python bench/profiles.py [--seconds 60] [--threads 20]

Prints the share of a core that the sampling takes, and what a day of it would write.
"""

from __future__ import annotations

import argparse
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from assistant.watch.stacks import Sampler

JOB = """
import sys, threading, time
steps = 0
def forward(): return sum(range(2000))
def load(): return [str(i) for i in range(300)]
def waits(): threading.Event().wait()
for _ in range(int(sys.argv[1])): threading.Thread(target=waits, daemon=True).start()
while True:
    until, steps = time.monotonic() + 1, 0
    while time.monotonic() < until:
        load(); forward(); steps += 1
    print(steps, flush=True)
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--threads", type=int, default=20)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder, "profiled_job.py")
        script.write_text(JOB)
        history = Path(folder, "history.db")
        settings: Any = SimpleNamespace(
            history=SimpleNamespace(url=f"sqlite:///{history}"), machine=SimpleNamespace(name="bench")
        )
        job = subprocess.Popen([sys.executable, str(script), str(args.threads)], stdout=subprocess.PIPE, text=True)
        try:
            assert job.stdout is not None
            without = [int(job.stdout.readline()) for _ in range(int(args.seconds / 3))]
            before = _cpu()
            sampler = Sampler(settings, [script.name], print, minute=args.seconds / 2)
            sampler.start()
            begun = time.monotonic()
            sampled = [int(job.stdout.readline()) for _ in range(int(args.seconds))]
            sampler.close(30)
            lasted, spent = time.monotonic() - begun, _cpu() - before
            after = [int(job.stdout.readline()) for _ in range(int(args.seconds / 3))]
        finally:
            job.kill()
            job.wait()
        rest = statistics.median([*without, *after])
        print(f"sampling: {100 * spent / lasted:.2f} % of a core (it writes once; every five minutes in service)")
        print(f"rate of the target: {100 * statistics.median(sampled) / rest - 100:+.2f} % against without")
        print(f"history: {history.stat().st_size >> 10} KiB after {lasted:.0f} s")


def _cpu() -> float:
    own, children = resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN)
    return own.ru_utime + own.ru_stime + children.ru_utime + children.ru_stime


if __name__ == "__main__":
    main()
