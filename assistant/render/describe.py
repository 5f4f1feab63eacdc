"""Conditions in words: what a rule asks of the facts."""

from __future__ import annotations

from knowledge.units import format_duration
from rules.condition import All, Any_, Condition, EventLeaf, FactLeaf, KnownLeaf, On, Op, Operand, Reference, Take

_OPS: dict[Op, tuple[str, str]] = {
    Op.IS: ("is", "为"),
    Op.IS_NOT: ("is not", "不为"),
    Op.IN: ("is one of", "属于"),
    Op.NOT_IN: ("is none of", "不属于"),
    Op.AT_LEAST: ("is at least", "不小于"),
    Op.AT_MOST: ("is at most", "不大于"),
    Op.ABOVE: ("is above", "大于"),
    Op.BELOW: ("is below", "小于"),
    Op.CONTAINS: ("contains", "包含"),
    Op.MATCHES: ("matches", "匹配"),
    Op.VERSION_BELOW: ("is older than", "早于版本"),
    Op.VERSION_AT_LEAST: ("is at least version", "不早于版本"),
}
_WORDS: dict[str, tuple[str, str]] = {
    "all": ("all of", "全部满足"),
    "any": ("any of", "任一满足"),
    "not": ("not: ", "非："),
    "where": ("where", "其中"),
    "times": ("at least {n} times", "至少 {n} 次"),
    "most": ("at most {n} times", "至多 {n} 次"),
    "same": ("with the same {x}", "且 {x} 相同"),
    "within": ("within {x}", "在 {x} 内"),
    "after": ("after", "之前有"),
    "known": ("{x} is known", "{x} 已知"),
    "event": ("{x} happened", "出现 {x}"),
    "node": ("anywhere on the node", "在本节点任意处"),
    "others": ("on another one of the node", "在本节点的其他对象上"),
    "peers": ("over the median of its peers", "相对同伴中位数"),
    "on": ("({x})", "（{x}）"),
}


def _w(key: str, lang: str) -> str:
    return _WORDS[key][lang == "zh"]


def lines(condition: Condition, lang: str, depth: int = 0) -> list[str]:
    """The tree as indented lines."""
    pad = "  " * depth
    if isinstance(condition, All | Any_):
        head = _w("all" if isinstance(condition, All) else "any", lang)
        return [f"{pad}{head}:", *(line for c in condition.children for line in lines(c, lang, depth + 1))]
    return [pad + leaf(condition, lang)]


def leaf(condition: EventLeaf | FactLeaf | KnownLeaf, lang: str) -> str:
    """One leaf as a sentence."""
    no = _w("not", lang) if condition.negated else ""
    if isinstance(condition, KnownLeaf):
        return no + _w("known", lang).format(x=condition.fact)
    if isinstance(condition, EventLeaf):
        return no + _event(condition, lang)
    return no + _fact(condition, lang)


def _event(e: EventLeaf, lang: str) -> str:
    parts = [_w("event", lang).format(x=e.event)]
    if e.where:
        tests = ", ".join(
            f"{t.field} {_OPS[t.op][lang == 'zh']} {_value(t.value)}" for t in sorted(e.where, key=lambda t: t.field)
        )
        parts.append(f"{_w('where', lang)} {tests}")
    if e.at_least > 1:
        parts.append(_w("times", lang).format(n=e.at_least))
    if e.at_most is not None:
        parts.append(_w("most", lang).format(n=e.at_most))
    if e.same:
        parts.append(_w("same", lang).format(x=", ".join(e.same)))
    if e.within:
        parts.append(_w("within", lang).format(x=format_duration(e.within)))
    if e.on is not On.SELF:
        parts.append(_w(str(e.on), lang))
    if e.after:
        parts.append(f"{_w('after', lang)} {_event(e.after, lang)}")
    return " ".join(parts)


def _fact(f: FactLeaf, lang: str) -> str:
    take = "" if f.take is Take.LAST else f"{f.take} "
    if f.take is Take.PERCENTILE:
        take = f"p{f.percentile:g} "
    parts = [f"{take}{f.fact}", _OPS[f.op][lang == "zh"], _value(f.value)]
    if f.take is Take.RATE:
        parts.append(f"/ {format_duration(f.per)}")
    if f.peer_ratio:
        parts.append(_w("peers", lang))
    if f.within:
        parts.append(_w("within", lang).format(x=format_duration(f.within)))
    if f.each:
        many = f"{f.each.kind} {f.each.number:g}" if f.each.number else f.each.kind
        where = " > ".join(f.via) if f.via else str(f.on)
        parts.append(_w("on", lang).format(x=f"{many}, {where}"))
    return " ".join(parts)


def _value(value: Operand | tuple[object, ...]) -> str:
    if isinstance(value, Reference):
        times = f" x {value.times:g}" if value.times != 1 else ""
        plus = f" {value.plus:+g}" if value.plus else ""
        return f"{value.fact}{times}{plus}"
    if isinstance(value, tuple):
        return ", ".join(map(str, value)) or "[]"
    if value == "":
        return '""'
    return str(value).lower() if isinstance(value, bool) else str(value)
