"""A post-mortem as one HTML page: the page of a diagnosis, with its colours, and nothing that is fetched or run."""

from __future__ import annotations

from html import escape

from assistant.incidents import words
from assistant.incidents.report import Report, evidence
from assistant.incidents.report_page import (
    Section,
    colour,
    every_finding,
    grade_words,
    plain_words,
    sections,
    state_word,
    verdict,
)
from assistant.render.html import document
from assistant.render.labels import colon
from assistant.render.sheet import Items, Paragraph, Table, html_parts

_KEPT = ' style="white-space:nowrap;padding-right:1rem"'  # a time, a name: one line
SHORT = 36  # letters of a cell that stays on one line: two times of one day
_WORDS = ' style="min-width:18rem"'
_SOURCE = ' style="white-space:normal;width:26%"'  # a path may be long


def render(r: Report, lang: str) -> str:
    """The whole page."""
    first = verdict(r, lang)
    parts = [f'<h1 style="--c:var(--{colour(r)})"><b>{escape(state_word(r, lang))}</b>{escape(first)}</h1>']
    parts += [f'<h2 id="{s.name}">{escape(s.title)}</h2>\n{_body(s, r, lang)}' for s in sections(r, lang)]
    return document(f"{state_word(r, lang)}{colon(lang)}{first}", "\n".join(parts), lang)


def _body(s: Section, r: Report, lang: str) -> str:
    if s.name == "cause" and r.causes:
        return _causes(s, r, lang)
    if s.name == "evidence" and any(evidence(f) for f in every_finding(r)):
        return _evidence(r, lang)
    return "\n".join(_table(p) if isinstance(p, Table) else html_parts((p,)) for p in s.parts)


def _causes(s: Section, r: Report, lang: str) -> str:
    """Each cause as a card, with the chain below it; what no cause explains stands behind them."""
    several, out = len(r.incident.hosts) > 1, []
    for c in r.causes:
        f = c.finding
        chain = "".join(
            f'<li style="margin-left:{(depth - 1) * 1.2:.1f}rem">{escape(plain_words(x, several, lang))}</li>'
            for depth, x in c.chain
        )
        out.append(
            f'<section class="card" style="--c:var(--{f.severity or "unknown"})"><h3><span class="tag">'
            f"{escape(words.grade(f.severity, lang))}</span>{escape(plain_words(f, several, lang))}</h3>"
            f'<p class="where">{escape(grade_words(f, lang))}</p>{f"<ul>{chain}</ul>" if chain else ""}</section>'
        )
    if r.loose:
        lead = [p for p in s.parts if isinstance(p, Paragraph)][-1]  # the sentence that leads the list of them
        out.append(html_parts((lead, Items(tuple(plain_words(f, several, lang) for f in r.loose)))))
    return "\n".join(out)


def _evidence(r: Report, lang: str) -> str:
    """Source and line side by side, as in a diagnosis."""
    several, out = len(r.incident.hosts) > 1, []
    for f in every_finding(r):
        rows = "".join(
            f"<tr><td{_SOURCE}>{escape(x.source or '–')}</td><td><code>{escape(x.line)}</code></td></tr>"
            for x in evidence(f)
        )
        if rows:
            out.append(f"<p>{escape(plain_words(f, several, lang))}</p><table>{rows}</table>")
    return "\n".join(out)


def _table(table: Table) -> str:
    """Times, names and numbers in one line each; words take the rest. On a telephone it is moved sideways."""

    def cell(text: str) -> str:
        return f"<td{_KEPT if len(text) <= SHORT else _WORDS}>{escape(text)}</td>"

    head = "".join(f"<td{_KEPT}><b>{escape(h)}</b></td>" for h in table.header)
    rows = "".join(f"<tr>{''.join(map(cell, row))}</tr>\n" for row in table.rows)
    return f'<div style="overflow-x:auto"><table><tr>{head}</tr>{rows}</table></div>'
