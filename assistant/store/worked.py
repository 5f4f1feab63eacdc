"""What the GPUs of a node did at each look that the history keeps: busy beside working, and their class."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter, defaultdict
from statistics import fmean
from typing import NamedTuple

from assistant.store.codec import decode, subject_of
from assistant.store.read import Reader, Sample
from knowledge.derive.working import OVER_TIME, enrich
from knowledge.observation import Clock, Observation, Source, Status, Subject

_BUSY, _SM, _TENSOR, _DRAM, _POWER, _LIMIT = (
    "gpu.utilization.core", "gpu.activity.sm", "gpu.activity.tensor", "gpu.activity.dram", "gpu.power.draw", "gpu.power.limit",
)  # fmt: skip
_FACTS = (*(name for name, gauge in OVER_TIME.items() if gauge), "gpu.name", _LIMIT)


class Worked(NamedTuple):
    """One GPU over time; a mean is None where nobody read it."""

    gpu: Subject
    busy: tuple[Sample, ...]
    mean_busy: float
    mean_sm: float | None
    mean_tensor: float | None
    mean_dram: float | None
    mean_power: float | None
    power_limit: float | None  # W that was last in force
    classes: tuple[tuple[str, float], ...]  # of `gpu.work.class`, percent of the looks that have one, most first


def worked(reader: Reader, host: str, since: int) -> list[Worked]:
    """Each GPU of the node of which the history knows how busy it was since `since` (ns UTC)."""
    read: dict[Subject, dict[str, tuple[Sample, ...]]] = defaultdict(dict)
    for fact in _FACTS:
        for line in reader.lines(host, fact, since=0 if fact not in OVER_TIME else since, about=True):
            known = tuple(s for s in line.samples if s.cell.status == Status.OK)
            read[subject_of(line.key.subject)].setdefault(fact, known)
    looks: list[Observation] = []
    for gpu, facts in read.items():
        for moment in facts.get(_BUSY, ()):
            looks += _look(reader, gpu, facts, moment.at)
    classes: dict[Subject, Counter[str]] = defaultdict(Counter)
    by_moment: dict[str, list[Observation]] = defaultdict(list)
    for o in looks:
        by_moment[o.source.call].append(o)
    for together in by_moment.values():
        for o in enrich(together):
            if o.fact == "gpu.work.class":
                classes[o.subject][str(o.value)] += 1
    return [_one(gpu, facts, classes[gpu]) for gpu, facts in sorted(read.items(), key=str) if facts.get(_BUSY)]


def _look(reader: Reader, gpu: Subject, facts: dict[str, tuple[Sample, ...]], at: int) -> list[Observation]:
    """What was known of a GPU at one moment: the newest sample of each fact up to then."""
    out = []
    for fact, samples in facts.items():
        if place := bisect_right([s.at for s in samples], at):
            value = decode(samples[place - 1].cell, reader.vocabulary.get(fact))
            out.append(Observation(fact, gpu, value, source=Source("look", str(at)), at=at, clock=Clock.REALTIME))
    return out


def _one(gpu: Subject, facts: dict[str, tuple[Sample, ...]], classes: Counter[str]) -> Worked:
    def mean(fact: str) -> float | None:
        known = [s.cell.num for s in facts.get(fact, ()) if s.cell.num is not None]
        return fmean(known) if known else None

    all_looks = sum(classes.values())
    shares = tuple((kind, 100 * n / all_looks) for kind, n in classes.most_common())
    limits = [s.cell.num for s in facts.get(_LIMIT, ()) if s.cell.num is not None]
    return Worked(
        gpu, facts[_BUSY], mean(_BUSY) or 0.0, mean(_SM), mean(_TENSOR), mean(_DRAM), mean(_POWER),
        limits[-1] if limits else None, shares,
    )  # fmt: skip
