"""How a training run went by its own log: whether its steps became slower, how fast they are, what becomes of the loss."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from assistant.diagnosis import bad_roots
from assistant.dialogue._words import Words, suggest, words
from assistant.intent.after import became
from assistant.intent.steps import asked
from assistant.render.labels import titled
from assistant.render.sheet import Items
from assistant.reply import Reply
from knowledge.lazy import lazy
from knowledge.observation import Event, Observation, Scope, Status
from knowledge.text import clean, opened

if TYPE_CHECKING:
    from assistant.dialogue import Turn
    from rules.engine import Finding

ENOUGH = 5  # lines of steps from which on two levels are told apart
_STEADY = lazy(r"(?<![a-z])(?:steady|stable)(?![a-z])|平稳|稳定", re.IGNORECASE)
_WHICH = lazy(r"(?<![a-z])(?:which|what|when|how much|by how)(?![a-z])|哪|几步|什么时候|多少", re.IGNORECASE)
_SLOW = ("slower", "slowing", "slow_for_a_while", "slow_each", "slow_now_and_then", "rank_slower")
_LOSS = ("loss_grow", "gradients_grow", "steps_skipped")


def answer(turn: Turn) -> Reply | None:
    """The answer from the lines of steps that were read; None where none was, or something else is asked."""
    d = turn.diagnosis
    kind = asked(turn.query.text)
    if d is None or not kind:
        return None
    w = words(turn)
    lines = _fact(w, "training.lines")
    if lines is None or not isinstance(lines.value, int):
        return None
    slow, lost = _found(w, _SLOW), _found(w, _LOSS)
    lost += [f for f in d.findings if f.rule.id == "loss-is-nan"]
    roots = [f for f in bad_roots(d.findings) if f not in slow]
    if kind == "whole":
        if [f for f in roots if f not in lost]:
            return None  # the verdict says it
        odd = [*lost, *slow]
        no = w.t("No: ", "不正常：")
        head = (
            f"{no}{_title(w, odd[0])}{w.t('.', '。')}" if odd else f"{_steady(w, lines.value, '')}{_gap(w)}{_loss(w)}"
        )
    elif kind == "slower":
        others = [f for f in slow if turn.query.slots.rank and not _of_rank(f, turn.query.slots.rank)]
        if others:
            head = f"{w.t('No: ', '不是：')}{_title(w, others[0])}{w.t('.', '。')}"
        else:
            head = _slower(w, slow[0], turn.query.text) if slow else _steady(w, lines.value, turn.query.text)
    elif kind == "resume":
        head = _resume(w, lost)
    elif kind == "loss":
        neither = _WHICH.search(turn.query.text) or became(
            turn.query.text
        )  # a yes to "did it recover?" says the reverse
        lead = "" if neither else w.t("Yes: ", "是：")
        head = f"{lead}{_title(w, lost[0])}{w.t('.', '。')}" if lost else _loss(w)
    else:
        head = _speed(w)
    if not head.strip():
        return None
    about = {"slower": slow, "loss": lost, "resume": lost, "whole": [*lost, *slow]}.get(kind, []) or roots
    do = [f"{f.advice.bucket}{w.t(': ', '：')}{f.advice.text.in_(w.lang)}" for f in about[:1]]
    beside = [w.title(f) for f in roots if f not in about[:1]] if kind != "whole" else []
    return Reply(
        turn.lang,
        head,
        (*((Items(tuple(do)),) if do else ()), *w.section("Also found here", "此外还发现", beside[:3])),
        focus=about[0].id if about else "",
        settled=True,
        suggestions=suggest(turn.lang, "why", "next") if about else suggest(turn.lang, "evidence"),
        data={"answer": "steps", "asked": kind, "findings": [f.rule.id for f in about]},
    )  # fmt: skip


def _resume(w: Words, lost: list[Finding]) -> str:
    """From which checkpoint to go on: one from before the loss went wrong, which the newest may not be."""
    last = _fact(w, "training.step.last")
    to = w.t(f", the last one read is {last.value}", f"，读到的最后一步为 {last.value}") if last is not None else ""
    if lost:
        return w.t(f"Not simply the newest: one saved before the loss went wrong, and its steps just ahead of that are suspect too. {_title(w, lost[0])}{to}.",
                   f"不要直接用最新的：用损失出问题之前保存的，紧靠其前的几步也不可信。{_title(w, lost[0])}{to}。")  # fmt: skip
    return w.t(f"The newest complete one: nothing that was read speaks against the steps{to}.",
               f"用最新且完整的：所读训练步没有异常{to}。")  # fmt: skip


def _of_rank(f: Finding, ranks: tuple[int, ...]) -> bool:
    """Whether it is about one of these ranks, or about all of the run."""
    return all(_field(o, "kind") != "rank_slower" or _field(o, "rank") in ranks for o in f.events)


def _fact(w: Words, name: str) -> Observation | None:
    for scope in (Scope.DOCUMENT, Scope.JOB):
        for s in w.d.facts.subjects(scope):
            o = w.d.facts.current(name, s)
            if o is not None and o.status is Status.OK:
                return o
    return None


def _found(w: Words, kinds: tuple[str, ...]) -> list[Finding]:
    def tells(o: Observation) -> bool:
        return o.fact == "training_pace" and o.value is not None and str(_field(o, "kind")) in kinds

    return [f for f in w.d.findings if any(tells(o) for o in f.events)]


def _field(o: Observation, name: str) -> object:
    return o.value.get(name) if isinstance(o.value, Event) else None


def _gap(w: Words) -> str:
    return "" if w.lang == "zh" else " "


def _slower(w: Words, f: Finding, asked_: str) -> str:
    times = next((_field(o, "times") for o in f.events if _field(o, "times")), None)
    often = w.t(f" ({times:g} times as long)", f"（{times:g} 倍）") if isinstance(times, int | float) else ""
    lead = "" if _WHICH.search(asked_) else w.t("Yes: ", "是：")
    return f"{lead}{_title(w, f)}{often}{w.t('.', '。')}"


def _title(w: Words, f: Finding) -> str:
    """What was found, without the name of the log: there is but one that tells of steps."""
    return clean(titled([f]).in_(w.lang))


def _steady(w: Words, lines: int, asked_: str) -> str:
    """That the pace stayed, as far as there are lines enough to say so."""
    pace, step = _fact(w, "training.pace"), _fact(w, "training.step.last")
    if pace is None:
        return w.t(
            f"The {lines} lines of steps that were read tell no time of a step, so their pace is not known.",
            f"所读的 {lines} 行训练步没有给出耗时，无法判断快慢。",
        )
    to = w.t(f", to step {step.value}", f"，至第 {step.value} 步") if step is not None else ""
    if lines < ENOUGH:
        return w.t(
            f"Too few lines to say: {lines} lines of steps{to}, at {_pace(w, pace)}.",
            f"行数太少，无法判断：{lines} 行训练步{to}，{_pace(w, pace)}。",
        )
    said = w.t(
        f"the pace is steady: {_pace(w, pace)} in the steps that were read{to}.",
        f"速度平稳：{_pace(w, pace)}（所读训练步{to}）。",
    )
    if not asked_ or _STEADY.search(asked_):
        return opened(said)
    return w.t("No, ", "没有变慢，") + said


def _pace(w: Words, pace: Observation) -> str:
    said = str(pace.value)
    return w.t(f"{said} a step", f"每步 {said}") if said.endswith(" s") else said


def _speed(w: Words) -> str:
    pace, rate = _fact(w, "training.pace"), _fact(w, "training.rate")
    said = [_pace(w, pace)] if pace is not None else []
    if rate is not None and (pace is None or rate.value != pace.value):
        said.append(str(rate.value))
    if not said:
        return ""
    slow = _found(w, _SLOW)
    more = f"{_gap(w)}{_title(w, slow[0])}{w.t('.', '。')}" if slow else ""
    return w.t(f"{', '.join(said)} (the middle of all lines).", f"{'，'.join(said)}（所有行的中位数）。") + more


def _loss(w: Words) -> str:
    first, last = _fact(w, "training.loss.first"), _fact(w, "training.loss.last")
    if (
        first is None
        or last is None
        or not isinstance(first.value, int | float)
        or not isinstance(last.value, int | float)
    ):
        return ""
    a, b = first.value, last.value
    if b < a:
        return w.t(f"The loss falls: from {a:.4g} to {b:.4g}.", f"损失在下降：从 {a:.4g} 到 {b:.4g}。")
    if b == a:
        return w.t(f"The loss stays at {a:.4g}.", f"损失保持在 {a:.4g}。")
    return w.t(
        f"The loss rose from {a:.4g} to {b:.4g}; the log is too short, or it rose too little, to call it diverging.",
        f"损失从 {a:.4g} 升到 {b:.4g}；日志太短或升幅太小，不能断定发散。",
    )
