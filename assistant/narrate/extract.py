"""Whether each clause is an extract of one sentence of a cited finding: its words, in its order, with nothing left out that turns its sense.

Words alone prove little, and even the right words in the right clause can be turned round: "the others wait for the missing rank",
"reset it when it recurs". So a narration may choose, shorten, order and join what the findings say, and no more. A sentence is taken
apart from left to right into extracts and what joins them. An extract is a sentence of ours from its beginning, in whole clauses:
left out may be a bracket and the clauses at its end; never a condition, a denial, or a part of what is to be done.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

from assistant.narrate import extract_words as xw
from assistant.narrate.extract_words import Tongue, Word
from assistant.narrate.material import Item, Kind
from assistant.narrate.sentence import Sentence
from assistant.narrate.wording import sentences

_LEADS: Mapping[Kind, Mapping[str, tuple[str, ...]]] = {
    Kind.RULED_OUT: {"en": ("ruled out: {}", "{} was ruled out", "{} is ruled out"), "zh": ("已排除：{}", "已排除{}", "{}已排除", "{}已被排除")},
    Kind.UNSEEN: {
        "en": ("not seen: {}", "{}: not seen", "{} was not seen", "could not see: {}", "{} could not be seen"),
        "zh": ("未看到：{}", "无法查看：{}", "未能看到：{}", "未看到{}", "{}未看到", "{}无法查看"),
    },
    Kind.UNDECIDED: {"en": ("undecided: {}", "{} is undecided"), "zh": ("尚未确定：{}", "未确定：{}", "{}尚未确定")},
    Kind.DEED: {"en": ("{}",), "zh": ("{}",)},
    Kind.OPEN: {"en": ("open: {}", "{} is open", "{}"), "zh": ("待办：{}", "{}")},
}  # fmt: skip


_COLONS = (":", "：")


@dataclass(frozen=True, slots=True)
class Source:
    """One sentence of ours, as a narration may tell it."""

    words: tuple[Word, ...]
    deed: bool = False  # it tells people to do something: no part of it is left out
    order: int = -1  # of a deed among those of its finding
    name: bool = False  # it is what the finding is called: "there is" and the like may be added
    doubtful: bool = False  # it is not sure to be so: the sentence has to show that
    soft: bool = False  # a doubt may be added
    good: bool = False  # it says that something can be used
    follows: bool = False  # told only behind another thing of its kind: "not seen: A and B"
    more: frozenset[str] = frozenset()  # words that may be added: the things that the finding is about
    must: frozenset[str] = frozenset()  # words without which it is something else: "ruled out"

    def whole(self, taken: frozenset[int], t: Tongue) -> bool:
        """Whether what is left out, when only the words at `taken` are told, turns nothing."""
        full = [(k, w) for k, w in enumerate(self.words) if w.said not in t.free]
        told = {w.clause for k, w in full if k in taken}
        if not told or full[0][1].clause not in told:
            return False
        for k, w in full:
            lists = (
                w.said == "or" and k > 0 and self.words[k - 1].said == ","
            )  # "a card, a riser, or a GPU": any of them
            binds = w.clause >= 0 and (lists or w.said in t.conditions)  # what stands in brackets only adds
            if k not in taken and (self.deed or binds or w.clause in told or w.said in self.must):
                return False
        first = {w.clause: w.said for _, w in reversed(full)}
        then = {w.clause for w in self.words if w.said in t.thens}
        conditional = {c for c, word in first.items() if word in t.ifs and c not in then}
        return bool(told - conditional) or told == {w.clause for _, w in full}


class _At(NamedTuple):
    """How far a sentence has been taken apart. `cause`: what the words before say of it: the finding before causes the next ("on"), or
    the other way ("back")."""

    end: int
    item: str = ""  # which finding the last extract is of
    order: int = -1  # of the last deed of that finding: what is done later stands later
    cause: str = ""
    colon: bool = False  # what follows says more of the same finding


def extract(s: Sentence) -> str:
    """The words from which on no sentence of a cited finding says what is said; empty when all of it is an extract."""
    tongue = xw.TONGUES[s.lang]
    words = tongue.words(s.text)
    reach = _Reading(s, words, tongue).reached()
    return "" if reach == len(words) else "no sentence says " + tongue.joined(words[reach : reach + 8])


class _Reading:
    """One sentence, taken apart in every way in which it can be."""

    def __init__(self, s: Sentence, words: tuple[Word, ...], tongue: Tongue) -> None:
        self._s, self._words, self._t = s, words, tongue
        self._doubted = any(x in f" {s.text.lower()} " for x in tongue.doubts)
        self._sources = [
            (i, x) for i in s.items for x in _sources(i, s.lang)
            if (self._doubted or not x.doubtful) and (s.material.usable == "yes" or not x.good)
        ]  # fmt: skip
        self._ends: dict[tuple[int, int], frozenset[int]] = {}

    def reached(self) -> int:
        """How many of the words can be taken apart."""
        todo, known, best = [_At(0)], {_At(0)}, 0
        while todo:
            now = todo.pop()
            best = max(best, now.end - (now.end == len(self._words) and bool(now.cause)))
            if now.end == len(self._words):
                if not now.cause:
                    return best
                continue
            found = self._next(now) - known
            todo += found
            known |= found
        return best

    def _next(self, now: _At) -> set[_At]:
        words, t, at = self._words, self._t, now.end
        codes = frozenset[str]().union(*(_codes(i) for i in self._s.items if now.item in ("", i.id)))
        found: set[_At] = set()
        if words[at].said in codes or t.counts(words, at, codes):
            found.add(now._replace(end=at + 1))
        for length, cause in t.joins(words, at):
            if not (cause and now.cause):
                colon = now.colon or (bool(now.item) and words[at].said in _COLONS)
                found.add(now._replace(end=at + length, cause=cause or now.cause, colon=colon))
        for n, (item, source) in enumerate(self._sources):
            same = item.id == now.item
            if now.colon and not same:
                continue
            after = self._caused(now, item)
            if (
                after is None
                or (source.deed and same and source.order <= now.order)
                or (source.follows and not self._kin(now, item))
            ):
                continue
            if (n, at) not in self._ends:
                self._ends[n, at] = _ends(words, at, source, _codes(item), t)
            order = max(source.order, now.order) if same else source.order
            found |= {_At(end, item.id, order, after, words[end - 1].said in _COLONS) for end in self._ends[n, at]}
        return found

    def _kin(self, now: _At, item: Item) -> bool:
        """Whether the extract before is of another thing of the same kind."""
        before = self._s.material.by_id.get(now.item)
        return before is not None and before is not item and before.kind is item.kind

    def _caused(self, now: _At, item: Item) -> str | None:
        """What is left to say of cause once an extract of `item` follows; None where the words of cause say what is not so."""
        if not now.cause:
            return ""
        if now.item:
            pair = (now.item, item.id) if now.cause == "on" else (item.id, now.item)
            return "" if self._explains(*pair) else None
        if now.cause == "on":  # "that explains ...": of a sentence before, whose finding is cited
            return "" if any(self._explains(c.id, item.id) for c in self._s.items if c is not item) else None
        return "on"  # "because A, B"

    def _explains(self, cause: str, effect: str) -> bool:
        m = self._s.material
        sure = m.by_id[cause].certainty not in ("probable", "possible")
        return effect in m.reaches(cause) and (sure or self._doubted)


def _codes(item: Item) -> frozenset[str]:
    """What may stand in brackets behind a finding: its codes, commands, times and count."""
    return frozenset(c for c in (*item.codes, *item.commands, *item.times, item.count) if c)


def _ends(words: tuple[Word, ...], at: int, source: Source, codes: frozenset[str], t: Tongue) -> frozenset[int]:
    """Where an extract of `source` that begins at `at` may end."""
    if words[at].said in xw.STOPS:  # it joins, and begins nothing
        return frozenset()
    out, skip = set[int](), 0
    states: dict[int, frozenset[int]] = {-1: frozenset()}  # the last word of ours that was told -> all that were
    for n in range(at, len(words)):
        said = words[n].said
        skip = skip - 1 if skip else (t.being(words, n) if source.name else 0)
        added = bool(skip) or said in t.free or said in source.more or said in codes or t.counts(words, n, codes)
        added = added or (source.soft and said in t.hedges)
        after: dict[int, frozenset[int]] = {}
        for last, taken in states.items():
            for k in range(last + 1, len(source.words)):
                if t.same(words, n, source.words, k):
                    after.setdefault(k, taken | {k})
                    if not t.every:
                        break  # the first such word: a later one only leaves out more
            if added:
                after.setdefault(last, taken)
        if not after:
            break
        states = after
        if t.ends(words, n):
            out |= {n + 1 for taken in states.values() if taken and source.whole(taken, t)}
    return frozenset(out)


@lru_cache(maxsize=1024)
def _sources(item: Item, lang: str) -> tuple[Source, ...]:
    t = xw.TONGUES[lang]
    about = frozenset(w.said for w in t.words(" ".join((item.where, *item.members))) if w.said.startswith("{"))
    names = [item.what, *t.named(item.what, item.where)] if item.where else [item.what]
    if item.kind is not Kind.FINDING:
        return (
            *_led(item, names, t),
            *(Source(t.words(x), follows=True) for x in names if item.kind in (Kind.RULED_OUT, Kind.UNSEEN)),
        )
    unsure = item.certainty in ("probable", "possible")
    out = [Source(t.words(x), name=True, doubtful=unsure, soft=unsure, more=about) for y in names for x in t.apart(y)]
    out += [
        Source(t.words(x), soft=unsure)
        for y in item.seen
        for x in (y, y.removesuffix(": yes"), *t.pronouns(y, item.where))
    ]
    for text in item.background:
        parts = [x for y in sentences(text, lang) for x in t.apart(y)]
        out += [Source(t.words(x), doubtful=unsure, soft=unsure, more=about) for x in parts]
    deeds = [part for text in (*item.actions, *item.then) for x in sentences(text, lang) for part in t.orders(x)]
    for n, part in enumerate(deeds):
        out += [Source(t.words(x, deed=True), deed=True, more=about, order=n) for x in (part, *t.passive(part))]
    if item.standing:
        out.append(Source(t.words(item.standing), more=about | t.things, good=item.standing.startswith(t.usable)))
    return tuple(out)


def _led(item: Item, names: list[str], t: Tongue) -> tuple[Source, ...]:
    """What is no finding, told as what it is."""
    out = []
    for lead in _LEADS[item.kind][t.lang]:
        must = frozenset(w.said for w in t.words(lead.format("")) if w.said not in t.free)
        out += [Source(t.words(lead.format(x)), must=must) for x in names]
    return tuple(out)
