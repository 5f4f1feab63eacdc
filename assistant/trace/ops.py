"""``gpudiag trace ops``: host and device time of operators."""

from __future__ import annotations

import argparse
from functools import partial
from typing import Any, NamedTuple

from assistant.render.labels import aside
from assistant.render.sheet import Heading, Paragraph
from assistant.render.trace_page import Column, Grid, Part
from assistant.render.trace_units import duration, number, share
from assistant.trace.answer import counted, notes, unknown
from assistant.trace.reading import each, needs_of, window
from assistant.trace.words import rank_name, window_text
from knowledge.language import Text
from knowledge.text import excerpt
from probes.trace.model import OpStat, Window, plain
from probes.trace.reading.reader import Trace

_COLUMNS = (
    (Text("GPU share", "GPU 占比"), 0), (Text("GPU own", "GPU 自身"), 0), (Text("GPU all", "GPU 合计"), 4), (Text("kernels", "kernel 数"), 5),
    (Text("host own", "主机自身"), 2), (Text("host all", "主机合计"), 3), (Text("calls", "调用"), 0),
)  # fmt: skip
_ON_GPU = 4  # of them are about the device


class _Ranked(NamedTuple):
    """The operators of one trace."""

    rank: int | None
    file: str
    window: Window | None
    stats: tuple[OpStat, ...]
    notes: tuple[Text, ...]


def run(args: argparse.Namespace) -> int:
    """Read, count, print."""
    from probes.trace.breakdown import kernels

    results = each(args, needs_of(args, kernels.NEEDS), partial(_one, args))
    return counted(args, results, partial(_plain, args), partial(_parts, args))


def _one(args: argparse.Namespace, trace: Trace) -> _Ranked:
    from probes.trace.breakdown.kernels import op_stats

    here = window(args, trace)  # None: host events only, all of them
    return _Ranked(trace.rank, trace.path, here, op_stats(trace, args.by, here), tuple(trace.notes))


def _sizes(shapes: str) -> str:
    """``8944x1024, 1024x2816``; shapes that are no lists of sizes as they are."""
    from probes.trace.work.calls import shown

    return shown(shapes) or shapes


def _plain(args: argparse.Namespace, r: _Ranked, lang: str) -> dict[str, Any]:
    """One trace as data; what only the device tells is null where nothing ran on it."""
    shown: list[dict[str, Any]] = plain(r.stats[: args.top])
    if r.window is None:
        shown = [o | dict.fromkeys(("gpu_ns", "gpu_total_ns", "kernels", "share")) for o in shown]
    return {
        "rank": r.rank,
        "file": r.file,
        "window": plain(r.window),
        "rows": len(r.stats),
        "ops": shown,
        "notes": plain(r.notes, lang),
    }


def _parts(args: argparse.Namespace, r: _Ranked) -> list[Part]:
    lang = args.settings.output.lang
    if not r.stats:
        return [unknown(Text(f"{r.file} holds no operators: record with ProfilerActivity.CPU.",
                             f"{r.file} 没有算子事件：请使用 ProfilerActivity.CPU 录制。"), lang)]  # fmt: skip
    shown, shapes = r.stats[: args.top], args.by == "shape"
    first = 0 if r.window else _ON_GPU  # without GPU activity nothing is known of the device, and no zero is shown
    columns = tuple(Column(title.in_(lang), drop) for title, drop in (*_COLUMNS[first:], (Text("operator", "算子"), 0)))
    rows = tuple(
        (*(share(o.share), duration(o.gpu_ns), duration(o.gpu_total_ns), number(o.kernels))[first:], duration(o.cpu_self_ns), duration(o.cpu_ns),
         number(o.count), excerpt(f"{o.name} {_sizes(o.shapes)}" if shapes and o.shapes else o.name, 300))
        for o in shown
    )  # fmt: skip
    where = window_text(r.window, lang) if r.window else Text("host events only", "仅主机事件").in_(lang)
    rest = len(r.stats) - len(shown)
    more = [Paragraph(Text(f"  {rest} more rows (--top)", f"  另有 {rest} 行（--top）").in_(lang))] if rest else []
    unshaped = shapes and not any(o.shapes for o in r.stats)
    hint = (
        (
            Text(
                "the trace holds no shapes: record with record_shapes=True",
                "轨迹中没有形状：请使用 record_shapes=True 录制",
            ),
        )
        if unshaped
        else ()
    )
    return [
        Heading(rank_name(r.rank, r.file) + aside(where, lang)),
        Grid(columns, rows),
        *more,
        *notes((*hint, *r.notes), lang),
    ]
