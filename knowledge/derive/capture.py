"""What follows from a capture: which process the others wait for, who holds up the job, what a wait can cost at most.

A relation ties two subjects whatever it is called, so "the slow rank of the job" would reach every process of the job.
What a rule needs to know of that one process is therefore said of the process itself.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from knowledge.derive._added import with_added
from knowledge.observation import Observation, Origin, Scope, Source, Status, Subject, Value

_INPUTS = frozenset({
    "job.slow_rank.is_process", "job.slow_rank.wait.share", "job.slow_rank.function", "job.hung.is_process", "job.hung",
    "process.is_rank", "process.in_job",
    "gpu.window.pcie.rx", "gpu.window.pcie.tx", "gpu.pcie.gen", "gpu.pcie.width", "node.window.nic.rx", "node.window.nic.tx", "nic.speed", "nic.used.share", "capture.window.seconds", "gpu.window.utilization",
    "gpu.window.clock.share", "stack.sync.share", "stack.collective.share", "stack.collective.function", "process.uses_gpu",
    "stack.workers.read.share", "stack.workers.function", "stack.data_wait.share", "stack.io.share", "stack.io.function",
    "stack.data_work.share", "stack.data_work.function", "thread.blocked_io.share",
})  # fmt: skip

# GB/s that a lane carries in one direction, by generation: its rate less the line code (PCI-SIG: 8b/10b, then 128b/130b).
LANE = {1: 0.25, 2: 0.5, 3: 0.985, 4: 1.969, 5: 3.938, 6: 7.563}
_MUCH = 25.0  # percent of the window: what a process does for a good part of it
_LITTLE = 10.0  # percent of the window: what it loses less to is rarely worth a change
# Who is blocked in reads, from which share on; what the loop loses to it; the function that reads.
_READS = (
    ("stack.workers.read.share", _MUCH, "stack.data_wait.share", "stack.workers.function"),
    ("stack.io.share", _LITTLE, "stack.io.share", "stack.io.function"),
    ("stack.data_work.share", _LITTLE, "thread.blocked_io.share", "stack.data_work.function"),
)


def enrich(observations: Sequence[Observation]) -> list[Observation]:
    """The batch with what can be derived for the processes, GPUs, jobs and adapters of a capture."""
    seen: dict[tuple[str, Subject], Observation] = {}
    uses: dict[Subject, set[Subject]] = defaultdict(set)  # process -> its GPUs
    without: list[Observation] = []  # processes of which somebody knows that they use none
    for o in observations:
        if o.fact not in _INPUTS:
            continue
        if o.fact == "process.uses_gpu":
            if o.status is Status.OK and isinstance(o.value, str):
                uses[o.subject].add(Subject(Scope.GPU, o.value.removeprefix("gpu:"), o.subject.up(Scope.NODE)))
            elif o.status in (Status.NONE_SEEN, Status.NOT_APPLICABLE):
                without.append(o)
        elif o.status is Status.OK:
            seen[o.fact, o.subject] = max(
                seen.get((o.fact, o.subject), o), o, key=_newer
            )  # of several captures the last
    if not seen:
        return list(observations)
    added = (
        *_late(seen), *_holding_up(seen), *_ranks(seen), *_links(seen), *_pcie(seen), *_clocks(seen),
        *_idle(seen, uses), *_no_gpu(seen, uses, without), *_waits_for(seen, uses), *_seconds(seen, uses),
        *_reading(seen), *_together(seen),
    )  # fmt: skip
    return with_added(observations, added)


_Seen = Mapping[tuple[str, Subject], Observation]
_Uses = Mapping[Subject, set[Subject]]


def _clocks(seen: _Seen) -> Iterator[Observation]:
    """What a GPU does not do: the time without a kernel, and what lower clocks cost at most."""
    for (fact, gpu), o in seen.items():
        if fact == "gpu.window.utilization":
            yield _derived("gpu.window.idle.share", gpu, _rest(o), o)
        elif fact == "gpu.window.clock.share":
            yield _derived("gpu.window.clock.lost.share", gpu, _rest(o), o)


def _idle(seen: _Seen, uses: _Uses) -> Iterator[Observation]:
    """How long the GPUs of a process have no kernel, and so what its waits for the device cost at most.

    A host that waits while the GPU works is ahead of it, and loses nothing.
    """
    for process, gpus in uses.items():
        known = [o for g in gpus if (o := seen.get(("gpu.window.utilization", g)))]
        if not known or len(known) < len(gpus):
            continue
        base = max(known, key=lambda o: (_number(o.value), o.subject.id))
        yield _derived("process.gpu_idle.share", process, _rest(base), base)
        if wait := seen.get(("stack.sync.share", process)):
            yield _derived("stack.sync.cost.share", process, min(_number(wait.value), _rest(base)), wait)


def _no_gpu(seen: _Seen, uses: _Uses, without: Sequence[Observation]) -> Iterator[Observation]:
    for o in without:
        if o.subject not in uses and ("capture.window.seconds", o.subject) in seen:
            for fact in ("process.gpu_idle.share", "stack.sync.cost.share"):
                yield replace(_derived(fact, o.subject, None, o), status=Status.NOT_APPLICABLE, detail="it uses no GPU")
            if taken := seen.get(("stack.sync.share", o.subject)):
                yield _derived("stack.sync.host.share", o.subject, taken.value, taken)


def _reading(seen: _Seen) -> Iterator[Observation]:
    """How long the loop waits for reads from storage, and the function that reads: of its loader's workers, or its own.

    A worker that is blocked in reads for less than a quarter of the window is not what the loop waits for.
    """
    for process in dict.fromkeys(s for (fact, s) in seen if fact.startswith(("stack.", "thread."))):
        for share, least, lost, where in _READS:
            cause, cost = seen.get((share, process)), seen.get((lost, process))
            if cause is None or cost is None or _number(cause.value) < least or _number(cost.value) < _LITTLE:
                continue
            yield _derived("process.read.wait.share", process, cost.value, cost)
            if named := seen.get((where, process)):
                yield _derived("process.read.wait.function", process, named.value, named)
            break


def _together(seen: _Seen) -> Iterator[Observation]:
    """How long each of the captured ranks of a job stands in collectives at least: what is common to all is not one's being late."""
    ranks: dict[Subject, list[Observation]] = defaultdict(list)
    for (fact, process), o in seen.items():
        if fact == "stack.collective.share" and (job := _job_of(seen, process)):
            ranks[job].append(o)
    for job, found in ranks.items():
        if len(found) > 1:
            least = min(found, key=lambda o: (_number(o.value), o.subject.id))
            yield _derived("job.collective.share", job, least.value, least)


