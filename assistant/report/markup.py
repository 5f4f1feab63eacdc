"""Pieces of HTML. All text that comes in is plain and leaves escaped; names are written by strangers."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from html import escape
from math import isfinite
from typing import Any, Final, TypeAlias

from assistant.render import trace_units as units
from assistant.report.words import word
from knowledge.record import dataclass
from knowledge.text import excerpt, opened

Cell: TypeAlias = str | float | int | None
LONGEST: Final = 400  # characters of a name in a table
BAR: Final = 48  # pixels
SHORT: Final = 24  # letters of a text that stays on one line
_JOINTS: Final = re.compile(r"(?<=::)|(?<=[<,(/_;])(?=[^\s<,(/_;])")
_NUMBERS: Final = {"time", "each", "count", "share", "percent", "size", "float", "signed"}


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table. `kind`: text, code, time (ns, one unit for the column), each (ns, each in its own unit),
    signed (ns), count, share (0..1, with a bar), percent (0..1), size (bytes), float."""

    label: str
    kind: str = "text"


def table(
    columns: Sequence[Column], rows: Sequence[Sequence[Cell]], *, caption: str, tools: bool = True, named: bool = True
) -> str:
    """A table with a header of each column, and with `named` of each row (its first cell). With `tools` the page's script lets people sort and search it."""
    head = "".join(f'<th scope="col"{_class(c.kind)}>{escape(c.label)}</th>' for c in columns)
    shown = [_column(c, [r[i] for r in rows]) for i, c in enumerate(columns)]
    most = [
        max((abs(v) for r in rows if isinstance(v := r[i], int | float) and isfinite(v)), default=0)
        for i in range(len(columns))
    ]
    body = "".join(
        "<tr>"
        + "".join(_cell(c, shown[i][n], row[i], most[i], first=named and i == 0) for i, c in enumerate(columns))
        + "</tr>\n"
        for n, row in enumerate(rows)
    )
    kind = ' class="tools"' if tools else ""
    return (
        f'<div class="scroll" tabindex="0" role="region" aria-label="{escape(caption)}"><table{kind}>'
        f"<caption>{escape(caption)}</caption><thead><tr>{head}</tr></thead><tbody>\n{body}</tbody></table></div>"
    )  # fmt: skip


def _class(kind: str) -> str:
    return ' class="n"' if kind in _NUMBERS else ""


def _column(column: Column, values: Sequence[Cell]) -> list[str]:
    numbers = [v if isinstance(v, int | float) else None for v in values]
    match column.kind:
        case "time":
            return units.durations(numbers)
        case "each":
            return [units.duration(v) for v in numbers]
        case "signed":
            return [f"+{t}" if v is not None and v > 0 else t.replace("-", "−", 1) if v is not None else t
                    for v, t in zip(numbers, units.durations(numbers), strict=True)]  # fmt: skip
        case "count":
            return [units.number(v) for v in numbers]
        case "share" | "percent":
            return [units.share(v).replace("-", "−", 1) if v is not None and v < 0 else units.share(v) for v in numbers]
        case "size":
            return [units.size(v) for v in numbers]
        case "float":
            return [units.NONE if v is None else units.digits(v) for v in numbers]
        case _:
            return [units.NONE if v is None else excerpt(str(v), LONGEST) for v in values]


def _cell(column: Column, shown: str, value: Cell, most: float, first: bool) -> str:
    tag = 'th scope="row"' if first else "td"
    end = "th" if first else "td"
    if column.kind in _NUMBERS:
        key = f' data-v="{value!r}"' if isinstance(value, int | float) and isfinite(value) else ""
        bar = (
            _bar(float(value), most)
            if column.kind == "share" and isinstance(value, int | float) and isfinite(value)
            else ""
        )
        said = f'{bar}<span class="v">{escape(shown)}</span>' if bar else escape(shown)
        return f'<{tag} class="n"{key}>{said}</{end}>'
    if column.kind == "code":
        return f'<{tag}><code title="{escape(shown)}">{breakable(shown)}</code></{end}>'
    short = ' class="k"' if len(shown) <= SHORT else ""
    return f"<{tag}{short}>{escape(shown)}</{end}>"


def breakable(name: str) -> str:
    """Escaped, with places where the name of a kernel, a function or a path may go on in the next line."""
    return "<wbr>".join(escape(part) for part in _JOINTS.split(name))


def _bar(share: float, most: float) -> str:
    """A share as a little bar before its number; the largest of the column is the full width."""
    width = BAR * min(max(abs(share) / most, 0.0), 1.0) if most > 0 else 0.0
    rect = f'<rect width="{width:.1f}" height="8"/>' if width >= 0.2 else ""
    return f'<svg class="mini" width="{BAR}" height="8" aria-hidden="true">{rect}</svg>'


def without(
    columns: list[Column], rows: Sequence[Sequence[Cell]], drop: set[int]
) -> tuple[list[Column], list[tuple[Cell, ...]]]:
    """The columns and rows of a table without some of its columns."""
    keep = [n for n in range(len(columns)) if n not in drop]
    return [columns[n] for n in keep], [tuple(r[n] for n in keep) for r in rows]


def section(name: str, title: str, *parts: str) -> str:
    """A landmark with its heading."""
    inner = "\n".join(p for p in parts if p)
    return (
        f'<section id="{name}" aria-labelledby="h-{name}">\n<h2 id="h-{name}">{escape(title)}</h2>\n{inner}\n</section>'
    )


def figure(name: str, text: str, inner: str = "", *, css: str = "chart") -> str:
    """A picture that the script draws (or `inner`), with its main numbers as text under it."""
    role = "group" if css == "canvas" else "img"  # a canvas is worked with, a chart is looked at
    return (
        f'<figure><div id="{name}" class="{css}" role="{role}" aria-labelledby="c-{name}">{inner}</div>'
        f'<figcaption id="c-{name}">{escape(text)}</figcaption></figure>'
    )


def folded(title: str, inner: str, *, open_: bool = False) -> str:
    """Something that is opened by a click, and stands open in print."""
    return f"<details{' open' if open_ else ''}><summary>{escape(title)}</summary>{inner}</details>"


def note(text: str) -> str:
    """A quiet line."""
    return f'<p class="soft">{escape(text)}</p>' if text else ""


def bullets(items: Iterable[str]) -> str:
    """A list of sentences; empty without items."""
    inner = "".join(f"<li>{escape(opened(i))}</li>" for i in items if i)
    return f"<ul>{inner}</ul>" if inner else ""


def cut(rows: Sequence[Any], most: int, lang: str) -> str:
    """The note under a table that shows only its first rows."""
    return note(word("more_rows", lang, n=units.number(most), all=units.number(len(rows)))) if len(rows) > most else ""


def data(value: Any) -> str:
    """JSON that can stand in a script element: nothing in it can end the element, open a comment or break a line."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    for mark, code in (
        ("<", "\\u003c"),
        (">", "\\u003e"),
        ("&", "\\u0026"),
        ("\u2028", "\\u2028"),
        ("\u2029", "\\u2029"),
    ):
        text = text.replace(mark, code)
    return text
