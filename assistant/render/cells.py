"""Terminal text: how wide a string is, wrapping to it, and colour."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from typing import NamedTuple

MIN_WIDTH, MAX_WIDTH, PIPE_WIDTH = 40, 140, 100  # columns; a pipe gets a width that reads well in a mail or a ticket
_CODES = {"red": "31", "yellow": "33", "green": "32", "blue": "36", "dim": "2", "bold": "1", "alarm": "1;37;41"}
_WORD = 20  # characters that a cut may give up so as not to break a word
_NO_START = set("，。；：、！？）】」』》”,.;:!?)]}%")  # punctuation that does not begin a line
_NO_END = frozenset("（【「『《")  # and such that does not end one


def width(text: str) -> int:
    """Columns that `text` takes: two for East Asian wide characters, none for combining marks."""
    if text.isascii():
        return len(text)
    from unicodedata import combining, east_asian_width

    return sum(0 if combining(c) else 2 if east_asian_width(c) in "WF" else 1 for c in text)


def pad(text: str, columns: int) -> str:
    """`text` filled up with blanks to `columns`."""
    return text + " " * max(0, columns - width(text))


def terminal_width() -> int:
    """Columns to fill: the terminal's (``COLUMNS`` first), a fixed width on a pipe."""
    columns = PIPE_WIDTH
    told = os.environ.get("COLUMNS", "")
    if told.isascii() and told.isdigit() and len(told) < 6:
        columns = int(told)
    elif sys.stdout is not None and sys.stdout.isatty():
        try:
            columns = os.get_terminal_size(sys.stdout.fileno()).columns
        except (OSError, ValueError):  # the terminal app holds the terminal itself
            columns = PIPE_WIDTH
    return min(MAX_WIDTH, max(MIN_WIDTH, columns or PIPE_WIDTH))


def wrap(text: str, columns: int, first: str = "", rest: str | None = None) -> list[str]:
    """Lines of at most `columns`, the first one led by `first`, the others by `rest`.

    Breaks at blanks and between Han characters; a word that is too long stays whole, and a
    closing mark may stand two columns over.
    """
    rest = " " * width(first) if rest is None else rest
    lines, line, used, empty = [], first, width(first), True
    for piece in _pieces(text):
        size = width(piece)
        bare = piece.rstrip()
        room = columns + 2 if bare in _NO_START else columns  # closing punctuation may hang over the edge
        if not empty and used + width(bare) > room:
            lines.append(line.rstrip())
            line, used, empty = rest, width(rest), True
        if empty and not bare:
            continue
        line += piece
        used += size
        empty = False
    return [*lines, line.rstrip()]


def unbroken(text: str) -> int:
    """Columns of the longest piece of `text` that `wrap` keeps together."""
    return max((width(piece.rstrip()) for piece in _pieces(text)), default=0)


def _pieces(text: str) -> Iterator[str]:
    """Words with the blanks behind them; each Han character alone, with the bracket that opens before it."""
    word = ""
    for c in text:
        wide = ord(c) >= 0x2E80
        if wide:
            if word and word not in _NO_END:
                yield word
                word = ""
            if c in _NO_END:
                word += c
                continue
            yield word + c
            word = ""
        elif c == " ":
            yield word + c
            word = ""
        else:
            word += c
    if word:
        yield word


def cut(text: str, columns: int) -> str:
    """`text` in at most `columns`, the middle left out when it is longer: between two words, where they are short."""
    if width(text) <= columns:
        return text
    keep = max(columns - 5, 10)
    head = tail = ""
    for c in text:
        if width(head) + width(c) > keep * 2 // 3:
            break
        head += c
    for c in reversed(text):
        if width(tail) + width(c) > keep - width(head):
            break
        tail = c + tail
    if text[len(head)] != " " and (blank := head.rfind(" ")) > len(head) - _WORD:
        head = head[:blank]
    if text[-len(tail) - 1] != " " and 0 <= (blank := tail.find(" ")) < _WORD:
        tail = tail[blank + 1 :]
    return f"{head.rstrip()} ... {tail.lstrip()}"


class Paint(NamedTuple):
    """Colour, when it is wanted."""

    on: bool

    def __call__(self, text: str, *styles: str) -> str:
        """`text` in these styles; unchanged when colour is off."""
        if not self.on or not text:
            return text
        return f"\x1b[{';'.join(_CODES[s] for s in styles)}m{text}\x1b[0m"


def paint_for(choice: str) -> Paint:
    """Colour as ``--color`` says: auto is a terminal that is not dumb, and no NO_COLOR."""
    if choice == "auto":
        plain = "NO_COLOR" in os.environ or os.environ.get("TERM") == "dumb"
        return Paint(sys.stdout is not None and sys.stdout.isatty() and not plain)
    return Paint(choice == "always")
