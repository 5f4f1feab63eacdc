"""From digests to observations: what the trace told, in the vocabulary that rules conclude from.

Each share is in percent of the window. What a trace cannot tell is an observation without a value, with the reason
and what would tell it; no number stands for it.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path, PurePath
from statistics import median
from typing import Final, Protocol

from knowledge.observation import Clock, Observation, Scope, Source, Status, Subject, Value
from knowledge.text import clean
from probes.trace.across.job import job_facts
from probes.trace.model import Idle, Iteration, Iterations, Launches, Ranks, RankTiming, Window
from probes.trace.verdict.digest import RankDigest
from probes.trace.verdict.named_facts import named_observations
from probes.trace.verdict.provides import RANK_FACTS
from probes.trace.verdict.said import percent, stem, word
from probes.trace.verdict.untold import NAMES, reason

REVISION: Final = 1
_MS: Final = 1_000_000
_OF_ITERATIONS: Final = ("trace.iterations", "trace.iteration.slow")


def observations(digests: Sequence[RankDigest], ranks: Ranks | None = None) -> list[Observation]:
    """Everything that the traces of a job told, rank by rank and of the ranks together."""
    job = Subject(Scope.JOB, _job([d.file for d in digests]))
    subjects = dict(zip(map(id, digests), _subjects(digests, job), strict=True))
    out: list[Observation] = []
    timings = {t.file: t for t in ranks.timings} if ranks is not None and ranks.collectives else {}
    for d in digests:
        out += rank_observations(d, subjects[id(d)], timings.get(d.file))
    return out + job_facts(digests, ranks, job)


def compared_observations(ranks: Ranks) -> list[Observation]:
    """What the comparison alone told, of ranks of which nothing else was read."""
    job = Subject(Scope.JOB, _job([t.file for t in ranks.timings]))
    out: list[Observation] = []
    for t, subject in zip(ranks.timings, _subjects(ranks.timings, job), strict=True):
        emit = _Emit(t.file, Window("trace", 0, t.span_ns), subject)
        if ranks.collectives:
            emit.share("trace.collective_wait.share", t.waits_ns)
        out += emit.out
    return out + job_facts((), ranks, job)


def iteration_observations(found: Sequence[Iterations]) -> list[Observation]:
    """What the iterations alone told, of traces of which nothing else was read."""
    job = Subject(Scope.JOB, _job([f.file for f in found]))
    out = []
    for f, subject in zip(found, _subjects(found, job), strict=True):
        begin, end = (f.items[0].start_ns, f.items[-1].end_ns) if f.items else (0, 0)
        emit = _Emit(f.file, Window("iterations", begin, end, len(f.items), f.marker), subject)
        if f.items:
            emit.put("trace.window.seconds", round(emit.span / 1e9, 9))
        _iterations(emit, f)
        told = {o.fact for o in emit.out}
        for fact in (f for f in _OF_ITERATIONS if f not in told):
            emit.none(fact, "the trace holds no mark of iterations")
        out += emit.out
    return out


def _job(files: Sequence[str]) -> str:
    """What the job is called: the folder of its traces, or the trace's own name when it is one."""
    if len(files) == 1:
        return stem(files[0])
    folders = {str(Path(f).resolve().parent) for f in files}
    return clean(PurePath(os.path.commonpath(folders)).name if folders else "") or "traces"


class _OfRank(Protocol):
    """Anything that is of one trace."""

    @property
    def rank(self) -> int | None:
        """Which rank's it is, where that is known."""

    @property
    def file(self) -> str:
        """The trace."""


def _subjects(digests: Sequence[_OfRank], job: Subject) -> list[Subject]:
    """A rank by its number where it is known and stands for one file; else by the name of the file, or its path."""
    numbers = Counter(d.rank for d in digests)
    stems = Counter(stem(d.file) for d in digests)
    out = []
    for d in digests:
        known = d.rank is not None and numbers[d.rank] == 1
        name = str(d.rank) if known else stem(d.file) if stems[stem(d.file)] == 1 else clean(d.file)
        out.append(Subject(Scope.RANK, name, job))
    return out


