"""What measured figures of a test are to be held against: what such hardware reaches, and what this machine reached before."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from knowledge.expected import Expected, all_reduce, host_copy, peer_copy, rdma_share
from knowledge.observation import Observation, Origin, Scope, Source, Status, Subject, latest

HOST_COPY = "benchmark.h2d"
PEER_COPY = "benchmark.d2d.median"
BUSBW = "benchmark.collective.busbw.largest"
RDMA = "benchmark.rdma.bw.largest"
# Measured fact -> by how many percent it differs from the median of earlier tests.
CHANGES: Mapping[str, str] = {
    "benchmark.h2d": "benchmark.h2d.change", "benchmark.d2h": "benchmark.d2h.change",
    PEER_COPY: "benchmark.d2d.change", "benchmark.burn.gflops": "benchmark.burn.change",
    BUSBW: "benchmark.collective.busbw.change",
}  # fmt: skip
LARGE = 1 << 28  # bytes of a message from which on the links, not the latency, set the pace
# What else runs over the same links: busbw is made to be comparable between collectives (PERFORMANCE.md of nccl-tests). Without
# the sums in the switch, or with fewer GPUs, half of what an all-reduce of the whole node must reach is asked for.
RINGS = frozenset({"all_reduce", "all_gather", "reduce_scatter", "broadcast", "reduce", "alltoall"})
WHOLE_NODE, LEAST_RANKS = 8, 4
_ANY = frozenset({*CHANGES, RDMA})
_Known = Mapping[tuple[str, Subject], Observation]


def enrich(observations: Sequence[Observation]) -> list[Observation]:
    """The batch with what its measured figures are to be held against. Nothing is added where nothing was measured."""
    out = list(observations)
    if not any(o.fact in _ANY for o in observations):
        return out
    now: dict[tuple[str, Subject], list[Observation]] = defaultdict(list)
    before: dict[tuple[str, Subject], list[float]] = defaultdict(list)
    for o in observations:
        if o.status is not Status.OK:
            continue
        if not o.source.call.startswith("history:"):
            now[o.fact, o.subject].append(o)
        elif isinstance(o.value, int | float) and o.fact in CHANGES:
            before[o.fact, o.subject].append(float(o.value))
    known = {key: latest(group) for key, group in now.items()}
    for (fact, subject), o in sorted(known.items(), key=lambda item: (item[0][0], str(item[0][1]))):
        if fact in _ANY and isinstance(o.value, int | float):
            out += _held_against(fact, subject, o, known)
            out += _changed(fact, subject, o, before.get((fact, subject), ()))
    return out


def _held_against(fact: str, subject: Subject, o: Observation, known: _Known) -> list[Observation]:
    if fact == HOST_COPY:  # one figure for both directions
        found, parts = _of_link(subject, known)
        return _bounds("benchmark.host_copy", subject, o, found, parts)
    if fact == PEER_COPY:
        name = known.get(("gpu.name", subject))
        return _bounds(
            "benchmark.peer_copy", subject, o, peer_copy(str(name.value)) if name else None, [name] if name else []
        )
    if fact == BUSBW:
        return _of_group(subject, o, known)
    if fact == RDMA:
        return _of_port(subject, o, known)
    return []


def _of_link(subject: Subject, known: _Known) -> tuple[Expected | None, list[Observation]]:
    """By the widest and fastest link that GPU and slot can have: one that fell back is what a test is to show."""
    parts = [known.get((f"gpu.pcie.{name}.max", subject)) for name in ("gen", "width")]
    c2c = known.get(("gpu.c2c_mode", subject))
    if c2c is not None and c2c.value is True:  # NVLink-C2C stands where PCIe would
        return None, []
    told = [p for p in parts if p is not None and isinstance(p.value, int)]
    return (host_copy(int(told[0].value), int(told[1].value)), told) if len(told) == 2 else (None, [])  # type: ignore[arg-type]


def _of_group(subject: Subject, o: Observation, known: _Known) -> list[Observation]:
    """By the model of the GPUs, where all that took part are one model and the test ran on one node alone.

    The output itself may name it; else all GPUs of the node must be alike. A table that ends with small messages tells of
    latency, and is held against nothing.
    """
    told = [known.get((f"benchmark.collective.{name}", subject)) for name in ("ranks", "nodes", "op", "largest")]
    ranks, nodes, op, largest = told
    if ranks is None or nodes is None or nodes.value != 1 or op is None or not isinstance(ranks.value, int):
        return []
    small = largest is not None and isinstance(largest.value, int) and largest.value < LARGE
    model = None if small else _one_model(subject, known)
    if model is None:
        return []
    name, parts = "benchmark.collective.busbw", [model, ranks]
    if op.value == "all_reduce" and (found := all_reduce(str(model.value), ranks.value)):
        return _bounds(name, subject, o, found, parts)
    whole = all_reduce(str(model.value), WHOLE_NODE) if op.value in RINGS and ranks.value >= LEAST_RANKS else None
    return [_derived(f"{name}.floor", subject, whole.floor / 2, o, [*parts, op])] if whole else []


def _one_model(subject: Subject, known: _Known) -> Observation | None:
    """What names the model of the GPUs that took part; None where that is not known, or where there are several."""
    if named := known.get(("benchmark.collective.gpu", subject)):
        return named
    home = subject.up(Scope.NODE)
    names = [o for (fact, s), o in known.items() if fact == "gpu.name" and s.up(Scope.NODE) == home]
    return names[0] if len({o.value for o in names}) == 1 else None


def _of_port(subject: Subject, o: Observation, known: _Known) -> list[Observation]:
    """A share of the rate of the port that the test sent from."""
    device, share, home = known.get(("benchmark.rdma.device", subject)), rdma_share(), subject.up(Scope.NODE)
    if device is None or share is None:
        return []
    rates = [r for (fact, s), r in known.items()
             if fact == "port.rate" and s.up(Scope.NODE) == home and s.id.split("/")[0] == device.value]  # fmt: skip
    if len({r.value for r in rates}) != 1 or not isinstance(rates[0].value, int | float):
        return []  # the adapter has ports of several rates, and which it was is not told
    rate, parts = float(rates[0].value), [device, rates[0]]
    return [
        _derived("benchmark.rdma.bw.typical", subject, round(rate * share.typical / 100, 2), o, parts),
        _derived("benchmark.rdma.bw.floor", subject, round(rate * share.floor / 100, 2), o, parts),
    ]


def _bounds(
    name: str, subject: Subject, o: Observation, found: Expected | None, parts: Sequence[Observation]
) -> list[Observation]:
    if found is None:
        return []
    return [
        _derived(f"{name}.typical", subject, found.typical, o, parts),
        _derived(f"{name}.floor", subject, found.floor, o, parts),
    ]


def _changed(fact: str, subject: Subject, o: Observation, before: Iterable[float]) -> list[Observation]:
    samples = sorted(before)
    middle = samples[(len(samples) - 1) // 2 : len(samples) // 2 + 1]
    usual = sum(middle) / len(middle) if middle else 0.0  # the median
    if usual <= 0 or fact not in CHANGES:
        return []
    value = round(100 * (float(o.value) / usual - 1), 1)  # type: ignore[arg-type]
    said = f"{fact} = {o.value:g}, median of {len(samples)} earlier = {usual:g}"
    return [_derived(CHANGES[fact], subject, value, o, [], said)]


def _derived(
    fact: str, subject: Subject, value: float, o: Observation, parts: Sequence[Observation], said: str = ""
) -> Observation:
    shown = said or ", ".join(f"{p.fact} = {p.value}" for p in parts)
    return Observation(
        fact, subject, value, source=Source("derived", o.source.call, o.source.line), at=o.at, clock=o.clock,
        excerpt=shown, origin=Origin.DERIVED,
    )  # fmt: skip
