"""Who does what to whom: two clauses of the same words may still say opposite things ("the job waits for the GPU").

A verb that a clause shares with its statement is followed to both sides: what stands before it there may not stand only behind it
here, nor the other way round; and what somebody is told to do is done to the same thing. Passives are turned round first.
"""

# ruff: noqa: SIM905
from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

from assistant.narrate import freewords as fw
from assistant.narrate import lexicon as lex
from assistant.narrate.vocabulary import IMPERATIVES, implied, stemmed, with_alike
from assistant.narrate.wording import stem, tokens

_ACTS = frozenset(
    """
answer respond fall drop lower cut hold slow wait reach read lose fail stop keep receive repeat launch feed use need remove reset run see allow
configure block break reject protect draw join open outlive crash correct contain repair share take give get make send carry
overheat heat brake cool raise restart reboot drain inspect check move set ask stall hang
""".split()
)
_LIGHT = frozenset("have do let make act follow see find".split())
_AUX = frozenset("is are was were has have had can could should will would may might must does do did".split())
_BE = frozenset("is are was were be been being get gets got".split())
_PREPOSITIONS = frozenset(
    "of for from to with on in at through by until over under behind via into as than because".split()
)
_ENDS = frozenset(", ; : ( ) .".split())
_PARTICIPLES = frozenset(
    "held cut lost set hung done taken given made sent read run kept put drawn broken fallen".split()
)


@dataclass(frozen=True, slots=True)
class Act:
    """A verb with what stands around it."""

    verb: str
    subject: frozenset[str]
    object: frozenset[str]  # up to the next preposition
    behind: frozenset[str]  # all that follows


def verbs_known() -> frozenset[str]:
    """The stems of all verbs that are followed."""
    return frozenset({"lower"}) | stemmed(
        _ACTS | lex.DEEDS - {"power"} | frozenset(IMPERATIVES) - _LIGHT | {"inspect", "enlarge"}
    )


@lru_cache(maxsize=4096)
def acts(text: str) -> tuple[Act, ...]:
    """The verbs of a text and their sides."""
    words = tokens(text)
    low = [t.lower() for t in words]
    known = verbs_known()
    at = [k for k, t in enumerate(low) if t[0].isalpha() and stem(t) in known and not _noun(low, k)]
    return tuple(_act(low, k, at) for k in at)


def _noun(low: Sequence[str], k: int) -> bool:
    """Whether a word that may be a verb stands as a noun: behind an article, a noun of its own, or a preposition."""
    ahead = low[k - 1] if k else ""
    return ahead in (
        "a",
        "an",
        "the",
        "this",
        "that",
        "its",
        "no",
        "of",
        "every",
        "low",
        "power",
        "cpu",
        "context",
    ) or (ahead in ("after", "before", "until", "in", "on") and not low[k].endswith("ing"))


def _act(low: Sequence[str], k: int, at: Sequence[int]) -> Act:
    start = max((j + 1 for j in at if j < k), default=0)
    if (
        low[k - 1 : k] in (["and"], ["or"]) and start
    ):  # "the driver runs part of it and waited": the subject of the first
        start, k_subject = 0, at[0]
    else:
        k_subject = k
    head = low[start:k_subject]
    for j in range(len(head) - 1, -1, -1):
        if head[j] in ("since", "because", "while", "so", "if", "when", "until", "once", "that", "which"):
            head = head[j + 1 :]
            break
    before = _things(head[: head.index("of")] if "of" in head[1:] else head)
    end = next((j for j in at if j > k), len(low))
    if end == k + 1 or (low[k + 1 : k + 2] in (["and"], ["or"]) and end == k + 2):  # drain and reboot the node
        end = next((j for j in at if j > end), len(low))
    rest = list(low[k + 1 : end])
    rest = rest[: rest.index("than")] if "than" in rest else rest
    stop = next((j for j, w in enumerate(rest) if w in _PREPOSITIONS | _ENDS | _AUX), len(rest))
    near = _things(rest[:stop])
    shaped = low[k].endswith("ed") or low[k] in _PARTICIPLES
    passive = shaped and (
        bool(set(low[max(0, k - 4) : k]) & _BE)
        or ("have" in low[max(0, k - 7) : k] and low[k - 1] not in ("have", "not", "also", "already"))
        or bool(before and rest[:1] in (["on"], ["by"]) and low[k] != "run")
    )
    if passive:
        by = rest[rest.index("by") + 1 :] if "by" in rest else []
        return Act(stem(low[k]), _things(by), before, before)
    if "what" in rest[:stop] or "whatever" in rest[:stop]:
        near |= stemmed(frozenset({"process", "job", "work", "program", "workload", "everything", "all"}))
    if {"it", "them"} & set(rest[:stop]) and not near:
        near = frozenset({"it"})
    return Act(stem(low[k]), before, near, _things(rest))


