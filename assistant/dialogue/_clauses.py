"""Clauses of a condition as a person would say them: what was seen, against what it is compared with, or what is missing.

A fact's own sentence stands first; its name only where nobody gave it a sentence. The formal wording of a rule's page is that of
`assistant.render.describe`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

from assistant.render.labels import aside, colon, listed
from assistant.render.meanings import meaning
from knowledge.language import Text
from knowledge.lazy import lazy
from knowledge.text import clean
from knowledge.units import format_duration, symbol
from rules.condition import EventLeaf, FactLeaf, FieldTest, KnownLeaf, Leaf, Op, Reference, Take

if TYPE_CHECKING:
    from knowledge.facts import FactSpec, Vocabulary

VALUES = 4  # of a list of values that would do
_WANTED: dict[Op, Text] = {
    Op.IS: Text("{}", "{}"), Op.IS_NOT: Text("not {}", "非 {}"),
    Op.IN: Text("{}", "{}"), Op.NOT_IN: Text("none of {}", "非 {}"),
    Op.AT_LEAST: Text("at least {}", "不小于 {}"), Op.AT_MOST: Text("at most {}", "不大于 {}"),
    Op.ABOVE: Text("above {}", "大于 {}"), Op.BELOW: Text("below {}", "小于 {}"),
    Op.CONTAINS: Text("containing {}", "包含 {}"), Op.MATCHES: Text("", ""),
    Op.VERSION_BELOW: Text("older than {}", "早于 {}"), Op.VERSION_AT_LEAST: Text("{} or newer", "{} 或更新"),
}  # fmt: skip
_ORDERED = frozenset({Op.AT_LEAST, Op.AT_MOST, Op.ABOVE, Op.BELOW, Op.VERSION_BELOW, Op.VERSION_AT_LEAST})
# What the rules note in English of a comparison over time or over peers.
_PEERS = lazy(r"([\d.e+-]+) of the peers' median ([\d.e+-]+)")
_NOTES_ZH = (
    (_PEERS, r"为同伴中位数 \2 的 \1 倍"),
    (lazy(r"(\d+) of (\d+)"), r"\2 个中有 \1 个"),
    (lazy(r"(\d+) samples over ([\d.e+-]+) s, (\d+)% of ([\d.e+-]+) s needed"), r"\2 秒内有 \1 个样本，需要覆盖 \4 秒的 \3%"),
    (lazy(r"(\d+) samples over ([\d.e+-]+) s"), r"\2 秒内有 \1 个样本"),
    (lazy(r"increase ([\d.e+-]+)"), r"增加了 \1"),
    (lazy(r"rate ([\d.e+-]+)"), r"速率为 \1"),
    (lazy(r"(\d+) seen"), r"共 \1 条"),
    (lazy(r"not applicable"), "不适用"),
    (lazy(r"none seen"), "未见"),
)  # fmt: skip


def machine_made(raw: str) -> bool:
    """Whether a raw value is a number, a mask or a structure: beside the sentence that reads it, it says nothing."""
    return bool(
        re.match(r"[\[{\"]|[\w.]+ = ", raw) or re.fullmatch(r"(?:[\w()*, ]{1,80}: ?)?(?:0x)?[0-9a-fA-F.+-]{1,20}", raw)
    )


def note(seen: str, lang: str) -> str:
    """What a proof notes of its comparison, in `lang`; what is not known here stays."""
    if lang != "zh":
        return _PEERS.sub(
            lambda m: f"{'as much as' if m[1] == '1' else f'{m[1]} times'} the peers' median of {m[2]}", seen
        )
    for pattern, said in _NOTES_ZH:
        if found := pattern.fullmatch(seen):
            return found.expand(said)
    return seen


def compared(leaf: Leaf) -> bool:
    """Whether a leaf asks for more than yes or no: a threshold, a version, one of several words."""
    return isinstance(leaf, FactLeaf) and not isinstance(leaf.value, bool) and leaf.op is not Op.MATCHES


def ordered(leaf: Leaf) -> bool:
    """Whether a leaf compares with a threshold."""
    return isinstance(leaf, FactLeaf) and leaf.op in _ORDERED


def wanted(leaf: FactLeaf, vocabulary: Vocabulary, lang: str) -> str:
    """What a value is compared with: ``at least 50 %``, ``below 0.85 times the peers' median``; empty where words fail."""
    spec = vocabulary.get(leaf.fact)
    value = _operand(leaf, spec, vocabulary, lang)
    said = _WANTED[leaf.op].in_(lang).format(value).replace(" “", "“") if value else ""
    if not said:
        return ""
    if leaf.peer_ratio:
        one = leaf.value == 1  # "below the peers' median", not "below 1 of it"
        said = said.removesuffix("1").rstrip() if one else said
        times = Text("" if one else "times ", "" if one else " 倍").in_(lang)
        said = Text(f"{said} {times}the peers' median", f"{said}{times}同伴中位数").in_(lang)
    if leaf.take is Take.RATE:
        said += Text(f" per {format_duration(leaf.per)}", f"，每 {format_duration(leaf.per)}").in_(lang)
    if leaf.within:
        said += Text(f" within {format_duration(leaf.within)}", f"（{format_duration(leaf.within)} 内）").in_(lang)
    if leaf.negated:
        said = Text(f"not {said}", f"并非{said}").in_(lang)
    return said


