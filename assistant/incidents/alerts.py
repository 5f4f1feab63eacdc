"""What Alertmanager's messages add to incidents. Pure: the same messages give the same events.

A message tells how all alerts of a group stand. Alertmanager repeats it, splits it, sends it again after a time-out, and two of
them send it twice. What an incident comes to depends on what was told, and neither on its order nor on how often:

* each state of each alert is noted once (`alert_ledger`);
* all over: the incident is mitigated; closing it is for people. One fires again: it is open again;
* what is merely not mentioned is not over: a silence, a restart of Alertmanager and a limit look the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from assistant.incidents.alert_labels import Knows, Meaning, kept, meaning, rule_title, title_of
from assistant.incidents.alert_ledger import ledger
from assistant.incidents.alert_message import Alert, Notification, State
from assistant.incidents.events import SEVERITIES, Entry, Event, Kind, Status
from assistant.incidents.fold import Incident
from assistant.store.codec import subject_text
from knowledge.language import NO_TEXT
from knowledge.text import clean, excerpt
from probes.alert_labels import LINE, NAME

SURFACE = "webhook"  # through which all of this is written
RESOLVED = "alerts-resolved"  # why a machine changes the status
FIRING = "alerts-firing"

# --- what an incident knows ---------------------------------------------------------------


def group_of(incident: Incident) -> str:
    """The group of alerts that opened the incident; empty for none."""
    first = incident.events[0] if incident.events else None
    return first.text("group") if first is not None and first.kind == Kind.OPENED else ""


def begins(n: Notification, last: Incident | None, now: int) -> bool:
    """Whether a message is about something new, when the last incident of its group (if there is one) is closed.

    The repetition of what was closed is not: whoever closed it knew. `now` in ns UTC.
    """
    if last is None:
        return True
    before = ledger(last.events)
    news = before.news(n, now)
    return not {a.fingerprint for a in news}.isdisjoint(before.take(news, now).firing)


# --- deciding -----------------------------------------------------------------------------


def opening(n: Notification, knows: Knows, now: int, last: Incident | None = None) -> list[Entry]:
    """The events of a new incident. `last`: the closed one before it, whose alerts that are over stay there."""
    before = ledger(last.events if last is not None else ())
    told, alive = set(before.noted), before.take(before.news(n, now), now).firing
    alerts = tuple(a for a in n.alerts if a.fingerprint in alive or a.identity not in told)
    meant = {a.identity: meaning(a.labels, a.annotations, knows) for a in alerts}
    group = meaning({**n.common, **n.labels}, {}, knows)
    about: dict[str, Any] = {
        "title": _title(n, group, list(meant.values())), "severity": _worst(m.severity for m in meant.values()), "origin": "alertmanager",
        "host": group.host, "group": n.group, "group_key": excerpt(n.key[: 4 * LINE], LINE), "receiver": excerpt(n.receiver[:LINE], NAME),
        "labels": kept(n.labels), "url": n.url,
    }  # fmt: skip
    first = Entry(Kind.OPENED, {k: v for k, v in about.items() if v})
    begun = Incident(severity=about["severity"], events=(Event(1, 0, first.kind, "", SURFACE, first.data),))
    return [first, *adding(replace(n, alerts=alerts), begun, knows, now)]


def adding(n: Notification, incident: Incident, knows: Knows, now: int) -> list[Entry]:
    """What a message adds to the incident of its group; nothing when all of it is known."""
    known = ledger(incident.events)
    news = known.news(n, now)
    meant = [meaning(a.labels, a.annotations, knows) for a in news]
    out = [_entry(a, m, now if known.again(a, now) else 0) for a, m in zip(news, meant, strict=True)]
    out += _followed(meant, incident)
    out += _not_told(n.truncated, incident)
    if news:
        out += _graver(meant, incident)
        out += _status(incident, bool(known.take(news, now).firing), whole=not n.truncated)
    return out


def _entry(a: Alert, m: Meaning, again: int) -> Entry:
    data: dict[str, Any] = {
        "state": str(a.state), "fingerprint": a.fingerprint, "starts": a.starts, "ends": a.ends if a.state is State.RESOLVED else None,
        "again": again or None,
        "name": m.name, "severity": m.severity, "host": m.host, "subject": subject_text(m.about) if m.about is not None else "",
        "rule": m.rule, "text": m.summary, "labels": kept(a.labels), "annotations": kept(a.annotations), "url": a.url,
    }  # fmt: skip
    return Entry(Kind.ALERT, {k: v for k, v in data.items() if v not in ("", None, {})})


def _followed(meant: Sequence[Meaning], incident: Incident) -> list[Entry]:
    """Findings of gpudiag's own rules, under the ids that a check gives them, and the runbooks of the rest."""
    out: dict[str, Entry] = {}
    known = {(f.host, f.key) for f in incident.findings}
    for m in meant:
        if m.key and m.card is not None and m.about is not None and (m.host, m.key) not in known:
            title = rule_title(m) or m.card.title
            data = {
                "key": m.key, "rule": m.rule, "xid": m.xid, "host": m.host, "subject": subject_text(m.about),
                "title": {"en": title.en, "zh": title.in_("zh")}, "severity": m.severity, "role": "root", "runbook": m.card.runbook,
                "told_by": "alertmanager",
            }  # fmt: skip
            out.setdefault(f"finding {m.host} {m.key}", Entry(Kind.FINDING, data))
        elif m.runbook and m.runbook not in incident.runbooks and not m.key:
            out.setdefault(f"runbook {m.runbook}", Entry(Kind.RUNBOOK, {"runbook": m.runbook}))
    return list(out.values())


