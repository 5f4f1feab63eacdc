"""``gpudiag trace summary``: what bounds the job, and where the time of each rank went."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

from assistant.render.labels import colon, label, listed
from assistant.render.sheet import Fields, Heading, Paragraph
from assistant.render.trace_page import Column, Grid, Part
from assistant.render.trace_units import durations, number, ratio, share
from assistant.trace import breakdown, memory
from assistant.trace.answer import answer, commands, findings, notes, quoted
from assistant.trace.looking import Job, Looked, job
from assistant.trace.reading import all_of
from assistant.trace.words import rank_name, word
from knowledge.language import Text
from probes.trace.model import plain

if TYPE_CHECKING:
    from probes.trace.verdict.digest import RankDigest

_TIMES = (
    "window",
    "span_ns",
    "busy_ns",
    "idle_ns",
    "compute_ns",
    "comm_ns",
    "mem_ns",
    "comm_compute_overlap_ns",
    "exposed_comm_ns",
    "exposed_mem_ns",
)
_FILES = 8  # that a command names one by one
_ROWS = 32  # ranks
_HOLDERS = 4  # of memory, that are named
_LEAST = 1 << 20  # bytes: what a CPU allocator of a few kilobytes holds is nobody's question
_WHOLE = 2  # of so many traces or fewer each is shown in full; of more the one with the most idle or exposed time


def run(args: argparse.Namespace) -> int:
    """Read, conclude, print."""
    if names := all_of(args, "snapshot"):
        return memory.run(args, names)
    found = job(args, args.top)
    lang = args.settings.output.lang
    return answer(args, found.results, data(found, lang), lambda: parts(args, found), diagnosis=found.diagnosis)


def data(found: Job, lang: str) -> dict[str, Any]:
    """``gpudiag/trace-summary/1`` without its schema."""
    return {
        "ranks": [_rank(d, lang) for d in found.digests],
        "verdicts": findings(found.diagnosis, lang),
        "comparison": plain(found.ranks, lang),
    }


def _rank(d: RankDigest, lang: str) -> dict[str, Any]:
    """One rank: the fields of its summary, and what else its digest holds."""
    s: dict[str, Any] = plain(d.summary, lang)
    if not d.gpu_events:  # nothing ran: how long that took is not known, and no zero
        s |= dict.fromkeys(_TIMES)
    return s | {
        "file": d.file, "roofline": plain(d.roofline, lang), "iterations": len(d.iterations.items), "iteration_median_ns": d.iterations.median_ns,
        "memory": plain(d.memory, lang), "notes": plain((*d.notes, *d.summary.notes), lang),
    }  # fmt: skip


# --- text ----------------------------------------------------------------------------------


def parts(args: argparse.Namespace, found: Job) -> list[Part]:
    """Where the time went, then what to run next: what stands under the verdict."""
    lang = args.settings.output.lang
    return [*body(found, lang), *commands(_next(args, [o for o in found.results.found if not o.empty]), lang)]


def body(found: Job, lang: str) -> list[Part]:
    """Where the time went, without what to run next."""
    looked = [o for o in found.results.found if not o.empty]
    out: list[Part] = []
    if found.empty:
        return out
    if len(looked) > 1:
        out += _table(looked, lang)
    for one in looked if len(looked) <= _WHOLE else [worst(looked)]:
        out += _of_rank(one.digest, lang)
    job_notes = found.ranks.notes if found.ranks and len(looked) > 1 else ()
    return [*out, *notes([*_notes(found, lang), *job_notes], lang)]


def _notes(found: Job, lang: str) -> list[Text]:
    """What a reader of the numbers must know, with the rank where it is not so of all."""
    told: dict[Text, list[str]] = {}
    for d in found.digests:
        roofline = d.roofline.notes if d.roofline else ()
        for note in dict.fromkeys((*d.notes, *d.summary.notes, *roofline, *(n for use in d.memory for n in use.notes))):
            told.setdefault(note, []).append(rank_name(d.rank, d.file))
    out = []
    for note, ranks in told.items():
        who = (
            ""
            if len(ranks) == len(found.digests)
            else listed(ranks[:_HOLDERS], lang) + (" ..." if len(ranks) > _HOLDERS else "") + colon(lang)
        )
        said = f"{who}{note.in_(lang)}"
        out.append(Text(said, said))
    return out


def _of_rank(d: RankDigest, lang: str) -> list[Part]:
    whose, where = breakdown.heading(d.summary, lang)
    facts = breakdown.facts(d.summary, lang)
    return [
        Heading(whose), Paragraph(f"{where}"), breakdown.bars(d.summary, lang),
        Fields((*facts.rows, *breakdown.roofline_rows(d.roofline, lang))),
        *([Heading(word("top_kernels", lang))] if d.summary.top_kernels else []), *breakdown.kernels(d.summary.top_kernels, lang),
        *(p for use in d.memory if use.peak_allocated >= _LEAST for p in memory.section(use, lang, _HOLDERS)),
    ]  # fmt: skip


def worst(looked: Sequence[Looked]) -> Looked:
    """The rank that computes the smallest part of its time."""
    return max(looked, key=_lost)


def _lost(one: Looked) -> float:
    s = one.digest.summary
    return (s.idle_ns + s.exposed_comm_ns) / max(1, s.span_ns)


def _table(looked: Sequence[Looked], lang: str) -> list[Part]:
    """One line a rank; of very many those that lose unusually much time or little: a straggler loses none."""
    count = len(looked)
    if count > _ROWS:
        usual = sorted(map(_lost, looked))[count // 2]
        odd = sorted(looked, key=lambda o: -abs(_lost(o) - usual))[:_ROWS]
        looked = sorted(odd, key=lambda o: (o.digest.rank or 0, o.digest.file))
    summaries = [o.digest.summary for o in looked]
    spans = durations([s.span_ns for s in summaries])
    columns = (Column(word("span", lang)), Column(word("compute", lang)), Column(word("exposed_comm", lang)), Column(word("idle", lang)),
               Column(word("overlap", lang), 2), Column(word("kernels", lang), 3), Column(word("rank", lang)))  # fmt: skip
    rows = tuple(
        (span, share(ratio(s.compute_ns, s.span_ns)), share(ratio(s.exposed_comm_ns, s.span_ns)), share(ratio(s.idle_ns, s.span_ns)),
         share(ratio(s.comm_compute_overlap_ns, s.comm_ns)), number(s.kernels), rank_name(s.rank, o.digest.file))
        for o, s, span in zip(looked, summaries, spans, strict=True)
    )  # fmt: skip
    title = Text(f"{count} ranks", f"{count} 个 rank").in_(lang)
    rest = [Paragraph("  " + label("more_lines", lang).format(n=count - len(rows)))] if count > len(rows) else []
    return [Heading(title), Grid(columns, rows), *rest]


def _given(files: Sequence[str]) -> Sequence[str]:
    """What a command names, such that it can be pasted: the files, or of very many in one folder the folder."""
    folders = {str(PurePath(f).parent) for f in files}
    return [*folders] if len(files) > _FILES and len(folders) == 1 else files


def _next(args: argparse.Namespace, looked: Sequence[Looked]) -> list[str]:
    """What to run next, on the files as they were given or on the rank that loses most."""
    if not looked:
        return []
    d = worst(looked).digest
    file, given = quoted(d.file), " ".join(quoted(f) for f in _given(args.files))
    out = [
        ("trace summary --window iterations", given, bool(d.iterations.items) and d.summary.window.kind == "trace"),
        ("trace ranks", given, len(looked) > 1),
        ("trace iterations", file, len(d.iterations.items) > 1),
        ("trace timeline", file, d.summary.idle_ns * 5 > d.summary.span_ns),
        ("trace flame", file, d.stacks),
        ("trace report -o report.html", given, True),
    ]
    return [f"gpudiag {command} {of}" for command, of, useful in out if useful]
