"""``gpudiag trace report``: everything on one page."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING, Any

from assistant.output import say, write
from assistant.render.trace_page import Part, as_json, render
from assistant.trace import iterations, summary, timeline
from assistant.trace.answer import judged, unread
from assistant.trace.flame import save
from assistant.trace.looking import Job, Looked, job
from assistant.trace.reading import load, names_of, note_failures, over
from assistant.trace.words import rank_name
from knowledge.errors import UsageError
from knowledge.language import Text
from probes.trace.columns import both
from probes.trace.model import plain
from probes.trace.reading.reader import Trace

if TYPE_CHECKING:
    from assistant.report.parts import Parts
    from assistant.trace.lanes import Lanes
    from probes.trace.model import Diff

_SUFFIXES = {".html": "html", ".htm": "html", ".md": "markdown", ".json": "json", ".txt": "text"}
_BINS = 200  # of a timeline in JSON
_ROWS, _TABLE = 15, 50  # kernels: on a page that is read, and in a table that sorts
_FEW = 3  # traces whose iterations a text report lists


def run(args: argparse.Namespace) -> int:
    """Read, conclude, write the page."""
    shape = _shape(args)
    args.top = args.top or (_ROWS if shape in ("text", "markdown") else _TABLE)
    found = job(args, args.top)
    text = html(args, found) if shape == "html" else _told(args, found, shape)
    if args.output:
        save(args.output, text)
        lang = args.settings.output.lang
        say(
            f"gpudiag: {Text('written to', '已写入').in_(lang)} {args.output} ({len(text.encode('utf-8', 'replace')):,} B)",
            args.quiet,
        )
    else:
        write(text)
    note_failures(found.results, quiet=False)
    return found.results.code(found.diagnosis.exit)


def _shape(args: argparse.Namespace) -> str:
    """What was asked for, else what the file's name says, else HTML: but not into a terminal."""
    if args.format:
        return str(args.format)
    named = next((shape for suffix, shape in _SUFFIXES.items() if args.output.endswith(suffix)), "")
    if not named and not args.output and sys.stdout is not None and sys.stdout.isatty():
        raise UsageError(
            "a report is an HTML file, and this is a terminal",
            hint="-o report.html writes it to a file; --format text shows one here",
        )
    return named or "html"


def _main(found: Job) -> Looked | None:
    """The trace whose timeline, stacks and tables the page shows."""
    looked = [one for one in found.results.found if not one.empty]
    return summary.worst(looked) if looked else None


# --- HTML ----------------------------------------------------------------------------------


def html(args: argparse.Namespace, found: Job, **own: Any) -> str:
    """The page. `own`: keywords of `assistant.report.build` that take the place of those of the traces; `trees` are added."""
    from assistant.report import build

    digests = found.digests
    main = _main(found) or next(iter(found.results.found), None)  # without GPU activity the host's side is shown
    rest: dict[str, Any] = {"diff": _difference(args, found)}
    if main is not None:
        digests.sort(key=lambda d: d is not main.digest)  # whose parts these are comes first
        parts = _parts_of(args, main)
        rest |= {"timeline": parts.timeline, "heat": parts.heat, "trees": parts.trees, "kernels": parts.kernels, "ops": parts.ops,
                "rank_heat": [one.row for one in found.results.found if one.row is not None] if len(digests) > 1 else (),
                "about": rank_name(main.digest.rank, main.digest.file)}  # fmt: skip
    lang = args.settings.output.lang
    trees = [*own.pop("trees", ()), *rest.pop("trees", ())]
    whole = {
        "diagnosis": found.diagnosis,
        "ranks": found.ranks,
        "lang": lang,
        "files": [str(f) for f in args.files],
        **rest,
        **own,
    }
    return build(digests, trees=trees, **whole)


def _difference(args: argparse.Namespace, found: Job) -> Diff | None:
    """Of two traces what the second takes more than the first, in the order in which they were given."""
    from probes.trace.trees import diff

    names = names_of(args)
    both_ = sorted(
        (one.digest for one in found.results.found if not one.empty),
        key=lambda d: names.index(d.file) if d.file in names else 0,
    )
    if len(both_) != 2 or len(names) != 2:
        return None
    a, b = (load(args, d.file, diff.NEEDS) for d in both_)
    return diff.diff(a, b, *(d.summary.window for d in both_))


def _parts_of(args: argparse.Namespace, main: Looked) -> Parts:
    """A second reading of one trace, for what only the page needs of it."""
    from assistant.report.parts import NEEDS, parts

    def made(trace: Trace) -> Parts:
        return parts(trace, main.digest.summary.window, main.digest.iterations)

    (result,) = over(args, [main.digest.file], NEEDS, made).found
    return result


# --- text, Markdown, JSON ------------------------------------------------------------------


def _told(args: argparse.Namespace, found: Job, shape: str) -> str:
    lang = args.settings.output.lang
    main = _main(found)
    lanes = _lanes(args, main, _BINS if shape == "json" else timeline.room(args)) if main is not None else None
    if shape == "json":
        body = summary.data(found, lang) | {
            "iterations": [plain(d.iterations, lang) for d in found.digests], "timeline": plain(lanes) if lanes else None,
            "failed": [{"file": f, "why": w} for f, w in found.results.failed.items()],
        }  # fmt: skip
        return as_json({"schema": "gpudiag/trace-report/1", **body})
    return render(_sections(args, found, main, lanes), args.settings.output._replace(format=shape))


def _lanes(args: argparse.Namespace, main: Looked, bins: int) -> Lanes:
    from assistant.trace.lanes import NEEDS, lanes

    window = main.digest.summary.window
    (result,) = over(
        args, [main.digest.file], both(NEEDS), lambda trace: lanes(trace, window.start_ns, window.end_ns, bins)
    ).found
    return result


def _sections(args: argparse.Namespace, found: Job, main: Looked | None, lanes: Lanes | None) -> list[Part]:
    output = args.settings.output
    out = [judged(found.diagnosis, output.lang, now=output.now), *summary.body(found, output.lang)]
    for d in found.digests[:_FEW]:
        if len(d.iterations.items) > 1:
            out += iterations.section(args, d.iterations)
    if main is not None and lanes is not None:
        out += timeline.section(
            lanes, main.digest.rank, main.digest.file, main.digest.summary.window.start_ns, args.settings.output.lang
        )
    return [*out, *unread(found.results, args.settings.output.lang)]
