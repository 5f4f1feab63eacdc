"""Sentences of a text of ours, and the signs that they are made of."""

from __future__ import annotations

import re

_EN_END = re.compile(r"(?<=[.!?])(?<!\be\.g\.)(?<!\bi\.e\.)\s+(?=[A-Z{\"'(])")
_ZH_END = re.compile(r"(?<=[。！？])\s*")


def sentences(text: str, lang: str) -> tuple[str, ...]:
    """The sentences of a text of ours."""
    parts = (_ZH_END if lang == "zh" else _EN_END).split(" ".join(text.split()))
    return tuple(p.strip() for p in parts if p.strip())


# All else is markup, a link, a mention, a digit, a look-alike letter, or cannot be seen.
_SIGNS = {
    "en": re.compile(r"[A-Za-z ,.;:'’\"“”()=\-–—]*"),
    "zh": re.compile(r"[A-Za-z \u4e00-\u9fff，。：；、（）“”—…,.:;()=\-]*"),
}


def all_signs(text: str, lang: str) -> bool:
    """Whether a text, or a sign, holds only what may stand outside of placeholders."""
    return _SIGNS[lang].fullmatch(text) is not None
