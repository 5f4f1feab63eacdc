"""``gpudiag trace ranks``: who is slow, who waits for whom, which link is slow, who is missing."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from assistant.diagnosis import Question
from assistant.render.labels import colon, label
from assistant.render.sheet import Heading, Items, Paragraph
from assistant.render.trace_page import Bar, Bars, Column, Grid, Part
from assistant.render.trace_units import digits, duration, durations, number, share, size
from assistant.trace.answer import answer, commands, findings, judge, notes, quoted
from assistant.trace.reading import Results, each, needs_of, window
from assistant.trace.words import rank_name, short, word
from knowledge.errors import UsageError
from knowledge.language import Text
from knowledge.text import clean
from probes.trace.model import Collective, Ranks, RankTiming, plain
from probes.trace.reading.reader import Trace

if TYPE_CHECKING:
    from probes.trace.across.ranks import RankDigest

_QUESTION = Question(
    ("job.collective.wait.share",),
    Text(
        "{job.trace.ranks} ranks keep pace: {job.collective.wait.share} % of their time is waiting for the last.",
        "{job.trace.ranks} 个 rank 步调一致：{job.collective.wait.share} % 的时间在等待最后到达者。",
    ),
    Text("Who waits for whom is not known", "谁在等谁尚不清楚"),
)
_NAMES = 8
_DEADLINE = 300.0


def run(args: argparse.Namespace) -> int:
    """Read, match, print."""
    from probes.trace.across.ranks import compare
    from probes.trace.verdict.facts import compared_observations

    if args.deadline is not None and not args.dask:
        raise UsageError("--deadline is about reading through Dask", hint="give --dask WHERE as well, or leave it out")
    results = _through_dask(args) if args.dask else _here(args)
    found = compare(results.found, results.failed)
    lang = args.settings.output.lang
    diagnosis = judge(args, compared_observations(found), [t.file for t in found.timings], results.failed, _QUESTION)
    data = plain(found, lang) | {"verdicts": findings(diagnosis, lang), "failed": []}
    return answer(args, results, data, lambda: _parts(args, found), diagnosis=diagnosis)


def _here(args: argparse.Namespace) -> Results[RankDigest]:
    from probes.trace.across import ranks

    return each(args, needs_of(args, ranks.NEEDS), partial(_one, args))


def _one(args: argparse.Namespace, trace: Trace) -> RankDigest:
    from probes.trace.across.ranks import digest

    return digest(trace, window(args, trace))


def _through_dask(args: argparse.Namespace) -> Results[RankDigest]:
    """Each trace is read by a worker that sees it; what is there here as a folder is meant file by file."""
    from assistant.fleet.dask_ranks import analyse
    from assistant.output import Progress
    from probes.trace.reading.reader import files

    names = [name for given in args.files for name in (files([given]) if Path(given).is_dir() else [given])]
    bar = Progress(args.quiet)
    try:
        fleet = analyse(
            names, args.dask, args.deadline or _DEADLINE, progress=lambda done, of: bar(f"traces {done}/{of}")
        )
    finally:
        bar.done()
    return Results(list(fleet.values), fleet.failed(args.settings.output.lang))


# --- text ----------------------------------------------------------------------------------


def _parts(args: argparse.Namespace, found: Ranks) -> list[Part]:
    lang = args.settings.output.lang
    out: list[Part] = []
    if len(found.stragglers) > 1:
        said = tuple(f"{rank_name(s.rank, s.file)}{colon(lang)}{clean(s.why.in_(lang))}" for s in found.stragglers[:3])
        out.append(Items(said))
    out += _timings(found, args.top, lang)
    out += _waits(found, lang)
    out += _collectives(found.collectives[: args.top], lang)
    out += notes(found.notes, lang)
    return [*out, *commands(_next(found), lang)]


def _timings(found: Ranks, most: int, lang: str) -> list[Part]:
    if not found.timings:
        return []
    chosen = (
        found.timings
        if len(found.timings) <= most
        else tuple(sorted(found.timings, key=lambda t: -max(t.waits_ns, t.makes_wait_ns))[:most])
    )
    keys = ("span_ns", "compute_ns", "exposed_comm_ns", "idle_ns", "waits_ns", "makes_wait_ns")
    titles = (Text("span", "跨度"), Text("computing", "计算"), Text("exp. comm", "未掩盖通信"), Text("idle", "空闲"),
              Text("waits", "等待他人"), Text("makes wait", "让人等待"))  # fmt: skip
    drops = (0, 3, 4, 5, 0, 0)
    every = durations([getattr(t, key) for key in keys for t in chosen])
    n = len(chosen)
    columns = (*(Column(t.in_(lang), d) for t, d in zip(titles, drops, strict=True)), Column(word("rank", lang)))
    rows = tuple(
        (*(every[k * n + i] for k in range(len(keys))), rank_name(t.rank, t.file)) for i, t in enumerate(chosen)
    )
    of = (
        Text(
            "over the one iteration that all have"
            if found.iterations == 1
            else f"over {found.iterations} iterations that all have",
            f"基于共有的 {found.iterations} 个迭代",
        )
        if found.iterations
        else Text("from first to last GPU activity", "从首个到最后一个 GPU 活动")
    )
    many = len(found.timings)
    title = Text(f"{many} rank{'s' if many != 1 else ''}, {of.en}", f"{len(found.timings)} 个 rank，{of.zh}").in_(lang)
    rest = len(found.timings) - n
    more = [Paragraph("  " + label("more_lines", lang).format(n=rest))] if rest else []
    return [Heading(title), Grid(columns, rows), *more, *_bars(found.timings, lang)]


def _bars(timings: Sequence[RankTiming], lang: str) -> list[Part]:
    """How long the others wait for each rank, of those that are waited for."""
    total = sum(t.makes_wait_ns for t in timings)
    late = sorted((t for t in timings if t.makes_wait_ns), key=lambda t: -t.makes_wait_ns)[:_NAMES]
    if not late:
        return []
    rows = tuple(Bar(rank_name(t.rank, t.file), duration(t.makes_wait_ns), t.makes_wait_ns / total) for t in late)
    return [Heading(Text("Waited for", "被等待的时间").in_(lang)), Bars(rows)]


def _waits(found: Ranks, lang: str) -> list[Part]:
    """Pairs of ranks, where it is not one rank that all wait for."""
    if len({(w.late_rank, w.late_file) for w in found.waits}) < 2:
        return []
    columns = (
        Column(word("time", lang)),
        Column(Text("who waits", "等待者").in_(lang), left=True),
        Column(Text("for whom", "等待对象").in_(lang)),
    )
    rows = tuple(
        (duration(w.ns), rank_name(w.rank, w.file), rank_name(w.late_rank, w.late_file)) for w in found.waits[:_NAMES]
    )
    return [Heading(Text("Who waits for whom", "谁在等谁").in_(lang)), Grid(columns, rows, named=False)]


def _collectives(items: Sequence[Collective], lang: str) -> list[Part]:
    if not items:
        return []
    titles = ((Text("calls", "次数"), 0), (Text("transfer", "传输"), 0), (Text("waiting", "等待"), 0), (Text("last to come", "最后到达"), 0),
              (Text("bytes", "字节"), 3), (Text("bus GB/s", "总线 GB/s"), 2), (Text("ranks", "rank 数"), 4))  # fmt: skip
    columns = (*(Column(t.in_(lang), d) for t, d in titles), Column(Text("collective", "集合通信").in_(lang)))
    rows = tuple(
        (number(c.count), duration(c.transfer_ns), duration(c.skew_ns), "-" if c.late_rank is None else f"{c.late_rank} ({share(c.late_share)})",
         size(c.bytes), "-" if c.bus_gbs is None else digits(c.bus_gbs), str(len(c.ranks)),
         f"{short(c.name)}{' !' if c.slow_link else ''}")
        for c in items
    )  # fmt: skip
    return [Heading(Text("Collectives", "集合通信").in_(lang)), Grid(columns, rows)]


def _next(found: Ranks) -> list[str]:
    if not found.stragglers or len(found.timings) < 2:
        return []
    slow = found.stragglers[0]
    fast = min(found.timings, key=lambda t: t.makes_wait_ns)
    return [f"gpudiag trace diff {quoted(fast.file)} {quoted(slow.file)}"]
