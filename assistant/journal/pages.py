"""The journal as pages (text, Markdown, HTML) and as plain data (JSON)."""

from __future__ import annotations

import json
import shlex
from collections.abc import Sequence
from typing import Any

from assistant.journal.chain import Record
from assistant.journal.verify import Checked
from assistant.render.labels import colon
from assistant.render.sheet import Code, Fields, Heading, Paragraph, Part, Sheet, Table
from assistant.render.times import iso, readable
from knowledge.language import Text
from knowledge.text import clean, excerpt

KINDS = {
    "intent": Text("intent", "意图"), "result": Text("result", "结果"), "requested": Text("requested", "申请"),
    "approved": Text("approved", "批准"), "refused": Text("refused", "拒绝"), "expired": Text("expired", "过期"),
    "used": Text("used", "已使用"), "note": Text("note", "备注"),
}  # fmt: skip
WIDE = 160  # characters of a summary


def many(records: Sequence[Record], lang: str) -> Sheet:
    """A list, the oldest first."""

    def t(en: str, zh: str) -> str:
        return Text(en, zh).in_(lang)

    title, data = t("Journal", "日志账本"), {"records": [plain(r) for r in records]}
    if not records:
        return Sheet(t("No such record is in the journal.", "日志账本中没有符合条件的记录。"), (), data)
    head = (t("no", "编号"), t("when", "时间"), t("kind", "类别"), t("who", "操作人"), t("node", "节点"),
            t("what", "内容"), t("subject", "事项"))  # fmt: skip
    rows = tuple(
        (str(r.seq), _moment(r.at), kind(r, lang), clean(f"{r.who} ({r.surface})"), clean(r.text("node")) or "–",
         summary(r, lang), clean(r.subject))
        for r in records
    )  # fmt: skip
    return Sheet(title, (Table(head, rows),), data)


def one(subject: str, records: Sequence[Record], lang: str) -> Sheet:
    """Everything about one subject."""
    if not records:
        return many(records, lang)
    parts: list[Part] = []
    for r in records:
        parts.append(
            Heading(f"#{r.seq} {_moment(r.at)} {kind(r, lang)}{colon(lang)}{clean(r.who)} ({clean(r.surface)})")
        )
        argv = r.data.get("argv")
        if isinstance(argv, list):
            parts.append(Code((clean(shlex.join(map(str, argv))),)))
        parts.append(Fields(tuple((clean(name), _shown(v)) for name, v in r.data.items() if name != "argv")))
    title = Text(f"Journal of {subject}", f"{subject} 的日志账本").in_(lang)
    return Sheet(clean(title), tuple(parts), {"records": [plain(r) for r in records]})


def checked(found: Checked, lang: str, source: str) -> Sheet:
    """What `verify` found: the verdict first."""

    def t(en: str, zh: str) -> str:
        return Text(en, zh).in_(lang)

    head, n, fault = found.head, found.head.seq, found.fault
    if fault is not None:
        said = fault.said()
        verdict = t(f"The journal is not as it was written: {said.en}.", f"日志账本与写入时不一致：{said.in_('zh')}。")
        before = t(f"Sound before it: {n}.", f"在此之前完好的记录：{n} 条。")
    elif n:
        verdict = t(
            f"The journal is as it was written: one chain, newest record {n}.",
            f"日志账本与写入时一致：共 {n} 条记录，链完整。",
        )
        before = ""
    else:
        verdict, before = t("The journal is empty.", "日志账本为空。"), ""
    fields = (
        (t("source", "来源"), clean(source)), (t("first", "最早"), _moment(found.first_at)), (t("last", "最新"), _moment(found.last_at)),
        (t("head", "链头"), str(head) if n else ""),
    )  # fmt: skip
    keep = t(
        "Keep the head elsewhere: journal verify --head SEQ:HASH then also finds a journal that was written anew.",
        "请把链头另存他处：之后 journal verify --head SEQ:HASH 也能发现整本重写。",
    )
    parts: list[Part] = [*([Paragraph(before)] if before else []), Fields(fields)]
    parts += [Paragraph(keep)] if n and fault is None else []
    wrong = (
        {"seq": fault.seq, "wrong": str(fault.wrong), "line": fault.line or None, "text": fault.said().in_(lang)}
        if fault
        else None
    )
    data = {
        "source": source, "sound": fault is None, "records": n, "head": {"seq": n, "hash": head.hash}, "fault": wrong,
        "first": iso(found.first_at) if n else None, "last": iso(found.last_at) if n else None,
    }  # fmt: skip
    return Sheet(verdict, tuple(parts), data)


def plain(r: Record) -> dict[str, Any]:
    """A record for machines."""
    return {
        "seq": r.seq, "at": iso(r.at), "kind": r.kind, "subject": r.subject, "who": r.who, "surface": r.surface,
        "data": dict(r.data), "previous": r.previous, "hash": r.hash,
    }  # fmt: skip


def kind(r: Record, lang: str) -> str:
    """The kind of a record."""
    return KINDS[r.kind].in_(lang) if r.kind in KINDS else clean(r.kind)


def summary(r: Record, lang: str) -> str:
    """What a record says, in a line."""
    said = [r.text("what")]
    argv = r.data.get("argv")
    said += [shlex.join(map(str, argv))] if isinstance(argv, list) else []
    if isinstance(code := r.data.get("exit"), int):
        said.append(Text(f"exit {code}", f"退出码 {code}").in_(lang))
    if isinstance(seconds := r.data.get("seconds"), (int, float)):
        said.append(Text(f"{seconds:.1f} s", f"{seconds:.1f} 秒").in_(lang))
    said += [r.text(name) for name in ("command", "outcome", "risk", "consent", "text", "why", "excerpt")]
    return excerpt("; ".join(" ".join(word.split()) for word in said if word), WIDE) or "–"


def _shown(value: Any) -> str:
    if value is None or isinstance(value, str):
        return clean(value or "")
    return clean(json.dumps(value, ensure_ascii=False))


def _moment(ns: int) -> str:
    return readable(iso(ns - ns % 10**9)) if ns else ""
