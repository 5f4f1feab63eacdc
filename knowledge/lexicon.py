"""The words that people use when they talk about GPU machines: ``knowledge/data/lexicon/*.yaml``.

Plain data: how sentences are matched against it is the business of `assistant.intent`.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any, NamedTuple

LANGUAGES = ("en", "zh")


class Phrase(NamedTuple):
    """One way to put a wish."""

    intent: str
    weight: int  # 1 (a hint) to 12 (nothing else can be meant)
    whole: bool  # counts only when nothing but politeness is left of the sentence
    text: str
    page: str = ""  # the page of knowledge that answers, where the wish names none


class Told(NamedTuple):
    """A fact that a statement tells."""

    fact: str
    value: bool | int | float | str | None  # "<n>" and "<m>": the first and the second number of the sentence
    where: Mapping[str, str]  # the fields of an event
    others: str | None  # the value of the same fact on things of its kind that were not meant


class Statement(NamedTuple):
    """One way to state that something is so."""

    text: str
    tells: tuple[Told, ...]


class Lexicon(NamedTuple):
    """Everything that the data files hold."""

    phrases: list[Phrase]
    classes: dict[str, tuple[str, ...]]  # id -> words of the same meaning
    roles: dict[str, tuple[str, ...]]  # field, weak, elsewhere, filler, ... -> words
    spellings: dict[str, str]  # "whats" -> "what is"
    sounds: dict[str, str]  # Han character -> its syllable
    heard: list[str]  # Han words that are meant when only the sound is right
    facts: dict[str, str]  # what people say -> name of the vocabulary
    values: dict[str, str]  # "enabled" -> "true"
    statements: list[Statement]


@cache
def lexicon() -> Lexicon:
    """All word lists. FaultsError when a file is damaged."""
    from knowledge.compiled import shard

    out = Lexicon([], {}, {}, {}, {}, [], {}, {}, [])
    for entry in shard("lexicon"):
        _ADD[entry["kind"]](out, entry)
    for entry in shard("advice"):  # an entry says itself how it is asked for
        if "said" in entry:
            out.phrases.extend(Phrase("explain", _ASKED, False, text, f"advice {entry['id']}") for text in _said(entry))
    return out


_ASKED = 12  # the weight of a phrase of an advice: nothing else is meant by it


def _said(entry: Mapping[str, Any]) -> tuple[str, ...]:
    return tuple(text for lang in LANGUAGES for text in entry["said"].get(lang, ()))


def _phrases(out: Lexicon, entry: Mapping[str, Any]) -> None:
    intent, weight, whole = entry["intent"], entry["weight"], entry.get("whole", False)
    out.phrases.extend(Phrase(intent, weight, whole, text, entry.get("page", "")) for text in _said(entry))


def _class(out: Lexicon, entry: Mapping[str, Any]) -> None:
    out.classes[entry["id"]] = _said(entry)


def _words(out: Lexicon, entry: Mapping[str, Any]) -> None:
    out.roles[entry["role"]] = (*out.roles.get(entry["role"], ()), *_said(entry))


def _spellings(out: Lexicon, entry: Mapping[str, Any]) -> None:
    out.spellings.update(entry["read"])


def _sounds(out: Lexicon, entry: Mapping[str, Any]) -> None:
    out.sounds.update(
        (character, syllable) for syllable, characters in entry["read"].items() for character in characters
    )
    out.heard.extend(entry["words"])


def _fact(out: Lexicon, entry: Mapping[str, Any]) -> None:
    for text in _said(entry):
        out.facts.setdefault(text, entry["fact"])


def _value(out: Lexicon, entry: Mapping[str, Any]) -> None:
    for text in _said(entry):
        out.values.setdefault(text, entry["value"])


def _statement(out: Lexicon, entry: Mapping[str, Any]) -> None:
    tells = tuple(Told(t["fact"], t.get("value"), t.get("where") or {}, t.get("others")) for t in entry["tells"])
    out.statements.extend(Statement(text, tells) for text in _said(entry))


_ADD = {
    "phrases": _phrases,
    "class": _class,
    "words": _words,
    "spellings": _spellings,
    "sounds": _sounds,
    "fact": _fact,
    "value": _value,
    "statement": _statement,
}
