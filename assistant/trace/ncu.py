"""``gpudiag trace kernels`` of an Nsight Compute report: what each launch is limited by, and what to change."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import TYPE_CHECKING

from assistant.diagnosis import Question
from assistant.render.labels import colon, listed
from assistant.render.sheet import Fields, Heading, Items, Paragraph
from assistant.render.trace_page import Column, Grid, Part
from assistant.render.trace_units import digits, duration, number, share, size
from assistant.trace.answer import answer, judge
from assistant.trace.reading import Results, place
from assistant.trace.words import short, word
from knowledge.errors import GpudiagError
from knowledge.language import Text
from knowledge.text import clean, excerpt
from probes.trace.model import plain

if TYPE_CHECKING:
    from probes.trace.nsight.ncu_types import KernelProfile

_DETAILS = 3  # launches that are shown in full
_STALLS, _LINES = 4, 5
_BOUNDS = {
    "compute": Text("compute-bound", "算力受限"),
    "memory": Text("memory-bound", "显存受限"),
    "balanced": Text("balanced", "均衡"),
    "latency": Text("latency-bound", "延迟受限"),
    "unknown": Text("unknown", "未知"),
}
_QUESTION = Question(
    ("ncu.bound",),
    Text("Nothing that holds the kernels back was found.", "未发现限制 kernel 的因素。"),
    Text("What limits the kernels is not known", "kernel 受什么限制尚不清楚"),
)


def run(args: argparse.Namespace, names: Sequence[str]) -> int:
    """Read and print the reports `names`."""
    from probes.trace.nsight.ncu import read_ncu
    from probes.trace.verdict.kernel_facts import profile_observations

    results: Results[tuple[str, tuple[KernelProfile, ...]]] = Results()
    for name in names:
        try:
            results.found.append((name, read_ncu(place(args, name))))
        except GpudiagError as error:
            if len(names) == 1:
                raise
            results.failed[name] = error.message
    lang = args.settings.output.lang
    data = {"source": "ncu", "reports": [{"file": f, "launches": plain(p[: args.top], lang)} for f, p in results.found]}
    told = [o for f, p in results.found for o in profile_observations(f, p)]
    diagnosis = judge(args, told, [f for f, _ in results.found], results.failed, _QUESTION)
    return answer(
        args,
        results,
        data,
        lambda: [x for f, p in results.found for x in _parts(args, f, p, lang)],
        diagnosis=diagnosis,
    )


def _parts(args: argparse.Namespace, file: str, profiles: Sequence[KernelProfile], lang: str) -> list[Part]:
    longest = sorted(profiles, key=lambda p: -(p.duration_ns or 0))
    return [Heading(excerpt(file, 200)), _table(longest[: args.top], lang),
            *(part for p in longest[:_DETAILS] for part in _details(p, lang))]  # fmt: skip


def _table(profiles: Sequence[KernelProfile], lang: str) -> Grid:
    titles = ((Text("time", "时间"), 0), (Text("compute", "算力"), 1), (Text("memory", "存储"), 1), (Text("occupancy", "占用率"), 2),
              (Text("registers", "寄存器"), 4), (Text("grid", "网格"), 5), (Text("block", "线程块"), 5), (Text("limit", "瓶颈"), 0))  # fmt: skip
    rows = tuple(
        (duration(p.duration_ns), _percent(p.compute_pct), _percent(p.memory_pct), _percent(p.occupancy_achieved_pct), number(p.registers),
         _dims(p.grid), _dims(p.block), _BOUNDS[str(p.bound)].in_(lang), short(p.name))
        for p in profiles
    )  # fmt: skip
    return Grid((*(Column(t.in_(lang), d) for t, d in titles), Column(word("name", lang))), rows)


def _percent(value: float | None) -> str:
    return share(None if value is None else value / 100)


def _dims(value: tuple[int, ...] | None) -> str:
    return "-" if value is None else "x".join(map(str, value))


def _details(p: KernelProfile, lang: str) -> list[Part]:
    """Why a launch is as slow as it is: what limits its occupancy, what its warps wait for, in which lines."""
    from probes.trace.nsight.ncu_advice import meaning

    rows = [
        (Text("occupancy", "占用率").in_(lang), _occupancy(p, lang)),
        (Text("waves", "波次").in_(lang), digits(p.waves) if p.waves is not None else ""),
        (Text("shared memory", "共享内存").in_(lang), size(p.shared_bytes) if p.shared_bytes is not None else ""),
        (Text("tensor pipe", "张量流水线").in_(lang), _percent(p.tensor_pct) if p.tensor_pct is not None else ""),
    ]
    out: list[Part] = [Heading(short(p.name)), Fields(tuple(rows))]
    for s in p.stalls[:_STALLS]:
        why = meaning(s.reason)
        out.append(
            Paragraph(f"  {share(s.share)}  {excerpt(s.reason, 40)}" + (f"{colon(lang)}{why.in_(lang)}" if why else ""))
        )
    if p.lines:
        out.append(Grid(
            (Column(Text("samples", "采样").in_(lang)), Column(word("share", lang)), Column(Text("line", "行").in_(lang), 0, left=True), Column(Text("source", "源码").in_(lang))),
            tuple((number(x.samples), share(x.share), excerpt(f"{x.file.rsplit('/', 1)[-1]}:{x.line}" if x.line is not None else x.address, 40), excerpt(x.text, 200)) for x in p.lines[:_LINES]),
            named=False))  # fmt: skip
    if p.advice:
        out.append(Items(tuple(clean(a.text.in_(lang)) for a in p.advice)))
    return out


def _occupancy(p: KernelProfile, lang: str) -> str:
    parts = []
    if p.occupancy_achieved_pct is not None:
        parts.append(
            Text(f"achieved {_percent(p.occupancy_achieved_pct)}", f"实际 {_percent(p.occupancy_achieved_pct)}").in_(
                lang
            )
        )
    if p.occupancy_theoretical_pct is not None:
        parts.append(
            Text(
                f"possible {_percent(p.occupancy_theoretical_pct)}", f"理论 {_percent(p.occupancy_theoretical_pct)}"
            ).in_(lang)
        )
    if p.limiters:
        names = listed([excerpt(w, 40) for w in p.limiters], lang)
        parts.append(Text(f"limited by {names}", f"受限于 {names}").in_(lang))
    return listed(parts, lang)