def _operand(leaf: FactLeaf, spec: FactSpec | None, vocabulary: Vocabulary, lang: str) -> str:
    value, unit = leaf.value, "" if leaf.peer_ratio else _unit(spec)
    if isinstance(value, Reference):
        return _reference(value, unit, vocabulary, lang)
    if isinstance(value, bool):
        return (Text("yes", "是") if value else Text("no", "否")).in_(lang)
    if isinstance(value, tuple):
        shown = [_word(v, spec, lang) for v in value[:VALUES]]
        rest = len(value) - len(shown)
        if not shown:
            return Text("none", "无").in_(lang)
        more = [Text(f"{rest} more", f"另外 {rest} 种").in_(lang)] if rest > 0 else []
        return Text(" or ", "或").in_(lang).join([listed(shown[:-1], lang), shown[-1]] if len(shown) > 1 and not more else [listed([*shown, *more], lang)])  # fmt: skip
    return f"{_word(value, spec, lang)}{unit}"


def _unit(spec: FactSpec | None) -> str:
    unit = symbol(spec.unit) if spec is not None else ""
    return f" {unit}" if unit else ""


def _word(value: object, spec: FactSpec | None, lang: str) -> str:
    if isinstance(value, float):
        return f"{value:.6g}"
    said = str(value)
    if spec is not None and said in spec.labels:
        return spec.labels[said].in_(lang)
    return clean(said).replace("_", " ") if spec is not None and said in spec.values else clean(said)


def _reference(value: Reference, unit: str, vocabulary: Vocabulary, lang: str) -> str:
    name = meaning(value.fact, vocabulary, lang)
    name = name if lang == "zh" or not name[1:2].islower() else name[:1].lower() + name[1:]
    times = Text(f"{value.times:g} times ", f"{value.times:g} 倍").in_(lang) if value.times != 1 else ""
    named = (
        Text(f"the {name}", f"“{name}”").in_(lang)
        if not times
        else Text(f"{times}the {name}", f"“{name}”的 {times}").in_(lang)
    )
    if not value.plus:
        return named
    by = f"{abs(value.plus):g}{unit}"
    if value.plus < 0:
        return Text(f"{by} below {named}", f"{named}减 {by}").in_(lang)
    return Text(f"{by} above {named}", f"{named}加 {by}").in_(lang)


# --- events -------------------------------------------------------------------------------


def unseen(leaf: EventLeaf, vocabulary: Vocabulary, lang: str) -> str:
    """That an event was not seen: ``no XID 79 was seen``, ``not seen: NCCL ... complained (kind ib_verbs)``."""
    if called := _coded(leaf, lang):
        return Text(f"no {called} was seen", f"未见 {called}").in_(lang)
    return Text("not seen: ", "未见：").in_(lang) + _happening(leaf, vocabulary, lang)


def asked(leaf: Leaf, vocabulary: Vocabulary, lang: str) -> str:
    """What a leaf asks for, nothing of it known: ``core temperature: at least 80 C``, ``XID 79 in the log``."""
    if isinstance(leaf, EventLeaf):
        said = _coded(leaf, lang) or _happening(leaf, vocabulary, lang)
        return Text(f"that this was not seen: {said}", f"未出现：{said}").in_(lang) if leaf.negated else said
    name = meaning(leaf.fact, vocabulary, lang)
    if isinstance(leaf, KnownLeaf):
        return name
    value = wanted(leaf, vocabulary, lang)
    return f"{name}{colon(lang)}{value}" if value else name


def _coded(leaf: EventLeaf, lang: str) -> str:
    """An event that a number names."""
    if leaf.event not in ("xid", "sxid"):
        return ""
    for test in leaf.where:
        if test.field == "code" and test.op in (Op.IS, Op.IN):
            codes = test.value if isinstance(test.value, tuple) else (test.value,)
            rest = len(codes) - VALUES
            shown = [
                *map(str, codes[:VALUES]),
                *([Text(f"{rest} more", f"另外 {rest} 个").in_(lang)] if rest > 0 else []),
            ]
            return f"{leaf.event.upper()} {listed(shown, lang)}"
    return ""


def _happening(leaf: EventLeaf, vocabulary: Vocabulary, lang: str) -> str:
    said = meaning(leaf.event, vocabulary, lang)
    said = said if lang == "zh" or not re.match(r"(?:An? |The |One |Some )", said) else said[:1].lower() + said[1:]
    tests = [t for t in (_test(t, lang) for t in sorted(leaf.where, key=lambda t: t.field)[:2]) if t]
    return said + (aside(listed(tests, lang), lang) if tests else "")


def _test(test: FieldTest, lang: str) -> str:
    if test.op not in (Op.IS, Op.IN) or isinstance(test.value, bool):
        return ""
    values = test.value if isinstance(test.value, tuple) else (test.value,)
    shown = [clean(str(v)) for v in values[:VALUES]]
    return f"{test.field} {Text(' or ', ' 或 ').in_(lang).join(shown)}"


def facts_named(names: Mapping[str, None] | list[str], vocabulary: Vocabulary, lang: str, most: int = 3) -> str:
    """Several facts by what they are."""
    every = list(dict.fromkeys(meaning(name, vocabulary, lang) for name in names))
    rest = len(every) - most
    return listed(
        [*every[:most], *([Text(f"{rest} more", f"另有 {rest} 项").in_(lang)] if rest > 0 else [])], lang, ";"
    )
