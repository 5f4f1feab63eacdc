"""Whether a sentence asks if something is needed at all: "do I need NVLS?", 需要开 persistence mode 吗."""

from __future__ import annotations

import re
from functools import cache

from knowledge.catalog.lookup import Term, glossary
from knowledge.lazy import lazy

_ASKS = lazy(
    r"(?<![a-z])(?:do|does|would|will) (?:i|we|it|one|you|they|my \w+|our \w+|the \w+)(?: really| even| actually)? (?:need|require)(?![a-z])"
    r"|(?<![a-z])(?:is|are) (?:it|they|that|this|[a-z0-9 -]{2,40}?)(?: really)? (?:needed|necessary|required|mandatory)(?![a-z])"
    r"|(?:需不需要|要不要|有必要|必须|需要|一定要)[^，。；]{0,24}[吗么]?",
)

_OFF = lazy(
    r"(?<![a-z])(?:turn(?:ed|ing)? off|disabl\w+|switch(?:ed|ing)? off|remove|without)(?![a-z])|关(?!键|于|系|心|注|联)|禁用|停用|停掉|去掉|卸载"
)
# "does fabric manager need to match the driver exactly": how, and not whether
_SAME = lazy(
    r"(?<![a-z])(?:to (?:be )?(?:the )?(?:match\w*|same|equal|identical)|match the|same version)(?![a-z])|一致|相同|同一?版本|匹配"
)
_HAPPENED = lazy(
    r"报(?:了|错|警)?\s*ecc|ecc\s*(?:报|出错|错误|告警)", re.IGNORECASE
)  # 报 ECC 了要不要下线: after an error
# "We see NVLS in the log, do I need it?": of what is needed only a pronoun stands in the clause that asks.
_CLAUSE = lazy(r"[，。；,;?？!！]")
_IT = lazy(r"(?<![a-z])(?:it|that|this|them|one)(?![a-z])|它|这个|那个|这东西")


def needed(text: str) -> Term | None:
    """The term that a sentence asks the need of; None where it asks nothing of the kind, or of a thing of which nobody asks."""
    for clause in _CLAUSE.split(text):
        if any(p.search(clause) for p in (_OFF, _SAME, _HAPPENED)):
            continue  # "need" would say the contrary of what is asked: whether to do without it
        if _ASKS.search(plain := _plain(clause)):
            return _named(plain) or (_named(_plain(text)) if _IT.search(plain) else None)
    return None


def _plain(text: str) -> str:
    return f" {' '.join(text.casefold().replace('-', ' ').split())} "


def _named(plain: str) -> Term | None:
    """The longest name of a term that stands in the words, the first of those that are as long."""
    found = [(plain.find(name), -len(name), term) for name, term in _names() if _stands(name, plain)]
    return min(found, key=lambda one: (one[1], one[0]))[2] if found else None


def _stands(name: str, plain: str) -> bool:
    at = plain.find(name)
    while at >= 0:
        ends = plain[at - 1 : at], plain[at + len(name) : at + len(name) + 1]
        if not any(e.isascii() and e.isalnum() for e in ends):
            return True
        at = plain.find(name, at + 1)
    return False


@cache
def _names() -> tuple[tuple[str, Term], ...]:
    """The spellings of those that somebody may need or not."""
    return tuple(
        (name.casefold().replace("-", " "), term)
        for term in glossary().values()
        if term.needed
        for name in (term.id, term.term.en, term.term.zh, *term.also)
    )
