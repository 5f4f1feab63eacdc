"""What a "what if" assumes: facts with values, thresholds, and events that were or were not."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cache

from assistant.intent.grammar import facts_of
from assistant.intent.phrases import Runs
from assistant.intent.query import Assumed, Slots
from knowledge.lazy import lazy
from knowledge.lexicon import lexicon

MOST = 8
_I = re.IGNORECASE
# gpu.ecc.mode=off | thermal-margin-low.margin = 10 | gpu.temperature.core were 90
_DIRECT = lazy(
    r"(?<![A-Za-z0-9_.-])([a-z][a-z0-9_-]*(?:\.[a-z0-9_]+){1,6})\s*(?:=+|:|\bis\b|\bwere\b|\bwas\b|\u662f|\u4e3a)\s*([A-Za-z0-9_.%+-]+)",
    _I,
)
_ABOVE = frozenset(["above", "over", "exceeds", "exceeded", "exceeding", "higher", "greater", "超", "高", "大"])
_BELOW = frozenset(["below", "under", "less", "lower", "smaller", "低", "小", "不"])
_NONE = frozenset(["no", "without", "not", "never", "没", "无", "未", "除", "排", "忽", "去"])
_SPLIT = frozenset({"and", ",", "plus", "but", "also", "和", "且", "并", "而"})
_THRESHOLDS = frozenset({"limit", "threshold", "margin", "上 限", "阈 值", "门 槛"})
_UNITS = frozenset(["c", "w", "%", "mhz", "ghz", "gb", "gib", "mb", "mib", "degrees", "watts", "celsius"])
_NUMBER = re.compile(r"[0-9]+(?:\.[0-9]+)?")


def assumed(said: str, words: Sequence[str], slots: Slots) -> tuple[Assumed, ...]:
    """The assumptions of a sentence, in the order in which they were said."""
    out = [Assumed(found[1].lower(), found[2].rstrip(".%"), "is") for found in _DIRECT.finditer(said)]
    if out:
        return tuple(out[:MOST])
    codes = {"<xid>": iter(slots.xid), "<sxid>": iter(slots.sxid)}
    counts = {"<xid>": len(slots.xid), "<sxid>": len(slots.sxid)}
    for clause in _clauses(words):
        marks = [w for w in clause if w in codes]
        for at, mark in enumerate(marks):
            last = clause.count(mark) == 1 and words.count(mark) == 1
            taken = list(codes[mark]) if last else [c for c in [next(codes[mark], None)] if c is not None]
            op = "none" if _negated(clause) else "is"
            out += [Assumed(mark.strip("<>"), str(code), op) for code in taken]
            del at
        if not marks:
            out += _of_fact(clause)
    del counts
    return tuple(dict.fromkeys(out))[:MOST]


def _negated(clause: Sequence[str]) -> bool:
    return any(w in _NONE for w in clause)


def _clauses(words: Sequence[str]) -> Iterator[list[str]]:
    """The words between "and" and commas; a clause without a value of its own takes the next one's."""
    clause: list[str] = []
    for word in words:
        if word in _SPLIT and clause:
            yield clause
            clause = []
        elif word not in _SPLIT:
            clause.append(word)
    if clause:
        yield clause


def _of_fact(clause: Sequence[str]) -> Iterator[Assumed]:
    spans = facts_of(clause)
    rest = list(clause)
    name = ""
    if spans:
        start, end, name = max(spans, key=lambda span: span[1] - span[0])
        rest = [*clause[:start], *clause[end:]]
    elif any(t in " ".join(clause) for t in _THRESHOLDS):
        name = "limit"
    if not name:
        return
    number = next((w for w in reversed(rest) if _NUMBER.fullmatch(w)), "")
    if number:
        op = "above" if _ABOVE & set(rest) else "below" if _BELOW & set(rest) else "is"
        yield Assumed(name, number, op)
        return
    value = next((v for _, _, v in reversed(_values().find(rest))), "")
    if value:
        yield Assumed(name, value)
    elif _NONE & set(rest):
        yield Assumed(name, "", "none")


@cache
def _values() -> Runs:
    return Runs(lexicon().values.items())
