"""Tables of words under a heading, as command line tools print them: each row as a mapping from its column's name."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from knowledge.text import clean
from probes.base import Line

_WIDEST = 4000  # characters of a row that are read
_BLANKS = re.compile(r"\s+")
_GAP = re.compile(r"\s{2,}")
# ------------ ---------- ---------- --------
_RULE = re.compile(r"\s*-{2,}(?:[ \t]+-{2,}){1,60}\s*")


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
    """Rows of tables whose heading has a line of dashes below it that tells how wide each column is (``sacct``).

    A word belongs to the column under which most of it stands: rows that were pasted or typed are often off by a place.
    """
    names: list[str] = []
    spans: list[tuple[int, int]] = []
    for above, line in zip((None, *lines), lines, strict=False):
        text = clean(line.text[:_WIDEST])
        if above is not None and _RULE.fullmatch(text):
            spans = [m.span() for m in re.finditer(r"-+", text)]
            heading = clean(above.text[:_WIDEST])
            names = heading.split()
            if len(names) != len(spans):  # a name of two words
                names = [heading[start:end].strip() for start, end in spans]
        elif spans and "\t" in text:
            yield dict(zip(names, (cell.strip() for cell in text.split("\t")), strict=False)), line
        elif spans and text.strip():
            yield _placed(text, names, spans), line


def _placed(text: str, names: Sequence[str], spans: Sequence[tuple[int, int]]) -> dict[str, str]:
    """Each word of a row under the column that holds most of it, or that is nearest."""
    row = dict.fromkeys(names, "")
    for word in re.finditer(r"\S+", text):
        at = max(range(len(spans)), key=lambda i: min(word.end(), spans[i][1]) - max(word.start(), spans[i][0]))
        row[names[at]] = f"{row[names[at]]} {word[0]}".lstrip()
    return row
