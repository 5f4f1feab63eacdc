"""Facts of the vocabulary: what a name means, who tells it, which rules use it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache

from assistant.render.labels import scope_name
from assistant.render.sheet import Fields, Items, Paragraph, Part, Sheet
from knowledge.errors import UsageError
from knowledge.facts import FactSpec, Kind, Type, vocabulary
from knowledge.language import Text
from knowledge.units import format_duration, symbol

KIND = "fact"
HELP = "a name of the fact vocabulary"


def names() -> Iterable[str]:
    """Every fact."""
    return (s.name for s in vocabulary())


def sheet(words: Sequence[str], lang: str) -> Sheet:
    """The page of one fact; a prefix such as ``gpu.ecc`` lists what is under it."""
    if len(words) != 1:
        raise UsageError("fact takes one name", hint="for example: gpudiag explain fact gpu.temperature.core")
    name = words[0].rstrip(".")
    spec = vocabulary().get(name)
    if spec is None and (below := [s for s in vocabulary() if s.name.startswith(f"{name}.")]):
        items = tuple(f"{s.name}: {s.meaning.in_(lang)}" for s in below)
        title = Text(f"{len(below)} facts under {name}", f"{name} 下的 {len(below)} 项事实").in_(lang)
        return Sheet(title, (Items(items),), {"kind": KIND, "names": [s.name for s in below]})
    return _page(vocabulary()[name], lang)


def _page(s: FactSpec, lang: str) -> Sheet:
    def t(en: str, zh: str) -> str:
        return Text(en, zh).in_(lang)

    told = tellers(s, lang)
    parts: list[Part] = [
        Paragraph(s.meaning.in_(lang)),
        Fields((
            (t("about", "对象"), scope_name(s.scope, lang)),
            (t("kind", "类别"), _KINDS[s.kind].in_(lang)),
            (t("value", "取值"), value_words(s, lang)),
            (t("fields", "字段"), ", ".join(f"{n} ({type_name(k, lang)})" for n, k in s.fields.items())),
            (t("too old after", "过期时间"), format_duration(s.max_age) if s.max_age else ""),
            (t("restarts with the driver", "随驱动重载清零"), t("yes", "是") if s.per_boot else ""),
            (t("replaced by", "已由此替代"), s.replaced_by),
            (t("told by", "提供者"), ", ".join(told)),
            (t("asked as", "询问方式"), s.ask.in_(lang) if s.ask else ""),
            (t("used by rules", "相关规则"), ", ".join(users(s.name))),
        )),
    ]  # fmt: skip
    data = {
        "kind": KIND, "name": s.name, "scope": str(s.scope), "type": str(s.type), "fact_kind": str(s.kind), "unit": s.unit,
        "values": list(s.values), "fields": dict(s.fields), "meaning": s.meaning.in_(lang), "told_by": told,
        "rules": users(s.name), "derived": s.derived, "replaced_by": s.replaced_by or None,
    }  # fmt: skip
    return Sheet(s.name, tuple(parts), data)


def tellers(s: FactSpec, lang: str) -> list[str]:
    """Who can tell this fact: input kinds, a computation, a person."""
    from assistant import formats

    out = list(formats.tellers(s.name))
    if s.derived:
        out.append(Text("computed from other facts", "由其他事实推导").in_(lang))
    if s.ask:
        out.append(Text("a person", "人工").in_(lang))
    return out


def users(name: str) -> list[str]:
    """Ids of the shipped rules that mention a fact."""
    return _users().get(name, [])


@cache
def _users() -> dict[str, list[str]]:
    from rules.condition import facts_of
    from rules.loader import load

    out: dict[str, list[str]] = {}
    for rule in load().rules:
        for fact in {f for c in (rule.when, *rule.confirms, *rule.excludes) for f in facts_of(c)}:
            out.setdefault(fact, []).append(rule.id)
    return out


def value_words(s: FactSpec, lang: str) -> str:
    """Type, unit and what may stand there."""
    if s.values:
        return ", ".join(s.values)
    return type_name(s.type, lang) + (f", {symbol(s.unit) or s.unit}" if s.unit else "")


def type_name(word: str, lang: str) -> str:
    """A type in words."""
    return _TYPES[Type(word)].in_(lang)


_KINDS = {
    Kind.STATE: Text("state: changes rarely", "状态：很少变化"),
    Kind.GAUGE: Text("gauge: goes up and down", "量表：可升可降"),
    Kind.COUNTER: Text("counter: only grows until a reset", "计数器：只增，直至复位"),
    Kind.EVENT: Text("event: happens at an instant", "事件：在某一时刻发生"),
    Kind.RELATION: Text("relation: ties two things", "关系：关联两个对象"),
}
_TYPES = {
    Type.BOOL: Text("yes or no", "是或否"),
    Type.INT: Text("whole number", "整数"),
    Type.FLOAT: Text("number", "数值"),
    Type.STR: Text("text", "文本"),
    Type.ENUM: Text("one word of a list", "列表中的一个词"),
    Type.SET: Text("words of a list", "列表中的若干词"),
    Type.EVENT: Text("fields of a log line", "日志行的字段"),
    Type.SUBJECT: Text("another thing", "另一个对象"),
}
