"""Evaluation of conditions over a fact base, with the proof kept.

A leaf is decided only by answered observations. Everything that could not be looked at
makes it unknown, and the proof says what and why.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from itertools import pairwise

from knowledge.facts import Type
from knowledge.observation import Clock, Event, Observation, Scalar, Scope, Series, Status, Subject, Value
from rules.condition import (
    All,
    Any_,
    Condition,
    EventLeaf,
    FactLeaf,
    FieldTest,
    KnownLeaf,
    On,
    Op,
    Operand,
    Quantifier,
    Reference,
    Take,
)
from rules.factbase import FactBase
from rules.proof import GroupProof, LeafProof, Missing, Proof, Truth, conjunction, disjunction

_EMPTY: dict[Type, Value] = {Type.BOOL: False, Type.INT: 0, Type.FLOAT: 0.0, Type.STR: "", Type.SET: ()}


def evaluate(condition: Condition, subject: Subject, facts: FactBase) -> Proof:
    """The truth of `condition` about `subject`, with the whole tree (no short cuts)."""
    if isinstance(condition, All | Any_):
        children = tuple(evaluate(c, subject, facts) for c in condition.children)
        combine = conjunction if isinstance(condition, All) else disjunction
        return GroupProof(
            "all" if isinstance(condition, All) else "any", combine([c.truth for c in children]), children
        )
    if isinstance(condition, EventLeaf):
        return _event(condition, subject, facts)
    if isinstance(condition, KnownLeaf):
        return _known(condition, subject, facts)
    return _fact(condition, subject, facts)


def _known(leaf: KnownLeaf, subject: Subject, facts: FactBase) -> LeafProof:
    where, seen = facts.read_up(leaf.fact, subject)
    if seen is not None and seen.status.answered:
        return LeafProof(leaf, Truth.FALSE if leaf.negated else Truth.TRUE, (seen,))
    return LeafProof(leaf, Truth.UNKNOWN, missing=(_gap(leaf.fact, where, seen),))


def _gap(fact: str, subject: Subject, seen: Observation | None) -> Missing:
    if seen is None:
        return Missing(fact, subject, str(Status.NOT_ASKED))
    return Missing(fact, subject, f"{seen.status}: {seen.detail}" if seen.detail else str(seen.status))


# --- events -------------------------------------------------------------------------------


def _in_reach(event_subject: Subject, subject: Subject, on: On) -> bool:
    if on is On.SELF:
        return subject in event_subject.ancestors() or event_subject in subject.ancestors()
    node = subject.up(Scope.NODE)
    on_node = node is not None and node in event_subject.ancestors()
    if on is On.NODE:
        return on_node
    same = event_subject.up(subject.scope)
    return on_node and same is not None and same != subject


def field_holds(test: FieldTest, event: Event) -> bool:
    """True when the event's field satisfies the test. A field that the line lacks satisfies nothing."""
    value = event.get(test.field)
    return value is not None and compare(value, test.op, test.value)


def _event(leaf: EventLeaf, subject: Subject, facts: FactBase) -> LeafProof:
    """Between `low` and `high` such events happened; the leaf is decided when the count cannot leave its bounds."""
    sure, maybe, silent = _matching(leaf, subject, facts)
    coverage = _coverage(leaf, subject, facts)
    if not sure and not maybe and coverage and all(o.status is Status.NOT_APPLICABLE for o in coverage):
        return LeafProof(leaf, Truth.FALSE, tuple(coverage), seen="not applicable")  # negated or not
    crowd = _crowd(leaf, sure)
    low = len(crowd) if leaf.gap is None else max(min(1, len(crowd)), len(crowd) - len(maybe))
    high = _at_most(leaf, sure, maybe) if coverage else math.inf
    most = math.inf if leaf.at_most is None else leaf.at_most
    shown = tuple(sure) if leaf.at_least <= 1 and not leaf.same else tuple(crowd)
    seen = f"{len(crowd)} seen"
    if low >= leaf.at_least and high <= most:
        truth = Truth.TRUE
    elif high < leaf.at_least or low > most:
        truth = Truth.FALSE
    else:
        gap = silent if coverage and silent else _gap(leaf.event, subject, _unanswered(leaf, subject, facts))
        if coverage and not silent:
            gap = Missing(leaf.event, subject, "when it happened is not told well enough to count")
        return LeafProof(leaf, Truth.UNKNOWN, shown, (gap,), seen)
    return LeafProof(leaf, ~truth if leaf.negated else truth, shown or tuple(coverage), (), seen)


