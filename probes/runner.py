"""Runs probes on a host, side by side on a live one, and accounts for each of them.

The runner owns what no probe can be trusted with: how long a call may take, how much output is
kept, and that one probe that breaks does not hide the others. Calls that can hang in the driver
belong into a child process that is given up at the deadline; that is the business of the host
that makes them (`probes.live_host`), since only a live one can hang.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import replace
from queue import Empty, Queue
from threading import Thread

from knowledge.errors import UsageError, nearest_hint
from knowledge.observation import Observation, Source, Status, node
from knowledge.record import dataclass
from knowledge.text import excerpt
from probes.host import Host, Reply, capped
from probes.live import ProbeRequest, ProbeSpec, probes

# Bytes of one output that are kept. The kernel logs of long-lived nodes have tens of MiB; a tool's report of
# 16 GPUs has less than one.
OUTPUT_CAP = 64 << 20
# Probes that read what the kernel has at hand and touch neither GPU nor disk: late only on a machine that is starved.
UNRELATED = frozenset({"system", "interfaces", "platform"})
HANGS = frozenset({"node.driver.state", "node.driver.hung_call", "gpu.nvml.hung_call", "gpu.nvml.reachable"})
_WAITED = re.compile("no answer in|no end after")
NO_TIME = "the time for probes was spent before it was this one's turn"


@dataclass(frozen=True, slots=True)
class ProbeResult:
    """What one probe gave. OK when it answered anything; else the status and reason of what it could not see."""

    probe: str
    observations: tuple[Observation, ...]
    status: Status
    detail: str = ""
    seconds: float | None = None  # only when timing was asked for

    @property
    def unasked(self) -> bool:
        """True when the runner had no time left for it: none of its calls was made."""
        return self.status is Status.NOT_ASKED and self.detail == NO_TIME


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a run is: told when it begins and as each probe ends."""

    done: int
    total: int
    waiting: tuple[str, ...]  # probes that are under way


def select(names: Collection[str] = (), extra: Collection[str] = (), without: Collection[str] = ()) -> list[ProbeSpec]:
    """The probes called `names`, or else the default ones; and `extra`, but not `without`. UsageError for unknown names."""
    known = {spec.name: spec for spec in probes()}
    for name in (*names, *extra, *without):
        if name not in known:
            hint = nearest_hint(name, known) or f"probes: {', '.join(known)}"
            raise UsageError(f"there is no probe {name!r}", hint=hint)
    wanted = set(names) or {spec.name for spec in known.values() if spec.default}
    return [spec for name, spec in known.items() if name in (wanted | set(extra)) - set(without)]


def run(
    host: Host, specs: Iterable[ProbeSpec] | None = None, *, budget: float | None = None,
    on_progress: Callable[[Progress], None] | None = None, timing: bool = False, cap: int = OUTPUT_CAP,
    clock: Callable[[], float] = time.monotonic, jobs: int = 1, unasked: Collection[str] = (),
) -> list[ProbeResult]:  # fmt: skip
    """Results of the probes (the default ones unless given), ordered by name, whatever order they are given in.

    A probe that stands in for another runs only when that one gave no answer, and not when it hung: it
    would hang too. `budget` is seconds for all of them: each is told what is left, and those for which
    nothing is left say so. Without one, recordings give the same observations whatever the clock says. `jobs`
    is how many run side by side. `on_progress` hears of each end, in the calling thread. `cap` is bytes of one
    output that are kept. `unasked` names probes that a recording had no time for.
    """
    wanted = sorted(select() if specs is None else specs, key=lambda s: s.name)
    task = _Task(_Capped(host, cap), budget, clock, timing, frozenset(unasked), on_progress or (lambda _: None))
    names = {spec.name for spec in wanted}
    second = [s for s in wanted if s.instead_of in names]
    first = [s for s in wanted if s not in second]
    found = task.all(first, jobs, len(wanted))
    if second:
        ended = {r.probe: r.status for r in found}
        left = [s for s in second if ended[s.instead_of] not in (Status.OK, Status.TIMEOUT)]
        found += task.all(left, jobs, len(first) + len(left))
    return sorted(_without_starved(found), key=lambda r: r.probe)


