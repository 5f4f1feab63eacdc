"""``gpudiag trace timeline``: streams and host threads over time, drawn in a few lines, and the longest gaps."""

from __future__ import annotations

import argparse
from functools import partial
from typing import Any, NamedTuple

from assistant.exits import Exit
from assistant.render.cells import pad, terminal_width, width, wrap
from assistant.render.labels import aside
from assistant.render.sheet import Heading, Paragraph
from assistant.render.trace_page import Column, Grid, Part, Plot, squeezed
from assistant.render.trace_units import duration
from assistant.trace.answer import answer, commands, no_gpu, notes, quoted, unknown
from assistant.trace.lanes import Lanes, lanes
from assistant.trace.reading import each, needs_of, window
from assistant.trace.words import rank_name, short, word
from knowledge.errors import UsageError
from knowledge.language import Text
from knowledge.text import excerpt
from probes.trace.columns import both
from probes.trace.model import plain
from probes.trace.reading.reader import Trace

_SHADES = "·░▒▓█"  # nothing at all; up to a quarter, a half, five sixths; more
_ASCII = ".-=+#"
_LETTER = {"data_loader": "d", "sync": "s", "launch": "l", "operator": "o", "": "."}
_LABEL = 20  # columns of a lane's name
_DATA = 200  # bins of JSON
_LEAST = 20
_KERNEL = 34  # columns of the kernel behind a gap


class _Drawn(NamedTuple):
    """A stretch of one trace."""

    rank: int | None
    file: str
    origin: int  # ns: what times are told from
    found: Lanes | None
    notes: tuple[Text, ...]


def run(args: argparse.Namespace) -> int:
    """Read, bin, draw."""
    from assistant.trace.lanes import NEEDS
    from probes.trace.steps import iterations

    needs = needs_of(args, NEEDS)
    results = each(args, both(needs, iterations.NEEDS) if args.iteration is not None else needs, partial(_one, args))
    lang = args.settings.output.lang
    data = {"ranks": [_plain(d, lang) for d in results.found]}
    empty = not any(d.found for d in results.found)
    return answer(
        args,
        results,
        data,
        lambda: [p for d in results.found for p in _parts(args, d)],
        Exit.UNDECIDED if empty else Exit.OK,
    )


def _one(args: argparse.Namespace, trace: Trace) -> _Drawn:
    here = window(args, trace)
    if here is None:
        return _Drawn(trace.rank, trace.path, 0, None, (no_gpu(trace), *trace.notes))
    start, end = _stretch(args, trace, here.start_ns, here.end_ns)
    bins = _DATA if args.settings.output.format == "json" else room(args)
    return _Drawn(trace.rank, trace.path, here.start_ns, lanes(trace, start, end, bins), tuple(trace.notes))


def room(args: argparse.Namespace) -> int:
    """Columns for the bins."""
    return max(_LEAST, (getattr(args, "width", None) or terminal_width()) - _LABEL - 2)


def _stretch(args: argparse.Namespace, trace: Trace, start: int, end: int) -> tuple[int, int]:
    """What part of the window is asked for. UsageError when it lies outside of it."""
    low, high = start, end
    if args.iteration is not None:
        from probes.trace.steps.iterations import iterations

        found = iterations(trace, args.marker)
        one = next((i for i in found.items if i.number == args.iteration), None)
        if one is None:
            known = f"{found.items[0].number} to {found.items[-1].number}" if found.items else "none"
            raise UsageError(
                f"{trace.path} holds no iteration {args.iteration} (iterations: {known})",
                hint="gpudiag trace iterations lists them",
            )
        low, high = one.start_ns, one.end_ns
    if args.from_ is not None:
        low = start + args.from_
    if args.to is not None:
        high = start + args.to
    if not low < high or low >= end:
        raise UsageError(f"--from {duration(low - start)} --to {duration(high - start)} holds nothing of {trace.path}, which lasts {duration(end - start)}",
                         hint="times count from the window's start; --from must lie before --to")  # fmt: skip
    return low, min(high, end) if args.iteration is None else high


def _plain(d: _Drawn, lang: str) -> dict[str, Any]:
    return {"rank": d.rank, "file": d.file, "origin_ns": d.origin, "notes": plain(d.notes, lang),
            **(plain(d.found) if d.found else {"streams": [], "threads": [], "gaps": []})}  # fmt: skip


def _parts(args: argparse.Namespace, d: _Drawn) -> list[Part]:
    lang = args.settings.output.lang
    if d.found is None:
        return [unknown(d.notes[0], lang)]
    f = d.found
    where = f"{duration(f.start_ns - d.origin)} .. {duration(f.end_ns - d.origin)}"
    hidden = []
    if f.more_streams or f.more_threads:
        hidden = [Paragraph(Text(f"  {f.more_streams} more streams and {f.more_threads} more host threads are not shown",
                                 f"  另有 {f.more_streams} 个流和 {f.more_threads} 个主机线程未显示").in_(lang))]  # fmt: skip
    return [Heading(rank_name(d.rank, d.file) + aside(where, lang)), Plot(partial(_draw, f, d.origin, lang)), *hidden,
            *_gap_table(d, lang), *notes(d.notes, lang), *_zoom(d, lang)]  # fmt: skip