def _matching(
    leaf: EventLeaf, subject: Subject, facts: FactBase
) -> tuple[list[Observation], list[Observation], Missing | None]:
    """Events in reach that are meant by the leaf, those that may be meant, and what the latter do not tell."""
    sure, maybe = _candidates(leaf, subject, facts)
    sure, maybe = _recent(sure, leaf, facts), _recent(maybe, leaf, facts)
    lacking = {t.field for o in maybe for t in leaf.where if isinstance(o.value, Event) and o.value.get(t.field) is None}
    if leaf.same:
        placed = [o for o in sure if None not in _group(leaf, o)]
        lacking |= {name for o in sure for name in leaf.same if isinstance(o.value, Event) and o.value.get(name) is None}
        sure, maybe = placed, [*maybe, *(o for o in sure if None in _group(leaf, o))]
    gap = Missing(leaf.event, subject, f"the line does not tell {', '.join(sorted(lacking))}") if lacking else None
    if leaf.after is None:
        return sure, maybe, gap
    first, perhaps = _candidates(leaf.after, subject, facts)
    open_end = not _coverage(leaf.after, subject, facts)
    order = {id(o): _preceded(o, first, perhaps, leaf.after.within or 0, open_end) for o in (*sure, *maybe)}
    if open_end and gap is None:
        gap = _gap(leaf.after.event, subject, _unanswered(leaf.after, subject, facts))
    maybe = [
        *(o for o in sure if order[id(o)] is Truth.UNKNOWN),
        *(o for o in maybe if order[id(o)] is not Truth.FALSE),
    ]
    return [o for o in sure if order[id(o)] is Truth.TRUE], maybe, gap


def _candidates(leaf: EventLeaf, subject: Subject, facts: FactBase) -> tuple[list[Observation], list[Observation]]:
    """Events of the leaf's kind in its reach that satisfy `where`, and those that lack a field to tell."""
    sure, maybe = [], []
    for o in facts.events(leaf.event):
        if not isinstance(o.value, Event) or not _in_reach(o.subject, subject, leaf.on):
            continue
        told = [t for t in leaf.where if o.value.get(t.field) is not None]
        if all(field_holds(t, o.value) for t in told):
            (sure if len(told) == len(leaf.where) else maybe).append(o)
    return sure, maybe


def _group(leaf: EventLeaf, o: Observation) -> tuple[Scalar, ...]:
    return tuple(o.value.get(name) for name in leaf.same) if isinstance(o.value, Event) else ()


def _crowd(leaf: EventLeaf, events: Sequence[Observation]) -> list[Observation]:
    """The largest group of events at the same place, in one span of time."""
    groups: dict[tuple[Scalar, ...], list[Observation]] = {}
    for o in events:
        groups.setdefault(_group(leaf, o), []).append(o)
    separate = groups.values() if leaf.gap is None else [bursts(group, leaf.gap) for group in groups.values()]
    return max((densest(g, leaf.within if leaf.at_least > 1 else None) for g in separate), key=len, default=[])


def _at_most(leaf: EventLeaf, sure: Sequence[Observation], maybe: Sequence[Observation]) -> int:
    """How many events there can be at one place in one span, when everything that is not told speaks for it."""
    by_clock: dict[Clock, list[Observation]] = {}
    for o in sure:
        if o.at is not None:
            by_clock.setdefault(o.clock, []).append(o)
    timeless = sum(o.at is None for o in sure)
    return sum(len(_crowd(leaf, group)) for group in by_clock.values()) + timeless + len(maybe)


