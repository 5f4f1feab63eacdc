"""What is known: the observations of one diagnosis, indexed for the rules.

Building it settles which value counts: within a source the newest, measured over told,
hypothetical over everything. Two sources that measured different states leave the fact
unknown, and the contradiction is kept for the report.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from heapq import merge
from itertools import combinations
from typing import NamedTuple

from knowledge.facts import Kind, Vocabulary
from knowledge.observation import Clock, Event, Observation, Origin, Scope, Series, Status, Subject, Value, latest
from knowledge.record import dataclass
from rules.condition import Condition
from rules.proof import Proof

# What is not part of one node; a relation that names such a thing says nothing about where it is.
_OFF_NODE = frozenset(
    {Scope.CLUSTER, Scope.RACK, Scope.SWITCH, Scope.JOB, Scope.RANK, Scope.COLLECTIVE, Scope.DOCUMENT,
     Scope.OBJECT, Scope.TEAM}
)  # fmt: skip
# Times of different clocks are never ordered; between two values of one moment the better known time counts.
_CLOCKS = {clock: rank for rank, clock in enumerate(reversed(Clock))}
_RANK = {Origin.HYPOTHETICAL: 3, Origin.MEASURED: 2, Origin.DERIVED: 2, Origin.TOLD: 1}


@dataclass(frozen=True, slots=True)
class Conflict:
    """Two sources that contradict each other about one state."""

    first: Observation
    second: Observation


def sort_key(o: Observation) -> tuple[object, ...]:
    """A total order that does not depend on the order of arrival: only equal observations share a key."""
    return (
        *_place(o),
        _words(o.value),
        (o.status, o.origin, o.source.probe, o.source.revision, repr(o.window), o.detail, o.excerpt),
    )


def _place(o: Observation) -> tuple[int, int, int, str, int]:
    """When it was and where it stands, by which most are told apart."""
    return _CLOCKS[o.clock], o.at if o.at is not None else -1, o.source.order, o.source.call, o.source.line or 0


def _words(value: Value) -> str:
    """The same text for equal values: the order in which an event's fields were noted says nothing."""
    return f"{value.code} {sorted(value.fields.items())}" if isinstance(value, Event) else repr(value)


def subject_key(subject: Subject) -> str:
    """A total order of subjects. Their names alone are none: each node may have a GPU 0000:3b:00.0."""
    path = "/".join(f"{s.scope}={s.id}" for s in subject.ancestors())
    return f"{subject.scope}:{subject.host}:{subject}:{path}"


