"""One rank's trace, read once and looked at from every side: what facts, verdicts and reports are made of.

A digest is small and can be sent between processes; the trace itself is not kept.
"""

from __future__ import annotations

from typing import Any, Final, TypeVar

from knowledge.errors import InputError
from knowledge.language import Text
from knowledge.record import dataclass
from probes.trace.allocator import memory
from probes.trace.breakdown import hostside as hostside_
from probes.trace.breakdown import idle, mix, summary
from probes.trace.breakdown.operators import op_stats
from probes.trace.columns import Group, both
from probes.trace.links import Links
from probes.trace.model import Iterations, MemoryUse, OpStat, PipelineStage, RankSummary, Roofline, Window
from probes.trace.reading.reader import Trace
from probes.trace.steps import iterations as iterations_
from probes.trace.steps import pipeline
from probes.trace.verdict import candidates as candidates_
from probes.trace.windows import ENOUGH, whole, window_of
from probes.trace.work import owners
from probes.trace.work.roofline import roofline

NEEDS: Final = both(
    summary.NEEDS,
    iterations_.NEEDS,
    owners.NEEDS,
    memory.NEEDS,
    hostside_.NEEDS,
    candidates_.NEEDS,
    mix.NEEDS,
    pipeline.NEEDS,
)
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class RankDigest:
    """Everything that is known of one rank. None stands for what needs GPU activity, where there is none."""

    file: str
    rank: int | None
    world_size: int | None
    whole: bool
    gpu_events: int
    gpu: str
    stacks: bool
    shapes: bool
    window: Window
    summary: RankSummary
    iterations: Iterations
    host: hostside_.HostSide | None
    candidates: candidates_.Candidates | None
    mix: mix.Mix | None
    roofline: Roofline | None
    memory: tuple[MemoryUse, ...]
    stage: PipelineStage | None = None  # its part in a pipeline; None: it sends and receives nothing
    notes: tuple[Text, ...] = ()
    operators: tuple[OpStat, ...] = ()  # those that take most, where they were asked for


def digest(
    trace: Trace,
    window: str | Window = "auto",
    *,
    marker: str = "",
    top: int = 10,
    named: int = 0,
    gpu: str = "",
    links: Links | None = None,
    **model: Any,
) -> RankDigest:
    """The digest of `trace`, which was read with `NEEDS`.

    `top` kernels and `named` operators by name are kept, those that take most.
    `window`: "trace", "iterations", "auto" (iterations where the trace holds `ENOUGH` whole ones), or a window.
    `marker` names iterations by a regular expression (RE2); `gpu` and `model` go to `roofline`. `links` spares joins
    that were made already.
    InputError when iterations are asked for and there are none.
    """
    links = links or Links(trace)
    found = iterations_.iterations(trace, marker, links)
    span = _window(trace, found, window, marker)
    trace.let_go()
    used = _then(trace, memory.memory_use(trace, found))  # first: it takes much memory, and the joins take some as well
    work = len(trace.gpu) > 0
    gaps = idle.find_gaps(trace, links, span) if work else None
    return RankDigest(
        file=trace.path,
        rank=trace.rank,
        world_size=trace.world_size,
        whole=trace.whole,
        gpu_events=len(trace.gpu),
        gpu=gpu or trace.device_name,
        stacks=len(trace[Group.PYTHON]) > 0,
        shapes=bool(len(trace[Group.OP])) and bool((trace[Group.OP].ids("dims") >= 0).any()),
        window=span,
        summary=_then(trace, summary.summarise(trace, span, top, links, gaps)),
        iterations=found,
        host=_then(trace, hostside_.hostside(links, span, gaps)) if gaps is not None else None,
        candidates=_then(trace, candidates_.candidates(links, span, gaps)) if gaps is not None else None,
        mix=mix.mix(trace, span) if work else None,
        roofline=roofline(trace, span, gpu=gpu, links=links, **model) if work else None,
        memory=used,
        stage=pipeline.stage_of(trace, found, links) if work else None,
        notes=tuple(trace.notes),
        operators=_then(trace, op_stats(trace, "name", span, named)) if named and work else (),
    )


def _then(trace: Trace, found: T) -> T:
    """`found`, when what it took of the tables is out of memory."""
    trace.let_go()
    return found


def _window(trace: Trace, found: Iterations, window: str | Window, marker: str) -> Window:
    if isinstance(window, Window):
        return window
    if window != "auto":
        return window_of(trace, window, marker)
    if len(found.items) < ENOUGH or not len(trace.gpu):
        return whole(trace)
    try:
        return window_of(trace, "iterations", marker)
    except InputError:
        return whole(trace)
