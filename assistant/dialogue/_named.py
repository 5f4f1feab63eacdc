"""Which findings a follow-up is about: what its words name, else the finding that the talk is about."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from assistant.dialogue._meant import literal
from assistant.dialogue._scope import Scoped, scoped
from knowledge.observation import Event
from knowledge.record import dataclass
from knowledge.text import excerpt

if TYPE_CHECKING:
    from assistant.diagnosis import Diagnosis
    from assistant.dialogue import Turn
    from assistant.intent.query import Query
    from rules.engine import Finding


NEAR = 0.8  # of the best topic: as good a reading of the words


@dataclass(frozen=True, slots=True)
class Named:
    """What the words of a follow-up pick out of a diagnosis."""

    findings: tuple[Finding, ...]  # those that are meant, in the order of the diagnosis; ruled out ones last
    what: tuple[str, ...]  # the names that were given: "xid 63", "gpu 5"
    scope: Scoped

    @property
    def missed(self) -> bool:
        """Whether something was named that no finding is about."""
        return bool(self.what) and not self.findings


def named(turn: Turn) -> Named:
    """The findings that the query of `turn` names by code, rule or place; its finding when it names nothing."""
    d, q = turn.diagnosis, turn.query
    assert d is not None
    where = scoped(d, q.slots)
    codes = list(_codes(q, d))
    what = (*(f"{kind} {name}" for kind, name in codes), *_places(q))
    every = [*d.findings, *d.ruled_out]
    if where.named and where.subjects:
        from assistant.dialogue._scope import belongs

        every = [f for f in every if belongs(f.subject, where.subjects, d.facts)]
    elif where.unknown:
        every = []
    if codes:
        every = [f for f in every if any(_is(f, kind, name) for kind, name in codes)]
        every.sort(key=lambda f: ("xid", str(f.xid)) not in codes)  # its own before others that it speaks for
    if what:
        return Named(tuple(every), what, where)
    here = turn.finding
    return Named((here,) if here is not None else (), (), where)


def chosen(turn: Turn, found: Named) -> Finding | None:
    """The one finding to speak of: the one in focus when it is meant, else the first that is."""
    here = turn.finding
    if here is not None and any(f.id == here.id for f in found.findings):
        return here
    return found.findings[0] if found.findings else None


def _codes(q: Query, d: Diagnosis) -> Iterator[tuple[str, str]]:
    """Codes and rules that the query names; a rule that its words only suggest when it is among the findings."""
    named = {("xid", str(code)) for code in q.slots.xid} | {("sxid", str(code)) for code in q.slots.sxid}
    yield from sorted(named)
    present = {f.rule.id for f in (*d.findings, *d.ruled_out)}
    best = max((t.score for t in q.topics), default=0.0)
    for topic in q.topics:
        key = (topic.kind, topic.name)
        if topic.kind not in ("xid", "sxid", "rule") or key in named:
            continue
        near = topic.kind == "rule" and topic.name in present and topic.score >= best * NEAR
        if near or literal(q, topic):
            named.add(key)
            yield key


def _places(q: Query) -> tuple[str, ...]:
    s = q.slots
    return tuple(
        f"{slot} {excerpt(str(value), 80)}"
        for slot, values in (("gpu", s.gpu), ("pid", s.pid), ("process", s.process), ("rank", s.rank), ("job", s.job))
        for value in values
    )


def _is(f: Finding, kind: str, name: str) -> bool:
    if kind == "rule":
        return f.rule.id == name
    if kind == "xid" and f.xid is not None:
        return str(f.xid) == name
    return any(o.fact in (kind, f"{kind}_implied") and isinstance(o.value, Event) and str(o.value.code) == name
               for o in f.events)  # fmt: skip


def around(d: Diagnosis, finding: Finding) -> tuple[Finding, ...]:
    """The other findings that `finding` explains."""
    effects = set(finding.explains)
    return tuple(f for f in d.findings if f.id in effects)
