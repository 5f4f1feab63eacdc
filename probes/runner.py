"""Runs probes on a host, one after the other, and accounts for each of them.

The runner owns what no probe can be trusted with: how long a call may take, how much output is
kept, and that one probe that breaks does not hide the others. Calls that can hang in the driver
belong into a child process that is given up at the deadline; that is the business of the host
that makes them, since only a live one can hang.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from knowledge.observation import Observation, Source, Status, node
from knowledge.text import excerpt
from probes.host import Host, Reply, capped
from probes.live import ProbeRequest, ProbeSpec, probes

# Bytes of one output that are kept. The kernel logs of long-lived nodes have tens of MiB; a tool's report of
# 16 GPUs has less than one.
OUTPUT_CAP = 64 << 20


@dataclass(frozen=True, slots=True)
class ProbeResult:
    """What one probe gave. OK when it answered anything; else the status and reason of what it could not see."""

    probe: str
    observations: tuple[Observation, ...]
    status: Status
    detail: str = ""
    seconds: float | None = None  # only when timing was asked for


def run(
    host: Host, specs: Iterable[ProbeSpec] | None = None, *, budget: float | None = None,
    on_result: Callable[[ProbeResult], None] | None = None, timing: bool = False, cap: int = OUTPUT_CAP,
    clock: Callable[[], float] = time.monotonic,
) -> list[ProbeResult]:  # fmt: skip
    """Results of the probes (all shipped ones by default), ordered by name, whatever order they are given in.

    `budget` is seconds for all of them: each is told what is left, and those for which nothing is left say
    so. Without one, recordings give the same observations whatever the clock says. `on_result` hears of each
    probe as it ends; what it raises is not caught. `cap` is bytes of one output that are kept.
    """
    limited = _Capped(host, cap)
    started = clock() if budget is not None else 0.0
    results = []
    for spec in sorted(probes() if specs is None else specs, key=lambda s: s.name):
        left = None if budget is None else budget - (clock() - started)
        begun = clock() if timing else 0.0
        observations, error = _collect(spec, limited, left)
        seconds = clock() - begun if timing else None
        result = ProbeResult(spec.name, observations, *_summary(observations, error), seconds)
        results.append(result)
        if on_result is not None:
            on_result(result)
    return results


def _collect(spec: ProbeSpec, host: Host, left: float | None) -> tuple[tuple[Observation, ...], str]:
    """What the probe saw; and the reason, when it broke."""
    if left is not None and left <= 0:
        return _without(spec, host, Status.NOT_ASKED, "the time for probes was spent before it was this one's turn"), ""
    deadline = spec.deadline if left is None else min(spec.deadline, left)
    try:
        return tuple(spec.collect(ProbeRequest(deadline), host)), ""
    # The one broad except of the package: whatever is wrong with one probe, the others are still asked.
    except Exception as error:  # noqa: BLE001
        said = excerpt(str(error), 300)
        why = f"the probe broke: {type(error).__name__}{said and f': {said}'}"
        return _without(spec, host, Status.FAILED, why), why


def _without(spec: ProbeSpec, host: Host, status: Status, why: str) -> tuple[Observation, ...]:
    return tuple(Observation(f, node(host.name), None, status, Source(spec.name), detail=why) for f in spec.main)


def _summary(observations: Sequence[Observation], error: str) -> tuple[Status, str]:
    if error:
        return Status.FAILED, error
    if any(o.status.answered for o in observations):
        return Status.OK, ""
    first = next(iter(observations), None)
    return (first.status, first.detail) if first else (Status.FAILED, "the probe said nothing")


class _Capped:
    """A host whose outputs are cut to a size."""

    def __init__(self, inner: Host, cap: int) -> None:
        self._inner = inner
        self._cap = cap

    @property
    def name(self) -> str:
        return self._inner.name

    @property
    def as_of(self) -> int | None:
        return self._inner.as_of

    def read(self, path: str) -> Reply:
        return capped(self._inner.read(path), self._cap)

    def run(self, argv: Sequence[str], *, deadline: float) -> Reply:
        return capped(self._inner.run(argv, deadline=deadline), self._cap)

    def files(self, pattern: str) -> list[str]:
        return self._inner.files(pattern)
