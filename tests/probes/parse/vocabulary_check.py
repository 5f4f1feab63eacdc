"""Shared check: what a parser emits is in the vocabulary, and honest about what it has not got."""

from __future__ import annotations

from collections.abc import Iterable

from knowledge.facts import Kind, vocabulary
from knowledge.observation import Event, Observation, Status, Value
from probes.base import Format


def faults_of(observations: Iterable[Observation], provides: Iterable[str] | None = None) -> list[str]:
    """One sentence for each observation that breaks the contract between parsers and rules."""
    known, promised = vocabulary(), set(provides) if provides is not None else None
    out = []
    for o in observations:
        spec = known.get(o.fact)
        if spec is None:
            out.append(f"{o.fact} is not in the vocabulary")
            continue
        if promised is not None and o.fact not in promised:
            out.append(f"{o.fact} is not among the facts that the format provides")
        if o.subject.scope is not spec.scope:
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
        if any(_is_control(char) for text in shown for char in text):
            out.append(f"{o.fact} shows control characters: {shown!r}")
        for language in ("en", "zh"):
            if not spec.sentence(o, language):
                out.append(f"{o.fact} says nothing in {language}")
        if spec.kind is Kind.RELATION and o.status is Status.OK and ":" not in str(o.value):
            out.append(f"{o.fact} names {o.value!r}, which is not scope:id")
    return out


def _is_control(char: str) -> bool:
    return (ord(char) < 32 and char != "\t") or 0x7F <= ord(char) < 0xA0 or char in "\u200b\u202e\u2066"


def _words(value: Value) -> list[str]:
    if isinstance(value, Event):
        return [v for v in value.fields.values() if isinstance(v, str)]
    return [value] if isinstance(value, str) else list(value) if isinstance(value, tuple) else []


def assert_in_vocabulary(observations: Iterable[Observation], form: Format | None = None) -> None:
    """Fail with every fault at once."""
    faults = faults_of(observations, form.provides if form is not None else None)
    assert not faults, "\n".join(sorted(set(faults)))


def assert_provides_exist(form: Format) -> None:
    """Every fact that a format promises stands in the vocabulary."""
    unknown = [name for name in form.provides if vocabulary().get(name) is None]
    assert not unknown, f"{form.name} provides unknown facts: {', '.join(unknown)}"
