"""How what a trace told is written in observations: names on one line, shares in percent."""

from __future__ import annotations

from pathlib import PurePath

from knowledge.text import clean


def stem(path: str) -> str:
    """A file's name without the ends that traces have."""
    name = PurePath(path).name
    for end in (".gz", ".json", ".trace", ".pt", ".sqlite", ".pickle"):
        name = name.removesuffix(end)
    return word(name) or "trace"


def word(name: str) -> str | None:
    """A name out of a trace on one line, without control characters, cut; None for none."""
    return " ".join(clean(name[:2000]).split())[:300] or None


def percent(fraction: float) -> float:
    """A fraction in percent, to a hundredth."""
    return round(100 * fraction, 2)