def _graver(meant: Iterable[Meaning], incident: Incident) -> list[Entry]:
    """A worse severity, unless a person said which it is."""
    if any(e.kind == Kind.SEVERITY and e.surface != SURFACE for e in incident.events):
        return []
    worst = _worst((incident.severity, *(m.severity for m in meant)))
    return [Entry(Kind.SEVERITY, {"severity": worst, "because": FIRING})] if worst != incident.severity else []


def _status(incident: Incident, fires: bool, *, whole: bool) -> list[Entry]:
    """Mitigated once all alerts are over; as it was before when one fires again. A closed one stays closed."""
    if not fires and whole and incident.status in (Status.OPEN, Status.WORKING):
        return [Entry(Kind.STATUS, {"status": str(Status.MITIGATED), "because": RESOLVED})]
    if fires and incident.status is Status.MITIGATED:
        before = [e.text("status") for e in incident.events if e.kind == Kind.STATUS]
        worked = next((w for w in reversed(before) if w != Status.MITIGATED), "") == Status.WORKING
        return [Entry(Kind.STATUS, {"status": str(Status.WORKING if worked else Status.OPEN), "because": FIRING})]
    return []


def _not_told(truncated: int, incident: Incident) -> list[Entry]:
    """That the message holds not all alerts, when it is more of them than was said before."""
    before = [e.data.get("more") for e in incident.events if e.kind == Kind.ALERT]
    if truncated <= max((n for n in before if isinstance(n, int)), default=0):
        return []
    return [Entry(Kind.ALERT, {"more": truncated})]


def _worst(severities: Iterable[str]) -> str:
    return max(severities, key=lambda s: SEVERITIES.index(s) if s in SEVERITIES else -1, default="")


def _title(n: Notification, group: Meaning, meant: Sequence[Meaning]) -> dict[str, str]:
    """The one thing that the alerts are about; else what the group has in common."""
    one = len({(m.name, m.rule, m.host, m.about) for m in meant}) == 1
    said = title_of(meant[0]) if one else title_of(group) if group.name else NO_TEXT
    if said:
        return {"en": said.en, "zh": said.in_("zh")}
    names = list(dict.fromkeys(m.name for m in meant if m.name))
    words = excerpt(", ".join(names[:5]), LINE) or clean(n.receiver[:NAME]) or "alerts"
    if not group.host:
        return {"en": words, "zh": words}
    return {"en": f"{words} on {group.host}", "zh": f"{group.host}：{words}"}
