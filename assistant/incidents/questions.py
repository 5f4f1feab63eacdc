"""What "explain this" asks of an incident: questions that the conversation answers from knowledge, whatever is looked at now."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from assistant.incidents.events import Event, Kind
from assistant.incidents.fold import Incident, Linked
from knowledge.language import Text

if TYPE_CHECKING:
    from assistant.intent.query import Query


class Asked(NamedTuple):
    """A topic (``xid 79``, ``rule gpu-fell-off-bus``, ``runbook gpu-reset``; empty: all runbooks) and what it is called."""

    topic: str
    title: Text = Text("")

    def text(self, lang: str) -> str:
        """The sentence. It holds the topic as `gpudiag explain` takes it."""
        if not self.topic:
            return Text("list all runbooks", "列出所有处置手册").in_(lang)
        if self.topic.startswith("runbook "):
            return Text(f"show {self.topic}", f"查看 {self.topic}").in_(lang)
        return Text(f"explain {self.topic}", f"解释 {self.topic}").in_(lang)

    def query(self, lang: str) -> Query | None:
        """As what it is to be understood: some names hold words that mean something else. None: as it is said."""
        from assistant.intent.query import Intent, Query, Topic

        kind = self.topic.partition(" ")[0]
        if kind not in ("rule", "runbook"):
            return None
        intent, topics = Intent.RUNBOOK if kind == "runbook" else Intent.EXPLAIN, (Topic(self.topic, 0.0, self.title),)
        return Query(self.text(lang), lang, intent, topics=topics, echo=Text(*(self.text(x) for x in ("en", "zh"))))


def about_incident(incident: Incident) -> Asked:
    """Its first root finding; without one its runbook."""
    roots = [f for f in incident.findings if f.role == "root"] or list(incident.findings)
    if roots:
        return about_finding(roots[0])
    return about_runbook(incident.runbooks[0]) if incident.runbooks else Asked("")


def about_finding(f: Linked) -> Asked:
    """The code, where it has one; else the rule that found it."""
    return Asked(f"xid {f.xid}" if f.xid is not None else f"rule {f.rule}", f.title)


def about_runbook(name: str) -> Asked:
    """The steps, and why they are these."""
    return Asked(f"runbook {name}")


def about_event(event: Event, incident: Incident) -> Asked:
    """The finding or the runbook that it names; else the incident."""
    if event.kind == Kind.FINDING:
        key = (event.text("host"), event.text("key"))
        for f in incident.findings:
            if (f.host, f.key) == key:
                return about_finding(f)
    if event.kind == Kind.ALERT and event.text("rule"):
        return Asked(f"rule {event.text('rule')}")
    if event.kind in (Kind.STEP, Kind.RUNBOOK) and event.text("runbook"):
        return about_runbook(event.text("runbook"))
    return about_incident(incident)
