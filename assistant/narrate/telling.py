"""Whether a narration tells statements of the findings, each where it means what it means there.

A sentence of ours that is true in its place misleads in another: "this GPU" behind the measurement of a neighbour, the action of one
finding behind the name of another, the third sentence of a page without the first. So a narration tells of one finding at a time: its
name first, then what belongs to it, in the order of its page, until the name of another begins. What explains what is told in one
form only, and only as the rules have it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from enum import Enum
from typing import NamedTuple

from assistant.narrate.material import Item, Kind
from assistant.narrate.placeholders import kind_of
from assistant.narrate.sentence import Sentence
from assistant.narrate.statements import Parts, Statements, Words, statements, words
from assistant.narrate.wording import sentences
from knowledge.record import dataclass


class _Tongue(NamedTuple):
    """What joins statements in a language, as words."""

    more: tuple[Words, ...]  # between a finding and what was measured of it
    other: tuple[Words, ...]  # between the names of two findings
    listing: tuple[Words, ...]  # between the names of a list
    also: tuple[Words, ...]  # before a name
    explains: tuple[Words, ...]  # in a sentence of its own, behind that of the name
    again: tuple[Words, ...]  # behind such a sentence
    which: tuple[Words, ...]  # behind the name
    doubts: tuple[Words, ...]  # before or after "explains", where the cause is not sure


def _all(lang: str, *texts: str) -> tuple[Words, ...]:
    return tuple(words(t, lang) for t in texts)


_TONGUES = {
    "en": _Tongue(
        more=_all("en", ":", ";", "and", ", and", "; and"), other=_all("en", ";"), listing=_all("en", ",", ";", "and", ", and", "; and"),
        also=_all("en", "", "also", "also,", "in addition,"), explains=_all("en", "this explains", "it explains"),
        again=_all("en", "this also explains", "it also explains"),
        which=_all("en", "; this explains", ", and this explains", "and this explains", ", which explains", "explains"),
        doubts=_all("en", "probably", "possibly"),
    ),
    "zh": _Tongue(
        more=_all("zh", "：", "；", "，"), other=_all("zh", "；"), listing=_all("zh", "、", "；", "，", "和", "以及", "及", "与"),
        also=_all("zh", "", "另外，", "此外，"), explains=_all("zh", "这解释了", "它解释了", "由此解释了"), again=_all("zh", "这也解释了", "它也解释了", "这还解释了"),
        which=_all("zh", "；这解释了", "，这解释了", "，解释了", "；由此解释了"),
        doubts=_all("zh", "很可能", "可能", "或许"),
    ),
}  # fmt: skip


class _Last(Enum):
    """What was told last."""

    NONE = "none"
    NAME = "name"
    MEASURED = "measured"
    PAGE = "page"
    EXPLAINS = "explains"
    USE = "use"
    ACTION = "action"
    THEN = "then"


_OPEN = (_Last.NAME, _Last.MEASURED, _Last.PAGE)  # behind these the page may go on


@dataclass(frozen=True, slots=True)
class Told:
    """Where a narration stands: which finding it tells of, and what of it was told."""

    item: str = ""
    named: bool = False  # by its name: what follows may say "this" and "it"
    placed: bool = False  # with the thing that it is about
    last: _Last = _Last.NONE
    pages: int = 0  # sentences of its page
    then: int = 0  # things to do afterwards
    left: tuple[Words, ...] = ()  # the rest of an action that has to follow
    wheres: frozenset[str] = frozenset()  # the things that findings were about so far


class _State(NamedTuple):
    """How far a sentence is read."""

    at: int
    told: Told
    items: frozenset[str]  # that it told of


def telling(s: Sentence, told: frozenset[Told]) -> frozenset[Told]:
    """Where the narration may stand behind `s`, of all the places where it may stand before it; none when `s` may not be told there."""
    states = {(t, frozenset[str]()) for t in told}
    for text in sentences(s.text, s.lang):
        said = words(text, s.lang)
        states = {(e.told, known | e.items) for t, known in states for e in _Reading(s, said, t).ends()}
    return frozenset(t for t, known in states if known == set(s.cites))


def whole(told: frozenset[Told]) -> bool:
    """Whether a narration may end there: no action is told in part."""
    return any(not t.left for t in told)


class _Reading:
    """One sentence. The ways to read it are few, and each is tried."""

    def __init__(self, s: Sentence, said: Words, told: Told) -> None:
        self._s, self._said, self._told, self._t = s, said, told, _TONGUES[s.lang]
        self._of: dict[str, Statements] = {i.id: statements(i, s.lang) for i in s.items}

    def ends(self) -> Iterator[_State]:
        """Each way in which all of it can be read."""
        return (state for state in self._ways(self._told) if state.at == len(self._said))

    def _ways(self, told: Told) -> Iterator[_State]:
        if told.left:
            if told.item in self._of:
                yield from (
                    self._to(told, e, told.item, told.last, left=told.left[1:]) for e in self._at(0, told.left[0])
                )
            return
        kinds = {i.kind for i in self._s.items}
        if kinds != {Kind.FINDING}:
            if len(kinds) == 1:
                yield from self._listed(told)
            return
        for item in self._s.items:
            yield from self._sentence(told, item, self._of[item.id])

    def _sentence(self, told: Told, item: Item, own: Statements) -> Iterator[_State]:
        here = told.named and told.item == item.id
        for at in (e for lead in self._t.also for e in self._at(0, lead)):
            yield from self._names(_State(at, told, frozenset()), item)
        for end in self._any(0, own.measured | (own.its if here and told.last in _OPEN else frozenset())):
            yield from self._measured(self._to(told, end, item.id, _Last.MEASURED), own)
        yield from (self._to(told, end, item.id, _Last.USE) for end in self._any(0, own.use))
        if self._may_act(told, item, own):
            yield from self._parts(told, item, own.action, _Last.ACTION)
        if told.item == item.id and told.last in (_Last.ACTION, _Last.THEN) and told.then < len(own.then):
            yield from self._parts(replace(told, then=told.then + 1), item, own.then[told.then], _Last.THEN)
        if here and told.last in _OPEN and told.pages < len(own.background):
            for end in self._any(0, own.background[told.pages]):
                yield self._to(told, end, item.id, _Last.PAGE, pages=told.pages + 1)
        if here and (leads := {_Last.NAME: self._t.explains, _Last.EXPLAINS: self._t.again}.get(told.last)):
            yield from self._explained(self._to(told, 0, item.id, told.last), item, leads)

    # --- names ----------------------------------------------------------------------------

    def _names(self, st: _State, item: Item) -> Iterator[_State]:
        """A name with what may follow it in its sentence."""
        own = self._of[item.id]
        for end in self._name(st, item, several=bool(st.items)):
            made = self._to(replace(st.told, item="") if st.told.item != item.id else st.told, end, item.id, _Last.NAME)
            told = replace(made.told, named=not st.items, placed=self._placed(item, st.at, end), pages=0, then=0)
            named = made._replace(told=told, items=st.items | {item.id})
            yield named
            for at in (e for join in self._t.other for e in self._at(end, join) if told.placed):
                for other in (i for i in self._s.items if i.id not in named.items and i.certainty == item.certainty):
                    yield from self._names(named._replace(at=at), other)
            if st.items:
                continue  # of several names nothing more is told in one sentence
            for join in self._t.more:
                for at in self._at(end, join):
                    for e in self._any(at, own.measured | own.its):
                        yield from self._measured(named._replace(at=e), own)
                    if join in ((":",), (";",)) and own.background:
                        page = replace(told, pages=1)
                        yield from (named._replace(at=e, told=page) for e in self._any(at, own.background[0]))
            yield from self._explained(named, item, self._t.which)

    def _placed(self, item: Item, begin: int, end: int) -> bool:
        """Whether a name was told with the thing that it is about."""
        return not item.where or bool({item.where, *item.members}.intersection(self._said[begin:end]))

    def _name(self, st: _State, item: Item, *, several: bool = False) -> Iterator[int]:
        """Where a name that begins here ends, with its codes. Behind other things it has its own thing with it."""
        own = self._of[item.id]
        strange = several or bool(st.told.wheres - {item.where})
        for end in self._any(st.at, own.names - own.bare if strange else own.names):
            yield end
            yield from self._codes(end, own, inside=False)
            for at in self._at(end, ("(",)):
                yield from (e for inner in self._codes(at, own, inside=True) for e in self._at(inner, (")",)))

    def _codes(self, at: int, own: Statements, *, inside: bool) -> Iterator[int]:
        """Codes, counts and times, each once. Outside of brackets a word says what they are."""
        todo: list[tuple[int, frozenset[str]]] = [(at, frozenset())]
        while todo:
            here, used = todo.pop()
            for part in own.codes:
                named = {w for w in part if w.startswith("{")}
                if named & used or (len(part) == 1 and not inside):
                    continue
                for end in self._at(here, part):
                    yield end
                    todo += [
                        (b, used | named)
                        for link in ((), (",",), ("and",), (",", "and"), (";",), ("、",))
                        for b in self._at(end, link)
                    ]

    def _measured(self, st: _State, own: Statements) -> Iterator[_State]:
        """One measurement, and further ones of the same finding."""
        yield st
        for at in (e for join in self._t.listing for e in self._at(st.at, join)):
            for end in self._any(at, own.measured):
                yield from self._measured(st._replace(at=end), own)

    # --- what explains what ---------------------------------------------------------------

    def _explained(self, st: _State, cause: Item, leads: tuple[Words, ...]) -> Iterator[_State]:
        """What the rules say that `cause` explains; of one that is not sure with a doubt."""
        doubts = self._t.doubts if cause.certainty in ("probable", "possible") else ((),)
        for lead in leads:
            verb = next(n for n, w in enumerate(lead) if w in ("explains", "解"))
            for doubt in doubts:
                for begin in self._at(st.at, (*lead[:verb], *doubt, *lead[verb:])):
                    yield from self._effects(st._replace(at=begin), cause)

    def _effects(self, st: _State, cause: Item) -> Iterator[_State]:
        """One effect with its thing and codes; or a list of names alone, none of which could be of another such thing."""
        effects = [i for i in self._s.items if i.id in cause.explains]
        for effect in effects:
            if not self._elsewhere(cause, effect):
                ends = self._name(st._replace(told=Told()), effect)
            elif st.told.placed:
                ends = self._name(st, effect, several=True)
            else:
                continue
            for end in ends:  # "the GPU" behind it could be another one
                named = not effect.where or effect.where == cause.where or not self._placed(effect, st.at, end)
                wheres = st.told.wheres if named else st.told.wheres | {effect.where}
                told = replace(st.told, named=named, last=_Last.EXPLAINS, wheres=wheres)
                yield _State(end, told, st.items | {effect.id})
        plain = {
            i.id: self._of[i.id].names & (self._of[i.id].bare if i.where else self._of[i.id].names)
            for i in effects if i.certainty == "confirmed" and not self._elsewhere(cause, i)
        }  # fmt: skip
        todo = [st]
        while todo:
            now = todo.pop()
            for known in (n for n in plain if n not in now.items):
                for end in self._any(now.at, plain[known]):
                    found = _State(end, replace(st.told, last=_Last.EXPLAINS), now.items | {known})
                    yield found
                    todo += [found._replace(at=e) for join in self._t.listing for e in self._at(end, join)]

    @staticmethod
    def _elsewhere(cause: Item, effect: Item) -> bool:
        """Whether an effect is on another thing of the same kind: without its name it would seem to be on that of the cause."""
        return effect.where != cause.where and bool(effect.where) and kind_of(effect.where) == kind_of(cause.where)

    # --- what is to be done ---------------------------------------------------------------

    def _may_act(self, told: Told, item: Item, own: Statements) -> bool:
        """Whether the action of `item` may stand here: behind its name, or where there is no other and nothing else was told of."""
        if told.item == item.id and told.named:
            return told.last not in (_Last.ACTION, _Last.THEN)
        alone = sum(bool(i.actions) for i in self._s.material.items) == 1
        return alone and not own.points and told.wheres <= {item.where}

    def _parts(self, told: Told, item: Item, parts: Parts, last: _Last) -> Iterator[_State]:
        for way in parts.ways:
            yield from (self._to(told, end, item.id, last, left=way[1:]) for end in self._at(0, way[0]))

    # --- what is no finding ---------------------------------------------------------------

    def _listed(self, told: Told) -> Iterator[_State]:
        """What was ruled out, was not seen, is undecided, was done or is open: behind the word for that, each of one kind."""
        leads = self._of[self._s.items[0].id].leads
        todo = [_State(e, Told(wheres=told.wheres), frozenset()) for lead in leads for e in self._at(0, lead)]
        while todo:
            st = todo.pop()
            for item in (i for i in self._s.items if i.id not in st.items):
                for end in self._any(st.at, self._of[item.id].listed):
                    found = st._replace(at=end, items=st.items | {item.id})
                    yield found
                    todo += [found._replace(at=e) for join in self._t.listing for e in self._at(end, join)]

    # --- words ----------------------------------------------------------------------------

    def _to(
        self, told: Told, at: int, item: str, last: _Last, *, pages: int | None = None, left: tuple[Words, ...] = ()
    ) -> _State:  # fmt: skip
        """Told of `item` now: without its name when it is another one than before."""
        where = self._s.material.by_id[item].where
        base = told if told.item == item else Told(item)
        made = replace(base, last=last, left=left, wheres=told.wheres | {where} if where else told.wheres)
        return _State(at, made if pages is None else replace(made, pages=pages), frozenset((item,)))

    def _at(self, at: int, part: Words) -> Iterator[int]:
        if self._said[at : at + len(part)] == part:
            yield at + len(part)

    def _any(self, at: int, parts: frozenset[Words]) -> Iterator[int]:
        for length in sorted({len(p) for p in parts}):
            if length and self._said[at : at + length] in parts:
                yield at + length
