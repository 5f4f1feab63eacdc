"""What sampling a job costs: CPU of the samplers, and what they print.

    python bench/samples.py [SECONDS]    threads and GPUs of one, of 8 and of many processes, as percent of a core

The GPUs are those of tests/native/nvml.c, whose calls cost nothing: this is the price of the collector itself. The start of
the collectors (an interpreter, pynvml) is measured with a short window and taken off.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))

from tests import nvml_lab as lab  # noqa: E402 - needs the path above
from tests.live_jobs import Job  # noqa: E402

LEAST = 0.4  # seconds: the window that the start is measured with
FOLDER = ROOT / "probes" / "collectors"


def sampled(name: str, words: Sequence[str], seconds: float, env: dict[str, str] | None = None) -> dict[str, Any]:
    """The document of one run."""
    bare = ["-S"] if name == "job_samples" else []
    argv = [
        sys.executable,
        "-I",
        *bare,
        "-B",
        str(FOLDER / f"{name}.py"),
        "--deadline",
        "120",
        "--seconds",
        f"{seconds:g}",
        *words,
    ]
    found = json.loads(subprocess.run(argv, env=env, capture_output=True, check=True).stdout)
    assert isinstance(found, dict)
    return found


def cost(
    name: str, words: Sequence[str], seconds: float, env: dict[str, str] | None = None
) -> tuple[float, dict[str, Any]]:
    """Percent of a core over a window, and the document."""
    start = statistics.median(sampled(name, words, LEAST, env)["cost"]["cpu_s"] for _ in range(3))
    found = sampled(name, words, seconds + LEAST, env)
    return 100 * max(found["cost"]["cpu_s"] - start, 0.0) / seconds, found


def main() -> None:
    """Measure and print."""
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 5.0
    print(f"window {seconds:g} s; CPU in percent of a core, without the start")
    for label, processes, threads in (("1 process, 1 thread", 1, 0), ("1 process, 20 threads", 1, 19), ("8 processes, 160 threads", 8, 19),
                                      ("1 process, 151 threads", 1, 150)):  # fmt: skip
        with ExitStack() as stack:
            jobs = [stack.enter_context(Job("threads.py", str(threads))) for _ in range(processes)]
            time.sleep(0.5)
            used, found = cost("job_samples", [w for j in jobs for w in ("--pid", str(j.pid))], seconds)
            size = len(json.dumps(found)) / 1024
            print(
                f"  threads: {label:26} {used:5.2f} %   {found['hz_got']:5.1f} Hz, all {found['hz_all']:5.1f} Hz   {size:6.0f} KiB"
            )
    with tempfile.TemporaryDirectory() as folder:
        for hz in (10, 20, 50):
            env = lab.environment(lab.folder(Path(folder), "healthy8"))
            used, found = cost("gpu_samples", ["--hz", str(hz)], seconds, env)
            size = len(json.dumps(found)) / 1024
            print(
                f"  GPUs: 8 of the lab at {hz:2} Hz         {used:5.2f} %   {found['hz_got']:5.1f} Hz   {size:6.0f} KiB"
            )


if __name__ == "__main__":
    main()
