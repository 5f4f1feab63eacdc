"""What a sentence wants.

Two judges. The phrases of the lexicon, weighed against what the sentence names, give the `Hint` of this module: the
rules that can be said in words. `assistant.intent.weights` has learned from labelled examples how much each of those
signs, and each word, is worth, and decides what the rules leave open.

Nothing of the field named, and no phrase that stands on its own: not understood. The lists of other things (laptops,
poems) only guard against words that mean one thing here and another elsewhere.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cache
from typing import NamedTuple

from assistant.intent.grammar import core, facts_of, runs, scores, with_facts
from assistant.intent.query import FOLLOW_UPS, Intent

SURE = 10  # weight from which a whole phrase needs nothing of the field beside it
LIKELY = 8  # ... and from which a part of one tells that the talk goes on
_MARKS = frozenset({"<xid>", "<sxid>", "<pid>", "<gpu>", "<node>", "<rank>", "<job>"})
_PLACES = frozenset({"<pid>", "<gpu>", "<node>", "<rank>", "<job>", "<process>"})
_CODES = frozenset({"<xid>", "<sxid>"})
# Of two that score alike the earlier wins: the more particular wish.
_ORDER = (
    Intent.SUMMARY, Intent.CAUSE, Intent.WHICH, Intent.EVENTS, Intent.HELP, Intent.CANCEL, Intent.UNDO, Intent.EXPORT, Intent.WHATIF, Intent.WHYNOT, Intent.EVIDENCE, Intent.CONFIDENCE,
    Intent.WHY, Intent.RERUN, Intent.RETARGET, Intent.ALTERNATIVES, Intent.NEXT, Intent.CONFIRM, Intent.DENY, Intent.COST,
    Intent.RUNBOOK, Intent.FIX, Intent.VERDICT, Intent.HISTORY, Intent.EXPLAIN, Intent.PROBE, Intent.DIAGNOSE,
)  # fmt: skip


_WITH_THINGS = (Intent.EXPLAIN, Intent.DIAGNOSE, Intent.FIX, Intent.PROBE)  # of anything in the world
_NUMBER = re.compile(r"[0-9]+(?:\.[0-9]+)?")


_VERBS = frozenset(
    {"show", "list", "check", "give", "print", "display", "read", "get", "tell", "see", "run", "dump", "report", "view", "current",
     "walk", "no", "not", "on", "off", "up", "down", "out", "many", "much"}
)  # fmt: skip
_HAN_ASKING = "的了吗呢是什么怎我你有多少为这那很太"


class Sentence(NamedTuple):
    """What the intent is decided from."""

    words: tuple[str, ...]  # with marks where slots stood
    pasted: bool = False  # log lines or a traceback stood beside it
    symptoms: int = 0  # how many symptoms it names
    named: int = 0  # signatures and symbols that knowledge has a page about
    terms: int = 0  # terms of the glossary
    concept: bool = False  # a term is all that is said


class Hint(NamedTuple):
    """What the phrases say of a sentence."""

    intent: Intent  # by the rules alone
    found: Mapping[Intent, int]  # the weight of the best phrase of each intent
    alone: frozenset[Intent]  # those of which a phrase is all that is said
    field: bool  # whether something of the field, or of the talk, is named


def hint(s: Sentence) -> Hint:
    """What the rules say of a sentence."""
    found, alone = scores(s.words)
    marked = with_facts(s.words)
    if marked is not None:
        more = scores(marked)
        alone |= more.alone
        for intent, weight in more.found.items():
            found[intent] = max(found.get(intent, 0), weight)
    field = in_field(s)
    return Hint(_by_rule(s, dict(found), alone, field), found, frozenset(alone), field)


def _by_rule(s: Sentence, found: dict[Intent, int], alone: set[Intent], field: bool) -> Intent:
    if s.pasted:
        asked = found.get(Intent.EXPLAIN, 0) >= 6 and found.get(Intent.DIAGNOSE, 0) < 9
        return Intent.EXPLAIN if asked else _of_paste(found, "?" in s.words or "<since>" in s.words)
    best = _best(found) if found else None
    if best is not None and _stands(best, found[best], best in alone, s):
        return best
    if not field:
        return Intent.UNKNOWN
    _add_named(s, found)
    return _best(found) if found else Intent.DIAGNOSE


def _stands(intent: Intent, weight: int, alone: bool, s: Sentence) -> bool:
    """Whether a wish needs nothing of the field beside it: "can I keep using it?", "why not a cable?"."""
    if _never(s.words, s):
        return False
    if alone and (weight >= SURE - 1 or intent not in _WITH_THINGS):
        return True
    if intent is Intent.HISTORY and "<since>" in s.words and not runs("elsewhere").find(s.words):
        return True
    return intent in FOLLOW_UPS and weight >= LIKELY and not runs("elsewhere").find(s.words)


def _best(found: dict[Intent, int]) -> Intent:
    return max(found, key=lambda intent: (found[intent], -_ORDER.index(intent)))


def _of_paste(found: dict[Intent, int], past: bool) -> Intent:
    """What is asked of a paste; a paste alone asks what is wrong. "Last error: ..." of a log asks for no `past`."""
    wanted: dict[Intent, int] = {
        i: w
        for i, w in found.items()
        if w >= 8 and (i in (Intent.FIX, Intent.VERDICT, Intent.RUNBOOK, Intent.COST) or (past and i is Intent.HISTORY))
    }
    return _best(wanted) if wanted else Intent.DIAGNOSE


def _add_named(s: Sentence, found: dict[Intent, int]) -> None:
    """What a sentence wants when its words do not say it: a code is explained, a place is looked at."""
    words, words_in = set(s.words), s.words
    code, place = bool(words & _CODES), bool(words & _PLACES)

    def at_least(intent: Intent, weight: int) -> None:
        found[intent] = max(found.get(intent, 0), weight)

    if code and place:
        at_least(Intent.DIAGNOSE, 5)
    elif code:
        at_least(Intent.EXPLAIN, 4)
    elif place:
        at_least(Intent.DIAGNOSE, 2)
    if s.symptoms:
        begins = next((w for w in s.words[core(s.words)[0] :]), "")
        asked = (
            (s.terms or s.named) and not place and (begins == "what" or found.get(Intent.EXPLAIN, 0) > 3)
        )  # "what is a power brake"
        at_least(Intent.DIAGNOSE, 2 if asked else 5)
    begin, finish = core(s.words)
    if not found:
        at_least(Intent.EXPLAIN if finish - begin <= 4 else Intent.DIAGNOSE, 1)
    if (
        not place
        and (s.terms or facts_of(words_in))
        and any(_NUMBER.fullmatch(w) for w in words)
        and Intent.VERDICT in found
    ):
        at_least(Intent.EXPLAIN, found[Intent.VERDICT] + 1)  # "is 43 % MFU normal": asked of a book
    if s.concept or (s.named and not place and not found.keys() - {Intent.EXPLAIN} and not s.symptoms):
        at_least(Intent.EXPLAIN, 7)
    if place and found.get(Intent.EXPLAIN, 0) == 3:  # "what is the temperature of gpu 3" is not asked of a book
        found[Intent.EXPLAIN] = 1


def in_field(s: Sentence) -> bool:
    """Whether the sentence is about GPU machines, their jobs, or the talk itself."""
    words = s.words
    if _never(words, s):
        return False
    if any(w in _MARKS for w in words) or s.named:
        return True
    strong = len(runs("field").find(words))
    elsewhere = len(runs("elsewhere").find(words))
    if strong:
        return strong >= elsewhere
    if elsewhere:
        return False
    weak = {at for start, end, _ in (*runs("weak").find(words), *facts_of(words)) for at in range(start, end)}
    if s.symptoms or "<process>" in words or "<file>" in words:
        return True
    if not weak:
        return False
    begin, finish = core(words)
    content = [w for w in words[begin:finish] if w not in asking() and w not in "?!,%"]
    return len(weak) * 2 > len(content)


def _never(words: Sequence[str], s: Sentence) -> bool:
    return not s.pasted and bool(runs("never").find(words))


@cache
def asking() -> frozenset[str]:
    """Words of any question: they say nothing about its field."""
    from assistant.find.tokens import STOP

    return STOP | _VERBS | frozenset(_HAN_ASKING)