def rank_observations(d: RankDigest, subject: Subject, timing: RankTiming | None = None) -> list[Observation]:
    """What one trace told, and why it did not tell the rest. `timing`: beside the other ranks."""
    emit = _Rank(d, subject)
    emit.put("trace.whole", d.whole)
    emit.put("trace.gpu_events", d.gpu_events)
    emit.put("trace.stacks", d.stacks)
    emit.put("trace.shapes", d.shapes)
    emit.put("trace.device", word(d.gpu))
    if d.gpu_events and d.window.end_ns > d.window.start_ns:
        _times(emit)
        _host(emit)
        _launches(emit)
        _work(emit)
        _candidates(emit)
    if timing is not None:
        emit.share("trace.collective_wait.share", timing.waits_ns, timing.span_ns)
    _iterations(emit, d.iterations)
    _memory(emit)
    return [*emit.out, *emit.missing(), *named_observations(d, subject, emit.source)]


class _Emit:
    """Collects the observations of one rank."""

    def __init__(self, file: str, window: Window, subject: Subject) -> None:
        self.window, self.subject = window, subject
        self.span = window.end_ns - window.start_ns
        self.out: list[Observation] = []
        self.source = Source("trace", file, revision=REVISION)

    def put(self, fact: str, value: Value, excerpt: str = "") -> None:
        """A value; None is none."""
        if value is not None:
            w = self.window
            self.out.append(Observation(fact, self.subject, value, source=self.source, at=w.start_ns, clock=Clock.TRACE,
                                        window=(w.start_ns, w.end_ns), excerpt=excerpt))  # fmt: skip

    def share(self, fact: str, ns: float | None, of: int | None = None) -> None:
        """`ns` as a share of the window, or of `of` ns, with both lengths as evidence."""
        whole = self.span if of is None else of
        if ns is not None and whole > 0:
            self.put(fact, percent(ns / whole), f"{ns / _MS:.3f} ms / {whole / _MS:.3f} ms")

    def part(self, fact: str, fraction: float | None) -> None:
        """A fraction of something that has no length in time."""
        if fraction is not None:
            self.put(fact, percent(fraction))

    def none(self, fact: str, why: str) -> None:
        """A fact that there is nothing to tell of."""
        self.out.append(Observation(fact, self.subject, None, Status.NOT_APPLICABLE, self.source, detail=why))


class _Rank(_Emit):
    """Those of a rank of which everything was read."""

    def __init__(self, d: RankDigest, subject: Subject) -> None:
        super().__init__(d.file, d.window, subject)
        self.d = d

    def missing(self) -> Iterable[Observation]:
        """For each fact that was not told, why."""
        told = {o.fact for o in self.out}
        for fact in RANK_FACTS:
            if fact not in told and not fact.endswith(NAMES):
                why = reason(fact, self.d.gpu_events > 0, self.d.shapes, self.d.stacks)
                yield Observation(fact, self.subject, None, Status.UNSUPPORTED, self.source, detail=why)


def _times(emit: _Rank) -> None:
    s = emit.d.summary
    emit.put("trace.window", emit.d.window.kind)
    emit.put("trace.window.seconds", round(emit.span / 1e9, 9))
    emit.share("trace.idle.share", s.idle_ns)
    emit.share("trace.compute.share", s.compute_ns)
    emit.share("trace.communication.share", s.comm_ns)
    emit.share("trace.exposed_communication.share", s.exposed_comm_ns)
    emit.share("trace.exposed_copy.share", s.exposed_mem_ns)
    if s.comm_ns:
        emit.share("trace.overlap.share", s.comm_compute_overlap_ns, s.comm_ns)
    else:
        emit.none("trace.overlap.share", "no communication kernel ran")
    if s.idle is not None:
        _idle(emit, s.idle, max(1, emit.d.host.devices if emit.d.host else 1))


