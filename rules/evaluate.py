"""Evaluation of conditions over a fact base, with the proof kept.

A leaf is decided only by answered observations. Everything that could not be looked at
makes it unknown, and the proof says what and why.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
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
    version,
)
from rules.factbase import FactBase, subject_key
from rules.proof import GroupProof, LeafProof, Missing, Proof, Truth, conjunction, disjunction

_EMPTY: dict[Type, Value] = {Type.BOOL: False, Type.INT: 0, Type.FLOAT: 0.0, Type.STR: "", Type.SET: (),
                                 Type.ENUM: "", Type.SUBJECT: "", Type.EVENT: None}  # fmt: skip


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


def _in_reach(leaf: EventLeaf, subject: Subject, facts: FactBase) -> Iterator[Observation]:
    """Events of the leaf's kind where it looks."""
    if leaf.on is On.SELF:
        yield from facts.events_within(leaf.event, subject)
        for above in subject.ancestors():
            if above != subject:
                yield from (o for o in facts.of(leaf.event, above) if isinstance(o.value, Event))
        return
    node = subject.up(Scope.NODE)
    if node is None:
        return
    for o in facts.events_within(leaf.event, node):
        same = o.subject.up(subject.scope)
        if leaf.on is On.NODE or (same is not None and same != subject):
            yield o


def field_holds(test: FieldTest, event: Event) -> bool:
    """True when the event's field satisfies the test. A field that the line lacks satisfies nothing."""
    value = event.get(test.field)
    return value is not None and compare(value, test.op, test.value)


def _event(leaf: EventLeaf, subject: Subject, facts: FactBase) -> LeafProof:
    """The leaf is decided when the number of events cannot leave its bounds, whatever is not told."""
    sure, maybe, silent = _matching(leaf, subject, facts)
    coverage = _coverage(leaf, subject, facts)
    if not sure and not maybe and coverage and all(o.status is Status.NOT_APPLICABLE for o in coverage):
        return LeafProof(leaf, Truth.FALSE, tuple(coverage), seen="not applicable")  # negated or not
    groups: dict[tuple[Scalar, ...], list[Observation]] = {}
    for o in sure:
        groups.setdefault(_group(leaf, o), []).append(o)
    crowds = [_crowd(leaf, g) for g in groups.values()]
    crowd = max(crowds, key=len, default=[])
    low = len(crowd) if leaf.gap is None else max((_at_least(leaf, g, maybe) for g in groups.values()), default=0)
    high = max((_possible(leaf, g) for g in groups.values()), default=0) + len(maybe) if coverage else math.inf
    most = math.inf if leaf.at_most is None else leaf.at_most
    enough = [c for c in crowds if len(c) >= leaf.at_least] or [crowd]
    shown = tuple(sure) if leaf.at_least <= 1 and not leaf.same else tuple(o for c in enough for o in c)
    seen = f"{len(crowd)} seen"
    if low >= leaf.at_least and high <= most:
        truth = Truth.TRUE
    elif high < leaf.at_least or low > most:
        truth = Truth.FALSE
    else:
        gap = silent or Missing(leaf.event, subject, "the lines do not tell when it happened")
        if not coverage:
            gap = _gap(leaf.event, subject, _unanswered(leaf, subject, facts))
        return LeafProof(leaf, Truth.UNKNOWN, shown, (gap,), seen)
    return LeafProof(leaf, ~truth if leaf.negated else truth, shown or tuple(coverage), (), seen)


def _matching(
    leaf: EventLeaf, subject: Subject, facts: FactBase
) -> tuple[list[Observation], list[Observation], Missing | None]:
    """Events in reach that are meant by the leaf, those that may be meant, and what the latter do not tell."""
    sure, maybe = _candidates(leaf, subject, facts)
    sure, maybe = _recent(sure, leaf, facts), _recent(maybe, leaf, facts)
    lacking = {
        t.field for o in maybe for t in leaf.where if isinstance(o.value, Event) and o.value.get(t.field) is None
    }
    if leaf.same:
        placed = [o for o in sure if None not in _group(leaf, o)]
        lacking |= {
            name for o in sure for name in leaf.same if isinstance(o.value, Event) and o.value.get(name) is None
        }
        sure, maybe = placed, [*maybe, *(o for o in sure if None in _group(leaf, o))]
    gap = Missing(leaf.event, subject, f"the line does not tell {', '.join(sorted(lacking))}") if lacking else None
    if leaf.after is None:
        return sure, maybe, gap
    first, perhaps = _candidates(leaf.after, subject, facts)
    open_end = not _coverage(replace(leaf.after, within=None), subject, facts)
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
    sure: list[Observation] = []
    maybe: list[Observation] = []
    for o in _in_reach(leaf, subject, facts):
        if not isinstance(o.value, Event):
            continue
        told = [t for t in leaf.where if o.value.get(t.field) is not None]
        if all(field_holds(t, o.value) for t in told):
            (sure if len(told) == len(leaf.where) else maybe).append(o)
    return sure, maybe


