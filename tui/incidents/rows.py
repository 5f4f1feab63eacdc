"""Incidents, runbooks, steps and events as rows of tables: shaping only."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from knowledge.language import Text
from knowledge.text import clean
from tui.tones import MARKS, Tone, of_severity
from tui.widgets.columns import Cell, Column, Row
from tui.widgets.grid import Grid

if TYPE_CHECKING:
    from assistant.incidents.fold import Incident
    from assistant.incidents.progress import BookView, StepView
    from knowledge.runbook import Runbook

DAY = 86_400 * 10**9  # ns
_STATUS = {"open": Tone.PLAIN, "working": Tone.ACCENT, "mitigated": Tone.INFO, "closed": Tone.DIM}
_STATE = {"todo": Tone.DIM, "doing": Tone.ACCENT, "done": Tone.OK, "skipped": Tone.DIM, "failed": Tone.ERROR}
_RISK = {"safe": Tone.DIM, "disruptive": Tone.WARNING, "destructive": Tone.ERROR}
_RISKS = {"disruptive": Text("disruptive", "有影响"), "destructive": Text("destructive", "高风险")}
_SIGNS = {"todo": "·", "doing": "▶", "done": "✔", "skipped": "–", "failed": "✖"}


def _heads(lang: str, *columns: tuple[Text, Column]) -> tuple[Column, ...]:
    return tuple(column._replace(title=title.in_(lang)) for title, column in columns)


def incident_columns(lang: str) -> tuple[Column, ...]:
    """Of the list of incidents."""
    return _heads(
        lang,
        (Text("no", "编号"), Column("number", "", right=True)),
        (Text("severity", "级别"), Column("severity", "", least=8)),
        (Text("status", "状态"), Column("status", "", least=6)),
        (Text("what", "内容"), Column("title", "", least=30, stretch=True)),
        (Text("node", "节点"), Column("node", "", most=16, keep=2)),
        (Text("owner", "负责人"), Column("owner", "", most=12, keep=3)),
        (Text("steps", "步骤"), Column("steps", "", right=True, keep=1)),
        (Text("opened", "开立"), Column("opened", "", least=5, keep=4)),
    )


def incident_rows(incidents: Iterable[Incident], lang: str, now: int) -> list[Row]:
    """One each; closed ones stand back."""
    from assistant.incidents import pages, words

    out = []
    for i in incidents:
        tone = Tone.PLAIN if i.is_open else Tone.DIM
        grave = of_severity(i.severity) if i.is_open else Tone.DIM
        mark = f"{MARKS[of_severity(i.severity)]} " if i.severity else ""
        ranks = ("", "info", "warning", "error", "critical")
        out.append(Row(str(i.number), (
            Cell(str(i.number), sort=i.number),
            Cell(mark + words.grade(i.severity, lang), grave, ranks.index(i.severity)),
            Cell(words.STATUS[i.status].in_(lang), _STATUS[i.status] if i.is_open else Tone.DIM),
            clean(i.title.in_(lang)), pages.nodes(i, lang), Cell(clean(i.owner) or "–", Tone.PLAIN if i.owner else Tone.DIM),
            pages.steps_of(i), Cell(clock(i.opened_at, now), Tone.DIM, i.opened_at),
        ), i, tone))  # fmt: skip
    return out


def book_columns(lang: str) -> tuple[Column, ...]:
    """Of the list of runbooks."""
    return _heads(
        lang,
        (Text("what is wrong", "问题"), Column("title", "", least=20, stretch=True)),
        (Text("runbook", "处置手册"), Column("id", "", keep=1)),
        (Text("steps", "步骤"), Column("steps", "", right=True, keep=2)),
        (Text("for", "适用"), Column("applies", "", least=10, most=44, keep=3)),
    )


def book_rows(books: Iterable[Runbook], lang: str) -> list[Row]:
    """One each. They are searched by what they are for, too."""
    return [
        Row(b.id, (b.title.in_(lang), Cell(b.id, Tone.DIM), str(len(b.steps)), Cell(", ".join(b.applies), Tone.DIM)), b)
        for b in books
    ]


def step_columns(lang: str, followed: bool, several: bool) -> tuple[Column, ...]:
    """Of the steps; of a runbook that nobody follows yet what they cost. `several`: of several runbooks."""
    what = (Text("step", "步骤"), Column("title", "", least=18, stretch=True))
    number = (Text("", ""), Column("number", "", least=2, right=True))
    if not followed:
        return _heads(lang, number, what, (Text("risk", "风险"), Column("risk", "", keep=1)))
    head = (
        (Text("state", "状态"), Column("state", "", least=3)), number, what,
        *(((Text("runbook", "处置手册"), Column("runbook", "", most=24, keep=3)),) if several else ()),
        (Text("who", "何人"), Column("who", "", most=12, keep=1)),
        (Text("UTC", "UTC"), Column("at", "", least=5, keep=2)),
    )  # fmt: skip
    return _heads(lang, *head)


def step_rows(views: Sequence[BookView], lang: str, now: int, followed: bool) -> list[Row]:
    """All steps."""
    from assistant.incidents import pages

    out = []
    for s in (s for view in views for s in view.steps):
        number, title = Cell(str(s.number or "–"), Tone.DIM, s.number), pages.step_title(s, lang)
        if followed:
            cells = _followed(s, number, title, len(views) > 1, lang, now)
        else:
            risk = str(s.step.risk) if s.step is not None else "safe"
            cells = (
                number,
                title,
                Cell("" if risk == "safe" else f"{MARKS[_RISK[risk]]} {_RISKS[risk].in_(lang)}", _RISK[risk]),
            )
        out.append(Row(f"{s.runbook}/{s.name}", cells, s))
    return out


def _followed(s: StepView, number: Cell, title: str, several: bool, lang: str, now: int) -> tuple[Cell | str, ...]:
    from assistant.incidents import words

    state = Cell(f"{_SIGNS[s.state]} {words.STATES[s.state].in_(lang)}", _STATE[s.state])
    said = Cell(title, Tone.DIM if s.state.ended else Tone.STRONG if s.state == "doing" else Tone.PLAIN)
    who, when = (
        (clean(s.mark.who), Cell(clock(s.mark.at, now), Tone.DIM, s.mark.at)) if s.mark is not None else ("", Cell(""))
    )
    return (state, number, said, *((Cell(s.runbook, Tone.DIM),) if several else ()), Cell(who, Tone.DIM), when)


def event_columns(lang: str) -> tuple[Column, ...]:
    """Of what happened."""
    return _heads(
        lang,
        (Text("UTC", "UTC"), Column("at", "", least=5)),
        (Text("who", "何人"), Column("who", "", most=12)),
        (Text("what happened", "经过"), Column("what", "", least=16, stretch=True)),
        (Text("through", "途径"), Column("surface", "", keep=1)),
    )


def event_rows(incident: Incident, lang: str, now: int) -> list[Row]:
    """Oldest first. Notes of people stand out; what was done by keys does not."""
    from assistant.incidents import words

    out = []
    for told in words.story(incident, lang):
        e, text = told.events[0], " ".join(told.text.split())
        tone = Tone.PLAIN if e.kind in ("note", "message", "closed") else Tone.DIM
        out.append(
            Row(
                str(e.seq),
                (
                    Cell(clock(e.at, now), Tone.DIM, e.at),
                    clean(e.who) or "–",
                    Cell(text, tone),
                    Cell(clean(e.surface), Tone.DIM),
                ),
                told,
            )
        )
    return out


def clock(ns: int, now: int) -> str:
    """A time in UTC as short as it can be: ``20:05`` today, ``11-20 20:05`` this year, else the date."""
    from assistant.render.times import iso

    text = iso(ns - ns % 10**9)
    if now // DAY == ns // DAY:
        return text[11:16]
    return f"{text[5:10]} {text[11:16]}" if iso(now)[:4] == text[:4] else text[:10]


def load(grid: Grid, new: Sequence[Row]) -> None:
    """Other rows, when they are others."""
    if list(grid.rows) != list(new):
        grid.load(new)
