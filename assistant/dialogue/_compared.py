"""What it means that a value is worse than those of its peers, than what it should be, or than it was, where only the words tell so."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

from assistant.diagnosis import State, Verdict, bad_roots, only_said
from assistant.dialogue import _busbw, _told
from assistant.dialogue._rated import rated
from assistant.dialogue._should import asked_of
from assistant.intent import compared
from assistant.intent.figures import trouble_beside
from assistant.render.sheet import Fields, Items, Part
from assistant.reply import Reply
from knowledge.compared import Against, Quantity, quantity
from knowledge.language import NO_TEXT, Text
from knowledge.lazy import lazy
from knowledge.readings import Rating
from knowledge.text import opened
from rules.model import Usable

if TYPE_CHECKING:
    from assistant.diagnosis import Diagnosis
    from assistant.dialogue import Turn
    from assistant.dialogue._words import Words
    from assistant.intent.query import Compared

_TWICE = 1.95  # from so many times on it is said in times and not in percent


def answer(turn: Turn, w: Words) -> Reply | None:
    """The comparison as the first line: how far apart, what does that, what to run next. None where nothing is compared, a machine
    was looked at, or it is asked whether something has to be done about what a rule calls a fault."""
    d = turn.diagnosis
    pairs = [(quantity(c.quantity), c) for c in turn.query.compared]
    if d is None or not only_said(d.facts):
        return None
    pairs = pairs or _of_list(turn, d)
    rows = [(q, c) for q, c in pairs if q is not None]
    if not rows:
        return _alone(turn, w, d)
    roots = bad_roots(d.findings)
    if roots and (_told.rates(turn) or asked_of(turn.query) is not None):
        return None
    worse = [(q, c) for q, c in rows if q.differs(c.value, c.other) and _stands_out(q, c)]
    held = {"gpu.name", *(f for q, _ in rows for f in (q.fact, q.expected))}
    if not worse and (
        trouble_beside(turn.query.text)
        or any(o.fact not in held and not o.fact.startswith("job.fails.") for o in turn.query.observations)
    ):
        return None  # that the two are alike is no answer to what else is told
    q, c = worse[0] if worse else rows[0]
    head = _headline(turn, q, c) if worse else _alike(turn, q, c)
    if worse and _told.rates(turn):
        head = f"{_told.first_word(turn)}{w.t(': ', '：')}{head}"
    if worse and _waits(turn, q, c):
        turn = replace(
            turn, query=replace(turn.query, unread=tuple(x for x in turn.query.unread if not _GOES_ON.search(x)))
        )
    parts: list[Part] = [*_told.unread_line(turn)]
    if more := [_sentence(turn, q2, c2) for q2, c2 in worse[1:]]:
        parts.append(Items(tuple(more)))
    lines = [f"{f.title.in_(w.lang)}{w.t(': ', '：')}{f.advice.text.in_(w.lang)}" for f in roots[:2]]
    parts += w.section("What the rules say of it", "规则的结论", lines)
    parts += w.section("Next", "下一步", list(q.do)) if worse else []
    unknown = w.t(
        "nothing was looked at: these are the values as you state them", "没有查看任何机器：以上数值均为您所述"
    )
    runbook = f"gpudiag runbook show {q.runbook}" if q.runbook and worse else ""
    parts.append(Fields(((w.t("not known", "未知"), unknown), (w.t("runbook", "处置手册"), runbook))))
    usable = Usable(q.usable) if worse else Usable.UNKNOWN
    if roots:
        usable = max((usable, d.verdict.usable), key=lambda u: u.rank)
    state = State.UNKNOWN if usable is Usable.UNKNOWN else State.DEGRADED
    if roots and d.verdict.state in (State.DEGRADED, State.UNHEALTHY):
        state = d.verdict.state
    verdict = Verdict(state, usable, NO_TEXT, Text(head if turn.lang != "zh" else "", head))
    data = {
        "answer": "compared", "usable": str(usable), "grade": "told", "bucket": q.bucket if worse else None,
        "told": [o.fact for o in _told.stated(d)], "not_taken_as_fact": list(turn.query.unread),
    }  # fmt: skip
    return Reply(turn.lang, head, tuple(parts), replace(d, settled=False, verdict=verdict), settled=False, data=data)


def _of_list(turn: Turn, d: Diagnosis) -> list[tuple[Quantity | None, Compared]]:
    """What stands out among values that are listed; nothing where one of them is bad by itself, which says more."""
    told = [o for o in turn.query.observations if "others" not in o.subject.id]
    if any(r.rating is Rating.BAD for r in rated(d, told)):
        return []
    return [(quantity(c.quantity), c) for c in compared.stand_out(told)]


def _alone(turn: Turn, w: Words, d: Diagnosis) -> Reply | None:
    """A bus bandwidth that is compared with nothing, where the table says that the eight GPUs of a node reach far more."""
    q = quantity("bandwidth")
    told = [o for o in _told.stated(d) if q is not None and o.fact == q.fact and isinstance(o.value, int | float)]
    if q is None or len(told) != 1 or bad_roots(d.findings):
        return None
    far = _busbw.unused(turn.query.text, float(str(told[0].value)))
    if far is None:
        return None
    shown = q.shown.in_(w.lang).replace("{value}", _number(float(str(told[0].value))))
    head = w.t(f"{opened(q.whose.en)} {shown}. {far.en}", f"{q.whose.in_('zh')}{shown}。{far.in_('zh')}")
    lost = tuple(c for c in turn.query.unread if not compared.taken(c, (), told))
    turn = replace(turn, query=replace(turn.query, unread=lost))
    verdict = Verdict(State.DEGRADED, Usable(q.usable), NO_TEXT, Text(head if turn.lang != "zh" else "", head))
    parts = (*_told.unread_line(turn), *w.section("Next", "下一步", list(q.do)))
    data = {
        "answer": "compared",
        "usable": q.usable,
        "grade": "told",
        "bucket": q.bucket,
        "told": [q.fact],
        "not_taken_as_fact": list(lost),
    }
    return Reply(turn.lang, head, parts, replace(d, settled=False, verdict=verdict), settled=False, data=data)


def _stands_out(q: Quantity, c: Compared) -> bool:
    """Whether the value in question, or of peers one of the two sides, is on the bad side."""
    return c.kind == Against.PEERS or q.is_worse(c.value, c.other)


def _headline(turn: Turn, q: Quantity, c: Compared) -> str:
    of_node = _busbw.unused(turn.query.text, c.value) if q.id == "bandwidth" else None
    meaning = _HANGS if _waits(turn, q, c) else _LATE if _works_alone(q, c) else q.meaning[Against(c.kind)]
    why = (of_node or meaning).in_(turn.lang)
    return f"{_sentence(turn, q, c)}{'：' if turn.lang == 'zh' else ': '}{why}"


_HANGS = Text(
    "the job most likely hangs or waits, as it neither ends nor works: look where each rank stands (gpudiag profile --pid PID on all of them; the one whose stack differs is waited for), then storage and data loading. Clocks that are low as well would mean that the GPU is held down.",
    "作业既不退出也不干活，多半是卡住或在等待：查看每个 rank 停在哪里（对所有 rank 运行 gpudiag profile --pid PID，调用栈与众不同的就是大家在等的），再查存储与数据加载。若时钟也很低，则是该卡被压低。",
)
_LATE = Text(
    "if all are busy, they wait in a collective, and the one that works is the rank that they wait for: look there first, at its input, its host and its stack (gpudiag profile --pid PID on all of them). At 0 % of utilization they have no work.",
    "若它们也显示忙碌，就是在集合通信中等待，在干活的那一张正是大家在等的 rank：先查它的输入、主机和调用栈（对所有 rank 运行 gpudiag profile --pid PID）。若为 0 %，则是没有任务。",
)
_GOES_ON = lazy(
    r"(?<![a-z])(?:still|stays?|remains?|keeps)\W{1,3}(?:shown as |listed as |marked |says )?\W?(?:running|alive|up|going|active|r(?![a-z]))|(?<![a-z])(?:no|without|not? (?:an? )?|did ?n[o']t|does ?n[o']t|has ?n[o']t|never) ?(?:any )?(?:error\w*|crash\w*|exit\w*|fail\w*|die[ds]?|end(?:ed)?|stopp?(?:ed)?)(?![a-z])"
    r"|没有?(?:报错|退出|挂|崩|错误|异常|结束)|没.{0,3}(?:报错|退出)|还在[跑运]|仍在|还是\s?running|状态(?:是|还是|仍为)?\s?running|不报错|不退出",
    re.IGNORECASE,
)


def _waits(turn: Turn, q: Quantity, c: Compared) -> bool:
    """Whether a GPU does far less than it did while its job goes on without an error."""
    fell = q.id == "power-draw" and c.kind == Against.PAST and c.value < _QUIET * c.other
    return fell and _GOES_ON.search(turn.query.text) is not None


def _works_alone(q: Quantity, c: Compared) -> bool:
    """Whether one GPU draws far more than its peers, which are those that stand out."""
    return q.id == "power-draw" and c.kind == Against.PEERS and c.other < _QUIET * c.value


_QUIET = 0.5  # of what it drew: less is no smaller batch


def _sentence(turn: Turn, q: Quantity, c: Compared) -> str:
    """``GPU 6 runs at 1200 MHz, its peers at 1755 MHz (32 % less)``; of peers the worse side is the subject."""
    lang, swapped = turn.lang, c.kind == Against.PEERS and not q.is_worse(c.value, c.other)
    value, other = (c.other, c.value) if swapped else (c.value, c.other)
    beside = c.others[0] if c.of[0] == "node" and c.kind == Against.PEERS and len(c.others) == 1 else ""
    who, them = _who(q, c, lang), beside or q.peers.in_(lang)
    if swapped:
        who, them = (Text("the others", "其他").in_(lang), who)
    shown, also = (t.in_(lang).replace("{value}", _number(v)) for t, v in ((q.shown, value), (q.also, other)))
    if swapped and lang != "zh":
        shown = _PLURAL.sub(lambda m: _MANY[m[0]], shown, count=1)
    apart = _apart(q, value, other, lang)
    named = c.of[0] in ("node", "port") and not swapped
    lead = who if named or lang == "zh" else who[:1].upper() + who[1:]
    gap = " " if lead[-1:].isascii() else ""
    if lang == "zh":
        them += " " if them[-1:].isascii() else ""
        between = {Against.PEERS: f"，{them}为 ", Against.EXPECTED: "，应为 "}.get(Against(c.kind), "，之前为 ")
        return f"{lead}{gap}{shown}{between}{also}{apart}"
    between = {Against.PEERS: f", {them} ", Against.EXPECTED: " instead of "}.get(Against(c.kind), " now, before ")
    return f"{lead}{gap}{shown}{between}{_bare(also) if c.kind == Against.EXPECTED else also}{apart}"


_PLURAL = lazy(r"(?<![a-z])(?:runs|draws|is|has|counts|takes|does|reaches)(?![a-z])")
_MANY = {
    "runs": "run",
    "draws": "draw",
    "is": "are",
    "has": "have",
    "counts": "count",
    "takes": "take",
    "does": "do",
    "reaches": "reach",
}


def _bare(said: str) -> str:
    return said.removeprefix("at ")


def _who(q: Quantity, c: Compared, lang: str) -> str:
    kind, name = c.of
    if kind in ("gpu", "rank"):
        return f"{'GPU' if kind == 'gpu' else 'rank'} {name}"
    if kind == compared.LISTED:
        place, of = name.split(" of ")
        return Text(f"number {place} of the {of} listed (GPU {int(place) - 1} if they start at 0)", f"所列 {of} 个中的第 {place} 个（从 0 数起为 GPU {int(place) - 1}）").in_(lang)  # fmt: skip
    one = Text("one of them", "其中一个") if c.kind == Against.PEERS else q.whose
    return name or one.in_(lang)


def _number(value: float) -> str:
    return f"{value:.10g}" if value == round(value) else f"{value:.4g}"


def _apart(q: Quantity, value: float, other: float, lang: str) -> str:
    """How far apart they are, in brackets: as a share of the other, in times from twice on, of temperatures in degrees."""
    if q.absolute:
        said = Text(
            f"{abs(value - other):.3g} °C {'more' if value > other else 'less'}",
            f"{'高' if value > other else '低'} {abs(value - other):.3g} °C",
        )
    elif not value or not other:
        return ""
    elif q.mark == "gen":  # each doubles the rate of the one before
        times = 2 ** abs(other - value)
        said = (
            Text(f"1/{times:.0f} of the rate", f"速率为其 1/{times:.0f}")
            if value < other
            else Text(f"{times:.0f} times the rate", f"速率为其 {times:.0f} 倍")
        )
    elif value < other:
        share, times = 100 * (1 - value / other), other / value
        en = (
            "half of it is gone"
            if abs(share - 50) < 1
            else f"about 1/{times:.0f} of it"
            if times >= 3
            else f"{share:.0f} % less"
        )
        zh = "少了一半" if abs(share - 50) < 1 else f"约为其 1/{times:.0f}" if times >= 3 else f"低 {share:.0f} %"
        said = Text(en, zh)
    else:
        times = value / other
        en = f"{times:.3g} times as much" if times >= _TWICE else f"{100 * (times - 1):.0f} % more"
        zh = f"{times:.3g} 倍" if times >= _TWICE else f"高 {100 * (times - 1):.0f} %"
        said = Text(en, zh)
    return f"（{said.in_(lang)}）" if lang == "zh" else f" ({said.in_(lang)})"


def _alike(turn: Turn, q: Quantity, c: Compared) -> str:
    """Both values where none is worse, or they are no further apart than sound ones are."""
    near = not q.differs(c.value, c.other)
    said = _sentence(turn, q, c)
    if near:
        return Text(f"{said}: sound ones differ by as much, so that alone is no fault.", f"{said}：正常设备之间也会相差这么多，仅凭此不是故障。").in_(turn.lang)  # fmt: skip
    text = turn.query.text
    complains = _COMPLAINS.search(text) or (q.low and _FALLS.search(text))
    if c.kind == Against.PAST and not complains:
        return Text(f"{said}: that is the better side, so nothing is lost by it.", f"{said}：这是更好的一侧，没有损失。").in_(turn.lang)  # fmt: skip
    now, then = (q.also.in_(turn.lang).replace("{value}", _number(v)) for v in (c.value, c.other))
    why = q.meaning[Against(c.kind)].in_(turn.lang)
    return Text(
        f"{said}. Read it again which of the two it is: {_bare(now)} is no loss of this kind, but if it is {_bare(then)}, then {why}",
        f"{said}。请再确认实际是哪一个：若为 {now}，不属于这类损失；若为 {then}，则{why}",
    ).in_(turn.lang)


# Whoever complains does not tell of a gain, however the two values were read; a fall of what should be low is one.
_COMPLAINS = lazy(
    r"(?<![a-z])(?:only|just|merely|lost|loses?|slow\w*|worse|degraded|regress\w*|missing|wrong|problem|bad|why)(?![a-z])|只|才|仅|慢|差|丢|为什么|怎么回事|问题|异常|不足",
    re.IGNORECASE,
)
_FALLS = lazy(r"(?<![a-z])(?:dropp?(?:s|ed)?|fell|falls?|less|lower|down)(?![a-z])|掉|降|跌|少", re.IGNORECASE)
