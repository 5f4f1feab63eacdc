"""Answers that rest on nothing but what a person says: no machine, recording or log was looked at."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from assistant.diagnosis import State, Verdict, bad
from assistant.dialogue._pages import closest, distinct
from assistant.find import search
from assistant.intent.paste import SOURCE
from assistant.intent.query import Intent
from assistant.render.labels import colon, headline, listed
from assistant.render.sheet import Items, Paragraph, Part
from assistant.reply import Reply
from knowledge.language import NO_TEXT, Text
from knowledge.observation import Event, Observation, Origin
from rules.engine import Grade
from rules.model import Usable

if TYPE_CHECKING:
    from assistant.diagnosis import Diagnosis
    from assistant.dialogue import Turn
    from assistant.dialogue._words import Words
    from rules.engine import Finding

CLOSEST = 3  # pages that are named where nothing was understood
SHOWN = 4  # readings that a first line names


def only(d: Diagnosis) -> bool:
    """Whether everything that is known was said by a person, or computed from that."""
    return all(k.inner.origin in (Origin.TOLD, Origin.DERIVED) or pasted(k.inner) for k in d.facts.observations)


def pasted(o: Observation) -> bool:
    """Whether it was read from lines within what a person said."""
    return o.source.call == SOURCE


def stated(d: Diagnosis) -> list[Observation]:
    """What the person said of the thing in question."""
    return [
        k.inner
        for k in d.facts.observations
        if k.inner.origin is not Origin.DERIVED and "others" not in k.inner.subject.id
    ]


def doubted(turn: Turn) -> list[Observation]:
    """What the person stated about a machine that was looked at, where no finding rests on it; empty when it is known to be good."""
    from assistant.dialogue import _measure

    assert turn.diagnosis is not None
    said = [k.inner for k in turn.diagnosis.facts.observations if k.inner.origin is Origin.TOLD]
    asked = {(o.fact, o.value if not isinstance(o.value, Event) else None) for o in turn.query.observations}
    said = [o for o in said if (o.fact, o.value if not isinstance(o.value, Event) else None) in asked]
    measured = _measure.answer(turn.query, turn.lang) if said else None
    return [] if measured is not None and measured.data.get("rating") == "good" else said


def answer(turn: Turn, w: Words) -> Reply | None:
    """What can be said of readings that no rule calls a fault by themselves; None where something was found or seen."""
    d = turn.diagnosis
    assert d is not None
    if not only(d) or bad(d.findings) or not (d.facts.observations or turn.query.unread):
        return None
    if turn.query.symptoms and not stated(d):
        return None  # the differential says more
    if turn.query.symptoms and turn.query.intent is Intent.DIAGNOSE and not any(map(pasted, stated(d))):
        return None
    if noted := [f for f in d.roots if f.grade in (Grade.CONFIRMED, Grade.PROBABLE)]:
        return _noted(turn, d, noted)
    from assistant.dialogue import _measure

    said = stated(d)
    head = _head(w, said, turn.query.unread)
    measured = _measure.answer(turn.query, turn.lang) if said else None
    parts: list[Part] = []
    if measured is not None and measured.headline:
        lead = measured.data.get("rating") not in ("good", None)
        parts = [Paragraph(head if lead else measured.headline), *measured.parts]
        head = measured.headline if lead else head
    if not said:
        parts += closest(distinct(search(turn.query.text))[:CLOSEST], turn.lang)
    lacks = dict.fromkeys(w.gaps(u.missing) for u in d.undecided[:3] if u.missing)
    parts += w.section("Would settle it", "可据此判断", [line for line in lacks if line])
    verdict = Verdict(State.UNKNOWN, Usable.UNKNOWN, NO_TEXT, Text(head if turn.lang != "zh" else "", head))
    return Reply(turn.lang, head, tuple(parts), replace(d, settled=False, verdict=verdict), settled=False,
                 data={"answer": "told", "usable": "unknown", "told": [o.fact for o in said], "not_taken_as_fact": list(turn.query.unread)})  # fmt: skip


def _noted(turn: Turn, d: Diagnosis, noted: Sequence[Finding]) -> Reply:
    """What was said is known and no fault by itself: the finding, and that nothing else was looked at."""
    first = noted[0]
    text = Text(
        f"{headline(first.title, [first.subject], 'en')}: no fault by itself. Nothing else was looked at.",
        f"{headline(first.title, [first.subject], 'zh')}：其本身不是故障。没有查看其他信息。",
    )
    shown = replace(d, settled=False, verdict=Verdict(State.UNKNOWN, Usable.UNKNOWN, NO_TEXT, text))
    return Reply(turn.lang, "", unread_line(turn), shown, shown, focus=first.id, settled=False,
                 data={"answer": "told", "usable": "unknown", "told": [o.fact for o in stated(d)], "not_taken_as_fact": list(turn.query.unread)})  # fmt: skip


def _head(w: Words, said: Sequence[Observation], unread: Sequence[str]) -> str:
    if not said:
        clauses = listed((f'"{c}"' for c in unread[:2]), w.lang)
        return w.t(f"Cannot say: {clauses} could not be taken as a fact, and nothing was looked at.",
                   f"无法判断：{clauses} 未能作为事实读取，也没有查看任何机器。")  # fmt: skip
    shown = listed(dict.fromkeys(w.seen(o, places=False) for o in said[:SHOWN]), w.lang, ";")
    return w.t(f"Cannot say from that alone: {shown}; nothing else was looked at.",
               f"仅凭这些无法判断{colon('zh')}{shown}；没有查看其他信息。")  # fmt: skip


def unread_line(turn: Turn) -> tuple[Part, ...]:
    """What was stated and is no fact here, said beside an answer that does not rest on it."""
    if not turn.query.unread:
        return ()
    en = "Not taken as a fact, so not in this answer:"
    zh = "以下内容未能作为事实读取，未计入本回答："
    return (Paragraph(zh if turn.lang == "zh" else en), Items(tuple(turn.query.unread[:3])))
