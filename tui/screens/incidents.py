"""Incidents and runbooks: what happened, how far its steps are, who did what; and every runbook there is.

The list holds both. Enter shows one in its place, Escape goes back.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from textual.binding import Binding, BindingType
from textual.containers import Container

from knowledge.language import Text
from tui.incidents import rows
from tui.incidents.clerk import Clerk, IncidentRefused, IncidentsRead, IncidentWritten, ReportWritten
from tui.incidents.one import OneView
from tui.messages import Explain
from tui.screens._pane import Pane, ScreenSpec
from tui.tones import MARKS, Tone
from tui.widgets.grid import Grid
from tui.widgets.lines import Lines

if TYPE_CHECKING:
    from textual import events
    from textual.app import ComposeResult
    from textual.timer import Timer

    from assistant.incidents.fold import Incident
    from assistant.incidents.progress import StepView
    from assistant.incidents.questions import Asked
    from assistant.render.sheet import Sheet
    from knowledge.runbook import Runbook
    from tui.commands import Command

EVERY = 10.0  # seconds between two looks at what others wrote


class IncidentsPane(Pane):
    """The list; in its place one incident or one runbook."""

    NAME = "incidents"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,backspace", "leave", "List", show=False),
        Binding("o", "open", "Open incident"),
        Binding("R", "run", "Run"),
        Binding("d", "mark('done')", "Done"),
        Binding("w", "mark('doing')", "Begin"),
        Binding("u", "mark('todo')", "To do", show=False),
        Binding("x", "command('step failed ')", "Failed", show=False),
        Binding("S", "command('step skipped ')", "Skip", show=False),
        Binding("n", "command('note ')", "Note"),
        Binding("a", "take", "Take", show=False),
        Binding("t", "turn", "Timeline", show=False),
        Binding("L", "others", "Others", show=False),
        Binding("W", "report", "Report", show=False),
    ]
    DEFAULT_CSS = """
    IncidentsPane { layout: vertical; }
    IncidentsPane #books-head { margin-top: 1; }
    IncidentsPane #one { display: none; }
    IncidentsPane.-one #one { display: block; }
    IncidentsPane.-one #list { display: none; }
    """

    def __init__(self) -> None:
        super().__init__()
        self.now = time.time_ns  # a test may stop it
        self.clerk = Clerk(self)
        self.cases, self.shelf = Grid((), id="cases"), Grid((), id="books")  # the lists
        self.cases.display = False  # until there is one
        self.one = OneView(id="one")  # what stands in their place
        self.books: tuple[Runbook, ...] = ()
        self.shown_kind, self._which = "", ""  # "incident" and its number, "runbook" and its id; empty: the list
        self._incidents: tuple[Incident, ...] = ()
        self._trouble = ""
        self._known = False  # whether anything has been read
        self._wished = ("", "", "")  # kind, name and step of what is to be shown once it is known
        self._in_books = True  # whether the runbooks had the keys last
        self._day = 0  # days since 1970 when it was drawn
        self._timer: Timer | None = None

    def compose(self) -> ComposeResult:
        """The list, and one of it."""
        with Container(id="list"):
            yield Lines(id="cases-head")
            yield self.cases
            yield Lines(id="books-head")
            yield self.shelf
        yield self.one

    def on_mount(self) -> None:
        """Columns from the beginning."""
        self._set_columns()

    def _set_columns(self) -> None:
        self.cases.set_columns(rows.incident_columns(self.desk.lang))
        self.shelf.set_columns(rows.book_columns(self.desk.lang))

    # --- told by the workspace ------------------------------------------------------------

    def on_shown(self) -> None:
        """Read, and go on reading what others write while it is seen."""
        self.clerk.read()
        if self._timer is None:
            self._timer = self.set_interval(EVERY, self.clerk.read)
        self._timer.resume()

    def on_hidden(self) -> None:
        """Nobody looks: nothing is read."""
        if self._timer is not None:
            self._timer.pause()

    def source_changed(self) -> None:
        """Another language, it may be; incidents are those of any source."""
        self._set_columns()
        self._show()

    def show_target(self, target: str) -> None:
        """``3``; ``gpu-reset``, ``gpu-reset/STEP``; ``open``, ``open FINDING`` and ``open-by-hand TITLE`` begin one."""
        kind, _, rest = target.partition(" ")
        if kind == "open":
            self.clerk.open_found([rest] if rest else [])
        elif kind == "open-by-hand":
            self.clerk.open_by_hand(rest)
        elif target.isdecimal():
            self.go("incident", target)
        else:
            name, _, step = target.removeprefix("runbook ").partition("/")
            self.go("runbook", name, step)

    def on_resize(self) -> None:
        """Another height."""
        self._fit()

    def kept(self) -> Mapping[str, Any]:
        """What was shown."""
        step = self.step
        return {"kind": self.shown_kind, "name": self._which, "step": step.name if step is not None else ""}

    def restore(self, kept: Mapping[str, Any]) -> None:
        """The same again, if it is still there."""
        kind, name, step = (kept.get(k) for k in ("kind", "name", "step"))
        if kind in ("incident", "runbook") and isinstance(name, str) and not self._wished[0] and not self.shown_kind:
            self._wished = (str(kind), name, step if isinstance(step, str) else "")

    # --- told by the clerk ----------------------------------------------------------------

    def on_incidents_read(self, message: IncidentsRead) -> None:
        """Something is known; where the history cannot be read, what was known stays."""
        message.stop()
        incidents = self._incidents if message.trouble and self._incidents else message.incidents
        new = (incidents, message.books, message.trouble)
        day = self.now() // rows.DAY  # times of today are shown without their date
        if self._known and (*new, day) == (self._incidents, self.books, self._trouble, self._day):
            return
        self._day = day
        self._incidents, self.books, self._trouble = new
        self._known = True
        wished = self._wished
        if self._has(*wished[:2]) or not message.trouble:  # what cannot be read now may be there later
            self._wished = ("", "", "")
        if self._has(*wished[:2]):
            self.go(*wished)
        self._show()

    def on_incident_written(self, message: IncidentWritten) -> None:
        """It is kept: show it as it stands now."""
        message.stop()
        self.clerk.done()
        new = message.incident
        rest = [i for i in self._incidents if i.number != new.number]
        self._incidents = tuple(sorted([new, *rest], key=lambda i: (i.is_open, i.number), reverse=True))
        self._trouble = ""
        if message.said:
            self.app.notify(message.said)
        if message.shown:
            self.go("incident", str(new.number))
        self._show()

    def on_incident_refused(self, message: IncidentRefused) -> None:
        """It is not kept: said, and nothing else changes."""
        message.stop()
        self.clerk.done()
        self.app.notify(message.text, severity="error", markup=False)

    def on_report_written(self, message: ReportWritten) -> None:
        """It can be passed on."""
        message.stop()
        self.app.notify(self.t(f"Written: {message.path}", f"已写入：{message.path}"), markup=False)

    # --- what is under the cursor ---------------------------------------------------------

    @property
    def incidents(self) -> tuple[Incident, ...]:
        """All that are known."""
        return self._incidents

    @property
    def incident(self) -> Incident | None:
        """The one that is shown, or under the cursor of the list."""
        if self.shown_kind == "incident":
            return next((i for i in self._incidents if str(i.number) == self._which), None)
        row = self.cases.row if not self.shown_kind and not self._in_books else None
        return row.data if row is not None else None

    @property
    def runbook(self) -> Runbook | None:
        """The runbook that is shown by itself, or under the cursor of the list."""
        if self.shown_kind == "runbook":
            return next((b for b in self.books if b.id == self._which), None)
        row = self.shelf.row if not self.shown_kind and self._in_books else None
        return row.data if row is not None else None

    @property
    def step(self) -> StepView | None:
        """The step under the cursor."""
        return self.one.step if self.shown_kind else None

    @property
    def grid(self) -> Grid | None:
        """The table that has the keys, or had them last."""
        if not self.cases.is_attached:
            return None
        return self.one.keys if self.shown_kind else self.shelf if self._in_books else self.cases

    def on_descendant_focus(self, event: events.DescendantFocus) -> None:
        """The keys went to the other list."""
        if event.widget in (self.cases, self.shelf):
            self._in_books = event.widget is self.shelf
            self.refresh_bindings()

    # --- what is shown --------------------------------------------------------------------

    def _has(self, kind: str, name: str) -> bool:
        known = (b.id for b in self.books) if kind == "runbook" else (str(i.number) for i in self._incidents)
        return name in known

    def go(self, kind: str, name: str, step: str = "") -> None:
        """Show an incident or a runbook, with the cursor on a step; later, when nothing has been read yet."""
        if not self._known:
            self._wished = (kind, name, step)
            return
        if not self._has(kind, name):
            what = (
                self.t("There is no incident", "没有此事件：")
                if kind == "incident"
                else self.t("There is no runbook", "没有此处置手册：")
            )
            self.app.notify(f"{what} {name}", severity="warning", markup=False)
            return
        self.shown_kind, self._which = kind, name
        self._show()
        self.one.begin(step)
        self._take_keys()

    def _take_keys(self) -> None:
        """To the table that is shown now, unless the person is elsewhere or typing."""
        from tui.widgets.command_line import CommandLine
        from tui.workspace import Workspace

        grid, frame = self.grid, self.screen
        if grid is None or not isinstance(frame, Workspace) or frame.name_shown != self.NAME:
            return
        if not frame.query_one(CommandLine).is_open:
            self.call_after_refresh(grid.focus)

    def _show(self) -> None:
        """Draw what is known, where it reads differently."""
        if not self.is_attached or not self._known:
            return
        if self.shown_kind and not self._has(self.shown_kind, self._which):
            self.shown_kind = ""
        self.set_class(bool(self.shown_kind), "-one")
        self._show_list()
        if self.shown_kind:
            self.one.show(self.incident, self.runbook, self._trouble, self.desk.lang, self._others())
        self._fit()
        self.refresh_bindings()

    def _others(self) -> tuple[str, ...]:
        """Other incidents that are worth a line in the head of the one that is shown."""
        from tui.incidents.others import lines

        incident = self.incident
        return lines(incident, self._incidents, self.desk.lang) if incident is not None else ()

    def _show_list(self) -> None:
        lang = self.desk.lang
        rows.load(self.cases, rows.incident_rows(self._incidents, lang, self.now()))
        rows.load(self.shelf, rows.book_rows(self.books, lang))
        if self._incidents and not self.cases.display:
            self.cases.display, self._in_books = True, False
            self._take_keys()
        n = sum(i.is_open for i in self._incidents)
        closed = len(self._incidents) - n
        said = self.t(f"{n} open, {closed} closed", f"{n} 个未关闭，{closed} 个已关闭") if self._incidents else ""
        if not self._incidents and not self._trouble:
            said = self.t("none yet; o opens one from what is found", "暂无；按 o 根据诊断结果开立")
        head = ((self.t("Incidents", "事件"), Tone.STRONG), ("  " + said, Tone.DIM))
        trouble = (((f"{MARKS[Tone.UNKNOWN]} {self._trouble}", Tone.UNKNOWN),),) if self._trouble else ()
        self.query_one("#cases-head", Lines).show(head, *trouble)
        books = ((self.t("Runbooks", "处置手册"), Tone.STRONG), (f"  {len(self.books)}", Tone.DIM))
        self.query_one("#books-head", Lines).show(books)

    def _fit(self) -> None:
        """Incidents take what they need, but leave room for the runbooks."""
        self.cases.styles.height = min(len(self.cases.rows) + 1, max(4, self.size.height * 2 // 5))

    # --- keys -----------------------------------------------------------------------------

    def on_grid_chosen(self, event: Grid.Chosen) -> None:
        """Enter: an incident or a runbook is shown; of a step one says how far it is."""
        event.stop()
        if event.row is None or event.grid is self.one.timeline:
            return
        if event.grid is not self.one.steps:
            self.go("incident" if event.grid is self.cases else "runbook", event.row.key)
        elif self.incident is None:
            self.app.notify(self.t("o opens an incident that follows this runbook.", "按 o 开立按此手册处理的事件。"))
        else:
            self.action_command("step ")

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Keys of one incident only while one is shown; Escape is the workspace's where there is nothing to leave."""
        if action == "leave":
            return bool(self.shown_kind) and not self.desk.talk.busy and not self.one.keys.filtered
        if action in ("mark", "turn"):
            return self.shown_kind == "incident"
        if action in ("command", "take", "run", "others", "report"):
            return self.incident is not None
        if action == "open":
            return self.shown_kind != "incident"
        return super().check_action(action, parameters)

    def action_leave(self) -> None:
        """Back to the list, with the cursor where it was."""
        self._in_books, self.shown_kind = self.shown_kind == "runbook", ""
        self._show()
        if (grid := self.grid) is not None:
            grid.select(self._which)
        self._take_keys()

    def action_turn(self) -> None:
        """The text of the step, or the timeline."""
        self.one.turn()

    def action_command(self, line: str) -> None:
        """Type the rest of a command."""
        from tui.widgets.command_line import CommandLine

        self.screen.query_one(CommandLine).open(":", line)

    def action_mark(self, state: str) -> None:
        """The step under the cursor is done, under way, to do; after what is done comes the next."""
        from tui.incidents.commands import Said

        if self.step is not None:
            Said(self).step(state)
            if state == "done":
                self.one.steps.action_move(1)

    def action_run(self) -> None:
        """Walk the runbook."""
        from tui.incidents.commands import Said

        Said(self).run("")

    def action_others(self) -> None:
        """Which others it is like."""
        from tui.incidents.commands import Said

        Said(self).others()

    def action_report(self) -> None:
        """Type where the report is to go."""
        if self.incident is not None:
            self.action_command(f"report incident-{self.incident.number}.html")

    def action_take(self) -> None:
        """I take care of it."""
        from tui.incidents.commands import Said

        Said(self).owner("")

    def action_open(self) -> None:
        """Begin one: about the runbook that is shown, else about what was found."""
        if self.shown_kind == "runbook" and self.runbook is not None:
            self.clerk.open_by_hand(self.runbook.title.in_(self.desk.lang), [self.runbook.id])
        else:
            self.clerk.open_found()

    # --- habits ---------------------------------------------------------------------------

    def _asked(self) -> Asked | None:
        from assistant.incidents import questions

        incident, book = self.incident, self.runbook
        if incident is None:
            return questions.about_runbook(book.id) if book is not None else None
        if self.shown_kind and self.one.told is not None:
            return questions.about_event(self.one.told.events[0], incident)
        if self.step is not None:
            return questions.about_runbook(self.step.runbook)
        return questions.about_incident(incident)

    def question(self) -> str:
        """About the finding or the runbook behind what is under the cursor."""
        asked = self._asked()
        return asked.text(self.desk.lang) if asked is not None else ""

    def explain(self) -> None:
        """Ask that, as it is meant."""
        asked, lang = self._asked(), self.desk.lang
        if asked is None:
            super().explain()
        else:
            self.post_message(Explain(asked.text(lang), asked.query(lang)))

    def copied(self) -> str:
        """Of a step its command, ready to be pasted; else the row."""
        return (self.one.command() if self.shown_kind else "") or super().copied()

    def exported(self) -> Sheet | None:
        """The whole incident or runbook that is shown; else the list."""
        from assistant.commands.runbook import page
        from assistant.incidents import pages

        incident, book, lang = self.incident, self.runbook, self.desk.lang
        if self.shown_kind == "incident" and incident is not None:
            from assistant.incidents.links import offers
            from assistant.incidents.similar import similar

            return pages.one(incident, lang, similar(incident, self._incidents), offers(incident, self._incidents))
        if self.shown_kind == "runbook" and book is not None:
            return page(book.id, lang)
        return None if self._in_books else pages.many(self._incidents, lang)

    def own_keys(self) -> Sequence[tuple[str, str]]:
        """For help."""
        t = self.t
        return (
            ("o", t("open an incident: from what is found, or for the runbook that is shown", "开立事件：根据诊断结果，或针对当前手册")),
            ("R", t("walk the runbook: each step with its precondition, command and check", "按手册逐步执行：条件、命令与核对")),
            ("d w u", t("the step is done, begun, to do again", "步骤：完成、开始、恢复待办")),
            ("x S", t("the step failed, is skipped, and why", "步骤：失败、跳过，并说明原因")),
            ("n a", t("note something; take care of it yourself", "添加备注；由自己负责")),
            ("t", t("timeline or text of the step", "经过或步骤说明")),
            ("L", t("other incidents: earlier ones like it, the same matter elsewhere; links them", "其他事件：以往类似、可能为同一问题；可关联")),
            ("W", t("write the post-mortem into a file", "将事件报告写入文件")),
            ("y", t("copy the command of the step", "复制步骤的命令")),
        )  # fmt: skip

    def commands(self) -> Sequence[Command]:
        """What can be said about an incident."""
        from tui.incidents.commands import commands

        return commands(self)


SCREEN = ScreenSpec(
    "incidents", 5, Text("Incidents", "事件"), IncidentsPane,
    Text("incidents and runbooks: steps, notes, who did what", "事件与处置手册：步骤、备注、经过"),
)  # fmt: skip
