"""Traces of profilers, and captures of running jobs: what bounds them, step by step and down to the kernel.

Traces are read by processes of their own, one view at a time; what was read is kept until others are opened.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from textual.binding import Binding, BindingType

from knowledge.errors import UsageError
from tui.messages import Explain
from tui.traces.capture import Capture
from tui.traces.files import Files, choices, headline
from tui.traces.iterations import Iterations
from tui.traces.opened import Opened
from tui.traces.overview import Overview
from tui.traces.reading import Analysed, Listed, Recognised
from tui.traces.tables import Kernels, Operators, Ranks
from tui.traces.viewing import VIEWS, Viewing
from tui.widgets.bars import Bars
from tui.widgets.choices import Choices
from tui.widgets.grid import Grid

if TYPE_CHECKING:
    from assistant.render.sheet import Sheet
    from tui.commands import Command

RECENT = 12  # of what was open that is remembered


class TracesPane(Viewing):
    """What is open, and one view of it."""

    NAME = "traces"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("v", "turn(1)", "View"),
        Binding("V", "turn(-1)", "View before", show=False),
        Binding("o", "files", "Open"),
        Binding("d", "compare", "Difference", show=False),
        Binding("t", "time", "GPU or host", show=False),
        Binding("w", "window", "Window", show=False),
        Binding("escape", "give_up", "Stop", show=False),
    ]

    def __init__(self) -> None:
        super().__init__()
        self._recent: list[dict[str, Any]] = []
        self._captures: Sequence[Mapping[str, Any]] = ()
        self._inputs: Sequence[str] = ()
        self._listed, self._asked = False, False  # whether captures are known, and were looked for
        self._wish: tuple[tuple[str, ...], str] = ((), "")  # files and view to begin with

    @property
    def captures(self) -> list[str]:
        """Ids of the captures that are kept."""
        return [str(c["id"]) for c in self._captures]

    # --- told by the workspace ------------------------------------------------------------

    def on_shown(self) -> None:
        """Open what was named or open last; look what else there is."""
        (files, view), self._wish = self._wish, ((), "")
        if files and not self.opened.files and not self.opened.capture:
            self.open(files, view)
        if not self._asked:
            self._asked = True
            self.reading.survey()

    def source_changed(self) -> None:
        """Other files may be traces; another language is another text."""
        self._inputs, self._asked = (), bool(self.display and self.children)
        if self._asked:
            self.reading.survey()
        if self._lang != self.desk.lang and self.children:
            self._lang = self.desk.lang
            self.reading.turn_to(self.opened)
            for view in self._made.values():
                view.remove()
            self._made, self._shown = {}, {}
            self._show_view()
            self._want()

    def restore(self, kept: Mapping[str, Any]) -> None:
        """What was open, and what was open before; what the command line names goes ahead of it."""
        recent = kept.get("recent")
        if isinstance(recent, list):
            self._recent = [r for r in recent if isinstance(r, dict) and _names(r.get("files"))][:RECENT]
        if named := _names(list(self.desk.args.trace)):
            self._wish = (named, "")
        elif files := _names(kept.get("files")):
            view = kept.get("view")
            self._wish = (files, view if isinstance(view, str) else "")

    def kept(self) -> Mapping[str, Any]:
        """The same."""
        return {"recent": self._recent, "files": list(self.opened.files), "view": self._view}

    def show_target(self, target: str) -> None:
        """A view, or a file."""
        if target in VIEWS:
            self.go(target)
        elif target:
            self.open((target,))

    # --- opening --------------------------------------------------------------------------

    def open(self, files: Sequence[str], view: str = "") -> None:
        """Look at these traces. UsageError for none."""
        if not files:
            raise UsageError("no trace was named", zh="未给出跟踪文件")
        if "-" in files:
            raise UsageError("standard input is the keyboard here", hint=":trace FILE", zh="此处标准输入是键盘")
        self._shown = {}
        self._view = "overview"
        # The next start may be in another folder, and what is remembered is to be found from there.
        self.reading.find(tuple(str(Path(f).absolute()) for f in files), view)
        self._show_view()

    def open_capture(self, name: str) -> None:
        """Look at a capture, by its id or folder."""
        name = next((str(c["folder"]) for c in self._captures if c["id"] == name.strip()), name.strip())
        self._shown = {}
        self.reading.turn_to(Opened(capture=name))
        self.go("capture")

    def on_recognised(self, message: Recognised) -> None:
        """Read it; or say why that cannot be."""
        message.stop()
        if self.reading.found(message):
            self._remember("")
            there = self.opened.views
            self.go(message.view if message.view in there else there[0])
        else:
            self._show_view()

    def _remember(self, said: str) -> None:
        files = list(self.opened.files)
        if files:
            before = next((r for r in self._recent if r["files"] == files), {})
            others = [r for r in self._recent if r["files"] != files]
            self._recent = [{"files": files, "said": said or before.get("said", "")}, *others][:RECENT]
            self.refill()

    def difference(self, words: tuple[str, ...], files: tuple[str, ...] = ()) -> None:
        """Show what ``trace diff WORDS`` says; `files`: what is open then, where nothing was."""
        if not self.opened.file:
            self.reading.turn_to(Opened(files[:1], files[:1], "trace", files[0]))
        self.reading.opened = self.opened._replace(other=words)
        self.go("compare")

    def show_rank(self, rank: int | None, file: str, view: str = "") -> None:
        """Look at another rank."""
        self.reading.opened = self.opened._replace(rank=rank, file=file)
        self._shown = {}
        self.go(view or (self._view if self._view in self.opened.views else "overview"))

    def on_analysed(self, message: Analysed) -> None:
        """An answer, or none; another view may have been chosen meanwhile."""
        message.stop()
        self.reading.analysed(message)
        if message.answer is not None and message.answer.ranks:
            self._remember(headline(message.answer.headline))
        if message.answer is not None and self._view == "flame" and self._without_gpu(message.answer.shown):
            self.app.notify(self.t("it holds no GPU time: this is the host's", "没有 GPU 时间：显示的是主机时间"))
            self.action_time()
        self._show_view()
        if self._view != "files" and self.reading.untold(self._view):
            self._want()

    def _without_gpu(self, shown: object) -> bool:
        """Whether a flame graph of the GPU's time is empty."""
        return self.opened.time == "gpu" and getattr(shown, "time", "") == "gpu" and not getattr(shown, "total", 1)

    def on_listed(self, message: Listed) -> None:
        """Show them; what is looked at is opened when nothing else is."""
        message.stop()
        self._captures, self._inputs, self._listed = message.captures, message.inputs, True
        self.refill(message.trouble)
        if self._inputs and not self.opened.files and not self.opened.capture:
            self.open(self._inputs)

    def refill(self, trouble: str = "") -> None:
        """The list of what can be opened, as it is known now."""
        files = self._made.get("files")
        if isinstance(files, Files) and files.children:
            none = self.t("No trace is open. :trace FILE opens one.", "没有打开的轨迹。:trace 文件 可打开。")
            empty = trouble or none if self._listed else self.t("looking …", "正在查找……")
            files.load(choices(self._recent, self._inputs, self._captures), empty)
            self._tell()

    # --- what was read --------------------------------------------------------------------

    # --- choosing -------------------------------------------------------------------------

    def on_choices_picked(self, event: Choices.Picked) -> None:
        """A view was clicked."""
        event.stop()
        self.go(event.key)

    def on_grid_chosen(self, event: Grid.Chosen) -> None:
        """Open a file, look at a rank, or see where a kernel is called."""
        event.stop()
        view = self.view
        if isinstance(view, Files) and (choice := view.chosen) is not None:
            if choice.kind == "capture":
                self.open_capture(choice.files[0])
            else:
                self.open(choice.files)
        elif isinstance(view, Ranks) and (rank := view.chosen()) is not None:
            self.show_rank(rank["rank"], rank["file"], "overview")
        elif isinstance(view, Kernels | Operators):
            self._find_in_graph(view.name_shown())

    def on_bars_chosen(self, event: Bars.Chosen) -> None:
        """A kernel of the overview: where it is called; a trace of a capture."""
        event.stop()
        if isinstance(view := self.view, Overview):
            self._find_in_graph(view.kernel_name())
        elif isinstance(view, Capture) and (name := view.trace()):
            self.open((name,))

    def _find_in_graph(self, name: str) -> None:
        if not name:
            return
        from assistant.trace.words import short

        self.go("flame")
        self.call_after_refresh(self._made["flame"].find, short(name))

    # --- keys -----------------------------------------------------------------------------

    def action_turn(self, by: int) -> None:
        """The next view."""
        there = self._there
        here = there.index(self._view) if self._view in there else 0
        self.go(there[(here + by) % len(there)])

    def action_files(self) -> None:
        """What else there is."""
        self.go("files")

    def action_compare(self) -> None:
        """A step with an ordinary one; a rank or a file with the one that is open."""
        view, file = self.view, self.opened.file
        if isinstance(view, Iterations) and (pair := view.pair()) is not None:
            self.difference(("--iterations", f"{pair[0]}:{pair[1]}", "--", file))
        elif isinstance(view, Ranks) and (rank := view.chosen()) is not None and rank["file"] != file:
            self.difference(("--", file, rank["file"]))
        elif isinstance(view, Files) and file and (c := view.chosen) is not None and c.kind != "capture":
            self.difference(("--", file, c.files[0]))
        else:
            said = self.t(
                "d compares a step, a rank or a file with what is open", "d：将迭代、rank 或文件与当前轨迹对比"
            )
            self.app.notify(said)

    def action_time(self) -> None:
        """The flame graph by the other time."""
        if "flame" in self.opened.views:
            self.reading.opened = self.opened._replace(time="cpu" if self.opened.time == "gpu" else "gpu")
            self.go("flame")

    def action_window(self) -> None:
        """The whole trace, or its steps alone where there are enough."""
        self.reading.opened = self.opened._replace(window="trace" if self.opened.window == "auto" else "auto")
        self.go(self._view)

    def action_give_up(self) -> None:
        """Read it no further."""
        self.reading.stop()
        self._show_view()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Escape is ours while something is read."""
        return bool(self.reading.running) if action == "give_up" else True

    # --- habits ---------------------------------------------------------------------------

    @property
    def grid(self) -> Grid | None:
        """The table of the view."""
        return self.view.grid if self.view is not None and self.view.is_mounted else None

    def question(self) -> str:
        """Of what is under the cursor."""
        said = self.view.question() if self.view is not None and self._asked_of() else None
        return said.in_(self.desk.lang) if said is not None else ""

    def _asked_of(self) -> tuple[str, ...]:
        """The files that a question is about."""
        if isinstance(view := self.view, Files):
            return view.chosen.inputs if view.chosen is not None else ()
        return self.opened.inputs

    def explain(self) -> None:
        """Ask it of the traces, whatever else is looked at."""
        if not (said := self.question()):
            super().explain()
            return
        from assistant.session.state import Origin, folder
        from tui.desk import Picture

        query = self.view.asked() if self.view is not None else None
        said = query.text if query is not None else said
        self.post_message(Explain(said, query, about=Picture(Origin(inputs=self._asked_of(), folder=folder()))))

    def filter(self, text: str) -> None:
        """What `/` says."""
        if self.view is not None:
            self.view.find(text)
            self._tell()

    def copied(self) -> str:
        """What `y` copies."""
        return self.view.copied() if self.view is not None else ""

    def exported(self) -> Sheet | None:
        """What is shown; None: the table."""
        return self.view.exported() if self.view is not None else None

    def commands(self) -> Sequence[Command]:
        """Its own."""
        from tui.traces.orders import orders

        return orders(self)


def _names(kept: object) -> tuple[str, ...]:
    """A kept list of files; nothing when it is none."""
    return tuple(kept) if isinstance(kept, list) and all(isinstance(n, str) and n for n in kept) else ()
