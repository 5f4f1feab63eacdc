"""What a snapshot of 8 GPUs through NVML costs, as ratios measured in the same run.

    python bench/nvml.py            prints the median time and CPU time of the collector's snapshots

The GPUs are those of tests/native/nvml.c, whose calls cost nothing: this is the price of the collector itself. Where
a real driver and nvidia-smi exist, the real GPUs are asked as well, against one ``nvidia-smi -q``. The window of the rates
(0.3 s) is time, not work, and is given on its own.
"""

from __future__ import annotations

import json
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))

from tests import nvml_lab as lab  # noqa: E402 - needs the path above

ROUNDS = 9
Cost = tuple[float, float]  # seconds of wall clock and of CPU


def cost(argv: Sequence[str], env: Mapping[str, str]) -> Cost:
    """What one process costs."""
    before, begun = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run(argv, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
    wall, after = time.perf_counter() - begun, resource.getrusage(resource.RUSAGE_CHILDREN)
    return wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def medians(jobs: Mapping[str, tuple[Sequence[str], Mapping[str, str]]], rounds: int = ROUNDS) -> dict[str, Cost]:
    """Median costs; the jobs take turns, so that what else the machine does hits all of them alike."""
    for argv, env in jobs.values():
        cost(argv, env)
    samples: dict[str, list[Cost]] = {name: [] for name in jobs}
    for _ in range(rounds):
        for name, (argv, env) in jobs.items():
            samples[name].append(cost(argv, env))
    return {n: (statistics.median(w for w, _ in s), statistics.median(c for _, c in s)) for n, s in samples.items()}


def collector(*more: str) -> list[str]:
    """The command line of the collector."""
    return [sys.executable, "-I", "-B", str(lab.COLLECTOR), "--deadline", "20", *more]


def main() -> None:
    """Measure and print."""
    with tempfile.TemporaryDirectory() as folder:
        fake = lab.environment(lab.folder(Path(folder), "healthy8"))
        jobs: dict[str, tuple[Sequence[str], Mapping[str, str]]] = {
            "pass": ([sys.executable, "-c", "pass"], fake),
            "import pynvml": ([sys.executable, "-I", "-B", "-c", "import pynvml"], fake),
            "snapshot": (collector(), fake),
            "snapshot, no window": (collector("--window", "0"), fake),
            "snapshot --quick, no window": (collector("--quick", "--window", "0"), fake),
        }
        shown = medians(jobs)
        size = len(subprocess.run(collector(), env=fake, capture_output=True, check=True).stdout)
    base = shown["pass"][1]
    print(
        f"8 GPUs of the test library, document {size / 1024:.0f} KiB; CPU as a ratio to python -c pass ({base * 1e3:.0f} ms)"
    )
    for name, (wall, cpu) in shown.items():
        print(f"  {name:28} {wall * 1e3:7.0f} ms   CPU {cpu * 1e3:6.0f} ms   {cpu / base:5.1f} x")
    smi = shutil.which("nvidia-smi")
    if smi is None:
        print("no nvidia-smi here: the ratio to nvidia-smi -q was not measured")
        return
    own = dict(os.environ)
    found = json.loads(subprocess.run(collector(), env=own, capture_output=True, check=True).stdout)
    if not found.get("devices"):
        print("no driver that answers here: the ratio to nvidia-smi -q was not measured")
        return
    real = medians({"nvidia-smi -q": ([smi, "-q"], own), "snapshot": (collector(), own),
                    "snapshot, no window": (collector("--window", "0"), own)})  # fmt: skip
    one = real["nvidia-smi -q"][0]
    print(f"{len(found['devices'])} real GPUs, as a ratio to nvidia-smi -q ({one * 1e3:.0f} ms)")
    for name, (wall, cpu) in real.items():
        print(f"  {name:28} {wall * 1e3:7.0f} ms   CPU {cpu * 1e3:6.0f} ms   {wall / one:5.2f} x")


if __name__ == "__main__":
    main()
