"""Lines of running text for the screen: spans in tones, wrapped to columns, some of which can be chosen.

Pure: nothing here knows a terminal. What is chosen stands in a list of stops; a span carries the number of its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from rich.cells import chop_cells

from assistant.render.cells import width, wrap
from tui.tones import Tone

NONE = -1  # no stop
_LEAST = 6  # columns that a text needs beside what leads it
LETTERS = "abcdefghijklmn"  # of chips: with Alt they choose one
LETTERED = ("chip", "choice", "consent", "meant")  # kinds of stops that have a letter, in their order


class Span(NamedTuple):
    """A piece of a line. `stop`: number of what a click on it, or Enter, chooses."""

    text: str
    tone: Tone = Tone.PLAIN
    stop: int = NONE


Row = tuple[Span, ...]


class Stop(NamedTuple):
    """Something that can be chosen."""

    kind: str  # fold, code, chip, choice, consent, goto, more, meant
    value: Any = None
    copy: str = ""  # what `y` copies
    question: str = ""  # what `e` asks


def plain(row: Row) -> str:
    """The text of a row."""
    return "".join(span.text for span in row)


def length(row: Row) -> int:
    """Columns that a row takes."""
    return sum(width(span.text) for span in row)


class Pen:
    """Writes rows of at most `columns`. `stops`: those of what stands above, behind which the letters go on."""

    def __init__(self, columns: int, stops: list[Stop] | None = None) -> None:
        self.columns = max(12, columns)
        self.rows: list[Row] = []
        self.stops: list[Stop] = [] if stops is None else stops
        self._chips = sum(stop.kind in LETTERED for stop in self.stops)

    def stop(self, stop: Stop) -> int:
        """The number of a new stop."""
        self.stops.append(stop)
        return len(self.stops) - 1

    def blank(self) -> None:
        """One empty line; never two, and none at the top."""
        if self.rows and self.rows[-1]:
            self.rows.append(())

    def text(
        self, text: str, tone: Tone = Tone.PLAIN, *, lead: Sequence[Span] = (), hang: int | None = None, stop: int = NONE,
    ) -> None:  # fmt: skip
        """Running text behind `lead`; further lines begin `hang` columns in (None: below the text of the first)."""
        before = sum(width(span.text) for span in lead)
        if before + _LEAST > self.columns:  # no room beside it: the text goes below
            self.rows += cut_row(tuple(lead), self.columns)
            lead, before = (Span(" " * 4),), 4
        indent = min(before if hang is None else hang, self.columns // 2)
        for n, line in enumerate(folded(text, self.columns, before, indent)):
            head = tuple(lead) if n == 0 else ((Span(" " * indent),) if indent else ())
            self.rows.append((*head, *((Span(line, tone, stop),) if line else ())))

    def lines(self, lines: Iterable[str], tone: Tone = Tone.PLAIN, *, indent: int = 0, stop: int = NONE) -> None:
        """Lines that were laid out already; one that is too long is cut into pieces."""
        lead = (Span(" " * indent),) if indent else ()
        for line in lines:
            for piece in chop_cells(line, max(4, self.columns - indent)) or [""]:
                self.rows.append((*lead, Span(piece, tone, stop)) if piece else ())

    def flow(self, pieces: Sequence[Sequence[Span]], *, indent: int = 0, gap: int = 3) -> None:
        """Pieces side by side, as many on a line as there is room for; each stays whole where it can."""
        row: list[Span] = []
        used = 0
        for piece in pieces:
            size = sum(width(span.text) for span in piece)
            if row and used + gap + size > self.columns:
                self.rows.append(tuple(row))
                row, used = [], 0
            if row:
                row.append(Span(" " * gap))
                used += gap
            elif indent:
                row.append(Span(" " * indent))
                used = indent
            if used + size > self.columns and len(piece) > 1:  # alone, and too long for a line
                self.text(piece[-1].text, piece[-1].tone, lead=(*row, *piece[:-1]), stop=piece[-1].stop)
                row, used = [], 0
                continue
            row.extend(piece)
            used += size
        if row:
            self.rows.append(tuple(row))

    def chips(self, chips: Sequence[tuple[str, Stop]], *, letters: bool) -> None:
        """Words that can be chosen, side by side. `letters`: each with the one that chooses it."""
        pieces = []
        for text, stop in chips:
            number = self.stop(stop)
            sign = LETTERS[self._chips] if letters and self._chips < len(LETTERS) else "›"
            self._chips += 1
            pieces.append((Span(f"{sign} ", Tone.ACCENT, number), Span(text, Tone.PLAIN, number)))
        self.flow(pieces)


def cut_row(row: Row, columns: int) -> list[Row]:
    """A row in pieces of at most `columns`."""
    out: list[list[Span]] = [[]]
    used = 0
    for span in row:
        rest = span.text
        while rest:
            head = chop_cells(rest, max(2, columns - used))[0] if columns - used >= 2 else ""
            if width(head) > columns - used:
                head = ""
            if head:
                out[-1].append(span._replace(text=head))
                used += width(head)
                rest = rest[len(head) :]
            if rest:
                out.append([])
                used = 0
    return [tuple(r) for r in out]


def folded(text: str, columns: int, first: int = 0, rest: int = 0) -> list[str]:
    """`text` in lines of at most `columns`, without the `first` columns of the first one and the `rest` of the others,
    that something else takes. Words that are too long are cut."""
    out: list[str] = []
    for paragraph in text.split("\n"):
        begun = first if not out else rest
        made = wrap(paragraph, columns, " " * begun, " " * rest)
        if any(width(line) > columns for line in made):
            # Closing marks may hang over the edge by two columns; a screen has no such edge.
            made = wrap(paragraph, columns - 2, " " * begun, " " * rest)
        for n, line in enumerate(made):
            lead = begun if n == 0 else rest
            body = line[lead:] if len(line) > lead else ""
            space = max(4, columns - lead)
            if width(body) <= space:
                out.append(body)
            else:
                out += _chopped(body, space, max(4, columns - rest))
    return out


def _chopped(text: str, first: int, rest: int) -> list[str]:
    """`text` cut by columns alone: the first piece, then the others."""
    head = chop_cells(text, first)[0]
    tail = text[len(head) :]
    return [head, *(chop_cells(tail, rest) if tail else [])]
