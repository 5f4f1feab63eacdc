"""Whether the PyTorch that programs run, or that a person showed, holds code for the GPUs: architectures against compute capability.

Pure. What a build itself says it was compiled for counts both ways. The published list of a release is of its x86-64 wheels; those
for Arm hold less, so it can say no and never yes.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from knowledge.compatibility import published_architectures, runs_on
from knowledge.derive.stack import capability_of
from knowledge.observation import Observation, Origin, Scope, Source, Status, Subject

_FACTS = frozenset(
    {"process.torch.architectures", "process.torch.version", "process.torch.cuda", "process.uses_gpu",
     "node.torch.architectures", "node.torch.version", "node.torch.cuda", "gpu.compute_capability", "gpu.name"}
)  # fmt: skip
FACT = "gpu.torch.has_kernels"


class _Build(NamedTuple):
    """One PyTorch: who runs it, what it was compiled for, and the observation that says so."""

    owner: Subject
    architectures: tuple[str, ...]
    told: Observation
    itself: bool  # the build says it; not the list of its release


def enrich(observations: Sequence[Observation]) -> list[Observation]:
    """The batch with one answer for each GPU that a PyTorch is known for."""
    seen: dict[tuple[str, Subject], Observation] = {}
    uses: dict[Subject, set[Subject]] = defaultdict(set)
    for o in observations:
        if o.fact not in _FACTS or o.status is not Status.OK or o.source.call.startswith("history:"):
            continue
        if o.fact == "process.uses_gpu":
            uses[o.subject].add(Subject(Scope.GPU, str(o.value).removeprefix("gpu:"), o.subject.up(Scope.NODE)))
        else:
            seen.setdefault((o.fact, o.subject), o)
    builds = [b for owner in sorted({s for f, s in seen if ".torch." in f}, key=str) for b in _builds(seen, owner)]
    if not builds or any(o.fact == FACT for o in observations):
        return list(observations)
    return [*observations, *_answers(seen, uses, builds)]


def _builds(seen: dict[tuple[str, Subject], Observation], owner: Subject) -> Iterator[_Build]:
    prefix = "process" if owner.scope is Scope.PROCESS else "node"
    own = seen.get((f"{prefix}.torch.architectures", owner))
    if own is not None:
        if isinstance(own.value, tuple):
            yield _Build(owner, tuple(map(str, own.value)), own, itself=True)
        return
    version, cuda = seen.get((f"{prefix}.torch.version", owner)), seen.get((f"{prefix}.torch.cuda", owner))
    if version is not None and cuda is not None:
        listed = published_architectures(str(version.value), str(cuda.value))
        if listed:
            yield _Build(owner, listed, version, itself=False)


def _answers(
    seen: dict[tuple[str, Subject], Observation], uses: dict[Subject, set[Subject]], builds: Sequence[_Build]
) -> Iterator[Observation]:
    """For each GPU: no when a build holds no code for it, yes when all of them say that they do, else nothing."""
    for gpu in sorted({s for _, s in seen if s.scope is Scope.GPU}, key=str):
        capability = _capability(seen, gpu)
        mine = [b for b in builds if gpu in uses[b.owner] or b.owner == gpu.up(Scope.NODE)]
        runs = [(b, runs_on(b.architectures, capability)) for b in mine]
        lacking = [b for b, answer in runs if answer is False]
        if lacking:
            yield _answer(gpu, lacking[0], capability, has=False)
        elif runs and all(answer and b.itself for b, answer in runs):
            yield _answer(gpu, runs[0][0], capability, has=True)


def _capability(seen: dict[tuple[str, Subject], Observation], gpu: Subject) -> str:
    told = seen.get(("gpu.compute_capability", gpu))
    if told is not None:
        return str(told.value)
    name = seen.get(("gpu.name", gpu))
    return capability_of(str(name.value)) if name is not None else ""


def _answer(gpu: Subject, build: _Build, capability: str, *, has: bool) -> Observation:
    o = build.told
    whose = f"process {build.owner.id}: " if build.owner.scope is Scope.PROCESS else ""
    listed = "" if build.itself else f", PyTorch {o.value} as published"
    shown = f"{whose}{' '.join(build.architectures)}{listed}; this GPU: {capability}"
    return Observation(
        FACT, gpu, has, source=Source("derived", o.source.call, o.source.line), at=o.at, clock=o.clock,
        excerpt=shown[:300], origin=Origin.DERIVED,
    )  # fmt: skip
