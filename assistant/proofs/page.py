"""The findings and one proof as a sheet, to be written to a file."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from assistant.proofs.tree import Kind, tree, walk
from assistant.render.labels import label
from assistant.render.sheet import Code, Heading, Items, Paragraph, Part, Sheet
from knowledge.text import clean

if TYPE_CHECKING:
    from assistant.diagnosis import Diagnosis
    from assistant.proofs.outline import Entry
    from assistant.proofs.tree import Node

_TRUTHS = {"true": "✔ ", "false": "✗ ", "unknown": "? "}


def page(d: Diagnosis, entries: Sequence[Entry], chosen: Entry | None, lang: str) -> Sheet:
    """The verdict, every entry of the outline, and the proof of the chosen one. JSON carries the whole diagnosis."""
    from assistant.render.json_ import plain
    from assistant.sources import tells

    parts: list[Part] = [
        Heading(label("found", lang)),
        Items(tuple(_line(e) for e in entries if e.depth == 0 or str(e.kind) == "symptom")),
    ]
    if chosen is not None and (chosen.findings or chosen.undecided):
        parts += _proof(tree(chosen, d, lang))
    return Sheet(clean(d.verdict.text.in_(lang)), tuple(parts), {"diagnosis": plain(d, lang, tells, verbose=True)})


def _line(e: Entry) -> str:
    count = str(e.count) if str(e.kind) == "section" else ""
    return "  " * e.depth + " · ".join(filter(None, (e.title, count, e.grade, e.action)))


def _proof(nodes: Sequence[Node]) -> list[Part]:
    out: list[Part] = []
    for n in nodes:
        if n.kind is Kind.HEADING:
            out += [Heading(n.text), *_below(n)]
        elif n.kind is Kind.TITLE:
            out.append(Heading(n.text))
        else:
            out.append(Paragraph(n.text))
    return out


def _below(heading: Node) -> list[Part]:
    """Commands as they stand; all else as indented lines."""
    every = list(walk(heading.children))
    commands = tuple(n.text for _, n in every if n.kind is Kind.COMMAND)
    lines = tuple("  " * depth + _words(n) for depth, n in every if n.kind is not Kind.COMMAND)
    proof = any(n.truth is not None for _, n in every)
    body: list[Part] = [Code(lines) if proof else Items(lines)] if lines else []
    return [*body, *([Code(commands)] if commands else [])]


def _words(n: Node) -> str:
    said = _TRUTHS.get(str(n.truth), "") + n.text
    compared = "  ".join(filter(None, (n.value, n.against)))
    behind = " · ".join(filter(None, (n.raw, n.place)))
    return said + (f"  {compared}" if compared else "") + (f"  [{behind}]" if behind else "")
