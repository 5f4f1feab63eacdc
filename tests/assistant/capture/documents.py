"""Documents of captures as `gpudiag profile` writes them, made by hand: two ranks on two GPUs, one of them late."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from probes.capture import manifest
from probes.capture.model import SCHEMA, Process, Python, Target

HOST = "gpu-12"
BEGAN, ENDED = 10**9, 3 * 10**9
MS = 1_000_000
_FRAMES = [
    ["main", "/work/train.py", 90], ["augment_slowly", "/work/train.py", 17], ["all_reduce", "/env/lib/python3.11/site-packages/torch/distributed/distributed_c10d.py", 3000],
    ["average_gradients", "/work/train.py", 28], ["forward", "/env/lib/python3.11/site-packages/torch/nn/modules/linear.py", 134],
]  # fmt: skip


def stacks(pid: int, late: bool) -> dict[str, Any]:
    """A hundred samples of the main thread: the late rank augments, the other one waits in all_reduce."""
    most = [0, 1] if late else [0, 3, 2]
    rows = [[BEGAN + n * 20 * MS, 20 * MS, int(n % 5 == 0)] for n in range(100)]
    return {
        "tool": "py-spy 0.4.1", "rate": 50, "began": BEGAN, "ended": ENDED, "error": "", "frames": _FRAMES, "stacks": [most, [0, 4]],
        "threads": {str(pid): {"name": "MainThread", "samples": rows}},
    }  # fmt: skip


def target(rank: int, **row: Any) -> dict[str, Any]:
    """One rank, with its parts."""
    process = Process(
        4242 + rank,
        100,
        "python",
        ("python", "train.py"),
        state="R",
        python=Python((3, 11), "3.11.7", "", "loaded", cuda=True),
    )
    ends = [BEGAN + n * 50 * MS + (100 * MS if n > 20 else 0) for n in range(40)]
    parts = [
        {"item": "stacks", "outcome": "ok", "rung": "py-spy"}, {"item": "cpu", "outcome": "failed", "rung": "proc", "why": {"en": "it was not seen", "zh": "未见到"}},
        {"item": "torch", "outcome": "declined", "rung": None, "why": {"en": "consent was not given", "zh": "未获同意"}, "remedy": {"en": "--yes agrees to it", "zh": "--yes 表示同意"}},
    ]  # fmt: skip
    found = manifest.plain_target(Target(process, rank, rank, 2, "job-7", (f"0000:{3 + rank}b:00.0",), "--job job-7"))
    return {
        **json.loads(json.dumps(found)), "parts": parts, "sources": {},
        "iterations": {"anchor": "AdamW.step", "ends": ends, "loss": [2.0 - n / 40 for n in range(40)], "gradnorm": []},
        "aftermath": {"longest_ns": 150 * MS, "iteration_before_ns": 50 * MS, "iteration_after_ns": 51 * MS, "worries": [],
                      "left": [{"en": "one thread of kineto stays", "zh": "保留一个 kineto 线程"}], "clean": True},
        **row,
    }  # fmt: skip


def two_ranks(**more: Any) -> dict[str, Any]:
    """The whole document."""
    at = [BEGAN + n * 100 * MS for n in range(20)]
    gpus = {
        "schema": "gpudiag/gpu-samples/1", "hz": 10, "at": at,
        "devices": {"0000:3b:00.0": {"uuid": "GPU-1", "name": "NVIDIA H100 80GB HBM3", "processes": [], "series": {
            "utilization": [30.0 + n for n in range(20)], "power_mw": [250_000 + n for n in range(20)],
            "sm_activity": {"status": "unsupported", "detail": "needs Hopper"}}}},
    }  # fmt: skip
    return {
        "schema": SCHEMA, "id": "20260101T000000-4242", "host": HOST, "boot_id": "", "version": "0", "as_of": 1_767_225_600_000_000_000,
        "clocks": [], "window": {"duration_ns": 2 * 10**9, "iterations": 0, "skip": 0, "anchor": "", "began": BEGAN, "ended": ENDED},
        "items": ["stacks", "cpu"], "line": "gpudiag profile --job job-7", "notes": [], "targets": [target(0), target(1)],
        "stacks": {"4242": stacks(4242, False), "4243": stacks(4243, True)}, "threads": {}, "gpus": gpus, "hang": None, "observations": [], **more,
    }  # fmt: skip


def written(folder: Path, document: dict[str, Any]) -> Path:
    """The document as a record."""
    folder.mkdir(parents=True, exist_ok=True)
    manifest.write(folder, document)
    return folder