def _idle(emit: _Rank, idle: Idle, devices: int) -> None:
    """Causes of idleness; of several devices in one file the mean."""
    emit.share("trace.idle.unknown.share", idle.unknown_ns / devices)
    if idle.total_ns and idle.unknown_ns == idle.total_ns:
        return  # no launch is known: none of the causes is
    for name, ns in (("data_loader", idle.data_loader_ns), ("sync", idle.sync_ns), ("host", idle.host_ns),
                     ("launch", idle.launch_ns), ("kernel", idle.kernel_ns),
                     ("after_sync", idle.after_sync_ns + idle.sync_ns)):  # fmt: skip
        emit.share(f"trace.idle.{name}.share", ns / devices)


def _host(emit: _Rank) -> None:
    h = emit.d.host
    if h is None:
        return
    for fact, ns in (("trace.idle.python.share", h.python_ns), ("trace.idle.operators.share", h.operators_ns),
                     ("trace.idle.threads.share", h.threads_ns), ("trace.checkpoint.share", h.checkpoint_ns)):  # fmt: skip
        emit.share(fact, ns / h.devices if ns is not None else None)
    emit.share("trace.data_loader.share", h.loader_ns)
    emit.put("trace.data_loader.workers", h.workers or None)
    for fact, name in (
        ("trace.python.top", h.python_top),
        ("trace.sync.top", h.sync_top),
        ("trace.checkpoint.what", h.checkpoint),
    ):
        emit.put(fact, word(name))
    emit.put("trace.sync.calls", h.sync_calls)
    if h.sync_calls is not None and emit.d.summary.kernels:
        emit.put("trace.sync.per_kernel", round(h.sync_calls / emit.d.summary.kernels, 4))


def _launches(emit: _Rank) -> None:
    s = emit.d.summary
    emit.put("trace.kernels", s.kernels)
    x: Launches | None = s.launches
    if x is None or not s.kernels:
        return
    emit.put("trace.kernel.median_us", round(x.median_kernel_ns / 1000, 3))
    emit.put("trace.kernels.short.share", percent(x.short_kernels / s.kernels), f"{x.short_kernels} / {s.kernels}")
    emit.put("trace.launches.rate", round(1000 * x.per_ms, 1))
    emit.put("trace.launch.call_us", round(x.median_call_ns / 1000, 3))
    emit.part("trace.queue.empty.share", x.queue_empty_share)
    emit.put("trace.graph.kernels.share", percent(x.graph_kernels / s.kernels), f"{x.graph_kernels} / {s.kernels}")


def _work(emit: _Rank) -> None:
    m, s = emit.d.mix, emit.d.summary
    if m is not None:
        emit.part("trace.kernels.tiny.share", m.tiny)
        emit.part("trace.kernels.underfilled.share", m.underfilled)
        emit.put("trace.kernel.top", word(m.top))
        emit.part("trace.kernel.top.share", m.top_share)
        emit.part("trace.gemm.plain.share", m.plain)
        emit.put("trace.gemm.plain.top", word(m.plain_top))
        emit.part("trace.bytes_only.share", m.bytes_only)
        emit.part("trace.layout.share", m.layout)
        emit.put("trace.compiled", m.compiled)
        emit.put("trace.communication.top", word(m.comm_top))
        emit.put("trace.device.tensor_cores", m.tensor_cores)
    if s.tensor_core is not None:
        emit.part("trace.tensor_core.yes.share", s.tensor_core.yes)
        emit.part("trace.tensor_core.unknown.share", s.tensor_core.unknown)
    _roofline(emit)


def _roofline(emit: _Rank) -> None:
    r = emit.d.roofline
    if r is None or not emit.d.shapes:
        return
    if r.knee is not None:
        kernel_ns = emit.d.mix.kernel_ns if emit.d.mix else 0
        for side, bound in (("memory", r.memory_bound_share), ("compute", r.compute_bound_share)):
            emit.part(f"trace.{side}_bound.share", bound)
            if bound is not None:  # kernels side by side are counted once
                emit.share(f"trace.{side}_bound.window.share", min(bound * kernel_ns, emit.d.summary.compute_ns))
    emit.put("trace.gemm.rate", round(r.gemm_tflops, 3) if r.gemm_tflops is not None else None)
    emit.part("trace.gemm.covered.share", r.covered_share)
    rated = [(w.of_peak, w.gpu_ns) for w in r.work if w.of_peak is not None]
    if spent := sum(ns for _, ns in rated):
        emit.part("trace.gemm.of_peak", sum(share * ns for share, ns in rated) / spent)
    grown = [
        (w.batch_at_knee / w.batch, w.gpu_ns) for w in r.work if w.batch and w.batch_at_knee and w.side == "memory"
    ]
    if spent := sum(ns for _, ns in grown):
        emit.put("trace.gemm.batch_factor", round(sum(n * ns for n, ns in grown) / spent, 2))


