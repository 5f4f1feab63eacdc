"""Sentences of a text of ours."""

from __future__ import annotations

import re

_EN_END = re.compile(r"(?<=[.!?])(?<!\be\.g\.)(?<!\bi\.e\.)\s+(?=[A-Z{\"'(])")
_ZH_END = re.compile(r"(?<=[。！？；])\s*")


def sentences(text: str, lang: str) -> tuple[str, ...]:
    """The sentences of a text of ours."""
    parts = (_ZH_END if lang == "zh" else _EN_END).split(" ".join(text.split()))
    return tuple(p.strip() for p in parts if p.strip())
