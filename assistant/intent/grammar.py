"""The words of a sentence, and the phrases of the lexicon that it holds.

A phrase tells a wish with a weight; `assistant.intent.intents` weighs what is found here against what the sentence names.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import cache
from typing import NamedTuple

from assistant.intent import phrases
from assistant.intent.query import Intent
from assistant.intent.tables import tables
from knowledge.lazy import lazy
from knowledge.lexicon import lexicon

MOST_WORDS = 240  # head and tail of a longer sentence are looked at
# Hold the name of a reading and mean something else.
_NO_FACTS = (
    "out of memory",
    "illegal memory access",
    "memory leak",
    "显存不足",
    "内存不足",
    "显存溢出",
    "爆显存",
    "aer corrected error",
    "aer corrected errors",
    "aer correctable errors",
    "pcie corrected error",
    "pcie corrected errors",
    "corrected pcie errors",
)
_words = lazy(r"<[a-z]+>|[a-z]+(?:'[a-z]+)?|[0-9]+(?:\.[0-9]+)?|[\u3400-\u4dbf\u4e00-\u9fff]|[?!%,]")


class _Classes(dict[str, phrases.Element]):
    """The classes of words, each read when a phrase holds it. The tables were built of them all: each can be read."""

    def __contains__(self, name: object) -> bool:
        return name in lexicon().classes

    def __missing__(self, name: str) -> phrases.Element:
        self[name] = found = phrases.of_class(lexicon().classes[name], self)
        return found


_classes = _Classes()


@cache
def _row(number: int) -> phrases.Row:
    """A phrase of the lexicon, read when a sentence holds a word that it can begin with."""
    return phrases.parse(lexicon().phrases[number].text.removeprefix("^ "), _classes)


@cache
def _needs(number: int) -> tuple[frozenset[str], ...]:
    """What a sentence must hold for a phrase, beside the word that it begins with."""
    return phrases.needs(_row(number))


def _may_stand(number: int, words: Collection[str]) -> bool:
    for one in _needs(number):  # noqa: SIM110 - asked for hundreds of phrases of each sentence
        if one.isdisjoint(words):
            return False
    return True


@cache
def _vocabulary(number: int) -> frozenset[str]:
    """All words that a phrase can hold."""
    return phrases.vocabulary(_row(number))


@cache
def runs(role: str) -> phrases.Runs:
    """The words of a role, as runs."""
    return phrases.Runs((word, role) for word in lexicon().roles.get(role, ()))


@cache
def _facts() -> phrases.Runs:
    """What facts are called, in the spelling that a sentence is read in, of one thing and of several: "memory temps"."""
    named = {" ".join(words_of(said)): fact for said, fact in (*lexicon().facts.items(), *((s, "") for s in _NO_FACTS))}
    several = {
        f"{said}s": fact
        for said, fact in named.items()
        if said[-1:].isascii() and said[-1:].isalpha() and said[-1] != "s"
    }
    return phrases.Runs((several | named).items())


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
    by_first, every = tables()["firsts"], lexicon().phrases
    words = [w for w in words if w != ","]
    begin, finish = core(words)
    inner, held = frozenset(words[begin:finish]) - {"?", "!"}, frozenset(words)
    places: dict[int, list[int]] = {}
    for at, word in enumerate(words):
        for number in by_first.get(word, ()):
            places.setdefault(number, []).append(at)
    found: dict[str, int] = {}
    alone: set[str] = set()
    for number, starts in places.items():
        intent, weight, whole, text, page = every[number]
        if found.get(intent, 0) > weight or page.startswith("advice "):  # an advice is asked for by its page
            continue
        if not _may_stand(number, held):
            continue
        if whole or text.startswith("^ "):
            starts = [at for at in starts if at <= begin]
        ends = phrases.ends(_row(number), words, starts) if starts else set()
        if ends and (not whole or max(ends) >= finish):
            found[intent] = weight
            if whole or inner <= _vocabulary(number):
                alone.add(intent)
    return Scores({Intent(name): weight for name, weight in found.items()}, {Intent(name) for name in alone})


def page_of(words: Sequence[str]) -> str:
    """The page that a phrase of the sentence asks for though it does not name it ("does 60 % mean that 60 % is used?"); else empty."""
    by_first, every = tables()["firsts"], lexicon().phrases
    words = [w for w in words if w != ","]
    held = frozenset(words)
    for at, word in enumerate(words):
        for number in by_first.get(word, ()):
            if every[number].page and _may_stand(number, held) and phrases.ends(_row(number), words, [at]):
                return every[number].page
    return ""


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