def _group(leaf: EventLeaf, o: Observation) -> tuple[Scalar, ...]:
    return tuple(o.value.get(name) for name in leaf.same) if isinstance(o.value, Event) else ()


def _crowd(leaf: EventLeaf, events: Sequence[Observation]) -> list[Observation]:
    """The largest group of events in one span of time, bursts taken as one."""
    separate = events if leaf.gap is None else bursts(events, leaf.gap)
    return densest(separate, leaf.within if leaf.at_least > 1 else None)


def _at_least(leaf: EventLeaf, events: Sequence[Observation], maybe: Sequence[Observation]) -> int:
    """How many bursts there are for certain: an event that may belong to them may join two."""
    assert leaf.gap is not None
    apart = densest(bursts(events, leaf.gap, maybe), leaf.within if leaf.at_least > 1 else None)
    return max(min(1, len(apart)), len(apart) - sum(o.at is None for o in maybe))


def _possible(leaf: EventLeaf, events: Sequence[Observation]) -> int:
    """How many can stand in one span: what tells no time, or the time of another clock, may stand in any."""
    if leaf.gap is None and (leaf.within is None or leaf.at_least <= 1):
        return len(events)
    by_clock: dict[Clock, list[Observation]] = {}
    for o in events:
        if o.at is not None:
            by_clock.setdefault(o.clock, []).append(o)
    return sum(len(_crowd(leaf, group)) for group in by_clock.values()) + sum(o.at is None for o in events)


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


def bursts(events: Sequence[Observation], gap: int, bridges: Sequence[Observation] = ()) -> list[Observation]:
    """The first event of each burst; a burst ends when nothing follows for `gap` ns, no bridge either.

    Of the clock that tells most of them: bursts of two clocks may be the same ones.
    """
    counted = {id(o) for o in events}
    firsts: dict[Clock, list[Observation]] = {}
    last: dict[Clock, int] = {}
    begun: dict[Clock, bool] = {}
    for o in sorted((o for o in (*events, *bridges) if o.at is not None), key=lambda o: o.at or 0):
        assert o.at is not None
        if o.clock not in last or o.at - last[o.clock] > gap:
            begun[o.clock] = False
        last[o.clock] = o.at
        if id(o) in counted and not begun[o.clock]:
            firsts.setdefault(o.clock, []).append(o)
            begun[o.clock] = True
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
    targets, broken = _targets(leaf, subject, facts)
    proofs = [_on(leaf, t, facts) for t in targets] + [_unknown(leaf, s, None) for s in broken]
    if not proofs:
        return _unknown(leaf, subject, None)
    if leaf.each is None:
        return _signed(leaf, proofs[0])
    can = [p for p in proofs if not _not_applicable(p)]
    if not can:
        seen = tuple(o for p in proofs for o in p.observations)
        return LeafProof(leaf, Truth.FALSE, seen, seen="not applicable")
    truth = quantify(leaf.each, [p.truth for p in can])
    wanted = ~truth if leaf.each.kind == "none" else truth
    shown = tuple(
        o for p in can if p.truth is (wanted if truth is not Truth.UNKNOWN else Truth.TRUE) for o in p.observations
    )
    gaps = tuple(g for p in can if p.truth is Truth.UNKNOWN for g in p.missing)
    hits = sum(p.truth is Truth.TRUE for p in can)
    return _signed(leaf, LeafProof(leaf, truth, shown, gaps, f"{hits} of {len(can)}"))


def _unknown(leaf: FactLeaf, subject: Subject, seen: Observation | None) -> LeafProof:
    return LeafProof(leaf, Truth.UNKNOWN, missing=(_gap(leaf.fact, subject, seen),))


