"""Typing errors: words that nobody knows, read as the known word one slip away.

Only plain words: names with digits, paths and anything in quotes are left as they are. A word that is known,
to the lexicon, to the pages or to everyday English, is never changed.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from functools import cache

from assistant.intent.tables import ARTLESS, tables
from knowledge.lazy import lazy

SHORTEST = 4  # a shorter word has too many neighbours
LONG = 8  # from here on two slips may be meant
MOST = 40  # unknown words that are looked at: a sentence has three, a paste a thousand

# No part of a name, a path, an address or a code block.
_WORD = lazy(
    r"(?<![A-Za-z0-9_./\\@#<:=\u00a0-\u024f-])[A-Za-z]{3,24}(?![A-Za-z0-9_/\\@=\u00a0-\u024f]|[.:-][A-Za-z0-9])"
)
# xdi 79 | pdi 4242 | gup 3: ahead of a number, three letters are enough
_CODE = lazy(r"(?<![A-Za-z0-9_./-])([A-Za-z]{3,5})(?=[\s:#]*[0-9]{1,7}(?![A-Za-z0-9_.]))")
_NUMBERED = ("xid", "sxid", "pid", "gpu", "gpus", "rank", "ranks", "node", "xids", "job")


def repair(text: str, names: Collection[str] = ()) -> tuple[str, tuple[tuple[str, str], ...]]:
    """`text` with its typing errors mended, and what was mended: as written, as read. `names`: right as they are."""
    fixed: dict[str, str] = {}
    seen: dict[str, str] = {name.casefold(): name.casefold() for name in names if name.isalpha()}
    most = MOST + len(seen)

    def code(found: re.Match[str]) -> str:
        word = found[1].lower()
        if word in _known() or word in ARTLESS:
            return found[0]
        near = [n for n in _NUMBERED if distance(word, n, 1) <= 1]
        if not near:
            return found[0]
        fixed[found[1]] = near[0]
        return near[0]

    def word(found: re.Match[str]) -> str:
        low = found[0].lower()
        if low not in seen:
            seen[low] = low if len(seen) > most else nearest(low)
        if seen[low] == low:
            return found[0]
        fixed[found[0]] = seen[low]
        return seen[low]

    text = _WORD.sub(word, _CODE.sub(code, text))
    return text, tuple(fixed.items())


def nearest(word: str) -> str:
    """The known word that `word` is a slip of; `word` itself when it is known, or none or several are as near."""
    if len(word) < SHORTEST or not word.isascii() or word in _known() or _inflected(word):
        return word
    if word in _pages():
        return word
    reach = 2 if len(word) >= LONG else 1
    for words in (_index(), _page_index()):
        near = {other: distance(word, other, reach) for other in _candidates(word, words, reach)}
        best = [
            (far, _unlike(word, other), other)
            for other, far in near.items()
            if far <= reach and _slipped(word, other, far)
        ]
        if best:
            return min(best, key=lambda b: (b[0], b[1], -len(b[2]), b[2]))[2]
    return word


def _slipped(word: str, near: str, far: int) -> bool:
    """Whether a hand slips so: to the key beside, or in a vowel; and not twice where the first letter is another too.

    "spam" is no slip of "sram", and "anywhere" none of "nowhere".
    """
    if far > 1:
        return word[0] == near[0]
    if len(word) != len(near) or set(word) == set(near):
        return True  # a letter too many or too few, swapped, or the wrong one doubled ("ncll")
    wrong, meant = next((a, b) for a, b in zip(word, near, strict=True) if a != b)
    return meant in _BESIDE.get(wrong, "") or (wrong in _VOWELS and meant in _VOWELS)


_VOWELS = "aeiouy"
_ROWS = ("qwertyuiop", "asdfghjkl", "zxcvbnm")  # each shifted by about half a key
_BESIDE: Mapping[str, str] = {
    key: "".join(
        other
        for r, line in enumerate(_ROWS)
        for c, other in enumerate(line)
        if other != key and abs(r - row) < 2 and abs((c + r / 2) - (at + row / 2)) <= 1
    )
    for row, keys in enumerate(_ROWS)
    for at, key in enumerate(keys)
}


def _inflected(word: str) -> bool:
    """A known word with an ending: "hangs", "retrying"."""
    for ending in ("s", "es", "ed", "d", "ing", "er", "ers", "ly", "'s"):
        stem = word.removesuffix(ending)
        if stem != word and len(stem) > 2 and (stem in _known() or f"{stem}e" in _known() or _doubled(stem)):
            return True
    return False


def _doubled(stem: str) -> bool:
    """``stopp`` of "stopping": only a lone vowel doubles what follows it ("trainning" is a slip)."""
    base = stem[:-1]
    return (
        len(base) > 2 and stem[-1] == base[-1] and base in _known() and base[-2] in "aeiou" and base[-3] not in "aeiou"
    )


def _unlike(word: str, near: str) -> int:
    """How unlike a slip it would be: the same letters, then the same ends, come first."""
    swapped = sorted(word) == sorted(near)
    replaced = not swapped and len(word) == len(near)
    return (not swapped) * 4 + replaced * 3 + (word[0] != near[0]) * 2 + (word[-1] != near[-1])


def distance(a: str, b: str, most: int) -> int:
    """Slips between two words: a letter too many, missing, wrong, or two swapped (Damerau 1964, optimal string
    alignment); `most` + 1 when there are more.
    """
    if abs(len(a) - len(b)) > most:
        return most + 1
    before: list[int] = []
    row = list(range(len(b) + 1))
    for i, x in enumerate(a, 1):
        last, row, older = row, [i], before
        for j, y in enumerate(b, 1):
            cost = min(last[j] + 1, row[j - 1] + 1, last[j - 1] + (x != y))
            if i > 1 and j > 1 and x == b[j - 2] and a[i - 2] == y:
                cost = min(cost, older[j - 2] + 1)
            row.append(cost)
        before = last
        if min(row) > most and min(before) > most:
            return most + 1
    return row[-1]


def _candidates(word: str, index: Mapping[tuple[str, int], Iterable[str]], reach: int) -> Iterable[str]:
    """Known words that share a first letter (or, swapped or lost, the second) and nearly the length."""
    for letter in {word[0], word[1]}:
        for length in range(len(word) - reach, len(word) + reach + 1):
            yield from index.get((letter, length), ())


def _indexed(words: Iterable[str]) -> dict[tuple[str, int], list[str]]:
    out: dict[tuple[str, int], list[str]] = {}
    for word in words:
        out.setdefault((word[0], len(word)), []).append(word)
    return out


def is_lexical(word: str) -> bool:
    """Whether `word` is one of the field or of its questions, an ending more or less."""
    return any(
        form in _lexical() for form in (word, word.removesuffix("s"), word.removesuffix("ing"), word.removesuffix("ed"))
    )


def is_word(word: str) -> bool:
    """Whether `word` is known at all: to everyday English, to the field, or to the pages; an ending more or less."""
    return word in _known() or word in _pages() or _inflected(word)


@cache
def _known() -> frozenset[str]:
    """Words that are right as they are."""
    return frozenset(tables()["known"].split())


@cache
def _lexical() -> frozenset[str]:
    """The words of the field and of its questions: what a slip is most likely a slip of."""
    return frozenset(tables()["lexical"].split())


@cache
def _index() -> dict[tuple[str, int], list[str]]:
    return _indexed(w for w in sorted(_lexical()) if len(w) >= SHORTEST)


@cache
def _pages() -> Mapping[str, int]:
    from assistant.find import known_words

    return known_words()


@cache
def _page_index() -> dict[tuple[str, int], list[str]]:
    return _indexed(
        w for w, count in _pages().items() if len(w) > SHORTEST and count > 1 and w.isascii() and w.isalpha()
    )
