"""What torch's CUDA allocator says, of the devices that this process uses; CUDA is never begun for it."""

# ruff: noqa: PTH123 - nothing raises into the target, and nothing more is imported there than must be
from __future__ import annotations

import pickle
from typing import Any

from probes.capture.agent.report import Refused, Report

MOST_BLOCKS = 20_000  # a snapshot of more holds the interpreter's lock for too long


def devices(torch: Any) -> list[int]:
    """Those with a context of this process."""
    has = getattr(torch._C, "_cuda_hasPrimaryContext", None)
    return [d for d in range(torch.cuda.device_count()) if has is None or has(d)]


def read_memory(torch: Any, report: Report, snapshot: bool) -> dict[str, Any]:
    """Statistics a device, and a snapshot in a file when it is small enough. Refused where CUDA is not in use."""
    if not torch.cuda.is_initialized():
        raise Refused("no-cuda")
    found: dict[str, Any] = {}
    blocks = 0
    for device in devices(torch):
        stats = {k: v for k, v in torch.cuda.memory_stats(device).items() if isinstance(v, (int, float, str))}
        found[str(device)] = stats
        blocks += int(stats.get("active.all.current", 0)) + int(stats.get("inactive_split.all.current", 0))
    document: dict[str, Any] = {"stats": found, "blocks": blocks, "snapshot": ""}
    if snapshot and blocks <= MOST_BLOCKS and hasattr(torch.cuda.memory, "_snapshot"):
        with open(report.path("memory.pickle"), "wb") as file:
            pickle.dump(torch.cuda.memory._snapshot(), file)
        document["snapshot"] = "memory.pickle"
    return document
