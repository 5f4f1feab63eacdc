"""What a sentence wants: phrases of the lexicon are scored, then what the sentence names decides the rest.

Nothing of the field named, and no phrase that stands on its own: not understood. That is the rule; the lists of
other things (laptops, poems) only guard against words that mean one thing here and another elsewhere.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from typing import NamedTuple

from assistant.intent import phrases
from assistant.intent.query import FOLLOW_UPS, Intent
from knowledge.lexicon import lexicon

MOST_WORDS = 240  # head and tail of a longer sentence are looked at
SURE = 10  # weight from which a whole phrase needs nothing of the field beside it
LIKELY = 8  # ... and from which a part of one tells that the talk goes on
_MARKS = frozenset({"<xid>", "<sxid>", "<pid>", "<gpu>", "<node>", "<rank>", "<job>"})
_PLACES = frozenset({"<pid>", "<gpu>", "<node>", "<rank>", "<job>", "<process>"})
_CODES = frozenset({"<xid>", "<sxid>"})
# Of two that score alike the earlier wins: the more particular wish.
_ORDER = (
    Intent.HELP, Intent.CANCEL, Intent.UNDO, Intent.EXPORT, Intent.WHATIF, Intent.WHYNOT, Intent.EVIDENCE, Intent.CONFIDENCE,
    Intent.WHY, Intent.RERUN, Intent.RETARGET, Intent.ALTERNATIVES, Intent.NEXT, Intent.CONFIRM, Intent.DENY, Intent.COST,
    Intent.RUNBOOK, Intent.FIX, Intent.VERDICT, Intent.HISTORY, Intent.EXPLAIN, Intent.PROBE, Intent.DIAGNOSE,
)  # fmt: skip


_WITH_THINGS = (Intent.EXPLAIN, Intent.DIAGNOSE, Intent.FIX, Intent.PROBE)  # of anything in the world
# Hold the name of a reading and mean something else.
_NO_FACTS = ("out of memory", "illegal memory access", "memory leak", "显存不足", "内存不足", "显存溢出", "爆显存")
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


class _Compiled(NamedTuple):
    rows: tuple[tuple[phrases.Row, Intent, int, bool], ...]
    by_first: dict[str, list[int]]
    anchored: frozenset[int]


@cache
def _compiled() -> _Compiled:
    data = lexicon()
    classes: dict[str, phrases.Element] = {}
    for name, words in data.classes.items():
        classes[name] = phrases.of_class(words, classes)
    rows: list[tuple[phrases.Row, Intent, int, bool]] = []
    anchored: set[int] = set()
    by_first: dict[str, list[int]] = {}
    for phrase in data.phrases:
        row = phrases.parse(phrase.text.removeprefix("^ "), classes)
        if phrase.text.startswith("^ "):
            anchored.add(len(rows))
        for word in phrases.firsts(row):
            by_first.setdefault(word, []).append(len(rows))
        rows.append((row, Intent(phrase.intent), phrase.weight, phrase.whole))
    return _Compiled(tuple(rows), by_first, frozenset(anchored))


@cache
def _vocabulary(number: int) -> frozenset[str]:
    """All words that a phrase can hold."""
    return phrases.vocabulary(_compiled().rows[number][0])


@cache
def _runs(role: str) -> phrases.Runs:
    return phrases.Runs((word, role) for word in lexicon().roles.get(role, ()))


@cache
def _facts() -> phrases.Runs:
    return phrases.Runs([*lexicon().facts.items(), *((said, "") for said in _NO_FACTS)])


def words_of(marked: str) -> list[str]:
    """The words of a sentence in lower case, other spellings read as the usual ones."""
    spellings = _spellings()
    out: list[str] = []
    for word in _quoted(marked.casefold()):
        out += spellings.get(word, (word,))
    if len(out) > MOST_WORDS:
        out = out[: MOST_WORDS // 2] + out[-MOST_WORDS // 2 :]
    return out


def _quoted(text: str) -> list[str]:
    return re.findall(r"<[a-z]+>|[a-z]+(?:'[a-z]+)?|[0-9]+(?:\.[0-9]+)?|[\u3400-\u4dbf\u4e00-\u9fff]|[?!%,]", text)


@cache
def _spellings() -> dict[str, tuple[str, ...]]:
    return {written: tuple(meant.split()) for written, meant in lexicon().spellings.items()}


def facts_of(words: Sequence[str]) -> list[tuple[int, int, str]]:
    """Start, end and name of each fact that is called by its everyday name."""
    return [span for span in _facts().find(words) if span[2]]


def core(words: Sequence[str]) -> tuple[int, int]:
    """Where the sentence begins and ends without politeness, noise and punctuation."""
    filler = [False] * len(words)
    for start, end, _ in _runs("filler").find(words):
        filler[start:end] = [True] * (end - start)
    for at, word in enumerate(words):
        filler[at] = filler[at] or word in ("?", "!", ",")
    begin, finish = 0, len(words)
    while begin < finish and filler[begin]:
        begin += 1
    while finish > begin and filler[finish - 1]:
        finish -= 1
    if begin == finish:  # nothing else: then it is what is said
        begin, finish = 0, len(words)
        while finish and words[finish - 1] in ("?", "!", ","):
            finish -= 1
    return begin, finish


class Scores(NamedTuple):
    """What the phrases say."""

    found: dict[Intent, int]  # the weight of the best phrase of each intent
    alone: set[Intent]  # those of which a phrase is all that is said


def scores(words: Sequence[str]) -> Scores:
    """The phrases that a sentence holds."""
    table = _compiled()
    words = [w for w in words if w != ","]
    begin, finish = core(words)
    inner = frozenset(words[begin:finish]) - {"?", "!"}
    places: dict[int, list[int]] = {}
    for at, word in enumerate(words):
        for number in table.by_first.get(word, ()):
            places.setdefault(number, []).append(at)
    out = Scores({}, set())
    for number, starts in places.items():
        row, intent, weight, whole = table.rows[number]
        if out.found.get(intent, 0) > weight:
            continue
        if whole or number in table.anchored:
            starts = [at for at in starts if at <= begin]
        ends = phrases.ends(row, words, starts) if starts else set()
        if ends and (not whole or max(ends) >= finish):
            out.found[intent] = weight
            if whole or inner <= _vocabulary(number):
                out.alone.add(intent)
    return out


def decide(s: Sentence) -> Intent:
    """The intent of a sentence."""
    words = s.words
    found, alone = scores(words)
    with_facts = _with_facts(words)
    if with_facts is not None:
        more = scores(with_facts)
        alone |= more.alone
        for intent, weight in more.found.items():
            found[intent] = max(found.get(intent, 0), weight)
    if s.pasted:
        return (
            Intent.EXPLAIN
            if found.get(Intent.EXPLAIN, 0) >= 6 and found.get(Intent.DIAGNOSE, 0) < 9
            else _of_paste(found)
        )
    best = _best(found) if found else None
    if best is not None and _stands(best, found[best], best in alone, s):
        return best
    if not in_field(s):
        return Intent.UNKNOWN
    _add_named(s, found)
    return _best(found) if found else Intent.DIAGNOSE


def _stands(intent: Intent, weight: int, alone: bool, s: Sentence) -> bool:
    """Whether a wish needs nothing of the field beside it: "can I keep using it?", "why not a cable?"."""
    if _never(s.words, s):
        return False
    if alone and (weight >= SURE - 1 or intent not in _WITH_THINGS):
        return True
    if intent is Intent.HISTORY and "<since>" in s.words and not _runs("elsewhere").find(s.words):
        return True
    return intent in FOLLOW_UPS and weight >= LIKELY and not _runs("elsewhere").find(s.words)


def _best(found: dict[Intent, int]) -> Intent:
    return max(found, key=lambda intent: (found[intent], -_ORDER.index(intent)))


def _of_paste(found: dict[Intent, int]) -> Intent:
    """What is asked of a paste; a paste alone asks what is wrong."""
    wanted: dict[Intent, int] = {
        i: w
        for i, w in found.items()
        if w >= 8 and i in (Intent.FIX, Intent.VERDICT, Intent.RUNBOOK, Intent.HISTORY, Intent.COST)
    }
    return _best(wanted) if wanted else Intent.DIAGNOSE


def _with_facts(words: Sequence[str]) -> list[str] | None:
    """The words with a mark where a fact is named; None when none is."""
    spans = facts_of(words)
    if not spans:
        return None
    out, at = [], 0
    for start, end, _ in spans:
        out += [*words[at:start], "<fact>"]
        at = end
    return [*out, *words[at:]]


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
    strong = len(_runs("field").find(words))
    elsewhere = len(_runs("elsewhere").find(words))
    if strong:
        return strong >= elsewhere
    if elsewhere:
        return False
    weak = {at for start, end, _ in (*_runs("weak").find(words), *facts_of(words)) for at in range(start, end)}
    if s.symptoms or "<process>" in words or "<file>" in words:
        return True
    if not weak:
        return False
    begin, finish = core(words)
    content = [w for w in words[begin:finish] if w not in _asking() and w not in "?!,%"]
    return len(weak) * 2 > len(content)


def _never(words: Sequence[str], s: Sentence) -> bool:
    return not s.pasted and bool(_runs("never").find(words))


@cache
def _asking() -> frozenset[str]:
    """Words of any question: they say nothing about its field."""
    from assistant.find.tokens import STOP

    return STOP | _VERBS | frozenset(_HAN_ASKING)
