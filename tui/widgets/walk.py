"""The keys that walk through lines, the same wherever there are lines: as in vi and as on any keyboard."""

from __future__ import annotations

from textual.binding import Binding, BindingType

# Actions of the widget: move(by), end(-1 | 1), page(by), choose().
WALK: tuple[BindingType, ...] = (
    Binding("j,down", "move(1)", "Down", show=False),
    Binding("k,up", "move(-1)", "Up", show=False),
    Binding("g,home", "end(-1)", "First", show=False),
    Binding("G,end", "end(1)", "Last", show=False),
    Binding("pagedown,ctrl+d", "page(1)", "Page down", show=False),
    Binding("pageup,ctrl+u", "page(-1)", "Page up", show=False),
    Binding("enter", "choose", "Open", show=False),
)
