"""The prose of a post-mortem: the report's causes, what followed, what was done and what is open, in other words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from assistant.narrate import fence, prompt
from assistant.narrate.fence import Narration, Withheld
from assistant.narrate.material import Item, Kind, Material
from assistant.narrate.placeholders import Table
from assistant.narrate.redact import Pseudonyms
from assistant.narrate.reword import Prepared
from knowledge.text import clean

if TYPE_CHECKING:
    from assistant.incidents.fold import Linked
    from assistant.incidents.report import Report

MOST = 12  # findings, deeds, open points


def prepare(report: Report, lang: str, pseudonyms: Pseudonyms | None = None) -> Prepared | None:
    """The payload of a report; None when it holds no finding."""
    found = material(report, lang)
    if not found.items:
        return None
    names = {"node": report.incident.hosts, "user": report.incident.people}
    return Prepared((pseudonyms or Pseudonyms(names)).redact(prompt.postmortem(found.plain(), lang)), found)


def finish(prepared: Prepared, raw: str) -> Narration | Withheld:
    """What may be shown of the answer `raw`. Never raises."""
    return fence.judge(prepared.material, raw)


def material(report: Report, lang: str) -> Material:
    """What a report gives to tell. It says nothing of use and health now, so neither does a narration of it."""
    table = Table()
    for host in report.incident.hosts:
        table.known(host, "node")
    for person in report.incident.people:
        table.known(person, "name")
    linked = {(f.host, f.key): f for c in report.causes for f in (c.finding, *(x for _, x in c.chain))}
    linked |= {(f.host, f.key): f for f in report.loose}
    kept = list(linked.items())[:MOST]
    ids = {key: f"f{n}" for n, (key, _) in enumerate(kept, 1)}
    below: dict[str, tuple[str, ...]] = {
        ids[c.finding.host, c.finding.key]: tuple(ids[k] for _, x in c.chain if (k := (x.host, x.key)) in ids)
        for c in report.causes if (c.finding.host, c.finding.key) in ids
    }  # fmt: skip
    items = [_finding(ids[key], f, below.get(ids[key], ()), table, lang) for key, f in kept]
    return Material(
        lang, "unknown", "unknown", (*items, *_deeds(report, table), *_open(report, table, lang)), table.slots
    )


def _finding(own: str, f: Linked, explains: tuple[str, ...], t: Table, lang: str) -> Item:
    kind, name = _where(f, lang)
    where = t.slot(kind, name, own) if name else ""
    return Item(
        own, Kind.FINDING, t.hide(f.title.in_(lang), own), where, root=f.role == "root", certainty=f.grade, severity=f.severity,
        codes=(t.slot("xid", f"XID {f.xid}", own),) if f.xid is not None else (), explains=explains, findings=(f.key,),
    )  # fmt: skip


def _where(f: Linked, lang: str) -> tuple[str, str]:
    """What it is about, as the report names it, and of which kind that is."""
    from assistant.render.labels import subject_name
    from assistant.store.codec import subject_of

    try:
        about = subject_of(f.subject)
    except ValueError:  # of a version that wrote it otherwise
        return "node", clean(f.host)
    return str(about.scope) if str(about.scope).isalpha() else "name", clean(subject_name(about, lang))


def _deeds(report: Report, t: Table) -> list[Item]:
    """Steps by their names: whoever wrote the runbook chose them."""
    every = (
        [("done", s) for s in report.done]
        + [("failed", s) for s in report.failed]
        + [("skipped", s) for s in report.skipped]
    )
    out = []
    for n, (state, step) in enumerate(every[:MOST], 1):
        own = f"e{n}"
        out.append(Item(own, Kind.DEED, f"step {t.named('step', f'{step.runbook}/{step.name}', own)}: {state}"))
    return out


def _open(report: Report, t: Table, lang: str) -> list[Item]:
    from assistant.incidents.report import open_points

    points = open_points(report)[:MOST]
    return [Item(f"o{n}", Kind.OPEN, t.hide(p.in_(lang), f"o{n}")) for n, p in enumerate(points, 1)]
