"""The views of the trace screen: which is shown, what is known of it, and the lines around it."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING

from rich.text import Text as Line
from textual.containers import Container
from textual.widgets import Static

from knowledge.errors import UsageError
from tui.screens._pane import Pane
from tui.tones import Tone
from tui.traces.capture import Capture
from tui.traces.compare import Compare
from tui.traces.files import Files, Paged
from tui.traces.graph import Graph
from tui.traces.iterations import Iterations
from tui.traces.opened import Opened, named
from tui.traces.overview import Overview
from tui.traces.reading import Progressed, Reading
from tui.traces.tables import Kernels, Operators, Ranks
from tui.traces.verdict import Verdict
from tui.traces.view import View
from tui.widgets.bars import Bars
from tui.widgets.choices import Choices
from tui.widgets.columns import clip
from tui.widgets.command_line import CommandLine
from tui.widgets.flame import Flame
from tui.widgets.grid import Grid

if TYPE_CHECKING:
    from textual.app import ComposeResult
    from textual.widget import Widget

    from tui.app import GpudiagApp

VIEWS: Mapping[str, type[View]] = {
    v.KEY: v for v in (Files, Overview, Iterations, Kernels, Operators, Graph, Ranks, Compare, Paged, Capture)
}
_LOW = 24  # lines below which there are no blank ones


class Viewing(Pane):
    """One view of what is open, and what is told about it."""

    app: GpudiagApp
    DEFAULT_CSS = """
    Viewing { layout: vertical; }
    Viewing #what { height: 1; padding: 0 1; }
    Viewing Choices { margin-bottom: 1; }
    Viewing #views { height: 1fr; }
    Viewing #detail { height: 3; padding: 0 1; margin-top: 1; }
    Viewing.-low #detail { margin-top: 0; height: 2; }
    Viewing.-low Verdict.-tight { margin-bottom: 0; }
    """

    def __init__(self) -> None:
        super().__init__()
        self._view = "files"
        self._made: dict[str, View] = {}
        self._shown: dict[str, tuple[str, ...]] = {}  # view -> the words whose answer it shows
        self._lang = ""

    def compose(self) -> ComposeResult:
        """What is open, the views, the verdict, the view, what is under the cursor."""
        yield Static(id="what", markup=False)
        yield Choices()
        yield Verdict()
        yield Container(id="views")
        yield Static(id="detail", markup=False)

    def on_mount(self) -> None:
        """Nothing is open yet, or what was named is being looked for."""
        self._lang = self.desk.lang
        self._show_view()

    @cached_property
    def reading(self) -> Reading:
        """What was read of it."""
        return Reading(self, self.desk)

    def on_resize(self) -> None:
        """Another size."""
        self.set_class(self.size.height < _LOW, "-low")
        self._tell()

    @property
    def opened(self) -> Opened:
        """What is open."""
        return self.reading.opened

    @property
    def view(self) -> View | None:
        """The view that is shown, once it is there."""
        view = self._made.get(self._view)
        return view if view is not None and view.children else None

    # --- views ----------------------------------------------------------------------------

    def go(self, view: str) -> None:
        """Show a view. UsageError for one that there is not."""
        there = ("files", *self.opened.views)
        if view not in there:
            raise UsageError(f"there is no view {view!r} of this", hint=", ".join(there), zh=f"此处没有视图 {view!r}")
        self._view = view
        self._show_view()
        self._want()
        self._focus_view()

    def _want(self) -> None:
        if self._view != "files":
            self.reading.want(self._view, VIEWS[self._view], max(40, self.size.width - 3))
            self._show_view()

    def _focus_view(self) -> None:
        """The view takes the keys, where the screen has them."""
        workspace = self.app.workspace
        target = self.first()
        if target is not None and workspace.name_shown == self.NAME and not workspace.query_one(CommandLine).is_open:
            target.focus()

    def first(self) -> Widget | None:
        """What takes the keys: the first of the view that does."""
        view = self.view
        return next((w for w in view.query("*") if w.focusable and w.display), None) if view is not None else None

    def _current(self) -> View:
        """The widget of the view; it is made when it is first looked at."""
        view = self._made.get(self._view)
        if view is None:
            view = self._made[self._view] = VIEWS[self._view]()
            self.query_one("#views", Container).mount(view)
            self.call_after_refresh(self._ready, self._view)
        return view

    def _ready(self, view: str) -> None:
        if view == "files":
            self.refill()
        if view == self._view:
            self._show_view()
            self._focus_view()

    def _show_view(self) -> None:
        """What is known of the view that is chosen."""
        if not self.children:
            return
        current = self._current()
        for view in self._made.values():
            view.display = view is current
            view.disabled = view is not current  # what is hidden takes no keys
        words = self.opened.words(self._view)
        self._say(words)
        answer = self.reading.answers.get(words)
        if (
            current.children
            and self._view != "files"
            and self._shown.get(self._view, ("",)) != (words if answer else ())
        ):
            self._shown[self._view] = words if answer else ()
            if answer is not None:
                current.show(self.opened, answer.shown)
            else:
                current.clear()
        self._tell()
        self.call_after_refresh(self._keep_keys)

    def _keep_keys(self) -> None:
        """The keys are with what is shown: what had them is hidden, or was asked for them before it was there."""
        workspace = self.app.workspace
        if self.app.screen is workspace and workspace.focused is None:
            self._focus_view()

    def _say(self, words: tuple[str, ...]) -> None:
        """The sentence above the view."""
        verdict, reading = self.query_one(Verdict), self.reading
        verdict.most = VIEWS[self._view].SENTENCE
        verdict.set_class(VIEWS[self._view].TIGHT, "-tight")
        if self._view == "files":
            verdict.tell("")
        elif trouble := reading.troubles.get(words):
            verdict.tell(trouble, Tone.ERROR, self.t("no answer", "没有结果"))
        elif (answer := reading.answers.get(words)) is not None:
            head, file = answer.headline, self.opened.file
            verdict.say({**head, "text": str(head["text"]).replace(file, named(file))} if head and file else head)
        elif reading.running:
            said = reading.said or self.t("reading …", "正在读取……")
            verdict.tell(f"{said}   {self.t('Esc stops', 'Esc 停止')}", Tone.DIM)
        else:
            verdict.tell(self.t("stopped · v reads on", "已停止 · v 继续"), Tone.DIM)

    def on_progressed(self, message: Progressed) -> None:
        """How far it is."""
        message.stop()
        if self.reading.progressed(message):
            self._say(self.opened.words(self._view))

    # --- the lines around it --------------------------------------------------------------

    def _tell(self) -> None:
        """The lines above and below."""
        if not self.children or not self._made:
            return
        titles = [(v, VIEWS[v].TITLE.in_(self.desk.lang)) for v in self._there]
        line = self.query_one(Choices)
        line.show(titles, self._view)
        line.display = len(titles) > 1  # a choice
        faint, room = self.app.theme_variables["faint"], max(10, self.size.width - 2)
        self.query_one("#what", Static).update(Line(clip(self._what(), room), style=faint, no_wrap=True))
        known = self._view == "files" or self._shown.get(self._view)
        name, numbers = self.view.detail() if self.view is not None and known else ("", "")
        lines = Line(clip(name, room), no_wrap=True)
        lines.append("\n" + clip(numbers, room), style=faint)
        lines.append("\n" + clip(self.view.hints() if self.view is not None else "", room), style=faint)
        self.query_one("#detail", Static).update(lines)

    @property
    def _there(self) -> tuple[str, ...]:
        known = self.opened.kind or self.opened.capture
        return ("files", *(self.opened.views if known else ()))

    def _what(self) -> str:
        o = self.opened
        if o.capture:
            return o.capture.rstrip("/").rsplit("/", 1)[-1]
        if not o.files:
            return self.t("no trace is open", "没有打开的轨迹")
        if self._view == "compare":
            return o.compared(self.desk.lang)
        name = named(o.file or o.files[0])
        rank = f" · rank {o.rank}" if o.rank is not None else ""
        many = self.t(f" · {len(o.names)} traces", f" · {len(o.names)} 个轨迹") if len(o.names) > 1 else ""
        return f"{name}{rank}{many}"

    def on_grid_moved(self, event: Grid.Moved) -> None:
        """Another row."""
        event.stop()
        self._tell()

    def on_bars_moved(self, event: Bars.Moved) -> None:
        """Another line."""
        event.stop()
        self._tell()

    def on_flame_moved(self, event: Flame.Moved) -> None:
        """Another frame."""
        event.stop()
        self._tell()

    def refill(self) -> None:
        """The list of what can be opened is there to be filled."""
