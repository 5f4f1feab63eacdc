"""What a line may become: sentences that are understood, and names of what can be asked about."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from assistant.session.terminal import completions

if TYPE_CHECKING:
    from assistant.diagnosis import Diagnosis

HOSTS = 2000  # names of nodes that are offered


def sentences(lang: str) -> tuple[str, ...]:
    """Questions that can always be asked."""
    from assistant.dialogue.help import EXAMPLES
    from assistant.session.phrases import HEALTHY

    return tuple(dict.fromkeys([HEALTHY.in_(lang), *(s.in_(lang) for _, group in EXAMPLES for s in group)]))


def names(hosts: Sequence[str], diagnosis: Diagnosis | None = None) -> tuple[str, ...]:
    """Nodes, GPUs and processes that are known, rules that spoke, and every code."""
    from knowledge.catalog.sxid import all_sxids
    from knowledge.catalog.xid import all_xids

    found = diagnosis.findings if diagnosis is not None else ()
    codes = (*(f"xid {x.code}" for x in all_xids()), *(f"sxid {s.code}" for s in all_sxids()))
    return tuple(dict.fromkeys([*hosts[:HOSTS], *(f.rule.id for f in found), *codes]))


def completed(text: str, offers: Iterable[str], known: Iterable[str]) -> list[str]:
    """Lines that `text` may become, best first: a sentence that begins so, else the last words finished to a name."""
    if not text.strip() or "\n" in text:
        return []
    known = tuple(known)
    found = [line for line in completions(text, offers, ()) if line != text]
    words = text.split(" ")
    for n in (2, 1):  # "xid 7" is a name of two words
        tail = " ".join(words[-n:]) if len(words) >= n else ""
        if tail.strip() and words[-1]:
            found += [text[: len(text) - len(tail)] + name for name in _begun(tail, known) if " " in name or n == 1]
    return [line for line in dict.fromkeys(found) if line.casefold().startswith(text.casefold()) and line != text]


def _begun(tail: str, known: Iterable[str]) -> list[str]:
    low = tail.casefold()
    return [name for name in known if name.casefold().startswith(low)]