class FactBase:
    """Immutable after construction."""

    def __init__(
        self,
        observations: Iterable[Observation],
        vocabulary: Vocabulary,
        as_of: int | None = None,
        *,
        ages: bool = True,
    ) -> None:
        """`ages`: whether a value is stale once it is older at `as_of` than its fact allows; of files a newer one ages no other."""
        self.vocabulary = vocabulary
        self.as_of = as_of
        self.ages = ages
        groups = set_once(self._sound(o) for o in observations)
        self.observations = tuple(Keyed(o, fact) for (fact, _), group in groups.items() for o in group)
        self._by_key: Mapping[tuple[str, Subject], Sequence[Observation]] = groups
        self._by_scope: dict[Scope, dict[Subject, None]] = defaultdict(dict)
        self._parts: dict[tuple[Subject, Scope], dict[Subject, None]] = defaultdict(dict)
        self._events: dict[str, list[Observation]] = defaultdict(list)
        self._silences: dict[tuple[str, Subject], list[Observation]] = {}  # of keys that have events
        self._events_at: dict[tuple[str, Subject], list[Observation]] = defaultdict(list)
        self._by_code: dict[tuple[str, Subject], dict[int | None, list[int]]] = {}
        self._events_within: dict[tuple[str, Subject], list[Observation]] = defaultdict(list)
        self._relations: dict[Subject, set[Subject]] = defaultdict(set)
        self._conflicts: dict[tuple[str, Subject], Conflict] = {}
        self._current: dict[tuple[str, Subject], Observation | None] = {}
        self._series: dict[tuple[str, Subject], tuple[Series, list[Observation]]] = {}
        self._subjects: dict[Scope, list[Subject]] = {}
        self.proofs: dict[tuple[int, Subject], tuple[Condition, Proof]] = {}  # see `evaluate.proof_of`
        self._undone = {
            key
            for key, group in groups.items()
            for o in group
            if o.origin is Origin.HYPOTHETICAL and o.status is Status.NONE_SEEN
        }
        for subject in {subject: None for _, subject in groups}:
            self._place(subject)
        for key, group in groups.items():
            if any(isinstance(o.value, Event) for o in group):
                self._add_events(key, group)
        self.facts = frozenset(fact for fact, _ in groups)
        kinds = {fact: vocabulary[fact].kind for fact in self.facts}
        for (fact, _), group in groups.items():  # once all subjects are known: a relation names its other end by id
            if kinds[fact] is Kind.RELATION:
                for o in group:
                    self._tie(o)

    def _sound(self, o: Observation) -> Observation:
        """`o`, but FAILED when its value is none that the fact can have: no rule compares such a value.

        Events stay as they are: a field that the vocabulary lacks must not hide that something happened.
        A fact that the vocabulary lacks is a bug (UndeclaredFactError): no rule knows it, and counted it would reassure.
        """
        spec = self.vocabulary.told(o)
        if o.status is not Status.OK or (isinstance(o.value, Event) and spec.kind is Kind.EVENT):
            return o
        if o.value is not None and spec.accepts(o.value):
            return o
        return replace(o, status=Status.FAILED, value=None, detail=f"{o.value!r} is not a {spec.type} of {o.fact}")

    def _place(self, subject: Subject) -> None:
        """Note a subject and what it is part of."""
        for s in subject.ancestors():
            if s in self._by_scope[s.scope]:
                return  # and with it all that it is part of
            self._by_scope[s.scope][s] = None
            for whole in s.ancestors():
                self._parts[whole, s.scope].setdefault(s)

    def _add_events(self, key: tuple[str, Subject], group: Iterable[Observation]) -> None:
        self._silences[key] = []
        for o in group:
            if not isinstance(o.value, Event):
                self._silences[key].append(o)
            elif not self._is_undone(o):
                self._events[o.fact].append(o)
                self._events_at[key].append(o)
                for s in o.subject.ancestors():
                    self._events_within[o.fact, s].append(o)

    def _is_undone(self, o: Observation) -> bool:
        """Whether "what if nothing of the kind had been seen" takes this event away."""
        return (
            bool(self._undone)
            and o.origin is not Origin.HYPOTHETICAL
            and any((o.fact, s) in self._undone for s in o.subject.ancestors())
        )

    def _tie(self, o: Observation) -> None:
        if o.status is Status.OK and isinstance(o.value, str):
            scope, _, identifier = o.value.partition(":")
            other = self._named(Scope(scope), identifier, o.subject.host)
            if other is not None:
                self._relations[o.subject].add(other)
                self._relations[other].add(o.subject)

    def _named(self, scope: Scope, identifier: str, host: str) -> Subject | None:
        """The subject that a relation names, a part of a GPU with that (``3@gpu:0000:3b:00.0``); None when several could be meant
        (rank 3 of which job?).
        """
        identifier, _, whole = identifier.partition("@gpu:")
        called = [
            s
            for s in self._by_scope.get(scope, ())
            if s.id == identifier and (not whole or (s.parent is not None and s.parent.id == whole))
        ]
        known = [s for s in called if s.host == host] or [s for s in called if not s.host or not host]
        if known:
            return known[0] if len(known) == 1 else None
        if scope is Scope.NODE:
            return Subject(scope, identifier)
        here = None if scope in _OFF_NODE else Subject(Scope.NODE, host)
        return Subject(scope, identifier, Subject(Scope.GPU, whole, here) if whole else here)

    @cached_property
    def conflicts(self) -> tuple[Conflict, ...]:
        """Every contradiction between sources, whether or not a rule has asked for the fact."""
        for key in self._by_key:
            self.current(*key)
        return tuple(self._conflicts[key] for key in self._by_key if key in self._conflicts)

    @cached_property
    def valued(self) -> frozenset[str]:
        """The facts of which anybody gave a value."""
        return frozenset(k.fact for k in self.observations if k.inner.status is Status.OK)

    def subjects(self, scope: Scope) -> Sequence[Subject]:
        """All subjects of `scope` that any observation is about, or part of."""
        if scope not in self._subjects:
            self._subjects[scope] = sorted(self._by_scope.get(scope, ()), key=subject_key)
        return self._subjects[scope]

    def events(self, fact: str) -> Sequence[Observation]:
        """All events of one kind, in order of time and line."""
        return self._events.get(fact, ())

    def events_within(self, fact: str, subject: Subject) -> Sequence[Observation]:
        """Events of one kind about `subject` or a part of it."""
        return self._events_within.get((fact, subject), ())

    def events_coded(self, fact: str, subject: Subject, codes: frozenset[int]) -> Iterator[Observation]:
        """Of the events about `subject` or a part of it those with one of `codes`, and those that tell no code."""
        events = self.events_within(fact, subject)
        places = self._by_code.get((fact, subject))
        if places is None:
            places = self._by_code[fact, subject] = defaultdict(list)
            for i, o in enumerate(events):
                assert isinstance(o.value, Event)
                places[o.value.code].append(i)
        wanted = [places[code] for code in (*codes, None) if code in places]
        return (events[i] for i in (wanted[0] if len(wanted) == 1 else merge(*wanted)))

    def silences(self, fact: str, subject: Subject) -> Sequence[Observation]:
        """What is known of events of one kind about exactly `subject`, besides those that were seen."""
        key = (fact, subject)
        return self._silences[key] if key in self._silences else self._by_key.get(key, ())

    def events_at(self, fact: str, subject: Subject) -> Sequence[Observation]:
        """Events of one kind about exactly `subject`."""
        return self._events_at.get((fact, subject), ())

    def of(self, fact: str, subject: Subject) -> Sequence[Observation]:
        """Every observation of `fact` about exactly `subject`."""
        return self._by_key.get((fact, subject), ())

    def related(self, subject: Subject, scope: Scope) -> list[Subject]:
        """Subjects of `scope` one step away: what it is part of, its parts, or by relation."""
        if up := subject.up(scope):
            return [up]
        tied = [s for s in self._relations.get(subject, ()) if s.scope is scope]
        return sorted({*self._parts.get((subject, scope), ()), *tied}, key=subject_key)

    def below(self, subject: Subject, scope: Scope) -> list[Subject]:
        """Parts of `subject` that are of `scope`."""
        return sorted((s for s in self._parts.get((subject, scope), ()) if s != subject), key=subject_key)

    def read_up(self, fact: str, subject: Subject) -> tuple[Subject, Observation | None]:
        """The settled observation of `fact` on the subject or the nearest enclosing one that has any."""
        here: Subject | None = subject
        while here is not None:
            if (fact, here) in self._by_key:
                return here, self.current(fact, here)
            here = here.parent
        return subject, None

    def current(self, fact: str, subject: Subject) -> Observation | None:
        """The observation that counts now; None when there is none at all."""
        key = (fact, subject)
        if key not in self._current:
            self._current[key] = self._settle(key, self._by_key.get(key, ()))
        return self._current[key]

    def _settle(self, key: tuple[str, Subject], candidates: Sequence[Observation]) -> Observation | None:
        if not candidates:
            return None
        if len(candidates) == 1:
            (only,) = candidates
            return self._aged(only) if only.status.answered else only
        newest = self._newest(candidates)
        if not newest:
            candidates = [o for o in candidates if o.origin is Origin.HYPOTHETICAL] or candidates
            return max([self._aged(o) for o in candidates if o.status.answered] or candidates, key=sort_key)
        chosen = max(newest, key=sort_key)
        if self.vocabulary[chosen.fact].kind is Kind.STATE and chosen.origin is not Origin.HYPOTHETICAL:
            for other in newest:
                if _contradicts(other, chosen):
                    self._conflicts[key] = Conflict(other, chosen)
                    return replace(
                        chosen,
                        status=Status.FAILED,
                        value=None,
                        detail=f"sources disagree: {other.value} ({other.source}) and {chosen.value} ({chosen.source})",
                    )
        return chosen

    def _newest(self, candidates: Sequence[Observation]) -> list[Observation]:
        """Of each source that has an answer the newest, of the origin that counts most; what is in one file is one source."""
        candidates = [o for o in candidates if o.origin is Origin.HYPOTHETICAL] or candidates
        fresh = [o for o in map(self._aged, candidates) if o.status.answered]
        rank = max((_RANK[o.origin] for o in fresh), default=0)
        by_source: dict[str, list[Observation]] = defaultdict(list)
        for o in fresh:
            if _RANK[o.origin] == rank:
                by_source[source_of(o)].append(o)
        return [latest(group) for group in by_source.values()]

    @cached_property
    def disputes(self) -> Mapping[tuple[str, Subject], Sequence[Observation]]:
        """What each source says last of a value of which two say different things of the same moment. Events do not dispute."""
        found = {}
        for key, group in self._by_key.items():
            if len(group) > 1 and self.vocabulary[key[0]].kind not in (Kind.EVENT, Kind.RELATION):
                newest = [o for o in self._newest(group) if o.origin is not Origin.HYPOTHETICAL]
                if self.vocabulary[key[0]].kind is Kind.GAUGE:
                    newest = _last_looks(newest)
                if len(newest) > 1 and (
                    any(_differ(a, b) for a, b in combinations(newest, 2)) or _samples_differ(group)
                ):
                    found[key] = newest
        return found

    def _aged(self, o: Observation) -> Observation:
        max_age = self.vocabulary[o.fact].max_age
        if (
            self.ages
            and max_age
            and self.as_of is not None
            and o.at is not None
            and o.clock is Clock.REALTIME
            and self.as_of - o.at > max_age
        ):
            return replace(o, status=Status.STALE, detail=f"{(self.as_of - o.at) / 1e9:.0f} s old")
        return o

    def series(self, fact: str, subject: Subject) -> tuple[Series, list[Observation]]:
        """All samples of a number over time, of the one source and clock that gave most of them.

        Samples of two sources never stand in one series: the step from one to the other is no change.
        """
        key = (fact, subject)
        if key not in self._series:
            self._series[key] = _sampled(self._by_key.get(key, ()))
        return self._series[key]


