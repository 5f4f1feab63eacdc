"""Sheets: a title, paragraphs, fields and lists, for everything that is explained rather than diagnosed.

`explain`, `rules show`, `runbook show` and `config show` fill a `Sheet`; this module prints
it as text, Markdown, HTML or JSON (schema ``gpudiag/sheet/1``, with the entry's own data beside it).
The parts are plain classes: `explain` is on a budget, and each dataclass costs a millisecond.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from assistant.render.cells import pad, paint_for, terminal_width, unbroken, width, wrap

if TYPE_CHECKING:
    from assistant.config import Output

SCHEMA = "gpudiag/sheet/1"


class Paragraph:
    """Running text."""

    __slots__ = ("text",)
    __match_args__ = ("text",)

    def __init__(self, text: str) -> None:
        self.text = text


class Heading:
    """A title within the sheet."""

    __slots__ = ("text",)
    __match_args__ = ("text",)

    def __init__(self, text: str) -> None:
        self.text = text


class Fields:
    """Names and values, one a line; empty values are left out."""

    __slots__ = ("rows",)
    __match_args__ = ("rows",)

    def __init__(self, rows: tuple[tuple[str, str], ...]) -> None:
        self.rows = rows


class Items:
    """A list."""

    __slots__ = ("items", "numbered")
    __match_args__ = ("items", "numbered")

    def __init__(self, items: tuple[str, ...], numbered: bool = False) -> None:
        self.items, self.numbered = items, numbered


class Code:
    """Lines that stay as they are: commands, conditions."""

    __slots__ = ("lines",)
    __match_args__ = ("lines",)

    def __init__(self, lines: tuple[str, ...]) -> None:
        self.lines = lines


class Table:
    """Rows under a header."""

    __slots__ = ("header", "rows")
    __match_args__ = ("header", "rows")

    def __init__(self, header: tuple[str, ...], rows: tuple[tuple[str, ...], ...]) -> None:
        self.header, self.rows = header, rows


Part = Paragraph | Fields | Heading | Items | Code | Table


class Sheet(NamedTuple):
    """One page of an explanation. `data` is what JSON carries: the entry itself."""

    title: str
    parts: tuple[Part, ...]
    data: Mapping[str, Any] = {}


def show(sheet: Sheet, output: Output) -> str:
    """`sheet` in the format asked for."""
    match output.format:
        case "json":
            import json

            body = {"schema": SCHEMA, "title": sheet.title, **sheet.data}
            return json.dumps(body, ensure_ascii=False, indent=1, default=str) + "\n"
        case "markdown":
            return _markdown(sheet)
        case "html":
            return _html(sheet, output.lang)
        case _:
            return _text(sheet, output.color)


# --- text ---------------------------------------------------------------------------------


def _text(sheet: Sheet, color: str) -> str:
    columns, paint = terminal_width(), paint_for(color)
    out = [paint(line, "bold") for line in wrap(sheet.title, columns)] if sheet.title else []
    for part in sheet.parts:
        lines = text_part(part, columns)
        if lines:
            styled = [paint(x, "bold") for x in lines] if isinstance(part, Heading) else lines
            out += ["", *styled] if not (isinstance(part, Fields) and len(out) == 1) else styled
    return "\n".join(out) + "\n"


def text_part(part: Part, columns: int) -> list[str]:
    """`part` as lines of at most `columns`."""
    match part:
        case Paragraph(text):
            return [line for block in text.split("\n") for line in wrap(block, columns)] if text else []
        case Heading(text):
            return [text]
        case Fields(rows):
            kept = [(name, value) for name, value in rows if value]
            lead = min(44, max((width(name) for name, _ in kept), default=0))
            hang = " " * (min(lead, 28) + 4)
            return [x for name, value in kept for x in wrap(value, columns, f"  {pad(name, lead)}  ", hang)]
        case Items(items, numbered):
            return [x for n, i in enumerate(items, 1) for x in wrap(i, columns, f"  {n}. " if numbered else "  - ")]
        case Code(lines):
            return [f"    {line}" for line in lines]
        case Table(header, rows):
            return _grid(header, rows, columns)


_GAP = 2  # columns between two cells
_TALL, _MANY = 3, 3  # lines a row on average, columns: beyond both a table is no table any more
_ROOMY = 90  # columns of the terminal from which cells of several lines are read well side by side
_NARROW = 8  # columns that a cell keeps when a table must shrink


def _grid(header: Sequence[str], rows: Sequence[Sequence[str]], columns: int) -> list[str]:
    """Columns side by side; where they do not fit the widest give way, and their cells wrap under themselves."""
    lines = [header, *rows]
    natural = [max(width(r[i]) for r in lines) for i in range(len(header))]
    words = [max(unbroken(r[i]) for r in lines) for i in range(len(header))]
    sizes = _fitted(natural, words, columns - _GAP * (len(header) - 1))
    out = []
    for row in lines:
        cells = [wrap(cell, size) or [""] for cell, size in zip(row, sizes, strict=True)]
        for n in range(max(len(cell) for cell in cells)):
            shown = [cell[n] if n < len(cell) else "" for cell in cells]
            out.append((" " * _GAP).join(map(pad, shown, sizes)).rstrip())
    crowded = sum(sizes) + _GAP * (len(header) - 1) > columns or (columns < _ROOMY and len(out) > _TALL * len(lines))
    return _stacked(header, rows, columns) if crowded and len(header) > _MANY else out


def _stacked(header: Sequence[str], rows: Sequence[Sequence[str]], columns: int) -> list[str]:
    """Row by row, each cell behind the name of its column: where a grid would be a word wide."""
    out = []
    for first, *others in rows:
        out += wrap(first, columns)
        for name, cell in zip(header[1:], others, strict=True):
            out += wrap(cell, columns, f"  {name}  ", "    ") if cell else []
    return out


def _fitted(natural: Sequence[int], words: Sequence[int], room: int) -> list[int]:
    """Widths that add up to `room` if they can: the widest give way first, none below its longest word."""
    floors = [min(n, max(_NARROW, min(w, room // 2))) for n, w in zip(natural, words, strict=True)]

    def under(most: int) -> list[int]:
        return [max(floor, min(n, most)) for n, floor in zip(natural, floors, strict=True)]

    low, high = _NARROW, max(natural, default=0)
    while low < high:  # the widest cap under which all of them fit
        middle = (low + high + 1) // 2
        low, high = (middle, high) if sum(under(middle)) <= room else (low, middle - 1)
    return under(low)


# --- Markdown and HTML --------------------------------------------------------------------


def _markdown(sheet: Sheet) -> str:
    from assistant.render.markdown import escape

    head = [f"# {escape(sheet.title)}", ""] if sheet.title else []
    return "\n".join([*head, *markdown_parts(sheet.parts)]).rstrip() + "\n"


def markdown_parts(parts: Sequence[Part]) -> list[str]:
    """`parts` as lines of Markdown."""
    from assistant.render.markdown import code, escape, fence

    out: list[str] = []
    for part in parts:
        match part:
            case Paragraph(text):
                out += [escape(text), ""] if text else []
            case Heading(text):
                out += [f"## {escape(text)}", ""]
            case Fields(rows):
                out += [*(f"- **{escape(name)}**: {escape(value)}" for name, value in rows if value), ""]
            case Items(items, numbered):
                out += [*(f"{f'{n}.' if numbered else '-'} {escape(i)}" for n, i in enumerate(items, 1)), ""]
            case Code(lines):
                out += [*fence(list(lines)), ""] if lines else []
            case Table(header, rows):
                out.append("| " + " | ".join(map(escape, header)) + " |")
                out.append("|" + " --- |" * len(header))
                out += [f"| {code(row[0])} | {' | '.join(map(escape, row[1:]))} |" for row in rows]
                out.append("")
    return out


def _html(sheet: Sheet, lang: str) -> str:
    from html import escape

    from assistant.render.html import document

    head = f'<h1 style="--c:var(--info)">{escape(sheet.title)}</h1>\n' if sheet.title else ""
    return document(sheet.title, head + html_parts(sheet.parts), lang)


def html_parts(parts: Sequence[Part]) -> str:
    """`parts` as a fragment of HTML."""
    from html import escape

    out = []
    for part in parts:
        match part:
            case Paragraph(text):
                out += [f"<p>{escape(block)}</p>" for block in text.split("\n") if block]
            case Heading(text):
                out.append(f"<h2>{escape(text)}</h2>")
            case Fields(rows):
                cells = "".join(f"<tr><td>{escape(n)}</td><td>{escape(v)}</td></tr>" for n, v in rows if v)
                out.append(f"<table>{cells}</table>")
            case Items(items, numbered):
                tag = "ol" if numbered else "ul"
                out.append(f"<{tag}>{''.join(f'<li>{escape(i)}</li>' for i in items)}</{tag}>")
            case Code(lines):
                body = "\n".join(map(escape, lines))
                out.append(f"<pre>{body}</pre>")
            case Table(header, rows):
                head = "".join(f"<td><b>{escape(h)}</b></td>" for h in header)
                body = "".join(f"<tr>{''.join(f'<td>{escape(c)}</td>' for c in row)}</tr>" for row in rows)
                out.append(f"<table><tr>{head}</tr>{body}</table>")
    return "\n".join(out)
