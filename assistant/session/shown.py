"""An answer made ready for a screen: what is folded and chosen there, in the words that every surface says.

Everything that costs something to find out (the arrangement of a diagnosis, what a probe does to its target) is found
here, so that whoever draws it only draws.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from assistant.render import reply as words
from assistant.session.steps import Answered, Confirmed, Event
from knowledge.language import Text
from knowledge.record import dataclass

if TYPE_CHECKING:
    from assistant.diagnosis import Diagnosis
    from assistant.render.sheet import Part
    from assistant.render.view import Block, View
    from assistant.session.driver import Answer
    from assistant.session.state import Pending

YES, NO, UNKNOWN = Text("yes", "是"), Text("no", "否"), Text("I don't know", "不知道")
_MOST = 9  # words of an enumeration that are offered: of longer ones the question itself names them
_TAKES, _TOUCHES, _WHY = Text("Takes", "耗时"), Text("Does to it", "影响"), Text("Why", "原因")
_BEFORE = Text("Before", "此前")


class Choice(NamedTuple):
    """One answer to what is asked: the word for it, and what it tells the session."""

    text: str
    event: Event


class Terms(NamedTuple):
    """What somebody agrees to: the question, and names with what they say, one a line."""

    question: str
    rows: tuple[tuple[str, str], ...]


class Subject(NamedTuple):
    """What stands behind one block of a diagnosis: a finding, and the question that asks about it."""

    finding: str  # its id
    question: str


@dataclass(frozen=True, slots=True)
class Shown:
    """One answer."""

    answer: Answer
    echo: str  # "understood: ..."
    view: View | None  # the diagnosis that is the answer; None when headline and parts are
    subjects: tuple[Subject, ...]  # one for each block of the view
    headline: str
    parts: tuple[Part, ...]  # all of the answer, or what stands below the diagnosis
    usable: str  # of a question whether it can be used: yes, no, not_yet, unknown; else empty
    note: str  # that it is hypothetical; else empty
    question: str  # what the person is asked
    choices: tuple[Choice, ...]
    terms: Terms | None  # what a "yes" agrees to; None when nothing is to be agreed to

    @property
    def lang(self) -> str:
        """The language of the answer."""
        return self.answer.reply.lang

    @property
    def suggestions(self) -> tuple[str, ...]:
        """What could be asked next."""
        return self.answer.reply.suggestions


def shown(answer: Answer, tells: Callable[[str], str] = lambda _: "", *, verbose: bool = False) -> Shown:
    """`answer` for a screen. `tells` names the inputs that would give a missing fact."""
    reply = answer.reply
    whole = words.diagnosed(reply)
    view = _view(whole, reply.lang, tells, verbose) if whole is not None else None
    usable = reply.data.get("usable")
    return Shown(
        answer=answer,
        echo=words.echo(answer.query) if answer.query is not None else "",
        view=view,
        subjects=_subjects(view, reply.lang) if view is not None else (),
        headline=reply.headline,
        parts=reply.parts,
        usable=usable if isinstance(usable, str) else "",
        note=words.word("hypothetical", reply.lang) if reply.hypothetical else "",
        question=answer.question,
        choices=choices(answer.pending, reply.lang) if answer.pending is not None else (),
        terms=terms(answer.pending, reply.lang) if answer.pending is not None else None,
    )


def in_full(shown_: Shown, tells: Callable[[str], str] = lambda _: "") -> Shown:
    """The same answer with all evidence, the rules' pages, and all that is undecided."""
    return replace(shown(shown_.answer, tells, verbose=True), choices=shown_.choices, terms=shown_.terms)


def still_asked(pending: Pending, lang: str) -> Shown:
    """What a conversation waits for that somebody comes back to."""
    from assistant.reply import Reply
    from assistant.session.driver import Answer
    from assistant.session.state import Frame

    return shown(Answer(Reply(lang, ""), None, pending, Frame()))


def _view(whole: Diagnosis, lang: str, tells: Callable[[str], str], verbose: bool) -> View:
    from assistant.render.view import view

    return view(whole, lang, tells, verbose)


def _subjects(view: View, lang: str) -> tuple[Subject, ...]:
    return tuple(_subject(block, lang) for block in view.blocks)


def _subject(block: Block, lang: str) -> Subject:
    """The first finding of a block."""
    return Subject(block.findings[0], Text(f"why do you say {block.rule}?", f"为什么说 {block.rule}？").in_(lang))


# --- what is asked ------------------------------------------------------------------------


def choices(pending: Pending, lang: str) -> tuple[Choice, ...]:
    """What can be said to it without typing: each as it would be understood when typed."""
    if not pending.fact:
        return (Choice(YES.in_(lang), Confirmed(True)), Choice(NO.in_(lang), Confirmed(False)))
    from assistant.session.phrases import question

    asked = question(pending)
    dunno = Choice(UNKNOWN.in_(lang), Answered(None))
    if asked.kind == "bool":
        return (Choice(YES.in_(lang), Answered(True)), Choice(NO.in_(lang), Answered(False)), dunno)
    if asked.kind == "enum" and len(asked.values) <= _MOST:
        called = dict(asked.labels)
        return (*(Choice(called[v].in_(lang) if v in called else v, Answered(v)) for v in asked.values), dunno)
    return (dunno,)


def terms(pending: Pending, lang: str) -> Terms | None:
    """What a "yes" would agree to: what is looked at, how long that takes, what it does to its target, and what for."""
    if pending.fact:
        return None
    rows = [] if pending.path else _costs(pending, lang)
    why, text = pending.reason.in_(lang), pending.text.in_(lang)
    sign = "？" if lang == "zh" else "? "
    # What stands behind the question, the price in one sentence, stands in the rows.
    question = text if pending.path or sign not in text else text.partition(sign)[0] + sign.strip()
    rows += [(_WHY.in_(lang), why)] if why else []
    rows += [(_BEFORE.in_(lang), pending.before.in_(lang))] if pending.before.en else []
    return Terms(question, tuple(rows))


def _costs(pending: Pending, lang: str) -> list[tuple[str, str]]:
    from probes.live import Cost, probes

    only = Text("nothing: it only reads", "无：只读取")
    rows: list[tuple[str, str]] = []
    for spec in (s for s in probes() if s.name in pending.probes):
        least = Text("minutes", "数分钟") if spec.cost >= Cost.HEAVY else Text("some seconds", "数秒")
        most = Text(f"{least.en}, {spec.deadline:.0f} s at most", f"{least.zh}，最多 {spec.deadline:.0f} 秒")
        said = [e.in_(lang) for e in spec.side_effects] or [only.in_(lang)]
        rows.append((_TAKES.in_(lang), most.in_(lang)))
        rows += [(_TOUCHES.in_(lang) if n == 0 else "", text) for n, text in enumerate(said)]
    return rows
