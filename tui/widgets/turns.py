"""One turn of the conversation as rows: the question, what is being done for it, the answer, or why there is none."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import field
from typing import TYPE_CHECKING

from knowledge.record import dataclass
from tui.tones import MARKS, Tone
from tui.widgets.rows import Pen, Row, Span, Stop

if TYPE_CHECKING:
    from assistant.intent.query import Query
    from assistant.session.shown import Shown

WIDEST = 100  # columns that running text takes: longer lines are hard to read
LINES = 3  # of a question that are shown while it is folded: logs are pasted
NAMED = 3  # probes that are named while they run

Words = Callable[[str, str], str]


@dataclass(frozen=True, slots=True)
class Meant:
    """What a sentence may have meant: a question, and what a yes asks."""

    question: str
    asks: str
    query: Query


@dataclass
class Turn:
    """What was said, and what came of it."""

    text: str
    own: bool = False  # somebody pointed at something
    echo: str = ""
    doing: str = ""  # what is being done
    begun: float = field(default_factory=time.monotonic)
    shown: Shown | None = None
    trouble: str = ""
    broken: str = ""  # it was given up: what that means
    waits: bool = False
    note: bool = False  # a word of the app: nobody said it
    offers: tuple[str, ...] = ()  # questions that stand below a note
    full: bool = False  # everything of the answer is shown
    asked: bool = True  # the question at its end still stands
    retold: tuple[str, str] = ("", "")  # the answer in short: who put it together, and the words
    meant: Meant | None = None  # what it may have meant that nobody understood
    turned: set[str] = field(default_factory=set)  # folds that are not as they begin
    _cache: tuple[object, list[Row], list[Stop]] | None = None

    @property
    def over(self) -> bool:
        """Whether nothing more comes."""
        return self.note or self.shown is not None or bool(self.trouble or self.broken)

    def changed(self) -> None:
        """It is to be laid out anew."""
        self._cache = None

    def rows(self, columns: int, t: Words, lang: str, *, live: bool) -> tuple[list[Row], list[Stop]]:
        """Its rows for a width. `live`: it is the newest one."""
        key = (columns, lang, live, self._seconds())
        if self._cache is None or self._cache[0] != key:
            rows, stops = _Layout(self, min(columns, WIDEST), t, live=live).rows()
            self._cache = key, rows, stops
        return self._cache[1], self._cache[2]

    def _seconds(self) -> int:
        return -1 if self.over or self.waits else int(time.monotonic() - self.begun)


class _Layout:
    def __init__(self, turn: Turn, columns: int, t: Words, *, live: bool) -> None:
        self.turn, self.t, self.live = turn, t, live
        self.columns = columns
        self.pen = Pen(columns - 2)

    def rows(self) -> tuple[list[Row], list[Stop]]:
        turn, pen = self.turn, self.pen
        if turn.note:
            pen.text(turn.text, Tone.DIM)
            if turn.offers:
                pen.blank()
                pen.chips([(text, Stop("chip", text, text)) for text in turn.offers], letters=self.live)
        else:
            self._question()
        out = list(pen.rows)
        pen.rows = []
        if turn.echo:
            pen.text(turn.echo, Tone.DIM)
        if turn.waits:
            pen.text(self.t("waits", "等待中"), Tone.DIM, lead=(Span(f"{MARKS[Tone.STALE]} ", Tone.DIM),))
        elif not turn.over:
            self._working()
        if turn.broken:
            pen.text(turn.broken, Tone.STALE, lead=(Span(f"{MARKS[Tone.STALE]} ", Tone.STALE),))
        if turn.trouble:
            pen.text(turn.trouble, lead=(Span(f"{MARKS[Tone.ERROR]} ", Tone.ERROR),))
        out += [_margin(row, "  ") for row in pen.rows]
        if turn.shown is not None:
            out += self._answer(turn.shown)
        if turn.retold[1]:
            out += self._retold(*turn.retold)
        if turn.meant is not None and self.live:
            out += self._meant(turn.meant)
        return out, pen.stops

    def _retold(self, heading: str, text: str) -> list[Row]:
        """Behind everything that is ours, so that no row of the answer moves."""
        pen = Pen(self.columns - 4)
        pen.blank()
        pen.text(heading, Tone.DIM)
        pen.text(text)
        return [(Span("  │ ", Tone.DIM), *row) for row in pen.rows]

    def _meant(self, meant: Meant) -> list[Row]:
        """A question below the answer; nothing happens before somebody chooses it."""
        pen = Pen(self.columns - 4, self.pen.stops)
        pen.blank()
        pen.text(meant.question, Tone.DIM)
        pen.chips([(meant.asks, Stop("meant", meant, meant.asks))], letters=True)
        return [(Span("  │ ", Tone.DIM), *row) for row in pen.rows]

    def _question(self) -> None:
        turn, pen = self.turn, self.pen
        sign = Span("› " if turn.own else "❯ ", Tone.ACCENT)
        pen.columns += 2
        before = len(pen.rows)
        pen.text(turn.text, Tone.STRONG, lead=(sign,))
        hidden = len(pen.rows) - before - LINES
        if hidden > 1:
            stop = pen.stop(Stop("fold", "question", turn.text))
            if "question" not in turn.turned:
                del pen.rows[before + LINES :]
            sign_, n = ("▾", 0) if "question" in turn.turned else ("▸", hidden)
            said = self.t(f"{n} more lines", f"另有 {n} 行") if n else self.t("fold", "收起")
            pen.text(said, Tone.DIM, lead=(Span(f"  {sign_} ", Tone.DIM, stop),), stop=stop)
        pen.columns -= 2

    def _working(self) -> None:
        turn = self.turn
        seconds = int(time.monotonic() - turn.begun)
        said = turn.doing or self.t("thinking", "思考中")
        tail = f" · {seconds} s" if seconds >= 1 else ""
        self.pen.text(said + tail, Tone.DIM, lead=(Span("◌ ", Tone.ACCENT),))

    def _answer(self, shown: Shown) -> list[Row]:
        from tui.widgets.answer import Layout

        turn = self.turn
        layout = Layout(shown, self.columns - 2, turn.turned, self.t, live=self.live and turn.asked, full=turn.full)
        layout.pen.stops = self.pen.stops
        rows, _ = layout.rows()
        # Nothing of a hypothetical answer was seen: a broken line runs beside it.
        side = Span("┆ ", Tone.WARNING) if shown.note else Span("  ")
        return [(side, *row) if row or shown.note else row for row in rows]


def _margin(row: Row, margin: str) -> Row:
    return (Span(margin), *row) if row else row
