"""From memory snapshots to observations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from knowledge.observation import Observation, Scope, Source, Subject
from probes.trace.model import MemoryUse
from probes.trace.verdict.said import percent, stem

REVISION: Final = 1


def memory_observations(file: str, uses: Sequence[MemoryUse]) -> list[Observation]:
    """What a memory snapshot tells of the device that held the most."""
    used = max((m for m in uses if m.device != "CPU"), key=lambda m: m.peak_reserved, default=None)
    if used is None:
        return []
    subject = Subject(Scope.RANK, stem(file), Subject(Scope.JOB, stem(file)))
    source = Source("snapshot", file, revision=REVISION)
    peak = Observation("trace.allocator.peak", subject, round(used.peak_allocated / 2**20, 3), source=source,
                       excerpt=f"{used.device}: {used.peak_allocated} B / {used.peak_reserved} B")  # fmt: skip
    if used.fragmentation is None:
        return [peak]
    return [peak, Observation("trace.allocator.fragmentation", subject, percent(used.fragmentation), source=source)]
