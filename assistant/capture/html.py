"""A capture as one HTML page: the report of its traces where there are some, with the capture's own sections and stacks."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import replace
from html import escape
from typing import TYPE_CHECKING, Any

from assistant.capture import page as page_
from assistant.capture.looking import Seen, called
from assistant.capture.words import word
from assistant.render.sheet import Code, Fields, Heading, Items, Paragraph
from assistant.render.trace_page import Bars, Grid, Part, Plot
from knowledge.errors import GpudiagError
from probes.capture.manifest import mapping

if TYPE_CHECKING:
    from assistant.report.inputs import Flame

_FLAMES = 8  # processes whose stacks are drawn
_COLUMNS = 110


def page(args: argparse.Namespace, seen: Seen) -> str:
    """The page. Traces that cannot be read are left out, with a note."""
    from assistant.report import build

    lang = args.settings.output.lang
    own: dict[str, Any] = {
        "trees": flames(seen), "title": _title(seen, lang), "above": sections(seen, lang), "diff": None,
        "diagnosis": seen.about, "kicker": word("kicker", lang),
    }  # fmt: skip
    if seen.traces:
        try:
            return _with_traces(args, seen, own)
        except GpudiagError as error:
            own["above"] = [*own["above"], _section("unread", word("notes", lang), [Paragraph(error.message)], lang)]
    return build((), lang=lang, about=_title(seen, lang), **own)


def _with_traces(args: argparse.Namespace, seen: Seen, own: dict[str, Any]) -> str:
    from assistant.trace import report
    from assistant.trace.looking import job

    like = argparse.Namespace(
        action="report", files=[str(p) for p in seen.traces], settings=args.settings, quiet=args.quiet, memory=1 << 30, kept="",
        window="trace", marker="", jobs=None, top=50, gpu="", parameters=None, tokens_per_second=None,
    )  # fmt: skip
    return report.html(like, job(like, like.top), **own)


def _title(seen: Seen, lang: str) -> str:
    names = [called(t, lang) for t, _ in seen.targets]
    more = f" +{len(names) - 3}" if len(names) > 3 else ""
    return f"{', '.join(names[:3])}{more}, {seen.seconds:.1f} s"


# --- stacks ----------------------------------------------------------------------------------------


def flames(seen: Seen) -> list[Flame]:
    """A flame graph of each process: thread, then callers down to the innermost frame."""
    from assistant.report.parts import flame

    out = []
    documents = mapping(seen.document.get("stacks"))
    for target, _ in seen.targets[:_FLAMES]:
        tree = tree_of(mapping(documents.get(str(target.process.pid))))
        if tree is not None:
            out.append(
                replace(flame(tree, "cpu"), time="stacks", whose=called(target) if len(seen.targets) > 1 else "")
            )
    return out


def tree_of(document: dict[str, Any]) -> Any:
    """The call tree of a document of stacks, times in ns; None without samples."""
    from probes.trace.trees.folded import Builder

    builder = Builder("", "nanoseconds")
    frames = document.get("frames")
    stacks = document.get("stacks")
    if not isinstance(frames, list) or not isinstance(stacks, list):
        return None
    names = [_frame(f) for f in frames]
    paths = [[names[i] for i in s if isinstance(i, int) and 0 <= i < len(names)] for s in stacks if isinstance(s, list)]
    for tid, thread in mapping(document.get("threads")).items():
        called_ = str(mapping(thread).get("name") or "thread")
        samples = mapping(thread).get("samples")
        for sample in samples if isinstance(samples, list) else ():
            if (
                isinstance(sample, list)
                and len(sample) == 3
                and all(isinstance(n, int) for n in sample)
                and 0 <= sample[2] < len(paths)
            ):
                builder.add([f"{called_} ({tid})", *paths[sample[2]]], max(0, sample[1]))
    return builder.tree() if builder.stacks else None


def _frame(frame: Any) -> str:
    """``[name, file, line]`` as py-spy writes it."""
    if not isinstance(frame, list) or len(frame) != 3:
        return "?"
    name, file, line = frame
    return f"{name} ({file}:{line})" if file else str(name)


# --- the capture's own sections ----------------------------------------------------------------------


def sections(seen: Seen, lang: str) -> list[str]:
    """Where the time went, what was captured, at what cost, from whom: what stands under the findings."""
    groups: list[tuple[str, str, list[Part]]] = [
        ("standing", word("stands", lang), page_._standing(seen, lang)), ("activities", word("did", lang), page_._activities(seen, lang, False)),
        ("gpus", word("gpus", lang), page_._gpus(seen, lang)), ("loop", word("counted", lang), page_._iterations(seen, lang, 8)),
        ("captured", word("captured", lang), page_._captured(seen, lang, False)), ("cost", word("cost", lang), page_._cost(seen, lang)),
        ("elsewhere", word("elsewhere", lang), page_.elsewhere(seen, lang)),
        ("capture-notes", word("notes", lang), page_._notes(seen, lang)),
    ]  # fmt: skip
    return [_section(name, title, parts, lang) for name, title, parts in groups if parts]


def _section(name: str, title: str, parts: Sequence[Part], lang: str) -> str:
    from assistant.report.markup import section

    return section(name, title, *(html for part in parts if (html := _html(part, title, lang))))


def _html(part: Part, title: str, lang: str) -> str:
    from assistant.report.markup import Column, bullets, table

    match part:
        case Heading(text):
            said = text.removeprefix(word("where", lang)).lstrip(":： ")
            return (
                f"<h3>{escape(said)}</h3>"
                if said and said not in (title, word("iterations", lang), word("gpus", lang))
                else ""
            )
        case Paragraph(text):
            return f"<p>{escape(text.strip())}</p>"
        case Items(items, _):
            return bullets(items)
        case Fields(rows):
            return (
                "<dl>" + "".join(f"<div><dt>{escape(k)}</dt><dd>{escape(v)}</dd></div>" for k, v in rows if v) + "</dl>"
            )
        case Bars(rows):
            columns = [Column(word("part", lang)), Column(word("time", lang)), Column(word("share", lang), "share")]
            return table(columns, [(r.name, r.value, r.share) for r in rows], caption=title, tools=False)
        case Grid(columns, rows, _, _):
            return table([Column(c.title) for c in columns], [tuple(r) for r in rows], caption=title, tools=False)
        case Plot(draw):
            lines = "\n".join(escape(line) for line in draw(_COLUMNS, True))
            return f"<pre>{lines}</pre>"
        case Code(lines):
            return "<pre>" + "\n".join(map(escape, lines)) + "</pre>"
        case _:
            return ""
