"""The sections of the report in their order: each gives HTML, and the charts that the script draws in it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from assistant.render import trace_units as units
from assistant.render.labels import colon
from assistant.report import charts, draw
from assistant.report.inputs import Digest, Inputs, name_of
from assistant.report.markup import Column, figure, folded, note, section, sentence, table, without
from assistant.report.words import lane_name, word
from knowledge.text import clean, excerpt

if TYPE_CHECKING:
    from probes.trace.model import Idle, Iteration, Iterations, RankSummary, Window
    from probes.trace.utilisation import HeatRow

HEATED = 128  # rows of a heat map
BARS, RANKS, ROWS = 64, 4, 400  # ranks that are drawn; ranks whose iterations and memory are drawn; rows of a table
PARTS = ("compute", "exposed_comm", "exposed_mem", "idle")
CAUSES = ("data_loader", "sync", "host", "launch", "kernel", "unknown")

Charts = dict[str, Mapping[str, Any]]


def window_words(window: Window, lang: str) -> str:
    """What the window is."""
    if window.kind == "iterations":
        return word("window_iterations", lang, n=units.number(window.iterations), marker=excerpt(window.marker, 60))
    return word("window_trace", lang)


# --- breakdown -----------------------------------------------------------------------------------


def breakdown(inputs: Inputs) -> str:
    """Where the time went: bars, numbers, and why the devices were idle. Traces without GPU activity have none of it."""
    lang, summaries = inputs.lang, [d.summary for d in inputs.by_rank if d.summary.span_ns > 0]
    many = not inputs.single
    without = [name_of(d.summary, lang) for d in inputs.by_rank if d.summary.span_ns <= 0]
    absent = note(word("no_gpu", lang, who=", ".join(without[:8]))) if without else ""
    if not summaries:
        return section("breakdown", word("breakdown", lang), absent) if absent else ""
    drawn = sorted(summaries, key=lambda s: -s.span_ns)[:BARS] if len(summaries) > BARS else summaries
    bars = draw.stacked([(name_of(s, lang) if many else "", _parts(s)) for s in drawn])
    said = " ".join(_said(s, lang, many) for s in drawn[:8])
    keys = draw.legend([(k.removeprefix("exposed_"), word(k, lang)) for k in PARTS])
    more = word("ranks_shown", lang, n=BARS, all=len(summaries)) if len(summaries) > BARS else ""
    return section("breakdown", word("breakdown", lang), absent, keys, figure("bars", said, bars, css="drawn"), note(more),
                   _numbers(summaries, lang, many), _idle(drawn, lang, many))  # fmt: skip


def _parts(s: RankSummary) -> list[tuple[str, int]]:
    return [("compute", s.compute_ns), ("comm", s.exposed_comm_ns), ("mem", s.exposed_mem_ns), ("idle", s.idle_ns)]


def _said(s: RankSummary, lang: str, many: bool) -> str:
    def part(ns: int) -> str:
        return units.share(units.ratio(ns, s.span_ns))

    said = word("breakdown_alt", lang, who=_who(s, lang, many), span=units.duration(s.span_ns), compute=part(s.compute_ns),
                comm=part(s.exposed_comm_ns), mem=part(s.exposed_mem_ns), idle=part(s.idle_ns))  # fmt: skip
    return sentence(said)


def _who(s: RankSummary, lang: str, many: bool) -> str:
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


def _idle(summaries: Sequence[RankSummary], lang: str, many: bool) -> str:
    known = [
        (name_of(s, lang) if many else "", s.idle) for s in summaries if s.idle is not None and s.idle.total_ns > 0
    ]
    if not known:
        return ""
    bars = draw.stacked([(n, [(f"i-{k}", v) for k, v in zip(CAUSES, _causes(i), strict=True)]) for n, i in known])
    said = []
    for name, idle in known[:8]:
        parts = [
            f"{_cause_name(k, lang)} {units.share(v / idle.total_ns)}"
            for k, v in zip(CAUSES, _causes(idle), strict=True)
            if v
        ]
        who = name + colon(lang) if many else ""
        line = word("idle_alt", lang, who=who, total=units.duration(idle.total_ns), parts="; ".join(parts))
        said.append(sentence(line))
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
            f"{figure('idle-bars', ' '.join(said), bars, css='drawn')}{numbers}")  # fmt: skip


# --- iterations ----------------------------------------------------------------------------------


def iterations(inputs: Inputs) -> tuple[str, Charts]:
    """Bars with a slider for the first ranks, and all numbers."""
    lang = inputs.lang
    drawn: Charts = {}
    parts: list[str] = []
    found = [(d, d.iterations) for d in inputs.by_rank if d.iterations is not None and d.iterations.items]
    for n, (digest, items) in enumerate(found[:RANKS]):
        said = _iterations_said(_who(digest.summary, lang, not inputs.single), items, lang)
        if len(items.items) < 2 or digest.summary.span_ns <= 0:  # one bar is no picture
            parts.append(note(said))
            continue
        drawn[f"iterations-{n}"], k = charts.iterations(items.items, lang)
        parts.append(figure(f"iterations-{n}", said))
        parts.append(note(word("iterations_drawn", lang, k=k) if k > 1 else ""))
        parts += [note(clean(t.in_(lang))) for t in items.notes]
    if not parts:
        return "", {}
    if drawn:
        parts.insert(0, note(word("slider", lang)))
    for n, (digest, items) in enumerate(found[:RANKS]):
        if (scalars := charts.scalars(items.items, lang)) is not None:
            drawn[f"scalars-{n}"] = scalars
            parts.append(
                figure(
                    f"scalars-{n}", f"{name_of(digest.summary, lang)}: {word('loss', lang)}, {word('gradnorm', lang)}"
                )
            )
    return section(
        "iterations", word("iterations", lang), *parts, _iteration_table(found, lang, not inputs.single)
    ), drawn


def _iterations_said(who: str, its: Iterations, lang: str) -> str:
    spans = [i.span_ns for i in its.items]
    worst = max(its.items, key=lambda i: i.span_ns)
    if len(spans) == 1:
        return word("iteration_alt", lang, who=who, median=units.duration(spans[0]), worst=worst.number)
    return word("iterations_alt", lang, who=who, n=units.number(len(spans)), median=units.duration(its.median_ns),
                low=units.duration(min(spans)), high=units.duration(max(spans)), worst=worst.number)  # fmt: skip


def _iteration_table(found: Sequence[tuple[Digest, Iterations]], lang: str, many: bool) -> str:
    every = [(d.summary, i) for d, its in found for i in its.items]
    if len(every) > ROWS:  # the longest, in order
        least = sorted((i.span_ns for _, i in every), reverse=True)[ROWS - 1]
        every = [(s, i) for s, i in every if i.span_ns >= least][:ROWS]
    rows = [_iteration(s, i, lang) for s, i in every]
    times = ("length", "compute", "comm", "exposed_comm", "mem", "idle", "loader_wait")
    columns = [Column(word("number", lang), "count"), Column(word("rank", lang)), *(Column(word(k, lang), "time") for k in times),
               Column(word("kernels", lang), "count"), Column(word("loss", lang), "float"), Column(word("gradnorm", lang), "float"),
               Column(word("outlier", lang))]  # fmt: skip
    drop = {n for n in range(10, len(columns)) if all(r[n] is None for r in rows)} | (set() if many else {1})
    if not any(i.comm_ns for _, i in every):  # nothing was sent
        drop |= {4, 5}
    columns, shown = without(columns, rows, drop)
    whole = sum(len(its.items) for _, its in found)
    more = word("longest_rows", lang, n=ROWS, all=units.number(whole)) if whole > ROWS else ""
    return table(columns, shown, caption=word("iterations", lang)) + note(more)


def _iteration(summary: RankSummary, i: Iteration, lang: str) -> tuple[str | float | int | None, ...]:
    device = (i.compute_ns, i.comm_ns, i.exposed_comm_ns, i.mem_ns, i.idle_ns)
    seen = device if summary.span_ns > 0 else (None,) * len(device)  # what was not recorded is no zero
    return (
        i.number,
        name_of(summary, lang),
        i.span_ns,
        *seen,
        i.data_loader_ns,
        i.kernels,
        i.loss,
        i.gradnorm,
        _part(i.outlier, lang),
    )


def about(inputs: Inputs) -> str:
    """Whose timeline, stacks and kernels these are, where there are several traces."""
    if len(inputs.digests) < 2:
        return ""
    return word("about", inputs.lang, who=inputs.about or name_of(inputs.digests[0].summary, inputs.lang))


def _part(outlier: str, lang: str) -> str | None:
    known = {"compute", "exposed_comm", "mem", "idle", "comm", "data_loader"}
    return word(outlier, lang) if outlier in known else outlier or None


# --- over time -----------------------------------------------------------------------------------


def timeline(inputs: Inputs) -> str:
    """The canvas, what it shows in words, and its lanes as a table."""
    line, lang = inputs.timeline, inputs.lang
    if line is None or not line.lanes:
        return ""
    streams = {(a.device, a.stream) for a in line.lanes if a.kind == "gpu"}
    threads = {(a.process, a.thread) for a in line.lanes if a.process or a.thread}
    span = line.end_ns - line.start_ns
    said = word(
        "timeline_alt",
        lang,
        events=units.number(line.events),
        streams=len(streams),
        threads=len(threads),
        span=units.duration(span),
    )
    notes = [word("timeline_exact", lang) if line.exact else
             word("timeline_resolution", lang, r=units.duration(line.levels[-1].resolution_ns))]  # fmt: skip
    if line.details:
        parts = (
            f"{units.duration(d.start_ns - line.start_ns)} - {units.duration(d.end_ns - line.start_ns)}"
            for d in line.details
        )
        notes.append(word("timeline_details", lang, windows=", ".join(parts)))
    if line.left_out:
        notes.append(word("timeline_left_out", lang, n=units.number(line.left_out)))
    rows = [(lane_name(a.kind, a.device, a.stream, a.thread, lang), a.events, a.busy_ns, a.busy_ns / span)
            for a in line.lanes]  # fmt: skip
    columns = [Column(word("lane", lang)), Column(word("events", lang), "count"), Column(word("busy", lang), "time"),
               Column(word("busy_share", lang), "share")]  # fmt: skip
    lanes = folded(word("as_table", lang), table(columns, rows, caption=word("lane", lang), tools=False))
    keys = f'<p class="soft" id="timeline-keys">{word("timeline_keys", lang)}</p>'
    picture = figure("timeline", said, css="canvas")
    return section("over-time", word("timeline", lang), *map(note, notes), keys, picture, lanes)


def heat(inputs: Inputs) -> tuple[str, Charts]:
    """Utilisation of streams, of ranks, and of ranks by iteration."""
    lang = inputs.lang
    drawn: Charts = {}
    parts: list[str] = []
    for key, rows in (("heat", inputs.heat), ("rank_heat", inputs.rank_heat)):
        if rows:
            if len(rows) > HEATED:
                parts.append(note(word("first_ranks", lang, n=HEATED, all=len(rows))))
            rows = rows[:HEATED]
            drawn[key] = charts.heat(rows, lang)
            parts += [
                f"<h3>{word(key, lang)}</h3>"
                if key != "heat"
                else note(" ".join(t for t in (about(inputs), word("streams", lang)) if t)),
                _heat(key, rows, lang),
            ]
    many = [
        (name_of(d.summary, lang), d.iterations.items)
        for d in inputs.by_rank
        if d.iterations is not None and len(d.iterations.items) > 1
    ]
    if len(many) > 1:
        drawn["iteration_heat"] = charts.iteration_heat(many[:HEATED], lang)
        means = [
            f"{n}{colon(lang)}{units.share(1 - sum(i.idle_ns for i in its) / max(sum(i.span_ns for i in its), 1))}"
            for n, its in many[:8]
        ]
        parts += [f"<h3>{word('iteration_heat', lang)}</h3>", figure("iteration_heat", ", ".join(means))]
    return (section("heat-map", word("heat", lang), *parts), drawn) if parts else ("", {})


def _heat(key: str, rows: Sequence[HeatRow], lang: str) -> str:
    span = max(r.end_ns - r.start_ns for r in rows)
    shares = [(r.label, sum(r.busy_ns) / max(r.end_ns - r.start_ns, 1)) for r in rows]
    said = word(
        "heat_alt",
        lang,
        rows=", ".join(f"{n}{colon(lang)}{units.share(s)}" for n, s in shares[:12]),
        bin=units.duration(span / len(rows[0].busy_ns)),
    )
    columns = [Column(word("streams" if key == "heat" else "rank", lang)), Column(word("busy_share", lang), "share")]
    return figure(key, said) + folded(
        word("as_table", lang), table(columns, shares, caption=word(key, lang), tools=False)
    )


def contents(parts: Sequence[tuple[str, str]]) -> Iterator[str]:
    """Links to the sections: (id, title)."""
    from html import escape

    for name, title in parts:
        yield f'<li><a href="#{name}">{escape(title)}</a></li>'