def entity(name: str) -> str:
    """The kind of thing that a placeholder stands for, of those that a finding is about: "gpu" for gpus_1."""
    kind = name.partition("_")[0]
    return next((k for k in (kind, kind[:-1]) if k in fw.ENTITIES), "")


def _things(words: Iterable[str]) -> frozenset[str]:
    free = stemmed(fw.FREE | fw.WEAK | {"down", "up", "off", "away"}) | verbs_known()
    out = set()
    for w in words:
        if w.startswith("{"):
            kind = entity(w[1:])
            if "." not in w and kind:
                out.add(stem(kind))
        elif w[0].isalpha() and w not in lex.NEGATIONS and (s := stem(w)) not in free:
            out.add(s)
    return frozenset(out)


def turned(part: str, source: str) -> bool:
    """Whether a verb of `part` has its sides the other way round than in `source`."""
    for a in acts(part):
        same = [b for b in acts(source) if b.verb == a.verb]
        alone = " than " not in source
        if same and all(_crossed(a, b, alone) for b in same):
            return True
    return False


def _crossed(a: Act, b: Act, alone: bool) -> bool:
    before, behind = with_alike(b.subject), with_alike(b.behind)
    if "it" not in b.object and (a.subject & behind) - before:
        return True
    if "it" in b.object or "it" in a.object:
        return False
    if alone and a.subject and b.subject and not a.subject & (before | implied(b.subject)):
        return True
    return bool((a.behind & before) - behind)


def compared_otherwise(part: str, source: str) -> bool:
    """Whether what is compared stands on the other side of "than", or only one of the two compares with others."""
    one, than, two = part.lower().partition(" than ")
    first, there, second = source.lower().partition(" than ")
    if bool(than) != bool(there):
        return bool(re.search(r"\bothers?\b", part))
    before, behind = _words(first), _words(second)
    return bool((_words(one) & behind) - before) or bool((_words(two) & before) - behind)


def _words(text: str) -> frozenset[str]:
    return frozenset(w for t in tokens(text) if t[0].isalpha() and (w := stem(t)) not in stemmed(fw.FREE | fw.WEAK))


def elsewhere(part: str, sources: Sequence[str], strict: bool) -> str:
    """A verb of `part` that is done to something else than in every source that has it. `strict`: it must stand in one."""
    known = [(b, source) for source in sources for b in acts(source)]
    for a in acts(part):
        same = [
            (b, source)
            for b, source in known
            if b.verb == a.verb or (strict and b.verb in _DEEDS_ALIKE.get(a.verb, ()))
        ]
        if not same:
            if (
                strict
                and a.object - {"it"}
                and a.verb not in ("tak", "mak", "hav", "giv", "let", "need", "ask", "do", "follow", "us")
            ):
                return a.verb
            continue
        if a.object and "it" not in a.object and not any(_same_thing(a, b, source) for b, source in same):
            return a.verb
    return ""


_DEEDS_ALIKE = {
    stem(w): frozenset(stem(x) for x in row.split())
    for row in ("check inspect look examine verify watch have", "ask contact consult", "restart relaunch", "move migrate", "repair fix", "raise increase enlarge", "stop end finish")
    for w in row.split()
}  # fmt: skip


def _same_thing(a: Act, b: Act, source: str) -> bool:
    if not b.object or "it" in b.object:
        others = [o.object for o in acts(source) if o.verb != b.verb and o.object and "it" not in o.object]
        return bool(a.object & with_alike(frozenset().union(*others))) if others else True
    listed = _things(tokens(source.partition(": ")[2].lower()))
    near = with_alike(b.object | listed) | implied(b.object)
    return bool(a.object & near) and a.object <= near | with_alike(b.behind | b.subject)
