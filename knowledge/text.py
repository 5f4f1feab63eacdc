"""Text from logs, tools and people is written by strangers: make it safe to show and to match."""

from __future__ import annotations

import re

# CSI and OSC sequences, then other two-character escapes.
_ANSI = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]{0,2000}(?:\x07|\x1b\\)|\x1b[@-Z\\-_]")
# Controls except tab and newline; C1 controls; zero-width, bidi and other invisible format characters.
_INVISIBLE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u061c\u200b-\u200f\u202a-\u202e\u2060-\u2064\u2066-\u206f\ufeff\ufff9-\ufffb]"
)


def clean(text: str) -> str:
    """`text` without ANSI escapes, control characters and invisible formatting."""
    if text.isascii() and text.isprintable():
        return text
    return _INVISIBLE.sub("", _ANSI.sub("", text))


def excerpt(text: str, limit: int = 400) -> str:
    """One clean line of at most `limit` characters, cut in the middle when longer."""
    line = " ".join(clean(text).split()) if "\n" in text else clean(text).strip()
    if len(line) <= limit:
        return line
    half = (limit - 5) // 2
    return f"{line[:half]} ... {line[-half:]}"
