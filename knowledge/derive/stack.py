"""What the versions of the driver stack mean for each other: drivers that CUDA, GPUs and jobs need, and what differs between ranks.

Pure: the tables are `knowledge.compatibility`; the time at which a branch has ended is that of the observation.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace

from knowledge.compatibility import architecture, branch_ended, device_plugin, driver_for_cuda, driver_for_dcgm
from knowledge.observation import Observation, Origin, Scope, Source, Status, Subject, Value

_TOLD = frozenset(
    {"node.driver.version", "node.driver.loaded_version", "node.cuda.toolkit.version", "process.cuda.version",
     "process.nccl.version", "process.torch.version", "process.torch.cuda", "gpu.compute_capability", "gpu.name",
     "node.torch.cuda", "node.dcgm.version", "node.device_plugin.version"}
)  # fmt: skip
# Versions that ask for a driver: the fact that says which, and the table.
_DRIVERS = {
    "node.cuda.toolkit.version": ("node.cuda.toolkit.driver_needed", driver_for_cuda),
    "node.torch.cuda": ("node.torch.driver_needed", driver_for_cuda),
    "node.dcgm.version": ("node.dcgm.driver_needed", driver_for_dcgm),
    "process.cuda.version": ("process.cuda.driver_needed", driver_for_cuda),
    "process.torch.cuda": (
        "process.cuda.driver_needed",
        driver_for_cuda,
    ),  # after the line above: the mapped one counts
}
_COUNTED = {"process.nccl.version": "job.nccl.versions", "process.torch.version": "job.torch.versions"}


def enrich(observations: Sequence[Observation]) -> list[Observation]:
    """The batch with what follows from the versions in it."""
    told = [
        o for o in observations
        if o.fact in _TOLD and o.status is Status.OK and isinstance(o.value, str) and not o.source.call.startswith("history:")
    ]  # fmt: skip
    if not told:
        return list(observations)
    have = {(o.fact, o.subject) for o in observations}
    out = list(observations)
    for new in (*_alone(told), *_among(told, observations), *_between(told)):
        if (new.fact, new.subject) not in have:
            have.add((new.fact, new.subject))
            out.append(new)
    return out


def _alone(told: Sequence[Observation]) -> Iterator[Observation]:
    """What follows from one version. The compute capability that the driver tells comes before one that the name tells."""
    for o in sorted(told, key=lambda o: o.fact):
        value = str(o.value)
        if o.fact in ("node.driver.version", "node.driver.loaded_version") and o.at is not None:
            ended = branch_ended(value, o.at)
            if ended is not None:
                yield _from(o, "node.driver.branch.ended_days", ended)
        elif o.fact in _DRIVERS:
            fact, table = _DRIVERS[o.fact]
            yield from _needed(o, fact, table(value))
        elif o.fact == "node.device_plugin.version" and (plugin := device_plugin(value)):
            yield _from(o, "node.device_plugin.driver_needed", plugin.driver)
            yield _from(o, "node.device_plugin.toolkit_needed", plugin.toolkit)
        elif o.subject.scope is Scope.GPU and o.fact in ("gpu.compute_capability", "gpu.name"):
            yield from _of_gpu(o, value if o.fact == "gpu.compute_capability" else capability_of(value))


def _needed(o: Observation, fact: str, driver: str | None) -> Iterator[Observation]:
    if driver is not None:
        yield _from(o, fact, driver)


def _of_gpu(o: Observation, capability: str) -> Iterator[Observation]:
    found = architecture(capability)
    if found is not None:
        yield _from(o, "gpu.driver_needed", found.driver)
        yield _from(o, "gpu.cuda_needed", found.cuda)
        yield _from(o, "gpu.needs_open_module", found.open_only)
        if found.dcgm is not None:
            yield _from(o, "gpu.dcgm_needed", found.dcgm)


def capability_of(name: str) -> str:
    """The compute capability of every GPU that a product name may mean; empty when they differ or it means none."""
    from knowledge.gpus import candidates

    found = {spec.compute_capability for spec in candidates(name)}
    return str(next(iter(found))) if len(found) == 1 and None not in found else ""


def _among(told: Sequence[Observation], observations: Sequence[Observation]) -> Iterator[Observation]:
    """How many versions the processes of one job have."""
    if not any(o.fact in _COUNTED for o in told):
        return
    jobs: dict[Subject, Subject] = {}
    for o in observations:
        if (
            o.fact == "process.in_job"
            and o.status is Status.OK
            and isinstance(o.value, str)
            and o.value.startswith("job:")
        ):
            jobs[o.subject] = Subject(Scope.JOB, o.value.removeprefix("job:"), o.subject.up(Scope.NODE))
    groups: dict[tuple[str, Subject], list[Observation]] = defaultdict(list)
    for o in told:
        if o.fact in _COUNTED and o.subject in jobs:
            groups[_COUNTED[o.fact], jobs[o.subject]].append(o)
    for (fact, job), parts in sorted(groups.items(), key=lambda item: (item[0][0], str(item[0][1]))):
        said = ", ".join(
            f"{p.subject.id}: {p.value}" for p in sorted(parts, key=lambda p: (str(p.value), p.subject.id))
        )
        yield replace(_from(parts[0], fact, len({p.value for p in parts})), subject=job, excerpt=said[:300])


def _between(told: Sequence[Observation]) -> Iterator[Observation]:
    """Of each of several nodes the version of the NVIDIA driver that most of them have; where two are as many, the newest."""
    drivers = {o.subject: o for o in told if o.fact == "node.driver.version" and o.subject.id}
    counts = Counter(str(o.value) for o in drivers.values())
    if len(drivers) < 2:
        return
    usual = max(counts, key=lambda v: (counts[v], [int(part) for part in v.split(".") if part.isdecimal()], v))
    yield from (_from(o, "node.driver.usual", usual) for o in drivers.values())


def _from(o: Observation, fact: str, value: Value) -> Observation:
    return Observation(
        fact, o.subject, value, source=Source("derived", o.source.call, o.source.line), at=o.at, clock=o.clock,
        excerpt=f"{o.fact} = {o.value}", origin=Origin.DERIVED,
    )  # fmt: skip
