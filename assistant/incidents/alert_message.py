"""Alertmanager's messages as they come: checked, typed, and nothing believed.

Version 4 of https://prometheus.io/docs/alerting/latest/configuration/#webhook_config; and what `gpudiag watch` posts itself.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import field
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Any

from knowledge.errors import UsageError
from knowledge.record import dataclass
from knowledge.text import excerpt

VERSION = "4"
OWN = "gpudiag/alert/1"  # what `assistant.watch.webhook` posts
_OWN_STATES = ("firing", "escalated", "resolved")
MOST = 1000  # alerts of a message: more are counted, and not kept
FAULTS = 5  # faults of a message that are named
_URL = re.compile(r"https?://[!-~]+")
_FINGERPRINT = re.compile(r"[A-Za-z0-9_.:-]{1,64}")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_YEARS = (1970, 2200)  # whose moments fit into what stores them


class State(StrEnum):
    """What a message says of an alert."""

    FIRING = "firing"
    RESOLVED = "resolved"


class PayloadError(UsageError):
    """A message that is none of Alertmanager's; says what is wrong with it, and where."""


@dataclass(frozen=True, slots=True)
class Alert:
    """One alert of a message. Times are ns UTC."""

    fingerprint: str
    state: State
    starts: int
    ends: int | None = None
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    url: str = ""  # where the rule is drawn

    @property
    def identity(self) -> tuple[str, int, str]:
        """What is noted once."""
        return self.fingerprint, self.starts, str(self.state)


@dataclass(frozen=True, slots=True)
class Notification:
    """A message about a group of alerts."""

    key: str  # Alertmanager's name of the group
    alerts: tuple[Alert, ...]
    receiver: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)  # what the alerts are grouped by
    common: Mapping[str, str] = field(default_factory=dict)  # what all of them have
    truncated: int = 0  # alerts of the group that are not in the message
    url: str = ""  # of Alertmanager

    @property
    def group(self) -> str:
        """What tells the group from others, in a fixed length."""
        return hashlib.sha256(self.key.encode("utf-8", "replace")).hexdigest()[:32]


# --- reading ------------------------------------------------------------------------------


def read(document: object) -> Notification:
    """The message that a JSON document is. PayloadError with every fault, by its place."""
    faults: list[str] = []
    if not isinstance(document, dict):
        raise PayloadError("the document is no object")
    if document.get("schema") == OWN:
        return _own(document)
    if document.get("version") != VERSION:
        raise PayloadError(f"version is {excerpt(repr(document.get('version'))[:100], 40)}, not '{VERSION}'")
    rows = document.get("alerts")
    if not isinstance(rows, list) or not rows:
        faults.append("alerts: a list with at least one alert is wanted")
        rows = []
    truncated = document.get("truncatedAlerts", 0)
    if not isinstance(truncated, int) or isinstance(truncated, bool) or not 0 <= truncated < 2**31:
        faults.append("truncatedAlerts: a number from 0 on is wanted")
        truncated = 0
    alerts = [a for n, row in enumerate(rows[:MOST]) if (a := _alert(row, f"alerts[{n}]", faults)) is not None]
    key, receiver = _word(document, "groupKey", "", faults), _word(document, "receiver", "", faults)
    if not key:
        faults.append("groupKey: it is missing or empty")
    labels, common = (_words(document, name, "", faults) for name in ("groupLabels", "commonLabels"))
    if faults:
        more = f" (and {len(faults) - FAULTS} more)" if len(faults) > FAULTS else ""
        raise PayloadError("; ".join(faults[:FAULTS]) + more)
    beyond = max(len(rows) - MOST, 0)
    return Notification(
        key, tuple(alerts), receiver, labels, common, truncated + beyond, _url(document.get("externalURL"))
    )