def _not_applicable(proof: LeafProof) -> bool:
    """A property that the subject cannot have, or a threshold that it cannot have."""
    return proof.truth is Truth.FALSE and any(o.status is Status.NOT_APPLICABLE for o in proof.observations)


def _signed(leaf: FactLeaf, proof: LeafProof) -> LeafProof:
    if not leaf.negated or _not_applicable(proof):
        return proof  # what cannot be is false, negated or not
    return LeafProof(leaf, ~proof.truth, proof.observations, proof.missing, proof.seen)


def quantify(each: Quantifier, truths: Sequence[Truth]) -> Truth:
    """Kleene truth of "so many of them hold": settled as soon as the unknown ones cannot change it.

    Where nothing is known, nothing is settled, even when there are too few subjects for `at_least`.
    """
    yes, maybe, total = truths.count(Truth.TRUE), truths.count(Truth.UNKNOWN), len(truths)
    if total and maybe == total:
        return Truth.UNKNOWN
    if each.kind == "none":
        return Truth.FALSE if yes else (Truth.UNKNOWN if maybe else Truth.TRUE)

    def enough(count: int) -> bool:
        if each.kind == "share":  # as a quotient: 0.07 * 100 is more than 7
            return total > 0 and count / total >= each.number
        return count >= {"any": 1, "all": total, "at_least": each.number}[each.kind]

    if enough(yes):
        return Truth.TRUE
    return Truth.UNKNOWN if enough(yes + maybe) else Truth.FALSE


def _targets(leaf: FactLeaf, subject: Subject, facts: FactBase) -> tuple[list[Subject], list[Subject]]:
    """Subjects that a leaf looks at, and those at which a relation that it follows is not known."""
    scope = facts.vocabulary[leaf.fact].scope
    if leaf.on is On.SELF:
        if leaf.each is not None:
            return facts.below(subject, scope), []
        return [facts.read_up(leaf.fact, subject)[0]], []
    if leaf.on is On.BELOW:
        return facts.below(subject, scope), []
    if leaf.on is On.VIA:
        return follow(subject, leaf.via, facts)
    node = subject.up(Scope.NODE)
    if node is None:
        return [], []
    everyone = [node] if scope is Scope.NODE else facts.below(node, scope)
    return (everyone if leaf.on is On.NODE else [s for s in everyone if subject not in s.ancestors()]), []


def follow(subject: Subject, path: Iterable[Scope], facts: FactBase) -> tuple[list[Subject], list[Subject]]:
    """Subjects at the end of a path of relations, and those on the way of which the next step is not known."""
    here, broken = [subject], []
    for scope in path:
        steps = {s: facts.related(s, scope) for s in here}
        broken += [s for s, ends in steps.items() if not ends]
        here = sorted({t for ends in steps.values() for t in ends}, key=subject_key)
    return here, broken


def _on(leaf: FactLeaf, subject: Subject, facts: FactBase) -> LeafProof:
    spec = facts.vocabulary[leaf.fact]
    seen = facts.current(leaf.fact, subject)
    if seen is None or not seen.status.answered:
        return _unknown(leaf, subject, seen)
    if seen.status is Status.NOT_APPLICABLE:
        return LeafProof(leaf, Truth.FALSE, (seen,))
    wanted, gap, other = _operand(leaf.value, subject, facts)
    if gap is not None:
        return LeafProof(leaf, Truth.UNKNOWN, missing=(gap,))
    if any(o.status is Status.NOT_APPLICABLE for o in other):
        return LeafProof(leaf, Truth.FALSE, (seen, *other))
    if seen.status is Status.NONE_SEEN:
        truth = Truth.TRUE if compare(_EMPTY[spec.type], leaf.op, wanted) else Truth.FALSE
        return LeafProof(leaf, truth, (seen, *other), seen="none seen")
    if leaf.take is not Take.LAST:
        return _over_time(leaf, subject, facts, wanted, other)
    value = facts.series(leaf.fact, subject)[0].values[-1:] if isinstance(seen.value, Series) else (seen.value,)
    if not value:
        return LeafProof(leaf, Truth.UNKNOWN, missing=(Missing(leaf.fact, subject, "no sample holds a number"),))
    if leaf.op in (Op.VERSION_BELOW, Op.VERSION_AT_LEAST) and not version(str(value[0])):
        return LeafProof(leaf, Truth.UNKNOWN, missing=(Missing(leaf.fact, subject, f"{value[0]!r} is no version"),))
    truth = Truth.TRUE if compare(value[0], leaf.op, wanted) else Truth.FALSE
    return LeafProof(leaf, truth, (seen, *other), seen=str(value[0]))


