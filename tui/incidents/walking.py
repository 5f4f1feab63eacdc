"""The dialog in which a person walks an incident's runbook.

The walk itself runs in a thread, the same one as ``gpudiag incident run``: what it asks is answered by words that are typed, so
that nothing is agreed to by one key. Leaving (Esc) ends a command that runs and writes that the step may be gone on with.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, ClassVar

from textual.binding import Binding, BindingType
from textual.containers import Vertical, VerticalScroll
from textual.screen import ModalScreen
from textual.widgets import Input, Static

from tui.incidents.asking import Asker, WalkAsks, WalkEnded, WalkSaid, WalkShows
from tui.tones import MARKS, Tone
from tui.widgets.lines import Lines
from tui.widgets.page import Page

if TYPE_CHECKING:
    from textual.app import ComposeResult
    from textual.widget import Widget

    from assistant.incidents.fold import Incident
    from tui.app import GpudiagApp
    from tui.incidents.orders import RunOrder
    from tui.work import Job

MOST = 300  # pieces that are kept on the screen: all of it stands in the incident


class WalkDialog(ModalScreen[None]):
    """What the walk says, and the line that answers it."""

    app: GpudiagApp
    AUTO_FOCUS = ""
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "leave", "Leave", show=False),
        Binding("pageup", "page(-1)", show=False, priority=True),
        Binding("pagedown", "page(1)", show=False, priority=True),
        Binding("enter", "done", show=False),
    ]
    DEFAULT_CSS = """
    WalkDialog { align: center middle; }
    WalkDialog > Vertical { width: 94%; max-width: 110; height: 92%; background: $panel; padding: 1 1; }
    WalkDialog #walk-head, WalkDialog #walk-keys { padding: 0 1; }
    WalkDialog #walk-said { height: 1fr; margin: 1 0; scrollbar-size-vertical: 1; }
    WalkDialog #walk-said > * { margin-bottom: 1; }
    WalkDialog #walk-said > .walk-line { margin-bottom: 0; }
    WalkDialog #walk-question { margin-bottom: 0; }
    WalkDialog Input { border: none; height: 1; padding: 0 1; background: $background; }
    WalkDialog #walk-keys { color: $faint; margin-top: 1; height: 1; }
    """

    def __init__(self, incident: Incident, order: RunOrder) -> None:
        super().__init__()
        self._incident, self._order = incident, order
        self._asker: Asker | None = None
        self._asking = False  # whether an answer is waited for
        self._since = 0.0  # time.monotonic() when it was asked
        self._leaving = False
        self.over = False  # the walk has ended

    def compose(self) -> ComposeResult:
        """What it is about, what was said, the question, the line, the keys."""
        with Vertical():
            yield Lines(id="walk-head")
            yield VerticalScroll(id="walk-said", can_focus=False)
            yield Lines(id="walk-question")
            yield Input(compact=True, disabled=True)
            yield Static(id="walk-keys", markup=False)

    def on_mount(self) -> None:
        """Begin."""
        from assistant.incidents import pages

        lang, incident = self.app.desk.lang, self._incident
        self.query_one("#walk-head", Lines).show(((pages.heading(incident, lang), Tone.STRONG),))
        self._told()
        self.app.desk.jobs.start("walk", self._walk, lambda _, said: self.post_message(WalkEnded(said)))

    # --- in the thread ------------------------------------------------------------------------

    def _walk(self, job: Job) -> None:
        from tui.incidents.route import walked

        self._asker = asker = Asker(self.post_message, job)
        if self._leaving:  # before it began
            asker.leave()
        walked(self.app.desk, self._incident.number, self._order, asker)
        asker.tell(WalkEnded())

    # --- told by the walk ---------------------------------------------------------------------

    def on_walk_said(self, event: WalkSaid) -> None:
        """A line; of a command what it printed."""
        from knowledge.text import clean

        event.stop()
        lines = [clean(line) for line in event.text.in_(self.app.desk.lang).split("\n")]
        self._add(_spoken(*((line, Tone.ACCENT if line.startswith("$ ") else Tone.PLAIN) for line in lines)))

    def on_walk_shows(self, event: WalkShows) -> None:
        """A step begins."""
        event.stop()
        self._add(Page(event.title, event.parts))

    def on_walk_asks(self, event: WalkAsks) -> None:
        """The line is open for the answer."""
        event.stop()
        if self._leaving:
            return
        self._asking, self._since = True, time.monotonic()
        self.query_one("#walk-question", Lines).show(((event.question.in_(self.app.desk.lang), Tone.STRONG),))
        line = self.query_one(Input)
        line.value, line.disabled = "", False
        line.focus()
        self._told()

    def on_walk_ended(self, event: WalkEnded) -> None:
        """Nothing is asked any more; after leaving it closes by itself."""
        event.stop()
        self.over = True
        self._close_line()
        if event.trouble:
            self._add(_spoken((f"{MARKS[Tone.ERROR]} {event.trouble}", Tone.ERROR)))
        elif self._leaving:
            self.dismiss(None)
            return
        self._told()

    @property
    def meant(self) -> bool:
        """Whether what is typed now is an answer."""
        return self._asking and time.monotonic() - self._since >= self.app.pause

    def _add(self, piece: Widget) -> None:
        said = self.query_one("#walk-said", VerticalScroll)
        piece.set_class(isinstance(piece, Lines), "walk-line")
        if len(said.children) >= MOST:
            said.children[0].remove()
        said.mount(piece)
        self.call_after_refresh(said.scroll_end, animate=False)

    def _close_line(self) -> None:
        self._asking = False
        line = self.query_one(Input)
        line.value, line.disabled = "", True
        self.query_one("#walk-question", Lines).show()

    def _told(self) -> None:
        """The keys that hold."""
        t = self.app.t
        if self.over:
            said = t("Enter: close   PgUp PgDn: read", "Enter：关闭   PgUp PgDn：翻阅")
        elif self._leaving:
            said = t("leaving …   Esc: close at once", "正在离开……   Esc：立即关闭")
        elif self._asking:
            said = t("Enter: answer   Esc: leave, and go on later   PgUp PgDn: read",
                     "Enter：回答   Esc：离开，之后可继续   PgUp PgDn：翻阅")  # fmt: skip
        else:
            said = t("working …   Esc: stop and leave", "正在执行……   Esc：停止并离开")
        self.query_one("#walk-keys", Static).update(said)

    # --- keys ---------------------------------------------------------------------------------

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """The answer."""
        event.stop()
        if not self.meant or self._asker is None:
            self.query_one(Input).value = ""
            return
        question = self.query_one("#walk-question", Lines).text
        self._add(_spoken((question, Tone.DIM), (f"> {event.value}", Tone.STRONG)))
        self._close_line()
        self._told()
        self._asker.answer(event.value)

    def action_done(self) -> None:
        """Close what is over."""
        if self.over:
            self.dismiss(None)

    def action_leave(self) -> None:
        """Leave; a second time at once, while a command or a probe takes its time to end."""
        if self.over or self._leaving:
            self.dismiss(None)
            return
        self._leaving = True
        self._close_line()
        if self._asker is not None:
            self._asker.leave()
        self._told()

    def action_page(self, by: int) -> None:
        """Read what was said."""
        said = self.query_one("#walk-said", VerticalScroll)
        (said.scroll_page_up if by < 0 else said.scroll_page_down)(animate=False)


def _spoken(*pieces: tuple[str, Tone]) -> Lines:
    """Lines, each in one tone: they wrap."""
    out = Lines()
    out.show(*((piece,) for piece in pieces))
    return out
