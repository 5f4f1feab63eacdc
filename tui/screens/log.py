"""The log of what is looked at: a machine's kernel log as it grows, a recording's, or the files that were named."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from textual.binding import Binding, BindingType

from knowledge.language import Text
from tui.messages import Explain, Goto
from tui.screens._log_reading import Came, read
from tui.screens._log_rows import LIMIT, Held, in_full, line_of, moment_of
from tui.screens._pane import Pane, ScreenSpec
from tui.tones import Tone
from tui.widgets.columns import Column, Row
from tui.widgets.grid import Grid
from tui.widgets.notes import Note, Notes

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from textual.app import ComposeResult

    from assistant.live.frames import Frame
    from tui.commands import Command
    from tui.desk import Picture
    from tui.work import Job

LOW = 28  # lines of a pane that has few


class LogPane(Pane):
    """Lines, what they mean, and the one under the cursor in full."""

    NAME = "log"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("n", "mark(1)", "Next mark"),
        Binding("N", "mark(-1)", "Mark before", show=False),
        Binding("m", "only", "Marked only"),
        Binding("o", "other", "Other log", show=False),
    ]
    DEFAULT_CSS = """
    LogPane #log-head { height: 1; }
    LogPane #log-line { height: 9; border-top: solid $rule; }
    LogPane.-low #log-line { height: 6; }
    """

    def __init__(self) -> None:
        super().__init__()
        self._job: Job | None = None
        self._logs: list[Held] = []
        self._into: list[Held] = self._logs  # where what is read goes: aside, while the log is read again
        self._at = 0  # which log is shown
        self._source = ""  # what is followed
        self._done = self._only = False
        self._look: float | None = None  # the look that the lines are as new as
        self._target = ""
        self._moment: int | None = None  # of a recording that is played, ns UTC

    def compose(self) -> ComposeResult:
        """What is read, the lines, the line."""
        yield Notes(id="log-head")
        grid = Grid(self._columns(), id="log-lines")
        grid.follow = True
        yield grid
        yield Notes(id="log-line")

    def _columns(self) -> tuple[Column, ...]:
        return (
            Column("time", self.t("time", "时间"), least=14),
            Column("mark", "", least=1, most=1),
            Column("event", self.t("event", "事件"), least=8, most=16, keep=1),
            Column("line", self.t("line", "日志行"), least=24, stretch=True),
            Column("meaning", self.t("meaning", "含义"), least=12, most=38, keep=2),
        )

    @property
    def lines(self) -> Grid:
        """The table of lines."""
        return self.query_one("#log-lines", Grid)

    @property
    def _now(self) -> Held | None:
        return self._logs[self._at] if self._at < len(self._logs) else None

    # --- reading --------------------------------------------------------------------------

    def on_shown(self) -> None:
        """Begin to read, once."""
        if not self.query("#log-line"):  # not all of it has been made
            self.call_after_refresh(self.on_shown)
            return
        if self._job is None:
            self._begin()
        if self.desk.player is not None:
            self.moment_changed(None, self.desk.player.moment)

    def source_changed(self) -> None:
        """Another machine or recording, or another language."""
        self._stop()
        self._logs = self._into = []
        self._at, self._look, self._source, self._done, self._moment = 0, None, "", False, None
        self.lines.faded = None
        self.lines.set_columns(self._columns())
        self.lines.load(())
        self._paint()
        if self.display:
            self._begin()

    def picture_changed(self, picture: Picture) -> None:
        """A look ended: a log that nobody follows is read again with it."""
        if picture.at is None or picture.at == self._look or picture.moment is not None:
            return
        first, self._look = self._look is None, picture.at
        if not first and self._done and not self._source:
            self._begin()

    def moment_changed(self, frame: Frame | None, moment: int) -> None:
        """A recording is played: lines after the moment are not known yet, and the cursor goes along."""
        player = self.desk.player
        if player is None or moment == self._moment or not self.query("#log-lines"):
            return
        at_end = moment >= player.timeline.end
        first, self._moment = self._moment is None, moment
        self.lines.faded = None if at_end else lambda row: (t := moment_of(row)) is not None and t > moment
        self.lines.refresh()
        if not (first and at_end):
            self._go_to(moment)

    def on_resize(self) -> None:
        """A low screen has fewer lines for the line in full."""
        if self.has_class("-low") != (self.size.height < LOW):
            self.toggle_class("-low")
            if self.query(Notes):
                self._detail(self.lines.row)

    def on_unmount(self) -> None:
        """Nobody listens any more."""
        self._stop()

    def _stop(self) -> None:
        if self._job is not None:
            self._job.stop()
        self._job = None

    def _begin(self) -> None:
        self._stop()
        self._into = [] if self._logs else self._logs
        self._done = False
        desk = self.desk
        self._job = desk.jobs.start("log", lambda job: read(job, desk, self.post_message))
        self._paint()

    def on_log_came(self, message: Came) -> None:
        """The thread has something."""
        if message.job is not self._job:
            return
        aside = self._into is not self._logs
        self._source = message.source or self._source
        if message.log is not None:
            self._into.append(Held(message.log))
        elif message.rows and self._into:
            log = self._into[0 if message.fresh else -1]
            log.take(message.rows)
            if not aside and log is self._now:
                self.lines.append([r for r in message.rows if not self._only or line_of(r).decoded], LIMIT)
        if message.done:
            self._done = True
            if aside:
                self._logs = self._into
                self._at = min(self._at, max(0, len(self._logs) - 1))
                self._load()
            self._arrive(first=not aside)
        self._paint()

    def _load(self) -> None:
        """The rows of the log that is shown."""
        rows = self._now.rows if self._now is not None else []
        self.lines.load([r for r in rows if line_of(r).decoded] if self._only else rows)

    def _arrive(self, *, first: bool) -> None:
        """The log is there: go to what was asked for, or to where a recording first tells of trouble."""
        if self._target:
            target, self._target = self._target, ""
            self.show_target(target)
        elif first and not self.desk.origin.here and self.lines.at >= len(self.lines.shown) - 1:
            marks = [r for r in self.lines.shown if line_of(r).decoded is not None]
            grave = next(
                (r for r in marks if (d := line_of(r).decoded) is not None and d.grave), marks[0] if marks else None
            )
            if grave is not None:
                self.lines.select(grave.key)

    # --- what stands around the lines -----------------------------------------------------

    def _paint(self) -> None:
        self.query_one("#log-head", Notes).show((Note(self._head(), Tone.DIM),))
        now = self._now
        if now is None:
            self.lines.empty = "" if self._done else self.t("reading …", "正在读取 …")
        elif not now.log.data:
            why = now.log.why.in_(self.desk.lang)
            self.lines.empty = self.t(f"could not look: {why}", f"无法查看：{why}") if why else self.t("empty", "空")
        else:
            self.lines.empty = self.t("no line is marked", "没有标记的行") if self._only else self.t("empty", "空")
        if not self.lines.rows:
            self.lines.refresh()
            self._detail(None)

    def _head(self) -> str:
        now = self._now
        if now is None:
            return self.t("nothing to read", "没有可读的日志") if self._done else self.t("reading …", "正在读取 …")
        parts = now.told(self.desk.lang)
        if self._only:
            parts.append(self.t("marked only", "只看标记行"))
        if len(self._logs) > 1:
            parts.append(
                self.t(f"log {self._at + 1}/{len(self._logs)} (o)", f"日志 {self._at + 1}/{len(self._logs)}（o）")
            )
        if not self._done or self._into is not self._logs:
            parts.append(self.t("reading …", "正在读取 …"))
        elif self.desk.origin.here and not self._at:
            parts.append(self.t(f"following {self._source}", f"跟踪 {self._source}") if self._source
                         else self.t("not followed", "未跟踪"))  # fmt: skip
        elif now.log.why:
            parts.append(now.log.why.in_(self.desk.lang))
        return " · ".join(parts)

    def _detail(self, row: Row | None) -> None:
        now, room = self._now, 1 if self.has_class("-low") else 2
        notes = in_full(line_of(row), now.title, self.desk.lang, room) if row is not None and now is not None else []
        self.query_one("#log-line", Notes).show(notes)

    def on_grid_moved(self, message: Grid.Moved) -> None:
        """Another line."""
        message.stop()
        self._detail(message.row)

    def on_grid_chosen(self, message: Grid.Chosen) -> None:
        """Its page, else what the conversation says."""
        message.stop()
        d = line_of(message.row).decoded if message.row is not None else None
        if d is not None and d.topic:
            self.post_message(Goto("knowledge", d.topic))
        else:
            self.explain()

    # --- habits ---------------------------------------------------------------------------

    @property
    def grid(self) -> Grid | None:
        """The lines; None before they are made."""
        return next(iter(self.query(Grid)), None)

    def question(self) -> str:
        """What the line means."""
        row = self.lines.row
        return line_of(row).question(self.desk.lang) if row is not None else ""

    def explain(self) -> None:
        """Ask it; what no parser knows is not taken for a person's own words."""
        row = self.lines.row
        if row is None or not self.question():
            super().explain()
        else:
            self.post_message(Explain(self.question(), line_of(row).query(self.desk.lang)))

    def copied(self) -> str:
        """The line as it was written."""
        row = self.lines.row
        return line_of(row).raw if row is not None else ""

    def show_target(self, target: str) -> None:
        """``line 12``, ``FILE:12``, or ``at NS``: the last line up to then. Waits for lines that are still to come."""
        if not self._done:
            self._target = target
            return
        name, _, number = target.rpartition(" " if " " in target else ":")
        if not number.isdecimal():
            return
        if name == "at":
            self._go_to(int(number))
            return
        for n, log in enumerate(self._logs):
            if log.log.title == name and n != self._at:
                self._show(n)
        if not self.lines.select(number) and self._only:
            self.action_only()
            self.lines.select(number)

    def _go_to(self, at: int) -> None:
        """The last line that was written at `at` (ns UTC) or before."""
        before = [r for r in self.lines.shown if (t := moment_of(r)) is not None and t <= at]
        if before:
            self.lines.select(before[-1].key)

    def commands(self) -> Sequence[Command]:
        """``:log`` and ``:line``."""
        from tui.commands import Command

        return (
            Command("log", "NAME", Text("show another log of this source", "切换到此来源的另一份日志"), self._named,
                    lambda _: [log.log.title for log in self._logs]),
            Command("line", "NUMBER", Text("go to a line of the log", "跳到日志的某一行"),
                    lambda number: self.show_target(f"line {number}")),
            Command("marked", "", Text("show decoded lines only, or all", "只显示已解码的行，或显示全部"), lambda _: self.action_only()),
        )  # fmt: skip

    def kept(self) -> Mapping[str, Any]:
        """Whether only marked lines are shown."""
        return {"only": self._only}

    def restore(self, kept: Mapping[str, Any]) -> None:
        """The same."""
        self._only = kept.get("only") is True

    # --- keys -----------------------------------------------------------------------------

    def action_mark(self, by: int) -> None:
        """To the next line that means something, or the one before."""
        shown, at = self.lines.shown, self.lines.at
        places = range(at + 1, len(shown)) if by > 0 else range(at - 1, -1, -1)
        there = next((n for n in places if line_of(shown[n]).decoded is not None), None)
        if there is None:
            self.app.notify(self.t("No marked line beyond this one.", "该方向没有其他标记行。"), timeout=2)
        else:
            self.lines.select(shown[there].key)

    def action_only(self) -> None:
        """Decoded lines only, or all; the cursor stays on its line."""
        self._only = not self._only
        self._load()
        self._paint()

    def action_other(self) -> None:
        """The next log of this source."""
        if len(self._logs) > 1:
            self._show((self._at + 1) % len(self._logs))
        else:
            self.app.notify(self.t("This source has one log.", "此来源只有一份日志。"), timeout=2)

    def _named(self, name: str) -> None:
        titles = [log.log.title for log in self._logs]
        found = [n for n, title in enumerate(titles) if name.casefold() in title.casefold()]
        if not found:
            from knowledge.errors import UsageError

            raise UsageError(f"there is no log {name!r} here", hint=", ".join(titles), zh=f"此处没有日志 {name!r}")
        self._show(found[0])

    def _show(self, n: int) -> None:
        self._at = n
        self.lines.load(())  # the cursor's line is of another log
        self._load()
        self._arrive(first=True)
        self._paint()


SCREEN = ScreenSpec(
    "log", 6, Text("Log", "日志"), LogPane,
    Text("the kernel log, line by line, with what its lines mean", "逐行查看内核日志及其含义"),
)  # fmt: skip
