"""Probes: one module a source. It fetches text through the `Host` and hands it to a parser.

A module exports ``PROBE``; the folder is the registry, and a module whose name starts with an
underscore is a helper. `collect` never raises for what a host answers: a reply that holds
nothing becomes observations of the probe's main facts with the reason.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Iterable, Mapping
from dataclasses import field
from enum import IntEnum
from functools import cache
from types import ModuleType

from knowledge.exports import unlike
from knowledge.language import Text
from knowledge.observation import Observation
from knowledge.record import dataclass
from probes.host import Host


class Cost(IntEnum):
    """What a probe costs the machine; the planner asks cheap ones first."""

    FREE = 0  # a small file
    CHEAP = 1  # a command that ends within a second
    SECONDS = 2
    HEAVY = 3  # minutes, or a load that a running job would feel: never without being asked for


@dataclass(frozen=True, slots=True)
class Needs:
    """What must be there for a probe to answer."""

    binaries: tuple[str, ...] = ()  # any one of them
    privileges: tuple[str, ...] = ()  # for a whole answer
    files: tuple[str, ...] = ()  # any one of them


@dataclass(frozen=True, slots=True)
class ProbeRequest:
    """What a probe is told: seconds that one call may take, and options of its own."""

    deadline: float
    options: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ProbeSpec:
    """One source of facts."""

    name: str
    title: Text
    provides: tuple[str, ...]  # every fact that it can give
    main: tuple[str, ...]  # those that get the reason when it gives nothing
    collect: Callable[[ProbeRequest, Host], list[Observation]]
    needs: Needs = Needs()
    cost: Cost = Cost.CHEAP
    side_effects: tuple[Text, ...] = ()
    deadline: float = 30.0  # seconds for one call, unless the caller has less
    default: bool = True  # False: only when it is asked for by name
    instead_of: str = ""  # the probe that this one stands in for: it runs only when that one gave no answer
    takes: frozenset[str] = frozenset()  # options that it understands: "pids"
    wants: frozenset[str] = frozenset()  # of them those without which there is nothing that it could be asked


@cache
def probes() -> tuple[ProbeSpec, ...]:
    """Every probe, ordered by name. AttributeError when a module exports none."""
    names = sorted(info.name for info in pkgutil.iter_modules(__path__) if not info.name.startswith("_"))
    return exported(importlib.import_module(f"{__name__}.{name}") for name in names)


def exported(modules: Iterable[ModuleType]) -> tuple[ProbeSpec, ...]:
    """The probes of these modules, ordered by name. TwinsError when two of them have one name."""
    found: list[tuple[str, ProbeSpec]] = [(module.__name__, module.PROBE) for module in modules]
    return tuple(sorted(unlike(found, "probes", {"name": "are called {!r}"}), key=lambda spec: spec.name))