def _sampled(group: Sequence[Observation]) -> tuple[Series, list[Observation]]:
    """`FactBase.series` of what is told of one fact of one subject."""
    here = [o for o in group if o.status is Status.OK]
    for o in here:
        if isinstance(o.value, Series):
            return _numbers(o.value), [o]
    groups: dict[tuple[int, Clock, str], dict[int, Observation]] = defaultdict(dict)
    for o in here:
        if o.at is not None and isinstance(o.value, int | float):
            groups[_RANK[o.origin], o.clock, o.source.probe][o.at] = o  # sorted: the last one of a time stays
    if not groups:
        return Series((), ()), here
    best = max(groups, key=lambda g: (g[0], len(groups[g]), g))
    kept = [o for _, o in sorted(groups[best].items())]
    times = tuple(sorted(groups[best]))
    return Series(times, tuple(float(o.value) for o in kept if isinstance(o.value, int | float))), kept


def _numbers(series: Series) -> Series:
    """`series` without the samples that hold no number."""
    if not any(math.isnan(v) for v in series.values):
        return series
    kept = [(t, v) for t, v in zip(series.times, series.values, strict=True) if not math.isnan(v)]
    return Series(tuple(t for t, _ in kept), tuple(v for _, v in kept))


def source_of(o: Observation) -> str:
    """What counts as one voice: a file or a call, whichever parser read it."""
    return o.source.call or o.source.probe


