"""Who can still tell what: the probes that have not run, and people.

A probe that ran and could not tell (denied, unsupported, failed) is not asked again: what can be told is what a
probe that has not run provides, or what follows from it. And a probe that tells a fact of one subject tells it of
every subject there is, if only why it cannot: what one probe has told of some, no other tells of more.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import lru_cache

from knowledge.facts import Kind, Vocabulary
from knowledge.observation import Origin, Scope, Status
from probes.live import ProbeSpec
from rules.factbase import FactBase


def waiting(available: Sequence[ProbeSpec], ran: Collection[str], facts: FactBase) -> list[ProbeSpec]:
    """Of `available` those that may be run now, ordered by name.

    A stand-in only when the probe that it stands in for ran and gave no answer; after a hang it would hang too.
    """
    names = {spec.name: spec for spec in available}
    out = []
    for spec in sorted(available, key=lambda s: s.name):
        if spec.name in ran:
            continue
        first = names.get(spec.instead_of)
        if spec.instead_of and (
            (first is not None and first.name not in ran)
            or (spec.instead_of in ran and not _silent(first or spec, facts))
        ):
            continue
        out.append(spec)
    return out


def _silent(spec: ProbeSpec, facts: FactBase) -> bool:
    """Whether a probe that ran gave no answer: its main facts say why, and not that it hung."""
    seen = [o.inner.status for o in facts.observations if o.fact in spec.main]
    return not any(status.answered or status is Status.TIMEOUT for status in seen)


@lru_cache(maxsize=4)
def _bases(vocabulary: Vocabulary) -> Mapping[str, frozenset[str]]:
    """Of each fact that is worked out those that it is worked out from, the ones in between left out."""
    inputs = {spec.name: spec.derived_from for spec in vocabulary.having("derived_from")}
    found = {}
    for fact in inputs:
        bases, stack, seen = set[str](), [fact], set[str]()
        while stack:
            here = stack.pop()
            if here in seen:
                continue
            seen.add(here)
            stack += inputs.get(here, ())
            if here != fact and not inputs.get(here):
                bases.add(here)
        found[fact] = frozenset(bases)
    return found


class Tellers:
    """Facts that somebody can still tell."""

    def __init__(self, probes: Iterable[ProbeSpec], facts: FactBase, vocabulary: Vocabulary) -> None:
        self._provides = {spec.name: frozenset(spec.provides) for spec in probes}
        self._bases = _bases(vocabulary)
        self._vocabulary = vocabulary
        told = {o.fact for o in facts.observations if o.inner.origin is Origin.TOLD}
        self.asked = {s.name for s in vocabulary.having("ask") if s.name not in told}
        self._fill()

    def _fill(self) -> None:
        self._by: dict[str, set[str]] = {}
        for name, provides in self._provides.items():
            for fact in provides:
                self._by.setdefault(fact, set()).add(name)
        for name in self._bases:
            given = set[str]().union(*(self._by.get(base, ()) for base in self._bases[name]))
            if given:
                self._by[name] = self._by.get(name, set()) | given
        self._ties = [s for s in self._vocabulary.having("kind", Kind.RELATION) if s.name in self._by]
        self.askable = {name for name in self.asked if name not in self._by}
        self.facts = frozenset(self._by) | self.askable
        self._by_scope: dict[Scope, set[str]] = {}

    def of_others(self, facts: FactBase) -> Tellers:
        """What can be told of subjects that nobody has named yet: what no probe has told of any subject."""
        measured = {
            o.fact for o in facts.observations
            if o.inner.origin is Origin.MEASURED and not o.inner.source.call.startswith("history:")
        }  # fmt: skip
        told = {name for name in measured if (spec := self._vocabulary.get(name)) and spec.kind is not Kind.EVENT}
        out = object.__new__(Tellers)
        out._provides = {name: provides - told for name, provides in self._provides.items()}
        out._bases, out._vocabulary, out.asked = self._bases, self._vocabulary, self.asked
        out._fill()
        return out

    def of_scope(self, scope: Scope) -> frozenset[str]:
        """Facts about subjects of `scope` that can be told: who tells one names such a subject."""
        if not self._by_scope:
            for fact in self.facts:
                spec = self._vocabulary.get(fact)
                if spec is not None:
                    self._by_scope.setdefault(spec.scope, set()).add(fact)
        return frozenset(self._by_scope.get(scope, ()))

    def of(self, fact: str) -> Collection[str]:
        """Names of the probes that can tell `fact`, or something that it follows from."""
        return self._by.get(fact, ())

    def given(self, probe: str, fact: str) -> list[str]:
        """What exactly a probe tells of `fact`: itself, or what it follows from."""
        provides = self._provides[probe]
        if fact in provides:
            return [fact]
        return sorted(self._bases.get(fact, frozenset()) & provides)

    def ties(self, path: Iterable[Scope], start: Scope) -> set[str]:
        """Relations that a path goes along and that a probe can still tell."""
        ends = {start, *path}
        return {s.name for s in self._ties if s.scope in ends}
