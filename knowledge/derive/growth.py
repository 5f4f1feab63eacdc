"""Counters of errors that grew between two looks: what was added, from which value to which, and when, where the looks have times.

A counter of a lifetime says nothing by itself; that it grew while somebody looked is news. A counter that falls has begun again (the
driver was loaded, the counters were cleared, the board was replaced) and says nothing.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import cache
from itertools import pairwise

from knowledge.derive.gpu import REPLAYS_PER_LANE, replay_limit
from knowledge.facts import vocabulary
from knowledge.observation import Clock, Event, Observation, Origin, Scalar, Scope, Source, Status, Subject, Value
from knowledge.text import excerpt

# What the growth of a counter of each kind of thing is called.
FACTS = {scope: f"{scope}_counter_growth" for scope in
         (Scope.GPU, Scope.LINK, Scope.PORT, Scope.NIC, Scope.PCI, Scope.OBJECT, Scope.NODE)}  # fmt: skip
MINUTE = 60 * 10**9
REPLAYS = "gpu.pcie.replay"
_CLOCKS = tuple(Clock)
_MOST_LANES = 16
_MOST = 1 << 64  # no counter is wider
_FULL = (15, 255, 65535)  # where the counters of an InfiniBand port stop: `perfquery -x` goes on counting

_KEPT = "history:"

Place = tuple[str, Subject]


def enrich(observations: Sequence[Observation]) -> list[Observation]:
    """The batch with an event for each counter of the vocabulary's lists that grew."""
    counters = _counters()
    samples: dict[Place, list[Observation]] = defaultdict(list)
    kept: dict[Place, list[Observation]] = defaultdict(list)  # of the history, which rates judge over their windows
    for o in observations:
        if o.fact in counters and _is_sample(o):
            (kept if o.source.call.startswith(_KEPT) else samples)[o.fact, o.subject].append(o)
    several = {place: found for place, found in samples.items() if len(found) > 1}
    stood = _stood(samples, kept)
    if not several:
        return [*observations, *_looked(stood)]
    other = replaced(observations)
    grown = [event for (fact, subject), found in several.items()
             if other.isdisjoint(subject.ancestors()) and (event := _growth(fact, subject, found, observations))]  # fmt: skip
    return [*observations, *_in_parts(grown), *_looked((*several, *stood))]


def _stood(samples: Mapping[Place, Sequence[Observation]], kept: Mapping[Place, Sequence[Observation]]) -> list[Place]:
    """Counters of things of which none differs from what the history has of it."""
    moved = {subject for (_, subject), found in kept.items() for o in found if o.value != found[0].value}
    moved |= {
        subject
        for (fact, subject), found in kept.items()
        if (now := samples.get((fact, subject))) and now[-1].value != found[-1].value
    }
    return [place for place in kept if place in samples and place[1] not in moved]


@cache
def _counters() -> frozenset[str]:
    words = vocabulary()
    return frozenset(name for fact in FACTS.values() for name in words[fact].labels)


def _is_sample(o: Observation) -> bool:
    number = isinstance(o.value, int | float) and not isinstance(o.value, bool) and 0 <= o.value < _MOST
    ours = o.origin in (Origin.MEASURED, Origin.DERIVED) or o.source.call.startswith(_KEPT)
    return number and ours and o.status is Status.OK and o.subject.scope in FACTS


def replaced(observations: Iterable[Observation]) -> set[Subject]:
    """Slots in which two boards were seen: the counters of one are no sequel of the other's."""
    boards: dict[Subject, set[tuple[str, Value]]] = defaultdict(set)
    for o in observations:
        if o.fact in ("gpu.uuid", "gpu.serial", "port.guid") and o.status is Status.OK:
            boards[o.subject].add((o.fact, o.value))
    return {s for s, known in boards.items() if len({name for name, _ in known}) < len(known)}


def in_order(found: Iterable[Observation]) -> list[Observation]:
    """The samples of the one tool and clock that gave most, in order of time; without times in the order of inputs and lines."""
    groups: dict[tuple[str, Clock], list[Observation]] = defaultdict(list)
    for o in found:
        tool = "nvidia-smi" if o.source.probe.startswith("nvidia-smi") else o.source.probe
        groups[tool, o.clock if o.at is not None else Clock.NONE].append(o)
    best = max(groups, key=lambda g: (g[1] is not Clock.NONE, len(groups[g]), g[0], -_CLOCKS.index(g[1])))
    return sorted(groups[best], key=lambda o: (o.at or 0, o.source.order, o.source.call, o.source.line or 0))


