"""From reports of Nsight Compute to observations: one subject for each profiled launch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from knowledge.observation import Observation, Scope, Source, Status, Subject, Value
from probes.trace.nsight.ncu_types import Bound, KernelProfile
from probes.trace.verdict.candidates import short
from probes.trace.verdict.said import percent, word

REVISION: Final = 1
MOST: Final = 50  # launches of a report that are spoken of, the longest first
_UNTOLD: Final = "the report holds no such metric: record with ncu --set full"
_SECTIONS: Final = (
    "ncu.compute.share",
    "ncu.memory.share",
    "ncu.occupancy.possible",
    "ncu.stall.share",
    "ncu.bound",
    "ncu.fill",
)


def profile_observations(file: str, profiles: Sequence[KernelProfile]) -> list[Observation]:
    """What a report tells of its launches. A metric that it lacks is unsupported, with what would record it."""
    total = sum(p.duration_ns or 0.0 for p in profiles)
    longest = sorted(profiles, key=lambda p: -(p.duration_ns or 0.0))[:MOST]
    out: list[Observation] = []
    for p in longest:
        subject = Subject(Scope.KERNEL, f"{word(short(p.name)) or '?'} #{word(p.id) or '?'}")
        out += _launch(p, subject, Source("ncu", file, revision=REVISION), total)
    return out


def _launch(p: KernelProfile, subject: Subject, source: Source, total: float) -> list[Observation]:
    stall = p.stalls[0] if p.stalls else None
    line = p.lines[0] if p.lines else None
    values: dict[str, Value] = {
        "ncu.duration_us": round(p.duration_ns / 1000, 3) if p.duration_ns is not None else None,
        "ncu.share": percent(p.duration_ns / total) if p.duration_ns is not None and total > 0 else None,
        "ncu.bound": str(p.bound) if p.bound is not Bound.UNKNOWN else None,
        "ncu.compute.share": p.compute_pct,
        "ncu.memory.share": p.memory_pct,
        "ncu.tensor.share": p.tensor_pct,
        "ncu.occupancy.possible": p.occupancy_theoretical_pct,
        "ncu.occupancy.reached": p.occupancy_achieved_pct,
        "ncu.occupancy.limits": tuple(p.limiters) or None,
        "ncu.fill": percent(p.blocks / p.sms) if p.blocks is not None and p.sms else None,
        "ncu.stall.top": word(stall.reason) if stall else None,
        "ncu.stall.share": percent(stall.share) if stall else None,
        "ncu.line.top": word(f"{line.file}:{line.line} {line.text}" if line.line else f"{line.address} {line.text}")
        if line
        else None,
    }
    told = [Observation(fact, subject, value, source=source) for fact, value in values.items() if value is not None]
    missing = [name for name in _SECTIONS if values[name] is None]
    return told + [Observation(n, subject, None, Status.UNSUPPORTED, source, detail=_UNTOLD) for n in missing]