def _recent(found: list[Observation], leaf: EventLeaf, facts: FactBase) -> list[Observation]:
    """Without a count, `within` looks back from the time of the diagnosis where clocks allow."""
    if leaf.within is None or leaf.at_least > 1 or facts.as_of is None:
        return found
    return [o for o in found if o.at is None or o.clock is not Clock.REALTIME or facts.as_of - o.at <= leaf.within]


def _preceded(
    o: Observation, first: Sequence[Observation], perhaps: Sequence[Observation], within: int, open_end: bool
) -> Truth:
    """Whether one of `first` happened at most `within` before `o`; `perhaps` and what nobody looked at leave it open."""
    truth = disjunction([_follows(o, e, within) for e in first])
    if truth is Truth.FALSE and (open_end or any(_follows(o, e, within) is not Truth.FALSE for e in perhaps)):
        return Truth.UNKNOWN
    return truth


def _follows(later: Observation, earlier: Observation, within: int) -> Truth:
    """Order by the clock; within one tick of it, or without one, by the lines of one file; else nobody knows."""
    if later is earlier:
        return Truth.FALSE
    lines = (earlier.source.line, later.source.line) if later.source.call == earlier.source.call else (None, None)
    by_line = None if lines[0] is None or lines[1] is None else lines[0] < lines[1]
    if later.at is not None and earlier.at is not None and later.clock is earlier.clock:
        apart = later.at - earlier.at
        holds = by_line if apart == 0 and by_line is not None else 0 <= apart <= within
        return Truth.TRUE if holds else Truth.FALSE
    if by_line is None:
        return Truth.UNKNOWN
    return Truth.TRUE if by_line else Truth.FALSE


def densest(events: Sequence[Observation], within: int | None) -> list[Observation]:
    """The largest group of events in any span of `within` ns (all of them without a span).

    Events without a time cannot be told apart from a burst: they count as one.
    """
    if within is None:
        return list(events)
    timed = sorted((o for o in events if o.at is not None), key=lambda o: (o.clock, o.at or 0))
    start, best = 0, (0, 0)
    for end, o in enumerate(timed):
        while timed[start].clock is not o.clock or (o.at or 0) - (timed[start].at or 0) > within:
            start += 1
        if end + 1 - start > best[1] - best[0]:
            best = (start, end + 1)
    return timed[best[0] : best[1]] or [o for o in events if o.at is None][:1]


def bursts(events: Sequence[Observation], gap: int) -> list[Observation]:
    """The first event of each burst; a burst ends when nothing follows for `gap` ns.

    Of the clock that tells most of them: bursts of two clocks may be the same ones.
    """
    firsts: dict[Clock, list[Observation]] = {}
    last: dict[Clock, int] = {}
    for o in sorted((o for o in events if o.at is not None), key=lambda o: o.at or 0):
        assert o.at is not None
        if o.clock not in last or o.at - last[o.clock] > gap:
            firsts.setdefault(o.clock, []).append(o)
        last[o.clock] = o.at
    return max(firsts.values(), key=lambda f: (len(f), f[0].clock), default=[]) or list(events[:1])


def _where(leaf: EventLeaf, subject: Subject) -> Subject:
    """What has to have been looked at as a whole for the leaf's events to be absent."""
    return subject if leaf.on is On.SELF else subject.up(Scope.NODE) or subject


def _coverage(leaf: EventLeaf, subject: Subject, facts: FactBase) -> list[Observation]:
    """Who looked for such events where and when the leaf looks, and saw none besides those that are listed."""
    return [
        o
        for s in _where(leaf, subject).ancestors()
        for o in facts.of(leaf.event, s)
        if o.status is Status.NOT_APPLICABLE or (o.status is Status.NONE_SEEN and _spans(o, leaf, facts.as_of))
    ]


def _spans(o: Observation, leaf: EventLeaf, as_of: int | None) -> bool:
    """Whether the window that was looked at reaches back as far as the leaf asks.

    The time of a log's last line is not the time it was read: its end need only lie within what is asked.
    """
    if leaf.within is None or leaf.at_least > 1 or as_of is None or o.window is None or o.clock is not Clock.REALTIME:
        return True
    return o.window[0] <= as_of - leaf.within <= o.window[1]