def _contradicts(a: Observation, b: Observation) -> bool:
    return a.status is b.status and _differ(a, b)


def _differ(a: Observation, b: Observation) -> bool:
    """Whether two answers are not the same; that there is none of something is an answer."""
    return (a.status, a.value) != (b.status, b.value) and _same_moment(a, b)


def _samples_differ(group: Sequence[Observation]) -> bool:
    """Whether two sources give different samples of one instant."""
    at: dict[tuple[Clock, int], tuple[str, Value]] = {}
    for o in group:
        if o.at is not None and o.status is Status.OK:
            source, value = at.setdefault((o.clock, o.at), (source_of(o), o.value))
            if value != o.value and source != source_of(o):
                return True
    return False


def _last_looks(newest: Sequence[Observation]) -> list[Observation]:
    """Of what one tool read at several times the last: a gauge that moved from one look to the next is no dispute."""
    last: dict[tuple[str, Clock], int] = defaultdict(int)
    for o in newest:
        last[o.source.probe, o.clock] = max(last[o.source.probe, o.clock], o.at or 0)
    return [o for o in newest if o.at is None or o.at == last[o.source.probe, o.clock]]


def _same_moment(a: Observation, b: Observation) -> bool:
    """False only when the two were clearly taken at different times (a state may change)."""
    if a.at is None or b.at is None or a.clock is not b.clock:
        return True
    return abs(a.at - b.at) < 60 * 10**9


class Keyed(NamedTuple):
    """An observation among those of a fact base."""

    inner: Observation
    fact: str


def set_once(observations: Iterable[Observation]) -> dict[tuple[str, Subject], list[Observation]]:
    """Each observation once (a file that was given twice does not count twice), by fact and subject, in order."""
    groups: dict[tuple[str, Subject], list[Observation]] = defaultdict(list)
    for o in observations:
        groups[o.fact, o.subject].append(o)
    places = {subject: subject_key(subject) for subject in {subject for _, subject in groups}}
    ordered = sorted(groups, key=lambda key: (key[0], places[key[1]]))
    return {key: groups[key] if len(groups[key]) == 1 else _once(groups[key]) for key in ordered}


def _once(group: Iterable[Observation]) -> list[Observation]:
    places: dict[tuple[int, int, int, str, int], list[Observation]] = {}
    for o in group:
        places.setdefault(_place(o), []).append(o)
    return [o for place in sorted(places) for o in _apart(places[place])]


def _apart(group: Sequence[Observation]) -> Iterable[Observation]:
    """Those of one place."""
    if len(group) == 1:
        return group
    seen: dict[tuple[object, ...], Observation] = {}
    for o in group:
        seen.setdefault(sort_key(o), o)
    return [seen[key] for key in sorted(seen)]
