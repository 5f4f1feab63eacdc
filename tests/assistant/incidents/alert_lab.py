"""Messages as Alertmanager writes them, and incidents grown from them without a database."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from assistant.incidents.alert_labels import Card, Knows
from assistant.incidents.alert_message import Notification, read
from assistant.incidents.alerts import SURFACE, adding, opening
from assistant.incidents.events import Entry, Event
from assistant.incidents.fold import Incident, after, fold
from knowledge.language import Text

T0 = datetime(2026, 3, 3, 12, tzinfo=UTC)
LOST = {"rule": "gpu-fell-off-bus", "subject": "gpu 0000:3b:00.0", "xid": "79", "severity": "critical"}
CARD = Card(Text("GPU has fallen off the bus", "GPU 从总线上掉线"), "critical", "gpu-off-bus")
KNOWS = Knows(
    lambda said: {"gpu-12": "gpu-12", "g12": "gpu-12"}.get(said, ""),
    {"gpu-fell-off-bus": CARD}.get,
    lambda name: name in ("thermal", "gpu-off-bus"),
)


def moment(minutes: int) -> str:
    return (T0 + timedelta(minutes=minutes)).isoformat().replace("+00:00", "Z")


def alert(fingerprint: str, status: str = "firing", minutes: int = 0, /, **labels: str) -> dict[str, Any]:
    """One alert of a message, that began so many minutes after `T0`."""
    return {
        "status": status, "fingerprint": fingerprint, "startsAt": moment(minutes),
        "endsAt": moment(minutes + 5) if status == "resolved" else "0001-01-01T00:00:00Z",
        "labels": {"alertname": "GpuLost", "instance": "gpu-12:9400", **labels},
        "annotations": {"summary": "A GPU does not answer"}, "generatorURL": "http://prometheus:9090/graph?g0.expr=up",
    }  # fmt: skip


def message(
    alerts: Iterable[Mapping[str, Any]], key: str = '{}:{alertname="GpuLost"}', truncated: int = 0
) -> dict[str, Any]:
    """The document about a group."""
    rows = list(alerts)
    status = "firing" if any(a["status"] == "firing" for a in rows) else "resolved"
    return {
        "version": "4", "groupKey": key, "truncatedAlerts": truncated, "status": status, "receiver": "gpudiag",
        "groupLabels": {"alertname": "GpuLost"}, "commonLabels": {"alertname": "GpuLost"}, "commonAnnotations": {},
        "externalURL": "http://alertmanager:9093", "alerts": rows,
    }  # fmt: skip


def notification(*alerts: Mapping[str, Any], truncated: int = 0) -> Notification:
    return read(message(alerts, truncated=truncated))


NOW = 2 * 10**18  # ns UTC, of all events that nobody gives another time


def more(incident: Incident, entries: Iterable[Entry], surface: str = SURFACE, at: int = NOW) -> Incident:
    """With these events behind it, as the history numbers them."""
    for entry in entries:
        n = len(incident.events) + 1
        incident = after(incident, Event(n, at, entry.kind, "alertmanager", surface, entry.data))
    return incident


def grown(messages: Iterable[Notification], knows: Knows = KNOWS) -> Incident:
    """The incident that messages about one group make, while nobody closes it."""
    incident = fold(())
    for n in messages:
        incident = more(incident, adding(n, incident, knows, NOW) if incident.events else opening(n, knows, NOW))
    return incident
