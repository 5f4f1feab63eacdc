"""Whether what a model wrote may be shown. Nothing is repaired: a sentence that is not sure to be true takes the rest with it.

The guards in their order: the form (strict JSON of one shape), the citations, the signs, the placeholders, and whether each sentence is
made of whole statements of the cited findings, each where it may stand. Only then are the placeholders filled, with the words
that the deterministic answer shows. The verdict, the severities and the actions stand above, and are no part of this.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from enum import Enum
from typing import Any

from assistant.narrate.guards import placeholders, signs
from assistant.narrate.material import Material
from assistant.narrate.placeholders import PLACEHOLDER, Slot
from assistant.narrate.sentence import Sentence
from assistant.narrate.telling import Told, telling, whole
from knowledge.record import dataclass
from knowledge.text import excerpt

LARGEST, DEEPEST = 16_384, 6  # characters of an answer; brackets within brackets
SENTENCES, CITES, TOTAL = 12, 4, 3_000  # of an answer, of a sentence; characters of all sentences


class Guard(Enum):
    """Which guard refused. The values are the words of the log."""

    EMPTY = "empty"
    SIZE = "size"
    JSON = "json"
    SHAPE = "shape"
    CITES = "cites"
    SIGNS = "signs"
    PLACEHOLDER = "placeholder"
    STATEMENT = "statement"


@dataclass(frozen=True, slots=True)
class Withheld:
    """Nothing of it is shown."""

    guard: Guard
    detail: str = ""  # clean, one line: for the log

    def __str__(self) -> str:
        return f"{self.guard.value}: {self.detail}" if self.detail else self.guard.value


@dataclass(frozen=True, slots=True)
class Said:
    """One sentence that passed, with the real values in it."""

    text: str
    cites: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Narration:
    """Everything that passed."""

    lang: str
    sentences: tuple[Said, ...]

    @property
    def text(self) -> str:
        """As one paragraph."""
        return ("" if self.lang == "zh" else " ").join(s.text for s in self.sentences)


class _RefusedError(Exception):
    def __init__(self, guard: Guard, detail: str = "") -> None:
        super().__init__(detail)
        self.withheld = Withheld(guard, excerpt(detail, 160))


_GUARDS: tuple[tuple[Guard, Callable[[Sentence], str]], ...] = (
    (Guard.SIGNS, signs), (Guard.PLACEHOLDER, placeholders),
)  # fmt: skip


def judge(material: Material, raw: str) -> Narration | Withheld:
    """The narration in `raw`, filled; or which guard refused it. Pure, and never raises."""
    try:
        sentences = _sentences(material, raw)
        told = frozenset((Told(),))
        for s in sentences:
            for guard, check in _GUARDS:
                if wrong := check(s):
                    raise _RefusedError(guard, f"{wrong} in {s.text!a}")
            told = telling(s, told)
            if not told:
                raise _RefusedError(
                    Guard.STATEMENT, f"no statement of {' '.join(s.cites)} that may stand here: {s.text!a}"
                )
        if not whole(told):
            raise _RefusedError(Guard.STATEMENT, "an action is told in part")
    except _RefusedError as refused:
        return refused.withheld
    return Narration(material.lang, tuple(Said(filled(s.text, material), s.cites) for s in sentences))


# --- the form -----------------------------------------------------------------------------


def parsed(raw: str) -> Any:
    """Strict JSON: one object, no name twice, not deep, not large. ValueError with the reason."""
    if len(raw) > LARGEST:
        raise ValueError(f"{len(raw)} characters")
    text = raw.strip(" \t\r\n")
    if not (text.startswith("{") and text.endswith("}")):
        raise ValueError("no JSON object that is closed")
    deep = most = 0
    for c in re.sub(r'"(?:[^"\\]|\\.)*"', "", text):
        deep += (c in "[{") - (c in "]}")
        most = max(most, deep)
    if most > DEEPEST:
        raise ValueError("too deep")
    return json.loads(text, object_pairs_hook=_once, parse_constant=_refuse)


def _once(found: list[tuple[str, Any]]) -> dict[str, Any]:
    out = dict(found)
    if len(out) != len(found):
        raise ValueError("a name stands twice")
    return out


def _refuse(word: str) -> Any:
    raise ValueError(f"{word} is no JSON")


def _sentences(m: Material, raw: str) -> list[Sentence]:
    if not raw.strip():
        raise _RefusedError(Guard.EMPTY)
    if len(raw) > LARGEST:
        raise _RefusedError(Guard.SIZE, f"{len(raw)} characters")
    try:
        data = parsed(raw)
    except (ValueError, RecursionError) as error:
        raise _RefusedError(Guard.JSON, str(error)) from None
    if not isinstance(data, dict) or set(data) != {"sentences"} or not isinstance(data["sentences"], list):
        raise _RefusedError(Guard.SHAPE, "not {sentences: [...]}")
    if not 1 <= len(data["sentences"]) <= SENTENCES:
        raise _RefusedError(Guard.SHAPE, f"{len(data['sentences'])} sentences")
    out = [_sentence(m, x) for x in data["sentences"]]
    if sum(len(s.text) for s in out) > TOTAL:
        raise _RefusedError(Guard.SIZE, "all sentences together")
    return out


def _sentence(m: Material, x: Any) -> Sentence:
    if not isinstance(x, dict) or set(x) != {"text", "cites"}:
        raise _RefusedError(Guard.SHAPE, "a sentence is {text, cites}")
    text, cites = x["text"], x["cites"]
    if not isinstance(text, str) or not isinstance(cites, list) or not all(isinstance(c, str) for c in cites):
        raise _RefusedError(Guard.SHAPE, "text is a text, cites a list of texts")
    if not 1 <= len(cites) <= CITES or len(set(cites)) != len(cites):
        raise _RefusedError(Guard.CITES, f"{len(cites)} citations")
    known = m.by_id
    if unknown := [c for c in cites if c not in known]:
        raise _RefusedError(Guard.CITES, f"unknown {unknown[0]!a}")
    return Sentence(text.strip(" "), tuple(known[c] for c in cites), m)


# --- the real values ----------------------------------------------------------------------


def filled(text: str, material: Material) -> str:
    """`text` with the words of the deterministic answer; a word that stands ahead of its own copy is said once."""
    out, at = "", 0
    for match in PLACEHOLDER.finditer(text):
        out += text[at : match.start()]
        value = _fitting(material.slots[match[1]], out)
        out += (
            value[:1].upper() + value[1:]
            if not out and material.lang == "en" and value[:1].isalpha() and " " in value
            else value
        )
        at = match.end()
    return out + text[at:]


def _fitting(slot: Slot, ahead: str) -> str:
    first, space, rest = slot.value.partition(" ")
    last = ahead.rstrip().rpartition(" ")[2].lower()
    return rest if space and rest and last == first.lower() else slot.value
