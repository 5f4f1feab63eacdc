"""The verdict and the findings: each opens to its evidence, its proof, and the command that shows it."""

from __future__ import annotations

import shlex
from html import escape
from pathlib import PurePath

from assistant.render import describe
from assistant.render.labels import aside, label, listed, subject_name
from assistant.render.view import Block, Evidence, View, view
from assistant.report.inputs import Inputs
from assistant.report.markup import bullets, folded, note, section
from assistant.report.words import word
from knowledge.text import clean, excerpt, opened
from rules.engine import Finding
from rules.proof import LeafProof, Proof

LISTED = 40  # rules that were ruled out, or not decided
MOST = 60  # lines of evidence: of a finding on a thousand ranks
NAMES = 8  # of ranks, and of files in a command
ROWS = 8  # of evidence that stand open under the first finding


def seen(inputs: Inputs) -> View:
    """The diagnosis arranged for reading, with everything that the folds hide."""
    return view(inputs.diagnosis, inputs.lang, verbose=True)


def headline(page: View) -> str:
    """State and sentence."""
    state = {"degraded": "warning", "unhealthy": "critical"}.get(page.state, page.state)
    return f'<p class="verdict s-{state}"><b>{escape(page.state_label)}</b> {escape(page.headline)}</p>'


def findings(inputs: Inputs, page: View) -> str:
    """One card a finding, in the order of the answer."""
    lang = inputs.lang
    proofs = {f.id: f for f in inputs.diagnosis.findings}
    cards = [_card(inputs, b, [proofs[i] for i in b.findings], n == 0) for n, b in enumerate(page.blocks)]
    if not cards:
        cards = [f"<p>{escape(word('no_findings', lang))}</p>"]
    rest = [(word(key, lang), items) for key, items in (("ruled_out", page.ruled_out), ("undecided", page.undecided))]
    cards += [folded(f"{title} ({len(items)})", bullets(items[:LISTED])) for title, items in rest if items]
    return section("findings", word("findings", lang), *cards)


def _card(inputs: Inputs, b: Block, findings_: list[Finding], first: bool) -> str:
    lang = inputs.lang
    where = "".join(f" · {t}" for t in (*(() if inputs.single else (_few(b.where, lang),)), b.grade) if t)
    soft = f'<span class="soft">{escape(where if b.impact else where[3:])}</span>'
    parts = [
        f'<article class="card s-{b.severity}"><h3><span class="tag">{escape(b.severity_label)}</span>{escape(b.title)}</h3>',
        f"<p><b>{escape(opened(b.impact))}</b>{soft}</p>",
        f"<p>{escape(word('do', lang))}{escape(b.action)}</p>",
    ]
    if b.explains:
        explained = opened(label("explains", lang)) + listed(b.explains, lang, ";")
        parts.append(f'<p class="soft">{escape(explained)}</p>')
    parts.append(
        folded(
            f"{word('evidence', lang)} ({len(b.evidence)})",
            _evidence(b.evidence, lang),
            open_=first and len(b.evidence) <= ROWS,
        )
    )
    if findings_:
        steps = "".join(_proof(f.proof, lang) for f in findings_[:1])
        about = "" if inputs.single else aside(clean(subject_name(findings_[0].subject, lang)), lang)
        parts.append(folded(f"{word('proof', lang)}{about}", f'<ul class="proof">{steps}</ul>'))
    parts.append(folded(word("why", lang), _page(b, lang)) if b.why else "")
    commands = "\n".join(escape(c) for c in (_command(inputs), f"gpudiag explain rule {b.rule}") if c)
    parts.append(folded(word("shows", lang), f"<pre>{commands}</pre>"))
    return "".join(parts) + "</article>"


def _few(where: str, lang: str) -> str:
    """Of very many names the first."""
    between = listed(["", ""], lang)
    names = where.split(between)
    return where if len(names) <= NAMES else between.join([*names[:NAMES], "..."])


def _page(b: Block, lang: str) -> str:
    parts = [f"<p>{escape(b.why)}</p>"]
    if b.false_positives:
        parts.append(f"<p><b>{escape(word('mistaken', lang))}</b> {escape(b.false_positives)}</p>")
    if b.references:
        parts.append(f'<p class="soft">{escape(word("sources", lang))}: {escape(", ".join(b.references))}</p>')
    return "".join(parts)


def _command(inputs: Inputs) -> str:
    """The files by name; very many of one folder by their folder."""
    names = list(inputs.files)
    if not names and inputs.above:  # no traces: what is on the page came from elsewhere
        return ""
    folders = {str(PurePath(f).parent) for f in names}
    if len(names) > NAMES and len(folders) == 1:
        names = [*folders]
    return " ".join(["gpudiag trace summary", *(shlex.quote(excerpt(n, 200)) for n in names or ["FILE"])])


def _evidence(items: tuple[Evidence, ...], lang: str) -> str:
    more = note(label("more_lines", lang).format(n=len(items) - MOST)) if len(items) > MOST else ""
    places = {e.place for e in items[:MOST]}
    if len(places) == 1:  # said once
        said = "".join(f"<li>{_said(e, lang)}</li>" for e in items[:MOST])
        return f'<ul class="evidence">{said}</ul>{_source(places.pop(), lang)}{more}'
    rows = "".join(f"<tr>{_place(e.place)}<td>{_said(e, lang)}</td></tr>" for e in items[:MOST])
    head = (
        f'<tr><th scope="col">{escape(word("place", lang))}</th><th scope="col">{escape(word("said", lang))}</th></tr>'
    )
    return f'<table class="evidence"><thead>{head}</thead><tbody>{rows}</tbody></table>{more}'


def _source(place: str, lang: str) -> str:
    name = _short(place)
    return f'<p class="soft" title="{escape(place)}">{escape(word("all_from", lang, place=name))}</p>'


def _short(place: str) -> str:
    """Of a path the file's name."""
    return PurePath(place).name if "/" in place and " " not in place else place


def _place(place: str) -> str:
    """A file by its name; all of its path on hover."""
    name = _short(place)
    title = f' title="{escape(place)}"' if name != place else ""
    return f'<td class="soft"{title}>{escape(name)}</td>'


def _said(e: Evidence, lang: str) -> str:
    raw = f"<code>{escape(e.raw)}</code>" if e.raw and e.raw not in e.text else ""
    often = f'<span class="soft">{escape(aside(e.note, lang))}</span>' if e.note else ""
    return escape(e.text) + ("<br>" if raw and e.text else "") + raw + often


def _proof(p: Proof, lang: str) -> str:
    """The tree of clauses: each with its truth and the value that was compared."""
    truth = f'<span class="truth {p.truth}">{escape(word(str(p.truth), lang))}</span>'
    if not isinstance(p, LeafProof):
        inner = "".join(_proof(c, lang) for c in p.children)
        return f"<li>{escape(word('all' if p.op == 'all' else 'any', lang))} {truth}<ul>{inner}</ul></li>"
    seen_ = f' <span class="soft">{escape(clean(p.seen))}</span>' if p.seen else ""
    missing = "".join(f'<br><span class="soft">{escape(clean(str(m)))}</span>' for m in p.missing)
    return f"<li><code>{escape(describe.leaf(p.leaf, lang))}</code> {truth}{seen_}{missing}</li>"
