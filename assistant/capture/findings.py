"""The findings of a capture as cards, in the words of every other answer."""

from __future__ import annotations

from typing import TYPE_CHECKING

from assistant.capture.words import word
from assistant.render.cells import cut
from assistant.render.labels import aside, colon, headline, impact_words, label, listed, titled
from assistant.render.sheet import Heading, Items, Paragraph
from assistant.render.trace_page import Card, Part
from assistant.render.view import Builder
from knowledge.text import clean

if TYPE_CHECKING:
    from assistant.capture.looking import Seen
    from rules.engine import Finding

_SHOWN, _EVIDENCE = 6, 4


def cards(seen: Seen, lang: str, verbose: bool = False) -> list[Part]:
    """Those that explain most first; what they explain stands on them."""
    groups = seen.groups
    if not groups:
        return elsewhere(seen, lang)
    builder = Builder(seen.diagnosis, lang, lambda _: "", verbose)
    shown = groups if verbose else groups[:_SHOWN]
    out: list[Part] = [Heading(word("found", lang)), *(_card(builder, g, lang, verbose) for g in shown)]
    if rest := groups[len(shown) :]:
        names = listed([clean(g[0].title.in_(lang)) for g in rest], lang, ";")
        out.append(Paragraph("  " + label("more_lines", lang).format(n=len(rest)) + colon(lang) + names))
    return [*out, *elsewhere(seen, lang)]


def elsewhere(seen: Seen, lang: str) -> list[Part]:
    """What else is to be said of the machine: one line each, for it does not explain what was asked."""
    lines = [
        f"{label(str(g[0].severity), lang)}  {headline(titled(g), [f.subject for f in g], lang)}"
        for g in seen.elsewhere
    ]
    shown = [clean(line) for line in lines[:_SHOWN]]
    more = [label("more_lines", lang).format(n=len(lines) - _SHOWN)] if len(lines) > _SHOWN else []
    return [Heading(word("elsewhere", lang)), Items((*shown, *more))] if lines else []


def _card(builder: Builder, group: list[Finding], lang: str, verbose: bool) -> Card:
    b = builder._block(group)
    said = [cut(f"{e.text}{aside(e.note, lang) if e.note else ''}" if e.text else e.raw, 400) for e in b.evidence]
    lines = list(dict.fromkeys(said))[: len(said) if verbose else _EVIDENCE]  # of several ranks the same words once
    for key, items in (("explains", b.explains), ("may_explain", b.may_explain)):
        if items:
            lines.append(label(key, lang) + listed(items, lang, ";"))
    lines += (
        [f"{label('runbook', lang)}gpudiag runbook show {group[0].advice.runbook}"] if group[0].advice.runbook else []
    )
    return Card(b.severity, b.severity_label, " · ".join([b.title, b.where, b.grade]),
                impact_words(group[0].impact, lang, most=len(group) > 1), b.action, tuple(lines))  # fmt: skip
