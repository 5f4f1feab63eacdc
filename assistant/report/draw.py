"""Stacked bars as SVG: they need no script, and print as they are."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from assistant.render import trace_units as units
from knowledge.text import excerpt

WIDTH, LABEL, BAR, GAP = 1100, 190, 26, 10
LETTERS = 24  # of a label


def stacked(rows: Sequence[tuple[str, Sequence[tuple[str, int]]]], *, scale: int = 0) -> str:
    """One bar a row: label, and (css class, ns) parts from left to right. `scale`: the ns of the full width; 0: the longest row.

    The share is written into a part that has the room for it.
    """
    longest = scale or max((sum(v for _, v in parts) for _, parts in rows), default=0) or 1
    left = LABEL if any(label for label, _ in rows) else 0  # one bar needs no name
    high = len(rows) * (BAR + GAP)
    lines = [
        line for n, (label, parts) in enumerate(rows) for line in _row(n * (BAR + GAP), left, label, parts, longest)
    ]
    return f'<svg class="bars" viewBox="0 0 {WIDTH} {high}" width="100%" aria-hidden="true">{"".join(lines)}</svg>'


def _row(y: int, left: int, label: str, parts: Sequence[tuple[str, int]], longest: int) -> list[str]:
    room = WIDTH - left - 80
    whole = sum(v for _, v in parts)
    out = [f'<text x="{left - 12}" y="{y + 17}" class="end">{escape(excerpt(label, LETTERS))}</text>'] if label else []
    x = float(left)
    for css, value in parts:
        width = room * value / longest
        if value > 0:
            out.append(f'<rect class="{css}" x="{x:.2f}" y="{y}" width="{max(width - 1, 0.5):.2f}" height="{BAR}"/>')
            if width > 52:
                share = units.share(value / whole)
                out.append(f'<text class="on {css}-on" x="{x + width / 2:.1f}" y="{y + 17}">{share}</text>')
        x += width
    out.append(f'<text x="{x + 8:.1f}" y="{y + 17}" class="soft">{units.duration(whole)}</text>')
    return out


def legend(items: Sequence[tuple[str, str]]) -> str:
    """Which colour is what: (css class, name)."""
    inner = "".join(
        f'<li><svg width="14" height="14" aria-hidden="true"><rect class="{css}" width="14" height="14" rx="2"/></svg>{escape(name)}</li>'
        for css, name in items
    )
    return f'<ul class="legend">{inner}</ul>'
