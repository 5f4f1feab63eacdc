"""Faults in an event log of which the rules conclude nothing: without a date nothing is called fine, old ones are told as past."""

from __future__ import annotations

from datetime import UTC, datetime

from knowledge.language import Text
from knowledge.observation import Event, Observation
from rules.factbase import FactBase

RECENT = 7 * 86400 * 10**9  # ns; as far back as the rules on entries of the event log look


def faults(facts: FactBase) -> Text | None:
    """What the first line says when nothing tells more of the node; None without a fault that may be recent."""
    found = {
        str(k.inner.value.get("sensor"))
        for k in facts.observations
        if k.fact == "bmc_event" and isinstance(k.inner.value, Event) and _may_be_recent(k.inner, facts.as_of)
    }
    if not found:
        return None
    shown = ", ".join(sorted(found)[:4]) + (" ..." if len(found) > 4 else "")
    return Text(
        f"Cannot say: the event log holds faults whose date is not known ({shown}).",
        f"无法判断：事件日志中有日期未知的故障（{shown}）。",
    )


def past(facts: FactBase) -> Text | None:
    """Faults that are older than the rules look back, and that no later entry takes back; None without one."""
    if facts.as_of is None:
        return None
    last: dict[tuple[str, str], Observation] = {}
    entries = (k.inner for k in facts.observations if k.fact == "bmc_event" and k.inner.at is not None)
    for o in sorted(entries, key=lambda o: (o.at or 0, o.source.line or 0)):
        if isinstance(o.value, Event):
            last[str(o.value.get("sensor")), str(o.value.get("event"))] = o
    old = [o for o in last.values() if (o.at or 0) < facts.as_of - RECENT and (_is_fault(o) or _of_power(o))]
    if not old:
        return None
    newest = max(old, key=lambda o: o.at or 0)
    assert isinstance(newest.value, Event)
    day = datetime.fromtimestamp((newest.at or 0) / 10**9, UTC).date().isoformat()
    part, more = f"{newest.value.get('sensor')} ({newest.value.get('event')})", len(old) - 1
    return Text(
        f"Long past: the event log holds a fault of {day} that no entry takes back: {part}{f' (+{more} more)' if more else ''}.",
        f"较早以前：事件日志有 {day} 的故障，无后续条目解除：{part}{f'（另有 {more} 项）' if more else ''}。",
    )


def _of_power(o: Observation) -> bool:
    """A supply or its redundancy that was lost, which the log calls a warning."""
    event = o.value
    if not isinstance(event, Event) or event.get("state") not in ("asserted", "logged"):
        return False
    return event.get("severity") == "warning" and str(event.get("kind")).startswith(("psu_", "power_"))


def _is_fault(o: Observation) -> bool:
    event = o.value
    if not isinstance(event, Event):
        return False
    return event.get("severity") == "error" and event.get("state") in ("asserted", "logged")


def _may_be_recent(o: Observation, as_of: int | None) -> bool:
    if o.at is not None or o.window is None:
        return False
    return _is_fault(o) and (as_of is None or o.window[1] >= as_of - RECENT)
