"""What a sentence may be made of: the signs, and the placeholders. What it says is for `assistant.narrate.telling`."""

from __future__ import annotations

import re

from assistant.narrate.placeholders import PLACEHOLDER
from assistant.narrate.sentence import Sentence
from assistant.narrate.wording import all_signs

LONGEST = 420  # characters of a sentence
_JOINED = re.compile(r"[A-Za-z]\.[A-Za-z]|\.\.|--|[a-z]://|\bwww\b|\bhttps?\b|[=](?!True|False|\{)", re.IGNORECASE)


def signs(s: Sentence) -> str:
    """Letters of its language and a few signs; all else only within placeholders."""
    if not 2 <= len(s.text) <= LONGEST:
        return "length"
    bad = "".join(dict.fromkeys(c for c in PLACEHOLDER.sub("", s.text) if not all_signs(c, s.lang)))
    if bad:
        return f"a sign that is not allowed: {bad[:10]!a}"
    if found := _JOINED.search(PLACEHOLDER.sub("{", s.text).removesuffix(".")):
        return f"looks like a link or markup: {found[0]!a}"
    return ""


def placeholders(s: Sentence) -> str:
    """Each is known and belongs to a cited finding."""
    for name in s.names:
        slot = s.material.slots.get(name)
        if slot is None:
            return f"unknown placeholder {{{name}}}"
        if not slot.owners.intersection(s.cites):
            return f"{{{name}}} belongs to a finding that is not cited"
    return ""
