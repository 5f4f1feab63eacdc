"""Suppositions: a diagnosis of facts as they would be, beside the one of facts as they are.

Nothing here touches the diagnosis it is given: facts are laid over a copy, rules are rebuilt beside the ones in force.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from assistant.diagnosis import Diagnosis, diagnose
from knowledge.facts import FactSpec, Kind
from knowledge.observation import Clock, Event, Observation, Origin, Source, Status, Subject, Value
from knowledge.record import dataclass

if TYPE_CHECKING:
    from rules.engine import Finding
    from rules.factbase import FactBase
    from rules.loader import RuleSet

SUPPOSED = Source("supposed")


@dataclass(frozen=True, slots=True)
class Supposition:
    """Facts as they would be: `instead` stands for every observation that `gone` says is not to count."""

    instead: tuple[Observation, ...] = ()
    gone: Callable[[Observation], bool] = lambda _: False
    changes: bool = False  # whether `gone` takes anything away


@dataclass(frozen=True, slots=True)
class Differences:
    """What a supposition changes."""

    appear: tuple[Finding, ...]
    vanish: tuple[Finding, ...]
    change: tuple[tuple[Finding, Finding], ...]  # the same finding now and then: severity, grade, role or action differ

    def __bool__(self) -> bool:
        return bool(self.appear or self.vanish or self.change)


def suppose(d: Diagnosis, ruleset: RuleSet, what: Sequence[Supposition]) -> Diagnosis:
    """The diagnosis as it would be. What was derived is derived again, from the facts as they would be.

    The result carries no query and no notes of inputs: it is about no input.
    """
    kept = [o for o in measured(d.facts) if not any(s.gone(o) for s in what)]
    extra = [o for s in what for o in s.instead]
    return _again(d, ruleset, [*kept, *extra])


def _again(d: Diagnosis, ruleset: RuleSet, batch: Sequence[Observation]) -> Diagnosis:
    then = diagnose(batch, ruleset, cut=d.cut, as_of=d.as_of, sources=d.sources, seen=d.seen)
    if not d.settled and not d.cut and then.settled:  # a machine of which a part of the base set was not read
        return diagnose(batch, ruleset, cut=d.cut, as_of=d.as_of, sources=d.sources, whole=True, seen=d.seen)
    return then


def measured(facts: FactBase) -> list[Observation]:
    """Everything that was seen or told: without what was computed from it."""
    return [k.inner for k in facts.observations if k.inner.origin is not Origin.DERIVED]


def differences(now: Diagnosis, then: Diagnosis) -> Differences:
    """What of the findings differs."""
    before, after = {f.id: f for f in now.findings}, {f.id: f for f in then.findings}
    return Differences(
        tuple(f for i, f in after.items() if i not in before),
        tuple(f for i, f in before.items() if i not in after),
        tuple((before[i], f) for i, f in after.items() if i in before and _told(before[i]) != _told(f)),
    )


def _told(f: Finding) -> tuple[object, ...]:
    return (f.severity, f.grade, f.role, f.advice.bucket, f.advice.usable, f.advice.until.en, f.title.en)


# --- suppositions -------------------------------------------------------------------------


def value_of(
    spec: FactSpec, subject: Subject, value: Value, facts: FactBase, status: Status = Status.OK
) -> Supposition:
    """That a fact of a subject had another value (or none: `status`), at all times at which it was looked at.

    A level is supposed to have been so all along; a counter to have reached the value at its last reading. What is
    so already stays as it was seen.
    """
    known = facts.current(spec.name, subject)
    if known is not None and known.status is status is Status.OK and same(known.value, value):
        return Supposition()
    times, values, clock = _course(spec, subject, facts)
    newest = max((o.at for o in facts.of(spec.name, subject) if o.at is not None), default=facts.as_of)
    one = Observation(spec.name, subject, value, status, SUPPOSED, newest, clock, origin=Origin.HYPOTHETICAL)
    if newest is None or clock is Clock.NONE:
        one = replace(one, at=None, clock=Clock.NONE)
    made = [one]
    if len(times) > 1 and status is Status.OK and isinstance(value, int | float):
        earlier = values if spec.kind is Kind.COUNTER else [value] * len(values)
        made = [replace(one, at=t, value=v) for t, v in zip(times[:-1], earlier[:-1], strict=True)]
        made.append(replace(one, at=times[-1]))

    def gone(o: Observation) -> bool:
        return o.fact == spec.name and o.subject == subject

    return Supposition(tuple(made), gone, True)


def same(a: Value, b: Value) -> bool:
    """Whether two values are one: 1 and 1.0 are, 1 and true are not."""
    return isinstance(a, bool) == isinstance(b, bool) and a == b


def _course(spec: FactSpec, subject: Subject, facts: FactBase) -> tuple[list[int], list[Value], Clock]:
    """Times and values of the samples that a rule over time would look at, and their clock."""
    series, seen = facts.series(spec.name, subject)
    clock = next((o.clock for o in seen if o.at is not None), Clock.REALTIME if facts.as_of is not None else Clock.NONE)
    values: list[Value] = [int(v) if spec.type == "int" and v.is_integer() else v for v in series.values]
    return list(series.times), values, clock


def no_events(fact: str, subjects: Iterable[Subject], code: int | None, facts: FactBase) -> Supposition:
    """That no event of a kind (with `code`: of that code) had been seen of `subjects` and their parts.

    Without a code the kind was looked for everywhere there and not found. With one, only its lines count as never
    printed: what nobody looked at stays unknown.
    """
    where = frozenset(subjects)
    kinds = {fact, f"{fact}_implied"} if code is not None else {fact}

    def gone(o: Observation) -> bool:
        if o.fact not in kinds or not isinstance(o.value, Event):
            return False
        return (code is None or o.value.code == code) and any(s in where for s in o.subject.ancestors())

    if code is not None:
        return Supposition((), gone, any(gone(k.inner) for k in facts.observations))
    at = facts.as_of
    clock = Clock.REALTIME if at is not None else Clock.NONE
    silent = [
        Observation(fact, s, None, Status.NONE_SEEN, SUPPOSED, at, clock, origin=Origin.HYPOTHETICAL) for s in where
    ]
    return Supposition(tuple(sorted(silent, key=str)), gone, True)