def _growth(
    fact: str, subject: Subject, found: Sequence[Observation], batch: Sequence[Observation]
) -> Observation | None:
    """What was added since the counter last fell; where nothing was, what was added before."""
    course = in_order(found)
    if (
        course[0].at is None
        and len({(o.source.order, o.source.call) for o in course}) > 1
        and not all(o.source.order for o in course)
    ):
        return None  # of several files of which nothing tells which was first
    runs: list[list[Observation]] = [[course[0]]]
    for before, after in pairwise(course):
        if _number(after) < _number(before):
            runs.append([])
        runs[-1].append(after)
    run = next((r for r in reversed(runs) if _number(r[-1]) > _number(r[0])), None)
    if run is None:
        return None
    if fact.startswith("port.counters.") and run[0].value in _FULL:
        return None
    first = [o for o in run if o.value == run[0].value][-1]
    last = next(o for o in run if o.value == run[-1].value)
    fields: dict[str, Scalar] = {"counter": fact, "before": int(_number(first)), "after": int(_number(last)),
                                 "by": int(_number(last) - _number(first)), "beyond": False}  # fmt: skip
    if first.at is not None and last.at is not None:
        fields |= dict(zip(("since", "until"), between(first, last), strict=True))
        if (took := last.at - first.at) >= MINUTE:
            fields["per_minute"] = round(float(_number(last) - _number(first)) * MINUTE / took, 3)
    if fact == REPLAYS and isinstance(rate := fields.get("per_minute"), float):
        fields["beyond"] = rate > _limit(subject, batch)
    source = Source("derived", last.source.call, last.source.line, order=last.source.order)
    said = f"{_cited(first)} -> {_cited(last)}"
    return Observation(FACTS[subject.scope], subject, Event(None, fields), source=source, at=last.at, clock=last.clock, origin=Origin.DERIVED,
                       excerpt=excerpt(said, 200))  # fmt: skip


# A sum, and what it is the sum of, where the same machine tells both.
_SUMS = {
    **{f"gpu.ecc.{life}.{kind}.total": f"gpu.ecc.{life}.{kind}." for life in ("volatile", "aggregate") for kind in ("corrected", "uncorrected")},
    **{f"node.memory.errors.{kind}": f"dimm.errors.{kind}" for kind in ("corrected", "uncorrected")},
    **{f"gpu.nvlink.errors.{kind}": f"link.errors.{kind}" for kind in ("crc_flit", "crc_data", "replay", "recovery", "symbol", "effective")},
    **{f"gpu.nvlink.recovery.{kind}": f"link.recovery.{kind}" for kind in ("successful", "failed")},
    **{f"gpu.ecc.aggregate.uncorrected.{part}": "gpu.ecc.aggregate.uncorrected.sram" for part in ("sram_parity", "sram_secded")},
}  # fmt: skip


def _in_parts(grown: Sequence[Observation]) -> list[Observation]:
    """Without the sums of which a part is told."""
    told = [(str(o.value.get("counter")), o.subject) for o in grown if isinstance(o.value, Event)]

    def is_sum(counter: str, subject: Subject) -> bool:
        part = _SUMS.get(counter, "?")
        return any(name.startswith(part) and name != counter and not name.startswith(f"{part}_")
                   and subject in s.ancestors() for name, s in told)  # fmt: skip

    return [o for o, (counter, subject) in zip(grown, told, strict=True) if not is_sum(counter, subject)]


def _looked(several: Iterable[Place]) -> list[Observation]:
    """That nothing else grew, of each thing of which counters were read twice."""
    return [Observation(FACTS[s.scope], s, None, Status.NONE_SEEN, Source("derived"), origin=Origin.DERIVED)
            for s in dict.fromkeys(subject for _, subject in several)]  # fmt: skip


def _number(o: Observation) -> int | float:
    return o.value if isinstance(o.value, int | float) else 0


def _limit(subject: Subject, batch: Sequence[Observation]) -> float:
    """Replays a minute that a good link has at most: of this link, of its model's, else of the fastest that there is."""
    told = [o for o in batch if o.subject == subject and o.status is Status.OK]
    limits = [o.value for o in told if o.fact == "gpu.pcie.replay.limit" and isinstance(o.value, int | float)]
    if limits:
        return max(limits)
    from knowledge.gpus import candidates

    models = [m for o in told if o.fact == "gpu.name" and isinstance(o.value, str) for m in candidates(o.value)]
    generations = [m.pcie_generation for m in models if m.pcie_generation] or [max(REPLAYS_PER_LANE)]
    return replay_limit(max(generations), _MOST_LANES) or 0


def between(first: Observation, last: Observation) -> tuple[str, str]:
    """The times of two looks as people write them: ``2026-11-03 03:00`` and ``05:00 UTC``; to the second where a minute holds both."""
    a, b = first.at or 0, last.at or 0
    exact = a // MINUTE == b // MINUTE
    since, until = _written(a, first.clock, exact), _written(b, last.clock, exact)
    day = since.rpartition(" ")[0]
    until = until.removeprefix(f"{day} ") if day else until
    return since, f"{until} UTC" if last.clock is Clock.REALTIME else until


def _written(at: int, clock: Clock, exact: bool) -> str:
    told = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=at // 10**9)
    days = {Clock.DAY: "", Clock.YEARLESS: "%m-%d "}.get(clock, "%Y-%m-%d ")
    if clock in (Clock.BOOT, Clock.MONOTONIC, Clock.TRACE, Clock.NONE):
        return f"{at / 1e9:.0f} s"
    return told.strftime(f"{days}%H:%M:%S" if exact else f"{days}%H:%M")


def _cited(o: Observation) -> str:
    return f"{o.value} ({o.source})"
