"""NCCL's result codes and the completion states of InfiniBand verbs that NCCL prints.

Signatures of log lines are found with `knowledge.catalog.lookup.find_signature`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache

from knowledge.catalog.lookup import Family, Signature, signatures


@cache
def _numbered(kind: str) -> Mapping[int, Signature]:
    return {s.number: s for s in signatures(Family.NCCL) if s.kind == kind and s.number is not None}


def results() -> tuple[Signature, ...]:
    """ncclResult_t, 0 to 7, by number."""
    return tuple(s for _, s in sorted(_numbered("result").items()))


def completions() -> tuple[Signature, ...]:
    """The states of ibv_wc_status that are catalogued, by number."""
    return tuple(s for _, s in sorted(_numbered("completion").items()))


def result(word: int | str) -> Signature | None:
    """The result code that a number (``6``) or a name (``ncclRemoteError``) means."""
    return _named("result", word)


def completion(word: int | str) -> Signature | None:
    """The completion state that a number (``12``) or a name (``IBV_WC_RETRY_EXC_ERR``, ``RETRY_EXC_ERR``) means."""
    return _named("completion", word)


def _named(kind: str, word: int | str) -> Signature | None:
    text = str(word).strip()
    if re.fullmatch(r"[0-9]{1,4}", text):
        return _numbered(kind).get(int(text))
    wanted = text.lower()
    names = {s.symbol.lower().removeprefix(p): s for p in ("", "ibv_wc_") for s in _numbered(kind).values()}
    return names.get(wanted)
