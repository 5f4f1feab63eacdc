"""``gpudiag trace kernels``: device time of kernels, by what is asked."""

from __future__ import annotations

import argparse
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

from assistant.render.labels import aside
from assistant.render.sheet import Heading, Paragraph
from assistant.render.trace_page import Grid, Part
from assistant.render.trace_units import duration, number, share
from assistant.trace.answer import commands, counted, no_gpu, notes, quoted, unknown
from assistant.trace.breakdown import kernel_columns, kernel_rows
from assistant.trace.reading import Results, all_of, each, needs_of, place, window
from assistant.trace.words import rank_name, window_text
from knowledge.language import Text
from probes.trace.model import KernelStat, Window, plain
from probes.trace.reading.reader import Trace

_BY = {
    "name": Text("kernel", "kernel"), "shape": Text("operator and shapes", "算子与形状"), "module": Text("module", "模块"),
    "python": Text("Python function", "Python 函数"), "stream": Text("stream", "流"), "class": Text("class", "类别"),
}  # fmt: skip


class _Ranked(NamedTuple):
    """The kernels of one trace."""

    rank: int | None
    file: str
    window: Window | None
    stats: tuple[KernelStat, ...]  # all of them
    notes: tuple[Text, ...]


def run(args: argparse.Namespace) -> int:
    """Read, count, print."""
    if names := all_of(args, "ncu"):
        from assistant.trace import ncu

        return ncu.run(args, names)
    if names := all_of(args, "nsys-sum"):
        from probes.trace.reading.nsys_csv import read_sum_csv

        return _answer(
            args, Results([_Ranked(None, name, None, read_sum_csv(place(args, name)), ()) for name in names])
        )
    from probes.trace.breakdown import kernels

    return _answer(args, each(args, needs_of(args, kernels.NEEDS), partial(_one, args)))


def _answer(args: argparse.Namespace, results: Results[_Ranked]) -> int:
    return counted(args, results, lambda r, lang: _plain(r, args.top, lang), partial(_parts, args))


def _one(args: argparse.Namespace, trace: Trace) -> _Ranked:
    from probes.trace.breakdown.kernels import kernel_stats

    here = window(args, trace)
    if here is None:
        return _Ranked(trace.rank, trace.path, None, (), (no_gpu(trace), *trace.notes))
    return _Ranked(trace.rank, trace.path, here, kernel_stats(trace, args.by, here), tuple(trace.notes))


def _plain(r: _Ranked, top: int, lang: str) -> dict[str, Any]:
    total, calls = sum(k.total_ns for k in r.stats), sum(k.count for k in r.stats)
    return {"rank": r.rank, "file": r.file, "window": plain(r.window), "total_ns": total, "count": calls,
            "rows": len(r.stats), "kernels": plain(r.stats[:top], lang), "notes": plain(r.notes, lang)}  # fmt: skip


def _where(r: _Ranked, lang: str) -> str:
    return window_text(r.window, lang) if r.window else Text("as nsys added it up", "由 nsys 汇总").in_(lang)


def _parts(args: argparse.Namespace, r: _Ranked) -> list[Part]:
    lang = args.settings.output.lang
    if not r.stats:
        reason = (
            r.notes[0]
            if r.window is None
            else Text(f"{r.file}: nothing ran on the GPU in this window.", f"{r.file}：该窗口内 GPU 上没有任何活动。")
        )
        return [unknown(reason, lang)]
    absent = Text("(not recorded)", "（未记录）").in_(lang)
    shown = [replace(k, name=absent) if k.name == "?" else k for k in r.stats[: args.top]]
    total, calls = sum(k.total_ns for k in r.stats), sum(k.count for k in r.stats)
    names = kernel_columns(lang, _BY[args.by].in_(lang))
    rest, covered = len(r.stats) - len(shown), sum(k.share for k in shown)
    said = Text(f"{number(calls)} kernels took {duration(total)} of device time, added up over streams",
                f"{number(calls)} 个 kernel 共占用设备时间 {duration(total)}（各流相加）").in_(lang)  # fmt: skip
    more = (
        Text(
            f"{rest} more rows make up {share(1 - covered)} (--top)", f"其余 {rest} 行占 {share(1 - covered)}（--top）"
        ).in_(lang)
        if rest
        else ""
    )
    return [
        Heading(rank_name(r.rank, r.file) + aside(_where(r, lang), lang)),
        Paragraph(said),
        Grid(names, kernel_rows(shown, label=args.by == "name")),
        *([Paragraph(f"  {more}")] if more else []),
        *notes(r.notes, lang),
        *(commands([f"gpudiag trace kernels --by class {quoted(r.file)}"], lang) if args.by == "name" else []),
    ]
