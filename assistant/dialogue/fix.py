"""What to do about a named problem, or how something is set: the vendor's word, the command, its risk, the first steps.

Nothing is looked at. With a diagnosis at hand, and nothing else named, it is about the finding in focus.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from assistant.dialogue import _remedy
from assistant.dialogue._pages import (
    bare_numbers,
    choose,
    codes,
    data_of,
    follow_ups,
    meant,
    outright,
    slot_values,
    tasks_first,
    text_in,
    topics_of,
    unknown,
)
from assistant.intent.query import Topic
from assistant.render.labels import label
from assistant.render.sheet import Code, Part
from assistant.reply import Reply

if TYPE_CHECKING:
    from assistant.dialogue import Turn

# Kinds whose page holds an action, or leads to one.
KINDS = ("howto", "xid", "sxid", "rule", "nccl", "pytorch", "cuda", "clock", "symptom", "runbook", "dcgm", "action")


def answer(turn: Turn) -> Reply:
    """The action for what is named; else for the finding that the talk is about; else what is closest."""
    query, lang = turn.query, turn.lang
    named = codes(query) or tuple(f"xid {n}" for n in bare_numbers(query))
    if named:
        found = tuple(Topic(name, 0.0) for name in named)
        return _several(turn, found) if len(found) > 1 else _one(turn, found[0], ())
    if name := outright(query):
        return _one(turn, Topic(name, 0.0), ())
    candidates = topics_of(query, KINDS)
    clear = tasks_first((t for t in candidates if meant(t, query)), query)
    if turn.diagnosis is not None and turn.finding is not None and not clear:
        return _finding(turn)
    if query.unsure and len(candidates) > 1:
        return choose(query, candidates, lang, "fix")
    if not clear:
        return unknown(query, candidates, lang, "fix")
    return _one(turn, clear[0], candidates)


def _finding(turn: Turn) -> Reply:
    """What to do now about the finding in focus: the answer to "what next"."""
    from assistant.dialogue.next import answer as next_answer

    return next_answer(turn)


def _one(turn: Turn, topic: Topic, others: tuple[Topic, ...]) -> Reply:
    lang = turn.lang
    if topic.kind == "howto":
        return task(turn, topic)
    remedy = _remedy.of(topic.id, turn.ruleset, lang)
    if remedy is None:
        if topic.kind in ("xid", "sxid"):
            from assistant.dialogue.explain import answer as explained

            return explained(turn)
        return unknown(turn.query, [t for t in others if t.id != topic.id], lang, "fix")
    return Reply(
        lang, _remedy.headline(remedy, lang), _remedy.parts(remedy, slot_values(turn), lang),
        suggestions=_suggest(topic, remedy, lang), data=data_of("fix", [topic.id], **_remedy.plain(remedy, lang)),
    )  # fmt: skip


def task(turn: Turn, topic: Topic) -> Reply:
    """A task: the command in the first sentence, then the steps."""
    from assistant.topics.howto import page
    from knowledge.howto import howtos
    from knowledge.runbook import Risk

    h, lang = howtos()[topic.name], turn.lang
    sheet = page(h, lang, slot_values(turn))
    risk = "" if h.risk is Risk.SAFE else label(str(h.risk), lang)
    return Reply(
        lang, h.about.in_(lang), tuple(_spelled(p) for p in sheet.parts[1:]), suggestions=follow_ups(topic.id, lang),
        data=data_of("fix", [topic.id], risk=str(h.risk), risk_text=risk, entry=sheet.data["entry"]),
    )  # fmt: skip


def _spelled(part: Part) -> Part:
    """Commands with what is not known in capitals, as in a manual."""
    return Code(tuple(_remedy.ready(line, {}) for line in part.lines)) if isinstance(part, Code) else part


def _several(turn: Turn, topics: tuple[Topic, ...]) -> Reply:
    """Several codes: the action of each, side by side."""
    from assistant.dialogue import _compare

    reply = _compare.codes([t.id for t in topics], turn.lang)
    return Reply(
        turn.lang, reply.headline, reply.parts, settled=reply.settled, suggestions=reply.suggestions,
        data={**reply.data, "answer": "fix"},
    )  # fmt: skip


def _suggest(topic: Topic, remedy: _remedy.Remedy, lang: str) -> tuple[str, ...]:
    first = (
        (text_in(lang, f"show runbook {remedy.runbook}", f"查看处置手册 {remedy.runbook}"),) if remedy.runbook else ()
    )
    explain = () if topic.kind == "action" else (text_in(lang, f"explain {topic.id}", f"解释 {topic.id}"),)
    return (*first, *explain, text_in(lang, "check this node", "检查本节点"))[:3]
