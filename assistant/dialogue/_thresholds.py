"""Thresholds as they would be: a rule rebuilt with other parameters, or with another number in a comparison.

A parameter keeps the bounds that its rule declares; what a site has changed elsewhere in the rule stays changed.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from math import isfinite
from typing import TYPE_CHECKING, Any

from knowledge.errors import nearest_hint
from knowledge.facts import Type, vocabulary
from knowledge.language import Text
from knowledge.record import dataclass
from knowledge.units import measured, symbol
from rules.condition import All, Any_, Condition, FactLeaf, Take, leaves
from rules.loader import RuleSet, build, shipped
from rules.model import Param, Rule

if TYPE_CHECKING:
    from assistant.intent.query import Assumed

SENTENCE = 2000  # characters of a sentence that are looked at
LIMIT_WORDS = frozenset({"limit", "threshold", "the limit", "the threshold", "阈值", "限值", "上限", "下限", "门限"})


@dataclass(frozen=True, slots=True)
class Threshold:
    """A rule as it would be."""

    rule: Rule
    said: Text  # "thermal-margin-low.margin were 10"


def threshold(a: Assumed, ruleset: RuleSet, focus: Rule | None, found: Sequence[Rule] = ()) -> Threshold | Text | None:
    """The rule that an assumption changes; a sentence when it cannot be changed so; None when it is about no rule.

    A name is ``rule-id.param`` or, of the rule in `focus`, a parameter's name or a word for "the limit"; where that
    has none, the thresholds of the rules `found` are named.
    """
    by_id = {r.id: r for r in ruleset.rules}
    rule_id, _, rest = a.name.partition(".")
    rule = by_id.get(rule_id)
    if rule is None:
        name = a.name.strip().casefold()
        if focus is None or not (name in LIMIT_WORDS or any(p.name == name for p in focus.params)):
            return None
        rule, rest = focus, "" if name in LIMIT_WORDS else name
    if rest in LIMIT_WORDS:
        rest = ""
    param = next((p for p in rule.params if p.name == rest), None)
    if param is None and not rest:
        param = _only(rule)
    if param is not None:
        return _param(rule, param, a.value)
    return _comparison(rule, rest, a.value, found)


def meant_limit(a: Assumed, sentence: str, found: Sequence[Rule]) -> Assumed:
    """ "The margin": the one parameter of the rules `found` that the sentence calls by its name; else `a` as it is."""
    if a.name.strip().casefold() not in LIMIT_WORDS:
        return a
    words = set(re.findall(r"[a-z][a-z0-9_]{2,40}", sentence[:SENTENCE].casefold()))
    meant = sorted({f"{r.id}.{p.name}" for r in found for p in r.params if p.name in words - LIMIT_WORDS})
    return a._replace(name=meant[0]) if len(meant) == 1 else a


def with_rules(ruleset: RuleSet, changed: Mapping[str, Rule]) -> RuleSet:
    """`ruleset` with some rules as they would be."""
    return replace(ruleset, rules=tuple(changed.get(r.id, r) for r in ruleset.rules))


def _only(rule: Rule) -> Param | None:
    """The one parameter that "the limit" can mean: not a length of time."""
    numbers = [p for p in rule.params if p.type != "duration"]
    return numbers[0] if len(numbers) == 1 else None


# --- parameters ---------------------------------------------------------------------------


def _param(rule: Rule, param: Param, said: str) -> Threshold | Text:
    value = _read(param, said)
    name = f"{rule.id}.{param.name}"
    if (refused := bounded(name, param, said)) is not None:
        return refused
    plain = shipped().get(rule.id)
    made = _rebuilt(rule, plain, {param.name: value}) if plain is not None else None
    if made is None:
        return Text(
            f"{rule.id} comes from a pack of your own: its parameters are changed in a site file, not here.",
            f"{rule.id} 来自自定义规则包：其参数应在站点文件中修改，不能在此假设。",
        )
    shown = measured(value, param.unit)
    return Threshold(made, Text(f"{name} is {shown}", f"{name} 为 {shown}"))


def bounded(name: str, param: Param, said: str) -> Text | None:
    """Why a parameter cannot have what was said; None when it can."""
    if not param.problem(_read(param, said)):
        return None
    low, high = (measured(x, param.unit) for x in (param.min, param.max))
    return Text(
        f"{name} can be from {low} to {high}, not {said!r}.", f"{name} 的取值范围为 {low} 到 {high}，不能是 {said!r}。"
    )


def _read(param: Param, said: str) -> Any:
    """What somebody said as a value of the parameter's type; as it was said when it is none."""
    word = said.strip()
    if param.type == "duration":
        return word.replace(" ", "")
    digits = word
    for sign in (symbol(param.unit), param.unit, "%"):  # as it is shown, and as the rule writes it
        digits = digits.removesuffix(sign).strip()
    try:
        number = float(digits)
    except ValueError:
        return word
    whole = number.is_integer() and abs(number) < 2**63
    return int(number) if whole and (param.type == "int" or digits.lstrip("+-").isdigit()) else number


