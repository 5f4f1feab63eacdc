"""What an incident keeps of the diagnosis beside its findings: how many GPUs were seen, what was not seen, what a part is called.

The machine may be another one when somebody asks: a report tells only what stands in the events.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from knowledge.observation import Scope, Status
from knowledge.text import excerpt

if TYPE_CHECKING:
    from assistant.diagnosis import Diagnosis
    from rules.engine import Finding
    from rules.factbase import FactBase

REASONS, NAMES, LINE = 12, 8, 200  # reasons of each kind that are kept, facts named of each, characters of one
# What a thing is called wherever it is put, and what nodes have in common; of a mount the server.
PARTS: Mapping[str, str] = {
    "uuid": "gpu.uuid",
    "serial": "gpu.serial",
    "fabric": "gpu.fabric.cluster",
    "server": "fs.source",
}
SHARED_SCOPES = (Scope.CLUSTER, Scope.RACK, Scope.SWITCH)  # no part of one node


def gpus(diagnosis: Diagnosis, host: str) -> dict[str, int]:
    """How many GPUs were seen of each node. A node of which none was seen is left out: that may be anything."""
    places = {s for s in diagnosis.facts.subjects(Scope.GPU) if not s.id.startswith("unknown:")}
    return dict(sorted(Counter(s.host or host for s in places).items()))


def coverage(diagnosis: Diagnosis) -> dict[str, Any]:
    """What was asked and answered; what was denied or failed, and what rules wait for that nobody asked, by their reasons."""
    seen = diagnosis.coverage
    missing = [m for u in diagnosis.undecided for m in u.missing if m.reason.partition(": ")[0] == Status.NOT_ASKED]
    return {
        "asked": seen.asked, "answered": seen.answered,
        "denied": _grouped((g.detail, g.fact) for g in seen.denied),
        "failed": _grouped((g.detail or str(g.status), g.fact) for g in seen.failed),
        "not_asked": _grouped(("", m.fact) for m in missing),
        "cut": [excerpt(name, LINE) for name in diagnosis.cut[:REASONS]],
    }  # fmt: skip


def _grouped(gaps: Iterable[tuple[str, str]]) -> list[dict[str, Any]]:
    """The reasons with the facts that each hides, those of most facts first."""
    found: dict[str, dict[str, None]] = defaultdict(dict)
    for why, fact in gaps:
        found[excerpt(why, LINE)].setdefault(fact)
    ranked = sorted(found.items(), key=lambda item: (-len(item[1]), item[0]))
    return [{"why": why, "facts": sorted(facts)[:NAMES], "n": len(facts)} for why, facts in ranked[:REASONS]]


def parts(finding: Finding, facts: FactBase) -> dict[str, str]:
    """What the thing that a finding is about is called elsewhere, and what it shares with other nodes; only what was read."""
    out = {str(s.scope): s.id for s in finding.subject.ancestors() if s.scope in SHARED_SCOPES and s.id}
    for name, fact in PARTS.items():
        seen = facts.read_up(fact, finding.subject)[1]
        if seen is None or seen.status is not Status.OK or not isinstance(seen.value, str):
            continue
        value = seen.value.partition(":/")[0] if name == "server" else seen.value
        if name == "server" and ":/" not in seen.value:
            continue
        if value.strip("0-"):  # a GPU outside a fabric says only zeros
            out[name] = excerpt(value, LINE)
    return out
