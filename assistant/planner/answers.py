"""What a person's words say to a question.

Only what is clear counts: an answer that says yes and no, two numbers, or a bound is not understood, and the question
is put again. Nothing is guessed.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping

from assistant.planner.model import DONT_KNOW, Answer, Question, Value
from knowledge.answers import answer_words
from knowledge.language import Text
from knowledge.lazy import lazy
from knowledge.text import clean

_LONGEST = 300  # characters that are looked at: an answer, not an essay
_MARKS = " \t\r\n.,;:!?\"'`()[]。，；：！？、（）“”‘’…~"  # no minus: it may belong to a number
# 8, 8.5, 1,024, 12%: not the 100 of H100, not the 1 of 0.1.2
_NUMBER = lazy(r"(?<![\w.,])[-+]?(?:\d{1,3}(?:,\d{3}){1,4}|\d{1,12})(?:\.\d{1,9})?(?![\d.,]*[.,]\d)")
_HAN = lazy("[\u4e00-\u9fff]")


# A question in turn is no answer: the yes of "有多确定？" is that of "how".
_ASKS_BACK = lazy(r"[^\W\d_]{2}.*\?$|多(?:少|大|确定|肯定|久)|什么|怎么|哪[里个些]?|吗$")


def answer_value(question: Question, text: str, lang: str = "en") -> Value | Answer:  # noqa: ARG001 - see below
    """The value that `text` gives the question's fact; None when it is not understood; DONT_KNOW.

    Answers are taken in English and in Chinese, whatever `lang` the talk is in: people mix them.
    """
    said = unicodedata.normalize("NFKC", clean(text[: 4 * _LONGEST]))[:_LONGEST].strip()
    low = said.casefold().replace("’", "'").strip(_MARKS)
    if not low:
        return DONT_KNOW if said and set(said) <= {"?"} else None
    if question.kind == "enum" and (word := _enum(question, low)) is not None:
        return word
    if any(_stands(phrase, low) for phrase in answer_words().dont_know):
        return DONT_KNOW
    match question.kind:
        case "bool" if _ASKS_BACK.search(said):
            return None
        case "bool":
            return _bool(low.strip(f"-{_MARKS}"))
        case "int" | "float":
            return _number(question, low)
        case "enum":
            return None
        case _:
            return _text(said.strip(_MARKS))


def only_answer(text: str) -> bool:
    """Whether a sentence is nothing but a value, a yes or a no, with what people say around one.

    "16 %", "about 8 gpus", "是的" are; "show gpu 4" and "ok, what is xid 79" want something of their own.
    """
    low = unicodedata.normalize("NFKC", clean(text[: 4 * _LONGEST]))[:_LONGEST].casefold().replace("’", "'")
    words = answer_words()
    said = _NUMBER.sub(" ", low)
    phrases = {*words.filler, *words.yes, *words.no, *words.percent, *words.numbers, *words.dont_know}
    for phrase in sorted(phrases, key=lambda p: (-len(p), p)):
        if _HAN.search(phrase):
            said = said.replace(phrase, " ")
        elif phrase in said:
            said = re.sub(rf"(?<![a-z0-9_]){re.escape(phrase)}(?![a-z0-9_])", " ", said)
    return not any(c.isalnum() for c in said)


def _stands(phrase: str, text: str) -> bool:
    """Whether `phrase` stands in `text` as words of its own; Chinese has no gaps between words."""
    if _HAN.search(phrase):
        return phrase in text
    return re.search(rf"(?<![a-z0-9_]){re.escape(phrase)}(?![a-z0-9_])", text) is not None


def _opens(phrase: str, text: str) -> bool:
    """Whether `text` begins with `phrase` as words of its own."""
    if not text.startswith(phrase):
        return False
    rest = text[len(phrase) : len(phrase) + 1]
    return bool(_HAN.search(phrase)) or not (rest.isalnum() or rest in ("_", "'")) or bool(_HAN.search(rest))


def _bool(low: str) -> bool | None:
    """Yes or no by how the answer begins; nothing when it goes on to say the contrary."""
    words = answer_words()
    first = [(len(p), value) for value, said in ((True, words.yes), (False, words.no)) for p in said if _opens(p, low)]
    if not first:
        return None
    length, value = max(first)
    rest = low[length:].strip(_MARKS)
    contrary = words.no if value else words.yes
    if any(
        _stands(p, rest) if not _HAN.search(p) else _opens(p, rest) for p in contrary if len(p) > 1 or _HAN.search(p)
    ):
        return None
    return value


def _number(question: Question, low: str) -> float | int | None:
    words = answer_words()
    if any(_stands(phrase, low) for phrase in words.inexact):
        return None
    found = [(m[0], m.end()) for m in _NUMBER.finditer(low)]
    if not found:
        spelt = [n for word, n in words.numbers.items() if _spelt(word, low)]
        return _fitting(question, float(spelt[0]), False) if len(spelt) == 1 else None
    if len(found) > 1:
        return None
    digits, end = found[0]
    percent = any(p in low for p in words.percent)
    if question.unit == "percent" and low[end:].strip(_MARKS) and not percent:
        return None  # 200 ms is no share
    if question.unit != "percent" and percent:
        return None
    return _fitting(question, float(digits.replace(",", "")), percent)


def _spelt(word: str, low: str) -> bool:
    """Whether a number is spelt out: as a word; in Chinese alone or before a measure word, as it begins."""
    if not _HAN.search(word):
        return _stands(word, low)
    return low == word or (low.startswith(word) and low[len(word) : len(word) + 1] in "个块张卡台条")


def _fitting(question: Question, value: float, percent: bool) -> float | int | None:
    """The number, when it can be the fact's; of a share 0.35 may mean 35 % or 0.35 %."""
    if question.unit == "percent" and (not 0 <= value <= 100 or (0 < value < 1 and not percent)):
        return None
    if question.kind == "float":
        return value
    return int(value) if value.is_integer() and value >= 0 else None


def _enum(question: Question, low: str) -> str | None:
    """The one word of the enum that is named, by itself or as people call it."""
    labels = dict(question.labels)
    hits: dict[str, int] = {}
    for value in question.values:
        label = labels.get(value)
        names = {value, value.replace("_", " "), *((label.en, label.zh) if label else ())}
        best = max((len(n) for n in names if n and _stands(n.casefold(), low)), default=0)
        if best:
            hits[value] = best
    longest = max(hits.values(), default=0)
    best_words = [value for value, length in hits.items() if length == longest]
    return (
        best_words[0] if len(best_words) == 1 and (len(hits) == 1 or low in _names_of(best_words[0], labels)) else None
    )


def _names_of(value: str, labels: Mapping[str, Text]) -> set[str]:
    label = labels.get(value)
    called = {label.en.casefold(), label.zh.casefold()} if label else set()
    return {value.casefold(), value.replace("_", " ").casefold(), *called}


def _text(said: str) -> str | None:
    """A free answer: the one token with a digit (a version, a name), else the whole."""
    tokens = [t.strip(_MARKS) for t in said.split()]
    named = [t for t in tokens if any(c.isdigit() for c in t)]
    return named[0] if len(named) == 1 else said or None
