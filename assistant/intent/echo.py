"""What was understood, in one line: ``diagnose slow training, pid 4242``."""

from __future__ import annotations

from dataclasses import replace

from assistant.intent.query import Intent, Query
from knowledge.language import Text

_INTENTS = {
    Intent.EXPLAIN: Text("explain", "解释"), Intent.DIAGNOSE: Text("diagnose", "诊断"), Intent.VERDICT: Text("can it be used", "能否继续使用"),
    Intent.FIX: Text("how to fix or set", "如何处理"), Intent.PROBE: Text("show", "查看"), Intent.HISTORY: Text("what happened before", "查看历史"),
    Intent.RUNBOOK: Text("runbook", "操作手册"), Intent.COST: Text("cost", "费用"), Intent.HELP: Text("help", "帮助"),
    Intent.UNKNOWN: Text("not understood", "未能理解"), Intent.WHY: Text("why", "为什么"), Intent.EVIDENCE: Text("evidence", "证据"),
    Intent.CONFIDENCE: Text("how sure", "有多确定"), Intent.WHATIF: Text("what if", "假设"), Intent.WHYNOT: Text("why not", "为什么不是"),
    Intent.RERUN: Text("run again", "重新检查"), Intent.RETARGET: Text("the same for", "换个对象"), Intent.ALTERNATIVES: Text("what else", "其他可能"),
    Intent.NEXT: Text("what next", "下一步"), Intent.CONFIRM: Text("yes", "确认"), Intent.DENY: Text("no", "否"),
    Intent.CANCEL: Text("cancel", "取消"), Intent.UNDO: Text("undo", "撤销"), Intent.EXPORT: Text("export", "导出"),
}  # fmt: skip
_SLOTS = {"since": Text("since", "时间"), "job": Text("job", "作业"), "process": Text("process", "进程"), "file": Text("file", "文件"),
          "node": Text("node", "节点")}  # fmt: skip
_ASKS_TOPIC = frozenset({Intent.EXPLAIN, Intent.FIX, Intent.RUNBOOK})
_SHOWN = 6  # values of one slot


def echo(query: Query) -> Query:
    """The query with its echo."""
    return replace(query, echo=Text(_line(query, "en"), _line(query, "zh")))


def _line(query: Query, lang: str) -> str:
    zh = lang == "zh"
    head = _INTENTS[query.intent].in_(lang)
    parts = []
    if query.symptoms:
        parts.append(_title(query, f"symptom {query.symptoms[0]}", lang))
    elif query.intent in _ASKS_TOPIC and query.topics and not (query.slots.xid or query.slots.sxid):
        parts.append(query.topics[0].title.in_(lang))
    elif query.intent is Intent.PROBE:
        parts += query.facts[:2]
    parts += (f"{a.name} {a.op} {a.value}".rstrip() for a in query.assumed)
    for name, values in query.slots.named():
        shown = ", ".join(map(str, values[:_SHOWN])) + (" ..." if len(values) > _SHOWN else "")
        word = _SLOTS[name].in_(lang) if name in _SLOTS else name
        parts.append(f"{word} {shown}")
    parts = [p for p in parts if p]
    if not parts:
        return head
    return f"{head}：{'，'.join(parts)}" if zh else f"{head} {', '.join(parts)}"


def _title(query: Query, identifier: str, lang: str) -> str:
    title = next((t.title for t in query.topics if t.id == identifier), None)
    said = title.in_(lang) if title else ""
    return said if lang == "zh" or not said[1:2].islower() else said[0].lower() + said[1:]
