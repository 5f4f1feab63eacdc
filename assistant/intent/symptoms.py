"""Symptoms named in a sentence: by the words of their phrases, in any order, synonyms counted as the same word."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import cache
from typing import NamedTuple

from assistant.find.tokens import STOP, stem
from assistant.intent.phrases import split
from knowledge.lexicon import lexicon

_SLACK = 5  # words that may stand between those of a phrase
_PARTICLES = frozenset("的了吗呢啊呀吧很太好都就又还在有个这那一直总老是地得着过我我们")
_SMALL = STOP - {"up"} | frozenset(
    ["my", "our", "very", "so", "really", "just", "keep", "keeps", "kept", "get", "gets", "getting", "got"]
)
_SAME = ("slow", "hang", "crash", "train")  # classes of the lexicon whose words stand for one another


class _Phrase(NamedTuple):
    symptom: str
    words: tuple[str, ...]
    han: bool


def find(words: Sequence[str]) -> tuple[str, ...]:
    """Ids of the symptoms that the words of a sentence name, the fullest match first."""
    english = _content([w.strip("<>") for w in words if w.isascii() and w not in ("<xid>", "<sxid>")])
    han = [w for w in words if not w.isascii() or w.isalpha()]
    phrases, by_word = _phrases(), _by_word()
    best: dict[str, int] = {}
    for number in sorted({n for word in {*english, *han} for n in by_word.get(word, ())}):
        phrase = phrases[number]
        if best.get(phrase.symptom, 0) >= len(phrase.words):
            continue
        if _in_order(phrase.words, han) if phrase.han else _near(phrase.words, english):
            best[phrase.symptom] = len(phrase.words)
    return tuple(sorted(best, key=lambda name: -best[name]))


def _near(phrase: Sequence[str], words: Sequence[str]) -> bool:
    """All words of the phrase close to one another, in whatever order."""
    if not all(w in words for w in phrase):
        return False
    wide = len(phrase) + _SLACK
    if len(words) <= wide:
        return True
    wanted = set(phrase)
    return any(wanted <= set(words[at : at + wide]) for at in range(len(words) - wide + 1))


def _in_order(phrase: Sequence[str], words: Sequence[str]) -> bool:
    """The characters of a Han phrase in their order, little between them."""
    first = phrase[0]
    for start, word in enumerate(words):
        if word != first:
            continue
        at, done = start, True
        for wanted in phrase[1:]:
            upto = min(len(words), at + _SLACK + 1)
            at = next((i for i in range(at + 1, upto) if words[i] == wanted), -1)
            if at < 0:
                done = False
                break
        if done and at - start < len(phrase) + _SLACK:
            return True
    return False


def _content(words: Sequence[str]) -> list[str]:
    """The words that say something, each as the one that stands for its synonyms."""
    same = _synonyms()
    return [same.get(w) or same.get(stem(w)) or stem(w) for w in words if w not in _SMALL and w.isalpha()]


@cache
def _synonyms() -> dict[str, str]:
    out: dict[str, str] = {}
    for name in _SAME:
        for text in lexicon().classes.get(name, ()):
            if text.isascii() and text.isalpha():
                out.setdefault(text, name)
                out.setdefault(stem(text), name)
    return out


@cache
def _by_word() -> dict[str, list[int]]:
    """A word -> the phrases that are looked at when it is said: of each phrase the word that fewest others hold."""
    held = Counter(word for phrase in _phrases() for word in set(phrase.words))
    out: dict[str, list[int]] = {}
    for number, phrase in enumerate(_phrases()):
        out.setdefault(min(phrase.words, key=lambda w: (held[w], w)), []).append(number)
    return out


@cache
def _phrases() -> tuple[_Phrase, ...]:
    from knowledge.compiled import shard

    out = []
    for entry in shard("symptoms"):
        for lang, said in entry["said"].items():
            for text in said:
                raw = split(text.casefold())
                if lang == "zh":
                    words = tuple(w for w in raw if w not in _PARTICLES)
                else:
                    words = tuple(dict.fromkeys(_content(raw)))
                if len(words) >= (2 if lang == "zh" else 1):
                    out.append(_Phrase(entry["id"], words, any(not w.isascii() for w in words)))
    return tuple(out)
