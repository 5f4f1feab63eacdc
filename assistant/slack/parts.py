"""The parts of a reply (`assistant.render.sheet`) as elements of rich text, each no longer than a block."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from assistant.render.labels import colon, label
from assistant.render.sheet import Code, Fields, Heading, Items, Paragraph, Part, Table, text_part
from assistant.slack import rich
from assistant.slack.budget import SECTION, characters, size
from assistant.slack.rich import Element, span
from knowledge.language import Text

if TYPE_CHECKING:
    from assistant.slack.page import Page

TEXT = 2_900  # characters of a paragraph: a block's less some for a line that counts what was left out
VALUE, CELL = 900, 200  # of one value of a list, of one cell
PROMPT = "$ "
_MORE = Text("{n} more", "另有 {n} 项")
ITEMS = 10  # of a list
ROWS = 60  # of a table: a phone shows a dozen
COLUMNS = 76  # of a table: what a desktop's code block shows without breaking lines


def add(page: Page, parts: Sequence[Part]) -> None:
    """Put `parts` below what `page` has; none that nobody would see."""
    for part in parts:
        if page.full:
            page.overflow = True
            return
        match part:
            case Paragraph(text):
                page.add(rich.section(span(page.cut(text, TEXT)), span("\n")) if text else [])
            case Heading(text):
                page.add(rich.section(span("\n" + page.cut(text, VALUE), "bold"), span("\n")))
            case Fields(rows):
                _fields(page, rows)
            case Items(items, numbered):
                _items(page, items, numbered)
            case Code(lines):
                code(page, lines)
            case Table(header, rows):
                _table(page, header, rows)


def code(page: Page, lines: Sequence[str], limit: int = TEXT) -> None:
    """Lines to be copied: none is ever shown in part. What has no room is counted below.

    The prompt that marks a command on a terminal is left out: who copies a block copies all of it.
    """
    page.add(fitting(page, [line.removeprefix(PROMPT) for line in lines], limit))


def fitting(page: Page, lines: Sequence[str], limit: int) -> list[Element]:
    """As many whole lines as fit, and how many follow."""
    kept, used = 0, 0
    for line in lines:
        used += size(line) + 1
        if used > limit:
            break
        kept += 1
    out = rich.code(*lines[:kept])
    if rest := len(lines) - kept:
        page.overflow = True
        out += rich.section(span(label("more_lines", page.lang).format(n=rest), "italic"), span("\n"))
    return out


def _fields(page: Page, rows: Sequence[tuple[str, str]]) -> None:
    """One a line, as many in an element as half a block holds."""
    mark = colon(page.lang)
    chunk: list[Element] = []
    for name, value in rows:
        if page.full:
            page.overflow = True
            break
        if not value:
            continue
        spans = [span(f"{page.cut(name, CELL)}{mark}", "bold"), span(f"{page.cut(value, VALUE)}\n")]
        if characters([*chunk, *spans]) > SECTION // 2:
            page.add(rich.section(*chunk))
            chunk = []
        chunk += spans
    page.add(rich.section(*chunk))


def _items(page: Page, items: Sequence[str], numbered: bool) -> None:
    """Lists of at most a third of a block, one going on where the other ended."""
    chunk: list[list[Element]] = []
    used, first = 0, 1
    for n, item in enumerate(items, 1):
        if page.full:
            page.overflow = True
            break
        if n > ITEMS and len(items) > ITEMS + 1:
            page.overflow = True
            chunk.append([span(_MORE.in_(page.lang).format(n=len(items) - ITEMS), "italic")])
            break
        line = page.cut(item, VALUE)
        if chunk and used + size(line) > SECTION // 3:
            page.add(rich.bullets(chunk, numbered, first))
            chunk, used, first = [], 0, n
        chunk.append([span(line or "–")])
        used += size(line) + 1
    page.add(rich.bullets(chunk, numbered, first))


def _table(page: Page, header: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    shown = tuple(tuple(page.cut(cell, CELL) for cell in row) for row in rows[:ROWS])
    page.overflow |= len(rows) > ROWS
    lines = text_part(Table(tuple(page.cut(h, CELL) for h in header), shown), COLUMNS)
    while lines:
        n, used = 0, 0
        while n < len(lines) and (n == 0 or used + size(lines[n]) + 1 <= TEXT):
            used += size(lines[n]) + 1
            n += 1
        page.add(fitting(page, lines[:n], TEXT))
        lines = lines[n:]
