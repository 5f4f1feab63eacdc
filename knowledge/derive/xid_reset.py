"""Resets of GPUs, as what drivers say of them tells.

* NVIDIA: the recovery action changed from one to none (XID 154, 0x1 -> 0x0). The driver asks for nothing any more.
* AMD: ``GPU reset(n) succeeded``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from knowledge.observation import Event, Observation, Origin, Status


def enrich(observations: Sequence[Observation]) -> list[Observation]:
    """The batch with one `gpu_reset` for each line that tells of a reset that was done."""
    kept = [o for o in observations if not (o.fact == "gpu_reset" and o.origin is Origin.DERIVED)]
    return [*kept, *(_reset(o, by) for o in kept if (by := _told_by(o)))]


def _reset(o: Observation, by: str) -> Observation:
    return replace(o, fact="gpu_reset", value=Event(None, {"told_by": by}), origin=Origin.DERIVED)


def _told_by(o: Observation) -> str:
    """Whose word it is that the GPU was reset; empty when the observation tells of none."""
    event = o.value
    if not isinstance(event, Event) or o.status is not Status.OK:
        return ""
    if o.fact == "xid" and event.code == 154:
        back = event.get("recovery_to") == 0 and bool(event.get("recovery_from"))
        return "xid_154" if back else ""
    return "amdgpu" if o.fact == "amdgpu_reset" and event.get("stage") == "succeeded" else ""
