"""The line for `:` commands and `/` filters; it is there only while somebody types."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual.containers import Horizontal
from textual.suggester import Suggester
from textual.widgets import Input, Static

from knowledge.errors import GpudiagError
from tui import commands

if TYPE_CHECKING:
    from textual import events
    from textual.app import ComposeResult

    from tui.app import GpudiagApp


class _Completions(Suggester):
    """What Tab or the right arrow would fill in."""

    def __init__(self, app: GpudiagApp) -> None:
        super().__init__(use_cache=False, case_sensitive=True)
        self._app = app

    async def get_suggestion(self, value: str) -> str | None:
        """The first line that begins so."""
        found = commands.completions(self._app, value) if value else []
        return found[0] if found else None


class _Line(Input):
    """An input whose Tab completes instead of moving on."""

    def on_key(self, event: events.Key) -> None:
        """Tab takes the suggestion; Backspace on nothing closes."""
        if event.key == "tab":
            event.stop()
            event.prevent_default()
            self.cursor_position = len(self.value)
            self.action_cursor_right()
        elif event.key == "backspace" and not self.value and isinstance(self.parent, CommandLine):
            event.stop()
            self.parent.close()


class CommandLine(Horizontal):
    """A sign and an input."""

    app: GpudiagApp
    DEFAULT_CSS = """
    CommandLine { height: 1; display: none; background: $panel; }
    CommandLine.-open { display: block; }
    CommandLine > Static { width: 2; padding-left: 1; color: $accent; text-style: bold; }
    CommandLine > Input { border: none; height: 1; padding: 0; background: $panel; width: 1fr; }
    """

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._sign = ":"
        self._past: list[str] = []

    def compose(self) -> ComposeResult:
        """The sign, and the line."""
        yield Static(":", markup=False)
        yield _Line(compact=True, select_on_focus=False, suggester=_Completions(self.app))

    @property
    def is_open(self) -> bool:
        """Whether somebody types."""
        return self.has_class("-open")

    @property
    def line(self) -> Input:
        """Where it is typed."""
        return self.query_one(_Line)

    def open(self, sign: str, text: str = "") -> None:
        """Begin: ":" for a command, "/" for a filter."""
        self._sign = sign
        self.query_one(Static).update(sign)
        self.line.suggester = _Completions(self.app) if sign == ":" else None
        self.add_class("-open")
        self.styles.display = "block"  # `close` took it away at once, which outlasts the class
        self.line.value = text
        self.line.cursor_position = len(text)
        self.screen.set_focus(self.line)  # at once: the next key is a word, also when it was typed already

    def close(self) -> None:
        """Take it away."""
        self.remove_class("-open")
        self.styles.display = "none"
        self.line.blur()

    def on_input_changed(self, event: Input.Changed) -> None:
        """A filter shows at once what it does."""
        event.stop()
        if self.is_open and self._sign == "/":
            self.app.workspace.filter(event.value)

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Do it."""
        event.stop()
        text = event.value
        self.close()
        self.app.workspace.refocus()
        if self._sign == "/":
            return
        try:
            commands.run(self.app, text)
        except GpudiagError as error:
            self.app.notify(error.in_(self.app.desk.lang), severity="error", markup=False)
