"""What the traces of a job's ranks tell together."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from statistics import fmean
from typing import Final

from knowledge.observation import Clock, Observation, Source, Status, Subject, Value
from knowledge.text import clean
from probes.trace.model import Ranks
from probes.trace.steps.pipeline import bubbles
from probes.trace.verdict.digest import RankDigest

_MS: Final = 1_000_000
_ONE: Final = "the trace of one rank was given: compare the traces of several"
CAUSES: Final = (
    "compute",
    "data_loader",
    "host",
    "launch",
    "sync",
    "mem",
    "before",
    "unknown",
)  # of job.straggler.cause


def job_facts(digests: Sequence[RankDigest], ranks: Ranks | None, job: Subject) -> list[Observation]:
    """Means over ranks, the rank that the others wait for, slow links, and what is missing."""
    out = _steps(digests, job)
    source = Source("trace", digests[0].file if len(digests) == 1 else job.id)

    def put(fact: str, value: Value, excerpt: str = "") -> None:
        if value is not None:
            out.append(Observation(fact, job, value, source=source, clock=Clock.TRACE, excerpt=excerpt))

    def none(fact: str, why: str) -> None:
        out.append(Observation(fact, job, None, Status.NOT_APPLICABLE, source, detail=why))

    put("job.trace.ranks", len(digests) or (len(ranks.timings) if ranks is not None else 0))
    _pipeline(digests, put)
    if ranks is None or len(ranks.timings) < 2:
        out += [Observation(fact, job, None, Status.UNSUPPORTED, source, detail=_ONE)
                for fact in ("job.straggler.share", "job.collective.wait.share", "job.collective.slow_link.share",
                             "job.compute.imbalance")]  # fmt: skip
        return out
    put("job.trace.missing", tuple(str(r) for r in ranks.missing))
    put("job.trace.failed", tuple(clean(f"{file}: {why}") for file, why in sorted(ranks.failed.items())))
    _waiting(ranks, put, none)
    _links(ranks, put)
    return out


def _steps(digests: Sequence[RankDigest], job: Subject) -> list[Observation]:
    """The shares of a step, mean over the ranks that have GPU activity."""
    able = [d for d in digests if d.gpu_events and d.window.end_ns > d.window.start_ns]
    if not able:
        return []
    source = Source("trace", able[0].file if len(able) == 1 else job.id)
    span = fmean(d.window.end_ns - d.window.start_ns for d in able)
    parts: list[tuple[str, list[int]]] = [
        ("job.step.exposed_communication.share", [d.summary.exposed_comm_ns for d in able]),
        ("job.step.gpu_idle.share", [d.summary.idle_ns for d in able]),
    ]
    idle = [d.summary.idle for d in able]
    known = [i for i in idle if i is not None and (not i.total_ns or i.unknown_ns < i.total_ns)]
    if len(known) == len(able):
        parts.append(("job.step.data_wait.share", [i.data_loader_ns for i in known]))
    return [
        Observation(fact, job, round(100 * fmean(ns) / span, 2), source=source, clock=Clock.TRACE,
                    excerpt=f"{fmean(ns) / _MS:.3f} ms / {span / _MS:.3f} ms")
        for fact, ns in parts
    ]  # fmt: skip


_Put = Callable[..., None]


def _pipeline(digests: Sequence[RankDigest], put: _Put) -> None:
    """Bubbles of the stages; nothing when no rank sends to or receives from a neighbour."""
    stages = [d.stage for d in digests if d.stage is not None]
    found = bubbles(stages) if stages else None
    if found is None:
        return
    spent, whole = sum(s.bubble_ns for s in stages), sum(s.window_ns for s in stages)
    put("job.pipeline.bubble.share", round(100 * found.fraction, 2), f"{spent / _MS:.3f} ms / {whole / _MS:.3f} ms")
    put("job.pipeline.ideal.share", round(100 * found.ideal, 2) if found.ideal is not None else None)


def _waiting(ranks: Ranks, put: _Put, none: Callable[[str, str], None]) -> None:
    """Who waits for whom in collectives."""
    span = fmean(t.span_ns for t in ranks.timings)
    put("job.compute.imbalance", round(100 * ranks.imbalance, 2) if ranks.imbalance is not None else None)
    if not ranks.collectives or span <= 0:
        none("job.collective.wait.share", "no collective was recorded that two of the ranks took part in")
        return
    waits = fmean(t.waits_ns for t in ranks.timings)
    put("job.collective.wait.share", round(100 * waits / span, 2), f"{waits / _MS:.3f} ms / {span / _MS:.3f} ms")
    if not ranks.stragglers:
        put("job.straggler.share", 0.0)
        return
    late = ranks.stragglers[0]
    each = late.makes_wait_ns / (len(ranks.timings) - 1)
    put("job.straggler.rank", str(late.rank) if late.rank is not None else clean(late.file))
    put("job.straggler.share", round(100 * each / span, 2), f"{each / _MS:.3f} ms / {span / _MS:.3f} ms")
    put("job.straggler.of_waiting", round(100 * late.share, 2))
    put("job.straggler.cause", late.cause if late.cause in CAUSES else "unknown")
    put("job.straggler.extra_ms", round(late.extra_ns / _MS, 3))


def _links(ranks: Ranks, put: _Put) -> None:
    if not ranks.collectives:
        return
    span = fmean(t.span_ns for t in ranks.timings)
    slow = [c for c in ranks.collectives if c.slow_link]
    put("job.collective.slow_link.share", round(100 * sum(c.transfer_ns for c in slow) / span, 2) if span > 0 else None)
    worst = max(slow, key=lambda c: c.transfer_ns, default=None)
    if worst is not None:
        speed = f", {worst.bus_gbs:.1f} GB/s" if worst.bus_gbs is not None else ""
        put("job.collective.slow_link.what", clean(f"{worst.name} ({worst.group}{speed})"))
