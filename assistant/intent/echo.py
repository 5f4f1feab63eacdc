"""What was understood, in one line: ``diagnose: training or inference is slow, pid 4242``."""

from __future__ import annotations

import re
from dataclasses import replace

from assistant.intent.query import Assumed, Intent, Query
from assistant.intent.symptoms import without
from knowledge.language import Text
from knowledge.lazy import lazy

_INTENTS = {
    Intent.EXPLAIN: Text("explain", "解释"), Intent.DIAGNOSE: Text("diagnose", "诊断"), Intent.VERDICT: Text("can it be used", "能否继续使用"),
    Intent.FIX: Text("how to fix or set it", "如何处理"), Intent.PROBE: Text("show", "查看"), Intent.HISTORY: Text("what happened before", "查看历史"),
    Intent.RUNBOOK: Text("runbook", "操作手册"), Intent.COST: Text("cost", "费用"), Intent.HELP: Text("help", "帮助"),
    Intent.UNKNOWN: Text("not understood", "未能理解"), Intent.WHY: Text("why", "为什么"), Intent.EVIDENCE: Text("evidence", "证据"),
    Intent.CONFIDENCE: Text("how sure", "有多确定"), Intent.WHATIF: Text("what if", "假设"), Intent.WHYNOT: Text("why not", "为什么不是"),
    Intent.RERUN: Text("run again", "重新检查"), Intent.RETARGET: Text("the same for", "换个对象"), Intent.ALTERNATIVES: Text("what else", "其他可能"),
    Intent.NEXT: Text("what next", "下一步"), Intent.CONFIRM: Text("yes", "确认"), Intent.DENY: Text("no", "否"),
    Intent.CANCEL: Text("cancel", "取消"), Intent.UNDO: Text("undo", "撤销"), Intent.EXPORT: Text("export", "导出"),
    Intent.WHICH: Text("which", "是哪一个"), Intent.EVENTS: Text("what was logged", "发生了什么"), Intent.SUMMARY: Text("summary", "总结"),
    Intent.CAUSE: Text("hardware or software", "硬件还是软件"),
}  # fmt: skip
_SLOTS = {"since": Text("since", "时间"), "job": Text("job", "作业"), "process": Text("process", "进程"), "file": Text("file", "文件"),
          "node": Text("node", "节点"), "operator": Text("operator", "算子")}  # fmt: skip
_TIMES = {"good": Text("the last good check", "上次正常的检查"), "boot": Text("the last boot", "上次启动")}
_ASKS_TOPIC = frozenset({Intent.EXPLAIN, Intent.FIX, Intent.RUNBOOK})
_VERBS = frozenset(
    {Intent.EXPLAIN, Intent.PROBE, Intent.RETARGET, Intent.EXPORT, Intent.WHATIF}
)  # an object follows at once
_LONG = 48  # characters of what a fact means, at most; the name says it shorter
_SHOWN = 6  # values of one slot


def echo(query: Query) -> Query:
    """The query with its echo."""
    return replace(query, echo=Text(_line(query, "en"), _line(query, "zh")))


def _line(query: Query, lang: str) -> str:
    beside = Text("; also ", "；另有 ").in_(lang)
    return beside.join(dict.fromkeys(_asked(q, lang) for q in (query, *query.also)))


def _asked(query: Query, lang: str) -> str:
    from assistant.render.labels import aside

    zh = lang == "zh"
    head = _INTENTS[query.intent].in_(lang)
    slots = [(name, values) for name, values in query.slots.named() if not (query.assumed and name in ("xid", "sxid"))]
    parts = [
        *_about(query, lang),
        *dict.fromkeys(_assumed(a, lang) + (aside(a.of, lang) if a.of else "") for a in query.assumed),
    ]
    for name, values in slots:
        said = (_TIMES[v].in_(lang) if name == "since" and v in _TIMES else str(v) for v in values[:_SHOWN])
        shown = ", ".join(said) + (" ..." if len(values) > _SHOWN else "")
        word = _SLOTS[name].in_(lang) if name in _SLOTS else name
        parts.append(f"{word} {shown}")
    parts = [p for p in parts if p]
    left = _unread(query, lang)
    if not parts:
        return f"{head}{left}"
    if zh:
        return f"{head}：{'，'.join(parts)}{left}"
    return f"{head}{' ' if query.intent in _VERBS else ': '}{', '.join(parts)}{left}"