def _without_starved(found: Sequence[ProbeResult]) -> list[ProbeResult]:
    """The results, where a probe that touches no GPU was too late as well without a word of a driver that hangs: the machine
    was slow for all of them. Only a process that sleeps in the kernel (state D) is then a hang."""
    late = [r.probe for r in found if r.probe in UNRELATED and r.status is Status.TIMEOUT]
    if not late:
        return list(found)
    return [replace(r, observations=tuple(_doubted(o, late) for o in r.observations)) for r in found]


def _doubted(o: Observation, late: Sequence[str]) -> Observation:
    hung = o.status is Status.OK and _WAITED.search(o.excerpt) is not None and "state D" not in o.excerpt
    if o.fact not in HANGS or not hung:
        return o
    why = f"{o.excerpt}; {' and '.join(late)} had no answer in time either"
    return replace(o, value=None, status=Status.TIMEOUT, detail=why)


@dataclass
class _Task:
    host: Host
    budget: float | None
    clock: Callable[[], float]
    timing: bool
    unasked: frozenset[str]
    tell: Callable[[Progress], None]
    done: int = 0

    def __post_init__(self) -> None:
        self._started = self.clock() if self.budget is not None else 0.0

    def all(self, specs: Sequence[ProbeSpec], jobs: int, total: int) -> list[ProbeResult]:
        """The results of `specs`, `jobs` at a time."""
        if jobs <= 1:
            results = []
            for spec in specs:
                self.tell(Progress(self.done, total, (spec.name,)))
                results.append(self._one(spec))
                self.done += 1
            return results
        waiting: Queue[ProbeSpec] = Queue()
        ended: Queue[tuple[str, ProbeResult | BaseException]] = Queue()
        for spec in specs:
            waiting.put(spec)
        for number in range(min(jobs, len(specs))):  # daemons: an interrupted check does not wait for what hangs
            try:
                Thread(target=self._work, args=(waiting, ended), daemon=True).start()
            except RuntimeError:  # no memory or no process is left for another: those that run do it all
                if not number:
                    return self.all(specs, 1, total)
                break
        results, under_way = [], {spec.name for spec in specs}
        while under_way:
            self.tell(Progress(self.done, total, tuple(sorted(under_way))))
            try:
                name, result = ended.get(timeout=0.2)
            except Empty:
                continue
            if isinstance(result, BaseException):
                raise result
            under_way.discard(name)
            results.append(result)
            self.done += 1
        return results

    def _work(self, waiting: Queue[ProbeSpec], ended: Queue[tuple[str, ProbeResult | BaseException]]) -> None:
        while True:
            try:
                spec = waiting.get_nowait()
            except Empty:
                return
            try:
                ended.put((spec.name, self._one(spec)))
            except BaseException as error:  # noqa: BLE001 - handed to the thread that waits, which raises it
                ended.put((spec.name, error))

    def _one(self, spec: ProbeSpec) -> ProbeResult:
        left = None if self.budget is None else self.budget - (self.clock() - self._started)
        begun = self.clock() if self.timing else 0.0
        if spec.name in self.unasked:
            left = 0.0
        observations, error = _collect(spec, self.host, left)
        seconds = self.clock() - begun if self.timing else None
        return ProbeResult(spec.name, observations, *_summary(observations, error), seconds)


def _collect(spec: ProbeSpec, host: Host, left: float | None) -> tuple[tuple[Observation, ...], str]:
    """What the probe saw; and the reason, when it broke."""
    if left is not None and left <= 0:
        return _without(spec, host, Status.NOT_ASKED, NO_TIME), ""
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

    def snapshot(self, name: str, *args: str, deadline: float) -> Reply:
        return capped(self._inner.snapshot(name, *args, deadline=deadline), self._cap)

    def files(self, pattern: str) -> list[str]:
        return self._inner.files(pattern)