def _candidates(emit: _Rank) -> None:
    c = emit.d.candidates
    if c is None:
        return
    if c.stretches is not None:
        devices = emit.d.host.devices if emit.d.host else 1
        emit.share("trace.graph_candidate.share", c.stretches.gap_ns / devices)
        emit.put("trace.graph_candidate.kernels", c.stretches.kernels)
        emit.put("trace.graph_candidate.top", word(c.stretches.where))
    emit.share("trace.fusion_candidate.share", c.runs.saved_ns)
    emit.put("trace.fusion_candidate.chains", c.runs.count)
    if c.runs.top:
        emit.put("trace.fusion_candidate.top", word(f"{c.runs.top} x{c.runs.top_count}"))
    emit.share("trace.copies.pageable.share", c.copies.pageable_ns)
    emit.put("trace.copies.pageable.count", c.copies.pageable)
    if c.optimizer:
        emit.put("trace.optimizer", c.optimizer)
        emit.share("trace.optimizer.share", c.optimizer_ns)
    emit.put("trace.allocator.calls", c.malloc_calls)
    emit.share("trace.allocator.calls.share", c.malloc_ns)
    if c.malloc_idle_ns is not None:
        emit.share("trace.allocator.idle.share", c.malloc_idle_ns / (emit.d.host.devices if emit.d.host else 1))
    if c.longest_gap_ns is not None:
        emit.put("trace.idle.longest", round(c.longest_gap_ns / _MS, 3))
    if c.slow is not None:
        emit.put(
            "trace.launch.top", word(f"{c.slow.name[:120]} (x{c.slow.calls}, max {c.slow.longest_ns / _MS:.3f} ms)")
        )


def _iterations(emit: _Emit, found: Iterations) -> None:
    if not found.items:
        return
    emit.put("trace.iterations", len(found.items))
    if found.median_ns:
        emit.put("trace.iteration.median_ms", round(found.median_ns / _MS, 3))
        slow = [i for i in found.items if i.outlier and i.span_ns > found.median_ns]
        if len(found.items) < 3:
            for fact in ("trace.iteration.first", "trace.iteration.slow", "trace.iteration.slow.share"):
                emit.none(fact, "fewer than three whole iterations")
        else:
            emit.put("trace.iteration.slow", tuple(_slow(i) for i in slow[:5]))
            emit.share("trace.iteration.slow.share", sum(i.span_ns - found.median_ns for i in slow))
            rest = median(i.span_ns for i in found.items[1:])
            emit.put("trace.iteration.first", round(found.items[0].span_ns / rest, 2) if rest else None)


def _slow(i: Iteration) -> str:
    return word(f"{i.name[:120]} ({i.span_ns / _MS:.1f} ms: {i.outlier})") or ""


def _memory(emit: _Rank) -> None:
    used = max((m for m in emit.d.memory if m.device != "CPU"), key=lambda m: m.peak_allocated, default=None)
    if used is None:
        return
    emit.put("trace.allocator.peak", round(used.peak_allocated / 2**20, 3), f"{used.peak_allocated} B")
    if used.growth_per_iteration is not None and used.peak_allocated:
        emit.put("trace.allocator.growth", percent(used.growth_per_iteration / used.peak_allocated),
                 f"{used.growth_per_iteration} B / {used.peak_allocated} B")  # fmt: skip
    if used.segment_events or used.fragmentation is None:
        emit.part("trace.allocator.fragmentation", used.fragmentation)
    else:  # what is reserved and not allocated fits whatever was asked for: it is cache
        emit.none("trace.allocator.fragmentation", "the allocator asked the driver for nothing in the window")
