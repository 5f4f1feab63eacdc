"""The glossary: words of the field."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict

from assistant.render.sheet import Fields, Paragraph, Part, Sheet
from assistant.topics._common import others_say, sources
from knowledge.catalog.lookup import find_term, glossary
from knowledge.errors import UnknownNameError
from knowledge.language import Text

KIND = "term"
HELP = "a word of the field: row remapping, collective, MFU, ..."


def names() -> Iterable[str]:
    """Terms and their other spellings."""
    for term in glossary().values():
        yield term.id
        yield term.term.en
        yield term.term.zh
        yield from term.also


def sheet(words: Sequence[str], lang: str) -> Sheet:
    """The page of one term."""
    found = find_term(" ".join(words))
    if found is None:
        raise UnknownNameError(KIND, " ".join(words), names())

    def t(en: str, zh: str) -> str:
        return Text(en, zh).in_(lang)

    linked = [glossary()[i].term.in_(lang) for i in found.see_also if i in glossary()]
    parts: list[Part] = [
        Paragraph(found.text.in_(lang)),
        Fields(((t("also called", "又称"), ", ".join(found.also)), (t("see also", "另见"), ", ".join(linked)))),
        *others_say(found.disagrees, lang),
        *sources(found.sources, lang),
    ]
    return Sheet(found.term.in_(lang), tuple(parts), {"kind": KIND, "entry": asdict(found)})
