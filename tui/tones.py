"""What a colour means: the few tones that screens speak in, and how a theme shows them.

Colour stands only where it means something, and never alone: each tone of a state has a mark of its own, so that a
screen without colour, or an eye that tells red from green badly, reads the same.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING

from rich.style import Style

if TYPE_CHECKING:
    from collections.abc import Mapping


class Tone(StrEnum):
    """The meanings that a piece of text can have."""

    PLAIN = "plain"
    STRONG = "strong"  # what the eye should find first
    DIM = "dim"  # what may be left unread
    ACCENT = "accent"  # what can be chosen
    OK = "ok"
    INFO = "info"
    WARNING = "warning"
    ERROR = "error"
    CRITICAL = "critical"
    UNKNOWN = "unknown"  # could not be seen
    STALE = "stale"  # was seen, and is old


MARKS = {
    Tone.OK: "✔", Tone.INFO: "●", Tone.WARNING: "▲", Tone.ERROR: "✖", Tone.CRITICAL: "✖", Tone.UNKNOWN: "?", Tone.STALE: "◌",
}  # fmt: skip
_VARIABLES = {
    Tone.OK: "text-success", Tone.INFO: "text-primary", Tone.WARNING: "text-warning", Tone.ERROR: "text-error",
    Tone.CRITICAL: "text-error", Tone.ACCENT: "text-accent", Tone.UNKNOWN: "text-warning",
}  # fmt: skip
_BOLD = (Tone.STRONG, Tone.CRITICAL)
_FAINT = (Tone.DIM, Tone.STALE)
_STATES = {"ok": Tone.OK, "degraded": Tone.WARNING, "unhealthy": Tone.ERROR, "unknown": Tone.UNKNOWN}


def styles(variables: Mapping[str, str]) -> dict[Tone, Style]:
    """A style for each tone, from a theme's variables (``App.theme_variables``)."""
    return {tone: _style(tone, variables) for tone in Tone}


def _style(tone: Tone, variables: Mapping[str, str]) -> Style:
    colour = variables.get(_VARIABLES.get(tone, ""), "")
    if tone in _FAINT:
        colour = variables.get("faint", "")
    # Themes may say "auto 87%", which only their style sheets understand.
    return Style(color=colour if colour.startswith("#") else None, bold=tone in _BOLD or None)


def over_cursor(variables: Mapping[str, str]) -> Style:
    """What words under the cursor are drawn in over their tone: the bright cursor of a theme of high contrast hides the others."""
    bright = variables["block-cursor-text-style"] == "bold"
    return Style(color=variables["block-cursor-foreground"], bold=True) if bright else Style()


def of_severity(severity: str) -> Tone:
    """The tone of a finding's severity."""
    return Tone(severity) if severity in ("info", "warning", "error", "critical") else Tone.PLAIN


def of_state(state: str) -> Tone:
    """The tone of a verdict: ok, degraded, unhealthy, unknown."""
    return _STATES.get(state, Tone.UNKNOWN)


def marked(tone: Tone, text: str) -> str:
    """`text` behind the tone's mark."""
    mark = MARKS.get(tone, "")
    return f"{mark} {text}" if mark else text