def _unanswered(leaf: EventLeaf, subject: Subject, facts: FactBase) -> Observation | None:
    """Why nobody can say that no such event happened."""
    seen = [o for s in _where(leaf, subject).ancestors() for o in facts.of(leaf.event, s) if o.value is None]
    return next((o for o in seen if not o.status.answered), None) or next(
        (replace(o, detail="only part of the time that is asked about was looked at") for o in seen), None
    )


# --- values -------------------------------------------------------------------------------


def _fact(leaf: FactLeaf, subject: Subject, facts: FactBase) -> LeafProof:
    if leaf.peer_ratio:
        return _ratio(leaf, subject, facts)
    targets = _targets(leaf, subject, facts)
    if leaf.each is None:
        proofs = [_on(leaf, targets[0], facts)] if targets else []
    else:
        proofs = [_on(leaf, t, facts) for t in targets]
    if not proofs:
        return LeafProof(leaf, Truth.UNKNOWN, missing=(Missing(leaf.fact, subject, str(Status.NOT_ASKED)),))
    if leaf.each is None:
        return _signed(leaf, proofs[0])
    truth = quantify(leaf.each, [p.truth for p in proofs])
    wanted = Truth.FALSE if leaf.each.kind == "none" else Truth.TRUE
    shown = tuple(
        o for p in proofs if p.truth is wanted or (leaf.each.kind == "all" and p.truth is truth) for o in p.observations
    )
    gaps = tuple(g for p in proofs if p.truth is Truth.UNKNOWN for g in p.missing)
    hits = sum(p.truth is Truth.TRUE for p in proofs)
    return _signed(leaf, LeafProof(leaf, truth, shown, gaps, f"{hits} of {len(proofs)}"))


def _signed(leaf: FactLeaf, proof: LeafProof) -> LeafProof:
    if not leaf.negated:
        return proof
    if proof.observations and all(o.status is Status.NOT_APPLICABLE for o in proof.observations):
        return proof  # a property that the subject cannot have is false, negated or not
    return LeafProof(leaf, ~proof.truth, proof.observations, proof.missing, proof.seen)


def quantify(each: Quantifier, truths: Sequence[Truth]) -> Truth:
    """Kleene truth of "so many of them hold": settled as soon as the unknown ones cannot change it."""
    yes, maybe, total = truths.count(Truth.TRUE), truths.count(Truth.UNKNOWN), len(truths)
    if each.kind == "none":
        return Truth.FALSE if yes else (Truth.UNKNOWN if maybe else Truth.TRUE)
    need: float = {"any": 1, "all": total, "at_least": each.number, "share": each.number * total}[each.kind]
    if yes >= need:
        return Truth.TRUE
    return Truth.UNKNOWN if yes + maybe >= need else Truth.FALSE


def _targets(leaf: FactLeaf, subject: Subject, facts: FactBase) -> list[Subject]:
    scope = facts.vocabulary[leaf.fact].scope
    if leaf.on is On.SELF:
        if leaf.each is not None:
            return facts.below(subject, scope)
        return [facts.read_up(leaf.fact, subject)[0]]
    if leaf.on is On.BELOW:
        return facts.below(subject, scope)
    if leaf.on is On.VIA:
        return follow(subject, leaf.via, facts)
    node = subject.up(Scope.NODE)
    if node is None:
        return []
    everyone = [node] if scope is Scope.NODE else facts.below(node, scope)
    return everyone if leaf.on is On.NODE else [s for s in everyone if s != subject]


def follow(subject: Subject, path: Iterable[Scope], facts: FactBase) -> list[Subject]:
    """Subjects at the end of a path of relations; empty when a step is not known."""
    here = [subject]
    for scope in path:
        here = sorted({t for s in here for t in facts.related(s, scope)}, key=str)
    return here


