"""Incidents of several nodes that may be one matter: offered with the reason, joined only by somebody's word.

Two open incidents are offered to each other when a root finding of both names the same part that no node owns (switch, rack, fabric,
file server), or when the same rule found its cause on different nodes within `WINDOW`. What is joined stays written in both.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from assistant.incidents import events
from assistant.incidents.book import Book
from assistant.incidents.events import Entry, Hand, Kind
from assistant.incidents.fold import Incident
from assistant.incidents.impact import counted, measured
from assistant.incidents.shape import subject_of
from assistant.incidents.words import lasting
from knowledge.errors import UsageError
from knowledge.language import Text
from knowledge.observation import Scope
from knowledge.record import dataclass
from knowledge.text import excerpt

WINDOW = (
    30 * 60 * 10**9
)  # ns: a switch or a power feed hits its nodes within minutes; alerts of one cause come in over half an hour
_SHARED: Mapping[str, Text] = {
    "switch": Text("switch", "交换机"), "rack": Text("rack", "机架"), "cluster": Text("cluster", "集群"),
    "fabric": Text("fabric", "fabric"), "server": Text("file server", "文件服务器"),
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Offer:
    """An open incident that may be the same matter, and why."""

    incident: Incident
    why: tuple[Text, ...]

    def line(self, number: int, lang: str) -> str:
        """What to say about it; `number`: of the one that it is offered to."""
        other = self.incident.number
        why = [w.in_(lang) for w in self.why]
        said = Text(f"incident {other} may be the same matter ({'; '.join(why)}): gpudiag incident link {number} --with {other}",
                    f"事件 {other} 可能是同一问题（{'；'.join(why)}）：gpudiag incident link {number} --with {other}")  # fmt: skip
        return said.in_(lang)


def offers(incident: Incident, others: Iterable[Incident]) -> tuple[Offer, ...]:
    """Open incidents of other nodes that may be the same matter, shared parts first, then the smaller number. Pure."""
    found = []
    for other in others if incident.is_open else ():
        if other.number == incident.number or other.number in incident.links or not other.is_open:
            continue
        parts, alike = _shared_parts(incident, other), _same_time(incident, other)
        if parts or alike:
            found.append((not parts, other.number, Offer(other, (*parts, *alike))))
    return tuple(offer for _, _, offer in sorted(found, key=lambda x: x[:2]))


def _shared_parts(a: Incident, b: Incident) -> list[Text]:
    if set(a.hosts) == set(b.hosts):
        return []  # of one node: nothing is shared
    both = sorted(_parts(a) & _parts(b))
    return [Text(f"same {_SHARED[kind].en} {name}", f"同一{_SHARED[kind].zh} {name}") for kind, name in both]


def _parts(i: Incident) -> set[tuple[str, str]]:
    out: set[tuple[str, str]] = set()
    for f in i.findings:
        if f.role != "root":
            continue
        parts = f.data.get("parts")
        told = parts.items() if isinstance(parts, dict) else ()
        out |= {(k, excerpt(v, 100)) for k, v in told if k in _SHARED and isinstance(v, str) and v}
        subject = subject_of(f.subject)
        above = list(subject.ancestors()) if subject is not None else []
        out |= {
            (str(s.scope), excerpt(s.id, 100))
            for s in above
            if s.scope in (Scope.CLUSTER, Scope.RACK, Scope.SWITCH) and s.id
        }
    return out


def _same_time(a: Incident, b: Incident) -> list[Text]:
    """Rules that found a cause on different nodes within `WINDOW`; of what was not measured the time when it was written counts."""
    mine, theirs = _firsts(a), _firsts(b)
    out = []
    for rule in sorted({r for r, _ in mine} & {r for r, _ in theirs}):
        gaps = [
            abs(t - u)
            for (r, h), t in mine.items()
            if r == rule
            for (s, g), u in theirs.items()
            if s == rule and g != h
        ]
        if gaps and min(gaps) <= WINDOW:
            apart = min(gaps)
            name = excerpt(rule, 100)
            out.append(Text(f"{name} within {lasting(apart, 'en')}", f"{lasting(apart, 'zh')}内同为 {name}"))
    return out


def _firsts(i: Incident) -> dict[tuple[str, str], int]:
    roots = {(f.host, f.key) for f in i.findings if f.role == "root" and f.rule}
    out: dict[tuple[str, str], int] = {}
    for e in i.events:
        if e.kind == Kind.FINDING and (e.text("host"), e.text("key")) in roots:
            at, name = measured(e.data) or e.at, (e.text("rule"), e.text("host"))
            out[name] = min(at, out.get(name, at))
    return out


# --- joining ------------------------------------------------------------------------------


def link(book: Book, number: int, other: int, hand: Hand, merge: bool = False) -> Incident:
    """Say in both that they belong together; with `merge` the first also takes up the findings of the other, which is closed.

    Said twice it is written once; what an interruption left out is written the next time. UsageError for an incident and itself,
    or one that is closed and should go on. UnknownNameError, StoreError as `Book` raises them.
    """
    if number == other:
        raise UsageError(
            f"{number} is the same incident",
            hint="gpudiag incident link NUMBER --with ANOTHER",
            zh=f"{number} 就是该事件本身",
        )
    first, second = book.incident(number), book.incident(other)
    if merge and not first.is_open:
        raise UsageError(
            f"incident {number} is closed",
            hint=f"gpudiag incident change {number} --status working opens it again",
            zh=f"事件 {number} 已关闭",
            hint_zh=f"gpudiag incident change {number} --status working 可重新打开",
        )
    why = reason(first, second)
    now = book.change(number, hand, lambda i: _taken(i, second, why) if merge else _told(i, other, why, ""))
    book.change(other, hand, lambda i: _given(i, number, why) if merge else _told(i, number, why, ""))
    return now


def reason(a: Incident, b: Incident) -> Text:
    """Why they belong together, as far as the events tell; else that somebody said so."""
    why = [*_shared_parts(a, b), *_same_time(a, b)]
    if not why:
        return Text("somebody says so", "人工关联")
    return Text("; ".join(w.en for w in why), "；".join(w.in_("zh") for w in why))


def _told(i: Incident, other: int, why: Text, merged: str) -> list[Entry]:
    said = [e.text("merged") for e in i.events if e.kind == Kind.LINKED and e.data.get("incident") == other]
    if other in i.links and (not merged or merged in said):
        return []
    return [events.linked(other, {"en": why.en, "zh": why.in_("zh")}, merged)]


def _taken(i: Incident, other: Incident, why: Text) -> list[Entry]:
    out = _told(i, other.number, why, "from")
    if out:  # what is known of the other's nodes comes along: the impact and what was not seen are told from one log
        unseen = [c for e in other.events if isinstance(c := e.data.get("coverage"), dict)]
        more = {"gpus": counted(other.events), **({"coverage": unseen[0]} if unseen else {})}
        out = [Entry(out[0].kind, {**out[0].data, **more})]
    known = {(f.host, f.key) for f in i.findings}
    return [*out, *(Entry(Kind.FINDING, f.data) for f in other.findings if (f.host, f.key) not in known)]


def _given(i: Incident, number: int, why: Text) -> list[Entry]:
    out = _told(i, number, why, "into")
    if i.is_open:
        out.append(events.closed(f"goes on in incident {number}"))
    return out
