"""The first sentence of an analysis, over the view that proves it; or how far it is, or why there is none."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from rich.console import Group
from rich.text import Text as Line
from textual.widget import Widget

from assistant.render.cells import wrap
from tui.tones import MARKS, Tone, styles
from tui.widgets.columns import clip

if TYPE_CHECKING:
    from rich.console import RenderableType
    from textual.geometry import Size

_LEAST = {Tone.UNKNOWN: 3, Tone.ERROR: 4}  # lines in which it is told why there is no answer
_READABLE = 100  # columns of a sentence
_TONES = {
    "ok": Tone.OK,
    "degraded": Tone.WARNING,
    "unhealthy": Tone.CRITICAL,
    "info": Tone.INFO,
    "warning": Tone.WARNING,
    "error": Tone.ERROR,
    "critical": Tone.CRITICAL,
}


class Verdict(Widget):
    """A mark, a word, a sentence."""

    DEFAULT_CSS = "Verdict { height: auto; padding: 0 1; margin-bottom: 1; }"

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._label, self._text, self._tone = "", "", Tone.PLAIN
        self.most = 3  # lines

    def say(self, said: Mapping[str, Any] | None) -> None:
        """The ``headline`` of an answer; None takes it away."""
        if said is None:
            self.tell("")
        else:
            self.tell(str(said["text"]), _TONES.get(str(said["state"]), Tone.UNKNOWN), str(said["label"]))

    def tell(self, text: str, tone: Tone = Tone.PLAIN, label: str = "") -> None:
        """Any sentence."""
        if (text, tone, label) == (self._text, self._tone, self._label):
            return
        self._text, self._tone, self._label = text, tone, label
        self.display = bool(text)
        self.refresh(layout=True)

    def _lines(self, columns: int) -> list[str]:
        mark = MARKS.get(self._tone, "")
        lead = (
            "  ".join(x for x in (f"{mark} {self._label}", self._text) if x.strip())
            if self._label
            else f"{mark} {self._text}".strip()
        )
        room = max(20, min(columns, _READABLE))
        lines = [piece for part in lead.split("\n") for piece in (wrap(part, room, "", "  ") or [""])]
        most = max(self.most, _LEAST.get(self._tone, 1))
        if len(lines) <= most:
            return lines
        rest = " ".join(line.strip() for line in lines[most - 1 :])
        return [*lines[: most - 1], clip(rest if most == 1 else f"  {rest}", room)]

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        """As many lines as the sentence takes, up to `most`."""
        return max(1, len(self._lines(width)))

    def render(self) -> RenderableType:
        """The word in its tone."""
        look = styles(self.app.theme_variables)
        out = []
        head = len(f"{MARKS.get(self._tone, '')} {self._label}".strip())
        for n, piece in enumerate(self._lines(self.size.width)):
            line = Line(piece, no_wrap=True, style=look[Tone.DIM] if self._tone is Tone.DIM else "")
            if n == 0 and self._tone is not Tone.DIM:
                line.stylize(look[self._tone] + look[Tone.STRONG], 0, head or 1)
            out.append(line)
        return Group(*out)
