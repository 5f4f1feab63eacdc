"""What an out-of-memory message implies: by how much the request did not fit, and how much lies idle in pieces."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from knowledge.observation import Event, Observation, Scalar

BESIDE = (
    2048.0  # MiB, generous: a CUDA context takes some hundred MiB, NCCL's buffers and cuBLAS' workspaces about as much
)


def enrich(observations: Sequence[Observation]) -> list[Observation]:
    """The batch with more fields on `cuda_oom` events, each left out where the message does not tell its inputs.

    `shortfall` (MiB) is the request less the free memory, `shortfall_share` the same over the
    request, `unallocated_share` the allocator's unused reserve over the memory of the card, `request_share` the request
    over that memory. `in_reserve`: whether the request is no more than what is free and what the allocator holds unused,
    so that only its pieces keep it from being met. `elsewhere` (MiB) is what is neither free nor this program's: where the message tells only what
    its allocator holds, `BESIDE` is granted to the program for its context, its libraries and their workspaces.
    """
    return [_measured(o) if o.fact == "cuda_oom" else o for o in observations]


def _measured(o: Observation) -> Observation:
    if not isinstance(o.value, Event):
        return o
    fields: dict[str, Scalar] = {}
    asked, free = o.value.get("requested"), o.value.get("free")
    if isinstance(asked, int | float) and isinstance(free, int | float) and asked > 0:
        fields = {"shortfall": round(asked - free, 3), "shortfall_share": round((asked - free) / asked, 4)}
    idle, total = o.value.get("reserved_unallocated"), o.value.get("total")
    if isinstance(idle, int | float) and isinstance(total, int | float) and total > 0:
        fields["unallocated_share"] = round(idle / total, 4)
    if isinstance(idle, int | float) and isinstance(free, int | float) and isinstance(asked, int | float) and asked > 0:
        fields["in_reserve"] = asked <= free + idle
    if isinstance(total, int | float) and total > 0:
        if isinstance(asked, int | float):
            fields["request_share"] = round(asked / total, 4)
        own, reserved = o.value.get("in_use_process"), o.value.get("reserved")
        held = own if isinstance(own, int | float) else reserved + BESIDE if isinstance(reserved, int | float) else None
        if held is not None and isinstance(free, int | float):
            fields["elsewhere"] = round(max(0.0, total - free - held), 3)
    return replace(o, value=Event(o.value.code, {**o.value.fields, **fields}))