def _unread(query: Query, lang: str) -> str:
    """What was stated and is no fact here, in the words in which it was said."""
    named = (
        set()
        if query.intent is not Intent.DIAGNOSE or not query.symptoms
        else {*query.unread} - {*without(query.unread)}
    )
    left = [
        c for c in query.unread if c not in named or any(map(str.isdigit, c))
    ]  # a symptom was understood, a value was not
    if not left:
        return ""
    said = ", ".join(f'"{clause}"' for clause in left[:2])
    return {"zh": f"；未能作为事实读取：{said}"}.get(lang, f"; not taken as a fact: {said}")


def _about(query: Query, lang: str) -> list[str]:
    """What the question is about, apart from the things that it names."""
    codes = query.slots.xid or query.slots.sxid
    if query.intent is Intent.WHYNOT and not codes and (suspect := _suspect(query.text)) is not None:
        return [suspect.in_(lang)]
    if query.symptoms:
        return [_title(query, f"symptom {query.symptoms[0]}", lang)]
    if query.intent in _ASKS_TOPIC and query.topics and not codes:
        return [query.topics[0].title.in_(lang)]
    if query.intent is Intent.EXPLAIN and not query.topics and not codes and _VALUE.search(query.text):
        return [Text("the figures told", "所述数值").in_(lang)]
    return [_fact(name, lang) for name in query.facts[:2]] if query.intent is Intent.PROBE else []


_VALUE = lazy("[0-9]")


def _suspect(text: str) -> Text | None:
    from knowledge.suspects import suspected

    found = suspected(text)
    return found.title if found is not None else None


def _fact(name: str, lang: str) -> str:
    """What a fact is, in a few words; its name where that takes many."""
    from assistant.render.meanings import meaning
    from knowledge.facts import vocabulary

    said = meaning(name, vocabulary(), lang)
    if len(said) > _LONG:
        return name
    said = said.removeprefix("Whether ") if lang != "zh" else said
    return said[:1].lower() + said[1:] if lang != "zh" and said[1:2].islower() else said


def _assumed(a: Assumed, lang: str) -> str:
    """An assumption: ``no XID 79``, ``enforced power limit: 300 W``."""
    from knowledge.facts import vocabulary

    spec = vocabulary().get(a.name)
    code = a.name.upper() if a.name in ("xid", "sxid") else ""
    if code:
        said = f"{code} {a.value}".rstrip()
        return Text(f"no {said}" if a.op == "none" else said, f"没有 {said}" if a.op == "none" else f"出现 {said}").in_(
            lang
        )
    if spec is None:
        words = {"above": Text("above ", "大于 "), "below": Text("below ", "小于 "), "none": Text("none ", "无 ")}
        return f"{a.name}{'：' if lang == 'zh' else ' is '}{words.get(a.op, Text('', '')).in_(lang)}{a.value}".rstrip()
    if a.op == "none":
        return Text(f"no {_fact(a.name, 'en')}", f"没有{_fact(a.name, 'zh')}").in_(lang)
    value = {"true": Text("yes", "是"), "false": Text("no", "否")}.get(a.value.casefold(), Text(a.value, a.value)).in_(
        lang
    )
    unit = (
        f" {spec.unit}"
        if spec.unit not in ("", "count", "ratio", "percent") and a.value.replace(".", "", 1).isdigit()
        else ""
    )
    by = {"above": Text("above ", "大于 "), "below": Text("below ", "小于 ")}.get(a.op, Text("", "")).in_(lang)
    is_ = "：" if lang == "zh" else ": " if spec.type == "bool" else " is "
    return f"{_fact(a.name, lang)}{is_}{by}{value}{unit}"


def _title(query: Query, identifier: str, lang: str) -> str:
    """A title within the line, up to its colon."""
    title = next((t.title for t in query.topics if t.id == identifier), None)
    said = re.split(": |：", title.in_(lang), maxsplit=1)[0] if title else ""
    return said if lang == "zh" or not said[1:2].islower() else said[0].lower() + said[1:]
