"""Facts computed from other facts: pure three-valued functions that run before the rules.

Each module of this package exports ``enrich(observations) -> observations``: the batch with
what it can add. A derived fact is never made from a value that is missing.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Iterable, Sequence
from functools import cache

from knowledge.identity import resolve
from knowledge.observation import Observation

Enrich = Callable[[Sequence[Observation]], list[Observation]]


@cache
def _steps() -> tuple[Enrich, ...]:
    names = sorted(m.name for m in pkgutil.iter_modules(__path__) if not m.name.startswith("_"))
    return tuple(importlib.import_module(f"{__name__}.{name}").enrich for name in names)


def derive(observations: Iterable[Observation]) -> list[Observation]:
    """Observations under canonical subjects, with everything that can be derived from them."""
    batch = resolve(observations)
    for step in _steps():
        batch = step(batch)
    return batch
