"""The line in which somebody asks: several lines when need be, earlier sentences, completion, pasted logs."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, ClassVar

from textual import events
from textual.binding import Binding, BindingType
from textual.message import Message
from textual.widgets import TextArea

if TYPE_CHECKING:
    from assistant.session.past import Past
    from tui.app import GpudiagApp

TALLEST = 6  # lines that the line may grow to
PASTED = 5  # lines, or
WIDE = 1000  # characters, from which pasted text is named in the line rather than shown
LIMIT = 1 << 20  # characters of one sentence, as on the command line


class Sentence(TextArea):
    """What is being typed."""

    app: GpudiagApp
    DEFAULT_CSS = """
    Sentence { height: 1; max-height: 6; border: none; padding: 0; background: $panel; scrollbar-size-vertical: 1; }
    Sentence:focus { border: none; }
    Sentence .text-area--cursor-line { background: $panel; }
    Sentence .text-area--suggestion { color: $faint; }
    Sentence .text-area--placeholder { color: $faint; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "say", "Ask", key_display="⏎", priority=False),
        Binding("shift+enter,ctrl+j,alt+enter", "line", "New line", show=False),
        Binding("pageup", "read(-1)", "Back", show=False),
        Binding("pagedown", "read(1)", "Forward", show=False),
    ]

    class Submitted(Message):
        """A sentence, never empty."""

        def __init__(self, text: str) -> None:
            super().__init__()
            self.text = text

    class Read(Message):
        """A page up (-1) or down (1) in what was said; the keys stay here."""

        def __init__(self, by: int) -> None:
            super().__init__()
            self.by = by

    class Command(Message):
        """A sign on an empty line that begins something else: ":" or "?"."""

        def __init__(self, sign: str) -> None:
            super().__init__()
            self.sign = sign

    def __init__(self, past: Past, complete: Callable[[str], list[str]], *, id: str | None = None) -> None:
        super().__init__(
            id=id, soft_wrap=True, compact=True, show_line_numbers=False, highlight_cursor_line=False,
            tab_behavior="focus", max_checkpoints=20,
        )  # fmt: skip
        self.cursor_blink = False  # nothing is painted while nothing changes
        self._past, self._complete = past, complete
        self._pasted: dict[str, str] = {}  # what names in the line stand for
        self._walking = False  # the text was put here by us

    # --- the text ---------------------------------------------------------------------------

    @property
    def sentence(self) -> str:
        """What would be said: names of what was pasted in full."""
        text = self.text
        for name, body in self._pasted.items():
            text = text.replace(name, f"\n{body}\n")
        return text[:LIMIT].strip()

    def put(self, text: str) -> None:
        """This text, the cursor at its end."""
        self._walking = True
        self.load_text(text)
        self.move_cursor(self.document.end)
        self._fit()

    def action_say(self) -> None:
        """It is said."""
        said = self.sentence
        if not said:
            return
        self._past.add(said)
        self._pasted.clear()
        self.put("")
        self.post_message(self.Submitted(said))

    def action_line(self) -> None:
        """A line break."""
        self.insert("\n")

    def action_read(self, by: int) -> None:
        """A page of what was said."""
        self.post_message(self.Read(by))

    # --- keys -------------------------------------------------------------------------------

    def check_consume_key(self, key: str, character: str | None = None) -> bool:
        """A colon on an empty line is the app's at once: what is typed behind it in the same burst is the command."""
        return bool(self.text or character != ":") and super().check_consume_key(key, character)

    async def _on_key(self, event: events.Key) -> None:
        """Enter says it; Tab completes; up and down on the first and the last line walk through earlier sentences.

        What is not meant here goes to the text area's own handler, which Textual calls next.
        """
        key = event.key
        if key.startswith("alt+"):  # a terminal sends the letter with it, which is not typed
            event.prevent_default()
        elif key == "tab" and self.suggestion:
            event.stop()
            event.prevent_default()
            self.insert(self.suggestion)
        elif (key == "up" and self._earlier()) or (key == "down" and self._later()):
            event.stop()
            event.prevent_default()
        elif not self.text and event.character in (":", "：", "?", "？"):
            event.stop()
            event.prevent_default()
            self.post_message(self.Command(":" if event.character in ":：" else "?"))
        elif not event.is_printable and await self._bound(event):
            event.stop()
            event.prevent_default()

    async def _bound(self, event: events.Key) -> bool:
        """Carry out what the key is bound to here, before the next key is looked at.

        By Textual's way around the app, letters that came in the same burst (a slow line, a paste without brackets)
        would be typed before the Enter that stands between them.
        """
        bound = [b for b in self._bindings.key_to_bindings.get(event.key, ()) if not b.priority]
        return bool(bound) and await self.app.run_action(bound[0].action, self)

    def _earlier(self) -> bool:
        if self.cursor_at_first_line and (found := self._past.older(self.text)) is not None:
            self.put(found)
            return True
        return False

    def _later(self) -> bool:
        if self.cursor_at_last_line and (found := self._past.newer()) is not None:
            self.put(found)
            return True
        return False

    async def _on_paste(self, event: events.Paste) -> None:
        """A log or a traceback is named in the line, and said in full."""
        text = event.text.replace("\r\n", "\n").replace("\r", "\n")[:LIMIT]
        lines = text.count("\n") + 1
        if lines < PASTED and len(text) < WIDE:
            event.text = text.rstrip("\n")
            return  # the text area's own handler comes next
        event.stop()
        event.prevent_default()
        number = f" #{len(self._pasted) + 1}" if self._pasted else ""
        name = self.app.t(f"[{lines} lines{number}]", f"[{lines} 行{number}]")
        self._pasted[name] = text
        self.insert(name)

    # --- what follows from a change -----------------------------------------------------------

    def on_text_area_changed(self) -> None:
        """As tall as the text; what is shown from the past is now being changed."""
        if not self._walking:
            self._past.leave()
        self._walking = False
        self._fit()

    def on_resize(self) -> None:
        """Another width."""
        self._fit()

    def _fit(self) -> None:
        tall = max(1, min(TALLEST, self.wrapped_document.height))
        if self.styles.height is None or self.styles.height.value != tall:
            self.styles.height = tall

    def update_suggestion(self) -> None:
        """What Tab would add, at the end of a line."""
        text = self.text
        found = self._complete(text) if text and self.cursor_at_end_of_text else []
        self.suggestion = found[0][len(text) :] if found else ""
