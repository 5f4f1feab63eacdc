"""The signs of a sentence: what `assistant.intent.weights` weighs.

A sign is a name with a number, mostly 1. Signs are of these kinds, by what stands ahead of the colon:

    w, pair, first    words, pairs of neighbours, how it begins: stems, a mark where a slot, a number or a reading stood
    is, by            a class of words of the lexicon ("slow", "fix-verb"), alone and with its neighbour
    form, long-form   pairs and triples when words of content are all the same and terms of the glossary too
    phrase, whole     what the phrases of the lexicon say, with their weight
    rule              the intent by the rules alone
    many, covered ..  how much of the sentence is of the field, and how much of it names one page
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache
from itertools import pairwise

from assistant import find
from assistant.find.tokens import stem
from assistant.intent import grammar, topics, typos
from assistant.intent.intents import Hint, asking
from assistant.intent.phrases import Runs
from assistant.intent.reading import Reading
from knowledge.lexicon import lexicon

_CLASSES = (
    "it", "machine", "who", "be", "ask-can", "why", "fix-verb", "set-verb", "show-verb", "slow", "hang", "crash", "train", "bad",
    "good", "see-noun", "conclude", "past",
)  # fmt: skip
_ROLES = ("field", "weak", "elsewhere", "never", "program")
MOST = 60  # words that are looked at: beyond, a sentence says nothing new about what it wants
RARE = 3  # documents that a word may stand in to be a particular one


def features(reading: Reading, hint: Hint | None) -> dict[str, float]:
    """The signs of a sentence. Without `hint` nothing of what the phrases say."""
    words = list(reading.words[:MOST])
    out = _words(words)
    out |= _classes(words)
    out |= _coverage(words)
    out |= _forms(words)
    out |= _names(words)
    s = reading.sentence
    out |= {
        name: 1.0
        for name, holds in (("symptom", s.symptoms), ("term", s.terms), ("concept", s.concept), ("named", s.named))
        if holds
    }
    if hint is not None:
        out |= {f"phrase:{intent}": weight / 8 for intent, weight in hint.found.items()}
        out |= {f"whole:{intent}": 1.0 for intent in hint.alone}
        out |= {f"rule:{hint.intent}": 1.0, f"field:{hint.field}": 1.0}
        covered = next((sign for sign in out if sign.startswith("covered:")), "")
        out |= {f"rule:{hint.intent} {covered}": 1.0, f"field:{hint.field} {covered}": 1.0}
    return out


def _words(words: Sequence[str]) -> dict[str, float]:
    marked = [w for w in grammar.with_facts(words) or words if w != ","]
    said = [_plain(w) for w in marked]
    framed = ["^", *said, "$"]
    names = dict.fromkeys(f"w:{w}" for w in said) | dict.fromkeys(f"pair:{a} {b}" for a, b in pairwise(framed))
    if len(said) > 1:
        names[f"first:{said[0]} {said[1]}"] = None
    each = 1 / math.sqrt(math.sqrt(len(names) or 1))  # a long sentence does not shout a short one down
    out = dict.fromkeys(names, each)
    out[f"length:{min(len(said), 12) // 3}"] = 1.0
    return out


def _plain(word: str) -> str:
    if word[0].isdigit():
        return "<number>"
    return stem(word) if word.isascii() and word[0] != "<" else word


def _classes(words: Sequence[str]) -> dict[str, float]:
    out: dict[str, float] = {}
    for name, runs in _class_runs():
        for start, end, _ in runs.find(words):
            before = words[start - 1] if start else "^"
            behind = words[end] if end < len(words) else "$"
            out |= {f"is:{name}": 1.0, f"by:{before} {name}": 1.0, f"by:{name} {behind}": 1.0}
    return out


@cache
def _class_runs() -> tuple[tuple[str, Runs], ...]:
    classes = lexicon().classes
    return tuple((c, Runs((w, c) for w in classes[c] if "@" not in w and "[" not in w)) for c in _CLASSES)


def _coverage(words: Sequence[str]) -> dict[str, float]:
    """How much of what is said is of the field, or of another."""
    out: dict[str, float] = {}
    ours: set[int] = set()
    for role in _ROLES:
        spans = grammar.runs(role).find(words)
        out[f"many:{role} {min(len(spans), 3)}"] = 1.0
        if role in ("field", "weak"):
            ours.update(at for start, end, _ in spans for at in range(start, end))
    ours.update(at for start, end, _ in topics.term_spans(words) for at in range(start, end))
    begin, finish = grammar.core(words)
    content = [at for at in range(begin, finish) if words[at] not in asking() and words[at] not in "?!,%"]
    if content:
        share = sum(at in ours or words[at][0] == "<" for at in content) / len(content)
        out |= {"covered": share, "uncovered": 1 - share, f"covered:{int(share * 3.99)}": 1.0}
    known = find.known_words()
    plain = [words[at] for at in content if words[at].isascii() and words[at].isalpha()]
    out[f"unheard:{min(sum(w not in known for w in plain), 3)}"] = 1.0
    strange = min(sum(not typos.is_lexical(w) for w in plain), 3)
    begins = words[begin] if begin < len(words) else ""
    out |= {f"strange:{strange}": 1.0, f"strange:{strange} {begins}": 1.0}
    out[f"strange:{strange} of {min(len(plain), 6)}"] = 1.0
    if any(known.get(w, RARE + 1) <= RARE for w in plain):
        out["rare"] = 1.0
    return out


def _forms(words: Sequence[str]) -> dict[str, float]:
    """Neighbours, words of content left out: "how do x x <gpu>"."""
    spans = {start: (end, "<term>") for start, end, _ in topics.term_spans(words)}
    spans |= {start: (end, "<fact>") for start, end, _ in grammar.facts_of(words) if start not in spans}
    out: list[str] = ["^"]
    at = 0
    while at < len(words):
        if at in spans:
            at, word = spans[at]
        else:
            word = _form(words[at])
            at += 1
        if word != "," and not (word == "x" == out[-1]):
            out.append(word)
    out.append("$")
    pairs = {f"form:{a} {b}": 0.7 for a, b in pairwise(out)}
    return pairs | {f"long-form:{a} {b} {c}": 0.5 for a, b, c in zip(out, out[1:], out[2:], strict=False)}


def _form(word: str) -> str:
    if word[0].isdigit():
        return "<number>"
    return "x" if word.isascii() and word.isalpha() and word not in asking() else word


def _names(words: Sequence[str]) -> dict[str, float]:
    """Whether a page is called by its name, and how much of the sentence that is."""
    named = find.named(" ".join(w for w in words if w[0] != "<"))
    if not named:
        return {"unnamed": 1.0}
    best = max(named.values())
    kinds = {name.partition(" ")[0] for name, share in named.items() if share > best - 0.05}
    out = {"page": best, f"page:{int(best * 3.99)}": 1.0} | {f"page-of:{kind}": best for kind in kinds}
    if best > 0.95:
        out |= {"page-alone": 1.0} | {f"page-alone:{kind}": 1.0 for kind in kinds}
    return out
