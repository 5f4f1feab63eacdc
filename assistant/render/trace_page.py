"""A page about traces: what holds first, then numbers, small plots and tables; as text, Markdown, HTML or JSON.

It takes the parts of `assistant.render.sheet` and adds three: bars under each other, tables of numbers whose names
give way where it is narrow, and plots that are drawn as wide as there is room.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from assistant.render.cells import Paint, pad, paint_for, terminal_width, width, wrap
from assistant.render.sheet import Code, Heading, Table, html_parts, markdown_parts, text_part
from assistant.render.sheet import Part as SheetPart
from assistant.render.trace_plots import bar, drawable
from assistant.render.trace_units import NONE, share

if TYPE_CHECKING:
    from assistant.config import Output
    from assistant.render.view import View

_NAME = 30  # columns that the name in a table keeps before columns of numbers are left out
_BAR = 24  # columns of the longest bar


class Bar(NamedTuple):
    """One line of `Bars`: a part of the whole."""

    name: str
    value: str
    share: float | None
    depth: int = 0  # parts of a part stand under it
    tone: str = ""  # a style of `cells.Paint`


class Bars(NamedTuple):
    """Parts of a whole, with their share as a bar."""

    rows: tuple[Bar, ...]


class Column(NamedTuple):
    """A column of a `Grid`. Where it is narrow those with the highest `drop` go first; 0 stays."""

    title: str
    drop: int = 0
    left: bool = False  # words, not numbers


class Grid(NamedTuple):
    """Numbers in columns, to the right; the last column is words, which are cut in their middle where they are too long."""

    columns: tuple[Column, ...]
    rows: tuple[tuple[str, ...], ...]
    named: bool = True  # the last column is what the row is about: on a page it comes first
    tail: bool = False  # of its words the end says most: the beginning is cut


class Plot(NamedTuple):
    """Lines that are drawn for a width in columns; `fine` says whether block characters can be shown."""

    draw: Callable[[int, bool], Sequence[str]]


class Head(NamedTuple):
    """The first line: a word, and what follows from the trace."""

    state: str  # a style of `_STYLE`
    label: str
    text: str


class Judged(NamedTuple):
    """What follows from a diagnosis: state, headline, what to do, findings; drawn as `check` draws them."""

    view: View
    verbose: bool = False


Part: TypeAlias = SheetPart | Bars | Grid | Plot | Head | Judged

_STYLE: Mapping[str, tuple[str, ...]] = {
    "ok": ("green", "bold"), "info": ("blue", "bold"), "warning": ("yellow", "bold"), "error": ("red", "bold"),
    "critical": ("alarm",), "unknown": ("bold",),
}  # fmt: skip


class Page(NamedTuple):
    """One answer: its parts for people and its data for machines."""

    schema: str
    data: Mapping[str, Any]
    parts: Callable[[], Sequence[Part]]  # only made when a person reads it


def show(page: Page, output: Output) -> str:
    """`page` in the format asked for."""
    if output.format == "json":
        return as_json({"schema": page.schema, **page.data})
    return render(page.parts(), output)


def render(parts: Sequence[Part], output: Output) -> str:
    """`parts` for people: text, Markdown or HTML."""
    if output.format == "markdown":
        return "\n".join(_markdown(parts, output.lang)).rstrip() + "\n"
    if output.format == "html":
        return _html(parts, output.lang)
    return "\n".join(_text(parts, paint_for(output.color))) + "\n"


# --- JSON ---------------------------------------------------------------------------------


def as_json(data: Mapping[str, Any]) -> str:
    """`data` as JSON that every reader takes: no NaN, and what a terminal would act on is escaped."""
    import json
    import re

    text = json.dumps(_finite(data), ensure_ascii=False, indent=1, allow_nan=False)
    return re.sub("[\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]", lambda m: f"\\u{ord(m[0]):04x}", text) + "\n"


def _finite(value: Any) -> Any:
    if isinstance(value, float):
        return value if value - value == 0 else None
    if isinstance(value, Mapping):
        return {str(k): _finite(v) for k, v in value.items()}
    return [_finite(v) for v in value] if isinstance(value, list | tuple) else value


# --- text ---------------------------------------------------------------------------------


def _text(parts: Sequence[Part], paint: Paint) -> list[str]:
    columns, fine = terminal_width(), drawable()
    out: list[str] = []
    closed = True  # no blank line is needed ahead
    for part in parts:
        match part:
            case Head(state, label, text):
                lines = wrap(text, columns, f"{label}  ", "  ")
                lines[0] = lines[0].replace(label, paint(label, *_STYLE[state]), 1)
            case Judged(view, verbose):
                from assistant.render.text import answer

                lines = answer(view, columns, paint, verbose)
            case Heading(text):
                lines = [paint(line, "bold") for line in wrap(text, columns)]
            case Bars(rows):
                lines = _bars(rows, columns, paint, fine)
            case Grid():
                lines = _grid(part, columns, paint)
            case Plot(draw):
                lines = list(draw(columns, fine))
            case Code(commands):
                lines = [f"  $ {paint(line, 'blue')}" for line in commands]
            case _:
                lines = text_part(part, columns)
        if not lines:
            continue
        if out and not closed:
            out.append("")
        out += lines
        closed = isinstance(part, Heading)
    return out


def _bars(rows: Sequence[Bar], columns: int, paint: Paint, fine: bool) -> list[str]:
    if not rows:
        return []
    names = [f"{'  ' * r.depth}{r.name}" for r in rows]
    lead, value = max(map(width, names)), max(width(r.value) for r in rows)
    percents = [share(r.share) for r in rows]
    percent = max(map(len, percents))
    room = min(_BAR, columns - (2 + lead + 2 + value + 2 + percent + 2))
    out = []
    for r, name, said in zip(rows, names, percents, strict=True):
        drawn = bar(r.share, room, fine) if room >= 8 else ""
        line = f"  {pad(name, lead)}  {' ' * (value - width(r.value))}{r.value}  {said:>{percent}}"
        out.append(f"{line}  {paint(drawn, r.tone) if r.tone else drawn}".rstrip())
    return out


def _grid(grid: Grid, columns: int, paint: Paint) -> list[str]:
    shown, rows = grid.columns, grid.rows
    if not rows:
        return []
    sizes = [max(width(c.title), *(width(r[i]) for r in rows)) for i, c in enumerate(shown)]
    kept = list(range(len(shown)))
    wish = min(_NAME, sizes[-1])

    def used() -> int:
        return 2 + sum(sizes[i] + 2 for i in kept[:-1])

    while columns - used() < wish and (going := [i for i in kept[:-1] if shown[i].drop]):
        kept.remove(max(going, key=lambda i: shown[i].drop))
    last = max(8, columns - used())
    out = []
    for row in ([c.title for c in shown], *rows):
        cells = []
        for i in kept[:-1]:
            blank = " " * (sizes[i] - width(row[i]))
            cells.append(row[i] + blank if shown[i].left else blank + row[i])
        cells.append(squeezed(row[-1], last, 1.0 if grid.tail else 1 / 3))
        out.append("  " + "  ".join(cells).rstrip())
    return [paint(out[0], "dim"), *out[1:]]


def squeezed(name: str, columns: int, ending: float = 1 / 3) -> str:
    """A name in at most `columns`: of a longer one the beginning and the end, of which `ending` is the share."""
    if width(name) <= columns:
        return name
    mark = "…" if drawable() else "~"
    tail = max(1, round((columns - 1) * ending))
    end = len(name)
    while width(name[end - 1 :]) <= tail:
        end -= 1
    start = 0
    while width(name[: start + 1]) <= columns - 1 - tail:
        start += 1
    return name[:start] + mark + name[end:]


# --- Markdown and HTML --------------------------------------------------------------------


def _plain(part: SheetPart | Bars | Grid | Plot, lang: str) -> SheetPart:
    """What only text draws, as a part that every page has."""
    match part:
        case Bars(rows):
            name, time, of = ("部分", "时间", "占比") if lang == "zh" else ("part", "time", "share")
            cells = tuple(("· " * r.depth + r.name, r.value, share(r.share)) for r in rows)
            return Table((name, time, of), cells)
        case Grid(columns, rows, named, _):
            last = len(columns) - 1
            order = [last, *range(last)] if named else [*range(last + 1)]
            return Table(
                tuple(columns[i].title for i in order), tuple(tuple(r[i] or NONE for i in order) for r in rows)
            )
        case Plot(draw):
            return Code(tuple(draw(100, True)))
        case _:
            return part


def _markdown(parts: Sequence[Part], lang: str) -> list[str]:
    from assistant.render.markdown import escape

    out: list[str] = []
    for part in parts:
        if isinstance(part, Head):
            out += [f"# {escape(part.label)}: {escape(part.text)}", ""]
        elif isinstance(part, Judged):
            from assistant.render.markdown import answer

            out += answer(part.view)
        else:
            out += markdown_parts((_plain(part, lang),))
    return out


def _html(parts: Sequence[Part], lang: str) -> str:
    from html import escape

    from assistant.render.html import document

    out, title = [], "gpudiag"
    for part in parts:
        if isinstance(part, Head):
            title = f"{part.label}: {part.text}"
            tone = {"ok": "ok", "unknown": "unknown"}.get(part.state, part.state)
            out.append(f'<h1 style="--c:var(--{tone})"><b>{escape(part.label)}</b>{escape(part.text)}</h1>')
        elif isinstance(part, Judged):
            from assistant.render.html import answer

            title = f"{part.view.state_label}: {part.view.headline}"
            out += answer(part.view)
        else:
            out.append(html_parts((_plain(part, lang),)))
    return document(title, "\n".join(out), lang)
