"""What an out-of-memory message implies: by how much the request did not fit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from knowledge.observation import Event, Observation


def enrich(observations: Sequence[Observation]) -> list[Observation]:
    """The batch with `shortfall` (MiB) and `shortfall_share` (of the request) on `cuda_oom` events.

    Both are left out when the message does not tell how much was asked for or was free.
    """
    return [_with_shortfall(o) if o.fact == "cuda_oom" else o for o in observations]


def _with_shortfall(o: Observation) -> Observation:
    if not isinstance(o.value, Event):
        return o
    asked, free = o.value.get("requested"), o.value.get("free")
    if not isinstance(asked, int | float) or not isinstance(free, int | float) or asked <= 0:
        return o
    lacking = round(asked - free, 3)
    fields = {**o.value.fields, "shortfall": lacking, "shortfall_share": round(lacking / asked, 4)}
    return replace(o, value=Event(o.value.code, fields))
