"""Whether a memory repair that was told is another one: ``gpu.row_remap.recurs``.

XID 63 records the repair of a row. A reset puts that repair into effect, so one that is told to have come "again after the reset" is
about a row that failed since. Of a log the rules over its events tell it (`row-remaps-repeated`).
"""

from __future__ import annotations

from collections.abc import Sequence

from knowledge.observation import Event, Observation, Origin, Status

FACT = "gpu.row_remap.recurs"
_BACK_AFTER = "gpu.fault.back_after"
_REPAIR = 63  # row remap or page retirement recorded


def enrich(observations: Sequence[Observation]) -> list[Observation]:
    """The batch with the fact of each GPU whose told memory repair was told to have come back."""
    told = [o for o in observations if o.fact in ("xid", "xid_implied") and o.origin is Origin.TOLD]
    repaired = {o.subject for o in told if isinstance(o.value, Event) and o.value.code == _REPAIR}
    again = [
        Observation(FACT, o.subject, True, source=o.source, excerpt=o.excerpt, origin=o.origin)
        for o in observations
        if o.fact == _BACK_AFTER and o.status is Status.OK and o.origin is Origin.TOLD and o.subject in repaired
    ]
    return [*observations, *again]
