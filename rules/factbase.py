"""What is known: the observations of one diagnosis, indexed for the rules.

Building it settles which value counts: within a source the newest, measured over told,
hypothetical over everything. Two sources that measured different states leave the fact
unknown, and the contradiction is kept for the report.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from knowledge.facts import Kind, Vocabulary
from knowledge.observation import Clock, Event, Observation, Origin, Scope, Series, Status, Subject

_RANK = {Origin.HYPOTHETICAL: 3, Origin.MEASURED: 2, Origin.DERIVED: 2, Origin.TOLD: 1}


@dataclass(frozen=True, slots=True)
class Conflict:
    """Two sources that contradict each other about one state."""

    first: Observation
    second: Observation


def sort_key(o: Observation) -> tuple[str, int, str, int, str]:
    """A total order that does not depend on the order of arrival."""
    return (o.clock, o.at if o.at is not None else -1, o.source.call, o.source.line or 0, repr(o.value))


class FactBase:
    """Immutable after construction."""

    def __init__(self, observations: Iterable[Observation], vocabulary: Vocabulary, as_of: int | None = None) -> None:
        self.vocabulary = vocabulary
        self.as_of = as_of
        self.observations = tuple(
            sorted(set_once(observations), key=lambda o: (o.fact, o.subject_key, *sort_key(o.inner)))
        )
        self._by_key: dict[tuple[str, Subject], list[Observation]] = defaultdict(list)
        self._by_scope: dict[Scope, dict[Subject, None]] = defaultdict(dict)
        self._events: dict[str, list[Observation]] = defaultdict(list)
        self._relations: dict[Subject, set[Subject]] = defaultdict(set)
        self.conflicts: list[Conflict] = []
        self._current: dict[tuple[str, Subject], Observation | None] = {}
        for o in (k.inner for k in self.observations):
            self._add(o)
        self.facts = frozenset(fact for fact, _ in self._by_key)

    def _add(self, o: Observation) -> None:
        self._by_key[o.fact, o.subject].append(o)
        for s in o.subject.ancestors():
            self._by_scope[s.scope].setdefault(s)
        spec = self.vocabulary.get(o.fact)
        if isinstance(o.value, Event):
            self._events[o.fact].append(o)
        if spec and spec.kind is Kind.RELATION and o.status is Status.OK and isinstance(o.value, str):
            scope, _, identifier = o.value.partition(":")
            for other in self._named(Scope(scope), identifier, o.subject.host):
                self._relations[o.subject].add(other)
                self._relations[other].add(o.subject)

    def _named(self, scope: Scope, identifier: str, host: str) -> list[Subject]:
        known = [s for s in self._by_scope.get(scope, ()) if s.id == identifier and s.host in (host, "")]
        return known or [Subject(scope, identifier, Subject(Scope.NODE, host))]

    def subjects(self, scope: Scope) -> list[Subject]:
        """All subjects of `scope` that any observation is about, or part of."""
        return sorted(self._by_scope.get(scope, ()), key=str)

    def events(self, fact: str) -> Sequence[Observation]:
        """All events of one kind, in order of time and line."""
        return self._events.get(fact, ())

    def of(self, fact: str, subject: Subject) -> Sequence[Observation]:
        """Every observation of `fact` about exactly `subject`."""
        return self._by_key.get((fact, subject), ())

    def related(self, subject: Subject, scope: Scope) -> list[Subject]:
        """Subjects of `scope` one step away: what it is part of, its parts, or by relation."""
        if up := subject.up(scope):
            return [up]
        below = [s for s in self._by_scope.get(scope, ()) if subject in s.ancestors()]
        tied = [s for s in self._relations.get(subject, ()) if s.scope is scope]
        return sorted({*below, *tied}, key=str)

    def below(self, subject: Subject, scope: Scope) -> list[Subject]:
        """Parts of `subject` that are of `scope`."""
        return [s for s in self.subjects(scope) if s != subject and subject in s.ancestors()]

    def read_up(self, fact: str, subject: Subject) -> tuple[Subject, Observation | None]:
        """The settled observation of `fact` on the subject or the nearest enclosing one that has any."""
        for s in subject.ancestors():
            if (fact, s) in self._by_key:
                return s, self.current(fact, s)
        return subject, None

    def current(self, fact: str, subject: Subject) -> Observation | None:
        """The observation that counts now; None when there is none at all."""
        key = (fact, subject)
        if key not in self._current:
            self._current[key] = self._settle(self._by_key.get(key, []))
        return self._current[key]

    def _settle(self, candidates: Sequence[Observation]) -> Observation | None:
        if not candidates:
            return None
        answered = [self._aged(o) for o in candidates if o.status.answered]
        fresh = [o for o in answered if o.status.answered]
        if not fresh:
            return max(answered or candidates, key=sort_key)
        rank = max(_RANK[o.origin] for o in fresh)
        best = [o for o in fresh if _RANK[o.origin] == rank]
        newest: dict[tuple[str, str], Observation] = {}
        for o in best:  # sorted by time: the last one of each source stays
            newest[o.source.probe, o.source.call] = o
        chosen = max(newest.values(), key=sort_key)
        spec = self.vocabulary.get(chosen.fact)
        if spec and spec.kind is Kind.STATE and rank != _RANK[Origin.HYPOTHETICAL]:
            for other in newest.values():
                if other.value != chosen.value and other.status is chosen.status and _same_moment(other, chosen):
                    self.conflicts.append(Conflict(other, chosen))
                    return replace(
                        chosen,
                        status=Status.FAILED,
                        value=None,
                        detail=f"sources disagree: {other.value} ({other.source}) and {chosen.value} ({chosen.source})",
                    )
        return chosen

    def _aged(self, o: Observation) -> Observation:
        spec = self.vocabulary.get(o.fact)
        if (
            spec
            and spec.max_age
            and self.as_of is not None
            and o.at is not None
            and o.clock is Clock.REALTIME
            and self.as_of - o.at > spec.max_age
        ):
            return replace(o, status=Status.STALE, detail=f"{(self.as_of - o.at) / 1e9:.0f} s old")
        return o

    def series(self, fact: str, subject: Subject) -> tuple[Series, list[Observation]]:
        """All samples of a number over time, of the clock that most samples carry."""
        here = [o for o in self._by_key.get((fact, subject), ()) if o.status is Status.OK]
        for o in here:
            if isinstance(o.value, Series):
                return o.value, [o]
        by_clock: dict[Clock, list[Observation]] = defaultdict(list)
        for o in here:
            if o.at is not None and isinstance(o.value, int | float):
                by_clock[o.clock].append(o)
        if not by_clock:
            return Series((), ()), here
        samples = max(by_clock.values(), key=lambda group: (len(group), group[0].clock))
        unique = {o.at: o for o in samples}
        kept = [unique[at] for at in sorted(t for t in unique if t is not None)]
        return Series(tuple(o.at or 0 for o in kept), tuple(float(o.value) for o in kept)), kept  # type: ignore[arg-type]


def _same_moment(a: Observation, b: Observation) -> bool:
    """False only when the two were clearly taken at different times (a state may change)."""
    if a.at is None or b.at is None or a.clock is not b.clock:
        return True
    return abs(a.at - b.at) < 60 * 10**9


@dataclass(frozen=True, slots=True)
class _Keyed:
    inner: Observation
    fact: str
    subject_key: str


def set_once(observations: Iterable[Observation]) -> list[_Keyed]:
    """Each observation once: a file that was given twice does not count twice."""
    seen: dict[str, _Keyed] = {}
    for o in observations:
        seen.setdefault(repr(o), _Keyed(o, o.fact, f"{o.subject.scope}:{o.subject.host}:{o.subject}"))
    return list(seen.values())
