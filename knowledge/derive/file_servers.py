"""Of each loss of a file server, on how many nodes the same server was lost in the same minutes: whose fault it is follows from that."""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace

from knowledge.observation import Clock, Event, Observation, Scalar

AT_ONCE = (
    10 * 60 * 10**9
)  # ns: clients notice at their next request, and a server that comes back gives them minutes to be heard
_SHARED = (Clock.REALTIME, Clock.LOCAL, Clock.YEARLESS)  # clocks that nodes have in common


def enrich(observations: Sequence[Observation]) -> list[Observation]:
    """The batch, `nodes` filled in for each client that lost its server or was put out by it."""
    out = list(observations)
    groups: dict[tuple[Scalar, Scalar, Clock], dict[str, list[tuple[int, int]]]] = defaultdict(
        lambda: defaultdict(list)
    )
    counts: dict[int, int] = {}
    for i, o in enumerate(out):
        event = o.value
        if (
            o.fact != "filesystem_stall"
            or not isinstance(event, Event)
            or event.get("state") not in ("lost", "evicted")
        ):
            continue
        counts[i] = 1
        if o.at is not None and o.clock in _SHARED and o.subject.host and event.get("server"):
            groups[event.get("filesystem"), event.get("server"), o.clock][o.subject.host].append((o.at, i))
    for hosts in groups.values():
        times = [sorted(at for at, _ in rows) for rows in hosts.values()]
        counts |= {i: sum(_near(known, at) for known in times) for rows in hosts.values() for at, i in rows}
    for i, nodes in counts.items():
        event = out[i].value
        assert isinstance(event, Event)
        out[i] = replace(out[i], value=Event(event.code, {**event.fields, "nodes": nodes}))
    return out


def _near(times: Sequence[int], at: int) -> bool:
    """Whether one of `times`, in order, lies within `AT_ONCE` of `at`."""
    first = bisect_left(times, at - AT_ONCE)
    return first < len(times) and times[first] <= at + AT_ONCE
