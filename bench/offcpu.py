"""What recording the switches of a job's threads costs it.

    python bench/offcpu.py --pairs 10
    python bench/offcpu.py --tool bpftrace --pairs 6

Runs a loop of plain Python that pauses and asks two threads something in each round, at several rates, and threads that wake each other through
pipes as fast as they can. Windows with and without the recording take turns, and each with is compared with the two without around it.
Printed are the switches a second, the median loss of rounds a second with its standard error, the same in CPU time a round (which other work on
the machine touches less) and for each switch, what starting and stopping took, and the records that were lost.

Measured: see docs/profile.md.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from probes.capture.offcpu import _offcpu_standing, offcpu  # noqa: E402  the checkout comes first on the path
from tests.live_jobs import Job  # noqa: E402

ANY = dict.fromkeys(offcpu.TOOLS, 10**9)  # what is measured is what the usual bound would keep it from
LOOP = """
import os, sys, threading, time
from counters import Counters, ready
def answer(r, w):
    while True:
        os.write(w, os.read(r, 1))
busy, pause = int(sys.argv[1]), float(sys.argv[2])
pairs = []
for _ in range(busy):
    (a, b), (c, d) = os.pipe(), os.pipe()
    threading.Thread(target=answer, args=(a, d), daemon=True).start()
    pairs.append((b, c))
counters = Counters()
ready()
while True:
    if pause:
        total = 0
        for i in range(20000):
            total = (total * 31 + i) & 0xFFFFFFFF
        time.sleep(pause)
    for there, back in pairs:
        os.write(there, b"x")
        os.read(back, 1)
    counters.tick()
"""


def on_cpu(pid: int) -> int:
    """ns that all threads have run."""
    found = Path(f"/proc/{pid}/task").glob("*/schedstat")
    return sum(int(path.read_text().split()[0]) for path in found)


def window(job: Job, seconds: float) -> tuple[float, float, float]:
    """Rounds a second, ns of CPU a round, switches a round."""
    count, cpu, switched, at = job.iterations, on_cpu(job.pid), _offcpu_standing.switches([job.pid]), time.monotonic()
    time.sleep(seconds)
    done, took = max(1, job.iterations - count), time.monotonic() - at
    return done / took, (on_cpu(job.pid) - cpu) / done, (_offcpu_standing.switches([job.pid]) - switched) / done


def compare(job: Job, seconds: float, pairs: int, tool: str, what: str) -> None:
    """Prints one line."""
    losses, cpu, each, starts, stops, lost = [], [], [], [], [], 0
    before = window(job, seconds)
    rate = before[0] * before[2]
    for _ in range(pairs):
        at = time.monotonic()
        recording = offcpu.Recording([job.pid], 30.0, tools=(tool,), busiest=ANY)
        recording.start()
        starts.append(time.monotonic() - at)
        seen = window(job, seconds)
        at = time.monotonic()
        document = recording.stop()
        stops.append(time.monotonic() - at)
        if document["error"]:
            print(f"{what}: {document['error']}")
            return
        lost += document["lost"]
        after = window(job, seconds)
        usual = (before[1] + after[1]) / 2
        losses.append(100 * (1 - 2 * seen[0] / (before[0] + after[0])))
        cpu.append(100 * (seen[1] / usual - 1))
        each.append((seen[1] - usual) / max(seen[2], 1e-9) / 1000)
        before = after
    error = 1.25 * statistics.stdev(losses) / len(losses) ** 0.5 if len(losses) > 1 else 0.0
    middle = statistics.median
    print(
        f"{what}: {rate:.0f} switches/s, loss {middle(losses):+.2f} ± {error:.2f} %, CPU a round {middle(cpu):+.2f} %, "
        f"{middle(each):.1f} us a switch; start {middle(starts):.2f} s, stop {middle(stops):.2f} s, {lost} records lost",
        flush=True,
    )


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, default=10)
    parser.add_argument("--seconds", type=float, default=1.0, help="of one window")
    parser.add_argument("--tool", choices=offcpu.TOOLS, default="perf")
    options = parser.parse_args(argv)
    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder) / "loop.py"
        script.write_text(LOOP)
        env = {"PYTHONPATH": str(ROOT / "tests" / "jobs")}
        for what, busy, pause in (("pauses of 10 ms", 1, 0.01), ("pauses of 1 ms", 2, 0.001), ("no pause", 2, 0.0)):
            with Job(str(script), str(busy), str(pause), env=env) as job:
                compare(job, options.seconds, options.pairs, options.tool, what)


if __name__ == "__main__":
    main()
