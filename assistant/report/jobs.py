"""Sections about several traces: ranks and collectives, a difference; and the call stacks."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from assistant.render import trace_units as units
from assistant.render.labels import colon
from assistant.report import charts
from assistant.report.inputs import Flame, Inputs
from assistant.report.markup import Column, bullets, cut, figure, folded, note, section, table
from assistant.report.sections import ROWS, Charts, about
from assistant.report.words import word
from knowledge.text import clean, excerpt
from probes.trace.model import Difference, Ranks, RankTiming
from probes.trace.trees.reasons import PARTS, WHY, Why


def ranks(inputs: Inputs) -> str:
    """Who waits for whom."""
    lang, job = inputs.lang, inputs.ranks
    if job is None or (len(job.timings) < 2 and not job.collectives and not job.missing):
        return ""
    absent = (
        word("missing_ranks", lang, ranks=", ".join(map(str, job.missing[:64])))
        if job.missing and not job.notes
        else ""
    )
    failed = [word("failed_ranks", lang, file=excerpt(f, 120), why=excerpt(w, 200)) for f, w in job.failed.items()]
    waits = [
        f"{_rank(t)} {units.duration(t.waits_ns)}"
        for t in sorted(job.timings, key=lambda t: -t.waits_ns)[:8]
        if t.waits_ns
    ]
    said = note(word("ranks_alt", lang, rows=", ".join(waits)) if waits else "")
    return section("ranks", word("collectives", lang), said, note(absent), bullets(failed), bullets(clean(t.in_(lang)) for t in job.notes),
                   _timings(job, lang), _collectives(job, lang))  # fmt: skip


def _rank(t: RankTiming) -> str:
    return f"rank {t.rank}" if t.rank is not None else excerpt(t.file.rsplit("/", 1)[-1], 40)


def _timings(job: Ranks, lang: str) -> str:
    keys = ("span", "compute", "exposed_comm", "idle", "waits", "makes_wait")
    columns = [Column(word("rank", lang)), *(Column(word(k, lang), "time") for k in keys)]
    rows = [
        (_rank(t), t.span_ns, t.compute_ns, t.exposed_comm_ns, t.idle_ns, t.waits_ns, t.makes_wait_ns)
        for t in job.timings
    ]
    return table(columns, rows, caption=word("rank", lang)) if rows else ""


def _collectives(job: Ranks, lang: str) -> str:
    columns = [Column(word("name", lang), "code"), Column(word("group", lang), "code"), Column(word("count", lang), "count"),
               Column(word("transfer", lang), "time"), Column(word("skew", lang), "time"), Column(word("late_rank", lang)),
               Column(word("late_share", lang), "share"), Column(word("bytes", lang), "size"), Column(word("bus", lang), "float"),
               Column(word("slow_link", lang))]  # fmt: skip
    rows = [(c.name, c.group, c.count, c.transfer_ns, c.skew_ns, None if c.late_rank is None else str(c.late_rank),
             c.late_share, c.bytes, c.bus_gbs, word("yes", lang) if c.slow_link else None) for c in job.collectives]  # fmt: skip
    return table(columns, rows[:ROWS], caption=word("collectives", lang)) + cut(rows, ROWS, lang) if rows else ""


def difference(inputs: Inputs) -> tuple[str, Charts]:
    """A waterfall from A to B, and what explains it."""
    lang, diff = inputs.lang, inputs.diff
    if diff is None:
        return "", {}
    names = {key: text.in_(lang) for key, text in PARTS.items()}
    parts = "; ".join(f"{names.get(p.path, p.path)} {units.signed(p.b_ns - p.a_ns)}" for p in diff.parts)
    said = word("diff_alt", lang, a=excerpt(diff.a, 80), b=excerpt(diff.b, 80), a_ns=units.duration(diff.a_ns), b_ns=units.duration(diff.b_ns),
                delta=units.signed(diff.b_ns - diff.a_ns), parts=clean(parts))  # fmt: skip
    tables = [_differences(title, items, word(key, lang), lang) for title, items, key in (
        (word("diff_parts", lang), diff.parts, "part"), (word("diff_kernels", lang), diff.kernels, "name"),
        (word("diff_tree", lang), diff.tree, "path"))]  # fmt: skip
    body = section(
        "difference",
        word("diff", lang),
        figure("diff-plot", said),
        bullets(clean(t.in_(lang)) for t in diff.notes),
        *tables,
    )
    return body, {"diff-plot": charts.difference(diff, names)}


def _differences(title: str, items: Sequence[Difference], first: str, lang: str) -> str:
    if not items:
        return ""
    columns = [Column(first, "code"), Column(word("delta", lang), "signed"), Column(word("of_gap", lang), "share"), Column(word("before", lang), "time"),
               Column(word("after", lang), "time"), Column(f"{word('calls', lang)}"), Column(word("comment", lang))]  # fmt: skip
    rows = [
        (
            PARTS[d.path].in_(lang) if d.path in PARTS else d.path,
            d.b_ns - d.a_ns,
            d.share,
            d.a_ns,
            d.b_ns,
            f"{d.a_count:,}, {d.b_count:,}" if d.a_count or d.b_count else None,
            _why(d.why, lang),
        )
        for d in items
    ]
    return f"<h3>{title}</h3>" + table(columns, rows[:ROWS], caption=title, tools=len(rows) > 8) + cut(rows, ROWS, lang)


def _why(why: str, lang: str) -> str | None:
    return WHY[Why(why)].in_(lang) if why in set(Why) and why else why or None


def flames(inputs: Inputs) -> str:
    """Flame graphs: one for device time, one for host time."""
    lang = inputs.lang
    parts = [_flame(n, f, lang) for n, f in enumerate(inputs.flames) if len(f.depth) and f.total_ns > 0]
    keys = f'<p class="soft" id="flame-keys">{word("flame_keys", lang)}</p>'
    return section("stacks", word("flame", lang), note(about(inputs)), keys, *parts) if parts else ""


def _flame(n: int, f: Flame, lang: str) -> str:
    tops = sorted(((w, f.names[i]) for d, w, i in zip(f.depth, f.width, f.name, strict=True) if d == 0), reverse=True)[
        :3
    ]
    top = ", ".join(f"{excerpt(name, 60)} {units.share(w / f.total_ns)}" for w, name in tops)
    said = word("flame_alt", lang, total=units.duration(f.total_ns), n=units.number(len(f.depth)), top=top)
    lost = (
        word("flame_cut", lang, share=f"{units.digits(100 * f.least)} %", lost=units.duration(f.lost_ns))
        if f.lost_ns
        else ""
    )
    frames = _frames(f)
    columns = [
        Column(word("frame", lang), "code"),
        Column(word("own", lang), "time"),
        Column(word("share", lang), "share"),
    ]
    rows = [(name, own, own / f.total_ns) for own, name in frames[:100]]
    listed = folded(word("as_table", lang), table(columns, rows, caption=word(f"flame_{f.time}", lang)))
    title = word(f"flame_{f.time}", lang) + (f"{colon(lang)}{escape(excerpt(f.whose, 80))}" if f.whose else "")
    return f"<h3>{title}</h3>" + figure(f"flame-{n}", said, css="canvas") + note(lost) + listed


def _frames(f: Flame) -> list[tuple[int, str]]:
    """Own time of each name, longest first: of each frame what its children do not cover."""
    own = [int(w) for w in f.width]
    above: list[int] = []
    for i, depth in enumerate(f.depth):  # parents stand before children
        del above[depth:]
        if above:
            own[above[-1]] -= int(f.width[i])
        above.append(i)
    times: dict[int, int] = {}
    for i, name in enumerate(f.name):
        times[name] = times.get(name, 0) + own[i]
    return sorted(((t, f.names[n]) for n, t in times.items() if t > 0), reverse=True)
