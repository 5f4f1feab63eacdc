"""The hottest, the busiest, the idle one: which it is, by the values that were read, and where the others stand."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from assistant.diagnosis import bad_roots
from assistant.dialogue._scope import scoped
from assistant.dialogue._shown import marks_of, table, value
from assistant.dialogue._words import Words, suggest, words
from assistant.intent.extremes import Extreme, Quantity, extreme
from assistant.intent.window import minute_of, window_of
from assistant.render.labels import listed
from assistant.render.lines import moment
from assistant.reply import Reply
from knowledge.lazy import lazy
from knowledge.observation import Observation, Scope, Series, Status
from knowledge.text import clean
from knowledge.units import measured

if TYPE_CHECKING:
    from assistant.dialogue import Turn

_WHY = lazy(r"(?<![a-z])why(?![a-z])|为什么|为啥|原因", re.IGNORECASE)
IDLE = 5.0  # % of the time, up to which a GPU does nothing
NAMES = 4
_IDLE_WORK = ("held_idle", "allocated_idle", "idle")


def answer(turn: Turn) -> Reply | None:
    """The one that is asked for by a degree; None where none is, or nothing that was read tells it."""
    asked = extreme(turn.query.text)
    if turn.diagnosis is None or asked is None:
        return None
    w = words(turn)
    if asked.of_one and not asked.idle:
        return _of_named(turn, w, asked)
    rows = _rows(w, asked.quantity)
    if asked.in_time and not asked.idle:
        rows = [_sample(w, o, asked, turn.query.text) or o for o in rows]
    if not rows:
        return None
    ordered = sorted(rows, key=lambda o: -_number(o) if asked.most and not asked.idle else _number(o))
    first = _idle(w, ordered) if asked.idle else [o for o in ordered if _number(o) == _number(ordered[0])]
    rest = [o for o in ordered if o not in first]
    bad = bad_roots(scoped(turn.diagnosis, turn.query.slots).about)
    if not first and bad:
        return None  # busy for what reads the clock of the driver: whether they work is what was found
    head = _head(w, asked, first, rest, asked.in_time)
    if _WHY.search(turn.query.text) and first:
        more_of = [f for f in bad if f.subject == first[0].subject]
        head += "".join(f"{'' if w.lang == 'zh' else ' '}{w.title(f)}{w.t('.', '。')}" for f in more_of[:1])
    names = [w.view.name(o.subject) for o in first]
    more = [said for q in asked.more if first and (said := _more(w, q, first[0]))]
    found = [f"{w.title(f)} -> {f.advice.bucket}" for f in bad[:NAMES]]
    return Reply(
        turn.lang,
        head + ("" if w.lang == "zh" or not more else " ") + ("" if w.lang == "zh" else " ").join(more),
        (table(w, ordered, marks_of(w)), *w.section("Found beside it", "此外发现", found)),
        focus=bad[0].id if bad else "",
        settled=True,
        suggestions=suggest(turn.lang, "verdict", "evidence"),
        data={"answer": "most", "quantity": asked.quantity.id, "most": asked.most, "first": names, "one": first[0].subject.id if len(first) == 1 else None,
              "value": _number(first[0]) if first else None},
    )  # fmt: skip


def _rows(w: Words, q: Quantity) -> list[Observation]:
    """The values of the first fact that is known of any GPU."""
    for name in q.facts:
        known = (w.d.facts.current(name, gpu) for gpu in w.d.facts.subjects(Scope.GPU))
        rows = [o for o in known if o is not None and o.status is Status.OK and _is_number(o)]
        if rows:
            return rows
    return []


def _of_named(turn: Turn, w: Words, asked: Extreme) -> Reply | None:
    """How the GPUs stood that are named: at their most or least over all samples, or at the time that is asked for."""
    where = scoped(w.d, turn.query.slots)
    every = [o for o in _rows(w, asked.quantity) if o.subject in where.subjects]
    rows = [o for one in every if (o := _sample(w, one, asked, turn.query.text)) is not None]
    what = asked.quantity.name.in_(w.lang)
    if not every and asked.quantity.id == "ecc":
        return None  # what a log tells of such errors is no counter
    if not rows:
        known = [clean(w.view.name(s)) for s in where.subjects[:NAMES]]
        names = listed(known or [f"GPU {n}" for n in turn.query.slots.gpu[:NAMES]], w.lang)
        none = w.t(f"No {what} of {names} was read", f"所读内容没有 {names} 的{what}")
        then = w.t(" at that time.", "（在该时刻）。") if every else w.t(".", "。")
        shown = (table(w, every, marks_of(w)),) if every else ()
        return Reply(turn.lang, none + then, shown, data={"answer": "most", "quantity": asked.quantity.id})
    degree = "" if asked.at else w.t("highest " if asked.most else "lowest ", "最高" if asked.most else "最低")
    said = []
    for o in rows[:NAMES]:
        n, at = len(w.d.facts.series(o.fact, o.subject)[0].values), moment(o)
        last = w.d.facts.current(o.fact, o.subject)
        of = (
            w.t(f" ({n} samples, the last {value(w, last)})", f"（共 {n} 次采样，最后一次 {value(w, last)}）")
            if n > 1 and last is not None
            else w.t(" (the only sample)", "（仅一次采样）")
        )
        when = w.t(f" at {at}" if at else "", f"，时间 {at}" if at else "")
        said.append(
            w.t(
                f"{clean(w.view.name(o.subject))}: {degree}{what} {value(w, o)}{when}{of}.",
                f"{clean(w.view.name(o.subject))}：{degree}{what} {value(w, o)}{when}{of}。",
            )
        )
    return Reply(
        turn.lang,
        ("" if w.lang == "zh" else " ").join(said),
        (table(w, rows, marks_of(w)),),
        settled=True,
        suggestions=suggest(turn.lang, "verdict", "evidence"),
        data={"answer": "most", "quantity": asked.quantity.id, "most": asked.most, "first": [w.view.name(o.subject) for o in rows],
              "one": rows[0].subject.id if len(rows) == 1 else None, "value": _number(rows[0])},
    )  # fmt: skip


def _sample(w: Words, last: Observation, asked: Extreme, text: str) -> Observation | None:
    """Of all samples of a value the one that is asked for: its most or least, or the one nearest to a time; None where the span
    that is named holds none."""
    series, told = w.d.facts.series(last.fact, last.subject)
    every = [*zip(series.times, series.values, strict=True)]
    window = window_of(text, "")
    if window is None and len(every) < 2:
        return last
    if window is not None:
        every = [s for s in every if window.has(s[0], series.times[-1])]
    if not every:
        return None
    if asked.at and window is not None:
        at, _ = min(every, key=lambda s: window.off(minute_of(s[0])))
    else:
        at, _ = (max if asked.most else min)(every, key=lambda s: s[1])
    found = next((o for o in told if o.at == at and not isinstance(o.value, Series)), None)
    return found or replace(told[0], at=at, value=dict(every)[at])


def _is_number(o: Observation) -> bool:
    return isinstance(o.value, int | float) and not isinstance(o.value, bool)


def _number(o: Observation) -> float:
    return float(o.value) if isinstance(o.value, int | float) else 0.0


def _idle(w: Words, rows: Sequence[Observation]) -> list[Observation]:
    """Those that do nothing: by what they were seen to do, else by how much of the time they are busy."""

    def idle(o: Observation) -> bool:
        work = w.d.facts.current("gpu.work.class", o.subject)
        return _number(o) <= IDLE or (work is not None and work.value in _IDLE_WORK)

    return [o for o in rows if idle(o)]


def _head(w: Words, asked: Extreme, first: Sequence[Observation], rest: Sequence[Observation], in_time: bool) -> str:
    if not first:  # nobody is idle
        low = rest[0]
        name, least = clean(w.view.name(low.subject)), value(w, low)
        if len(rest) == 1:
            return w.t(f"None: {name} is at {least}.", f"没有：{name} 为 {least}。")
        return w.t(f"None: the least busy is {name}, at {least}.", f"没有空闲的：最不忙的是 {name}，{least}。")
    names = listed([clean(w.view.name(o.subject)) for o in first[:NAMES]], w.lang)
    if in_time and len(first) == 1 and (at := moment(first[0])):
        names += w.t(f" at {at}", f"（{at}）")
    if len(first) > NAMES:
        names += w.t(f" and {len(first) - NAMES} more", f" 等 {len(first)} 个")
    what = asked.quantity.name.in_(w.lang)
    if not rest:
        same = value(w, first[0])
        return (
            w.t(f"All alike: {what} {same}: {names}.", f"全都一样：{what} {same}：{names}。")
            if len(first) > 1
            else w.t(f"{names}, the only one that was read: {what} {same}.", f"只读到 {names}：{what} {same}。")
        )
    own, others = _range(w, first), _range(w, rest)
    degree = w.t("highest" if asked.most else "lowest", "最高" if asked.most else "最低")
    if asked.idle:
        return w.t(f"{names}: {what} {own}; the others {others}.", f"{names}：{what} {own}；其余 {others}。")
    return w.t(
        f"{names}: {degree} {what}, {own}; the others {others}.", f"{names}：{what}{degree}，{own}；其余 {others}。"
    )


def _range(w: Words, rows: Sequence[Observation]) -> str:
    numbers = sorted(_number(o) for o in rows)
    if numbers[0] == numbers[-1]:
        return value(w, rows[0])
    spec = w.d.facts.vocabulary[rows[0].fact]
    return w.t(
        f"{numbers[0]:.6g} to {measured(numbers[-1], spec.unit)}",
        f"{numbers[0]:.6g} 到 {measured(numbers[-1], spec.unit)}",
    )


def _more(w: Words, q: Quantity, winner: Observation) -> str:
    """Another value of the one that was found."""
    own = next((o for o in _rows(w, q) if o.subject == winner.subject), None)
    if own is None:
        return ""
    name = q.name.in_(w.lang)
    return w.t(f"Its {name}: {value(w, own)}.", f"其{name}：{value(w, own)}。")
