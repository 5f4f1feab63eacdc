"""Shared check: what a parser emits is in the vocabulary, and honest about what it has not got."""

from __future__ import annotations

import re
from collections.abc import Iterable

from knowledge.facts import FactSpec, Kind, vocabulary
from knowledge.observation import Event, Observation, Scope, Status, Value
from probes.base import Format

_CONTROL = re.compile(r"[\x00-\x08\x0a-\x1f\x7f-\x9f\u200b\u202e\u2066]")  # it moves a cursor or hides, and is no tab
# A log of a job that nobody names is about itself, a line of it about its rank, and what happens on the bus happens to the
# GPU that sits there.
_INSTEAD = {Scope.RANK: (Scope.DOCUMENT,), Scope.JOB: (Scope.DOCUMENT, Scope.RANK), Scope.PCI: (Scope.GPU,)}


def faults_of(
    observations: Iterable[Observation], provides: Iterable[str] | None = None, *, instead: bool = False
) -> list[str]:
    """One sentence for each observation that breaks the contract between parsers and rules.

    `instead`: a subject may stand for one that the source does not name.
    """
    known, promised = vocabulary(), set(provides) if provides is not None else None
    out = []
    for o in observations:
        spec = known.get(o.fact)
        if spec is None:
            out.append(f"{o.fact} is not in the vocabulary")
            continue
        if promised is not None and o.fact not in promised:
            out.append(f"{o.fact} is not among the facts that the format provides")
        if o.subject.scope is not spec.scope and not (instead and _stands_in(o, spec)):
            out.append(f"{o.fact} is a fact about a {spec.scope}, not about {o.subject}")
        if o.status is Status.OK:
            if not spec.accepts(o.value):
                out.append(f"{o.fact} does not accept {o.value!r}")
            if isinstance(o.value, Event):
                out += [f"{o.fact}.{k}: {v!r} is not {spec.fields[k]}" for k, v in o.value.fields.items()
                        if v is not None and type(v).__name__ != spec.fields[k]]  # fmt: skip
        else:
            if o.value is not None:
                out.append(f"{o.fact} has the value {o.value!r} and the status {o.status}")
            if o.status is not Status.NONE_SEEN and not o.detail:
                out.append(f"{o.fact} is {o.status} without a reason")
        if not o.source.probe:
            out.append(f"{o.fact} has no source")
        shown = [o.excerpt, o.detail, o.subject.id, *_words(o.value)]
        if _CONTROL.search("".join(shown)):
            out.append(f"{o.fact} shows control characters: {shown!r}")
        for language in ("en", "zh"):
            if not spec.sentence(o, language):
                out.append(f"{o.fact} says nothing in {language}")
        if spec.kind is Kind.RELATION and o.status is Status.OK and ":" not in str(o.value):
            out.append(f"{o.fact} names {o.value!r}, which is not scope:id")
    return out


def _stands_in(o: Observation, spec: FactSpec) -> bool:
    """Without a value it is the node or the file of which nothing was seen: which parts it has is not known."""
    if o.status is not Status.OK:
        return o.subject.scope in (Scope.NODE, Scope.DOCUMENT)
    return o.subject.scope in _INSTEAD.get(spec.scope, ())


def _words(value: Value) -> list[str]:
    if isinstance(value, Event):
        return [v for v in value.fields.values() if isinstance(v, str)]
    return [value] if isinstance(value, str) else list(value) if isinstance(value, tuple) else []


def assert_in_vocabulary(observations: Iterable[Observation], form: Format | None = None) -> None:
    """Fail with every fault at once."""
    faults = faults_of(observations, form.provides if form is not None else None)
    assert not faults, "\n".join(sorted(set(faults)))