def section(f: Lanes, rank: int | None, file: str, origin: int, lang: str) -> list[Part]:
    """The timeline of one trace as a part of a longer page."""
    d = _Drawn(rank, file, origin, f, ())
    title = Text("Timeline", "时间线").in_(lang) + aside(rank_name(rank, file), lang)
    return [Heading(title), Plot(partial(_draw, f, origin, lang)), *_gap_table(d, lang)]


def _draw(f: Lanes, origin: int, lang: str, columns: int, fine: bool) -> list[str]:
    """The lanes below an axis of time (their bins were made for the width), and what the characters mean."""
    bins = len(f.streams[0].busy)
    shades = _SHADES if fine else _ASCII
    out = [" " * _LABEL + line for line in _axis(f.start_ns - origin, f.end_ns - origin, bins)]
    for s in f.streams:
        name = "GPU" if s.device is None else f"  {s.device}/{s.stream or '?'}"
        out.append(pad(f"  {name}", _LABEL) + "".join(_shade(b, shades) for b in s.busy))
    for t in f.threads:
        name = Text(f"thread {t.thread}", f"线程 {t.thread}").in_(lang)
        if width(name) > _LABEL - 4:  # a long number says who it is without the word
            name = excerpt(str(t.thread), _LABEL - 4)
        out.append(pad(f"  {name}", _LABEL) + "".join(_LETTER[what] for what in t.doing))
    busy = Text(f"{shades[0]} nothing ran  {shades[1]} {shades[2]} {shades[3]} {shades[4]} busy part of the time, up to all of it",
                f"{shades[0]} 无活动  {shades[1]} {shades[2]} {shades[3]} {shades[4]} 部分时间直至全部时间在运行").in_(lang)  # fmt: skip
    host = Text("d data loader  s synchronising  l launching  o operators  . nothing recorded",
                "d 数据加载  s 同步  l 启动  o 算子  . 无记录").in_(lang)  # fmt: skip
    return [*out, "", *wrap(busy, columns, "  "), *(wrap(host, columns, "  ") if f.threads else [])]


def _shade(busy: float, shades: str) -> str:
    return (
        shades[0]
        if busy <= 0
        else shades[1]
        if busy <= 0.25
        else shades[2]
        if busy <= 0.5
        else shades[3]
        if busy <= 5 / 6
        else shades[4]
    )


def _axis(start: int, end: int, bins: int) -> list[str]:
    """Times and ticks: four or so, none over another."""
    step = max(1, bins // max(1, bins // 16))
    times, ticks = "", ""
    for at in range(0, bins, step):
        said = duration(start + (end - start) * at // bins)
        if at + width(said) > bins:
            break
        times, ticks = pad(times, at) + said, pad(ticks, at) + "|"
    return [times, ticks]


def _gap_table(d: _Drawn, lang: str) -> list[Part]:
    assert d.found is not None
    if not d.found.gaps:
        return []
    several = len({g.device for g in d.found.gaps}) > 1
    blamed = any(g.blame for g in d.found.gaps)
    columns = (Column(Text("at", "起点").in_(lang), 1), Column(word("length", lang)), *((Column("GPU"),) if several else ()),
               Column(Text("because", "原因").in_(lang), left=True), Column(Text("then ran", "随后运行").in_(lang), 2, left=True),
               Column(Text("the host was in", "主机处于").in_(lang)))  # fmt: skip
    rows = tuple(
        (duration(g.start_ns - d.origin), duration(g.end_ns - g.start_ns), *((str(g.device),) if several else ()), word(g.cause, lang),
         squeezed(short(g.kernel), _KERNEL) if g.kernel else "-", short(g.blame) if g.blame else "-")
        for g in d.found.gaps
    )  # fmt: skip
    grid = Grid(columns, rows, named=False) if blamed else Grid(columns[:-1], tuple(r[:-1] for r in rows), named=False)
    return [Heading(Text("Longest gaps of the GPU", "最长的 GPU 空隙").in_(lang)), grid]


def _zoom(d: _Drawn, lang: str) -> list[Part]:
    """The command that shows the longest gap from near."""
    f = d.found
    if f is None or not f.gaps or f.gaps[0].end_ns - f.gaps[0].start_ns < (f.end_ns - f.start_ns) // 50:
        return []
    g = f.gaps[0]
    if (g.end_ns - g.start_ns) * 2 > f.end_ns - f.start_ns:
        return []
    side = (g.end_ns - g.start_ns) // 2
    low, high = max(0, g.start_ns - side - d.origin), g.end_ns + side - d.origin
    return commands(
        [f"gpudiag trace timeline --from {low / 10**6:.3f}ms --to {high / 10**6:.3f}ms {quoted(d.file)}"], lang
    )
