"""Faults in an event log that tells no date of them: nothing recent is concluded from them, and nothing is called fine."""

from __future__ import annotations

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


def _may_be_recent(o: Observation, as_of: int | None) -> bool:
    event = o.value
    if not isinstance(event, Event) or o.at is not None or o.window is None:
        return False
    bad = event.get("severity") == "error" and event.get("state") in ("asserted", "logged")
    return bad and (as_of is None or o.window[1] >= as_of - RECENT)
