"""What happened: the events of what was given, in the order of their time, as far as the question names a time."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

from assistant.diagnosis import bad, bad_roots
from assistant.dialogue import _captures
from assistant.dialogue._blamed import named_in
from assistant.dialogue._past_rows import event_title
from assistant.dialogue._scope import belongs, scoped
from assistant.dialogue._words import Words, nothing_yet, suggest, words
from assistant.intent.kinds import kind_asked
from assistant.intent.lines import codes, meant, names_any
from assistant.intent.lines import words as words_of
from assistant.intent.window import window_of
from assistant.render import lines
from assistant.render.labels import aside, label, led, listed, titled
from assistant.render.sheet import Paragraph, Part, Table
from assistant.reply import Reply
from knowledge.facts import vocabulary
from knowledge.lazy import lazy
from knowledge.observation import Clock, Event, Observation, Scope, how_many
from knowledge.text import clean, excerpt
from rules.life import span

if TYPE_CHECKING:
    from assistant.dialogue import Turn

ROWS, CELL = 12, 60
_CLOCKS = tuple(Clock)  # each has an order of its own
_LIFE = ("boot", "driver_loaded")  # no trouble: told among the rows
_CODED = ("xid", "xid_reported", "xid_exported", "sxid")  # the kinds of which a catalogue has the title
_WHEN = lazy(
    r"(?<![a-z])(?:when|since|how (?:often|long|many times)|what time)(?![a-z])|时候|几点|多久|几次|多少次|开始",
    re.IGNORECASE,
)
_COUNT = lazy(
    r"(?<![a-z])how (?:often|many)(?![a-z])|(?<![a-z])number of(?![a-z])|几次|多少次|几回|几条|多少条", re.IGNORECASE
)
_WHETHER = lazy(
    r"^\W*(?:so |and |but )?(?:did|has|have|was|were|is|are) (?:there |any|one|a |some)|有没有|是否(?:有|发生|出现)",
    re.IGNORECASE,
)
_YES_NO = lazy(
    r"^\W*(?:so |and |but )?(?:did|has|have|had|was|were|is|are)(?![a-z])|[吗么][?？]?$|有没有|是否", re.IGNORECASE
)
_HOW_MANY = lazy(
    r"(?<![a-z])how many ((?!times)[a-z]+)|(?:几|多少)\s?[个台张块]\s?([\u4e00-\u9fffa-z]{1,6})", re.IGNORECASE
)
_FIRST = lazy(
    r"(?<![a-z])(?:start(?:ed|s)?|beg[aiu]n\w*|first|earliest|since when)(?![a-z])|开始|最早|最先|第一", re.IGNORECASE
)


# what happened | what went wrong at 3 | 出了什么事: the worst of it, ahead of how many lines there are
_WHAT = lazy(
    r"(?<![a-z])(?:happen\w*|occurr?\w*|went (?:on|wrong|down)|go(?:es|ing)? (?:on|wrong)|broke|failed)(?![a-z])|发生|出了|怎么|咋|什么事|啥事|情况|状况",
    re.IGNORECASE,
)


def answer(turn: Turn) -> Reply:
    """How many events, from when to when, of what; then a row for each. Of a span of time, or of what the words name, those alone."""
    if turn.diagnosis is None:
        return nothing_yet(turn)
    if (changed := _captures.answer(turn)) is not None:
        return changed
    w, where, text = words(turn), scoped(turn.diagnosis, turn.query.slots), turn.query.text
    every = sorted(
        (
            o
            for o in turn.diagnosis.events
            if not where.subjects or belongs(o.subject, where.subjects, turn.diagnosis.facts)
        ),
        key=lambda o: (o.at is None, _CLOCKS.index(o.clock), o.at or 0),
    )
    window = window_of(text, next(iter(turn.query.slots.since), ""))
    last = max((o.at for o in every if o.at is not None), default=0)
    kept = [o for o in every if window is None or (o.at is not None and window.has(o.at, last))]
    counts, when = _COUNT.search(text) is not None, _WHEN.search(text) is not None
    whether = window is not None and _YES_NO.search(text) is not None and bool(codes(text) or words_of(text))
    named = [o for o in meant(text, kept) if _ends(o)] if counts or when or whether else []
    shown = named or (kept if window is not None or kept else every)
    parts: list[Part] = []
    if shown:
        parts.append(_table(w, shown))
    if len(shown) > ROWS:
        parts.append(Paragraph(label("more_lines", w.lang).format(n=len(shown) - ROWS)))
    head = _of_named(w, named, text) if named else _none_of(w, text, every) if counts else ""
    if whether:
        gap = "" if w.lang == "zh" else " "
        head = (
            f"{w.t('Yes:', '是：')}{gap}{head}"
            if named
            else f"{w.t('No.', '没有。')}{gap}{_head(w, kept, every, text)}"
        )
    return Reply(
        turn.lang,
        head or _head(w, kept, every, text),
        tuple(parts),
        settled=bool(kept) or turn.diagnosis.settled,
        suggestions=suggest(turn.lang, "why", "next", "evidence"),
        data={"answer": "events", "events": len(named or kept), "of": len(every)},
    )  # fmt: skip


def _ends(o: Observation) -> bool:
    """Of a link that goes down and comes up again one of the two counts."""
    return not (o.fact == "link_carrier" and isinstance(o.value, Event) and o.value.get("state") == "up")


def _of_named(w: Words, named: Sequence[Observation], asked: str) -> str:
    """How often what the words name happened, when first and last, and where; of ranks or hosts how many of them it names."""
    kind = kind_asked(found[1] or found[2]) if (found := _HOW_MANY.search(asked)) else None
    if kind is not None and (names := [str(n) for n in _things(w, named, kind)]):
        what = listed([_title(w, o) for o in {_title(w, o): o for o in named}.values()][:2], w.lang, ";")
        ops = listed(
            dict.fromkeys(str(op) for o in named if isinstance(o.value, Event) and (op := o.value.get("op"))), w.lang
        )
        return w.t(f"{len(names)}: {listed(names, w.lang)} ({what}{f', {ops}' if ops else ''}).", f"{len(names)} 个：{listed(names, w.lang)}（{what}{f'，{ops}' if ops else ''}）。")  # fmt: skip
    timed = [o for o in named if o.at is not None]
    times = [t for o in (timed[:1] + timed[-1:]) if (t := lines.moment(o))]
    span = listed(dict.fromkeys(times), w.lang) if len(timed) < 3 else w.t(" to ", " 至 ").join(dict.fromkeys(times))
    n = how_many(named)
    what = _what(w, named)
    where = listed(list(dict.fromkeys(clean(w.view.name(o.subject)) for o in named))[:3], w.lang)
    if _COUNT.search(asked):
        often = w.t("once" if n == 1 else "twice" if n == 2 else f"{n} times", f"{n} 次").capitalize()
        at = f", {span}" if span else ""
        return w.t(f"{often}{at} ({where}): {what}.", f"{often}{at.replace(', ', '，', 1)}（{where}）：{what}。")
    if not span:
        return w.t(f"No time stands beside it: {what} ({where}).", f"该行没有时间：{what}（{where}）。")
    return w.t(f"{span}: {what} ({where}).", f"{span}：{what}（{where}）。")


def _what(w: Words, named: Sequence[Observation]) -> str:
    """What they are: codes by their titles, else the worst finding that rests on any of them."""
    coded = any(o.fact in _CODED for o in named)
    f = next((f for f in w.d.findings if any(o is x for x in f.events for o in named)), None)
    if f is not None and not coded:
        return clean(titled([f]).in_(w.lang))
    return listed(list(dict.fromkeys(_title(w, o) for o in named))[:3], w.lang, ";")


def _things(w: Words, named: Sequence[Observation], kind: Scope) -> list[str]:
    """The things of a kind that tell an event, whether or not they are to blame for it."""
    own = [s for o in named if (s := o.subject.up(kind)) is not None and s.id]
    return list(dict.fromkeys(clean(w.view.name(s)) for s in own)) or named_in(named, kind, w)


def _none_of(w: Words, asked: str, every: Sequence[Observation]) -> str:
    """That what the words name stands nowhere; empty where they name nothing that lines could tell of."""
    if not every or not names_any(asked) or not (codes(asked) or words_of(asked)):
        return ""
    first, last = lines.moment(every[0]), lines.moment(every[-1])
    span = w.t(f" from {first} to {last}", f"（{first} 至 {last}）") if first and last else ""
    return w.t(f"Never in what was read: its {len(every)} events{span} tell of other things.",
               f"所读内容中一次也没有：其 {len(every)} 条事件{span}说的是别的。")  # fmt: skip


def _head(w: Words, kept: Sequence[Observation], every: Sequence[Observation], asked: str) -> str:
    source = listed(list(dict.fromkeys(clean(s) for s in w.d.sources))[:2], w.lang)
    if not every:
        verdict = w.d.verdict.text.in_(w.lang)
        if _WHEN.search(asked):  # counters and states are as of one moment
            told = next((t for f in bad_roots(w.d.findings) if (t := _captures.since_when(w, f))), "")
            gap = "" if w.lang == "zh" else " "
            return f"{told}{gap}{verdict}" if told else w.t(
                f"No time was read in {source}. {verdict}", f"{source} 中没有读到时间。{verdict}"
            )  # fmt: skip
        return w.t(
            f"{source} has no line of an event that is understood. {verdict}",
            f"{source} 中没有可识别的事件行。{verdict}",
        )
    if _LASTED.search(asked) and (lasted := _lasted(w, kept)) is not None:
        return lasted
    if _FIRST.search(asked) and not _LAST.search(asked) and (first_sign := _first(w, kept)) is not None:
        return first_sign
    wrong = [o for o in kept if any(o is x for f in bad_roots(w.d.findings) for x in f.events)]
    if _COUNT.search(asked) and len({o.subject for o in wrong}) > 1:  # of several things no one's count is the answer
        return _listed(w, wrong)
    if (worst := _worst(w, kept, asked)) is not None and (_WHEN.search(asked) or _COUNT.search(asked)):
        return worst
    if not kept and all(o.at is None for o in every):
        return w.t(f"The {len(every)} events that were read have no time.", f"所读的 {len(every)} 条事件没有时间。")
    if not kept:
        there = _span(w, every, w.t("; there are {n} events", "；已有 {n} 条事件"))
        return w.t(f"Nothing that is understood was logged then{there}.", f"该时段没有可识别的事件{there}。")
    if _WHETHER.search(asked):
        clear = w.t("No fault was found in it: ", "未发现故障：")
        return w.t("Yes: ", "是：") + worst if worst is not None else clear + _listed(w, kept)
    said = _listed(w, kept)
    return f"{worst}{w.t(' ', '')}{said}" if worst is not None and _WHAT.search(asked) else said


_LAST = lazy(r"(?<![a-z])(?:last|latest)(?![a-z])|最后|最近|最晚", re.IGNORECASE)
_LASTED = lazy(r"(?<![a-z])how long(?![a-z])|多久|多长时间|多少分钟|几分钟|小时", re.IGNORECASE)


def _lasted(w: Words, kept: Sequence[Observation]) -> str | None:
    """From the first sign of what is wrong to the line that it is over, or to the last sign of it."""
    f = next((f for f in (*bad_roots(w.d.findings), *w.d.findings) if any(o.at is not None for o in f.events)), None)
    if f is None:
        return None
    facts = {o.fact for x in (f, *(x for x in w.d.findings if x.subject == f.subject)) for o in x.events}
    own = [o for o in kept if o.at is not None and o.fact in facts and o.subject.host == f.subject.host]
    timed = sorted((o for o in own if o.clock is own[0].clock), key=lambda o: o.at or 0)
    if len(timed) < 2 or timed[0].at == timed[-1].at:
        return None
    first, last = timed[0], timed[-1]
    long = span((last.at or 0) - (first.at or 0))
    over = isinstance(last.value, Event) and last.value.get("state") in ("up", "restored")
    end = w.t("over", "结束") if over else w.t("last sign", "最后的迹象")
    said = w.t(f"{long.en}, from {lines.moment(first)} to {lines.moment(last)} ({end})",
               f"{long.zh}，从 {lines.moment(first)} 到 {lines.moment(last)}（{end}）")  # fmt: skip
    return f"{led(said, w.title(f), w.lang)}{w.t('.', '。')}"


def _listed(w: Words, kept: Sequence[Observation]) -> str:
    """How many, from when to when, of what."""
    told = [o for o in kept if o.fact not in _LIFE] or kept
    kinds = Counter(_title(w, o) for o in told)
    what = listed([f"{n}x {t}" if n > 1 else t for t, n in kinds.most_common(3)], w.lang, ";")
    more = len(kinds) - 3
    what += w.t(f"; +{more} kinds", f"；另有 {more} 种") if more > 0 else ""
    return _span(w, kept, w.t("{n} event" + "s" * (len(kept) != 1), "{n} 条事件")) + w.t(f": {what}.", f"：{what}。")


def _span(w: Words, events: Sequence[Observation], count: str) -> str:
    """How many, and from when to when by the clock that the first was timed with."""
    timed = [o for o in events if o.at is not None and o.clock is events[0].clock]
    said = count.format(n=len(events))
    if not timed:
        return said
    if len(timed) < len(events):
        said += w.t(f", {len(timed)} of them", f"，其中 {len(timed)} 条")
    else:
        said += w.t("", "，")
    first, last = lines.moment(timed[0]), lines.moment(timed[-1])
    if first == last:
        return said + w.t(f" at {first}", f"时间 {first}")
    return said + w.t(f" from {first} to {last}", f"从 {first} 到 {last}")


def _worst(w: Words, kept: Sequence[Observation], asked: str = "") -> str | None:
    """When what is wrong first showed, when last, and how often."""
    ids = {id(o) for o in kept}
    f = next((f for f in bad_roots(w.d.findings) if any(id(o) in ids and o.at is not None for o in f.events)), None)
    if f is None:
        return None
    timed = sorted((o for o in f.events if id(o) in ids and o.at is not None), key=lambda o: o.at or 0)
    first, last, n = lines.moment(timed[0]), lines.moment(timed[-1]), len(timed)
    once = w.t("Once, ", "1 次，") if _COUNT.search(asked) else ""
    when = w.t(
        f"{once}{first}" if first == last else f"{first}, last {last}, {n} times",
        f"{once}{first}" if first == last else f"{first}，最近 {last}，共 {n} 次",
    )
    return f"{led(when, w.title(f), w.lang)}{w.t('.', '。')}"


def _first(w: Words, kept: Sequence[Observation]) -> str | None:
    """The first sign of anything that is wrong, and then the worst of it where that is another."""
    ids = {id(o) for o in kept}
    signs = [(o, f) for f in bad(w.d.findings) for o in f.events if id(o) in ids and o.at is not None]
    if not signs:
        return None
    rank = {f.id: n for n, f in enumerate(w.d.findings)}
    o, f = min(signs, key=lambda s: (s[0].at or 0, rank[s[1].id]))
    said = f"{led(lines.moment(o), w.title(f), w.lang)}{w.t('.', '。')}"
    worst = _worst(w, kept)
    roots = bad_roots(w.d.findings)
    if worst is None or not roots or roots[0].id == f.id or lines.moment(o) in worst:
        return said if worst is None or lines.moment(o) not in worst else worst
    return f"{said}{w.t(' The worst of it: ', '其中最严重的：')}{worst}"


def _title(w: Words, o: Observation) -> str:
    """A code with the catalogue's title; any other event by the finding that rests on it, else by its kind."""
    assert isinstance(o.value, Event)
    code = o.value.code if isinstance(o.value.code, int) else None
    if code is not None and o.fact in _CODED:
        return clean(event_title(o.fact, code, w.lang))
    f = next((f for f in w.d.findings if any(o is x for x in f.events)), None)
    if f is not None:
        return clean(f.title.in_(w.lang))
    spec = vocabulary().get(o.fact)
    kind = next((str(v) for k in ("kind", "reason", "state") if (v := o.value.get(k))), "")
    said = spec.labels[kind].in_(w.lang) if spec is not None and kind in spec.labels else kind.replace("_", " ")
    return f"{o.fact.replace('_', ' ')}{aside(clean(said), w.lang) if said else ''}"


def _table(w: Words, events: Sequence[Observation]) -> Table:
    header = (w.t("time", "时间"), w.t("where", "位置"), w.t("line", "日志行"))
    return Table(header, tuple(
        (lines.moment(o) or "-", clean(w.view.name(o.subject)), excerpt(lines.message(o), 2 * CELL)) for o in events[:ROWS]
    ))  # fmt: skip
