"""The words of a sentence, and the phrases of the lexicon that it holds.

A phrase tells a wish with a weight; `assistant.intent.intents` weighs what is found here against what the sentence names.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from typing import NamedTuple

from assistant.intent import phrases
from assistant.intent.query import Intent
from knowledge.lexicon import lexicon

MOST_WORDS = 240  # head and tail of a longer sentence are looked at
# Hold the name of a reading and mean something else.
_NO_FACTS = ("out of memory", "illegal memory access", "memory leak", "显存不足", "内存不足", "显存溢出", "爆显存")
_words = re.compile(r"<[a-z]+>|[a-z]+(?:'[a-z]+)?|[0-9]+(?:\.[0-9]+)?|[\u3400-\u4dbf\u4e00-\u9fff]|[?!%,]")


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
def runs(role: str) -> phrases.Runs:
    """The words of a role, as runs."""
    return phrases.Runs((word, role) for word in lexicon().roles.get(role, ()))


@cache
def _facts() -> phrases.Runs:
    return phrases.Runs([*lexicon().facts.items(), *((said, "") for said in _NO_FACTS)])


def words_of(marked: str) -> list[str]:
    """The words of a sentence in lower case, other spellings read as the usual ones."""
    spellings = _spellings()
    out: list[str] = []
    for word in _words.findall(marked.casefold()):
        out += spellings.get(word, (word,))
    if len(out) > MOST_WORDS:
        out = out[: MOST_WORDS // 2] + out[-MOST_WORDS // 2 :]
    return out


@cache
def _spellings() -> dict[str, tuple[str, ...]]:
    return {written: tuple(meant.split()) for written, meant in lexicon().spellings.items()}


def facts_of(words: Sequence[str]) -> list[tuple[int, int, str]]:
    """Start, end and name of each fact that is called by its everyday name."""
    return [span for span in _facts().find(words) if span[2]]


def core(words: Sequence[str]) -> tuple[int, int]:
    """Where the sentence begins and ends without politeness, noise and punctuation."""
    filler = [False] * len(words)
    for start, end, _ in runs("filler").find(words):
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


def with_facts(words: Sequence[str]) -> list[str] | None:
    """The words with a mark where a fact is named; None when none is."""
    spans = facts_of(words)
    if not spans:
        return None
    out, at = [], 0
    for start, end, _ in spans:
        out += [*words[at:start], "<fact>"]
        at = end
    return [*out, *words[at:]]
