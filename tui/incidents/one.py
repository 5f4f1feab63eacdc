"""One incident, or one runbook: its head, its steps, the text of the step under the cursor, and what happened."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

from textual.binding import Binding, BindingType
from textual.containers import Container, VerticalScroll

from knowledge.language import Text
from tui.incidents import rows
from tui.tones import MARKS, Tone, of_severity
from tui.widgets.grid import Grid
from tui.widgets.lines import Lines
from tui.widgets.page import Page

if TYPE_CHECKING:
    from textual import events
    from textual.app import ComposeResult

    from assistant.incidents.fold import Incident
    from assistant.incidents.progress import BookView, StepView
    from assistant.incidents.words import Told
    from assistant.render.sheet import Part
    from knowledge.runbook import Runbook

WIDE, TALL = 104, 30  # columns from which text and timeline stand side by side; lines from which both are there


class OneView(Container):
    """What `show` was given; the cursor stays on its step."""

    DEFAULT_CSS = """
    OneView { layout: vertical; }
    OneView #head { margin-bottom: 1; }
    OneView #below { layout: vertical; height: 1fr; border-top: solid $rule; }
    OneView #about { height: 1fr; scrollbar-size-vertical: 1; background: $background; }
    OneView #log { height: 1fr; display: none; }
    OneView.-tall.-case #log { display: block; border-top: solid $rule; }
    OneView.-wide #below { layout: horizontal; }
    OneView.-wide #about, OneView.-wide #log { width: 1fr; }
    OneView.-wide.-tall.-case #log { border-top: none; border-left: solid $rule; }
    OneView.-turned.-case #log { display: block; border: none; }
    OneView.-turned.-case #about { display: none; }
    """

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.now = time.time_ns  # a test may stop it
        self.steps, self.timeline = Grid((), id="steps"), Grid((), id="log")
        self.steps.add_class("-steady")  # the step that is spoken of stays marked while the keys are elsewhere
        self._incident: Incident | None = None
        self._book: Runbook | None = None
        self._lang = "en"
        self._in_log = False  # whether the timeline had the keys last
        self._said: object = None  # what the text was made from

    def compose(self) -> ComposeResult:
        """Head, steps, and below them text and timeline."""
        yield Lines(id="head")
        yield self.steps
        with Container(id="below"):
            with _About(id="about"):
                yield Page()
            yield self.timeline

    @property
    def keys(self) -> Grid:
        """Which of the two has the keys, or had them last."""
        return self.timeline if self._in_log else self.steps

    @property
    def step(self) -> StepView | None:
        """The step under the cursor."""
        row = self.steps.row
        return row.data if row is not None else None

    @property
    def told(self) -> Told | None:
        """The line under the cursor, while the keys are in the timeline."""
        row = self.timeline.row if self._in_log and self._incident is not None else None
        return row.data if row is not None else None

    # --- what it shows --------------------------------------------------------------------

    def show(
        self, incident: Incident | None, book: Runbook | None, trouble: str, lang: str, others: Sequence[str] = ()
    ) -> None:
        """An incident, or a runbook by itself; painted where it reads differently. `others`: what to say of other incidents."""
        if lang != self._lang or not self.timeline.columns:
            self._lang, self._said = lang, None
            self.timeline.set_columns(rows.event_columns(lang))
        self._incident, self._book = incident, book
        self.set_class(incident is not None, "-case")
        if incident is None:
            self._in_log = False
        self._show_steps()
        if incident is not None:
            self._show_log(incident)
        self._show_head(trouble, others)
        self._show_text()
        self._fit()

    def begin(self, step: str = "") -> None:
        """Put the cursor on a step: this one, else the one that is to be done next."""
        self.steps.filter("")
        views = self._views()
        named = next((s for v in views for s in v.steps if step and step in (s.name, f"{s.runbook}/{s.name}")), None)
        wanted = named or next((v.next for v in views if v.next is not None), None)
        if wanted is not None:
            self.steps.select(f"{wanted.runbook}/{wanted.name}")
        self._in_log = not self.steps.rows

    def turn(self) -> None:
        """The text of the step, or the timeline."""
        self.toggle_class("-turned")
        self._in_log = self.has_class("-turned")
        self.keys.focus()

    def _views(self) -> tuple[BookView, ...]:
        from assistant.incidents.progress import of_runbook, progress

        if self._incident is not None:
            return progress(self._incident)
        return (of_runbook(self._book),) if self._book is not None else ()

    def _show_steps(self) -> None:
        views = self._views()
        steps, columns = self.steps, rows.step_columns(self._lang, self._incident is not None, len(views) > 1)
        new = rows.step_rows(views, self._lang, self.now(), self._incident is not None)
        if columns != steps.columns:
            at = steps.row.key if steps.row is not None else ""
            steps.set_columns(columns)
            steps.load(new)
            steps.select(at)
        rows.load(steps, new)
        steps.display = bool(new)

    def _show_log(self, incident: Incident) -> None:
        log = self.timeline
        last = log.row is None or log.row is log.shown[-1]
        rows.load(log, rows.event_rows(incident, self._lang, self.now()))
        if last:
            log.action_end(1)

    def _show_head(self, trouble: str, others: Sequence[str]) -> None:
        from assistant.incidents import pages, words

        lang, incident, book, head = self._lang, self._incident, self._book, self.query_one("#head", Lines)
        more = (((f"{MARKS[Tone.UNKNOWN]} {trouble}", Tone.UNKNOWN),),) if trouble else ()
        if incident is None:
            if book is not None:
                # in two pieces, so that fifty codes are clipped and leave the steps their room
                about = ((book.id, Tone.DIM), (f" · {', '.join(book.applies)}", Tone.DIM))
                head.show(((book.title.in_(lang), Tone.STRONG),), about, *more)
            return
        grave = words.grade(incident.severity, lang) if incident.severity else ""
        mark = f"{MARKS[of_severity(incident.severity)]} " if grave else ""
        tone = of_severity(incident.severity) if incident.is_open else Tone.DIM
        state = ((mark + grave, tone), (pages.state_line(incident, lang).removeprefix(grave), Tone.DIM))
        ended = (((" ".join(incident.ended.split()), Tone.PLAIN),),) if incident.ended else ()
        none = Text("No runbook yet: :runbook ID follows one.", "尚无处置手册：用 :runbook ID 添加。").in_(lang)
        hint = () if incident.runbooks else (((none, Tone.DIM),),)
        past = tuple(((line, Tone.DIM),) for line in others)
        head.show(((pages.heading(incident, lang), Tone.STRONG),), state, *ended, *past, *hint, *more)

    def _show_text(self) -> None:
        incident = self._incident
        about = (incident.number, incident.findings) if incident is not None else (self._book,)
        key = (about, self._lang, self.step, self.told)
        if key != self._said:
            self._said = key
            self.query_one(Page).show(*self._text())
            self.query_one("#about", VerticalScroll).scroll_home(animate=False)

    def _text(self) -> tuple[str, Sequence[Part], Tone]:
        from assistant.incidents import pages, words
        from assistant.incidents.progress import values_of
        from assistant.render.sheet import Paragraph
        from knowledge.text import clean

        lang, incident, step, told = self._lang, self._incident, self.step, self.told
        if told is not None:
            first = told.events[0]
            said = tuple(Paragraph(words.said(e, lang, incident)) for e in told.events)
            return clean(f"{words.moment(first.at)}  {first.who}  {first.surface}"), said, Tone.DIM
        if step is not None:
            values = values_of(incident) if incident is not None else {}
            lead = f"{step.number}. " if step.number else ""
            return lead + pages.step_title(step, lang), pages.step_parts(step, values, lang)[1:], Tone.STRONG
        return "", (), Tone.PLAIN

    def command(self) -> str:
        """The command of the step under the cursor, ready to be pasted; empty without one."""
        from assistant.incidents import pages
        from assistant.incidents.progress import values_of

        values = values_of(self._incident) if self._incident is not None else {}
        return pages.command_of(self.step, values) if self.step is not None and not self._in_log else ""

    # --- told by Textual ------------------------------------------------------------------

    def on_grid_moved(self, event: Grid.Moved) -> None:
        """Another step, another event: its text."""
        event.stop()
        self._show_text()

    def on_descendant_focus(self, event: events.DescendantFocus) -> None:
        """The keys went from the steps to the timeline, or back."""
        if event.widget in (self.steps, self.timeline):
            self._in_log = event.widget is self.timeline
            self._show_text()

    def on_resize(self) -> None:
        """Side by side where there is room; text and timeline both where it is high enough."""
        self.set_class(self.size.width >= WIDE, "-wide")
        self.set_class(self.size.height >= TALL, "-tall")
        self._fit()

    def _fit(self) -> None:
        """The steps take what they need, but leave room for what is below."""
        self.steps.styles.height = min(len(self.steps.rows) + 1, max(5, self.size.height * 2 // 5))


class _About(VerticalScroll):
    """The text, walked like everything else."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("j", "scroll_down", show=False),
        Binding("k", "scroll_up", show=False),
        Binding("g", "scroll_home", show=False),
        Binding("G", "scroll_end", show=False),
    ]
