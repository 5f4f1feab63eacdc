"""Live: the GPUs as a table, the history of the chosen one as plots, and the processes on them.

The readings come from `Desk.feed`: of this machine once a second, of a recording as the player's moment has them. What is
shown is compared with what stands there, and only what differs is drawn.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from textual.binding import Binding, BindingType

from knowledge.language import Text
from tui.memory import word
from tui.messages import Explain
from tui.screens import _live_asks as asks
from tui.screens import _live_layout as layout
from tui.screens import _live_rows as tables
from tui.screens._live_graphs import SHOWN, SPANS, Painter, span
from tui.screens._pane import Pane, ScreenSpec
from tui.tones import Tone
from tui.widgets.caption import Caption
from tui.widgets.grid import Grid
from tui.widgets.panel import Panels
from tui.widgets.plot import Plots
from tui.widgets.replay import clock

if TYPE_CHECKING:
    from textual.app import ComposeResult

    from assistant.live.frames import Frame, Gpu, Instance
    from assistant.live.timeline import Mark
    from assistant.render.sheet import Part, Sheet
    from tui.commands import Command
    from tui.desk import Picture

SPAN_WORDS = {"1m": 60, "5m": 300, "15m": 900, "1h": 3600}
_RANK = ("", "info", "warning", "error", "critical")


class LivePane(Pane):
    """The machine as it is."""

    NAME = "live"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("v", "view", "All GPUs"),
        Binding("m", "metric(1)", "Metric", show=False),
        Binding("M", "metric(-1)", show=False),
        Binding("w", "span", "Span"),
        Binding("o", "only", "Processes of this GPU", show=False),
    ]
    DEFAULT_CSS = """
    LivePane { layout: vertical; }
    LivePane Grid { height: auto; }
    LivePane Plots { margin: 0 1; }
    LivePane.-airy #card, LivePane.-airy #who { margin-top: 1; }
    """

    def __init__(self) -> None:
        super().__init__()
        self._painter: Painter | None = None
        self._metrics: tuple[str, ...] = ()
        self._remarked = False  # whether the columns leave room for remarks
        self._lang = ""
        self._worst: dict[str, str] = {}  # of each GPU: the severity of its worst finding
        self._pci = ""  # the GPU whose plots are shown
        self._part = ""  # row of the MIG instance of it that has the cursor; empty: the GPU's own
        self._offered = ""  # the one that they began with: until somebody chooses another, the worst
        self._all = False  # one metric of all GPUs instead
        self._metric = SHOWN[0].metric
        self._only = False  # processes of the chosen GPU only
        self._listed: object = None  # what the table of processes was made of
        self._reach = SPANS[1]  # seconds that the plots reach back
        self._shares: layout.Shares | None = None
        self._events: tuple[object, int, Mapping[str, Sequence[Mark]]] | None = None

    def compose(self) -> ComposeResult:
        """What is wrong with the readings, the GPUs, the plots, the processes."""
        yield Caption(id="note")
        gpus = Grid((), id="gpus")
        gpus.add_class("-steady")
        yield gpus
        yield Caption(id="card")
        yield Plots(self._panels, id="plots")
        yield Caption(id="who")
        yield Grid((), id="processes")

    # --- told by the workspace ------------------------------------------------------------

    def on_shown(self) -> None:
        """Begin to read this machine, and catch up."""
        self.desk.feed.start()
        self._draw()

    def picture_changed(self, picture: Picture) -> None:
        """Another diagnosis: which GPUs something was found on."""
        from knowledge.observation import Scope

        worst: dict[str, str] = {}
        for finding in picture.diagnosis.findings if picture.diagnosis is not None else ():
            gpu = finding.subject.up(Scope.GPU)
            severity = str(finding.severity) if str(finding.grade) in ("confirmed", "probable") else "info"
            if gpu is not None and _RANK.index(severity) > _RANK.index(worst.get(gpu.id, "")):
                worst[gpu.id] = severity
        if worst != self._worst or self.desk.feed.frame is None or self._lang != self.desk.lang:
            self._worst = worst
            if self._pci == self._offered:  # nobody has chosen one
                self._pci = self._offered = max(worst, key=lambda pci: _RANK.index(worst[pci]), default=self._pci)
                self._part = ""
            self._draw()

    def moment_changed(self, frame: Frame | None, moment: int) -> None:
        """Other readings."""
        self._draw()

    def source_changed(self) -> None:
        """Another machine, or a recording: nothing of the one before stays."""
        self._painter, self._metrics, self._worst, self._listed, self._pci, self._offered = None, (), {}, None, "", ""
        self._part = ""
        self._draw()
        if self.display:
            self.desk.feed.start()

    def on_resize(self) -> None:
        """Other heights."""
        self._arrange()

    def happened(self) -> Mapping[str, Sequence[Mark]]:
        """For each GPU what happened to it up to the moment that is shown, oldest first."""
        feed = self.desk.feed
        count = bisect_right(feed.marks, feed.until, key=lambda m: m.at)
        if self._events is None or self._events[0] is not feed.marks or self._events[1] != count:
            self._events = (feed.marks, count, tables.events(feed.marks[:count]))
        return self._events[2]

    # --- what is shown --------------------------------------------------------------------

    @property
    def gpus(self) -> Grid:
        """The table of GPUs."""
        return self.query_one("#gpus", Grid)

    @property
    def processes(self) -> Grid:
        """The table of processes."""
        return self.query_one("#processes", Grid)

    @property
    def plots(self) -> Plots:
        """The plots."""
        return self.query_one(Plots)

    @property
    def painter(self) -> Painter:
        """What makes the graphs."""
        if self._painter is None:
            self._painter = Painter(self.desk.feed, self.t, self.desk.lang)
        self._painter.span = self._reach
        return self._painter

    @property
    def instance(self) -> Instance | None:
        """The MIG instance under the cursor of the table."""
        gpu, name = self.gpu, self._part.partition("/")[2]
        return next((i for i in gpu.instances if i.id == name), None) if gpu is not None and name else None

    @property
    def gpu(self) -> Gpu | None:
        """The GPU whose plots are shown."""
        frame = self.desk.feed.frame
        if frame is None or not frame.gpus:
            return None
        return frame.gpu(self._pci) or frame.gpus[0]

    def _draw(self) -> None:
        """Bring everything up to the moment of the feed."""
        if not self.is_attached or not self.children:
            return
        feed, t = self.desk.feed, self.t
        frame = feed.frame
        self.gpus.empty = self._empty()
        if self._lang != self.desk.lang:
            self._lang, self._metrics, self._listed, self._painter = self.desk.lang, (), None, None
        if frame is None:
            self.gpus.load(())
            self.processes.load(())
        else:
            metrics, happened = tables.told(frame, feed.track), self.happened()
            remarked = bool(happened) or any(g.state or g.reasons for g in frame.gpus)
            if (metrics, remarked) != (self._metrics, self._remarked):
                self._metrics, self._remarked = metrics, remarked
                self.gpus.set_columns(tables.gpu_columns(metrics, remarked, t))
            self.gpus.load(tables.gpu_rows(frame, metrics, self._worst, happened, feed.until, t))
            if self._pci and not (self._part and self.gpus.select(self._part)):
                self._part = ""
                self.gpus.select(self._pci)
        self._list()
        self._caption()
        self._arrange()
        self.plots.update()

    def _empty(self) -> str:
        feed = self.desk.feed
        if feed.live:
            return (
                self.t("reading the GPUs ...", "正在读取 GPU……")
                if feed.frame is None
                else self.t("no GPU answers", "没有 GPU 应答")
            )
        return (
            self.t("nothing was recorded of any GPU", "录制中没有任何 GPU 的读数")
            if self.desk.player
            else self.t("reading ...", "正在读取……")
        )

    def _list(self) -> None:
        """The processes, where they are others than those that stand there."""
        frame = self.desk.feed.frame
        if frame is None:
            self._listed = None
            return
        only = (self._part or self._pci) if self._only else ""
        key = (frame.processes, only, self._lang, tuple((g.pci, g.index) for g in frame.gpus))
        if key == self._listed:
            return
        self._listed = key
        columns = tables.process_columns(frame, self.t)
        if [c.key for c in columns] != [c.key for c in self.processes.columns] or columns != self.processes.columns:
            self.processes.set_columns(columns)
        self.processes.load(tables.process_rows(frame, columns, only))

    def _caption(self) -> None:
        """The lines that say what is shown."""
        feed, t, gpu = self.desk.feed, self.t, self.gpu
        frame = feed.frame
        trouble = frame.trouble.in_(self.desk.lang) if frame is not None else ""
        note, card = self.query_one("#note", Caption), self.query_one("#card", Caption)
        note.show(trouble, "", Tone.ERROR)
        note.display, card.display = bool(trouble), gpu is not None
        if gpu is None or frame is None:
            return
        hidden = self.plots.hidden
        hint = t(f"{hidden} more plots: Tab, j", f"另有 {hidden} 张曲线：Tab、j") if hidden else ""
        if self._all:
            hint = t("m: next metric", "m：下一指标")
        left = (
            layout.about_metric(self._metric, self.desk.lang, t) if self._all else layout.about_gpu(gpu, self.instance)
        )
        card.show(left, layout.beside(frame, self.plots.at, feed.still, hint, t), Tone.STRONG)
        said, other = layout.about_processes(len(self.processes.rows), gpu if self._only else None, t)
        self.query_one("#who", Caption).show(said, other, Tone.STRONG)

    def _panels(self, cells: int, shown: range) -> Panels:
        """What the plots ask for."""
        frame, gpu = self.desk.feed.frame, self.gpu
        if frame is None or gpu is None:
            return Panels(())
        if self._all:
            return self.painter.of_metric(frame.gpus, self._metric, cells, shown)
        return self.painter.of_gpu(gpu, cells, shown)

    def _arrange(self) -> None:
        """Lines for each part."""
        if self.size.height <= 0:
            return
        frame, gpu = self.desk.feed.frame, self.gpu
        gpus = len(frame.gpus) if frame is not None else 0
        rows = gpus + sum(len(g.instances) for g in frame.gpus) if frame is not None else 0
        self.plots.count = 0 if gpu is None else gpus if self._all else len(self.painter.kinds(gpu))
        self.plots.tight = self.desk.feed.still
        columns = self.size.width - 2
        note = self.query_one("#note", Caption).needed(columns) if frame is not None and frame.trouble else 0
        shares = layout.shared(self.size.height, columns, rows, self.plots.count, len(self.processes.rows), note)
        if shares == self._shares:
            return
        self._shares = shares
        self.gpus.styles.height = shares.table
        self.query_one("#note").styles.height = max(1, shares.note)
        self.plots.display = shares.plots > 0
        self.processes.display = self.query_one("#who").display = shares.processes > 0
        self.processes.styles.height = max(1, shares.processes - 1)
        self.set_class(shares.airy, "-airy")

    # --- keys -----------------------------------------------------------------------------

    def on_grid_moved(self, message: Grid.Moved) -> None:
        """Another GPU under the cursor: its plots."""
        message.stop()
        if message.grid is not self.gpus or message.row is None or message.row.key == (self._part or self._pci):
            return
        pci = tables.gpu_of(message.row).pci
        if not self._pci:
            self._offered = pci
        self._pci, self._part = pci, message.row.key if message.row.key != pci else ""
        self._list()
        self._caption()
        self._arrange()
        if self._all:
            self.plots.select(self._pci)
        self.plots.update()

    def on_grid_chosen(self, message: Grid.Chosen) -> None:
        """Enter on a GPU goes to its plots, on a process asks about it."""
        message.stop()
        if message.grid is self.gpus:
            self.plots.focus()
        else:
            self.explain()

    def on_plots_pointed(self, message: Plots.Pointed) -> None:
        """The cursor of the plots stands elsewhere."""
        message.stop()
        graph = self.plots.graph
        if self._all and graph is not None and graph.key != self._pci:
            self._pci, self._part = graph.key, ""
            self.gpus.select(graph.key)
        self._caption()

    def action_view(self) -> None:
        """The plots of one GPU, or one plot of all."""
        self._all = not self._all
        self._again()

    def action_metric(self, by: int) -> None:
        """The next metric, of all GPUs."""
        keys = [s.metric for s in SHOWN]
        self._metric = keys[(keys.index(self._metric) + by) % len(keys)] if self._all else self._metric
        self._all = True
        self._again()

    def action_span(self) -> None:
        """How far the plots reach back."""
        self._span(SPANS[(SPANS.index(self._reach) + 1) % len(SPANS)])

    def action_only(self) -> None:
        """The processes of the chosen GPU, or all."""
        self._only = not self._only
        self._list()
        self._again()

    def _span(self, seconds: int) -> None:
        self._reach = seconds
        self.app.notify(span(seconds, self.t), timeout=2)
        self._again()

    def _again(self) -> None:
        self._caption()
        self._arrange()
        self.plots.update()

    # --- habits ---------------------------------------------------------------------------

    @property
    def metrics(self) -> tuple[str, ...]:
        """The readings that have a column."""
        return self._metrics

    @property
    def metric(self) -> str:
        """The metric of the plot under the cursor."""
        graph = self.plots.graph
        return self._metric if self._all or graph is None else graph.key

    def question(self) -> str:
        """About the plot and the time in it, the cell of the table, or the process."""
        from assistant.live import questions

        gpu, lang, focused = self.gpu, self.desk.lang, self.app.focused
        if focused is self.processes and (row := self.processes.row) is not None:
            return questions.of_process(row.data, self.processes.column.key, lang)
        if gpu is None:
            frame = self.desk.feed.frame
            return questions.of_trouble(lang) if frame is not None and frame.trouble else ""
        return asks.of_plot(self, gpu) if focused is self.plots else asks.of_cell(self, gpu)

    def explain(self) -> None:
        """Ask; about a place in a plot, of what was known then."""
        at = self.plots.at
        about = asks.picture_then(self, at) if at is not None and self.app.focused is self.plots else None
        if at is None or about is None:
            super().explain()
            return
        self.app.notify(self.t(f"Asked as of {clock(at)}", f"按 {clock(at)} 的情况提问"), timeout=3)
        self.post_message(Explain(self.question(), about=about))

    def copied(self) -> str:
        """The row, or the value under the cursor of the plots."""
        graph, instance = self.plots.graph, self.instance
        if self.app.focused is self.gpus and instance is not None:
            return f"{super().copied()}  {instance.uuid}".rstrip()
        if self.app.focused is not self.plots or graph is None:
            return super().copied()
        value, at = self.plots.value(), self.plots.at
        if at is None:
            return f"{graph.title}  {graph.now}"
        return f"{clock(at, date=True)}  {graph.title}  {graph.say(value) if value is not None else '–'}"

    def exported(self) -> Sheet | None:
        """Both tables, with the time that they are of."""
        from assistant.render.sheet import Heading, Paragraph, Sheet, Table

        frame = self.desk.feed.frame
        if frame is None:
            return None
        parts: list[Part] = [Paragraph(clock(self.desk.feed.until, date=True) + " UTC")]
        if frame.trouble:
            parts.append(Paragraph(frame.trouble.in_(self.desk.lang)))
        data: dict[str, Any] = {"at": self.desk.feed.until}
        for key, title, grid in (
            ("gpus", "GPU", self.gpus),
            ("processes", self.t("Processes", "进程"), self.processes),
        ):
            rows = tuple(tuple((c if isinstance(c, str) else c.text).strip() for c in row.cells) for row in grid.shown)
            parts += [Heading(title), Table(tuple(c.title for c in grid.columns), rows)] if rows else []
            data[key] = [dict(zip((c.key for c in grid.columns), row, strict=True)) for row in rows]
        return Sheet(f"{self.t('Live', '实时')}  {frame.host}", tuple(parts), data)

    def show_target(self, target: str) -> None:
        """Go to a GPU by its address or number."""
        frame = self.desk.feed.frame
        for g in frame.gpus if frame is not None else ():
            if target in (g.pci, str(g.index), g.uuid):
                self.gpus.select(g.pci)
            for i in g.instances:
                if target in (i.uuid, f"{g.index}/{i.id}", f"{g.pci}/{i.id}"):
                    self.gpus.select(f"{g.pci}/{i.id}")

    def commands(self) -> Sequence[Command]:
        """Which GPU, which metric, how far back."""
        from tui.commands import Command

        frame = self.desk.feed.frame
        numbers = [str(g.index) for g in frame.gpus if g.index is not None] if frame is not None else []
        return (
            Command("gpu", "N", Text("plots of a GPU", "查看某块 GPU 的曲线"), self.show_target, lambda _: numbers),
            Command("metric", "NAME", Text("one metric of all GPUs", "全部 GPU 的某项指标"), self._choose_metric,
                    lambda _: [s.metric for s in SHOWN]),
            Command("span", "1m|5m|15m|1h", Text("how far the plots reach back", "曲线的时段"), self._choose_span,
                    lambda _: SPAN_WORDS),
        )  # fmt: skip

    def _choose_metric(self, name: str) -> None:
        from knowledge.errors import UsageError, nearest_hint

        keys = [s.metric for s in SHOWN]
        if name not in keys:
            raise UsageError(
                f"there is no metric {name!r}", hint=nearest_hint(name, keys) or ", ".join(keys), zh=f"没有指标 {name!r}",
                hint_zh=nearest_hint(name, keys, lang="zh"),
            )  # fmt: skip
        self._metric, self._all = name, True
        self._again()

    def _choose_span(self, name: str) -> None:
        from knowledge.errors import UsageError

        if name not in SPAN_WORDS:
            raise UsageError(f"{name!r} is no span", hint=", ".join(SPAN_WORDS), zh=f"{name!r} 不是时段")
        self._span(SPAN_WORDS[name])

    def kept(self) -> Mapping[str, Any]:
        """Which plots, how far back, how sorted."""
        order = list(self.gpus.order) if self.gpus.order is not None else None
        return {"all": self._all, "metric": self._metric, "span": self._reach, "only": self._only, "order": order}

    def restore(self, kept: Mapping[str, Any]) -> None:
        """As it was."""
        self._all, self._only = kept.get("all") is True, kept.get("only") is True
        self._metric = word(kept, "metric", [s.metric for s in SHOWN], SHOWN[0].metric)
        if kept.get("span") in SPANS:
            self._reach = kept["span"]
        order = kept.get("order")
        if isinstance(order, list) and len(order) == 2 and isinstance(order[0], str):
            self.gpus.sort_by(order[0], order[1] is True)


SCREEN = ScreenSpec(
    "live", 2, Text("Live", "实时"), LivePane, Text("GPUs, their history, and the processes on them", "GPU、历史曲线与进程")
)  # fmt: skip
