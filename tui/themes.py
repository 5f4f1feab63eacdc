"""The themes: dark, light, and one of high contrast. Calm grounds, so that a colour is a message."""

from __future__ import annotations

from textual.theme import Theme

_DARK = {
    "faint": "#7d8794", "rule": "#2a3038", "text-success": "#7bc98a", "text-primary": "#7fb4e6", "text-warning": "#e5b567",
    "text-error": "#f07f78", "text-accent": "#9db8ff", "input-selection-background": "#3b4f77", "footer-key-foreground": "#9db8ff",
    "block-cursor-background": "#2b3a55", "block-cursor-foreground": "#e6eaf0", "block-cursor-text-style": "none",
    "plot-1": "#7fb4e6", "plot-2": "#c9a3e8", "plot-3": "#7bc98a", "plot-4": "#e5b567",
}  # fmt: skip
_LIGHT = {
    "faint": "#5f6b78", "rule": "#d5dae1", "text-success": "#176b34", "text-primary": "#1b5a96", "text-warning": "#8a5300",
    "text-error": "#b3211b", "text-accent": "#2f4fc0", "input-selection-background": "#c5d3f5", "footer-key-foreground": "#2f4fc0",
    "block-cursor-background": "#d6e0f5", "block-cursor-foreground": "#14181d", "block-cursor-text-style": "none",
    "plot-1": "#1b5a96", "plot-2": "#7a3ea8", "plot-3": "#176b34", "plot-4": "#8a5300",
}  # fmt: skip
_CONTRAST = {
    "faint": "#d0d0d0", "rule": "#808080", "text-success": "#00ff66", "text-primary": "#66ccff", "text-warning": "#ffd500",
    "text-error": "#ff6b5e", "text-accent": "#ffffff", "input-selection-background": "#0050c8", "footer-key-foreground": "#ffd500",
    "block-cursor-background": "#ffd500", "block-cursor-foreground": "#000000", "block-cursor-text-style": "bold",
    "plot-1": "#66ccff", "plot-2": "#ff8cff", "plot-3": "#00ff66", "plot-4": "#ffd500",
}  # fmt: skip

THEMES = (
    Theme(
        name="dark", primary="#7fb4e6", secondary="#4a5a70", accent="#9db8ff", success="#7bc98a", warning="#e5b567",
        error="#f07f78", foreground="#d7dde5", background="#12161b", surface="#161b21", panel="#1c222a", dark=True, variables=_DARK,
    ),
    Theme(
        name="light", primary="#1b5a96", secondary="#8a99ad", accent="#2f4fc0", success="#176b34", warning="#8a5300",
        error="#b3211b", foreground="#1c2229", background="#fbfcfd", surface="#f4f6f8", panel="#e9edf1", dark=False, variables=_LIGHT,
    ),
    Theme(
        name="contrast", primary="#66ccff", secondary="#ffffff", accent="#ffffff", success="#00ff66", warning="#ffd500",
        error="#ff6b5e", foreground="#ffffff", background="#000000", surface="#000000", panel="#101010", dark=True,
        variables=_CONTRAST,
    ),
)  # fmt: skip
NAMES = tuple(theme.name for theme in THEMES)
