"""What the search for XID lines says about XIDs that other lines or tools name.

* Whoever read a whole log for XID lines has read it for the lines that name an earlier XID.
* An exporter that counted an XID (`xid_exported`), or a monitor that reported one (`xid_reported`), tells that it
  happened, though no line is here.
* DCGM's gauge of the last XID (`gpu.xid.last`) tells that too, and not when: `xid_kept`, with what the catalogue says.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from knowledge.derive.xid import implied_fields
from knowledge.observation import Clock, Event, Observation, Origin, Status, Subject

_UNLISTED = {"title": "a code that NVIDIA's catalogue lacks", "title_zh": "NVIDIA 错误目录中没有此代码"}
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
    return [*kept, *covered, *told, *_kept(kept)]


def _kept(observations: Sequence[Observation]) -> list[Observation]:
    """`xid_kept` of each GPU of which a source tells the last code. The time is that of a look, and none of the error."""
    last: dict[tuple[Subject, str], Observation] = {}
    for o in observations:
        if o.fact == "gpu.xid.last" and (o.status is Status.OK or (o.subject, o.source.call) not in last):
            last[o.subject, o.source.call] = o
    return [_of_gauge(o) for o in last.values()]


def _of_gauge(o: Observation) -> Observation:
    kept = replace(
        o, fact="xid_kept", at=None, clock=Clock.NONE, origin=o.origin if o.origin is Origin.TOLD else Origin.DERIVED
    )
    if o.status is not Status.OK or not isinstance(o.value, int):
        return kept
    if not o.value:
        return replace(kept, value=None, status=Status.NONE_SEEN)
    return replace(kept, value=Event(o.value, {**_UNLISTED, **implied_fields(o.value)}))


def _implied(o: Observation, event: Event) -> Observation:
    code = event.code or 0
    origin = Origin.TOLD if o.origin is Origin.TOLD else Origin.DERIVED
    return replace(o, fact="xid_implied", value=Event(code, implied_fields(code)), origin=origin)
