"""The allocator's memory as parts of a page: of a trace's [memory] events, or of a snapshot."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from assistant.diagnosis import Question
from assistant.render.sheet import Fields, Heading
from assistant.render.trace_page import Column, Grid, Part, Plot
from assistant.render.trace_plots import spark
from assistant.render.trace_units import duration, number, share, size
from assistant.trace.answer import answer, findings, judge, notes
from assistant.trace.reading import Results, place
from assistant.trace.words import word
from knowledge.errors import GpudiagError
from knowledge.language import Text
from knowledge.text import clean, excerpt
from probes.trace.model import plain

if TYPE_CHECKING:
    from probes.trace.model import MemoryUse

_QUESTION = Question(
    ("trace.allocator.fragmentation",),
    Text(
        "At most {trace.allocator.peak} MiB were allocated; {trace.allocator.fragmentation} % of the reserved memory is free in pieces.",
        "最多分配 {trace.allocator.peak} MiB；已保留显存中 {trace.allocator.fragmentation} % 为零碎空闲。",
    ),
    Text("Whether memory is fragmented is not known", "显存是否碎片化尚不清楚"),
)
_HOLDERS = 8


def run(args: argparse.Namespace, names: Sequence[str]) -> int:
    """``gpudiag trace summary`` of memory snapshots."""
    from probes.trace.allocator.snapshot import read_snapshot
    from probes.trace.verdict.snapshot_facts import memory_observations

    results: Results[tuple[str, tuple[MemoryUse, ...]]] = Results()
    for name in names:
        try:
            results.found.append((name, read_snapshot(place(args, name))))
        except GpudiagError as error:
            if len(names) == 1:
                raise
            results.failed[name] = error.message
    lang = args.settings.output.lang
    told = [o for f, m in results.found for o in memory_observations(f, m)]
    diagnosis = judge(args, told, [f for f, _ in results.found], results.failed, _QUESTION)
    data = {
        "source": "snapshot",
        "ranks": [],
        "verdicts": findings(diagnosis, lang),
        "snapshots": [{"file": f, "memory": plain(m, lang)} for f, m in results.found],
    }
    return answer(
        args, results, data, lambda: [p for f, m in results.found for p in _parts(f, m, lang)], diagnosis=diagnosis
    )


def _parts(file: str, uses: Sequence[MemoryUse], lang: str) -> list[Part]:
    return [
        Heading(excerpt(file, 200)),
        *(p for use in uses for p in section(use, lang)),
        *notes([n for use in uses for n in use.notes], lang),
    ]


# A snapshot shows the free pieces; events only that at the peak of what is allocated more was reserved.
_UNUSED = {True: Text("fragmentation", "碎片率"), False: Text("reserved, not in use", "已保留未使用")}


def section(use: MemoryUse, lang: str, holders: int = _HOLDERS) -> list[Part]:
    """One device: figures, the course of allocated memory, who holds it."""
    growth = use.growth_per_iteration
    rows = (
        (Text("allocated", "已分配").in_(lang), Text(f"at most {size(use.peak_allocated)}, {size(use.end_allocated)} at the end", f"峰值 {size(use.peak_allocated)}，结束时 {size(use.end_allocated)}").in_(lang)),
        (Text("reserved", "已保留").in_(lang), Text(f"at most {size(use.peak_reserved)}, {size(use.end_reserved)} at the end", f"峰值 {size(use.peak_reserved)}，结束时 {size(use.end_reserved)}").in_(lang)),
        (_UNUSED[use.largest_free is not None].in_(lang), share(use.fragmentation) if use.fragmentation is not None else ""),
        (Text("allocations", "分配次数").in_(lang), Text(f"{number(use.allocations)}, {number(use.frees)} frees; {size(use.churn_bytes)} in all", f"{number(use.allocations)}，释放 {number(use.frees)}；共 {size(use.churn_bytes)}").in_(lang) if use.allocations else ""),
        (Text("growth per iteration", "每迭代增长").in_(lang), size(growth) if growth else ""),
        (Text("driver calls", "驱动调用").in_(lang), number(use.segment_events) if use.segment_events else ""),
    )  # fmt: skip
    title = Text(f"Memory of {clean(use.device)}", f"{clean(use.device)} 的显存").in_(lang)
    course: list[Part] = [Plot(partial(_course, use, lang))] if len(use.timeline) > 3 and use.peak_allocated else []
    held: list[Part] = []
    if use.top:
        columns = (
            Column(Text("bytes", "字节").in_(lang)),
            Column(word("share", lang), 1),
            Column(Text("held by", "持有者").in_(lang)),
        )
        whole = max(use.end_allocated, use.peak_allocated, 1)
        held = [
            Grid(
                columns, tuple((size(n), share(n / whole), excerpt(clean(name), 300)) for name, n in use.top[:holders])
            )
        ]
    return [Heading(title), Fields(rows), *course, *held]


def _course(use: MemoryUse, lang: str, columns: int, fine: bool) -> list[str]:
    """Allocated memory over time, in one line: in each column the most."""
    room = columns - 4
    start, end = use.timeline[0].at_ns, use.timeline[-1].at_ns
    most: list[float] = [0.0] * room
    last = 0
    for point in use.timeline:
        at = min(room - 1, (point.at_ns - start) * room // max(1, end - start))
        for column in range(last, at):
            most[column + 1] = max(most[column + 1], most[last])
        last, most[at] = at, max(most[at], point.allocated)
    title = Text(
        f"  allocated over {duration(end - start)}, at most {size(use.peak_allocated)}",
        f"  已分配显存，历时 {duration(end - start)}，峰值 {size(use.peak_allocated)}",
    ).in_(lang)
    return [title, f"  {spark(most, float(use.peak_allocated), fine)}"]
