"""Event leaves: how many events of a kind happened where a leaf looks, for certain and at most."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import accumulate

from knowledge.observation import Clock, Event, Observation, Scalar, Scope, Status, Subject, how_many
from rules._precedence import Earlier
from rules.compare import field_holds
from rules.condition import EventLeaf, FieldTest, On, Op
from rules.factbase import FactBase
from rules.proof import LeafProof, Missing, Truth, gap_of


def _in_reach(
    leaf: EventLeaf, codes: frozenset[int] | None, subject: Subject, facts: FactBase
) -> Iterator[Observation]:
    """Events of the leaf's kind where it looks; of those that tell a code, only `codes` (None: all)."""
    if leaf.on is On.SELF:
        yield from _coded(leaf.event, codes, subject, facts)
        for above in subject.ancestors():
            if above != subject:
                found = facts.events_at(leaf.event, above)
                yield from (o for o in found if codes is None or _code(o) is None or _code(o) in codes)
        return
    node = subject.up(Scope.NODE)
    if node is None:
        return
    for o in _coded(leaf.event, codes, node, facts):
        same = o.subject.up(subject.scope)
        if leaf.on is On.NODE or (same is not None and same != subject):
            yield o


def _coded(fact: str, codes: frozenset[int] | None, subject: Subject, facts: FactBase) -> Iterable[Observation]:
    return facts.events_within(fact, subject) if codes is None else facts.events_coded(fact, subject, codes)


def _code(o: Observation) -> int | None:
    return o.value.code if isinstance(o.value, Event) else None


def _codes(leaf: EventLeaf) -> frozenset[int] | None:
    """The codes that the leaf is about; None when it does not name them."""
    named = [t.value if isinstance(t.value, tuple) else (t.value,) for t in leaf.where if _asks_code(t)]
    sets = [frozenset(code for code in codes if isinstance(code, int)) for codes in named]
    return frozenset.intersection(*sets) if sets else None


def _asks_code(test: FieldTest) -> bool:
    """Whether a test is that plain that an index of events by code answers it."""
    return test.field == "code" and test.op in (Op.IS, Op.IN)


def event_leaf(leaf: EventLeaf, subject: Subject, facts: FactBase) -> LeafProof:
    """The leaf is decided when the number of events cannot leave its bounds, whatever is not told."""
    if leaf.at_least and not facts.events(leaf.event):
        return _none_known(leaf, subject, facts)
    sure, maybe, silent = _matching(leaf, subject, facts)
    coverage = _coverage(leaf, subject, facts)
    if not sure and not maybe and coverage and all(o.status is Status.NOT_APPLICABLE for o in coverage):
        return LeafProof(leaf, Truth.FALSE, tuple(coverage), seen="not applicable")  # negated or not
    groups: dict[tuple[Scalar, ...], list[Observation]] = {}
    for o in sure:
        groups.setdefault(_group(leaf, o), []).append(o)
    crowds = [_crowd(leaf, g) for g in groups.values()]
    count, crowd = max(crowds, key=lambda c: c[0], default=(0, []))
    low = count if leaf.gap is None else max((_at_least(leaf, g, maybe) for g in groups.values()), default=0)
    high = max((_possible(leaf, g) for g in groups.values()), default=0) + how_many(maybe) if coverage else math.inf
    most = math.inf if leaf.at_most is None else leaf.at_most
    enough = [g for g, (n, _) in zip(groups.values(), crowds, strict=True) if n >= leaf.at_least]
    every = [o for g in enough for o in (g if leaf.gap is None else bursts(g, leaf.gap))] or crowd
    shown = tuple(sure) if leaf.at_least <= 1 and not leaf.same else tuple(every)
    seen = f"{count} seen"
    if low >= leaf.at_least and high <= most:
        truth = Truth.TRUE
    elif high < leaf.at_least or low > most:
        truth = Truth.FALSE
    else:
        gap = silent or Missing(leaf.event, subject, "the lines do not tell when it happened")
        if not coverage:
            gap = gap_of(leaf.event, subject, _unanswered(leaf, subject, facts))
        return LeafProof(leaf, Truth.UNKNOWN, shown, (gap,), seen)
    return LeafProof(leaf, ~truth if leaf.negated else truth, shown or tuple(coverage), (), seen)


