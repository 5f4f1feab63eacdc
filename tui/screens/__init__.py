"""The screens: one module each, which exports ``SCREEN``; the folder is the list.

A module imports textual and `tui` only; what reads or computes is imported where it is used, so that the app is on the
screen before it is complete.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tui.screens._pane import ScreenSpec


@cache
def screens() -> tuple[ScreenSpec, ...]:
    """Every screen, by its place."""
    stems = sorted(p.stem for p in Path(__file__).parent.glob("*.py") if not p.stem.startswith("_"))
    found = [import_module(f"tui.screens.{stem}").SCREEN for stem in stems]
    return tuple(sorted(found, key=lambda s: s.place))
