"""What a "what if" assumes: facts with values, thresholds, and events that were or were not."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import pairwise

from assistant.intent.grammar import facts_of
from assistant.intent.phrases import Runs
from assistant.intent.query import Assumed, Slots
from knowledge.lazy import lazy
from knowledge.lexicon import lexicon

MOST = 8
_I = re.IGNORECASE
# gpu.ecc.mode=off | thermal-margin-low.margin = 10 | gpu.temperature.core were 90 | node.os.kernel were "6.8.0 rt"
_DIRECT = lazy(
    r"(?<![A-Za-z0-9_.-])([a-z][a-z0-9_-]*(?:\.[a-z0-9_]+){0,6})\s*(?:=+|:|\bis\b|\bwere\b|\bwas\b|\u662f|\u4e3a)\s*"
    r"(?:\"([^\"\n]{0,400})\"|([A-Za-z0-9_.%+-]+|\u662f|\u5426|\u65e0))",
    _I,
)
_SHORT_ZH = lazy(
    r"(?:如果|假如|假设|要是)([\u4e00-\u9fff]{2,12}?)(?:是|为|等于)\s*([0-9][0-9.]{0,12}|是|否)"
)  # 如果宽度是 16
# ... on port mlx5_0/1 | port mlx5_0/1 的 ...: what no slot has a name for
_WHOSE = lazy(
    r"(?P<on>(?<![A-Za-z])(?:on|of)\s+)?(?<![A-Za-z0-9_.-])"
    r"(?P<kind>cluster|rack|switch|mig|nvswitch|nic|port|link|pci|container|pod|collective|operator|kernel|iteration|document|object|team)"
    r"\s+(?:\"(?P<said>[^\"\n]{1,400})\"|(?P<name>[^\s\",;!\uff0c]*[^\s\",;!?.\uff0c\uff1f]))(?P<de>\s*[\u7684\u4e0a])?"
)
_ABOVE = frozenset(["above", "over", "exceeds", "exceeded", "exceeding", "higher", "greater", "超", "高", "大"])
_BELOW = frozenset(["below", "under", "less", "lower", "smaller", "低", "小", "不"])
_NONE = frozenset(["no", "without", "not", "never", "没", "无", "未", "除", "排", "忽", "去"])
_SPLIT = frozenset({"and", ",", "plus", "but", "also", "和", "且", "并", "而"})
_THRESHOLDS = frozenset({"limit", "threshold", "margin", "上 限", "阈 值", "门 槛"})
# A number with its unit, and no word for what it is of: "what if gpu 3 were at 95 C".
_MEASURES = {
    **dict.fromkeys(("c", "celsius", "degrees", "degree", "deg", "度", "摄"), "gpu.temperature.core"),
    **dict.fromkeys(("w", "watts", "watt", "瓦"), "gpu.power.draw"), "mhz": "gpu.clock.sm",
}  # fmt: skip
_NUMBER = lazy(r"[0-9]+(?:\.[0-9]+)?")


def assumed(said: str, words: Sequence[str], slots: Slots) -> tuple[Assumed, ...]:
    """The assumptions of a sentence, in the order in which they were said."""
    out = [Assumed(found[1].lower(), _value(found), "is", _whose(said, found[1])) for found in _DIRECT.finditer(said)]
    if out := [a for a in out if "." in a.name or _no_event(a)]:
        return tuple(out[:MOST])
    codes = {"<xid>": iter(slots.xid), "<sxid>": iter(slots.sxid)}
    counts = {"<xid>": len(slots.xid), "<sxid>": len(slots.sxid)}
    for clause in _clauses(words):
        marks = [w for w in clause if w in codes]
        for at, mark in enumerate(marks):
            last = clause.count(mark) == 1 and words.count(mark) == 1
            taken = list(codes[mark]) if last else [c for c in [next(codes[mark], None)] if c is not None]
            op = "none" if _negated(clause) else "is"
            kind = mark.strip("<>")
            out += [Assumed(kind, str(code), op, _whose(said, kind)) for code in taken]
            del at
        if not marks:
            out += _of_fact(clause)
    del counts
    return tuple(dict.fromkeys(out))[:MOST]


def written(said: str) -> Iterator[tuple[str, str, list[str]]]:
    """Facts of the vocabulary by their full names, each with the word behind it, and what follows: ``gpu.row_remap.failure is true``."""
    for found in _DIRECT.finditer(said):
        if "." in found[1]:
            yield (
                found[1].lower(),
                _value(found),
                re.split(r"[\s,;?!，。？]", said[found.end() : found.end() + 60].strip()),
            )


def short(said: str) -> tuple[str, str] | None:
    """A short name and its value, where a sentence supposes one thing by a word alone: ("width", "16") of "the width were 16", ("宽度", "16")."""
    found = _DIRECT.search(said)
    if found is not None and "." not in found[1]:
        return found[1].lower(), _value(found)
    han = _SHORT_ZH.search(said)
    return (han[1], han[2]) if han is not None else None


def _value(found: re.Match[str]) -> str:
    return str(found[2]) if found[2] is not None else str(found[3]).rstrip(".%")


def _no_event(a: Assumed) -> bool:
    """Whether it is said of a kind of event, by its name, that there was none: ``oom_kill were none``."""
    from knowledge.facts import vocabulary

    return a.value in ("none", "无") and a.name not in ("xid", "sxid") and a.name in vocabulary()


def _whose(said: str, name: str) -> str:
    """The thing of the fact's own kind that is named, where no slot is for such things: ``port mlx5_0/1``."""
    from knowledge.facts import vocabulary

    spec = vocabulary().get(name.lower())
    for found in _WHOSE.finditer(said) if spec is not None else ():
        if (found["on"] or found["de"]) and spec is not None and found["kind"].lower() == spec.scope:
            return f"{found['kind'].lower()} {found['said'] or found['name']}"
    return ""


def elsewhere(slots: Slots, made: Sequence[Assumed]) -> Slots:
    """The slots without the address of a device that is no GPU, and of which something is supposed."""
    named = {a.of.partition(" ")[2] for a in made if a.of}
    return slots._replace(gpu=tuple(g for g in slots.gpu if g not in named)) if named else slots


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
        name, rest = _measure(clause)
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


def _measure(clause: Sequence[str]) -> tuple[str, list[str]]:
    """The reading that a unit behind a number names; nothing where none does."""
    for number, unit in pairwise(clause):
        if _NUMBER.fullmatch(number) and unit in _MEASURES:
            return _MEASURES[unit], list(clause)
    return "", []


@cache
def _values() -> Runs:
    return Runs(lexicon().values.items())


# what happens if I do nothing | and if we ignore it | 如果不管它会怎样
_LEFT_ALONE = lazy(
    r"\bif (?:i|we|you|one|they) (?:just )?(?:do nothing|don'?t do anything|ignore|leave (?:it|this|that|things)|keep (?:going|running|using)|carry on|wait)\b"
    r"|(?:如果|要是|假如)?(?:不管|不处理|不理|放着|置之不理)",
    re.IGNORECASE,
)


def left_alone(text: str) -> bool:
    """Whether it is asked what comes of doing nothing."""
    return _LEFT_ALONE.search(text) is not None
