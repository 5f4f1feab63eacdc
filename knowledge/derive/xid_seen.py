"""What the search for XID lines says about XIDs that other lines or tools name.

* Whoever read a whole log for XID lines has read it for the lines that name an earlier XID.
* An exporter that counted an XID (`xid_exported`), or a monitor that reported one (`xid_reported`), tells that it
  happened, though no line is here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from knowledge.derive.xid import implied_fields
from knowledge.observation import Event, Observation, Origin, Status

_TOLD_BY_OTHERS = ("xid_exported", "xid_reported")


def enrich(observations: Sequence[Observation]) -> list[Observation]:
    """The batch with the coverage of `xid_implied`, and one such event for each code that only a monitor saw."""
    kept = [o for o in observations if not (o.fact == "xid_implied" and o.status is Status.NONE_SEEN)]
    covered = [replace(o, fact="xid_implied") for o in kept if o.fact == "xid" and o.status is Status.NONE_SEEN]
    printed = {
        (o.subject, o.value.code) for o in kept if o.fact in ("xid", "xid_implied") and isinstance(o.value, Event)
    }
    told = [
        _implied(o, o.value)
        for o in kept
        if o.fact in _TOLD_BY_OTHERS and isinstance(o.value, Event) and (o.subject, o.value.code) not in printed
    ]
    return [*kept, *covered, *told]


def _implied(o: Observation, event: Event) -> Observation:
    code = event.code or 0
    return replace(o, fact="xid_implied", value=Event(code, implied_fields(code)), origin=Origin.DERIVED)