def _waits_for(seen: _Seen, uses: _Uses) -> Iterator[Observation]:
    """Of a GPU the collective in which its process stands; of several processes the one that stands there longest."""
    waits: dict[Subject, list[tuple[float, str, Observation]]] = defaultdict(list)
    for process, gpus in uses.items():
        share, where = seen.get(("stack.collective.share", process)), seen.get(("stack.collective.function", process))
        if share is not None and where is not None and _number(share.value) >= _MUCH:
            for g in gpus:
                waits[g].append((_number(share.value), process.id, where))
    for g, found in waits.items():
        where = max(found, key=lambda each: each[:2])[2]
        yield _derived("gpu.window.waits_for", g, where.value, where)


def _seconds(seen: _Seen, uses: _Uses) -> Iterator[Observation]:
    """The window of a job and of a GPU is that of its processes; the longest where they differ."""
    windows: dict[tuple[str, Subject], list[Observation]] = defaultdict(list)
    for (fact, process), o in seen.items():
        if fact != "capture.window.seconds":
            continue
        for g in uses.get(process, ()):
            windows["gpu.window.seconds", g].append(o)
        if job := _job_of(seen, process):
            windows["job.window.seconds", job].append(o)
    for (fact, subject), found in windows.items():
        base = max(found, key=lambda o: (_number(o.value), o.subject.id))
        yield _derived(fact, subject, base.value, base)


