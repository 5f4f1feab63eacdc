"""The closed vocabulary of a sentence: what the findings that it cites say, and words that hold any sentence together.

An allow-list, because no list of forbidden causes is ever complete: a part, a fault or a deed may be named only where a cited
finding's own texts name it. Of these texts it is kept what they assert, what they only offer ("usual causes are"), what they
deny ("no longer answers"), and what they tell to do; a sentence must use each word in the sense in which it stands there.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import pairwise

from assistant.narrate import lexicon as lex
from assistant.narrate.alike import IMPLIED, SYNONYMS
from assistant.narrate.material import Item
from assistant.narrate.wording import TOKEN, folded, marks, pairs, runs, sentences, stem, stems, tokens

SCOPE = 2  # words that a negation reaches, those that only hold the sentence together not counted
HAN_SCOPE = 4  # characters
IMPERATIVES = frozenset(
    [
        "check",
        "look",
        "ask",
        "let",
        "keep",
        "watch",
        "have",
        "make",
        "compare",
        "give",
        "set",
        "wait",
        "move",
        "do",
        "act",
        "follow",
        "find",
        "read",
        "see",
        "suspect",
    ]
)
_NEGATIVE_END = (": no", "：否", "：无", ": none")
_LISTED = re.compile(r", or |: [^.]*,[^.]* or |\bor [\w ]+ (?:are|is) (?:at fault|the cause)")
OFFERING = lex.STRONG_HEDGES - {"often", "sometimes"}
_OFFERED_ZH = (*lex.ZH_HEDGES, "，或", "若", "如果", "之一", "是否")


@cache
def plain(lang: str) -> frozenset[str]:
    """The stems of the words that may stand anywhere."""
    return (
        frozenset(stem(w) for w in (lex.FUNCTION | lex.NARRATIVE) - lex.NEVER) if lang == "en" else frozenset({"gpu"})
    )


@cache
def common(lang: str) -> frozenset[str]:
    """What tells no finding from another: words that only hold a sentence together, and the things that all are about."""
    things = frozenset(["gpu", "card", "accelerator", "node", "machine", "system", "device", "be", "have", "do"])
    return stemmed(lex.FUNCTION | things) if lang == "en" else frozenset({"gpu"})


@cache
def stemmed(words: frozenset[str]) -> frozenset[str]:
    """The stems of a list."""
    return frozenset(stem(w) for w in words)


@cache
def _alike() -> dict[str, frozenset[str]]:
    out: dict[str, set[str]] = {}
    for row in SYNONYMS:
        same = {stem(w) for w in row}
        for w in same:
            out.setdefault(w, set()).update(same)
    return {w: frozenset(s) for w, s in out.items()}


def with_alike(words: Iterable[str]) -> frozenset[str]:
    """`words`, and those of the same meaning."""
    known = _alike()
    return frozenset(x for w in words for x in known.get(w, (w,)))


@cache
def _implied_stems() -> tuple[tuple[str, frozenset[str]], ...]:
    return tuple((stem(w), stemmed(given)) for w, given in IMPLIED.items())


def implied(words: Iterable[str]) -> frozenset[str]:
    """What stems say beside themselves; not the other way round."""
    have = frozenset(words)
    return frozenset(w for w, given in _implied_stems() if have & given)


@dataclass(frozen=True, slots=True)
class Words:
    """What the texts of findings give to a sentence that cites them."""

    all: frozenset[str]  # stems
    han: tuple[str, ...]  # runs of Han
    title: frozenset[str]  # marks of the problem's name, without those that may stand anywhere
    action: frozenset[str]  # stems of what is told to do
    han_action: tuple[str, ...]
    offered: frozenset[str]  # marks that stand only where the text says "may", "usual", "or", "if"
    denied: frozenset[str]  # marks behind a negation
    only_denied: frozenset[str]  # and nowhere else
    title_denied: frozenset[str]  # marks that the problem's name denies
    asserted: frozenset[str]  # marks of what the texts assert
    phrases: frozenset[tuple[str, str]]  # two words side by side, as written


@lru_cache(maxsize=512)
def words_of(item: Item, lang: str) -> Words:
    """The words of one finding."""
    told = tuple(folded(t, lang) for t in (*item.actions, *item.then))
    page = [(folded(s, lang), offers(s, lang)) for s in item.background]
    own_texts = [folded(t, lang) for t in (item.what, *item.seen, item.standing)]
    asserted = [*own_texts, *told, *(s for s, offers in page if not offers)]
    every = [*asserted, *(s for s, _ in page)]
    advice = [*told, own_texts[0], own_texts[-1], *(s for s, _ in page if _advises(s))]
    own = plain(lang)
    deny = {m for t in every for m in denied_in(t, lang)}
    shown = {m for t in own_texts[:-1] for m in _affirmed(t, lang)}
    deny -= shown - {m for t in own_texts[:-1] for m in denied_in(t, lang)}
    first = {m for t in every for m in denied_in(t, lang, first=True)}
    open_marks = {m for t in asserted for m in marks(t, lang)}
    said = [*own_texts[:-1], *(s for s, offers in page if not offers)]  # not what is to be done, nor until when
    affirmed = {m for t in said for s in sentences(t, lang) for m in _affirmed(s, lang)}
    return Words(
        all=with_alike(s for t in every for s in stems(t)),
        han=tuple(dict.fromkeys(r for t in every for r in runs(t))),
        title=frozenset(m for m in marks(own_texts[0], lang) if not m.startswith("{") and m not in common(lang)),
        action=with_alike(s for t in advice for s in stems(t)),
        han_action=tuple(dict.fromkeys(r for t in (*told, own_texts[-1], *(s for s, _ in page if _advises(s))) for r in runs(t))),
        offered=frozenset(m for s, o in page if o for m in marks(s, lang)) - with_alike(open_marks) - own,
        denied=with_alike(deny),
        only_denied=frozenset(first - affirmed - stemmed(lex.FUNCTION)), asserted=frozenset(open_marks),
        title_denied=with_alike(denied_in(own_texts[0], lang, first=True)) - _SILENT - _affirmed(own_texts[0], lang),
        phrases=frozenset(p for t in every for p in _phrases(t)),
    )  # fmt: skip


def together(items: Sequence[Item], lang: str) -> Words:
    """The words of all findings that a sentence cites. What one of them only offers or denies, another may assert."""
    every = [words_of(i, lang) for i in items]

    def union(sets: Iterable[frozenset[str]]) -> frozenset[str]:
        return frozenset().union(*sets)

    asserted = with_alike(union(w.asserted for w in every))
    affirmed = union(w.asserted - w.only_denied for w in every)
    return Words(
        union(w.all for w in every), tuple(r for w in every for r in w.han), union(w.title for w in every),
        union(w.action for w in every), tuple(r for w in every for r in w.han_action),
        union(w.offered for w in every) - asserted, union(w.denied for w in every),
        union(w.only_denied for w in every) - affirmed,
        union(w.title_denied for w in every) - union(w.title - w.title_denied for w in every),
        union(w.asserted for w in every), frozenset(p for w in every for p in w.phrases),
    )  # fmt: skip


def _phrases(text: str) -> Iterable[tuple[str, str]]:
    low = [t.lower() for t in tokens(text) if t != "-"]
    return pairwise(low)


def offers(sentence: str, lang: str) -> bool:
    """Whether a sentence of the page only offers what it names: for some case, not for this one."""
    if lang == "zh":
        return any(w in sentence for w in _OFFERED_ZH)
    low = [t.lower() for t in tokens(sentence)]
    return bool(set(low) & (OFFERING | {"either", "otherwise"}) or low[0] in ("if", "when") or _LISTED.search(sentence))


def _advises(sentence: str) -> bool:
    low = [t.lower() for t in tokens(sentence)]
    clauses = [c for c in re.split(r",| and ", sentence) if c.strip()]
    return bool(low) and (any(imperative(c.strip()) for c in clauses) or "请" in sentence or "则" in sentence)


def imperative(text: str) -> bool:
    """Whether an English sentence begins with a deed."""
    low = [t.lower() for t in tokens(text) if t[0].isalpha()]
    while low and low[0] in ("please", "then", "first", "finally", "next", "now", "also", "afterwards", "once"):
        low = low[1:]
    if not low:
        return False
    return low[0] in IMPERATIVES or (low[0] in lex.DEEDS and not text.startswith(("Reset of", "Return")))


# --- negation -----------------------------------------------------------------------------


def negated_at(words: Sequence[str]) -> list[int]:
    """Where English negations stand."""
    return [i for i, w in enumerate(words) if w.lower() in lex.NEGATIONS or w.lower().replace("’", "'").endswith("n't")]


_ENDS = frozenset(
    [",", ".", ";", ":", "(", ")", "until", "which", "that", "because", "while", "so", "but", "unless", "although"]
)
_SILENT = frozenset(stem(w) for w in ("silent", "unresponsive", "unreachable"))
_ADVERBS = frozenset(["longer", "yet", "also", "really", "even", "again", "more", "only", "any"])
_OBJECTS = frozenset(["nothing", "none", "nobody", "no"])


def scope(words: Sequence[str], at: int) -> list[str]:
    """The stems that the negation at `at` reaches: ahead of it for "needs nothing"."""
    own = stemmed(lex.FUNCTION)

    def reach(part: Iterable[str]) -> list[str]:
        out: list[str] = []
        for w in part:
            if w.lower() in _ENDS or len(out) == SCOPE:
                break
            if w[0].isalpha() and (s := stem(w)) not in own and w.lower() not in lex.NEGATIONS | _ADVERBS:
                out.append(s)
        return out

    found = reach(words[at + 1 :])
    if not found and words[at].lower() in _OBJECTS:
        found = reach(list(reversed(words[:at])))
    return found


def han_negations(text: str) -> list[tuple[str, list[str]]]:
    """Chinese negations: what each reaches, as pairs."""
    out = []
    masked = text
    for word in lex.ZH_PLAIN:
        masked = masked.replace(word, "〇" * len(word))
    for i, c in enumerate(masked):
        if c in lex.ZH_NEGATIONS:
            behind = re.split("[，。；：、（）]", text[i + 1 :])[0]
            han = (runs(behind[:HAN_SCOPE]) or [""])[0]
            found = [p for p in pairs(han) if not set(p) & lex.ZH_NEGATIONS] if han else []
            word = next((t for t in TOKEN.findall(behind) if t[0].isascii() and t[0].isalpha()), "")
            near = word and behind.find(word) <= HAN_SCOPE
            out.append((text[i : i + 1 + HAN_SCOPE], [*found, *([stem(word)] if near else [])]))
    return out


def denied_in(text: str, lang: str, first: bool = False) -> set[str]:
    """The marks that a text denies; `first`: of each denial the nearest only, which is the verb or the quality."""
    if text.endswith(_NEGATIVE_END):
        found = [m for m in marks(text, lang) if not m.startswith("{") and m not in plain(lang)]
        return set(found[:1] if first else found)
    most = 1 if first else SCOPE + HAN_SCOPE
    out = {p for _, found in han_negations(text) for p in found[:most]} if lang == "zh" else set()
    words = tokens(text)
    for at in negated_at(words):
        out |= set(scope(words, at)[:most])
    return out | {stem("correct") for w in words if w.lower().startswith("uncorrect")}


def _affirmed(text: str, lang: str) -> set[str]:
    return {m for m in marks(text, lang) if not m.startswith("{")} - denied_in(text, lang)
