"""Whether each clause is an extract of one sentence of a cited finding: its words, in its order, with nothing left out that turns its sense.

Words alone prove little, and even the right words in the right clause can be turned round: "the others wait for the missing rank",
"reset it when it recurs". So a narration may choose, shorten, order and join what the findings say, and no more. A sentence is taken
apart from left to right into extracts and what joins them. An extract is a sentence of ours from its beginning, in whole clauses:
left out may be a bracket and the clauses at its end; never a condition, a denial, or a part of what is to be done.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
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
_FOUND = frozenset((Kind.FINDING, Kind.DEED, Kind.OPEN))


@dataclass(frozen=True, slots=True)
class Source:
    """One sentence of ours, as a narration may tell it."""

    words: tuple[Word, ...]
    deed: bool = False  # it tells people to do something
    order: int = -1  # of a deed among those of its finding
    all: bool = False  # no part of it is left out
    points: bool = False  # it begins with "it" or "this": told behind its own finding alone
    seen: bool = False  # it was measured
    use: bool = False  # it says whether something can be used
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
        if (
            not told
            or full[0][1].clause not in told
            or (
                not (self.follows or self.must or self.all)
                and all(w.said.startswith("{") for k, w in full if k in taken)
            )
        ):
            return False
        first = {w.clause: w.said for _, w in reversed(full)}
        if not self.name and self._cut(max(told), t):
            return False
        for k, w in full:
            # What stands in brackets only adds, unless it names something else: "must be reset (or the node rebooted)".
            beside = w.clause >= 0 or (w.said in ("or", "或") and first[w.clause] not in t.suches)
            binds = beside and (w.said in t.conditions or w.clause < 0)
            if k not in taken and (self.all or binds or w.clause in told or w.said in self.must):
                return False
        then = {w.clause for w in self.words if w.said in t.thens}
        conditional = {c for c, word in first.items() if word in t.ifs and c not in then}
        return bool(told - conditional) or told == {w.clause for _, w in full}

    def _cut(self, last: int, t: Tongue) -> bool:
        """Whether what is told ends within a list: "a card, a riser" of "a card, a riser or a GPU"."""
        after = next((k for k, w in enumerate(self.words) if w.clause > last), None)
        if after is None or self.words[after].said in t.anew:
            return False
        return self.words[after - 1].said in (",", "，", "、")


class _At(NamedTuple):
    """How far a sentence has been taken apart. `cause`: what the words before say of it: the finding before causes the next ("on"), or
    the other way ("back")."""

    end: int
    item: str = ""  # which finding the last extract is of
    order: int = -1  # of the last deed of that finding: what is done later stands later
    cause: str = ""
    colon: bool = False  # what follows says more of the same finding
    source: Source | None = None  # of the last extract


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
            if s.material.usable == "yes" or not x.good
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
        codes = frozenset[str]().union(*(_codes(i, now.source) for i in self._s.items if now.item in ("", i.id)))
        found: set[_At] = set()
        if words[at].said in codes or t.counts(words, at, codes):
            found.add(now._replace(end=at + 1))
        for length, cause in t.joins(words, at):
            if not (cause and now.cause):
                colon = now.colon or (bool(now.item) and words[at].said in _COLONS)
                found.add(now._replace(end=at + length, cause=cause or now.cause, colon=colon))
        for n, (item, source) in enumerate(self._sources):
            after = self._caused(now, item)
            if after is None or not self._fits(now, item, source):
                continue
            if (n, at) not in self._ends:
                self._ends[n, at] = _ends(words, at, source, _codes(item, source), t)
            order = max(source.order, now.order) if item.id == now.item else source.order
            found |= {
                _At(end, item.id, order, after, words[end - 1].said in _COLONS, source) for end in self._ends[n, at]
            }
        return found

    def _fits(self, now: _At, item: Item, source: Source) -> bool:
        """Whether an extract of `source` may stand behind what was told last."""
        same = item.id == now.item
        before = self._s.material.by_id.get(now.item)
        if now.colon and not same:
            return False
        if source.points and not (same if before is not None else len(self._s.items) == 1):
            return False  # "it" would be something else
        if before is not None and before.kind is not item.kind and not {before.kind, item.kind} <= _FOUND:
            return False  # "ruled out" would be said of both
        if source.follows:
            return before is not None and not same and before.kind is item.kind
        return not (source.deed and same and source.order <= now.order)

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


def _codes(item: Item, source: Source | None) -> frozenset[str]:
    """What may stand in brackets: behind a deed its command, behind what was found its codes, times and count."""
    if source is not None and (source.deed or source.use):
        return frozenset(item.commands)
    when = (*item.times, item.count) if source is None or source.name or source.seen else ()
    return frozenset(c for c in (*item.codes, *when) if c)


def _ends(words: tuple[Word, ...], at: int, source: Source, codes: frozenset[str], t: Tongue) -> frozenset[int]:
    """Where an extract of `source` that begins at `at` may end."""
    if words[at].said in xw.STOPS:  # it joins, and begins nothing
        return frozenset()
    out, skip = set[int](), 0
    states: dict[tuple[int, bool], frozenset[int]] = {
        (-1, False): frozenset()
    }  # the last word told, doubted? -> all that were
    for n in range(at, len(words)):
        said = words[n].said
        skip = skip - 1 if skip else (t.being(words, n) if source.name else 0)
        doubt = source.soft and said in t.hedges
        behind = n > at and (words[n - 1].said in t.before or t.calls(words[n - 1].said, said))
        named = said in source.more and (n == at or behind or source.all or (t.lang == "zh" and source.name))
        added = bool(skip) or said in t.free or named or said in codes or t.counts(words, n, codes)
        after: dict[tuple[int, bool], frozenset[int]] = {}
        for (last, doubted), taken in states.items():
            for k in range(last + 1, len(source.words)):
                if t.same(words, n, source.words, k):
                    after.setdefault((k, doubted), taken | {k})
                    if not t.every:
                        break  # the first such word: a later one only leaves out more
            if added:
                after.setdefault((last, doubted), taken)
            if doubt:
                after.setdefault((last, doubted or said in t.doubting), taken)
        if not after:
            break
        states = after
        if t.ends(words, n) and not (said in t.doubting and n and words[n - 1].said in (*xw.STOPS, "可")):
            told = [taken for (_, doubted), taken in states.items() if taken and (doubted or not source.doubtful)]
            out |= {n + 1 for taken in told if source.whole(taken, t)}
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
        Source(t.words(x), soft=unsure, seen=True, all=True)
        for y in item.seen for x in (y, y.removesuffix(": yes"), *t.pronouns(y, item.where))
    ]  # fmt: skip
    for text in item.background:
        for y in sentences(text, lang):
            if y.partition(" ")[0].lower() in t.verbless:
                out.append(Source(t.words(f"it is {y}"), doubtful=unsure, soft=unsure, points=True))
            for z in t.apart(y):
                points = t.begins(z) if z == y else t.points(z)
                good = any(u in z.lower() for u in t.use)
                out += [
                    Source(t.words(x), doubtful=unsure, soft=unsure, points=points, good=good)
                    for x in (z, *t.in_place(z, item.where, known=True))
                ]
    deeds = [part for text in (*item.actions, *item.then) for x in sentences(text, lang) for part in t.orders(x)]
    for n, part in enumerate(deeds):
        good = any(u in part.lower() for u in t.use)
        out += [
            Source(t.words(x, deed=True), deed=True, all=True, order=n, good=good)
            for x in (part, *t.in_place(part, item.where), *t.passive(part))
        ]
    if item.standing:
        good = item.standing.startswith(t.usable)
        use = Source((), all=True, use=True, good=good, more=about | t.things)
        out += [replace(use, words=t.words(x)) for x in (item.standing, *t.standing(item.standing, item.where))]
    return tuple(out)


def _led(item: Item, names: list[str], t: Tongue) -> tuple[Source, ...]:
    """What is no finding, told as what it is."""
    out = []
    for lead in _LEADS[item.kind][t.lang]:
        must = frozenset(w.said for w in t.words(lead.format("")) if w.said not in t.free)
        out += [
            Source(t.words(lead.format(x)), must=must, all=item.kind in (Kind.RULED_OUT, Kind.UNSEEN)) for x in names
        ]
    return tuple(out)
