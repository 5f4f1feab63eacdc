"""The sections of the report in their order: each gives HTML, and the charts that the script draws in it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from assistant.render import trace_units as units
from assistant.render.labels import colon
from assistant.report import charts
from assistant.report.breakdown import who_of
from assistant.report.inputs import Digest, Inputs, name_of
from assistant.report.markup import Column, figure, folded, note, section, table, without
from assistant.report.words import lane_name, word
from knowledge.text import clean, excerpt

if TYPE_CHECKING:
    from probes.trace.breakdown.utilisation import HeatRow
    from probes.trace.model import Iteration, Iterations, RankSummary, Window

HEATED = 128  # rows of a heat map
MANY = 2  # iterations of so many ranks are drawn where there are more than RANKS
RANKS, ROWS = 4, 400  # ranks whose iterations and memory are drawn; rows of a table

Charts = dict[str, Mapping[str, Any]]


def window_words(window: Window, lang: str) -> str:
    """What the window is."""
    if window.kind == "iterations":
        return word("window_iterations", lang, n=units.number(window.iterations), marker=excerpt(window.marker, 60))
    return word("window_trace", lang)


# --- iterations ----------------------------------------------------------------------------------


def iterations(inputs: Inputs) -> tuple[str, Charts]:
    """Bars with a slider for the first ranks, and all numbers."""
    lang = inputs.lang
    drawn: Charts = {}
    parts: list[str] = []
    found = [(d, d.iterations) for d in inputs.by_rank if d.iterations is not None and d.iterations.items]
    order = [id(d) for d in inputs.digests]  # the rank that loses most time comes first
    pictured = sorted(found, key=lambda pair: order.index(id(pair[0])))[: RANKS if len(found) <= RANKS else MANY]
    for n, (digest, items) in enumerate(pictured):
        said = _iterations_said(who_of(digest.summary, lang, not inputs.single), items, lang)
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
    for n, (digest, items) in enumerate(pictured):
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
    if any(s.span_ns > 0 for s, _ in every) and not any(i.comm_ns for _, i in every):  # nothing was sent
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