def _own(document: Mapping[str, Any]) -> Notification:
    """What ``gpudiag watch --webhook`` posts: a group of one. What got worse fires, with its new severity."""
    faults: list[str] = []
    told = {
        n: _word(document, n, "", faults)
        for n in ("host", "rule", "severity", "subject", "fingerprint", "status", "at")
    }
    at, first = _time(told["at"]), _time(document.get("first_seen"))
    if at is None or not _FINGERPRINT.fullmatch(told["fingerprint"]) or told["status"] not in _OWN_STATES:
        faults.append("at, fingerprint or status: it is missing, or no moment or word of theirs")
    evidence, xid = document.get("evidence"), document.get("xid")
    lines = [x for x in evidence if isinstance(x, str)] if isinstance(evidence, list) else []
    if faults or at is None:
        raise PayloadError("; ".join(faults[:FAULTS]))
    labels = {"alertname": told["rule"], **{n: told[n] for n in ("rule", "severity", "subject", "host")}}
    if isinstance(xid, int) and not isinstance(xid, bool):
        labels["xid"] = str(xid)
    over = told["status"] == "resolved"
    # A fault that returns keeps its first moment: it fires from when that was said.
    starts = (first if first is not None else at) if over else at
    state, ends = (State.RESOLVED, at) if over else (State.FIRING, None)
    alert = Alert(told["fingerprint"], state, starts, ends, labels, {"summary": lines[0]} if lines else {})
    return Notification(
        f"gpudiag watch:{told['host']}:{told['fingerprint']}",
        (alert,),
        "watch",
        {"alertname": told["rule"], "host": told["host"]},
    )


def _alert(row: object, place: str, faults: list[str]) -> Alert | None:
    if not isinstance(row, dict):
        faults.append(f"{place}: no object")
        return None
    before = len(faults)
    labels = _words(row, "labels", place, faults)
    state, starts = row.get("status"), _time(row.get("startsAt"))
    if state not in list(State):
        faults.append(f"{place}.status: neither firing nor resolved")
    if starts is None:
        faults.append(f"{place}.startsAt: no moment such as 2026-03-03T12:00:00Z")
    fingerprint = row.get("fingerprint", _digest(labels))
    if not isinstance(fingerprint, str) or not _FINGERPRINT.fullmatch(fingerprint):
        faults.append(f"{place}.fingerprint: no word of at most 64 letters and digits")
    annotations = _words(row, "annotations", place, faults)
    if len(faults) > before or starts is None:
        return None
    ends = _time(row.get("endsAt"))
    return Alert(str(fingerprint), State(str(state)), starts, ends, labels, annotations, _url(row.get("generatorURL")))


def _digest(labels: Mapping[str, str]) -> str:
    """For versions before 0.18, which send no fingerprint."""
    text = json.dumps(sorted(labels.items()))
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _word(row: Mapping[str, Any], name: str, place: str, faults: list[str]) -> str:
    value = row.get(name, "")
    if isinstance(value, str):
        return value
    faults.append(f"{place}{'.' if place else ''}{name}: no text")
    return ""


def _words(row: Mapping[str, Any], name: str, place: str, faults: list[str]) -> dict[str, str]:
    value = row.get(name)
    if value is None:  # Go writes an empty map so
        return {}
    if isinstance(value, dict) and all(isinstance(v, str) for v in value.values()):
        return value
    faults.append(f"{place}{'.' if place else ''}{name}: no object of texts")
    return {}


def _time(value: object) -> int | None:
    """ns UTC of an RFC 3339 moment; None for none, and for the year 1 that stands for "not yet"."""
    if not isinstance(value, str) or len(value) > 40:
        return None
    try:
        moment = datetime.fromisoformat(value)
    except ValueError:
        return None
    if moment.tzinfo is None or not _YEARS[0] < moment.year < _YEARS[1]:
        return None
    return (moment - _EPOCH) // timedelta(microseconds=1) * 1000


def _url(value: object) -> str:
    return value if isinstance(value, str) and len(value) <= 2000 and _URL.fullmatch(value) else ""
