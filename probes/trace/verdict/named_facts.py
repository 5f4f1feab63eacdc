"""What a trace tells of kernels and operators by their names: those of each rank that take most time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from knowledge.observation import Clock, Observation, Scope, Source, Subject, Value
from probes.trace.verdict.said import percent, word

if TYPE_CHECKING:
    from probes.trace.model import KernelStat, OpStat
    from probes.trace.verdict.digest import RankDigest

MOST: Final = 32  # of each kind and rank: what a person asks about by name is among them
_MS: Final = 1_000_000


def named_observations(d: RankDigest, rank: Subject, source: Source) -> list[Observation]:
    """Shares, times and counts of kernels and operators. Without GPU activity nothing is told of any."""
    if not d.gpu_events:
        return []
    told = [(Subject(Scope.KERNEL, word(k.name) or "?", rank), _of_kernel(k)) for k in d.summary.top_kernels[:MOST]]
    told += [(Subject(Scope.OPERATOR, word(o.name) or "?", rank), _of_operator(o)) for o in d.operators[:MOST]]
    w = d.window
    return [
        Observation(
            fact, subject, value, source=source, at=w.start_ns, clock=Clock.TRACE, window=(w.start_ns, w.end_ns)
        )
        for subject, values in told
        for fact, value in values.items()
    ]


def _of_kernel(k: KernelStat) -> dict[str, Value]:
    return {
        "trace.by_kernel.share": percent(k.share), "trace.by_kernel.ms": round(k.total_ns / _MS, 3),
        "trace.by_kernel.calls": k.count, "trace.by_kernel.class": str(k.kind),
    }  # fmt: skip


def _of_operator(o: OpStat) -> dict[str, Value]:
    return {
        "trace.by_operator.share": percent(o.share), "trace.by_operator.ms": round(o.gpu_ns / _MS, 3),
        "trace.by_operator.all_ms": round(o.gpu_total_ns / _MS, 3),
        "trace.by_operator.host_ms": round(o.cpu_self_ns / _MS, 3), "trace.by_operator.calls": o.count,
    }  # fmt: skip
