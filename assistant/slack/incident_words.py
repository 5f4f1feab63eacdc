"""What somebody wants of incidents: ``incident note 3 ...``, ``open an incident``, ``note: ...``, in both languages. Pure."""

from __future__ import annotations

import re
from typing import NamedTuple

from assistant.slack.words import ToldError
from knowledge.language import Text

FIRST = ("incident", "incidents", "事件", "open", "开立事件", "新建事件")
_LEAD = re.compile(r"(?i)^(?:incidents?(?!\w)|事件)\s*[:：]?\s*(.*)$", re.DOTALL)
_OPEN = re.compile(
    r"(?i)^(?:open|开立|新建)\s*(?:an?\s+|one\s+)?(?:new\s+)?(?:incident|事件)\s*[:：]?\s*(.*)$", re.DOTALL
)
NOTE = re.compile(r"(?i)^(?:note|备注)\s*[:：]\s*(.+)$", re.DOTALL)
NUMBER = re.compile(r"^#?(\d{1,9})(?!\w)\s*(.*)$", re.DOTALL)
_VERBS = {
    "list": ("list", "ls", "列表", "列出"), "open": ("open", "new", "开立", "新建"), "show": ("show", "查看", "显示"),
    "note": ("note", "备注"), "close": ("close", "关闭"), "severity": ("severity", "级别"), "owner": ("owner", "负责人"),
    "status": ("status", "状态"), "link": ("link", "关联"), "similar": ("similar", "类似"), "report": ("report", "报告"),
    "run": ("run", "walk", "处理", "执行"), "runbook": ("runbook", "手册"), "step": ("step", "步骤"),
}  # fmt: skip
HOW = Text(
    "incident [list | list all], open [TITLE], NUMBER, note NUMBER TEXT, close NUMBER [HOW IT ENDED], severity NUMBER error, "
    "owner NUMBER me, status NUMBER working, link NUMBER OTHER, runbook NUMBER ID, step NUMBER STEP skipped, similar NUMBER, report NUMBER, run NUMBER [NODE]",
    "incident [列表 | 列表 all]、开立 [标题]、编号、备注 编号 文字、关闭 编号 [结果]、级别 编号 error、负责人 编号 me、"
    "状态 编号 working、关联 编号 另一编号、手册 编号 ID、步骤 编号 步骤名 skipped、类似 编号、报告 编号、处理 编号 [节点]",
)


class Wish(NamedTuple):
    """What somebody wants of incidents. `number` 0: the one that the thread is about."""

    verb: str
    number: int = 0
    words: str = ""


def wish(text: str) -> Wish | None:
    """What a command or a sentence asks for; None when it is about something else. ToldError when it is not understood."""
    text = text.strip()
    if found := _OPEN.match(text):
        return Wish("open", 0, found[1].strip())
    if found := NOTE.match(text):
        return Wish("note", 0, found[1].strip())
    lead = _LEAD.match(text)
    if lead is None:
        return None
    rest = lead[1].strip()
    if not rest:
        return Wish("list")
    if found := NUMBER.match(rest):
        return Wish("show", int(found[1]))
    verb, rest = _verb(rest)
    if verb in ("list", "open"):
        return Wish(verb, 0, rest)
    found = NUMBER.match(rest)
    return Wish(verb, int(found[1]), found[2].strip()) if found else Wish(verb, 0, rest)


def _verb(rest: str) -> tuple[str, str]:
    head, _, tail = rest.partition(" ")
    for verb, names in _VERBS.items():
        if head.casefold().rstrip(":：") in names:
            return verb, tail.strip()
        for name in names:
            if not name.isascii() and rest.startswith(name):
                return verb, rest.removeprefix(name).lstrip(" :：")
    raise ToldError(Text("This is nothing that incidents know.", "无法识别该事件操作。"), HOW)
