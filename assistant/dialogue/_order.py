"""Whether one thing that was found caused another: by what explains what, and by which came first."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from assistant.diagnosis import only_said
from assistant.dialogue._past_rows import event_title
from assistant.dialogue._words import Words, suggest, words
from assistant.intent.caused import Caused, caused
from assistant.intent.lines import meant
from assistant.intent.window import minute_of, window_of
from assistant.render.labels import listed
from assistant.render.lines import moment, shown
from assistant.render.sheet import Items
from assistant.reply import Reply
from knowledge.observation import Event, Observation, how_many
from knowledge.text import clean, excerpt, opened

if TYPE_CHECKING:
    from assistant.dialogue import Turn
    from rules.engine import Finding

LINE, MOST = 160, 4
_LIFE = ("boot", "driver_loaded")
_AN_HOUR = 3600
AT_ONCE, SOON = 5, 120  # s: one failure told by several; near enough to be tied by time


def answer(turn: Turn) -> Reply | None:
    """Yes, no, or that nothing ties them, with the time of each; None where no such thing is asked, or nothing was read."""
    asked = caused(turn.query.text)
    d = turn.diagnosis
    if asked is None or d is None or only_said(d.facts) or not d.events:
        return None
    w = words(turn)
    events = [
        o for o in d.events if o.fact not in _LIFE or "boot" in turn.query.text.casefold() or "启" in turn.query.text
    ]
    a, b = meant(asked.cause, events), meant(asked.effect, events)
    both = {id(o) for o in a} & {id(o) for o in b}
    if both and len(both) < len(b):
        b = tuple(o for o in b if id(o) not in both)
    if both and len(both) < len(a):
        a = tuple(o for o in a if id(o) not in both)
    head = _head(w, asked, a, b, turn)
    if head is None:
        return None
    about = [f for f in d.findings if any(id(o) in {id(x) for x in (*a, *b)} for o in f.events)]
    lines = sorted({id(o): o for o in (*a[:MOST], *b[:MOST])}.values(), key=lambda o: (o.at is None, o.at or 0))
    return Reply(
        turn.lang,
        head,
        (Items(tuple(excerpt(shown(o), LINE) for o in lines)),),
        focus=about[0].id if about else "",
        settled=bool(a and b),
        suggestions=suggest(turn.lang, "why", "next"),
        data={"answer": "order", "cause": len(a), "effect": len(b)},
    )  # fmt: skip


def _head(w: Words, asked: Caused, a: Sequence[Observation], b: Sequence[Observation], turn: Turn) -> str | None:
    if not a and not b:
        return None
    if not a:
        cause = asked.cause.strip()
        return w.t(
            f'Nothing that was read tells of "{cause}". {opened(_told(w, b))}.',
            f"所读内容中没有“{cause}”。{_told(w, b)}。",
        )
    if not b:
        return _alone(w, asked, a, turn)
    if {id(o) for o in a} == {id(o) for o in b}:
        return w.t(
            f"They are one and the same in what was read: {_told(w, a)}.", f"所读内容中两者是同一件事：{_told(w, a)}。"
        )
    fa, fb = _findings(w, a), _findings(w, b)
    if asked.order:
        return _in_order(w, a, b)
    forth = any(y.id in x.explains for x in fa for y in fb)
    back = any(x.id in y.explains for x in fa for y in fb)
    one, other = _pair(a, b)
    timed = one is not None and other is not None and one.clock is other.clock
    if (
        (forth or back)
        and timed
        and abs(_seconds(one, other)) < AT_ONCE
        and _seconds(one, other) * (1 if back else -1) > 0
    ):
        cause = w.t(
            f"the rules take {_told(w, a if forth else b)} for the cause",
            f"按规则，{_told(w, a if forth else b)} 是原因",
        )
        return w.t(
            f"They came together, and are one failure: {cause}; the other is {_told(w, b if forth else a)}.",
            f"两者同时出现，是同一次故障：{cause}，另一个是{_told(w, b if forth else a)}。",
        )
    if forth:
        return w.t(f"Yes: {_told(w, a)}; that explains {_told(w, b)}.", f"是：{_told(w, a)}，它解释了{_told(w, b)}。")
    if back:
        return w.t(
            f"No, the other way round: {_told(w, b)}; that explains {_told(w, a)}.",
            f"不是，正好相反：{_told(w, b)}，它解释了{_told(w, a)}。",
        )
    if not timed:
        return _no_order(w, a, b)
    apart = _seconds(one, other)
    if apart < 0:
        no = w.t("No", "不是")
        return w.t(
            f"{no}: {_told(w, b)} came first; {_told(w, a)} only after it.",
            f"{no}：{_told(w, b)} 在先，{_told(w, a)} 在后。",
        )
    said = _apart(w, apart)
    if apart <= SOON and one is not None and other is not None and one.subject.host == other.subject.host:
        return w.t(
            f"It fits in time: {_told(w, a)} came {said} before {_told(w, b)}; no rule ties the two.",
            f"时间吻合：{_told(w, a)}，{said} 后 {_told(w, b)}；没有规则把两者联系起来。",
        )
    return w.t(
        f"Nothing that was read ties them: {_told(w, a)} came {said} before {_told(w, b)}.",
        f"所读内容没有把两者联系起来：{_told(w, a)}，比 {_told(w, b)} 早 {said}。",
    )


def _in_order(w: Words, a: Sequence[Observation], b: Sequence[Observation]) -> str:
    """Which came first, and how much later the other."""
    one, other = _first(a), _first(b)
    if one is None or other is None or one.clock is not other.clock:
        return _no_order(w, a, b)
    apart = _seconds(one, other)
    first, second = (a, b) if apart >= 0 else (b, a)
    return w.t(
        f"First {_told(w, first)}; {_apart(w, abs(apart))} later {_told(w, second)}.",
        f"先是 {_told(w, first)}，{_apart(w, abs(apart))} 后 {_told(w, second)}。",
    )


def _no_order(w: Words, a: Sequence[Observation], b: Sequence[Observation]) -> str:
    return w.t(
        f"Not known: what was read does not tell which came first ({_told(w, a)}; {_told(w, b)}).",
        f"无法判断：所读内容没有给出先后（{_told(w, a)}；{_told(w, b)}）。",
    )


def _pair(a: Sequence[Observation], b: Sequence[Observation]) -> tuple[Observation | None, Observation | None]:
    """The first of the effects, and the last of the suspected causes ahead of it; the first of these where none is ahead."""
    other = _first(b)
    ahead = [o for o in a if o.at is not None and other is not None and o.at <= (other.at or 0)]
    return (max(ahead, key=lambda o: o.at or 0) if ahead else _first(a)), other


def _seconds(one: Observation | None, other: Observation | None) -> float:
    """From the one to the other; below zero where the other came first."""
    assert one is not None
    assert other is not None
    return ((other.at or 0) - (one.at or 0)) / 10**9


def _alone(w: Words, asked: Caused, a: Sequence[Observation], turn: Turn) -> str:
    """The effect does not stand in what was read: whether the cause was there at the time that is named."""
    effect = asked.effect.strip().rstrip("?？")
    window = window_of(turn.query.text, next(iter(turn.query.slots.since), ""))
    lacks = w.t(f'"{effect}" itself is not in what was read', f"所读内容中没有“{effect}”本身")
    if window is None:
        return w.t(f"Cannot say: {lacks}. {opened(_told(w, a))}.", f"无法判断：{lacks}。{_told(w, a)}。")
    last = max((o.at for o in w.d.events if o.at is not None), default=0)
    near = [(window.off(minute_of(o.at)), o) for o in a if o.at is not None and window.has(o.at, last)]
    if not near:
        return w.t(
            f"Not by its time: then there was none; {_told(w, a)}. {opened(lacks)}.",
            f"时间对不上：当时没有；{_told(w, a)}。{lacks}。",
        )
    _, closest = min(near, key=lambda n: n[0])
    return w.t(
        f"It fits in time: {_title(w, closest)} at {moment(closest)}. {opened(lacks)}: its log has to say so.",
        f"时间吻合：{_title(w, closest)}，{moment(closest)}。{lacks}，需由其日志证实。",
    )


def _findings(w: Words, events: Sequence[Observation]) -> list[Finding]:
    ids = {id(o) for o in events}
    return [f for f in w.d.findings if any(id(o) in ids for o in f.events)]


def _first(events: Sequence[Observation]) -> Observation | None:
    timed = [o for o in events if o.at is not None]
    return min(timed, key=lambda o: o.at or 0) if timed else None


def _told(w: Words, events: Sequence[Observation]) -> str:
    """``XID 79 (GPU has fallen off the bus) on GPU 0000:43:00.0 at 03:05:12``, the worst kind of several."""
    found = _findings(w, events)
    own = [o for o in events if found and any(o is x for x in found[0].events)] or list(events)
    first = _first(own) or own[0]
    name, n = _title(w, first), how_many(own)
    place = clean(w.view.name(first.subject))
    at = moment(first)
    often = w.t(f", {n} times", f"，共 {n} 次") if n > 1 else ""
    return w.t(
        f"{name} ({place}{f', {at}' if at else ''}{often})", f"{name}（{place}{f'，{at}' if at else ''}{often}）"
    )


def _title(w: Words, o: Observation) -> str:
    assert isinstance(o.value, Event)
    code = o.value.code if isinstance(o.value.code, int) and o.fact in ("xid", "xid_reported", "sxid") else None
    if code is not None:
        return clean(event_title(o.fact, code, w.lang))
    found = _findings(w, [o])
    if found:
        return clean(found[0].title.in_(w.lang))
    state = o.value.get("state") or o.value.get("kind")
    return listed([o.fact.replace("_", " "), *([str(state)] if state else [])], "en").replace(",", "")


def _apart(w: Words, seconds: float) -> str:
    if seconds < 2 * 60:
        return w.t(f"{seconds:.0f} s", f"{seconds:.0f} 秒")
    if seconds < 2 * _AN_HOUR:
        return w.t(f"{seconds // 60:.0f} min", f"{seconds // 60:.0f} 分钟")
    return w.t(f"{seconds / _AN_HOUR:.1f} h", f"{seconds / _AN_HOUR:.1f} 小时")
