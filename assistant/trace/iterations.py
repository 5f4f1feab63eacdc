"""``gpudiag trace iterations``: how long each step took and what it was made of."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

from assistant.diagnosis import Question
from assistant.render.labels import aside
from assistant.render.sheet import Fields, Heading, Paragraph
from assistant.render.trace_page import Column, Grid, Part, Plot
from assistant.render.trace_plots import binned, drawable, spark, stacked
from assistant.render.trace_units import digits, duration, durations, ratio, share
from assistant.trace.answer import answer, commands, judge, notes, quoted
from assistant.trace.reading import Results, each
from assistant.trace.words import rank_name, word
from knowledge.language import Text
from knowledge.text import clean, excerpt
from probes.trace.model import Iteration, Iterations, plain
from probes.trace.reading.reader import Trace

_BAR = 18  # columns of the longest iteration
_MARKS = ("█", "▓", "▒", "░")  # computing, exposed communication, copies beside both, idle
_ASCII = ("#", "=", "-", ".")
_RANKS = 4  # that are shown one by one
_FEW = 20  # of so many or fewer no plot is needed
_BLAMED = {
    "compute": "compute",
    "comm": "comm",
    "exposed_comm": "exposed_comm",
    "mem": "mem",
    "idle": "idle",
    "data_loader": "data_loader",
}


_QUESTION = Question(
    ("trace.iteration.slow",),
    Text(
        "{trace.iterations} iterations, {trace.iteration.median_ms} ms in the median.",
        "{trace.iterations} 个迭代，中位数 {trace.iteration.median_ms} ms。",
    ),
    Text("What is ordinary among the iterations is not known", "迭代是否正常尚不清楚"),
)
_OF_DEVICE = ("compute_ns", "comm_ns", "exposed_comm_ns", "mem_ns", "idle_ns", "kernels")  # not known without its work


class _Ranked(NamedTuple):
    """The iterations of one trace."""

    found: Iterations
    notes: tuple[Text, ...]


def run(args: argparse.Namespace) -> int:
    """Read, cut, print."""
    from probes.trace.steps import iterations
    from probes.trace.verdict.facts import iteration_observations

    results = each(args, iterations.NEEDS, partial(_one, args))
    lang = args.settings.output.lang
    told = iteration_observations([r.found for r in results.found])
    diagnosis = judge(args, told, [r.found.file for r in results.found], results.failed, _QUESTION)
    data = {"ranks": [_plain(r, lang) for r in results.found]}
    return answer(args, results, data, lambda: _parts(args, results), diagnosis=diagnosis)


def _one(args: argparse.Namespace, trace: Trace) -> _Ranked:
    from probes.trace.steps.iterations import iterations

    found = iterations(trace, args.marker)
    return _Ranked(found, tuple(dict.fromkeys((*trace.notes, *found.notes))))


def _plain(r: _Ranked, lang: str) -> dict[str, object]:
    whole: dict[str, object] = plain(r.found, lang)
    for item, i in zip(whole["items"], r.found.items, strict=True):  # type: ignore[call-overload]  # a list: it was a tuple
        item["span_ns"] = i.span_ns
        if not r.found.device:
            item.update(dict.fromkeys(_OF_DEVICE))
    return whole | {"notes": plain(r.notes, lang)}


def _parts(args: argparse.Namespace, results: Results[_Ranked]) -> list[Part]:
    lang = args.settings.output.lang
    found = [r.found for r in results.found]
    out = _over_ranks(found, args.top, lang) if len(found) > 1 and all(f.device for f in found) else []
    shown = results.found if len(found) <= _RANKS else [max(results.found, key=lambda r: r.found.median_ns or 0)]
    out += [p for r in shown for p in _of_rank(args, r)]
    slow = next((f for f in found if any(i.outlier for i in f.items)), None)
    if slow is None:
        return out
    worst = max((i for i in slow.items if i.outlier), key=lambda i: i.span_ns)
    usual = min(slow.items, key=lambda i: abs(i.span_ns - (slow.median_ns or 0)))
    return [
        *out,
        *commands([f"gpudiag trace diff --iterations {usual.number}:{worst.number} {quoted(slow.file)}"], lang),
    ]


def _over_ranks(found: Sequence[Iterations], most: int, lang: str) -> list[Part]:
    """Each iteration that all ranks have: the fastest and the slowest rank, and how the computing differs."""
    of_rank = [{i.number: i for i in f.items} for f in found]
    common = sorted(set.intersection(*(set(o) for o in of_rank))) if of_rank else []
    if not common:
        return []
    columns = (Column("#"), Column(Text("fastest", "最快").in_(lang)), Column(Text("slowest", "最慢").in_(lang)),
               Column(Text("computing from", "计算最少").in_(lang), 2), Column(Text("to", "计算最多").in_(lang), 2),
               Column(Text("imbalance", "不均衡").in_(lang)), Column(Text("computes longest", "计算最久").in_(lang)))  # fmt: skip
    rows = []
    for number in common:
        items = [o[number] for o in of_rank]
        spans, work = [i.span_ns for i in items], [i.compute_ns for i in items]
        last = found[work.index(max(work))]
        over = ratio(max(work) * len(work), sum(work))  # the slowest against the mean
        rows.append((max(work), (str(number), duration(min(spans)), duration(max(spans)), duration(min(work)), duration(max(work)),
                     share(over - 1 if over is not None else None), rank_name(last.rank, last.file))))  # fmt: skip
    chosen = sorted(sorted(rows, key=lambda r: -r[0])[:most], key=lambda r: int(r[1][0]))
    title = Text(
        f"{len(common)} iteration{'' if len(common) == 1 else 's'} over {len(found)} ranks",
        f"{len(common)} 个迭代，{len(found)} 个 rank",
    ).in_(lang)
    return [Heading(title), Grid(columns, tuple(r for _, r in chosen), named=False)]


def section(args: argparse.Namespace, found: Iterations) -> list[Part]:
    """The iterations of one trace as a part of a longer page."""
    return _of_rank(args, _Ranked(found, ()))


def _of_rank(args: argparse.Namespace, r: _Ranked) -> list[Part]:
    lang, items = args.settings.output.lang, r.found.items
    if not items:
        what = f" that fit {args.marker!r}" if args.marker else ""
        zh = f"与 {args.marker!r} 匹配的" if args.marker else ""
        text = Text(f"{r.found.file} holds no iterations{what}: mark them with prof.step() or record_function, or name an annotation with --marker.",
                    f"{r.found.file} 中没有{zh}迭代：请用 prof.step() 或 record_function 标记，或用 --marker 指定注释。")  # fmt: skip
        return [Paragraph(clean(text.in_(lang))), *notes(r.notes, lang)]
    shown = _chosen(items, args.top)
    marks = _MARKS if drawable() else _ASCII
    rest = len(items) - len(shown)
    more = (
        [
            Paragraph(
                Text(f"  {rest} more (--top); the longest are shown", f"  另有 {rest} 个（--top）；已显示最长的").in_(
                    lang
                )
            )
        ]
        if rest
        else []
    )
    title = rank_name(r.found.rank, r.found.file) + aside(
        f"{excerpt(r.found.marker, 60)}, {_clock(r.found.clock, lang)}"
        if lang != "zh"
        else f"{excerpt(r.found.marker, 60)}，{_clock(r.found.clock, lang)}",
        lang,
    )
    curve = [Plot(partial(_curve, items, r.found.median_ns, lang))] if len(items) > _FEW else []
    return [Heading(title), _spread(r.found, lang), *curve, _grid(shown, marks if r.found.device else (), lang), *more,
            *([Paragraph("  ".join(f"{m} {word(key, lang)}" for m, key in zip(marks, ("compute", "exposed_comm", "mem", "idle"), strict=True)))] if r.found.device else []),
            *notes(r.notes, lang)]  # fmt: skip


def _clock(clock: str, lang: str) -> str:
    return (
        Text("on the device's clock", "按设备时钟") if clock == "gpu" else Text("on the host's clock", "按主机时钟")
    ).in_(lang)


def _spread(found: Iterations, lang: str) -> Fields:
    spans = sorted(i.span_ns for i in found.items)
    total = sum(spans)
    idle, comm = sum(i.idle_ns for i in found.items), sum(i.exposed_comm_ns for i in found.items)
    p95 = spans[min(len(spans) - 1, round(0.95 * (len(spans) - 1)))]
    rows = [
        (word("length", lang), "" if len(spans) <= 3 else Text(f"median {duration(found.median_ns)}, 95th percentile {duration(p95)}, longest {duration(spans[-1])}",
                                               f"中位数 {duration(found.median_ns)}，95 百分位 {duration(p95)}，最长 {duration(spans[-1])}").in_(lang)),
        (word("idle", lang), share(ratio(idle, total)) if found.device else ""),
        (word("exposed_comm", lang), share(ratio(comm, total)) if any(i.comm_ns for i in found.items) else ""),
        (Text("between them", "迭代之间").in_(lang), duration(found.between_ns) if found.between_ns else ""),
    ]  # fmt: skip
    return Fields(tuple(rows))


def _curve(items: Sequence[Iteration], median: int | None, lang: str, columns: int, fine: bool) -> list[str]:
    """The length of every iteration, in one line."""
    spans = binned([float(i.span_ns) for i in items], columns - 4)
    low, high = min(spans), max(spans)
    title = Text(f"  length of each iteration, {duration(low)} to {duration(high)} (median {duration(median)})",
                 f"  每个迭代的时长，{duration(low)} 至 {duration(high)}（中位数 {duration(median)}）").in_(lang)  # fmt: skip
    return [title, f"  {spark([s - low * 0.9 for s in spans], high - low * 0.9, fine)}"]


def _chosen(items: Sequence[Iteration], most: int) -> list[Iteration]:
    """All, or of more than `most` the outliers and the longest, in order of time."""
    if len(items) <= most:
        return list(items)
    best = sorted(items, key=lambda i: (not i.outlier, -i.span_ns))[:most]
    return sorted(best, key=lambda i: i.start_ns)


def _grid(items: Sequence[Iteration], marks: Sequence[str], lang: str) -> Grid:
    """One line an iteration: its parts in one unit, and a bar as long as it took. Without `marks` the host's times alone are known."""
    keys = ("compute_ns", "exposed_comm_ns", "mem_ns", "idle_ns", "data_loader_ns")
    titles = ("compute", "exposed_comm", "mem", "idle", "data_loader")
    used = [
        j for j, key in enumerate(keys) if (j in (0, 3) or any(getattr(i, key) for i in items)) and (marks or j == 4)
    ]
    every = durations([i.span_ns for i in items] + [getattr(i, keys[j]) for j in used for i in items])
    n = len(items)
    values = [every[k * n : (k + 1) * n] for k in range(len(used) + 1)]
    extra = [(title, [digits(v) if (v := getattr(i, key)) is not None else "-" for i in items])
             for key, title in (("loss", "loss"), ("gradnorm", "gradnorm")) if any(getattr(i, key) is not None for i in items)]  # fmt: skip
    longest = max(i.span_ns for i in items)
    columns = (Column("#"), Column(word("length", lang)), *(Column(word(f"short_{titles[j]}", lang), 5 - k) for k, j in enumerate(used)),
               *(Column(title, 6) for title, _ in extra), Column("", 1, left=True), Column(""))  # fmt: skip
    rows = tuple(
        (str(i.number), *(v[row] for v in values), *(v[row] for _, v in extra), _drawn(i, longest, marks), _blamed(i, lang))
        for row, i in enumerate(items)
    )  # fmt: skip
    return Grid(columns, rows, named=False)


def _drawn(i: Iteration, longest: int, marks: Sequence[str]) -> str:
    columns = max(1, round(_BAR * i.span_ns / longest)) if longest and marks else 0
    if not columns:
        return ""
    copies = max(0, i.span_ns - i.idle_ns - i.compute_ns - i.exposed_comm_ns)
    parts = zip((i.compute_ns, i.exposed_comm_ns, copies, i.idle_ns), marks, strict=True)
    return stacked([(ns / i.span_ns, mark) for ns, mark in parts] if i.span_ns else [], columns)


def _blamed(i: Iteration, lang: str) -> str:
    """What is out of the ordinary, with a mark."""
    return (
        f"! {word(_BLAMED[i.outlier], lang) if i.outlier in _BLAMED else excerpt(i.outlier, 40)}" if i.outlier else ""
    )
