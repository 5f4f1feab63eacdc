"""The screens: one module each, which exports ``SCREEN``; the folder is the list.

A module imports textual and `tui` only; what reads or computes is imported where it is used, so that the app is on the
screen before it is complete.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

from knowledge.errors import TwinsError
from knowledge.exports import unlike

if TYPE_CHECKING:
    from tui.screens._pane import ScreenSpec


@cache
def screens() -> tuple[ScreenSpec, ...]:
    """Every screen, by its place."""
    stems = sorted(p.stem for p in Path(__file__).parent.glob("*.py") if not p.stem.startswith("_"))
    return exported(import_module(f"tui.screens.{stem}") for stem in stems)


CHAT = 1  # the chat's digit
LAST = 9


def exported(modules: Iterable[ModuleType]) -> tuple[ScreenSpec, ...]:
    """The screens of these modules, by their places. TwinsError when two have one name or digit, or one has the chat's."""
    found: list[tuple[str, ScreenSpec]] = [(module.__name__, module.SCREEN) for module in modules]
    for module, screen in found:
        if not CHAT < screen.place <= LAST:
            raise TwinsError(
                f"the screen of {module} has place {screen.place}: {CHAT} is the chat's, {LAST} the last digit"
            )
    each = unlike(found, "screens", {"name": "are called {!r}", "place": "have the digit {}"})
    return tuple(sorted(each, key=lambda s: s.place))