def _rebuilt(rule: Rule, plain: tuple[str, dict[str, Any]], override: Mapping[str, Any]) -> Rule | None:
    """`rule` with what `override` changes of its shipped form; None when it is not the shipped rule."""
    file, data = plain
    faults: list[object] = []

    def report(*fault: object) -> None:
        faults.append(fault)

    old, new = (build(data, file, vocabulary(), report, o) for o in ({}, override))
    if (
        old is None
        or new is None
        or faults
        or len(old.confirms) != len(rule.confirms)
        or len(old.excludes) != len(rule.excludes)
    ):
        return None
    merged = [
        _merged(a, b, c)
        for a, b, c in zip(
            (rule.when, *rule.confirms, *rule.excludes), (old.when, *old.confirms, *old.excludes),
            (new.when, *new.confirms, *new.excludes), strict=True,
        )
    ]  # fmt: skip
    kept = [m for m in merged if m is not None]
    if len(kept) != len(merged):
        return None
    n = 1 + len(rule.confirms)
    return replace(rule, when=kept[0], confirms=tuple(kept[1:n]), excludes=tuple(kept[n:]))


def _merged(now: Condition, old: Condition, new: Condition) -> Condition | None:
    """`now` with the fields in which `new` differs from `old`; None where the trees are not alike."""
    if type(now) is not type(old) or type(now) is not type(new):
        return None
    if isinstance(now, All | Any_) and isinstance(old, All | Any_) and isinstance(new, All | Any_):
        if not len(now.children) == len(old.children) == len(new.children):
            return None
        each = [_merged(a, b, c) for a, b, c in zip(now.children, old.children, new.children, strict=True)]
        kept = tuple(e for e in each if e is not None)
        return replace(now, children=kept) if len(kept) == len(each) else None
    changes = {f.name: getattr(new, f.name) for f in fields(now) if getattr(new, f.name) != getattr(old, f.name)}
    return replace(now, **changes) if changes else now


# --- comparisons --------------------------------------------------------------------------


def _comparison(rule: Rule, fact: str, said: str, found: Sequence[Rule]) -> Threshold | Text:
    """A number that a rule compares a fact with: any, it is no parameter and has no bounds."""
    numeric = [
        x for x in leaves(rule.when) if _numeric(x) and (not fact or (isinstance(x, FactLeaf) and x.fact == fact))
    ]
    names = sorted(
        {
            *(p.name for p in rule.params),
            *(x.fact for x in leaves(rule.when) if isinstance(x, FactLeaf) and _numeric(x)),
        }
    )
    if len(numeric) != 1 or not isinstance(numeric[0], FactLeaf):
        hint = nearest_hint(fact, names) if names else ""
        said_names = ", ".join(names[:8])
        if not names:
            others = dict.fromkeys(f"{r.id}.{p.name}" for r in found for p in r.params)
            near = ", ".join(list(others)[:4])
            more_en, more_zh = (
                (f" Thresholds of what was found: {near}.", f"已有发现的阈值：{near}。") if near else ("", "")
            )
            return Text(
                f"{rule.id} compares with no number that could be another.{more_en}",
                f"{rule.id} 没有可以改变的数值阈值。{more_zh}",
            )
        return Text(
            f"{rule.id} has no one threshold called {fact or 'the limit'!r}: {hint or said_names}.",
            f"{rule.id} 没有唯一的阈值 {fact or '阈值'!r}：可用的有 {said_names}。",
        )
    leaf = numeric[0]
    try:
        read = float(said.strip().rstrip("%"))
    except ValueError:
        return Text(f"{said!r} is not a number.", f"{said!r} 不是数字。")
    if not isfinite(read):
        return Text(f"{said!r} is not a number.", f"{said!r} 不是数字。")
    whole = vocabulary()[leaf.fact].type is Type.INT and leaf.take is Take.LAST and read.is_integer()
    number = int(read) if whole else read
    when = _replaced(rule.when, leaf, replace(leaf, value=number))
    unit = vocabulary()[leaf.fact].unit
    shown = measured(number, unit)
    return Threshold(
        replace(rule, when=when), Text(f"{rule.id} compared {leaf.fact} with {shown}", f"{rule.id} 对 {leaf.fact} 的阈值为 {shown}"),
    )  # fmt: skip


def _numeric(leaf: object) -> bool:
    return isinstance(leaf, FactLeaf) and isinstance(leaf.value, int | float) and not isinstance(leaf.value, bool)


def _replaced(tree: Condition, old: FactLeaf, new: FactLeaf) -> Condition:
    if isinstance(tree, All | Any_):
        return replace(tree, children=tuple(_replaced(c, old, new) for c in tree.children))
    return new if tree is old else tree
