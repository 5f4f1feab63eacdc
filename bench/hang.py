"""How long the verdict on a hung job takes: two ranks over gloo of which one never enters all-reduce, and stand-ins for more ranks.

    python bench/hang.py [--ranks 8] [--runs 3]

Seconds from the call to the verdict, and whether the guilty rank was named. Two ranks need an interpreter with torch
(GPUDIAG_TORCH_PYTHON). A hang that began seconds ago is looked at once more than an old one.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

from probes.capture.hang import hang
from probes.capture.hang.standing import members
from probes.capture.hang.standing_job import jobs
from probes.capture.model import Process, Target
from tests.live_jobs import Ranks
from tests.probes.capture.hang_jobs import ranks


def measured(targets: Sequence[Target], guilty: int) -> dict[str, object]:
    """One verdict: seconds, size of what is kept, and whether it names `guilty`."""
    begun = time.perf_counter()
    part = hang.look(targets)
    looked = time.perf_counter()
    (verdict,) = jobs(part, members(part["targets"]))
    ended = time.perf_counter()
    named = verdict.guilty is not None and verdict.guilty.member.rank == guilty
    return {"seconds": round(ended - begun, 2), "of which thinking": round(ended - looked, 3), "looks": len(part["proc"]["looks"]),
            "kilobytes": len(json.dumps(part)) >> 10, "hung": verdict.hung, "guilty rank named": named}  # fmt: skip


def main() -> None:
    """See the module."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--ranks", type=int, default=8)
    parser.add_argument("--runs", type=int, default=3)
    options = parser.parse_args()
    bodies = ["all_reduce(end)"] * options.ranks
    bodies[-1] = "stuck_in_tokenizer()"
    with tempfile.TemporaryDirectory() as folder, ranks(Path(folder), *bodies) as targets:
        for run in range(options.runs):
            print(f"{options.ranks} stand-ins", json.dumps(measured(targets, options.ranks - 1)), flush=True)
            if not run:
                time.sleep(3)
    if not os.environ.get("GPUDIAG_TORCH_PYTHON"):
        return
    with Ranks("--hang", "1") as job:
        job.jobs[1].wait("hung")
        found = [Target(Process(j.pid, 0, "python"), i, i, 2, "job") for i, j in enumerate(job.jobs)]
        for run in range(options.runs):
            print("2 ranks over gloo", json.dumps(measured(found, 1)), flush=True)
            if not run:
                time.sleep(3)


if __name__ == "__main__":
    main()
