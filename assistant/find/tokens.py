"""Text to tokens: Latin words, numbers, pairs of Han characters.

The same function reads queries and pages, so that both meet. `tokens` keeps words as they are written (typo
repair and phrase matching need them), `terms` is what the index holds: stemmed, without words that carry nothing.
"""

from __future__ import annotations

import unicodedata
from functools import lru_cache

from knowledge.lazy import lazy

# A question has hundreds of characters, a page some ten thousand. What is pasted beyond is not a question.
MAX_CHARS = 20_000
MAX_WORD = 64  # a "word" of a megabyte is no word: cut, never compared at length
HAN = "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\u3007"

# Beside Han characters there is no word boundary ("pid4242很慢"): text is cut at their runs first. Compiled when there
# are any: a class of Chinese characters costs milliseconds, and most questions are ASCII.
_HAN_RUN = lazy(rf"([{HAN}]+)")
#   0x4f | 1.2.3, 43, 0.5 | h100, xid79, don't, cudaerrornodevice
_WORD = lazy(r"0x[0-9a-f]+(?![^\W_])|[0-9]+(?:\.[0-9]+)*(?![^\W\d_])|[^\W_]+(?:['\u2019][^\W\d_]+)?")
_GLUED = lazy(r"([a-z]{3,})([0-9]+)")  # xid79, gpu3, pid4242; h100, fp8, sm90 stay one word


def tokens(text: str) -> list[str]:
    """The words of `text` in their order: casefolded, NFKC, Han runs as overlapping pairs.

    Work is bounded: what stands beyond `MAX_CHARS` is not read.
    """
    folded = fold(text)
    if folded.isascii():
        return _words(folded)
    out: list[str] = []
    for n, part in enumerate(_HAN_RUN.split(folded)):
        if n % 2:
            out += [part[i : i + 2] for i in range(len(part) - 1)] or [part]
        else:
            out += _words(part)
    return out


def _words(text: str) -> list[str]:
    """The words of a text without Han characters."""
    out: list[str] = []
    for found in _WORD.findall(text):
        if glued := _GLUED.fullmatch(found):
            out += [glued[1][:MAX_WORD], glued[2][:MAX_WORD]]
        else:
            out.append(_plain(found)[:MAX_WORD])
    return out


def terms(text: str) -> list[str]:
    """The tokens that an index is asked for: stemmed, without `STOP` words."""
    return [stem(token) for token in tokens(text) if token not in STOP]


def fold(text: str) -> str:
    """`text` in the one spelling that is compared: NFKC, casefolded, nothing that cannot be seen."""
    kept = text[:MAX_CHARS]
    if kept.isascii():
        return kept.lower()
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", kept).casefold())
    folded = folded[: 2 * MAX_CHARS]
    if folded.isprintable():  # as most are, and then none of it is of category Cf (`str.isprintable`)
        return folded
    return "".join(c for c in folded if c.isprintable() or unicodedata.category(c) != "Cf")


@lru_cache(maxsize=4096)
def stem(word: str) -> str:
    """`word` without plural, -ing, -ed; numbers, short words and Han pairs stay.

    Lighter than Porter's: what is cut must not change what is meant ("caching" is not "cach" of anything else), so
    a stem keeps three letters and a vowel, and doubled consonants and a final e fall on both sides alike.
    """
    if len(word) < 4 or not word.isascii() or not word.isalpha():
        return word
    for ending, instead in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) + len(instead) >= 3:
            cut = word[: len(word) - len(ending)] + instead
            if any(c in "aeiouy" for c in cut):
                word = cut
                break
    if len(word) > 3 and word[-1] == word[-2] and word[-1] not in "aeiouls":
        word = word[:-1]
    return word[:-1] if len(word) > 4 and word.endswith("e") else word


def is_han(token: str) -> bool:
    """Whether `token` is a pair (or a lone one) of Han characters."""
    return bool(token) and _is_han(token[0])


def _is_han(char: str) -> bool:
    return (
        "\u3400" <= char <= "\u4dbf" or "\u4e00" <= char <= "\u9fff" or "\uf900" <= char <= "\ufaff" or char == "\u3007"
    )


def _plain(word: str) -> str:
    """``what's`` -> ``what``; ``don't`` -> ``dont``."""
    for quote in ("'", "\u2019"):
        if quote in word:
            head, _, tail = word.partition(quote)
            return head if tail == "s" else head + tail
    return word


# The first that fits is cut. "ss", "us", "is" are no plurals: status, bus, chassis, access.
_ENDINGS = (
    ("sses", "ss"), ("ches", "ch"), ("shes", "sh"), ("xes", "x"), ("ies", "y"), ("ied", "y"),
    ("ss", "ss"), ("us", "us"), ("is", "is"), ("ings", ""), ("ing", ""), ("eed", "eed"), ("ed", ""), ("s", ""),
)  # fmt: skip

# Words that say how something is asked, not about what. "not", "no", "on", "off", "out", "down", "up" say something
# about a GPU ("off the bus", "link down", "out of memory") and stay.
_STOP = """
a an the of to in at by for from with and or but is are was were be been being am do does did done doing have has had i me
my mine we our us you your he she it its they them their this that these those there here what which who whom whose when
where why how can could will would shall should may might must please about as if so than then too very just also some any
all each into onto over under again
"""
STOP = frozenset(_STOP.split())
