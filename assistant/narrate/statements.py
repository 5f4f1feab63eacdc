"""The statements of a finding: each clause of its texts, with the sense in which it stands there.

A narration must rest each of its clauses on one of them (`assistant.narrate.support`). The texts are split where a clause ends,
because what two clauses say may not be mixed: "the driver waits, the GPU is lost" does not say that the driver is lost.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache

from assistant.narrate import lexicon as lex
from assistant.narrate.material import Item, Kind
from assistant.narrate.vocabulary import OFFERING, imperative, offers
from assistant.narrate.wording import folded, sentences, tokens


class Mode(Enum):
    """How a statement stands in the texts."""

    FACT = "fact"  # so it is
    OPEN = "open"  # so it may be: only with a hedge, or with the same "or" and "if"
    DEED = "deed"  # do it
    LATER = "later"  # until this is so
    STATE = "state"  # whether it can be used


@dataclass(frozen=True, slots=True)
class Statement:
    """One clause of a finding's texts."""

    text: str
    mode: Mode
    item: str  # id
    name: bool = False  # what the finding is called


_CUT = {
    "en": re.compile(
        r"; |: |, (?:so|which|but|while|because|unless)\b|\b(?:because|so that)\b|, and (?=(?:the|a|its|it|they|all)\b)"
    ),
    "zh": re.compile(r"[；：。]|，(?=因为|因此|但|而)"),
}
_IMPERATIVE_ZH = re.compile(r"请|^(?:检查|联系|查看|启动|重启|修复|增大|减少)")


@lru_cache(maxsize=512)
def statements(item: Item, lang: str) -> tuple[Statement, ...]:
    """All that an item states."""
    out = [*_clauses(item.what, Mode.FACT, item.id, lang, name=True)]
    if item.kind is not Kind.FINDING:
        return tuple(out)
    out += [Statement(folded(t, lang), Mode.FACT, item.id) for t in item.seen]
    for text in item.background:
        mode = _mode(text, lang)
        out += _clauses(text, mode, item.id, lang)
    for text in (*item.actions, *item.then):
        for part in (p for x in sentences(text, lang) for p in _orders(x, lang)):
            out.append(Statement(folded(part, lang), Mode.DEED, item.id))
    if item.standing:
        now, later = _standing(item.standing, lang)
        out.append(Statement(now, Mode.STATE, item.id))
        out += [Statement(later, Mode.LATER, item.id)] if later else []
    return tuple(out)


def _orders(sentence: str, lang: str) -> list[str]:
    """What a sentence tells to do, one by one."""
    if lang == "zh":
        return [sentence] if sentence.startswith(("若", "如", "当")) else [p for p in re.split("[，；]", sentence) if p]
    return sentence.split("; ")


def _standing(text: str, lang: str) -> tuple[str, str]:
    now, _, later = folded(text, lang).partition("直到" if lang == "zh" else "until ")
    return now.strip(" ，"), later.strip()


def _mode(text: str, lang: str) -> Mode:
    if (_IMPERATIVE_ZH.search(text) or text.startswith(lex.ZH_DEEDS)) if lang == "zh" else _tells(text):
        return Mode.DEED
    if lang == "zh":
        return Mode.OPEN if offers(text, lang) else Mode.FACT
    low = [t.lower() for t in tokens(text)]
    return Mode.OPEN if set(low) & OFFERING or low[0] in ("if", "when", "either") else Mode.FACT


def _tells(text: str) -> bool:
    low = [t.lower() for t in tokens(text)]
    if low[:1] == ["power"]:  # "power delivery", not "power it"
        return False
    if low and low[0] in ("if", "when"):
        return imperative(text.partition(",")[2].strip()) or "suspect" in low
    return imperative(text) or any(imperative(p.strip()) for p in text.split(": ")[1:])


def _clauses(text: str, mode: Mode, own: str, lang: str, name: bool = False) -> list[Statement]:
    if mode is not Mode.FACT:
        return [Statement(folded(text, lang), mode, own, name)]
    whole = folded(text, lang)
    parts = [p.strip() for p in _CUT[lang].split(whole) if p.strip()]
    made = [Statement(p, Mode.OPEN if not name and _either(p, lang) else mode, own, name) for p in parts]
    return [*made, Statement(whole, mode, own, name)] if name and len(parts) > 1 else made


def _either(clause: str, lang: str) -> bool:
    """Whether a clause names several things of which only one need be so."""
    if lang == "zh":
        return "或" in clause or clause.count("、") > 1
    return offers(clause, lang) or bool(re.search(r", or | or (?:its|the|a|an|not)\b|, a [^,]*, a ", clause))


def hedged(low: frozenset[str], text: str, lang: str) -> bool:
    """Whether a sentence leaves open what it says."""
    if lang == "zh":
        return any(w in text for w in (*lex.ZH_HEDGES, "或", "若", "如果", "时", "是否", "例如"))
    return bool(low & (lex.HEDGES | {"or", "if", "when", "either", "unless", "whether", "whenever"}))
