"""What a look at this machine costs, as ratios to an empty Python; and what `watch` costs while nothing happens.

    python bench/live.py [--runs 7] [--watch SECONDS] [--gpus FOLDER]

``--gpus FOLDER`` is put on LD_LIBRARY_PATH: a folder with a libnvidia-ml.so.1 that plays a machine (tests/nvml_lab.py
makes one); without it the machine's own driver answers, if there is one. Wall seconds are medians; CPU seconds count
every child. Machines differ and are shared: the ratios are what to compare.
"""

from __future__ import annotations

import argparse
import resource
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

from startup import environment

ROOT = Path(__file__).parent.parent


def measured(argv: list[str], env: dict[str, str], runs: int) -> tuple[float, float]:
    """Median wall and median CPU seconds of a command with all its children."""
    walls, cpus = [], []
    for _ in range(runs):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        begun = time.perf_counter()
        subprocess.run(argv, env=env, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
        walls.append(time.perf_counter() - begun)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        cpus.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return statistics.median(walls), statistics.median(cpus)


def watched(env: dict[str, str], seconds: float) -> tuple[float, float, int]:
    """CPU share of one core and resident bytes of `watch` at its usual interval, after its first check; and checks.

    The children are counted as they end. The process that writes the history is one of them.
    """
    argv = [sys.executable, "-m", "assistant", "watch", "--interval", "60", "--listen", "127.0.0.1:0"]
    with subprocess.Popen(argv, env=env, cwd=ROOT, stderr=subprocess.PIPE, text=True) as child:
        try:
            assert child.stderr is not None
            port = int(next(line for line in child.stderr if "metrics on" in line).split(":")[-1].split("/")[0])
            while "gpudiag_rounds_total 1.0" not in scrape(port):
                time.sleep(0.5)
            first, begun = numbers(port), time.monotonic()
            time.sleep(seconds)
            last, took = numbers(port), time.monotonic() - begun
        finally:
            child.terminate()
            child.wait(60)
    cpu = last["gpudiag_cpu_seconds_total"] - first["gpudiag_cpu_seconds_total"]
    return cpu / took, last["gpudiag_resident_memory_bytes"], int(last["gpudiag_rounds_total"])


def scrape(port: int) -> str:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=30) as answer:
        text: str = answer.read().decode()
        return text


def numbers(port: int) -> dict[str, float]:
    rows = (line.split() for line in scrape(port).splitlines() if not line.startswith("#") and "{" not in line)
    return {name: float(value) for name, value in rows}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=7)
    parser.add_argument("--watch", type=float, default=0.0, metavar="SECONDS")
    parser.add_argument("--gpus", metavar="FOLDER")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as state:
        env = environment(Path(state)) | {"GPUDIAG_STATE_DIR": state, "GPUDIAG_HISTORY_URL": "off"}
        if args.gpus:
            env["LD_LIBRARY_PATH"] = args.gpus
        gpudiag = [sys.executable, "-m", "assistant"]
        base_wall, base_cpu = measured([sys.executable, "-c", "pass"], env, args.runs)
        print(f"{'':28}{'wall s':>8}{'ratio':>8}{'cpu s':>8}{'ratio':>8}")
        print(f"{'python -c pass':28}{base_wall:8.3f}{1:8.1f}{base_cpu:8.3f}{1:8.1f}")
        subprocess.run([*gpudiag, "check"], env=env, cwd=ROOT, capture_output=True, check=False)  # compiled data
        for name, words in (
            ("check", ["check"]),
            ("check --probe nvml", ["check", "--probe", "nvml"]),
            ("check --probe kernel-log", ["check", "--probe", "kernel-log"]),
            ("check --probe system", ["check", "--probe", "system"]),
            ("check --probe processes", ["check", "--probe", "processes"]),
        ):
            wall, cpu = measured([*gpudiag, *words], env, args.runs)
            print(f"{name:28}{wall:8.3f}{wall / base_wall:8.1f}{cpu:8.3f}{cpu / base_cpu:8.1f}")
        for history in (False, True) if args.watch else ():
            url = f"sqlite:///{state}/history.db" if history else "off"
            share, resident, rounds = watched(env | {"GPUDIAG_HISTORY_URL": url}, args.watch)
            name = "with history" if history else "without history"
            print(f"watch --interval 60 {name}: {share:.2%} of a core, {resident / 2**20:.0f} MiB, {rounds} checks")


if __name__ == "__main__":
    main()