def _job_of(seen: _Seen, process: Subject) -> Subject | None:
    tie = seen.get(("process.in_job", process))
    if tie is None or not isinstance(tie.value, str) or not tie.value.startswith("job:"):
        return None
    return Subject(Scope.JOB, tie.value.removeprefix("job:"), process.up(Scope.NODE))


def _rest(o: Observation) -> float:
    return round(min(100.0, max(0.0, 100.0 - _number(o.value))), 1)


def _late(seen: _Seen) -> Iterator[Observation]:
    """The process that the other ranks wait for, for how long, and where it is meanwhile."""
    for job, process in _named(seen, "job.slow_rank.is_process"):
        if wait := seen.get(("job.slow_rank.wait.share", job)):
            yield _derived("process.late.share", process, wait.value, wait)
        if where := seen.get(("job.slow_rank.function", job)):
            yield _derived("process.late.function", process, where.value, where)


def _holding_up(seen: _Seen) -> Iterator[Observation]:
    """The process because of which a whole job stands still."""
    for job, process in _named(seen, "job.hung.is_process"):
        if hung := seen.get(("job.hung", job)):
            yield _derived("process.holds_up_job", process, hung.value, hung)


def _named(seen: _Seen, fact: str) -> Iterator[tuple[Subject, Subject]]:
    """Each job with the process that `fact` names of it; a job that spans nodes names one of its own node."""
    for (name, job), o in seen.items():
        if name == fact and isinstance(o.value, str) and o.value.startswith("process:"):
            yield (
                job,
                Subject(Scope.PROCESS, o.value.removeprefix("process:"), job.up(Scope.NODE) or Subject(Scope.NODE, "")),
            )


def _ranks(seen: _Seen) -> Iterator[Observation]:
    for (fact, process), o in seen.items():
        if fact == "process.is_rank" and isinstance(o.value, str):
            number = o.value.removeprefix("rank:")
            if number.isascii() and number.isdigit() and len(number) < 10:
                yield _derived("process.rank", process, int(number), o)


def _links(seen: _Seen) -> Iterator[Observation]:
    """The busier direction of an adapter over the speed of its link, as it is printed or from both."""
    for (fact, nic), o in seen.items():
        if fact == "nic.used.share":
            yield _derived("node.window.nic.used.share", nic, o.value, o)
        sent, speed = seen.get(("node.window.nic.tx", nic)), seen.get(("nic.speed", nic))
        if fact != "node.window.nic.rx" or sent is None or speed is None:
            continue
        bits = 8 * max(_number(o.value), _number(sent.value))
        if _number(speed.value) > 0:
            share = round(100 * bits / (_number(speed.value) * 1e9), 1)
            yield _derived("node.window.nic.used.share", nic, share, o, f"{bits / 1e9:.3g} of {speed.value} Gb/s")


def _newer(o: Observation) -> tuple[int, str, str]:
    return o.at if o.at is not None else -1, repr(o.value), repr(o.source)


def _pcie(seen: _Seen) -> Iterator[Observation]:
    """The busier direction of a GPU's PCIe link over what it carries."""
    for (fact, gpu), o in seen.items():
        told = [seen.get((name, gpu)) for name in ("gpu.window.pcie.tx", "gpu.pcie.gen", "gpu.pcie.width")]
        if fact != "gpu.window.pcie.rx" or None in told:
            continue
        sent, generation, width = (_number(t.value) for t in told if t is not None)
        carries = LANE.get(int(generation), 0.0) * width * 1e9
        if carries > 0:
            said = f"{max(_number(o.value), sent) / 1e9:.3g} of {carries / 1e9:.3g} GB/s"
            yield _derived(
                "gpu.window.pcie.used.share", gpu, round(100 * max(_number(o.value), sent) / carries, 1), o, said
            )


def _number(value: Value) -> float:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else 0.0


def _derived(fact: str, subject: Subject, value: Value, base: Observation, said: str = "") -> Observation:
    source = Source("derived", base.source.call, base.source.line)
    return Observation(
        fact,
        subject,
        value,
        Status.OK,
        source,
        base.at,
        base.clock,
        excerpt=said or base.excerpt,
        origin=Origin.DERIVED,
    )
