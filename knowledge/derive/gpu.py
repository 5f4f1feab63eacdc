"""Facts about one GPU that follow from others: limits that depend on the link, sums, shares."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence

from knowledge.observation import Observation, Origin, Scope, Source, Status, Subject, latest

# Replays a minute that a healthy lane may show at a bit error rate of 1e-12
# (NVIDIA DCGM, GetExpectedPcieReplayRate): by PCIe generation, for each lane.
REPLAYS_PER_LANE: Mapping[int, float] = {1: 0.15, 2: 0.3, 3: 0.48, 4: 0.96, 5: 1.92, 6: 3.84}

_Known = dict[str, Observation]
_Rule = tuple[str, tuple[str, ...], Callable[..., float | int | None]]


def replay_limit(gen: int, lanes: int) -> int | None:
    """Replays a minute above which a link of `gen` and `lanes` is worse than its specification."""
    per_lane = REPLAYS_PER_LANE.get(gen)
    return None if per_lane is None or lanes <= 0 else math.ceil(lanes * per_lane)


def _share(part: float, whole: float) -> float | None:
    return None if whole <= 0 else round(100 * part / whole, 2)


_RULES: tuple[_Rule, ...] = (
    ("gpu.pcie.replay.limit", ("gpu.pcie.gen.max", "gpu.pcie.width.max"), replay_limit),
    ("gpu.retired_pages.total", ("gpu.retired_pages.single_bit", "gpu.retired_pages.double_bit"), lambda a, b: a + b),
    ("gpu.power.share", ("gpu.power.draw", "gpu.power.limit"), _share),
    ("gpu.memory.share", ("gpu.memory.used", "gpu.memory.total"), _share),
    ("gpu.clock.sm.share", ("gpu.clock.sm", "gpu.clock.sm.max"), _share),
)
_WORKED_OUT = frozenset(fact for fact, _, _ in _RULES)
_INPUTS = frozenset(name for _, inputs, _ in _RULES for name in inputs)


def enrich(observations: Sequence[Observation]) -> list[Observation]:
    """The batch with the derived facts of each GPU whose inputs are all known once.

    With several samples of an input over time the newest of each source file counts, as
    long as all inputs come from the same source.
    """
    groups: dict[tuple[Subject, str], dict[str, list[Observation]]] = defaultdict(lambda: defaultdict(list))
    have = {(o.fact, o.subject) for o in observations if o.fact in _WORKED_OUT}
    for o in observations:
        if o.fact not in _INPUTS:
            continue
        if o.source.call.startswith("history:"):  # samples of earlier checks: nothing is worked out from them
            continue
        if o.subject.scope is Scope.GPU and o.status is Status.OK and isinstance(o.value, int | float):
            groups[o.subject, _read_at_once(o)][o.fact].append(o)
    out = list(observations)
    for (subject, _), samples in sorted(groups.items(), key=_newest_first):
        known: _Known = {fact: latest(group) for fact, group in samples.items()}
        for fact, inputs, function in _RULES:
            if (fact, subject) in have or not all(name in known for name in inputs):
                continue
            parts = [known[name] for name in inputs]
            value = function(*(p.value for p in parts))
            if value is not None:
                have.add((fact, subject))
                out.append(_derived(fact, subject, value, parts))
    return out


def _newest_first(item: tuple[tuple[Subject, str], Mapping[str, Sequence[Observation]]]) -> tuple[str, int, str]:
    """Of what several sources tell of a GPU the latest comes first: what it is now is worked out from that one."""
    (subject, call), samples = item
    return str(subject), -max(o.at or 0 for group in samples.values() for o in group), call


def _read_at_once(o: Observation) -> str:
    """What `o` was read together with: the same file or output. Of a snapshot each observation names the call or
    the file that it came from; together they are those of the same collector and moment."""
    return f"{o.source.probe} {o.at}" if o.source.probe.endswith("-snapshot") else o.source.call


def _derived(fact: str, subject: Subject, value: float, parts: Sequence[Observation]) -> Observation:
    first = parts[0]
    said = ", ".join(f"{p.fact} = {p.value}" for p in parts)
    return Observation(
        fact, subject, value, source=Source("derived", first.source.call, first.source.line), at=first.at,
        clock=first.clock, excerpt=said, origin=Origin.DERIVED,
    )  # fmt: skip
