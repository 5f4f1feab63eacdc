"""What happened: the events of what was given, in the order of their time, as far as the question names a time."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from assistant.diagnosis import bad_roots
from assistant.dialogue._past_rows import event_title
from assistant.dialogue._scope import belongs, scoped
from assistant.dialogue._words import Words, nothing_yet, suggest, words
from assistant.intent.window import Window, window_of
from assistant.render import lines
from assistant.render.labels import label, led, listed
from assistant.render.sheet import Paragraph, Part, Table
from assistant.reply import Reply
from knowledge.lazy import lazy
from knowledge.observation import Event, Observation
from knowledge.text import clean, excerpt

if TYPE_CHECKING:
    from assistant.dialogue import Turn

ROWS, CELL = 12, 60
_LIFE = ("boot", "driver_loaded")  # no trouble: told among the rows
_CODED = ("xid", "xid_reported", "xid_exported", "sxid")  # the kinds of which a catalogue has the title
_WHEN = lazy(
    r"(?<![a-z])(?:when|since|how (?:often|long|many times)|what time)(?![a-z])|时候|几点|多久|几次|多少次|开始",
    re.IGNORECASE,
)


def answer(turn: Turn) -> Reply:
    """How many events, from when to when, of what; then a row for each."""
    if turn.diagnosis is None:
        return nothing_yet(turn)
    w, where = words(turn), scoped(turn.diagnosis, turn.query.slots)
    every = sorted(
        (
            o
            for o in turn.diagnosis.events
            if not where.subjects or belongs(o.subject, where.subjects, turn.diagnosis.facts)
        ),
        key=lambda o: (o.at is None, o.at or 0),
    )
    window = window_of(turn.query.text, next(iter(turn.query.slots.since), ""))
    kept = [o for o in every if window is None or _within(window, o, every)]
    parts: list[Part] = []
    shown = kept or every
    if shown:
        parts.append(_table(w, shown))
    if len(shown) > ROWS:
        parts.append(Paragraph(label("more_lines", w.lang).format(n=len(shown) - ROWS)))
    return Reply(
        turn.lang,
        _head(w, kept, every, turn.query.text),
        tuple(parts),
        settled=bool(kept) or turn.diagnosis.settled,
        suggestions=suggest(turn.lang, "why", "next", "evidence"),
        data={"answer": "events", "events": len(kept), "of": len(every)},
    )  # fmt: skip


def _within(window: Window, o: Observation, every: Sequence[Observation]) -> bool:
    """Whether an event lies in the span that is asked for: by the hour of its own clock, or counted back from the last line."""
    if o.at is None:
        return False
    if window.back:
        return o.at >= max(e.at for e in every if e.at is not None) - window.back
    at = datetime.fromtimestamp(o.at // 10**9, UTC)
    return window.holds(at.hour * 60 + at.minute)


def _head(w: Words, kept: Sequence[Observation], every: Sequence[Observation], asked: str) -> str:
    source = listed(list(dict.fromkeys(clean(s) for s in w.d.sources))[:2], w.lang)
    if not every:
        verdict = w.d.verdict.text.in_(w.lang)
        return w.t(
            f"{source} has no line of an event that is understood. {verdict}",
            f"{source} 中没有可识别的事件行。{verdict}",
        )
    if (worst := _worst(w, kept)) is not None and _WHEN.search(asked):
        return worst
    if not kept:
        first, last = lines.moment(every[0]), lines.moment(every[-1])
        return w.t(f"Nothing that is understood was logged then; the events reach from {first} to {last}.",
                   f"该时段没有可识别的事件；已有事件从 {first} 到 {last}。")  # fmt: skip
    told = [o for o in kept if o.fact not in _LIFE] or kept
    kinds = Counter(_title(o, w.lang) for o in told)
    what = listed([f"{n}x {t}" if n > 1 else t for t, n in kinds.most_common(3)], w.lang, ";")
    more = len(kinds) - 3
    what += w.t(f"; +{more} kinds", f"；另有 {more} 种") if more > 0 else ""
    first, last = lines.moment(kept[0]), lines.moment(kept[-1])
    when = (
        ""
        if not first
        else w.t(
            f" at {first}" if first == last else f" from {first} to {last}",
            f"，时间 {first}" if first == last else f"，从 {first} 到 {last}",
        )
    )
    n = len(kept)
    return w.t(f"{n} event{'s' * (n != 1)}{when}: {what}.", f"{n} 条事件{when}：{what}。")


def _worst(w: Words, kept: Sequence[Observation]) -> str | None:
    """When what is wrong first showed, when last, and how often."""
    ids = {id(o) for o in kept}
    f = next((f for f in bad_roots(w.d.findings) if any(id(o) in ids and o.at is not None for o in f.events)), None)
    if f is None:
        return None
    timed = sorted((o for o in f.events if id(o) in ids and o.at is not None), key=lambda o: o.at or 0)
    first, last, n = lines.moment(timed[0]), lines.moment(timed[-1]), len(timed)
    when = w.t(
        first if first == last else f"{first}, last {last}, {n} times",
        first if first == last else f"{first}，最近 {last}，共 {n} 次",
    )
    return f"{led(when, w.title(f), w.lang)}{w.t('.', '。')}"


def _title(o: Observation, lang: str) -> str:
    """A code with the catalogue's title; any other event by its kind."""
    assert isinstance(o.value, Event)
    code = o.value.code if isinstance(o.value.code, int) else None
    coded = code is not None and o.fact in _CODED
    return clean(event_title(o.fact, code, lang)) if coded else o.fact.replace("_", " ")


def _table(w: Words, events: Sequence[Observation]) -> Table:
    header = (w.t("time", "时间"), w.t("where", "位置"), w.t("line", "日志行"))
    return Table(header, tuple(
        (lines.moment(o) or "-", clean(w.view.name(o.subject)), excerpt(lines.message(o), 2 * CELL)) for o in events[:ROWS]
    ))  # fmt: skip
