"""Everything that gpudiag knows: searched while one types, read page by page, walked by the links between pages."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from textual.binding import Binding, BindingType
from textual.containers import Horizontal
from textual.message import Message
from textual.widgets import Input

from knowledge.language import Text
from tui.screens._pane import Pane, ScreenSpec
from tui.tones import Tone
from tui.widgets.columns import Cell, Column, Row
from tui.widgets.grid import Grid
from tui.widgets.notes import Note, Notes
from tui.widgets.reader import Reader

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from textual.app import ComposeResult
    from textual.timer import Timer
    from textual.widget import Widget

    from assistant.find.browse import Linked
    from assistant.intent.query import Topic
    from assistant.render.sheet import Sheet
    from tui.commands import Command
    from tui.work import Job

BOTH = 96  # columns from which list and page stand side by side
FOUND = 60  # pages that a search lists
NEAR = 0.25  # of the best page's score: what is further away shares a common word with the question
FEW = 12  # pages that are listed in any case
PAUSE = 0.06  # seconds without a key before a search begins
REST = 0.15  # seconds that the cursor stands on a row before its page is read
PAST = 50  # pages that one can go back to


class Found(Message, namespace="knowledge"):
    """From a thread: what the list is to show."""

    def __init__(self, job: Job, rows: Sequence[Row], told: str, kinds: bool) -> None:
        super().__init__()
        self.job, self.rows, self.told, self.kinds = job, rows, told, kinds


class Opened(Message, namespace="knowledge"):
    """From a thread: a page; None when there is none of that name."""

    def __init__(self, job: Job, name: str, page: Linked | None, sheet: Sheet | None, beside: bool) -> None:
        super().__init__()
        self.job, self.name, self.page, self.sheet = job, name, page, sheet
        self.beside = beside  # shown beside the list, which keeps the keys


class _Search(Input):
    """Takes the keys only while somebody searches: the pane's own keys are letters."""

    can_focus = False


