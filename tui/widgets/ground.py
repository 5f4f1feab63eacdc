"""What other widgets stand in."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual.containers import Container
from textual.strip import Strip

if TYPE_CHECKING:
    from textual.geometry import Region


class Ground(Container):
    """A container of which nothing but its ground is seen: no border, no padding of another colour.

    Textual asks every container for all of its lines whenever anything in it is drawn again, and composes each one out of
    its parts. Here they are one blank line, many times.
    """

    def render_lines(self, crop: Region) -> list[Strip]:
        """Blank lines."""
        if self.app.no_color:  # colours are taken away on the long way only
            return super().render_lines(crop)
        return [Strip.blank(crop.width, self.visual_style.rich_style)] * crop.height
