"""Which pages of knowledge a sentence is about: what it names exactly, then what the search finds."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING

from assistant.intent.grammar import facts_of
from assistant.intent.phrases import Runs
from assistant.intent.query import FOLLOW_UPS, Intent, Slots, Topic
from assistant.intent.slots import Named
from assistant.intent.tables import tables
from knowledge.lazy import lazy
from knowledge.observation import Event, Observation

if TYPE_CHECKING:
    from knowledge.catalog.lookup import Match

LIMIT = 6
_READINGS = ("gpu.utilization", "gpu.temperature", "gpu.power", "gpu.memory", "gpu.clock.sm", "node.")
CLOSE = 0.9  # of the first's score: the second is as likely
EXACT = 1e6  # above every score of the search, which is a sum of some ten points a word
_SYMBOL = lazy(
    r"(?<![A-Za-z0-9_])(?:cuda[A-Z][A-Za-z]+|CUDA_ERROR_[A-Z_]+|nccl[A-Z][A-Za-z]+|DCGM_[A-Z0-9_]+|IBV_WC_[A-Z_]+|NCCL_[A-Z_]+|CUBLAS_STATUS_[A-Z_]+|[A-Z]{2,20}(?:_[A-Z0-9]{1,20}){1,8}(?![A-Za-z0-9]))"
)
# explain rule gpu-fell-off-bus | 解释 fact gpu.temperature.core
_OUTRIGHT = lazy(r"\s*(?:explain|解释)\s*([a-z]{2,10}) ([^\s?]{1,120}?)\s*[?.？。]?\s*", re.IGNORECASE)
# 79 | 94 vs 95 | difference between 94 and 95 | code 79 | 94和95有什么区别
_BARE = lazy(r"\s*(?:code|error|错误码?|代码)?\s*#?([0-9]{1,5})\s*(?:is|是)?\s*[?!.\u3002]*\s*")
_COMPARED = lazy(
    r"(?:(?:differen|distinguish|compar|区别|不同|差别|差异).{0,60}?(?<![0-9.])(?P<a>[0-9]{2,5})(?P<sep>\s*(?:and|vs\.?|versus|from|to|with|or|,|/|和|与|跟|、)\s*)(?P<b>[0-9]{2,5})(?![0-9.%]))"
    r"|(?:(?<![0-9.])(?<!between )(?<!from )(?<!at )(?P<c>[0-9]{2,5})\s*(?:vs\.?|versus|和|与|跟|and|or)\s*(?P<d>[0-9]{2,5})(?![0-9.%])\s*(?:$|\?|.{0,12}(?:区别|不同|差别|差异|differ)))",
    re.IGNORECASE | re.DOTALL,
)
# 63 和 64 这两个 xid: the word behind the numbers
_LISTED = lazy(
    r"(?<![0-9.:])((?:[0-9]{1,5}\s*(?:,|、|/|和|与|跟|还是|(?<![a-z])(?:and|or|vs\.?|versus)(?![a-z]))\s*){1,7}[0-9]{1,5})\s*(?:这|那|these|those|both|as)?\s*(?:[2-8两三四几]|些|two|three)?\s*(?:个|种|条)?\s*(s?)xids?(?![a-z]|\s*[0-9])",
    re.IGNORECASE,
)
# XID 95 比 94 严重吗 | xid 48, is it worse than 94
_THAN = lazy(r"(?:比|(?<![a-z])than)\s*(?:xid\s*)?([0-9]{1,3})(?![0-9.%]|\s*(?:gi?b|%|度|个|张|次))", re.IGNORECASE)
_FIRST = {
    Intent.FIX: ("howto", "runbook"),
    Intent.RUNBOOK: ("runbook",),
    Intent.EXPLAIN: ("term", "range", "xid", "sxid", "clock"),
}
_CAMEL = lazy(r"(?<=[a-z])(?=[A-Z][a-z])|(?<=[A-Z])(?=[A-Z][a-z])|_")  # RowRemapPending, GPUXidError
# Words that only wish for a remedy: "how do I fix it" is about nothing that a page could be about, and no wish for fixed clocks.
_WISH = lazy(
    r"\b(?:how|what|do|does|can|could|should|would|will|i|we|you|one|to|the|a|it|this|that|these|those|them|is|are|be|my|our|us|please|now|best|way|fix"
    r"|fix(?:es|ed|ing)|repair(?:ed|ing)?|solv(?:e|ed|es|ing)|resolv(?:e|ed|es|ing)|remedy|cure|solution|problem|issue|here|then|so|there|go|get|make|about|with"
    r"|of|for|on|and|right|again|first|properly|quickly|ok|okay|(?:gpu|card|node|machine|server|job|process|rank|pid)s?(?: ?#?\d+)?)\b"
    r"|怎么办|怎么|如何|怎样|修复|修好|修理|修|解决|处理|搞定|问题|这个|那个|它|该|要|呢|吗|啊|吧|一下|应该|应|我们|我|可以|能|才|好|请|现在|节点|作业|进程|机器|(?:gpu|卡) ?\d*",
    re.IGNORECASE,
)
# "Is that ok?" asks for no code, though one is called so: a code that says that nothing is wrong is meant only as it is written.
_NO_ERROR = lazy(r"(?:_OK|Success|_SUCCESS)$")
# "OOM" alone is of GPU memory; the kernel that kills is meant where somebody says so
_KILLS = lazy(r"kill|137|signal 9|sigkill|host|(?<![a-z])ram(?![a-z])|杀|(?<!显存)(?<!显)内存|退出码|主机")
_LINES = 4  # log lines whose words are searched for
_LIFT = {Intent.FIX: {"howto": 1.25, "runbook": 1.1}, Intent.RUNBOOK: {"runbook": 1.8}, Intent.PROBE: {"fact": 1.2},
         Intent.EXPLAIN: {"term": 1.1, "range": 1.05}}  # fmt: skip


def bare_codes(said: str, named: Named) -> Named:
    """A number alone, or two that are compared, are XIDs (of five digits: SXids) when the catalogue has them."""
    slots = named.slots
    if slots == Slots(xid=slots.xid) and len(slots.xid) == 1 and (than := _THAN.search(named.marked)):
        codes = [than[1]]
    elif any(True for _ in slots.named()):
        return named
    else:
        found = _BARE.fullmatch(said)
        codes = [found[1]] if found else []
    if not codes and (listed := _LISTED.search(said)):
        codes = re.findall("[0-9]+", listed[1])
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
            return named._replace(slots=_coded(kind, (*slots.xid, *map(int, codes))), marked=marked)
    return named


def outright(said: str) -> tuple[str, ...]:
    """The page that a sentence asks for as `gpudiag explain` takes it, and nothing else: "explain rule job-hung"."""
    found = _OUTRIGHT.fullmatch(said) if len(said) < 200 else None
    if found is None:
        return ()
    from assistant.find import topic

    page = topic(f"{found[1].casefold()} {found[2]}")
    return (page.id,) if page is not None and page.kind not in ("xid", "sxid") else ()  # codes are slots


def only_wishes(said: str) -> bool:
    """Whether a sentence wishes for a remedy and does not say of what: "how do I fix it", "how do I fix gpu 3"."""
    return not any(c.isalnum() for c in _WISH.sub("", said))


def _is_named(symbol: str, topic: Topic) -> bool:
    """Whether the best page for a symbol is its own: any word with underscores looks like one."""
    return (
        topic.name == symbol
        or (topic.kind in ("cuda", "nccl") and not symbol.isupper())
        or (topic.kind == "cuda" and symbol.startswith("CUDA_ERROR_"))  # the driver's name of the same error
        or symbol.startswith(("IBV_", "NCCL_"))
    )


def _coded(kind: str, codes: tuple[int, ...]) -> Slots:
    return Slots(xid=codes) if kind == "xid" else Slots(sxid=codes)


def quoted(matches: Sequence[Match]) -> list[str]:
    """Ids of the pages of signatures that were found."""
    found = [m.signature for m in matches[:4]]
    return [f"{s.family} {s.symbol if s.kind == 'status' else s.id}" for s in found]


def named(words: Sequence[str], said: str, matches: Sequence[Match]) -> list[str]:
    """Ids of pages that are named exactly: signatures of pasted lines, symbols, terms of the glossary."""
    out = quoted(matches)
    if _SYMBOL.search(said):
        from assistant.find import search

        out += [t.id for found in _SYMBOL.finditer(said) for t in search(found[0], 1) if _is_named(found[0], t)]
    spans = sorted(term_spans(words), key=lambda span: span[0] - span[1])
    return list(dict.fromkeys((*out, *(f"term {identifier}" for _, _, identifier in spans))))


def term_spans(words: Sequence[str]) -> list[tuple[int, int, str]]:
    """Start, end and id of each term of the glossary."""
    return _terms().find(words)


def is_term(words: Sequence[str]) -> bool:
    """Whether `words` are the name of one idea of the glossary, and not of a reading that is taken ("temperature")."""
    said = _terms().find(words)
    if len(said) != 1 or said[0][:2] != (0, len(words)):
        return False
    return not any(name.startswith(_READINGS) for _, _, name in facts_of(words))


@cache
def _terms() -> Runs:
    return Runs.ready(tables()["terms"])


def topics(
    intent: Intent,
    slots: Slots,
    said: str,
    exact: Sequence[str],
    symptoms: Sequence[str],
    lines: Sequence[Observation] = (),
) -> tuple[tuple[Topic, ...], bool]:
    """The topics of a sentence, best first; and whether the first is hardly better than the second.

    `exact` are pages that are named, `lines` what log lines within the message told.
    """
    if intent in FOLLOW_UPS and not (exact or symptoms or slots.xid or slots.sxid) and intent is not Intent.WHYNOT:
        return (), False
    from assistant.find import topic

    codes = [f"xid {n}" for n in slots.xid] + [f"sxid {n}" for n in slots.sxid]
    seen = [f"fact {name}" for name in dict.fromkeys(o.fact for o in lines if not codes)]
    found = _found(intent, f"{_told(lines)} {said}" if seen else said)
    first, later = _exactly(intent, codes, exact, symptoms, found, said)
    known = [*first, *seen[:1]]
    ids = [*known, *(t.id for t in found[: 1 if known else 2]), *later[:1], *(t.id for t in found), *later[1:]]
    by_id = {t.id: t for t in found}
    out = []
    for identifier in dict.fromkeys(ids):
        page = by_id.get(identifier) or topic(identifier)
        if page is not None:
            out.append(page._replace(score=EXACT) if identifier in first else page)
    return tuple(out[:LIMIT]), not first and _close(found)


def _found(intent: Intent, said: str) -> list[Topic]:
    """What the search finds, with the kinds of page that the intent wants lifted."""
    from assistant.find import search

    if not said.strip():
        return []
    lift = _LIFT.get(intent, {})
    found = search(_CAMEL.sub(" ", said) if _CAMEL.search(said) else said, 2 * LIMIT)
    written = said.casefold()
    found = [t for t in found if not _NO_ERROR.search(t.name) or t.name.casefold() in written]
    if not _KILLS.search(written):
        found = [t for t in found if t.id != "howto find-oom-killer"]
    return sorted((t._replace(score=t.score * lift.get(t.kind, 1.0)) for t in found), key=lambda t: -t.score)


def _exactly(
    intent: Intent,
    codes: Sequence[str],
    exact: Sequence[str],
    symptoms: Sequence[str],
    found: Sequence[Topic],
    said: str,
) -> tuple[list[str], list[str]]:
    """Ids of what is named for sure; and those that come behind the best of the search."""
    signs = [f"symptom {s}" for s in symptoms]
    terms = [t for t in exact if t.startswith("term ")]
    first = [*codes, *(t for t in exact if not t.startswith("term "))]
    if intent is Intent.EXPLAIN:
        return [*first, *terms[:1]], [*signs, *terms[1:]]
    if intent is Intent.FIX:  # a task that is asked for comes ahead of what its words remind of
        first += [t.id for t in found[:2] if t.kind in _FIRST[Intent.FIX] and _asked_for(t, said)][:1]
    return [*first, *signs], terms


def _asked_for(task: Topic, said: str) -> bool:
    """Whether a task has more of a sentence than a word by chance: "verify a GPU before returning it to the pool" is no `uncordon`."""
    from assistant.find import asked

    # of Chinese most pairs of characters lie across two words, so that shares of it say little
    return task.kind != "howto" or not said.isascii() or asked.share(said, task.id) >= _TASK


_TASK = 0.15


def _told(lines: Sequence[Observation]) -> str:
    """The words of log lines: the names of what they tell, and their text."""
    said = []
    for o in lines[:_LINES]:
        text = o.value.get("text") if isinstance(o.value, Event) else ""
        said.append(f"{o.fact.replace('_', ' ')} {text if isinstance(text, str) else ''}")
    return " ".join(said)


def _close(found: Sequence[Topic]) -> bool:
    """Whether the second topic of another meaning is as likely as the first."""
    if not found:
        return False
    best = found[0]
    words = set(re.split(r"[-._ ]", best.name))
    other = next((t for t in found[1:] if not words & set(re.split(r"[-._ ]", t.name))), None)
    return other is not None and other.score >= CLOSE * best.score