def _none_known(leaf: EventLeaf, subject: Subject, facts: FactBase) -> LeafProof:
    """`event_leaf` where no event of its kind is known of anything, as of most kinds: only who looked counts."""
    coverage = tuple(_coverage(leaf, subject, facts))
    if not coverage:
        gap = gap_of(leaf.event, subject, _unanswered(leaf, subject, facts))
        return LeafProof(leaf, Truth.UNKNOWN, missing=(gap,), seen="0 seen")
    if all(o.status is Status.NOT_APPLICABLE for o in coverage):
        return LeafProof(leaf, Truth.FALSE, coverage, seen="not applicable")  # negated or not
    return LeafProof(leaf, Truth.TRUE if leaf.negated else Truth.FALSE, coverage, seen="0 seen")


def _matching(
    leaf: EventLeaf, subject: Subject, facts: FactBase
) -> tuple[list[Observation], list[Observation], Missing | None]:
    """Events in reach that are meant by the leaf, those that may be meant, and what the latter do not tell."""
    sure, maybe = _candidates(leaf, subject, facts)
    (sure, undated), (maybe, also) = _recent(sure, leaf, facts), _recent(maybe, leaf, facts)
    lacking = {
        t.field for o in maybe for t in leaf.where if isinstance(o.value, Event) and o.value.get(t.field) is None
    }
    if leaf.same:
        placed = [o for o in sure if None not in _group(leaf, o)]
        lacking |= {
            name for o in sure for name in leaf.same if isinstance(o.value, Event) and o.value.get(name) is None
        }
        sure, maybe = placed, [*maybe, *(o for o in sure if None in _group(leaf, o))]
    maybe = [*undated, *maybe, *also]
    gap = Missing(leaf.event, subject, f"the line does not tell {', '.join(sorted(lacking))}") if lacking else None
    if undated:
        gap = Missing(leaf.event, subject, "date not known")
    if leaf.after is None:
        return sure, maybe, gap
    first, perhaps = _candidates(leaf.after, subject, facts)
    open_end = not _coverage(replace(leaf.after, within=None), subject, facts)
    within, surely, possibly = leaf.after.within or 0, Earlier(first), Earlier(perhaps)
    order = {id(o): surely.before(o, within) for o in (*sure, *maybe)}
    for o in (*sure, *maybe):
        if order[id(o)] is Truth.FALSE and (open_end or possibly.before(o, within) is not Truth.FALSE):
            order[id(o)] = Truth.UNKNOWN
    if open_end and gap is None:
        gap = gap_of(leaf.after.event, subject, _unanswered(leaf.after, subject, facts))
    maybe = [
        *(o for o in sure if order[id(o)] is Truth.UNKNOWN),
        *(o for o in maybe if order[id(o)] is not Truth.FALSE),
    ]
    return [o for o in sure if order[id(o)] is Truth.TRUE], maybe, gap


def _candidates(leaf: EventLeaf, subject: Subject, facts: FactBase) -> tuple[list[Observation], list[Observation]]:
    """Events of the leaf's kind in its reach that satisfy `where`, and those that lack a field to tell."""
    sure: list[Observation] = []
    maybe: list[Observation] = []
    if not facts.events(leaf.event):
        return sure, maybe
    codes = _codes(leaf)
    tests = [t for t in leaf.where if not _asks_code(t)]
    for o in _in_reach(leaf, codes, subject, facts):
        if not isinstance(o.value, Event):
            continue
        told = [t for t in tests if o.value.get(t.field) is not None]
        if all(field_holds(t, o.value) for t in told):
            whole = len(told) == len(tests) and (codes is None or o.value.code is not None)
            (sure if whole else maybe).append(o)
    return sure, maybe


def _group(leaf: EventLeaf, o: Observation) -> tuple[Scalar, ...]:
    return tuple(o.value.get(name) for name in leaf.same) if isinstance(o.value, Event) else ()


def _crowd(leaf: EventLeaf, events: Sequence[Observation]) -> tuple[int, list[Observation]]:
    """How many events are in one span of time for certain, bursts taken as one; and those."""
    within = leaf.within if leaf.at_least > 1 else None
    if leaf.gap is None and any(o.times > 1 for o in events):
        return heaviest(events, within)
    crowd = densest(events if leaf.gap is None else bursts(events, leaf.gap), within)
    return len(crowd), crowd


def _at_least(leaf: EventLeaf, events: Sequence[Observation], maybe: Sequence[Observation]) -> int:
    """How many bursts there are for certain: an event that may belong to them may join two."""
    assert leaf.gap is not None
    apart = densest(bursts(events, leaf.gap, maybe), leaf.within if leaf.at_least > 1 else None)
    return max(min(1, len(apart)), len(apart) - sum(o.at is None for o in maybe))


