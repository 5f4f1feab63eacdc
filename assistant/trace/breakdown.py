"""The parts of a page about one rank: where its time went, what explains it, its kernels."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from assistant.render.labels import aside, colon, listed
from assistant.render.sheet import Fields
from assistant.render.trace_page import Bar, Bars, Column, Grid, Part
from assistant.render.trace_units import digits, duration, durations, number, ratio, share
from assistant.trace.words import short, window_text, word
from knowledge.language import Text
from knowledge.text import excerpt

if TYPE_CHECKING:
    from probes.trace.model import Idle, KernelStat, Launches, RankSummary, Roofline

_STREAMS = 4  # that are named
_TOLD = 0.05  # of kernel time whose shapes are known: of less no rate is told
_CAUSES = ("data_loader", "sync", "host", "launch", "kernel", "unknown")


def bars(s: RankSummary, lang: str) -> Bars:
    """Computing, exposed communication, exposed copies and idle: they add up to the span; the causes of idle below it."""
    rows = [("compute", s.compute_ns, 0, "green")]
    if s.comm_kernels:
        rows.append(("exposed_comm", s.exposed_comm_ns, 0, "yellow"))
    if s.mem_ops:
        rows.append(("exposed_mem", s.exposed_mem_ns, 0, "blue"))
    rows.append(("idle", s.idle_ns, 0, "red"))
    values = durations([ns for _, ns, _, _ in rows])
    out = [
        Bar(word(key, lang), value, ratio(ns, s.span_ns), depth, tone)
        for (key, ns, depth, tone), value in zip(rows, values, strict=True)
    ]
    return Bars((*out, *_idle(s.idle, s, lang)))


def _idle(idle: Idle | None, s: RankSummary, lang: str) -> Iterator[Bar]:
    if idle is None or not idle.total_ns:
        return
    longest = max(s.compute_ns, s.exposed_comm_ns, s.exposed_mem_ns, s.idle_ns)
    for key in _CAUSES:
        ns = getattr(idle, f"{key}_ns")
        if ns:
            # of several devices the gaps are per device: shares of them, not of the span of all
            yield Bar(word(key, lang), durations([ns, longest])[0], ratio(ns, s.span_ns * s.devices), 1, "dim")


def facts(s: RankSummary, lang: str) -> Fields:
    """What explains the breakdown, one line each."""
    rows = [
        (word("comm", lang), _communication(s, lang)),
        (word("mem", lang), _copies(s, lang)),
        *_launch_rows(s.launches, lang),
    ]
    if s.tensor_core is not None:
        t = s.tensor_core
        rows.append((Text("tensor cores", "张量核心").in_(lang),
                     Text(f"used {share(t.yes)} of kernel time, not used {share(t.no)}, not told by the name {share(t.unknown)}",
                          f"使用时间占 kernel 时间的 {share(t.yes)}，未使用 {share(t.no)}，名称无法判断 {share(t.unknown)}").in_(lang)))  # fmt: skip
    if len(s.streams) > 1:
        rows.append((Text("streams", "流").in_(lang), _streams(s, lang)))
    return Fields(tuple(rows))


def _communication(s: RankSummary, lang: str) -> str:
    if not s.comm_kernels:
        return Text("none", "无").in_(lang)
    hidden = share(ratio(s.comm_compute_overlap_ns, s.comm_ns))
    n = number(s.comm_kernels)
    return Text(f"{duration(s.comm_ns)} in {n} kernels, {hidden} of it behind computing",
                f"{duration(s.comm_ns)}，{n} 个 kernel，其中 {hidden} 被计算掩盖").in_(lang)  # fmt: skip


def _copies(s: RankSummary, lang: str) -> str:
    if not s.mem_ops:
        return Text("none", "无").in_(lang)
    return Text(f"{duration(s.mem_ns)} in {number(s.mem_ops)}", f"{duration(s.mem_ns)}，{number(s.mem_ops)} 次").in_(
        lang
    )


def _launch_rows(launches: Launches | None, lang: str) -> list[tuple[str, str]]:
    if launches is None or not launches.count:
        return []
    o = launches
    graphs = Text(f", {number(o.graph_kernels)} kernels from {number(o.graph_launches)} graph launches",
                  f"，{number(o.graph_launches)} 次图启动带来 {number(o.graph_kernels)} 个 kernel").in_(lang) if o.graph_launches else ""  # fmt: skip
    calls = Text(f"{number(o.count)}, {digits(o.per_ms)} per ms; median call {duration(o.median_call_ns)}, median way to the device {duration(o.median_delay_ns)}",
                 f"{number(o.count)} 次，每毫秒 {digits(o.per_ms)} 次；调用中位数 {duration(o.median_call_ns)}，到达设备中位数 {duration(o.median_delay_ns)}").in_(lang)  # fmt: skip
    small = Text(f"median {duration(o.median_kernel_ns)}; {share(ratio(o.short_kernels, o.count))} are shorter than their launch call",
                 f"中位数 {duration(o.median_kernel_ns)}；{share(ratio(o.short_kernels, o.count))} 短于其启动调用").in_(lang)  # fmt: skip
    queue = Text(f"{digits(o.queue_mean)} launched ahead on average, at most {number(o.queue_max)}; empty {share(o.queue_empty_share)} of the time",
                 f"平均提前启动 {digits(o.queue_mean)} 个，最多 {number(o.queue_max)} 个；{share(o.queue_empty_share)} 的时间为空").in_(lang)  # fmt: skip
    return [
        (Text("launches", "启动").in_(lang), calls + graphs),
        (Text("kernels", "kernel 时长").in_(lang), small),
        (Text("launch queue", "启动队列").in_(lang), queue),
    ]


def _streams(s: RankSummary, lang: str) -> str:
    several = len({u.device for u in s.streams}) > 1
    busiest = sorted(s.streams, key=lambda u: -u.busy_ns)
    named = [
        f"{f'{u.device}/' if several else ''}{excerpt(u.stream, 20) or '?'}{colon(lang)}{share(ratio(u.busy_ns, s.span_ns))}"
        for u in busiest[:_STREAMS]
    ]
    rest = len(busiest) - len(named)
    more = [Text(f"{rest} more", f"另有 {rest} 个").in_(lang)] if rest else []
    return listed([*named, *more], lang)


def roofline_rows(r: Roofline | None, lang: str) -> list[tuple[str, str]]:
    """GEMM rate, which side of the knee the time stands on, MFU."""
    if r is None:
        return []
    rows = []
    if r.gemm_tflops is not None and r.covered_share >= _TOLD:
        peak = (
            Text(f" of {digits(r.peak_tflops)} peak", f"，峰值 {digits(r.peak_tflops)}").in_(lang)
            if r.peak_tflops
            else ""
        )
        rows.append((Text("matrix products", "矩阵乘").in_(lang),
                     Text(f"{digits(r.gemm_tflops)} TFLOP/s over the window{peak}; shapes are known for {share(r.covered_share)} of kernel time",
                          f"窗口内 {digits(r.gemm_tflops)} TFLOP/s{peak}；{share(r.covered_share)} 的 kernel 时间已知形状").in_(lang)))  # fmt: skip
    if r.memory_bound_share is not None and r.compute_bound_share is not None:
        below = r.far_below_share or 0.0
        rest = max(0.0, 1 - r.memory_bound_share - r.compute_bound_share - below)
        rows.append((Text("roofline", "屋顶线").in_(lang),
                     Text(f"{share(r.memory_bound_share)} of kernel time under the memory roof, {share(r.compute_bound_share)} under the compute roof, {share(below)} far below either, {share(rest)} not known",
                          f"kernel 时间中 {share(r.memory_bound_share)} 受显存带宽限制，{share(r.compute_bound_share)} 受算力限制，{share(below)} 远低于两者，{share(rest)} 未知").in_(lang)))  # fmt: skip
    if r.mfu is not None:
        rows.append(("MFU", f"{share(r.mfu)}{aside(r.mfu_formula, lang) if r.mfu_formula else ''}"))
    return rows


def heading(s: RankSummary, lang: str) -> tuple[str, str]:
    """Whose time it is, and which part of it."""
    gpu = excerpt(s.gpu, 60)
    many = f"{s.devices} × " if s.devices > 1 else ""
    world = (
        Text(f" of {s.world_size}", f"（共 {s.world_size} 个）").in_(lang)
        if s.world_size and s.rank is not None
        else ""
    )
    rank = f"rank {s.rank}{world}" if s.rank is not None else ""
    return listed([p for p in (rank, excerpt(s.file, 200), f"{many}{gpu}" if gpu else "") if p], lang), window_text(
        s.window, lang
    )


def kernel_columns(lang: str, name: str = "name") -> tuple[Column, ...]:
    """The columns of a table of kernels; spread gives way first where it is narrow."""
    drops = (("share", 0), ("total", 0), ("count", 0), ("mean", 3), ("min", 6), ("max", 4), ("stddev", 5), (name, 0))
    return tuple(
        Column(
            word(key, lang) if key in ("share", "total", "count", "mean", "min", "max", "stddev", "name") else key, drop
        )
        for key, drop in drops
    )


def kernel_rows(stats: Sequence[KernelStat], label: bool = True) -> tuple[tuple[str, ...], ...]:
    """One row a kernel. `label`: the key is a kernel's name."""
    return tuple(
        (share(k.share), duration(k.total_ns), number(k.count), duration(k.mean_ns), duration(k.min_ns), duration(k.max_ns), duration(k.stddev_ns), short(k.name) if label else excerpt(k.name, 300))
        for k in stats
    )  # fmt: skip


def kernels(stats: Sequence[KernelStat], lang: str) -> list[Part]:
    """The table of kernels; nothing when there are none."""
    return [Grid(kernel_columns(lang), kernel_rows(stats))] if stats else []
