"""Which pages of knowledge a sentence is about: what it names exactly, then what the search finds."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING

from assistant.intent.intents import facts_of
from assistant.intent.phrases import Runs
from assistant.intent.query import FOLLOW_UPS, Intent, Slots, Topic
from assistant.intent.slots import Named
from knowledge.lazy import lazy

if TYPE_CHECKING:
    from knowledge.catalog.lookup import Match

LIMIT = 6
_READINGS = ("gpu.utilization", "gpu.temperature", "gpu.power", "gpu.memory", "gpu.clock.sm", "node.")
CLOSE = 0.9  # of the first's score: the second is as likely
EXACT = 1e6  # above every score of the search, which is a sum of some ten points a word
_SYMBOL = lazy(
    r"(?<![A-Za-z0-9_])(?:cuda[A-Z][A-Za-z]+|CUDA_ERROR_[A-Z_]+|nccl[A-Z][A-Za-z]+|DCGM_[A-Z0-9_]+|IBV_WC_[A-Z_]+|NCCL_[A-Z_]+|CUBLAS_STATUS_[A-Z_]+|[A-Z]{2,20}(?:_[A-Z0-9]{1,20}){1,8}(?![A-Za-z0-9]))"
)
# 79 | 94 vs 95 | difference between 94 and 95 | code 79 | 94和95有什么区别
_BARE = lazy(r"\s*(?:code|error|错误码?|代码)?\s*#?([0-9]{1,5})\s*(?:is|是)?\s*[?!.\u3002]*\s*")
_COMPARED = lazy(
    r"(?:(?:differen|distinguish|compar|区别|不同|差别|差异).{0,60}?(?<![0-9.])(?P<a>[0-9]{2,5})(?P<sep>\s*(?:and|vs\.?|versus|from|to|with|or|,|/|和|与|跟|、)\s*)(?P<b>[0-9]{2,5})(?![0-9.%]))"
    r"|(?:(?<![0-9.])(?P<c>[0-9]{2,5})\s*(?:vs\.?|versus|和|与|跟|and|or)\s*(?P<d>[0-9]{2,5})(?![0-9.%])\s*(?:$|\?|.{0,12}(?:区别|不同|差别|差异|differ)))",
    re.IGNORECASE | re.DOTALL,
)
_FIRST = {
    Intent.FIX: ("howto", "runbook"),
    Intent.RUNBOOK: ("runbook",),
    Intent.EXPLAIN: ("term", "range", "xid", "sxid", "clock"),
}
_LIFT = {Intent.FIX: {"howto": 1.25, "runbook": 1.1}, Intent.RUNBOOK: {"runbook": 1.8}, Intent.PROBE: {"fact": 1.2},
         Intent.EXPLAIN: {"term": 1.1, "range": 1.05}}  # fmt: skip


def bare_codes(said: str, named: Named) -> Named:
    """A number alone, or two that are compared, are XIDs (of five digits: SXids) when the catalogue has them."""
    if any(True for _ in named.slots.named()):
        return named
    found = _BARE.fullmatch(said)
    codes = [found[1]] if found else []
    if not codes and (pair := _COMPARED.search(said)):
        codes = [pair["a"] or pair["c"], pair["b"] or pair["d"]]
    if not codes:
        return named
    from assistant.find import topic

    for kind in ("xid", "sxid"):
        if all(topic(f"{kind} {code}") is not None for code in codes):
            marked = named.marked
            for code in codes:
                marked = marked.replace(code, f" <{kind}> ", 1)
            return named._replace(slots=_coded(kind, tuple(map(int, codes))), marked=marked)
    return named


def _is_named(symbol: str, topic: Topic) -> bool:
    """Whether the best page for a symbol is its own: any word with underscores looks like one."""
    return (
        topic.name == symbol
        or (topic.kind in ("cuda", "nccl") and not symbol.isupper())
        or symbol.startswith(("IBV_", "NCCL_"))
    )


def _coded(kind: str, codes: tuple[int, ...]) -> Slots:
    return Slots(xid=codes) if kind == "xid" else Slots(sxid=codes)


def named(words: Sequence[str], said: str, matches: Sequence[Match]) -> list[str]:
    """Ids of pages that are named exactly: signatures of pasted lines, symbols, terms of the glossary."""
    out = [
        f"{m.signature.family} {m.signature.symbol if m.signature.kind == 'status' else m.signature.id}"
        for m in matches[:4]
    ]
    if _SYMBOL.search(said):
        from assistant.find import search

        out += [t.id for found in _SYMBOL.finditer(said) for t in search(found[0], 1) if _is_named(found[0], t)]
    spans = sorted(_terms().find(words), key=lambda span: span[0] - span[1])
    return list(dict.fromkeys((*out, *(f"term {identifier}" for _, _, identifier in spans))))


def is_term(words: Sequence[str]) -> bool:
    """Whether `words` are the name of one idea of the glossary, and not of a reading that is taken ("temperature")."""
    said = _terms().find(words)
    if len(said) != 1 or said[0][:2] != (0, len(words)):
        return False
    return not any(name.startswith(_READINGS) for _, _, name in facts_of(words))


@cache
def _terms() -> Runs:
    from knowledge.compiled import shard

    pairs = []
    for data in shard("glossary"):
        names = (data["id"].replace("-", " "), data["term"]["en"], data["term"]["zh"], *data.get("also", ()))
        pairs += [(name.casefold(), data["id"]) for name in names if len(name) > 2 or name.isupper()]
    return Runs(pairs)


def topics(
    intent: Intent, slots: Slots, said: str, exact: Sequence[str], symptoms: Sequence[str]
) -> tuple[tuple[Topic, ...], bool]:
    """The topics of a sentence, best first; and whether the first is hardly better than the second."""
    if intent in FOLLOW_UPS and not (exact or symptoms or slots.xid or slots.sxid) and intent is not Intent.WHYNOT:
        return (), False
    from assistant.find import search, topic

    codes = [f"xid {n}" for n in slots.xid] + [f"sxid {n}" for n in slots.sxid]
    signs = [f"symptom {s}" for s in symptoms]
    terms = [t for t in exact if t.startswith("term ")]
    others = [t for t in exact if not t.startswith("term ")]
    lift = _LIFT.get(intent, {})
    found = [t._replace(score=t.score * lift.get(t.kind, 1.0)) for t in search(said, 2 * LIMIT)] if said else []
    found.sort(key=lambda t: -t.score)
    first = [*codes, *others]
    if intent is Intent.EXPLAIN:
        first += [*terms[:1]]
        later = [*signs, *terms[1:]]
    else:
        first += signs
        later = terms
    ids = [*first, *(t.id for t in found[: 1 if first else 2]), *later[:1], *(t.id for t in found), *later[1:]]
    by_id = {t.id: t for t in found}
    out = []
    for identifier in dict.fromkeys(ids):
        known = by_id.get(identifier) or topic(identifier)
        if known is not None:
            out.append(known._replace(score=EXACT) if identifier in first else known)
    return tuple(out[:LIMIT]), not first and _close(found)


def _close(found: Sequence[Topic]) -> bool:
    """Whether the second topic of another meaning is as likely as the first."""
    if not found:
        return False
    best = found[0]
    words = set(re.split(r"[-._ ]", best.name))
    other = next((t for t in found[1:] if not words & set(re.split(r"[-._ ]", t.name))), None)
    return other is not None and other.score >= CLOSE * best.score
