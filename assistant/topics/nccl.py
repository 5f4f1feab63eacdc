"""NCCL: result codes, InfiniBand completion states, and the lines of its log."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from assistant.render.sheet import Sheet
from assistant.topics._common import from_text, signature_page
from knowledge.catalog import nccl
from knowledge.catalog.lookup import Family, signatures

KIND = "nccl"
HELP = "an NCCL result, an InfiniBand completion, or a pasted NCCL line"


def names() -> Iterable[str]:
    """Symbols and ids."""
    return (s.symbol or s.id for s in signatures(Family.NCCL))


def sheet(words: Sequence[str], lang: str) -> Sheet:
    """The page of a code (``ncclSystemError``, ``2``, ``IBV_WC_RETRY_EXC_ERR``) or of a pasted text."""
    if len(words) == 1 and (known := nccl.result(words[0]) or nccl.completion(words[0])):
        return signature_page(known, KIND, lang)
    return from_text(words, Family.NCCL, KIND, lang)
