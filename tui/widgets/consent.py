"""Asks before anything that costs: what would be looked at, how long that takes, what it does to its target."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, ClassVar

from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.screen import ModalScreen
from textual.widget import Widget
from textual.widgets import Static

from tui.tones import Tone, styles
from tui.widgets.rows import Pen, Row, Span

if TYPE_CHECKING:
    from rich.console import RenderableType
    from textual import events
    from textual.app import ComposeResult
    from textual.geometry import Size

    from assistant.session.shown import Terms
    from tui.app import GpudiagApp


class _Price(Widget):
    """The question, and what a yes costs."""

    DEFAULT_CSS = "_Price { height: auto; }"

    def __init__(self, terms: Terms) -> None:
        super().__init__()
        self._terms = terms

    def rows(self, columns: int) -> list[Row]:
        """Laid out for a width."""
        from assistant.render.cells import pad, width

        pen = Pen(columns)
        pen.text(self._terms.question, Tone.STRONG)
        if self._terms.rows:
            pen.blank()
        wide = max((width(name) for name, _ in self._terms.rows), default=0)
        for name, text in self._terms.rows:
            pen.text(text, lead=(Span(pad(name, wide), Tone.DIM), Span("  ")))
        return pen.rows

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        """As many lines as there are."""
        return len(self.rows(width))

    def render(self) -> RenderableType:
        """The rows in their tones."""
        from rich.console import Group
        from rich.text import Text as Line

        look = styles(self.app.theme_variables)
        return Group(*(Line.assemble(*((s.text, look[s.tone]) for s in row)) for row in self.rows(self.size.width)))


class _Button(Static, can_focus=True):
    """A word that can be chosen."""

    DEFAULT_CSS = """
    _Button { width: auto; padding: 0 1; margin-right: 3; }
    _Button:focus { background: $block-cursor-background; color: $block-cursor-foreground; text-style: bold; }
    _Button:hover { background: $rule; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [Binding("enter", "press", show=False)]

    def __init__(self, key: str, text: str, action: str) -> None:
        from rich.text import Text as Line

        super().__init__(Line.assemble((f"{key} ", "bold"), text))
        self._action = action

    async def action_press(self) -> None:
        """It is chosen."""
        await self.screen.run_action(self._action)

    async def on_click(self) -> None:
        """The same with the mouse."""
        await self.action_press()


class Consent(ModalScreen["bool | None"]):
    """Yes, no, or not now (None): then the question stays open."""

    app: GpudiagApp
    AUTO_FOCUS = "#later"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("y", "yes", show=False),
        Binding("n", "no", show=False),
        Binding("escape", "later", show=False),
        Binding("left,up", "app.focus_previous", show=False),
        Binding("right,down,tab", "app.focus_next", show=False),
    ]
    DEFAULT_CSS = """
    Consent { align: center middle; }
    Consent > Vertical { width: 90%; max-width: 84; height: auto; max-height: 90%; background: $panel; padding: 1 2; }
    Consent VerticalScroll { height: auto; max-height: 16; }
    Consent Horizontal { height: 1; margin-top: 1; }
    """

    def __init__(self, terms: Terms, lang: str) -> None:
        super().__init__()
        self._terms, self._lang, self._since = terms, lang, time.monotonic()

    def compose(self) -> ComposeResult:
        """The question, its price, the ways out."""
        from assistant.session.shown import NO, YES
        from knowledge.language import Text

        with Vertical():
            with VerticalScroll(can_focus=False):
                yield _Price(self._terms)
            with Horizontal():
                yield _Button("y", YES.in_(self._lang), "yes")
                yield _Button("n", NO.in_(self._lang), "no")
                later = _Button("Esc", Text("not now", "暂不回答").in_(self._lang), "later")
                later.id = "later"
                yield later

    def on_mount(self) -> None:
        """Count from when it can be seen."""
        self._since = time.monotonic()

    def on_key(self, event: events.Key) -> None:
        """Somebody types a sentence: no letter of it is an answer."""
        if event.is_printable and event.key not in ("y", "n"):
            self._since = time.monotonic()
            event.stop()

    @property
    def _meant(self) -> bool:
        """Not within the app's pause: a "y" may belong to a sentence that is being typed. Other letters begin it anew."""
        return time.monotonic() - self._since >= self.app.pause

    def action_yes(self) -> None:
        """Agreed."""
        if self._meant:
            self.dismiss(True)

    def action_no(self) -> None:
        """Refused: it is left out of this conversation."""
        if self._meant:
            self.dismiss(False)

    def action_later(self) -> None:
        """The question stays open."""
        self.dismiss(None)
