"""Advice: which of two, whether something can be done beside running work, what to set."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict

from assistant.render.sheet import Fields, Items, Paragraph, Part, Sheet
from assistant.topics._common import sources
from knowledge.advice import Advice, advice
from knowledge.errors import UnknownNameError
from knowledge.language import Text

KIND = "advice"
HELP = "which of two, what may be done beside running jobs, what to set: MIG or MPS, NCCL_P2P_DISABLE, ..."


def names() -> Iterable[str]:
    """Ids and titles of all entries, and the variables that they are about."""
    for a in advice().values():
        yield from (a.id, a.title.en, a.title.in_("zh"), *a.variables)


def sheet(words: Sequence[str], lang: str) -> Sheet:
    """The page of one entry."""
    return page(find(" ".join(words)), lang)


def find(name: str) -> Advice:
    """The entry called `name`: its id, its title, or a variable. UnknownNameError with the nearest."""
    wanted = name.casefold().strip()
    for a in advice().values():
        called = (a.id, a.id.replace("-", " "), a.title.en, a.title.in_("zh"), *a.variables)
        if wanted in (c.casefold() for c in called):
            return a
    raise UnknownNameError(KIND, name, advice())


def page(a: Advice, lang: str) -> Sheet:
    """The answer, and what it depends on."""
    parts: list[Part] = [Paragraph(a.says.in_(lang))]
    if a.more:
        parts.append(Items(tuple(m.in_(lang) for m in a.more)))
    also, see = Text("see also", "另见").in_(lang), Text("the same for", "同样适用于").in_(lang)
    parts.append(Fields(((see, ", ".join(a.variables[1:])), (also, ", ".join(a.see)))))
    parts += sources(a.sources, lang)
    return Sheet(a.title.in_(lang), tuple(parts), {"kind": KIND, "entry": asdict(a)})
