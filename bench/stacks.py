"""What sampling the stacks of a job costs it, and what it costs the machine.

    python bench/stacks.py --rates 20,50,100
    python bench/stacks.py --threads 150 --rates 10,20,50
    python bench/stacks.py --rates 50 --blocking

Runs a training loop of torch on one core (GPUDIAG_TORCH_PYTHON), or with `--threads` a loop of plain Python beside so many waiting threads, and one
py-spy, which is held and let go (SIGSTOP, SIGCONT) in windows of a fifth of a second that take turns, so that what else the machine does meets both
alike. py-spy makes up for the time that it was held: it is told half the rate, and so has the whole of it while it runs. Printed are, for each rate,
the loss of iterations a second with its standard error, the same in CPU time an iteration, what share of a core py-spy takes, and how many stacks a
second it read.

Measured on two shared cores of a cloud machine that other work kept busy (load 18), Python 3.11, torch 2.13, py-spy 0.4.3. The training loop at
50 Hz: loss -0.1 ± 0.6 % (400 pairs), py-spy 1.8 % of a core, 350 us a stack; stopping the job at each sample (--blocking) 44 ± 5 %. The loop
beside 150 threads: py-spy came to 730 to 1,300 stacks a second in the tenth to fifth of a core that it got, 140 us each; told 10 or 15 Hz no loss
showed above the noise of 2 to 5 %, told 50 Hz it was 6.0 ± 1.9 %.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from probes.capture.stacks import pyspy, stacks  # noqa: E402  the checkout comes first on the path
from tests.live_jobs import Job, torch_python  # noqa: E402

LOOP = """
import sys, threading
from counters import Counters, ready
def wait_a_little(event):
    while True:
        event.wait(0.1)
def work(n):
    total = 0
    for i in range(n):
        total = (total * 31 + i) & 0xFFFFFFFF
    return total
threading.stack_size(1 << 18)
for _ in range(int(sys.argv[1])):
    threading.Thread(target=wait_a_little, args=(threading.Event(),), daemon=True).start()
counters = Counters()
ready()
while True:
    work(20000)
    counters.tick()
"""
TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class Seen:
    """One window."""

    rate: float  # iterations a second
    cpu: float  # ns of the main thread an iteration


def on_cpu(pid: int) -> int:
    """ns that the main thread has run."""
    return int(Path(f"/proc/{pid}/task/{pid}/schedstat").read_text().split()[0])


def window(job: Job, seconds: float) -> Seen:
    """Between the ends of two iterations, so that no part of one counts."""
    count, at, cpu = job.iterations, job.last_ns, on_cpu(job.pid)
    time.sleep(seconds)
    done = max(1, job.iterations - count)
    return Seen(done * 1e9 / max(1, job.last_ns - at), max(1, on_cpu(job.pid) - cpu) / done)


def ticks(pid: int) -> int:
    """CPU time of a process."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return int(fields[11]) + int(fields[12])


def compare(job: Job, seconds: float, pairs: int, rate: int, blocking: bool) -> None:
    """Prints one line."""
    path = pyspy.program()
    assert path is not None
    losses, cpu = [], []
    with tempfile.TemporaryDirectory() as folder:
        argv = stacks.command(path, job.pid, max(1, rate // 2), 3600, Path(folder) / "out.json")
        if blocking:
            argv.remove("--nonblocking")
        child = subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        time.sleep(1.0)
        before, began = ticks(child.pid), time.monotonic()
        for _ in range(pairs):
            both: dict[bool, Seen] = {}
            for on in random.sample([True, False], 2):
                child.send_signal(signal.SIGCONT if on else signal.SIGSTOP)
                both[on] = window(job, seconds)
            losses.append(100 * (1 - both[True].rate / both[False].rate))
            if min(both[True].cpu, both[False].cpu) > 1000:  # else it did not run in one of them
                cpu.append(100 * (both[True].cpu / both[False].cpu - 1))
        child.send_signal(signal.SIGCONT)
        spent, took = (ticks(child.pid) - before) / TICKS, time.monotonic() - began
        child.send_signal(signal.SIGINT)
        said = child.communicate()[0]
    read = int(said.rpartition("Samples: ")[2].split()[0])
    late = ", fell behind" * ("behind in sampling" in said and took < 10)
    print(
        f"{rate:4} Hz{' blocking' * blocking}: loss {_middle(losses)} %, CPU an iteration {_middle(cpu)} %, "
        f"py-spy {200 * spent / took:.1f} % of a core, {2 * read / took:.0f} stacks/s, {1e6 * spent / max(read, 1):.0f} us each{late}",
        flush=True,
    )


def _middle(values: list[float]) -> str:
    """The mean without the tenth at either end, and its standard error."""
    kept = sorted(values)[len(values) // 10 : len(values) - len(values) // 10]
    error = statistics.stdev(kept) / len(kept) ** 0.5 if len(kept) > 1 else 0.0
    return f"{statistics.fmean(kept):+.2f} ± {error:.2f}"


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rates", default="20,50,100")
    parser.add_argument("--pairs", type=int, default=200)
    parser.add_argument("--seconds", type=float, default=0.2, help="of one window")
    parser.add_argument("--threads", type=int, default=0)
    parser.add_argument(
        "--blocking", action="store_true", help="stop the job at each sample, as py-spy does unless told not to"
    )
    parser.add_argument(
        "--alone",
        action="store_true",
        help="give the job a core that nothing else runs on (root): what sampling costs where cores are free",
    )
    options = parser.parse_args(argv)
    with tempfile.TemporaryDirectory() as folder:
        if options.threads:
            script = Path(folder) / "loop.py"
            script.write_text(LOOP)
            env = {"PYTHONPATH": str(ROOT / "tests" / "jobs")}
            job = Job(str(script), str(options.threads), env=env)
        else:
            job = Job("train.py", interpreter=torch_python())
        with job:
            if options.alone:
                for task in Path(f"/proc/{job.pid}/task").iterdir():
                    os.sched_setaffinity(int(task.name), {0})
                    os.sched_setscheduler(int(task.name), os.SCHED_FIFO, os.sched_param(1))
            for rate in map(int, options.rates.split(",")):
                compare(job, options.seconds, options.pairs, rate, options.blocking)


if __name__ == "__main__":
    main()
