"""Chinese as it is typed: traditional characters, and words written with characters that only sound like the right ones.

Han text comes out of an input method: the usual slip is the right syllables with a wrong character (现存 for 显存).
A run of characters that sounds like a word of the field is read as that word, when it is no word itself, and no
word of its neighbourhood holds the character that differs, or lies across one of its ends (晚上 in 晚上先停, 正常 in 就正常了).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cache

from assistant.intent.phrases import Runs
from knowledge.lexicon import lexicon

_ENDINGS = "了着过"  # a verb's: 卡了 in 调卡了 is no word of its own
LONGEST = 4  # characters of a word that is repaired
MOST = 400  # Han characters that are looked at: what is longer was pasted


def simplified(text: str) -> str:
    """`text` in simplified characters and standard words. Other characters stay."""
    for written, meant in _words().items():
        if written in text:
            text = text.replace(written, meant)
    return text.translate(_characters())


def repair(text: str) -> tuple[str, tuple[tuple[str, str], ...]]:
    """`text` with words that only sound right mended, and what was mended: as written, as read."""
    fixed: dict[str, str] = {}
    right = _right_places(text[:MOST])
    out, at = [], 0
    while at < len(text):
        found = _heard_at(text, at, right) if at < MOST else None
        if found is None:
            out.append(text[at])
            at += 1
            continue
        written, meant = found
        fixed[written] = meant
        out.append(meant)
        at += len(written)
    return ("".join(out), tuple(fixed.items())) if fixed else (text, ())


def _heard_at(text: str, at: int, right: Sequence[tuple[int, int]]) -> tuple[str, str] | None:
    """The run that begins at `at` and sounds like a word, with that word."""
    sounds = lexicon().sounds
    if text[at] not in sounds:
        return None
    for length in range(LONGEST, 1, -1):
        written = text[at : at + length]
        meant = _heard().get(tuple(sounds.get(c, c) for c in written)) if len(written) == length else None
        if meant is None or meant == written:
            continue
        wrong = [i for i in range(length) if written[i] != meant[i]]
        if len(wrong) != 1 or any(start <= at + wrong[0] < end for start, end in right):
            continue
        if not any(
            start < at < end or (start < at + length < end and text[end - 1] not in _ENDINGS) for start, end in right
        ):
            return written, meant
    return None


def _right_places(text: str) -> tuple[tuple[int, int], ...]:
    """Start and end of each known word: its characters are right, and no run begins within it."""
    return tuple((start, end) for start, end, _ in _known().find(list(text)))


def _all_words() -> Iterator[str]:
    """Every Han word of the lexicon that has two characters or more."""
    data = lexicon()
    yield from data.heard
    for words in (*data.roles.values(), *data.classes.values(), data.facts, data.values):
        yield from (w for w in words if len(w) > 1 and not any(map(str.isascii, w)))


@cache
def _known() -> Runs:
    return Runs((word, "") for word in dict.fromkeys(_all_words()))


@cache
def _heard() -> Mapping[tuple[str, ...], str]:
    """Syllables of each word that is repaired -> the word."""
    sounds = lexicon().sounds
    return {tuple(sounds.get(c, c) for c in w): w for w in reversed(lexicon().heard) if len(w) <= LONGEST}


@cache
def _characters() -> dict[int, str]:
    return {ord(w): meant for w, meant in lexicon().spellings.items() if len(w) == 1 and not w.isascii()}


@cache
def _words() -> Mapping[str, str]:
    """Longer spellings, the longest first: a word before its parts."""
    found = [(w, m) for w, m in lexicon().spellings.items() if len(w) > 1 and not w.isascii()]
    return dict(sorted(found, key=lambda pair: -len(pair[0])))