def _on(leaf: FactLeaf, subject: Subject, facts: FactBase) -> LeafProof:
    spec = facts.vocabulary[leaf.fact]
    seen = facts.current(leaf.fact, subject)
    if seen is None or not seen.status.answered:
        return LeafProof(leaf, Truth.UNKNOWN, missing=(_gap(leaf.fact, subject, seen),))
    if seen.status is Status.NOT_APPLICABLE:
        return LeafProof(leaf, Truth.FALSE, (seen,))
    wanted, gap, other = _operand(leaf.value, subject, facts)
    if gap is not None:
        return LeafProof(leaf, Truth.UNKNOWN, missing=(gap,))
    if seen.status is Status.NONE_SEEN:
        empty = _EMPTY.get(spec.type)
        truth = Truth.TRUE if empty is not None and compare(empty, leaf.op, wanted) else Truth.FALSE
        return LeafProof(leaf, truth, (seen, *other), seen="none seen")
    if leaf.take is not Take.LAST:
        return _over_time(leaf, subject, facts, wanted, other)
    value = seen.value
    if isinstance(value, Series):
        value = value.values[-1] if value.values else None
    if value is None:
        return LeafProof(leaf, Truth.UNKNOWN, missing=(_gap(leaf.fact, subject, None),))
    truth = Truth.TRUE if compare(value, leaf.op, wanted) else Truth.FALSE
    return LeafProof(leaf, truth, (seen, *other), seen=str(value))


def _operand(
    value: Operand, subject: Subject, facts: FactBase
) -> tuple[Scalar | tuple[Scalar, ...], Missing | None, tuple[Observation, ...]]:
    if not isinstance(value, Reference):
        return value, None, ()
    where, seen = facts.read_up(value.fact, subject)
    if seen is None or seen.status is not Status.OK:
        return None, _gap(value.fact, where, seen), ()
    raw = seen.value
    if isinstance(raw, bool) or not isinstance(raw, int | float):
        return (raw if isinstance(raw, bool | str) else None), None, (seen,)
    return raw * value.times + value.plus, None, (seen,)


def _ratio(leaf: FactLeaf, subject: Subject, facts: FactBase) -> LeafProof:
    """Own value over the median of the peers on the same node (at least `min_peers` others)."""
    node = subject.up(Scope.NODE)
    others = [s for s in (facts.below(node, subject.scope) if node else []) if s != subject]
    own = facts.current(leaf.fact, subject)
    values = [
        o
        for o in (facts.current(leaf.fact, s) for s in others)
        if o is not None and o.status is Status.OK and isinstance(o.value, int | float)
    ]
    if own is None or own.status is not Status.OK or not isinstance(own.value, int | float):
        return LeafProof(leaf, Truth.UNKNOWN, missing=(_gap(leaf.fact, subject, own),))
    if len(values) < leaf.min_peers:
        return LeafProof(
            leaf,
            Truth.UNKNOWN,
            (own,),
            (Missing(leaf.fact, subject, f"only {len(values)} peers with a value, {leaf.min_peers} needed"),),
        )
    median = statistics.median(float(o.value) for o in values if isinstance(o.value, int | float))
    if median == 0:
        return LeafProof(leaf, Truth.UNKNOWN, (own,), (Missing(leaf.fact, subject, "the peers' median is zero"),))
    ratio = float(own.value) / median
    truth = (
        Truth.TRUE
        if compare(ratio, leaf.op, leaf.value if not isinstance(leaf.value, Reference) else None)
        else Truth.FALSE
    )
    return _signed(leaf, LeafProof(leaf, truth, (own, *values), seen=f"{ratio:.3g} of the peers' median {median:.6g}"))


# --- time ---------------------------------------------------------------------------------


