"""What follows from the recorded incidents and from lines of logs: worked out once in a process, for all tests.

A diagnosis is frozen, and a law of its own (`dialogue/test_follow_up_laws`) says that no answer touches one.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from functools import cache

from assistant.commands import demo
from assistant.diagnosis import Diagnosis, diagnose
from assistant.machine import Look, bundle
from assistant.sources import parse_text
from knowledge.observation import Observation, Origin, Scope, Subject
from rules.loader import load

DEVICES = (Scope.PCI, Scope.PORT, Scope.NIC, Scope.NVSWITCH)


@cache
def incident(name: str) -> Diagnosis:
    """The diagnosis of a recorded incident (``gpudiag demo NAME``)."""
    return demo.diagnosed(name, demo.load(name))


@cache
def machine(name: str) -> Look:
    """What the probes tell of the machine of a recorded incident."""
    return bundle(str(demo.FOLDER / name / demo.load(name)["bundle"]))[1]


@cache
def smaller(name: str) -> Diagnosis:
    """An incident of a machine that has, of its devices, only those that something was found about, and up to four GPUs.

    For laws that suppose much: a whole machine has three to five times as many facts. Where its cause is not found without
    the rest, it is the whole.
    """
    d = incident(name)
    about = {part for f in d.findings for part in f.subject.ancestors()}
    gpus = sorted(d.facts.subjects(Scope.GPU), key=lambda g: (g not in about, g.id))
    kept = about | set(gpus[:4])
    seen = [k.inner for k in d.facts.observations if k.inner.origin is not Origin.DERIVED]
    told = [o for o in seen if not (on := _devices(o.subject)) or not on.isdisjoint(kept)]
    part = diagnose(told, load(), as_of=d.as_of, whole="bundle" in demo.load(name))
    return part if [f.id for f in part.roots][:1] == [f.id for f in d.roots][:1] else d


def _devices(subject: Subject) -> set[Subject]:
    return {part for part in subject.ancestors() if part.scope in (Scope.GPU, *DEVICES)}


def few_gpus(observations: Iterable[Observation], gpus: Collection[str]) -> tuple[Observation, ...]:
    """What is told of these GPUs, of the node and of what runs on it."""
    return tuple(
        o
        for o in observations
        if ((on := o.subject.up(Scope.GPU)) is not None and on.id in gpus)
        or (on is None and o.subject.scope not in DEVICES)
    )


@cache
def of_log(text: str, kind: str = "kmsg") -> Diagnosis:
    """The diagnosis of lines of a log."""
    return diagnose(parse_text(kind, text), load())
