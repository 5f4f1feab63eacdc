"""Many nodes: each one's last verdict and how old it is, the worst first; the chosen one in full below, or opened."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from threading import Lock
from typing import TYPE_CHECKING, Any, ClassVar

from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.message import Message

from knowledge.errors import GpudiagError
from knowledge.language import Text
from tui.messages import Explain, Goto
from tui.screens._pane import Pane, ScreenSpec
from tui.tones import MARKS, Tone, of_state
from tui.widgets.columns import Cell, Column, Row
from tui.widgets.grid import Grid
from tui.widgets.page import Page
from tui.widgets.states import StateLine

if TYPE_CHECKING:
    from textual.app import ComposeResult
    from textual.timer import Timer
    from textual.widget import Widget

    from assistant.nodes import Look, Node
    from assistant.nodes.gather import Gathered, Gatherer
    from assistant.render.sheet import Sheet
    from assistant.store.read import Run
    from tui.commands import Command
    from tui.desk import Picture
    from tui.work import Job

AGAIN = 10.0  # seconds between two looks at whether the history or the folder has changed
AGES = 15.0  # seconds between two looks at whether an age reads differently by now
PAUSE = 0.12  # seconds that the cursor rests on a node before its page is made
WEEK, DAY = 7, 86_400 * 10**9  # days, ns
LOW = 18  # lines from which the chosen node has a page below the list


class NodesPane(Pane):
    """The list, and a page about the node under the cursor."""

    NAME = "nodes"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,backspace", "back_to_list", "List", show=False),
        Binding("o", "open_recording", "Open", show=False),
    ]
    DEFAULT_CSS = """
    NodesPane { layout: vertical; }
    NodesPane Grid { height: 3fr; min-height: 4; }
    NodesPane #about { height: 2fr; border-top: solid $rule; scrollbar-size-vertical: 1; background: $background; }
    NodesPane.-low #about { display: none; }
    NodesPane.-page Grid, NodesPane.-page StateLine { display: none; }
    NodesPane.-page #about { display: block; height: 1fr; border-top: none; padding-top: 1; }
    """

    def __init__(self) -> None:
        super().__init__()
        self.now = time.time_ns  # a test may stop it
        self._what: str | None = None  # what was asked for with ":nodes"; None: what the command line says
        self._gatherer: Gatherer | None = None
        self._job: Job | None = None
        self._known: Gathered | None = None
        self._growing = False  # recordings are still coming in
        self._live: Look | None = None  # of this machine
        self._others: dict[str, Look] = {}  # of those that were looked at from here
        self._opened: dict[str, list[Look]] = {}  # recordings that were opened, by node
        self._checks: dict[tuple[str, int | None], list[Run]] = {}
        self._ticking: list[Timer] = []
        self._pending: Timer | None = None
        self._wished = ""  # a node that is to have the cursor once it is known
        self._drawn: object = None  # what the page was made from
        self._one = Lock()  # a round that was given up may still be on its last step when the next begins

    def compose(self) -> ComposeResult:
        """How many are in which state; the list; the chosen one."""
        yield StateLine()
        yield Grid((), empty="")
        with _About(id="about"):
            yield Page()

    def on_mount(self) -> None:
        """The list has columns from the beginning."""
        self.query_one(Grid).set_columns(self._columns())

    # --- told by the workspace ------------------------------------------------------------

    def on_shown(self) -> None:
        """Read again, and go on reading while it is seen."""
        if self._job is None or self._job.stopped or not self._job.running:
            self._job = self.desk.jobs.start("nodes", self._gather)
        if not self._ticking:
            self._ticking = [self.set_interval(AGES, self._show)]
        self._show()

    def on_hidden(self) -> None:
        """Nobody looks: nothing is read."""
        if self._job is not None:
            self._job.stop()
        for timer in self._ticking:
            timer.stop()
        self._ticking = []

    def picture_changed(self, picture: Picture) -> None:
        """What this machine has just told is newer than any history."""
        from assistant.nodes.bundles import look_of, named_after

        self._opened = {}
        for path, one in self.desk.opened.items():
            if one.diagnosis is not None:
                self._opened.setdefault(one.host or named_after(path), []).append(
                    look_of(one.diagnosis, "bundle", path)
                )
        here = self.desk.here
        if here is not None and here.diagnosis is not None:
            self._live = look_of(here.diagnosis, "live")
        if picture.origin.live and picture.origin.host and picture.diagnosis is not None and picture.looking is None:
            self._others[picture.host] = look_of(picture.diagnosis, "live")
        self._show()

    def source_changed(self) -> None:
        """Another source, or another language."""
        grid = self.query_one(Grid)
        kept = grid.row.key if grid.row else ""
        grid.set_columns(self._columns())
        self._show()
        grid.select(kept)

    def show_target(self, target: str) -> None:
        """Put the cursor on a node."""
        if not self.query_one(Grid).select(target):
            self._wished = target

    def on_resize(self) -> None:
        """Where there is little room the list has all of it."""
        self.set_class(self.size.height < LOW, "-low")

    def kept(self) -> Mapping[str, Any]:
        """Which nodes, and where one was."""
        grid = self.query_one(Grid)
        return {"nodes": self._what or "", "at": grid.row.key if grid.row else "", "order": list(grid.order or ())}

    def restore(self, kept: Mapping[str, Any]) -> None:
        """As it was; what the command line names counts more."""
        what, at, order = kept.get("nodes"), kept.get("at"), kept.get("order")
        if isinstance(what, str) and what and not self.desk.args.nodes:
            self._what = what
        if isinstance(at, str):
            self._wished = at
        if isinstance(order, list) and len(order) == 2 and order[0] in [c.key for c in self._columns()]:
            self.query_one(Grid).sort_by(order[0], bool(order[1]))

    # --- reading, in a thread -------------------------------------------------------------

    def _gather(self, job: Job) -> None:
        with self._one:
            self._rounds(job)

    def _rounds(self, job: Job) -> None:
        from assistant.nodes.gather import Gatherer, wanted

        try:
            if self._gatherer is None:
                args = self.desk.args
                what = wanted(args.nodes if self._what is None else self._what)
                self._gatherer = Gatherer(
                    self.desk.settings, self.desk.inventory, what, site=args.site, packs=args.rules,
                    history=not args.no_history,
                )  # fmt: skip
            gatherer = self._gatherer
            while True:
                for known in gatherer.rounds(job.check):
                    self.post_message(_Read(known, job))
                while True:
                    if job.wait(AGAIN):
                        return
                    if gatherer.changed():
                        break
        except GpudiagError as error:
            self.post_message(_Read(None, job, error.in_(self.desk.lang)))

    def on__read(self, message: _Read) -> None:
        """Something is known; what was known stays where the new says nothing."""
        message.stop()
        if message.job is not self._job or message.job.stopped:
            return
        line = self.query_one(StateLine)
        if message.known is None:
            line.trouble = message.trouble
        else:
            before = self._known
            known = message.known
            if known.trouble and before is not None and not known.looks:
                known = known._replace(looks=before.looks)
            self._growing = known.left > 0 or (before is not None and before.left > 0)
            self._known = known
        self._show()

    # --- the list -------------------------------------------------------------------------

    def _columns(self) -> tuple[Column, ...]:
        t = self.t
        return (
            Column("state", t("state", "状态"), least=11),
            Column("node", t("node", "节点"), least=8, most=36),
            Column("verdict", t("verdict", "结论"), least=36, stretch=True),
            Column("findings", t("found", "发现"), right=True, keep=3),
            Column("checked", t("age", "距今"), least=4, right=True),
            Column("from", t("from", "来源"), keep=5),
        )

    def _show(self) -> None:
        """Draw what is known, if that reads differently."""
        if not self.is_attached or self._known is None:
            return
        nodes, now, grid = self._known.nodes(self._live, self._others, self._opened), self.now(), self.query_one(Grid)
        rows = [self._row(node, now) for node in nodes]
        if rows != list(grid.rows):
            first = bool(grid.shown) and grid.row is grid.shown[0]
            grid.load(rows)
            if first and self._growing and grid.shown:  # nobody has moved yet: the worst stays under the cursor
                grid.select(grid.shown[0].key)
        if not rows and not self._known.left:
            grid.empty = self.t("no recordings in this folder", "此文件夹中没有录制")
        if self._wished and grid.select(self._wished):
            self._wished = ""
        line = self.query_one(StateLine)
        trouble = line.trouble or self._known.trouble.in_(self.desk.lang)
        left = self._known.left
        line.show(nodes, now, self.t(f"{left} to read", f"还有 {left} 个待读") if left else trouble, quiet=bool(left))
        self._page()

    def _row(self, node: Node, now: int) -> Row:
        from assistant.nodes import ORDER
        from assistant.nodes.page import ago, spoken, state_word

        lang, last = self.desk.lang, node.last
        stale = node.stale(now)
        tone = Tone.DIM if not node.state else Tone.STALE if stale else of_state(node.state)
        mark = MARKS.get(tone, "–")
        told = node.told if node.told is not None and node.told is not last else None
        said = node.trouble.in_(lang) if last is None else spoken(last.text, node.host, lang)
        if told is not None:
            was = f"{state_word(told.state, lang)} {ago(told.at, now)}"
            said = self.t(f"was {was} ago · {said}", f"{was} 前 · {said}")
        count = len(last.findings) if last is not None else 0
        return Row(
            node.host,
            (
                Cell(f"{mark} {state_word(node.state, lang)}", tone, -ORDER.index(node.state)),
                Cell(
                    node.host + (self.t(" (here)", "（本机）") if node.here else ""),
                    Tone.DIM if not node.state else Tone.PLAIN,
                ),
                Cell(said, Tone.ERROR if node.trouble else Tone.STALE if stale else Tone.PLAIN),
                Cell(str(count) if count else "", Tone.PLAIN, count),
                Cell(
                    ago(last.at if last else None, now), Tone.WARNING if stale else Tone.DIM, last.at if last else None
                ),
                Cell(self._from(last), Tone.DIM),
            ),
            node,
        )

    def _from(self, last: Look | None) -> str:
        words = {
            "live": self.t("now", "当前"),
            "history": self.t("history", "历史"),
            "bundle": self.t("recording", "录制"),
        }
        return words[last.source] if last is not None else "–"

    @property
    def node(self) -> Node | None:
        """The node under the cursor."""
        row = self.query_one(Grid).row
        return row.data if row is not None else None

    # --- the page -------------------------------------------------------------------------

    def on_grid_moved(self, event: Grid.Moved) -> None:
        """Another node: its page, once the cursor rests. Laying a page out for each node that is passed by is felt."""
        event.stop()
        if self._pending is not None:
            self._pending.stop()
        self._pending = self.set_timer(PAUSE, self._rested)

    def _rested(self) -> None:
        self._page()
        self.query_one("#about", VerticalScroll).scroll_home(animate=False)
        self._want_checks()

    def _want_checks(self) -> None:
        node = self.node
        if node is None or node.last is None or node.last.run is None or (node.host, node.last.run) in self._checks:
            return
        host, run = node.host, node.last.run

        def work(job: Job) -> None:
            from assistant.nodes.past import checks_of

            found = checks_of(self.desk.settings.history.url, host)
            job.check()
            self.post_message(_Checked(host, run, found))

        self.desk.jobs.start("checks", work)

    def on__checked(self, message: _Checked) -> None:
        """The checks of a node have been read."""
        message.stop()
        if len(self._checks) > 64:
            self._checks.clear()
        self._checks[message.host, message.run] = message.runs
        self._page()

    def _sheet(self, node: Node) -> Sheet:
        from assistant.nodes.page import sheet

        runs = self._checks.get((node.host, node.last.run if node.last else None), ())
        return sheet(node, runs, self.now(), self.desk.lang)

    def _page(self) -> None:
        from assistant.nodes.page import ago

        node, now = self.node, self.now()
        looks = (node.last, node.told) if node is not None else ()
        ages = [ago(look.at, now) for look in looks if look is not None]
        run = node.last.run if node is not None and node.last is not None else None
        drawn = (node, ages, self.desk.lang, node is not None and (node.host, run) in self._checks)
        if drawn == self._drawn:
            return
        self._drawn = drawn
        made = self._sheet(node) if node is not None else None
        self.query_one(Page).show(made.title if made else "", made.parts if made else ())

    # --- drill down -----------------------------------------------------------------------

    def on_grid_chosen(self, event: Grid.Chosen) -> None:
        """Enter: a recording is opened, this machine looked at, and another one that the inventory names; of any other node
        there is its page."""
        event.stop()
        node = self.node
        if node is None:
            return
        if node.last is not None and node.last.source == "bundle":
            self.action_open_recording()
        elif node.here:
            self.app.open_live()  # type: ignore[attr-defined]  # of GpudiagApp
            self.post_message(Goto("findings"))
        elif node.host in self.desk.inventory().reach:
            self.app.open_host(node.host)  # type: ignore[attr-defined]  # of GpudiagApp
            self.post_message(Goto("findings"))
        else:
            self.add_class("-page")
            self._rested()
            self.query_one("#about").focus()

    def action_open_recording(self) -> None:
        """Look at the node's recording; the newest where there are several."""
        node = self.node
        looks = (
            (*((node.last,) if node.last is not None else ()), *self._opened.get(node.host, ())[::-1]) if node else ()
        )
        recorded = next((look for look in looks if look.source == "bundle"), None)
        if recorded is None:
            self.app.notify(self.t("There is no recording of it here.", "这里没有它的录制。"))
            return
        from tui.sources import origin_of

        try:
            self.desk.open(origin_of([recorded.place]))
        except GpudiagError as error:
            self.app.notify(error.in_(self.desk.lang), severity="error", markup=False)
            return
        self.post_message(Goto("findings"))

    def action_back_to_list(self) -> None:
        """From the page to the list."""
        self.remove_class("-page")
        self.query_one(Grid).focus()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Escape is the workspace's own, unless a page stands over the list."""
        if action == "back_to_list":
            return self.has_class("-page")
        return super().check_action(action, parameters)

    # --- habits ---------------------------------------------------------------------------

    def question(self) -> str:
        """What the history or this machine can answer about the node."""
        node = self.node
        if node is None:
            return ""
        if node.host in self.desk.inventory().reach and (node.last is None or node.last.source != "bundle"):
            return self.t(f"what is wrong with {node.host}?", f"{node.host} 有什么问题？")
        if node.last is not None and node.last.source != "history":
            return self.t("what is wrong with this node?", "这个节点有什么问题？")
        at = node.last.at if node.last is not None and node.last.at is not None else self.now()
        days = WEEK + (old if (old := (self.now() - at) // DAY) >= WEEK else 0)  # the last check is among them
        return self.t(
            f"what happened on {node.host} in the last {days} days?", f"{node.host} 最近 {days} 天发生了什么？"
        )

    def explain(self) -> None:
        """Of a recording the question is asked of it, whatever the app looks at."""
        node = self.node
        if node is None or node.last is None or node.last.source != "bundle":
            super().explain()
            return
        from tui.desk import Picture
        from tui.sources import origin_of

        try:
            about = Picture(origin_of([node.last.place]), node.host)
        except GpudiagError as error:
            self.app.notify(error.in_(self.desk.lang), severity="error", markup=False)
            return
        self.post_message(Explain(self.question(), about=about))

    def exported(self) -> Sheet | None:
        """The page, where it stands over the list; else the list."""
        node = self.node
        return self._sheet(node) if node is not None and self.has_class("-page") else None

    def first(self) -> Widget | None:
        """The page, while it stands over the list."""
        return self.query_one("#about") if self.has_class("-page") else None

    def own_keys(self) -> Sequence[tuple[str, str]]:
        """For help."""
        return (
            (
                "Enter",
                self.t("open: the recording, the machine, or the node's page", "打开：录制、机器或该节点的详情"),
            ),
            ("o", self.t("open the recording", "打开录制")),
            ("Esc", self.t("from the page back to the list", "从详情返回列表")),
        )

    def commands(self) -> Sequence[Command]:
        """Other nodes."""
        from tui.commands import Command, files

        about = Text("show these nodes: a set such as gpu[001-064], a folder of bundles; without: all that are known",
                     "显示这些节点：节点集（如 gpu[001-064]）或录制文件夹；留空则为全部已知节点")  # fmt: skip
        return (Command("nodes", "[SET|FOLDER]", about, self._other, files),)

    def _other(self, what: str) -> None:
        from assistant.nodes.gather import wanted

        wanted(what)  # said at once when it is none
        self._what, self._gatherer, self._known = what, None, None
        self.query_one(StateLine).trouble = ""
        self.query_one(Grid).load(())
        if self._job is not None:
            self._job.stop()
        self._job = self.desk.jobs.start("nodes", self._gather)


class _About(VerticalScroll):
    """The page, walked like everything else."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("j", "scroll_down", show=False),
        Binding("k", "scroll_up", show=False),
        Binding("g", "scroll_home", show=False),
        Binding("G", "scroll_end", show=False),
    ]


class _Read(Message):
    """What has been read; None and a reason when that was nothing."""

    def __init__(self, known: Gathered | None, job: Job, trouble: str = "") -> None:
        super().__init__()
        self.known, self.job, self.trouble = known, job, trouble


class _Checked(Message):
    """The checks of one node."""

    def __init__(self, host: str, run: int, runs: list[Run]) -> None:
        super().__init__()
        self.host, self.run, self.runs = host, run, runs


SCREEN = ScreenSpec(
    "nodes", 7, Text("Nodes", "节点"), NodesPane,
    Text("every node by its last verdict, from the history or a folder of bundles", "按最近结论列出所有节点（历史或录制文件夹）"),
)  # fmt: skip
