"""The first line: the verdict, whose it is, and how old."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from rich.text import Text as Line
from textual.widget import Widget

from assistant.render.cells import width
from tui.messages import Goto
from tui.tones import MARKS, Tone, of_state, styles
from tui.widgets.columns import clip
from tui.widgets.replay import clock

if TYPE_CHECKING:
    from rich.console import RenderableType

    from tui.desk import Picture

OLD = 150.0  # seconds: two rounds and a half have been missed


class Banner(Widget):
    """One line; a click goes to the findings."""

    DEFAULT_CSS = "Banner { height: 1; background: $panel; padding: 0 1; }"

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._picture: Picture | None = None
        self._said = ""

    def show(self, picture: Picture) -> None:
        """Another picture."""
        self._picture = picture
        self.refresh()

    def tick(self) -> None:
        """Time has gone by: draw again only when that shows."""
        if self._picture is not None and self._right(self._picture) != self._said:
            self.refresh()

    def render(self) -> RenderableType:
        """The mark, the sentence; on the right the source and the age."""
        from tui.app import desk_of

        picture = self._picture
        look = styles(self.app.theme_variables)
        if picture is None:
            return Line("gpudiag", style=look[Tone.DIM])
        lang = desk_of(self.app).lang
        tone, said = Tone.DIM, desk_of(self.app).t("reading ...", "正在读取……")
        if picture.diagnosis is not None:
            verdict = picture.diagnosis.verdict
            tone, said = of_state(str(verdict.state)), verdict.text.in_(lang)
        elif picture.trouble:
            tone, said = Tone.ERROR, picture.trouble
        elif picture.looking is None:
            said = desk_of(self.app).t("nothing was read yet", "尚未读取")
        right = self._said = self._right(picture)
        room = max(10, self.size.width - width(right) - 2)
        left = clip(f"{MARKS.get(tone, ' ')} {said}", room)
        line = Line(left, style=look[tone], no_wrap=True)
        line.append(" " * max(1, self.size.width - width(left) - width(right)))
        stale = picture.trouble or (picture.age or 0) > OLD
        line.append(right, style=look[Tone.WARNING if stale else Tone.DIM])
        return line

    def _right(self, p: Picture) -> str:
        from tui.app import desk_of

        t = desk_of(self.app).t
        parts = [p.host or (p.origin.host or t("this machine", "本机") if p.origin.live else t("recording", "录制"))]
        if p.looking is not None:
            seconds = int(time.monotonic() - p.begun)
            names = ", ".join(p.looking[:2]) + ("…" if len(p.looking) > 2 else "")
            parts.append(
                t("looking", "读取中")
                + (f" {names}" if seconds >= 2 and names else "")
                + (f" {seconds}s" if seconds else "")
            )
        elif p.trouble and p.diagnosis is not None:
            parts.append(t("the last look failed", "上次读取失败"))
        if not p.origin.live:
            parts.append(t("recorded", "录制") if p.moment is None else t("as of ", "截至 ") + clock(p.moment))
        elif p.age is not None:
            parts.append(age(p.age, t("ago", "前")))
        return " · ".join(parts)

    def on_click(self) -> None:
        """To the findings behind it."""
        self.post_message(Goto("findings"))


def age(seconds: float, ago: str = "") -> str:
    """How long ago, as short as it can be read: 5s, 3m, 2h, 4d. Below five seconds it is 0s: no line changes each second."""
    whole = int(seconds) // 5 * 5 if seconds < 60 else int(seconds)
    for size, unit in ((86400, "d"), (3600, "h"), (60, "m")):
        if whole >= size:
            return f"{whole // size}{unit} {ago}".strip()
    return f"{whole}s {ago}".strip()
