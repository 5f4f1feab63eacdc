"""Where the time went: bars, numbers, and why the devices were idle."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from assistant.render import trace_units as units
from assistant.render.labels import colon, listed
from assistant.report import draw
from assistant.report.inputs import Inputs, name_of
from assistant.report.markup import Column, figure, note, section, table, without
from assistant.report.words import word
from knowledge.text import opened

if TYPE_CHECKING:
    from probes.trace.model import Idle, RankSummary

BARS, FEW = 16, 2  # ranks that are drawn; that are told one by one under a picture
PARTS = ("compute", "exposed_comm", "exposed_mem", "idle")
CAUSES = ("data_loader", "sync", "host", "launch", "kernel", "unknown")


def breakdown(inputs: Inputs) -> str:
    """Where the time went: bars, numbers, and why the devices were idle. Traces without GPU activity have none of it."""
    lang, summaries = inputs.lang, [d.summary for d in inputs.by_rank if d.summary.span_ns > 0]
    many = not inputs.single
    without = [name_of(d.summary, lang) for d in inputs.by_rank if d.summary.span_ns <= 0]
    absent = note(word("no_gpu", lang, who=", ".join(without[:8]))) if without else ""
    if not summaries:
        return section("breakdown", word("breakdown", lang), absent) if absent else ""
    drawn = _unusual(summaries)
    bars = draw.stacked([(name_of(s, lang) if many else "", _parts(s)) for s in drawn])
    said = _said_of_all(summaries, lang) if len(summaries) > FEW else " ".join(_said(s, lang, many) for s in summaries)
    keys = draw.legend([(k.removeprefix("exposed_"), word(k, lang)) for k in PARTS])
    more = word("ranks_shown", lang, n=BARS, all=len(summaries)) if len(summaries) > BARS else ""
    return section("breakdown", word("breakdown", lang), absent, keys, figure("bars", said, bars, css="drawn"), note(more),
                   _numbers(summaries, lang, many), _idle(drawn, lang, many))  # fmt: skip


def _unusual(summaries: list[RankSummary]) -> list[RankSummary]:
    """Of very many those whose computing differs most from the median, in their order: a straggler computes most."""
    if len(summaries) <= BARS:
        return summaries
    shares = [s.compute_ns / s.span_ns for s in summaries]
    usual = sorted(shares)[len(shares) // 2]
    odd = sorted(range(len(shares)), key=lambda n: -abs(shares[n] - usual))[:BARS]
    return [summaries[n] for n in sorted(odd)]


def _parts(s: RankSummary) -> list[tuple[str, int]]:
    return [("compute", s.compute_ns), ("comm", s.exposed_comm_ns), ("mem", s.exposed_mem_ns), ("idle", s.idle_ns)]


def _said(s: RankSummary, lang: str, many: bool) -> str:
    def part(ns: int) -> str:
        return units.share(units.ratio(ns, s.span_ns))

    said = word("breakdown_alt", lang, who=who_of(s, lang, many), span=units.duration(s.span_ns), compute=part(s.compute_ns),
                comm=part(s.exposed_comm_ns), mem=part(s.exposed_mem_ns), idle=part(s.idle_ns))  # fmt: skip
    return said if lang == "zh" else opened(said)


def _said_of_all(summaries: Sequence[RankSummary], lang: str) -> str:
    """The least and the most of each part."""
    shares = [[v / s.span_ns for _, v in _parts(s)] for s in summaries]
    compute, comm, mem, idle = (_from_to(column, lang) for column in zip(*shares, strict=True))
    return word("breakdown_many", lang, n=len(summaries), compute=compute, comm=comm, mem=mem, idle=idle)


def _from_to(shares: Sequence[float], lang: str) -> str:
    low, high = units.share(min(shares)), units.share(max(shares))
    return low if low == high else word("from_to", lang, low=low, high=high)


def who_of(s: RankSummary, lang: str, many: bool) -> str:
    """``rank 3: ``, where there are several."""
    return name_of(s, lang) + colon(lang) if many else ""


def _numbers(summaries: Sequence[RankSummary], lang: str, many: bool) -> str:
    keys = ("span", "busy", "idle", "compute", "comm", "overlap", "exposed_comm", "mem", "exposed_mem")
    columns = [
        Column(word("rank", lang)),
        *(Column(word(k, lang), "time") for k in keys),
        Column(word("kernels", lang), "count"),
    ]
    rows = [(name_of(s, lang), s.span_ns, s.busy_ns, s.idle_ns, s.compute_ns, s.comm_ns, s.comm_compute_overlap_ns,
             s.exposed_comm_ns, s.mem_ns, s.exposed_mem_ns, s.kernels) for s in summaries]  # fmt: skip
    quiet = {5, 6, 7} if not any(s.comm_ns for s in summaries) else set()  # the sentence above says that there was none
    columns, shown = without(columns, rows, quiet | (set() if many else {0}))
    return table(columns, shown, caption=word("breakdown", lang), tools=len(rows) > 8, named=many)


def _causes(idle: Idle) -> list[int]:
    return [idle.data_loader_ns, idle.sync_ns, idle.host_ns, idle.launch_ns, idle.kernel_ns, idle.unknown_ns]


def _cause_name(key: str, lang: str) -> str:
    return word("unknown_cause" if key == "unknown" else key, lang)


def _idle_said(known: Sequence[tuple[str, Idle]], lang: str, many: bool) -> str:
    lines = []
    for name, idle in known:
        parts = [
            f"{_cause_name(k, lang)} {units.share(v / idle.total_ns)}"
            for k, v in zip(CAUSES, _causes(idle), strict=True)
            if v
        ]
        who = name + colon(lang) if many else ""
        told = word("idle_alt", lang, who=who, total=units.duration(idle.total_ns), parts=listed(parts, lang, ";"))
        lines.append(told if lang == "zh" else opened(told))
    return " ".join(lines)


def _idle_of_all(known: Sequence[tuple[str, Idle]], lang: str) -> str:
    shares = [[v / i.total_ns for v in _causes(i)] for _, i in known]
    columns = zip(CAUSES, zip(*shares, strict=True), strict=True)
    parts = [f"{_cause_name(k, lang)} {_from_to(column, lang)}" for k, column in columns if any(column)]
    return word("idle_many", lang, n=len(known), parts=listed(parts, lang, ";"))


def _idle(summaries: Sequence[RankSummary], lang: str, many: bool) -> str:
    known = [
        (name_of(s, lang) if many else "", s.idle) for s in summaries if s.idle is not None and s.idle.total_ns > 0
    ]
    if not known:
        return ""
    bars = draw.stacked([(n, [(f"i-{k}", v) for k, v in zip(CAUSES, _causes(i), strict=True)]) for n, i in known])
    said = _idle_of_all(known, lang) if len(known) > FEW else _idle_said(known, lang, many)
    columns = [
        Column(word("rank", lang)),
        Column(word("idle", lang), "time"),
        *(Column(_cause_name(k, lang), "time") for k in CAUSES),
    ]
    columns, rows = without(columns, [(n, i.total_ns, *_causes(i)) for n, i in known], set() if many else {0})
    numbers = table(columns, rows, caption=word("idle_why", lang), tools=False, named=many)
    keys = draw.legend(
        [(f"i-{k}", _cause_name(k, lang)) for k in CAUSES if any(_causes(i)[CAUSES.index(k)] for _, i in known)]
    )
    return (f"<h3>{word('idle_why', lang)}</h3>{note(word('idle_definition', lang))}{keys}"
            f"{figure('idle-bars', said, bars, css='drawn')}{numbers}")  # fmt: skip
