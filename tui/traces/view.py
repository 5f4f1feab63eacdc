"""What every way to look at a trace offers the screen."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from textual.containers import Container

from knowledge.language import Text

if TYPE_CHECKING:
    from textual.app import ComposeResult

    from assistant.intent.query import Query
    from assistant.render.sheet import Sheet
    from assistant.trace.child import Told
    from tui.traces.opened import Opened
    from tui.widgets.grid import Grid


class View(Container):
    """One of them. It shows what a command said; `prepared` runs in a thread, all else in the app's."""

    DEFAULT_CSS = "View { height: 1fr; layout: vertical; }"
    KEY: ClassVar[str] = ""
    TITLE: ClassVar[Text] = Text("", "")
    FORMAT: ClassVar[str] = "json"
    SENTENCE: ClassVar[int] = 3  # lines of the sentence above it
    TIGHT: ClassVar[bool] = False  # begins with a blank line of its own

    def t(self, en: str, zh: str) -> str:
        """A word of ours in the language of the app."""
        return Text(en, zh).in_(self.lang)

    @property
    def lang(self) -> str:
        """The language of the app."""
        from tui.app import desk_of

        return desk_of(self.app).lang

    @classmethod
    def prepared(cls, told: Told) -> Any:
        """What `show` takes, from what the command said. InputError where that cannot be used."""
        return told.data()

    @classmethod
    def headline(cls, told: Told) -> Mapping[str, Any] | None:
        """The sentence that the answer begins with: its state, a word, and the text."""
        if cls.FORMAT != "json":
            return None
        data = told.data()
        found = data.get("headline") or data.get("verdict")
        return found if isinstance(found, dict) and {"state", "label", "text"} <= set(found) else None

    def show(self, opened: Opened, answer: Any) -> None:
        """Show it."""

    def clear(self) -> None:
        """Show nothing: something else is being read."""

    def question(self) -> Text | None:
        """ "Explain this", of what is under the cursor."""
        return None

    def asked(self) -> Query | None:
        """The same as it is meant, where words alone would not tell: the names of kernels hold any."""
        return None

    def detail(self) -> tuple[str, str]:
        """What is under the cursor, in two lines: its whole name, and its numbers."""
        return "", ""

    def hints(self) -> str:
        """The keys that matter here."""
        return ""

    def find(self, words: str) -> None:
        """What `/` says."""
        if (grid := self.grid) is not None:
            grid.filter(words)

    @property
    def grid(self) -> Grid | None:
        """Its table."""
        return None

    def copied(self) -> str:
        """What `y` copies."""
        return grid.text() if (grid := self.grid) is not None else ""

    def exported(self) -> Sheet | None:
        """What ``:export`` writes; None: the table."""
        from assistant.render.sheet import Code, Sheet
        from tui.widgets.bars import Bars, Said

        if self.grid is not None:
            return None
        said = [
            line.text if isinstance(line, Said) else f"{'  ' * line.depth}{line.label}  {line.value}  {line.said}"
            for bars in self.query(Bars)
            for line in bars.lines
        ] or self.copied().splitlines()
        return Sheet(self.TITLE.in_(self.lang), (Code(tuple(said)),), {"lines": said})


class BarsView(View):
    """One that is bars between sentences."""

    def compose(self) -> ComposeResult:
        """The bars."""
        from tui.widgets.bars import Bars

        yield Bars()

    def clear(self) -> None:
        """Nothing."""
        from tui.widgets.bars import Bars

        self.query_one(Bars).load(())
