"""Sections about the work of the device: kernels, operators, the roofline, and its memory."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from assistant.render import trace_units as units
from assistant.report import charts
from assistant.report.inputs import Inputs, name_of
from assistant.report.markup import Cell, Column, bullets, cut, figure, folded, note, section, table, without
from assistant.report.sections import RANKS, ROWS, Charts
from assistant.report.words import word
from knowledge.text import clean, excerpt

Row: TypeAlias = tuple[Cell, ...]
SMALL = 1 << 20  # bytes: an allocator that holds less is told in the table only

if TYPE_CHECKING:
    from probes.trace.model import MemoryUse, Roofline


def kernels(inputs: Inputs) -> str:
    """Kernels by name, with right statistics."""
    lang = inputs.lang
    stats = inputs.kernels or [k for d in inputs.digests[:1] for k in d.summary.top_kernels]
    if not stats:
        return ""
    columns = [Column(word("name", lang), "code"), Column(word("total", lang), "time"), Column(word("share", lang), "share"),
               Column(word("count", lang), "count"), *(Column(word(k, lang), "each") for k in ("mean", "min", "max", "stddev")),
               Column(word("kind", lang)), Column(word("tensor_core", lang))]  # fmt: skip
    rows = [(k.name, k.total_ns, k.share, k.count, k.mean_ns, k.min_ns, k.max_ns, k.stddev_ns, str(k.kind), word(str(k.tensor_core), lang))
            for k in stats]  # fmt: skip
    return section(
        "kernels",
        word("kernels_title", lang),
        table(columns, rows[:ROWS], caption=word("kernels_title", lang)),
        cut(rows, ROWS, lang),
    )


def operators(inputs: Inputs) -> str:
    """Operators by name, host and device time."""
    lang = inputs.lang
    if not inputs.ops:
        return ""
    columns = [Column(word("op", lang), "code"), Column(word("shapes", lang), "code"),
               *(Column(word(k, lang), "time") for k in ("gpu_self", "gpu_total", "cpu_self", "cpu_total")),
               Column(word("share", lang), "share"), Column(word("count", lang), "count"), Column(word("launched", lang), "count")]  # fmt: skip
    rows: list[Row] = [
        (o.name, o.shapes or None, o.gpu_ns, o.gpu_total_ns, o.cpu_self_ns, o.cpu_ns, o.share, o.count, o.kernels)
        for o in inputs.ops
    ]
    device = any(o.gpu_total_ns for o in inputs.ops)  # without it these columns are unknown, not zero
    drop = {n for n in (2, 3, 6, 8) if not device} | ({1} if not any(o.shapes for o in inputs.ops) else set())
    columns, rows = without(columns, rows, drop)
    return section(
        "operators", word("ops", lang), table(columns, rows[:ROWS], caption=word("ops", lang)), cut(rows, ROWS, lang)
    )


def roofline(inputs: Inputs) -> tuple[str, Charts]:
    """Points under the roof, for the first rank that has any."""
    lang = inputs.lang
    roof = next((d.roofline for d in inputs.digests if d.roofline is not None and d.roofline.work), None)
    if roof is None:
        return "", {}
    drawn: Charts = {}
    picture = ""
    if charts.on_plot(roof):
        drawn["roofline-plot"] = charts.roofline(roof, lang)
        picture = figure("roofline-plot", _roofline_said(roof, lang))
    notes = [word("covered", lang, share=units.share(roof.covered_share)), *(clean(t.in_(lang)) for t in roof.notes)]
    columns = [Column(word("op", lang), "code"), Column(word("shapes", lang), "code"), Column(word("dtype", lang)), Column(word("total", lang), "time"),
               Column(word("share", lang), "share"), Column(word("of_roof", lang), "percent"), Column(word("side", lang)),
               Column(word("intensity", lang), "float"), Column(word("achieved", lang), "float"), Column("GB/s", "float"),
               Column(word("count", lang), "count"), Column(word("batch_at_knee", lang), "count")]  # fmt: skip
    rows: list[Row] = [(w.op, w.shapes, w.dtype, w.gpu_ns, w.share, w.of_peak, _side(w.side, lang), w.intensity, w.tflops, w.gbs, w.count, w.batch_at_knee)
            for w in roof.work]  # fmt: skip
    columns, rows = without(columns, rows, {n for n in range(len(columns)) if all(r[n] is None for r in rows)})
    return section("roofline", word("roofline", lang), picture, bullets(notes), table(columns, rows[:ROWS], caption=word("roofline", lang)),
                   cut(rows, ROWS, lang)), drawn  # fmt: skip


def _side(side: str, lang: str) -> str:
    return word({"memory": "by_memory", "compute": "by_compute"}.get(str(side), "unknown"), lang)


def _roofline_said(roof: Roofline, lang: str) -> str:
    if not (roof.knee and roof.peak_tflops and roof.bandwidth_gbs):
        return word("roofline_bare", lang)
    sides = [str(w.side) for w in roof.work]
    return word("roofline_alt", lang, gpu=excerpt(roof.gpu, 60) or "GPU", knee=units.digits(roof.knee), peak=units.digits(roof.peak_tflops),
                bw=units.digits(roof.bandwidth_gbs), n=len(sides), memory=sides.count("memory"), compute=sides.count("compute"))  # fmt: skip


# --- memory --------------------------------------------------------------------------------------


def memory(inputs: Inputs) -> tuple[str, Charts]:
    """Allocators over time."""
    lang = inputs.lang
    drawn: Charts = {}
    uses = [(name_of(d.summary, lang), m) for d in inputs.by_rank for m in d.memory]
    uses.sort(key=lambda u: u[1].device.upper().startswith("CPU"))  # devices first
    parts: list[str] = []
    for n, (who, use) in enumerate(uses[: 2 * RANKS]):
        if len(use.timeline) > 1 and (use.peak_allocated >= SMALL or len(uses) == 1):
            drawn[f"memory-{n}"] = charts.memory(use, lang)
            parts.append(figure(f"memory-{n}", _memory_said(use, who if len(inputs.digests) > 1 else "", lang)))
        parts += [note(clean(t.in_(lang))) for t in use.notes]
        parts.append(_holders(use, lang))
    if not uses:
        return "", {}
    sizes = ("peak_allocated", "peak_reserved", "churn", "growth")
    columns = [
        Column(word("rank", lang)),
        Column(word("device", lang)),
        *(Column(word(k, lang), "size") for k in sizes),
        Column(word("fragmentation", lang), "percent"),
    ]
    rows = [
        (who, m.device, m.peak_allocated, m.peak_reserved, m.churn_bytes, m.growth_per_iteration, m.fragmentation)
        for who, m in uses
    ]
    return section(
        "memory", word("memory", lang), *parts, table(columns, rows, caption=word("memory", lang), tools=False)
    ), drawn


def _memory_said(use: MemoryUse, who: str, lang: str) -> str:
    device = " ".join(t for t in (who, excerpt(use.device, 60)) if t)
    return word("memory_alt", lang, device=device, allocated=units.size(use.peak_allocated), reserved=units.size(use.peak_reserved),
                allocations=units.number(use.allocations), calls=units.number(use.segment_events))  # fmt: skip


def _holders(use: MemoryUse, lang: str) -> str:
    if not use.top:
        return ""
    columns = [Column(word("holder", lang), "code"), Column(word("bytes", lang), "size")]
    return folded(word("holder", lang), table(columns, list(use.top), caption=word("holder", lang)))
