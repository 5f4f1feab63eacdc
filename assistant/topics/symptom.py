"""Symptoms: what people say is wrong, what can be behind it, and what tells."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict

from assistant.render.sheet import Fields, Heading, Paragraph, Part, Sheet, Table
from assistant.topics._common import sources
from knowledge.errors import UnknownNameError
from knowledge.language import Text
from knowledge.symptoms import Hypothesis, Symptom, symptoms

KIND = "symptom"
HELP = "a symptom: slow training, hang, out of memory, missing GPU, ..."


def names() -> Iterable[str]:
    """Ids and titles of all symptoms."""
    for s in symptoms().values():
        yield from (s.id, s.title.en, s.title.zh)


def sheet(words: Sequence[str], lang: str) -> Sheet:
    """The page of one symptom."""
    return page(find(" ".join(words)), lang)


def find(name: str) -> Symptom:
    """The symptom called `name`: its id, title or a phrase for it. UnknownNameError with the nearest."""
    wanted = name.casefold().strip()
    for s in symptoms().values():
        if wanted in (s.id, s.id.replace("-", " "), s.title.en.casefold(), s.title.zh.casefold()):
            return s
    for s in symptoms().values():
        if any(wanted == phrase.casefold() for phrases in s.said.values() for phrase in phrases):
            return s
    raise UnknownNameError(KIND, name, symptoms())


def page(s: Symptom, lang: str) -> Sheet:
    """What can be behind `s`, each with what tells it."""

    def t(en: str, zh: str) -> str:
        return Text(en, zh).in_(lang)

    rows = tuple((h.title.in_(lang), _tells(h, lang)) for h in s.hypotheses)
    parts: list[Part] = [
        Paragraph(s.text.in_(lang)),
        Heading(t("What can be behind it", "可能的原因")),
        Table((t("cause", "原因"), t("what tells", "如何判断")), rows),
        Fields(((t("said as", "常见说法"), ", ".join(s.said.get(lang, ())[:6])),)),
        *sources(s.sources, lang),
    ]
    data = {"id": s.id, "title": asdict(s.title), "hypotheses": [h.id for h in s.hypotheses], "rules": sorted(s.rules)}
    return Sheet(s.title.in_(lang), tuple(parts), {"kind": KIND, "entry": data})


def _tells(h: Hypothesis, lang: str) -> str:
    """The rules that decide it, else what a person does."""
    if h.rules:
        return f"{Text('rules', '规则').in_(lang)}: {', '.join(h.rules)}"
    return h.find_out.in_(lang) or h.ask