def _over_time(
    leaf: FactLeaf,
    subject: Subject,
    facts: FactBase,
    wanted: Scalar | tuple[Scalar, ...],
    other: tuple[Observation, ...],
) -> LeafProof:
    series, samples = facts.series(leaf.fact, subject)
    assert leaf.within is not None
    end = series.times[-1] if series.times else 0
    inside = [i for i, t in enumerate(series.times) if t >= end - leaf.within]
    span = end - series.times[inside[0]] if inside else 0
    if len(inside) < 2 or span < leaf.coverage * leaf.within:
        reason = (
            f"{len(inside)} samples over {span / 1e9:.6g} s, {leaf.coverage:.0%} of {leaf.within / 1e9:.6g} s needed"
        )
        return LeafProof(leaf, Truth.UNKNOWN, tuple(samples), (Missing(leaf.fact, subject, reason),))
    values = [series.values[i] for i in inside]
    shown = (*samples[:1], *samples[-1:], *other) if len(samples) > 1 else (*samples, *other)
    if leaf.take is Take.SUSTAINED:
        held = all(compare(bool(v) if isinstance(wanted, bool) else v, leaf.op, wanted) for v in values)
        return LeafProof(
            leaf, Truth.TRUE if held else Truth.FALSE, shown, seen=f"{len(values)} samples over {span / 1e9:.6g} s"
        )
    if leaf.take is Take.PERCENTILE:
        number = percentile(values, leaf.percentile)
    else:
        number = increase(values)
        if leaf.take is Take.RATE:
            number = number * leaf.per / span
    truth = Truth.TRUE if compare(number, leaf.op, wanted) else Truth.FALSE
    return LeafProof(leaf, truth, shown, seen=f"{leaf.take} {number:.6g}")


def increase(values: Sequence[float]) -> float:
    """Growth of a counter; a value below its predecessor means it began again at zero."""
    return sum((b - a if b >= a else b) for a, b in pairwise(values))


def percentile(values: Sequence[float], p: float) -> float:
    """Linear interpolation between closest ranks (the method of numpy's default)."""
    ordered = sorted(values)
    place = (len(ordered) - 1) * p / 100
    low = int(place)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (place - low)


# --- comparison ---------------------------------------------------------------------------


def compare(value: Value, op: Op, wanted: Scalar | tuple[Scalar, ...] | Reference) -> bool:
    """Two-valued comparison of a present value. Values of other kinds compare as different."""
    check: Callable[[Value, object], bool] = _COMPARE[op]
    return check(value, wanted)


def _number(op: Callable[[float, float], bool]) -> Callable[[Value, object], bool]:
    def check(value: Value, wanted: object) -> bool:
        if isinstance(value, int | float) and isinstance(wanted, int | float):
            return op(value, wanted)
        return False

    return check


def _equal(value: Value, wanted: object) -> bool:
    if isinstance(value, bool) != isinstance(wanted, bool):
        return False
    return value == wanted


def _contains(value: Value, wanted: object) -> bool:
    items = wanted if isinstance(wanted, tuple) else (wanted,)
    if isinstance(value, str):
        return any(str(item).casefold() in value.casefold() for item in items)
    return isinstance(value, tuple) and any(item in value for item in items)


@lru_cache(maxsize=512)
def _pattern(pattern: str) -> Callable[[str], object]:
    import re2

    search: Callable[[str], object] = re2.compile(pattern).search
    return search


def _version(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split("-", maxsplit=1)[0].split(".") if part.isdigit())


_COMPARE: dict[Op, Callable[[Value, object], bool]] = {
    Op.IS: _equal,
    Op.IS_NOT: lambda v, w: not _equal(v, w),
    Op.IN: lambda v, w: isinstance(w, tuple) and any(_equal(v, item) for item in w),
    Op.NOT_IN: lambda v, w: isinstance(w, tuple) and not any(_equal(v, item) for item in w),
    Op.AT_LEAST: _number(lambda a, b: a >= b),
    Op.AT_MOST: _number(lambda a, b: a <= b),
    Op.ABOVE: _number(lambda a, b: a > b),
    Op.BELOW: _number(lambda a, b: a < b),
    Op.CONTAINS: _contains,
    Op.MATCHES: lambda v, w: isinstance(v, str) and _pattern(str(w))(v) is not None,
    Op.VERSION_BELOW: lambda v, w: isinstance(v, str) and bool(_version(v)) and _version(v) < _version(str(w)),
    Op.VERSION_AT_LEAST: lambda v, w: isinstance(v, str) and bool(_version(v)) and _version(v) >= _version(str(w)),
}
