"""From a diagnosis to what alerts need: which faults were seen, which could not be looked for, what has another name."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from assistant.diagnosis import Diagnosis, bad_roots
from assistant.render import lines
from assistant.watch.alerts import SECOND, Alert, Book, Policy, Sighting
from knowledge.observation import Clock, Event, Observation, Scope, Status, Subject
from rules.engine import Finding
from rules.factbase import FactBase

LOG = "log.kernel.readable"  # the fact that tells whether events of the kernel log could be seen
LISTING = ("node.driver.state", "node.gpu.count")  # what tells that the driver's GPUs were listed
_CANNOT = frozenset({Status.FAILED, Status.TIMEOUT, Status.DENIED})


def sightings(diagnosis: Diagnosis, boot: str = "") -> list[Sighting]:
    """The findings that are worth an alert: they count, are not past, and no other of them explains them.

    `boot` is the machine's now.
    """
    titles = {f.id: f.title.en for f in diagnosis.findings}
    return [_sighting(f, titles, boot) for f in bad_roots(diagnosis.findings) if not f.past]


def _sighting(f: Finding, titles: Mapping[str, str], boot: str) -> Sighting:
    facts = {(LOG, "") if isinstance(o.value, Event) else (o.fact, str(o.subject)) for o in f.because}
    events = [o.at for o in f.because if isinstance(o.value, Event) and o.at is not None and o.clock is Clock.REALTIME]
    return Sighting(
        rule=f.rule.id,
        subject=_about(f.subject),
        host=f.subject.host,
        severity=f.severity,
        grade=str(f.grade),
        xid=f.xid,
        title={"en": f.title.en, "zh": f.title.zh},
        bucket=str(f.advice.bucket),
        usable=str(f.advice.usable),
        evidence=tuple(dict.fromkeys(lines.shown(o) for o in f.because if o.excerpt))[:5],
        explains=tuple(titles[i] for i in f.explains if i in titles),
        facts=tuple(sorted(facts)),
        event=max(events, default=None),
        boot=boot,
    )


def _about(subject: Subject) -> str:
    """The thing that has the fault. Of processes the node: one that crashes again and again is one alert, not one a pid."""
    where = subject.up(Scope.NODE) if subject.scope is Scope.PROCESS else None
    return str(where or subject)


def names(book: Book, diagnosis: Diagnosis) -> dict[str, str]:
    """Old name -> new one, of GPUs that alerts know by index or UUID and the diagnosis by another name."""
    told = {a.last.subject for part in (book.alerts, book.past) for a in part.values()}
    if not any(t.startswith(("gpu index:", "gpu GPU-")) for t in told):
        return {}
    out: dict[str, str] = {}
    for fact, prefix in (("gpu.index", "gpu index:"), ("gpu.uuid", "gpu ")):
        for g in diagnosis.facts.subjects(Scope.GPU):
            o = diagnosis.facts.current(fact, g)
            if o is not None and o.status is Status.OK and str(g) != f"{prefix}{o.value}":
                out[f"{prefix}{o.value}"] = str(g)
    return out


def blind(book: Book, diagnosis: Diagnosis, boot: str = "", now: int = 0, policy: Policy | None = None) -> set[str]:
    """Keys of the alerts that this round could not look for, or that it found to be something else's consequence.

    A fact about a subject that is not there any more (a GPU that left the bus) is not answered. A log that does not
    reach back to an event (the ring buffer wrapped) does not tell that it never was; a later boot starts a new
    log, and then it must be seen that the GPU is back.
    """
    facts = diagnosis.facts
    answered = {(k.fact, str(k.inner.subject)) for k in facts.observations if k.inner.status.answered}
    there = {_about(f.subject) + "|" + f.rule.id for f in diagnosis.findings if not f.past}
    undecided = {(u.rule.id, str(u.subject)) for u in diagnosis.undecided}
    log = any(k.fact == LOG and k.inner.status is Status.OK for k in facts.observations)
    reach = _reach(k.inner for k in facts.observations)
    memory = (policy or Policy()).memory * SECOND

    def unseen(alert: Alert) -> bool:
        s = alert.last
        if (s.rule, s.subject) in undecided or f"{s.subject}|{s.rule}" in there:
            return True
        if any(not log if fact == LOG else (fact, subject) not in answered for fact, subject in s.facts):
            return True
        if (LOG, "") not in s.facts:
            return False
        same_boot = not s.boot or not boot or s.boot == boot
        if same_boot and s.event is not None and now - s.event <= memory and reach is not None and reach > s.event:
            return True
        return _gone(s.subject, facts)

    return {key for key, alert in book.alerts.items() if unseen(alert)}


def _reach(observations: Iterable[Observation]) -> int | None:
    """From when on (ns UTC) the kernel log is known; None when that cannot be told."""
    looked = (o for o in observations if o.fact == "xid" and o.status is Status.NONE_SEEN and o.clock is Clock.REALTIME)
    return min((o.window[0] for o in looked if o.window), default=None)


def _gone(subject: str, facts: FactBase) -> bool:
    """Whether a GPU is not among those that the driver lists, or the driver could not be asked for them."""
    if not subject.startswith("gpu "):
        return False
    listing = [k.inner for k in facts.observations if k.fact in LISTING]
    if not any(o.status is Status.OK for o in listing):
        return any(o.status in _CANNOT for o in listing)
    name = subject.partition(" link ")[0]
    own = [k.inner for k in facts.observations if k.inner.status is Status.OK and str(k.inner.subject) == name]
    lost = any(o.fact == "gpu.nvml.reachable" and o.value is False for o in own)
    return lost or not any(o.fact == "gpu.uuid" for o in own)