class KnowledgePane(Pane):
    """A search, its list, a page."""

    NAME = "knowledge"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("slash", "search", "Search", key_display="/"),
        Binding("escape", "up", "Back", show=False),
        Binding("backspace,b,alt+left", "past(-1)", "Page before", show=False),
        Binding("B,alt+right", "past(1)", "Page after", show=False),
    ]
    DEFAULT_CSS = """
    KnowledgePane #knowledge-search { border: none; height: 1; padding: 0 1; background: $panel; }
    KnowledgePane #knowledge-head { height: 1; }
    KnowledgePane #knowledge-list { width: 1fr; }
    KnowledgePane #knowledge-page { width: 1fr; }
    KnowledgePane.-both #knowledge-list { width: 2fr; min-width: 40; max-width: 64; border-right: solid $rule; }
    KnowledgePane.-both #knowledge-page { width: 3fr; }
    KnowledgePane.-one #knowledge-page { display: none; }
    KnowledgePane.-one.-page #knowledge-list { display: none; }
    KnowledgePane.-one.-page #knowledge-page { display: block; }
    """

    def __init__(self) -> None:
        super().__init__()
        self._list_job: Job | None = None
        self._page_job: Job | None = None
        self._timer: Timer | None = None
        self._preview: Timer | None = None
        self._kinds = True  # whether the list shows kinds of pages, not pages
        self._kind = ""  # of which the list shows all pages
        self._past: list[str] = []  # pages that were read, the newest last
        self._here = -1
        self._kept = ""  # what was searched when the app was left
        self._sheet: Sheet | None = None
        self._told = ""
        self._loaded = False

    def compose(self) -> ComposeResult:
        """The search above; list and page below."""
        yield _Search(compact=True, id="knowledge-search")
        yield Notes(id="knowledge-head")
        with Horizontal():
            yield Grid(self._columns(), id="knowledge-list")
            yield Reader(id="knowledge-page")

    def _columns(self) -> tuple[Column, ...]:
        if self._kinds:
            return (
                Column("name", self.t("kind", "类别"), least=10, most=20),
                Column("about", self.t("about", "内容"), least=14, stretch=True),
                Column("pages", self.t("pages", "页数"), least=4, right=True, keep=1),
            )
        page = Column("page", self.t("page", "页面"), least=36, stretch=True)
        if self._kind:
            return (page,)
        return (
            page,
            Column("kind", self.t("kind", "类别"), least=4, most=16, keep=1, right=True),
        )

    @property
    def list(self) -> Grid:
        """What was found."""
        return self.query_one("#knowledge-list", Grid)

    @property
    def reader(self) -> Reader:
        """The page."""
        return self.query_one("#knowledge-page", Reader)

    @property
    def _line(self) -> _Search:
        return self.query_one(_Search)

    @property
    def name_read(self) -> str:
        """The topic of the page that is shown; empty when none is."""
        return self.reader.page.name if self.reader.page is not None else ""

    # --- told by the workspace ------------------------------------------------------------

    def on_mount(self) -> None:
        """List alone at first."""
        self._arrange()

    def on_resize(self) -> None:
        """Side by side where there is room."""
        self._arrange()

    def _arrange(self) -> None:
        both = self.size.width >= BOTH
        self.set_class(both, "-both")
        self.set_class(not both, "-one")
        self.query("#knowledge-list").set_class(both, "-steady")

    def on_shown(self) -> None:
        """Look into the index, once."""
        if not self.query(Reader):  # not all of it has been made
            self.call_after_refresh(self.on_shown)
            return
        self._line.placeholder = self.t("/ search: a code, a message, a word of the field", "/ 搜索：代码、消息、术语")
        if not self._loaded:
            self._loaded = True
            self._line.value, self._kept = self._kept or self._line.value, ""
            self._search()
            if name := self.name_read or "".join(self._past[-1:]):
                self._read(name)

    def source_changed(self) -> None:
        """Perhaps another language."""
        self.list.set_columns(self._columns())
        self._loaded = False
        if self.display:
            self.on_shown()

    def show_target(self, target: str) -> None:
        """A topic: ``xid 79``."""
        self.open(target)

    def first(self) -> Widget | None:
        """What takes the keys when the pane is shown."""
        return self.reader if self.has_class("-page") and not self.list.display else None

    # --- the list -------------------------------------------------------------------------

    def on_input_changed(self, event: Input.Changed) -> None:
        """Search while somebody types."""
        event.stop()
        self._kind = ""
        if self._timer is not None:
            self._timer.stop()
        self._timer = self.set_timer(PAUSE, self._search)

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """To what was found; the only page opens at once."""
        event.stop()
        self._leave_search()
        if len(self.list.shown) == 1:
            self.list.action_choose()

    def _leave_search(self) -> None:
        self.remove_class("-page")
        self.list.focus()
        self._line.can_focus = False

    def _search(self) -> None:
        if self._list_job is not None:
            self._list_job.stop()
        text, kind, lang = self._line.value.strip(), self._kind, self.desk.lang
        self._list_job = self.desk.jobs.start("find", lambda job: self._find(job, text, kind, lang))

    def _find(self, job: Job, text: str, kind: str, lang: str) -> None:
        """In a thread: what the list shows."""
        from assistant.find import search, topics
        from assistant.find.browse import KINDS, kind_of

        if text:
            found = search(text, FOUND)
            found = [t for n, t in enumerate(found) if n < FEW or t.score >= NEAR * found[0].score]
            rows = [_row(t, lang, kind_of(t.kind).title.in_(lang)) for t in found]
            told = self.t(f"the {len(rows)} nearest pages" if rows else "nothing is known by these words",
                          f"最接近的 {len(rows)} 个页面" if rows else "没有相关内容")  # fmt: skip
        elif kind:
            rows = [_row(t, lang) for t in topics(kind)]
            told = f"{kind_of(kind).title.in_(lang)} · {self.t(f'{len(rows):,} pages', f'{len(rows):,} 个页面')}"
        else:
            counts = [(k, len(topics(k.name))) for k in KINDS]
            rows = [Row(k.name, (k.title.in_(lang), Cell(k.about.in_(lang), Tone.DIM), Cell(f"{n:,}", Tone.DIM, n)), "kind")
                    for k, n in counts]  # fmt: skip
            every = sum(n for _, n in counts)
            told = self.t(f"{every:,} pages of {len(rows)} kinds", f"{len(rows)} 类，共 {every:,} 个页面")
        job.check()
        self.post_message(Found(job, rows, told, not text and not kind))

    def on_knowledge_found(self, message: Found) -> None:
        """The list is there."""
        if message.job is not self._list_job:
            return
        self._told, self._kinds = message.told, message.kinds
        self.list.sort_by(None)
        self.list.set_columns(self._columns())
        self.list.load(message.rows)
        self.list.action_end(-1)
        self._paint()

    def on_grid_chosen(self, message: Grid.Chosen) -> None:
        """A kind opens its pages, a page opens."""
        message.stop()
        if message.row is None:
            return
        if message.row.data == "kind":
            self._kind = message.row.key
            self._search()
        else:
            self.open(message.row.key)

    def on_grid_moved(self, message: Grid.Moved) -> None:
        """Beside the list there is its page."""
        message.stop()
        row = message.row
        if self._preview is not None:
            self._preview.stop()
        if row is not None and row.data != "kind" and self.has_class("-both") and not self.reader.has_focus:
            self._preview = self.set_timer(REST, lambda: self._read(row.key, beside=True))

    # --- the page -------------------------------------------------------------------------

    def open(self, name: str) -> None:
        """Read the page `name`, and remember the way."""
        way, shown = self._past[: self._here + 1], self.name_read
        for there in (shown, name):  # what was only shown beside the list was read, if one goes on from there
            if there and way[-1:] != [there]:
                way.append(there)
        self._past = way[-PAST:]
        self._here = len(self._past) - 1
        if name == shown:
            self._show_page()
        else:
            self._read(name)

    def _read(self, name: str, *, beside: bool = False) -> None:
        if self._page_job is not None:
            self._page_job.stop()
        lang = self.desk.lang
        self._page_job = self.desk.jobs.start("page", lambda job: self._page(job, name, lang, beside))

    def _page(self, job: Job, name: str, lang: str, beside: bool) -> None:
        """In a thread: a page, its links, and what else is about its topic."""
        from assistant.dialogue._pages import page
        from assistant.find.browse import linked, related

        sheet = page(name, lang)
        if sheet is None:
            self.post_message(Opened(job, name, None, None, beside))
            return
        made = linked(name, sheet, related(name, self.desk.ruleset()), lang)
        job.check()
        self.post_message(Opened(job, name, made, sheet, beside))

    def on_knowledge_opened(self, message: Opened) -> None:
        """A page is there."""
        if message.job is not self._page_job:
            return
        if message.page is None:
            self._past = [n for n in self._past if n != message.name]
            self._here = len(self._past) - 1
            self.app.notify(self.t(f"There is no page {message.name!r}.", f"没有页面 {message.name!r}。"), markup=False)
            return
        self._sheet = message.sheet
        self.reader.show(message.page)
        if not message.beside:
            self._show_page()

    def _show_page(self) -> None:
        self.add_class("-page")
        if self.has_focus_within or self.app.focused is None:
            self.reader.focus()
        self._paint()

    def on_reader_followed(self, message: Reader.Followed) -> None:
        """Along a link."""
        message.stop()
        self.open(message.topic)

    def _paint(self) -> None:
        """Where one is."""
        from_ = self.t("Esc: list", "Esc：列表") if self.has_class("-one") and self.has_class("-page") else ""
        back = self.t("b: page before", "b：上一页") if self._here > 0 and self.has_class("-page") else ""
        parts = [self._told] if not from_ else [self.name_read, from_]
        self.query_one("#knowledge-head", Notes).show((Note(" · ".join(p for p in (*parts, back) if p), Tone.DIM),))

    # --- keys -----------------------------------------------------------------------------

    def action_search(self) -> None:
        """Type words."""
        self._line.can_focus = True
        self.screen.set_focus(self._line)  # at once: the next key is a word, also when it was typed already

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Esc goes up in here as long as there is somewhere to go; then it is the workspace's."""
        if action == "up":
            return self._line.has_focus or self.has_class("-page") or bool(self._kind or self._line.value)
        return super().check_action(action, parameters)

    def action_up(self) -> None:
        """From the search or the page to the list, from the list to the kinds."""
        if self._line.has_focus:
            self._leave_search()
        elif self.has_class("-page") and (self.has_class("-one") or self.reader.has_focus):
            self.remove_class("-page")
            self.list.focus()
        elif self._line.value:
            self._line.value = ""
        elif self._kind:
            self._kind = ""
            self._search()
        else:
            self.remove_class("-page")
        self._paint()

    def action_past(self, by: int) -> None:
        """To the page that was read before, or after."""
        there = self._here + by
        if 0 <= there < len(self._past):
            self._here = there
            self._read(self._past[there])

    # --- habits ---------------------------------------------------------------------------

    @property
    def grid(self) -> Grid | None:
        """The list; None before it is made."""
        return next(iter(self.query(Grid)), None)

    def _pointed(self) -> str:
        """The topic that is meant: the link under the cursor, else the page, else the row of the list."""
        row = self.list.row
        if self.reader.has_focus or (self.has_class("-page") and not self.list.has_focus):
            return self.reader.link or self.name_read
        return "" if row is None or row.data == "kind" else row.key

    def question(self) -> str:
        """The question that the page answers."""
        from assistant.find import topic
        from assistant.find.browse import question

        there = topic(name) if (name := self._pointed()) else None
        return question(there, self.desk.lang) if there is not None else ""

    def filter(self, text: str) -> None:
        """``:filter WORDS`` searches."""
        self._line.value = text

    def copied(self) -> str:
        """The page, or the row."""
        return self.reader.text() if self.reader.has_focus else self.list.text()

    def exported(self) -> Sheet | None:
        """The page that is read."""
        return self._sheet if self.has_class("-page") or self.has_class("-both") else None

    def commands(self) -> Sequence[Command]:
        """``:page`` and ``:search``."""
        from tui.commands import Command

        return (
            Command("page", "NAME", Text("open a page: xid 79, rule ID, term NAME", "打开页面：xid 79、rule ID、term 名称"), self.open,
                    self._names),
            Command("search", "[WORDS]", Text("search everything that is known", "搜索全部知识"), self.filter),
        )  # fmt: skip

    def _names(self, start: str) -> Sequence[str]:
        from assistant.find import topics
        from assistant.find.browse import KINDS

        kind, blank, _ = start.partition(" ")
        return [t.id for t in topics(kind)] if blank else [f"{k.name} " for k in KINDS]

    def kept(self) -> Mapping[str, Any]:
        """What was searched and read last."""
        return {"search": self._line.value, "page": self.name_read if self.has_class("-page") else ""}

    def restore(self, kept: Mapping[str, Any]) -> None:
        """The same."""
        search, page = kept.get("search"), kept.get("page")
        self._kept = search if isinstance(search, str) else ""
        if isinstance(page, str) and page:
            self._past, self._here = [page], 0


def _row(t: Topic, lang: str, *kind: str) -> Row:
    from assistant.find.browse import called

    return Row(t.id, (" · ".join(part for part in called(t, lang) if part), *(Cell(k, Tone.DIM) for k in kind)), t)


SCREEN = ScreenSpec(
    "knowledge", 8, Text("Knowledge", "知识"), KnowledgePane,
    Text("search and read everything that gpudiag knows", "搜索并阅读全部知识"),
)  # fmt: skip