def _possible(leaf: EventLeaf, events: Sequence[Observation]) -> int:
    """How many can stand in one span: what tells no time, or the time of another clock, may stand in any.

    What one event stands for may lie anywhere since the one before (its window): in a span, and a burst apart.
    """
    many = [o for o in events if o.times > 1 and (o.at is None or _begin(o) < o.at)]
    if leaf.gap is None and (leaf.within is None or leaf.at_least <= 1 or many):
        return how_many(events)
    gap = leaf.gap or 0
    hidden = sum(o.times - 1 for o in many if o.at is not None and o.at - _begin(o) > gap)
    by_clock: dict[Clock, list[Observation]] = {}
    for o in events:
        if o.at is not None:
            by_clock.setdefault(o.clock, []).append(o)
    return sum(_crowd(leaf, group)[0] for group in by_clock.values()) + sum(o.at is None for o in events) + hidden


def _recent(found: list[Observation], leaf: EventLeaf, facts: FactBase) -> tuple[list[Observation], list[Observation]]:
    """Without a count, `within` looks back from the time of the diagnosis where clocks allow. Then those that may be too old.

    A line without a time is one that somebody just showed; an entry of a log that keeps them for years is not: it
    carries the time in which it may have happened.
    """
    if leaf.within is None or leaf.at_least > 1:
        return found, []
    sure: list[Observation] = []
    undated: list[Observation] = []
    for o in found:
        match _is_recent(o, leaf.within, facts.as_of):
            case Truth.TRUE:
                sure.append(o)
            case Truth.UNKNOWN:
                undated.append(o)
    return sure, undated


def _is_recent(o: Observation, within: int, as_of: int | None) -> Truth:
    if o.at is None and o.window is not None:
        if as_of is None:
            return Truth.UNKNOWN
        earliest, latest = o.window
        if latest < as_of - within:
            return Truth.FALSE
        return Truth.TRUE if earliest >= as_of - within else Truth.UNKNOWN
    if as_of is None or o.at is None or o.clock is not Clock.REALTIME:
        return Truth.TRUE
    return Truth.TRUE if as_of - o.at <= within else Truth.FALSE


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


def _begin(o: Observation) -> int:
    """When the first of those happened that an event with a time stands for."""
    assert o.at is not None
    return o.window[0] if o.times > 1 and o.window is not None else o.at


def heaviest(events: Sequence[Observation], within: int | None) -> tuple[int, list[Observation]]:
    """`densest` of events that stand for several: how many lie in one span wherever those lie that are not told one by one."""
    if within is None:
        return how_many(events), list(events)
    best: tuple[int, list[Observation]] = (0, [])
    for clock in {o.clock for o in events if o.at is not None}:
        timed = sorted((o for o in events if o.at is not None and o.clock is clock), key=lambda o: o.at or 0)
        ats = [o.at or 0 for o in timed]
        sums = [0, *accumulate(o.times for o in timed)]
        across = [0] * (len(timed) + 1)  # changes of: what began ahead of a time, and may lie behind it or not
        for i, o in enumerate(timed):
            if (begun := bisect_right(ats, _begin(o))) <= i:
                across[begun] += o.times - 1
                across[i + 1] -= o.times - 1
        for first, (at, before) in enumerate(zip(ats, accumulate(across), strict=False)):
            last = bisect_right(ats, at + within)
            if (count := sums[last] - sums[first] - before) > best[0]:
                best = (count, timed[first:last])
    return best if best[0] else (min(1, len(events)), list(events[:1]))


def bursts(events: Sequence[Observation], gap: int, bridges: Sequence[Observation] = ()) -> list[Observation]:
    """The first event of each burst; a burst ends when nothing follows for `gap` ns, no bridge either.

    Of the clock that tells most of them: bursts of two clocks may be the same ones.
    """
    counted = {id(o) for o in events}
    firsts: dict[Clock, list[Observation]] = {}
    last: dict[Clock, int] = {}
    begun: dict[Clock, bool] = {}
    for o in sorted((o for o in (*events, *bridges) if o.at is not None), key=lambda o: (_begin(o), o.at or 0)):
        assert o.at is not None
        if o.clock not in last or _begin(o) - last[o.clock] > gap:
            begun[o.clock] = False
        last[o.clock] = max(o.at, last.get(o.clock, o.at))
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
        for o in facts.silences(leaf.event, s)
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
    seen = [o for s in _where(leaf, subject).ancestors() for o in facts.silences(leaf.event, s) if o.value is None]
    return next((o for o in seen if not o.status.answered), None) or next(
        (replace(o, detail="only part of the time that is asked about was looked at") for o in seen), None
    )
