"""Tables of words under a heading, as command line tools print them: each row as a mapping from its column's name."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from knowledge.text import clean
from probes.base import Line

_WIDEST = 4000  # characters of a row that are read
_BLANKS = re.compile(r"\s+")
_GAP = re.compile(r"\s{2,}")


def cells(text: str, columns: Sequence[str], loose: str, *, gap: bool = False) -> dict[str, str]:
    """The cells of one row; empty when it has fewer than the heading has columns.

    Words are parted by blanks, with `gap` by two of them and more. What is too much belongs to the column `loose`, whose
    cells may hold blanks: those ahead of it are counted from the left, those behind it from the right.
    """
    words = (_GAP if gap else _BLANKS).split(clean(text[:_WIDEST]).strip())
    surplus = len(words) - len(columns)
    if surplus < 0 or loose not in columns:
        return {}
    at = columns.index(loose)
    joined = [*words[:at], " ".join(words[at : at + surplus + 1]), *words[at + surplus + 1 :]]
    return dict(zip(columns, joined, strict=True))


def ruled(lines: Sequence[Line]) -> Iterator[tuple[dict[str, str], Line]]:
    """Rows of tables whose heading has a line of dashes below it that tells how wide each column is (``sacct``)."""
    columns: list[tuple[str, slice]] = []
    for above, line in zip((None, *lines), lines, strict=False):
        text = clean(line.text[:_WIDEST])
        if above is not None and re.fullmatch(r"\s*-{2,}(?: +-{2,}){1,60}\s*", text):
            spans = [slice(*m.span()) for m in re.finditer(r"-+", text)]
            columns = [(clean(above.text)[span].strip(), span) for span in spans]
        elif columns and text.strip():
            yield {name: text[span].strip() for name, span in columns}, line
