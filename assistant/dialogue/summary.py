"""A summary, for a ticket or somebody else: what, where, since when, the line that says so, what to do, what is open."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from assistant.diagnosis import bad_roots, forbidding
from assistant.dialogue._scope import scoped
from assistant.dialogue._words import LINE, Words, causes_of, finding_data, nothing_yet, suggest, words
from assistant.render import lines
from assistant.render.cells import cut
from assistant.render.labels import aside, label, listed
from assistant.render.sheet import Fields
from assistant.reply import Reply
from knowledge.observation import Event, Observation, Scope, Status
from knowledge.text import clean
from rules.model import Bucket

if TYPE_CHECKING:
    from assistant.dialogue import Turn
    from rules.engine import Finding

MORE = 3  # further findings


def answer(turn: Turn) -> Reply:
    """The verdict, and the worst finding in rows that a ticket asks for."""
    if turn.diagnosis is None:
        return nothing_yet(turn)
    w = words(turn)
    about = scoped(turn.diagnosis, turn.query.slots).about
    bad = [*forbidding(about), *bad_roots(about)]
    rows = _rows(w, bad) if bad else _fine(w)
    return Reply(
        turn.lang,
        clean(turn.diagnosis.verdict.text.in_(turn.lang)),
        (Fields(tuple(r for r in rows if r[1])),),
        focus=bad[0].id if bad else "",
        settled=turn.diagnosis.settled,
        suggestions=suggest(turn.lang, "why", "evidence", "next"),
        data={"answer": "summary", "findings": [finding_data(f, turn.lang) for f in bad]},
    )  # fmt: skip


def _rows(w: Words, bad: Sequence[Finding]) -> list[tuple[str, str]]:
    f, rest = bad[0], list(bad[1:])
    a = f.advice
    causes = causes_of(f, w.d)[:1]
    rest = [x for x in rest if x not in causes]
    more = [w.title(x) + (aside(do, w.lang) if (do := _do(f, x)) else "") for x in rest[:MORE]]
    more += [label("more_lines", w.lang).format(n=len(rest) - MORE)] if len(rest) > MORE else []
    return [
        (w.t("what", "问题"), f"{w.title(f)}{aside(w.grade(f), w.lang)}"),
        (w.t("node", "节点"), clean(f.subject.host)),
        (w.t("serial", "序列号"), _serial(w, f)),
        (w.t("when", "时间"), _when(w, f)),
        (w.t("evidence", "证据"), _line(w, f)),
        *((w.t("cause", "原因"), _line(w, x)) for x in causes),
        (w.t("do", "动作"), w.action(f)),
        (w.t("command", "命令"), clean(a.command) if a.pasteable else ""),
        (w.t("then", "之后"), listed((t.in_(w.lang) for t in a.then), w.lang, ";")),
        (w.t("also", "另外"), listed(more, w.lang, ";")),
        (w.t("not known", "尚不清楚"), w.gaps(f.missing) if f.missing else ""),
        (w.t("from", "来源"), listed([clean(s) for s in w.d.sources][:3], w.lang)),
    ]  # fmt: skip


def _do(first: Finding, f: Finding) -> str:
    """What a further finding asks for; nothing beside one of the same GPU that only the vendor's support can answer."""
    board = f.subject.up(Scope.GPU)
    settled = (
        first.advice.bucket is Bucket.CONTACT_SUPPORT and board is not None and board == first.subject.up(Scope.GPU)
    )
    return "" if settled else str(f.advice.bucket)


def _serial(w: Words, f: Finding) -> str:
    board = f.subject.up(Scope.GPU)
    o: Observation | None = w.d.facts.current("gpu.serial", board) if board is not None else None
    return clean(str(o.value)) if o is not None and o.status is Status.OK and o.value else ""


def _when(w: Words, f: Finding) -> str:
    """The first and the last time, and how often."""
    timed = sorted((o for o in f.events if o.at is not None), key=lambda o: o.at or 0)
    if not timed:
        return ""
    first, last = lines.moment(timed[0]), lines.moment(timed[-1])
    if len(timed) == 1 or first == last:
        return first
    return w.t(f"{first} to {last}, {len(timed)} times", f"{first} 至 {last}，共 {len(timed)} 次")


def _line(w: Words, f: Finding) -> str:
    o = next(iter((*f.events, *f.because)), None)
    if o is None:
        return ""
    return cut(clean(o.excerpt) if isinstance(o.value, Event) else w.seen(o, places=False), LINE)


def _fine(w: Words) -> list[tuple[str, str]]:
    c = w.d.coverage
    return [
        (w.t("read", "已读取"), w.t(f"{c.answered} of {c.asked} values", f"{c.asked} 项中的 {c.answered} 项")),
        (w.t("from", "来源"), listed([clean(s) for s in w.d.sources][:3], w.lang)),
    ]