def _operand(
    value: Operand, subject: Subject, facts: FactBase
) -> tuple[Scalar | tuple[Scalar, ...], Missing | None, tuple[Observation, ...]]:
    if not isinstance(value, Reference):
        return value, None, ()
    where, seen = facts.read_up(value.fact, subject)
    if seen is None or not seen.status.answered:
        return None, _gap(value.fact, where, seen), ()
    if seen.status is Status.NOT_APPLICABLE:
        return None, None, (seen,)
    raw = _EMPTY[facts.vocabulary[value.fact].type] if seen.status is Status.NONE_SEEN else seen.value
    if isinstance(raw, Series):
        raw = raw.values[-1] if raw.values else None
    if raw is None:
        return None, _gap(value.fact, where, None), ()
    if isinstance(raw, bool) or not isinstance(raw, int | float):
        return (raw if isinstance(raw, bool | str) else None), None, (seen,)
    return raw * value.times + value.plus, None, (seen,)


def _ratio(leaf: FactLeaf, subject: Subject, facts: FactBase) -> LeafProof:
    """Own value over the median of the peers on the same node (at least `min_peers` others).

    Peers that gave no number may lie anywhere: the median is somewhere between what it would be
    with all of them below and with all of them above, and the leaf holds when it holds at both ends.
    """
    node = subject.up(Scope.NODE)
    own = facts.current(leaf.fact, subject)
    if own is None or not own.status.answered:
        return _unknown(leaf, subject, own)
    if own.status is Status.NOT_APPLICABLE:
        return LeafProof(leaf, Truth.FALSE, (own,))
    others = [
        (s, facts.current(leaf.fact, s)) for s in (facts.below(node, subject.scope) if node else []) if s != subject
    ]
    peers = [(s, o) for s, o in others if o is None or o.status is not Status.NOT_APPLICABLE]
    known = sorted(n for _, o in peers if o is not None and (n := _level(o)) is not None)
    shown = (own, *(o for _, o in peers if o is not None and _level(o) is not None))
    silent = tuple(_gap(leaf.fact, s, o) for s, o in peers if o is None or _level(o) is None)
    mine = _level(own)
    if mine is None or len(known) < leaf.min_peers:
        reason = f"only {len(known)} peers with a value, {leaf.min_peers} needed"
        return LeafProof(leaf, Truth.UNKNOWN, (own,), (Missing(leaf.fact, subject, reason), *silent))
    wanted = None if isinstance(leaf.value, Reference) else leaf.value
    ends = [_median([edge] * len(silent) + known) for edge in (-math.inf, math.inf)]
    if min(ends) <= 0 or math.isinf(max(ends)):
        gaps = silent or (Missing(leaf.fact, subject, "the peers' median is not above zero"),)
        return LeafProof(leaf, Truth.UNKNOWN, (own,), gaps)
    holds = {compare(mine / median, leaf.op, wanted) for median in ends}
    if len(holds) > 1:
        return LeafProof(leaf, Truth.UNKNOWN, (own,), silent)
    seen = f"{mine / ends[0]:.3g} of the peers' median {ends[0]:.6g}"
    return _signed(leaf, LeafProof(leaf, Truth.TRUE if holds.pop() else Truth.FALSE, shown, seen=seen))


def _level(o: Observation) -> float | None:
    """The number that an observation stands for: nothing seen is zero; None when there is no number."""
    if o.status is Status.NONE_SEEN:
        return 0.0
    value = o.value.values[-1] if isinstance(o.value, Series) and o.value.values else o.value
    if o.status is not Status.OK or not isinstance(value, int | float) or math.isnan(value):
        return None
    return float(value)


def _median(values: Sequence[float]) -> float:
    ordered = sorted(values)
    half = len(ordered) // 2
    return ordered[half] if len(ordered) % 2 else (ordered[half - 1] + ordered[half]) / 2


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
    if len(inside) < 2 or span <= 0 or span < leaf.coverage * leaf.within:
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
    Op.VERSION_BELOW: lambda v, w: isinstance(v, str) and bool(version(v)) and version(v) < version(str(w)),
    Op.VERSION_AT_LEAST: lambda v, w: isinstance(v, str) and bool(version(v)) and version(v) >= version(str(w)),
}
