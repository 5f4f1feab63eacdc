"""A post-mortem: what the events of an incident come to, in the order in which somebody reads it who was not there.

Everything in it was recorded; what was not is said to be missing. The same events give the same bytes: no clock is read, and who
wrote first changes nothing but the order of the timeline.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from assistant.incidents.deeds import deeds
from assistant.incidents.events import SEVERITIES, Event, Kind, Status, StepState
from assistant.incidents.fold import Incident, Linked
from assistant.incidents.impact import LATEST, Impact, Price, impact, whole
from assistant.incidents.progress import StepView, progress
from assistant.incidents.similar import Like
from assistant.render.times import readable, stamp
from knowledge.language import Text
from knowledge.observation import Clock
from knowledge.record import dataclass
from knowledge.text import excerpt

LINE = 300  # characters of a line of evidence
DEEP = 8  # links of a chain that are followed


class Raw(NamedTuple):
    """A line as it was read, and where."""

    line: str
    source: str


@dataclass(frozen=True, slots=True)
class Cause:
    """A root finding, and what it explains: `chain` holds each symptom behind how many links, nearest first."""

    finding: Linked
    chain: tuple[tuple[int, Linked], ...]

    @property
    def evidence(self) -> tuple[Raw, ...]:
        """Raw lines with their sources."""
        return evidence(self.finding)


@dataclass(frozen=True, slots=True)
class Told:
    """One line of the timeline. `measured`: when what it tells of happened, by the clock of its source; empty when nobody measured."""

    events: tuple[Event, ...]
    text: str
    measured: str


@dataclass(frozen=True, slots=True)
class Gap:
    """Something that was not seen: why, and which facts. `kind`: denied, failed, not_asked, cut."""

    kind: str
    why: str
    facts: tuple[str, ...]
    more: int  # facts that are not named


@dataclass(frozen=True, slots=True)
class Report:
    """All parts of a post-mortem; `assistant.incidents.report_page` says them."""

    incident: Incident
    causes: tuple[Cause, ...]
    loose: tuple[Linked, ...]  # findings that no root explains
    impact: Impact
    price: Price | None
    actions: tuple[Event, ...]
    done: tuple[StepView, ...]
    failed: tuple[StepView, ...]
    skipped: tuple[StepView, ...]
    left: tuple[StepView, ...]
    gaps: tuple[Gap, ...] | None  # None: what was seen was not recorded
    answered: tuple[int, int] | None  # of how many facts how many were answered
    likes: tuple[Like, ...]
    newer: int  # events of kinds that this version does not know


def report(
    incident: Incident, likes: Sequence[Like] = (), price: Price | None = None, more: Sequence[Event] = ()
) -> Report:
    """The parts. Pure. `likes`: earlier incidents (`similar.similar`); `more`: what only the journal has (`deeds.of_journal`)."""
    causes, loose = _causes(incident.findings)
    steps = [s for view in progress(incident) for s in view.steps]

    def in_state(*states: StepState) -> tuple[StepView, ...]:
        return tuple(s for s in steps if s.state in states)

    gaps, answered = _coverage(incident.events)
    return Report(
        incident, causes, loose, impact(incident), price, _acted(incident, more),
        in_state(StepState.DONE), in_state(StepState.FAILED), in_state(StepState.SKIPPED),
        in_state(StepState.TODO, StepState.DOING), gaps, answered, tuple(likes),
        sum(e.kind not in list(Kind) for e in incident.events),
    )  # fmt: skip


def _acted(incident: Incident, more: Sequence[Event]) -> tuple[Event, ...]:
    own = [e for e in deeds(incident.events) if _acts(e)]
    return tuple(sorted([*own, *more], key=lambda e: e.at)) if more else tuple(own)


def _acts(e: Event) -> bool:
    """Whether it tells of something that was done."""
    return e.kind in (Kind.ACTION, Kind.PROBE) or (e.kind == Kind.STEP and e.text("state") != StepState.TODO)


# --- what was found -----------------------------------------------------------------------


def _order(f: Linked) -> tuple[int, str, str]:
    rank = SEVERITIES.index(f.severity) if f.severity in SEVERITIES else -1
    return -rank, f.host, f.key


def _causes(findings: Sequence[Linked]) -> tuple[tuple[Cause, ...], tuple[Linked, ...]]:
    """Roots, the worst first, each with its chain; and symptoms that stand in none of them."""
    known = {(f.host, f.key): f for f in findings}
    of_key: dict[str, list[Linked]] = {}
    for f in findings:
        of_key.setdefault(f.key, []).append(f)
    out, reached = [], set()
    for root in sorted((f for f in findings if f.role == "root"), key=_order):
        chain = _chain(root, known, of_key)
        reached |= {(f.host, f.key) for _, f in chain}
        out.append(Cause(root, chain))
    loose = (f for f in findings if f.role != "root" and (f.host, f.key) not in reached)
    return tuple(out), tuple(sorted(loose, key=_order))


def _explained(
    f: Linked, known: Mapping[tuple[str, str], Linked], of_key: Mapping[str, Sequence[Linked]]
) -> list[Linked]:
    keys = f.data.get("explains")
    names = [k for k in keys if isinstance(k, str)] if isinstance(keys, list) else []
    found = [known.get((f.host, k)) or next(iter(of_key.get(k, ())), None) for k in names]
    return sorted({(x.host, x.key): x for x in found if x is not None and x.role != "root"}.values(), key=_order)


def _chain(
    root: Linked, known: Mapping[tuple[str, str], Linked], of_key: Mapping[str, Sequence[Linked]]
) -> tuple[tuple[int, Linked], ...]:
    """Symptoms below what explains them most closely. A root names all that it explains, also what a symptom of it explains."""
    below = {(f.host, f.key): _explained(f, known, of_key) for f in (root, *_explained(root, known, of_key))}
    inner = {
        (x.host, x.key) for name, found in below.items() if name != (root.host, root.key) for x in found
    }  # explained by a symptom already
    out: list[tuple[int, Linked]] = []
    seen = {(root.host, root.key)}

    def walk(f: Linked, depth: int, only_direct: bool) -> None:
        for x in below.get((f.host, f.key), ()):
            name = (x.host, x.key)
            if name in seen or depth > DEEP or (only_direct and name in inner):
                continue
            seen.add(name)
            out.append((depth, x))
            walk(x, depth + 1, only_direct=False)

    walk(root, 1, only_direct=True)
    walk(root, 1, only_direct=False)  # two that explain each other: neither is above
    return tuple(out)


def evidence(f: Linked) -> tuple[Raw, ...]:
    """The raw lines of a finding, in one line each, with their sources."""
    lines = f.data.get("evidence")
    out = []
    for x in lines if isinstance(lines, list) else ():
        line = x.get("line") if isinstance(x, dict) else None
        if isinstance(line, str) and (kept := excerpt(line, LINE)):
            source = x.get("source")
            out.append(Raw(kept, excerpt(source, LINE) if isinstance(source, str) else ""))
    return tuple(dict.fromkeys(out))


# --- what happened ------------------------------------------------------------------------


def timeline(incident: Incident, lang: str) -> tuple[Told, ...]:
    """Oldest first, in the order in which it was written."""
    from assistant.incidents.words import story

    return tuple(Told(t.events, t.text, _measured(t.events)) for t in story(incident, lang))


_TIMES: Mapping[str, tuple[str, ...]] = {Kind.FINDING: ("first", "last"), Kind.ALERT: ("starts", "ends")}


def _measured(events: Sequence[Event]) -> str:
    """When it happened, to the second: of a finding its first and last event, of an alert from when to when, of a message when it
    was said."""
    times: list[tuple[int, Clock]] = []
    for e in events:
        names = _TIMES.get(e.kind, ("at",))
        clock = _clock(e.text("clock")) if e.kind == Kind.FINDING else Clock.REALTIME
        times += [(v, clock) for n in names if whole(v := e.data.get(n)) and 0 < v < LATEST]
    same = [t[0] - t[0] % 10**9 for t in times if t[1] is times[0][1]]
    if not same or (first := stamp(min(same), times[0][1])) is None:
        return ""
    last = stamp(max(same), times[0][1]) or ""
    day, _, hour = last.partition("T")
    until = "" if last == first else f" … {hour if hour and first.startswith(day) else readable(last)}"
    return readable(first) + until


def _clock(word: str) -> Clock:
    return Clock(word) if word in list(Clock) else Clock.NONE


# --- what was not seen --------------------------------------------------------------------


def _coverage(events: Sequence[Event]) -> tuple[tuple[Gap, ...] | None, tuple[int, int] | None]:
    told = [c for e in events if isinstance(c := e.data.get("coverage"), dict)]
    if not told:
        return None, None
    gaps: dict[Gap, None] = {}
    for c in told:
        for kind in ("denied", "failed", "not_asked"):
            gaps.update(dict.fromkeys(_gaps(kind, c.get(kind))))
        names = c.get("cut")
        cut = [excerpt(n, LINE) for n in names if isinstance(n, str)] if isinstance(names, list) else []
        gaps.update({Gap("cut", n, (), 0): None for n in cut if n})
    counts = [(_number(c.get("asked")), _number(c.get("answered"))) for c in told]
    return tuple(gaps), (sum(a for a, _ in counts), sum(b for _, b in counts))


def _gaps(kind: str, value: object) -> list[Gap]:
    out = []
    for x in value if isinstance(value, list) else ():
        if not isinstance(x, dict):
            continue
        why, facts = x.get("why"), x.get("facts")
        names = tuple(excerpt(n, LINE) for n in facts if isinstance(n, str)) if isinstance(facts, list) else ()
        said = excerpt(why, LINE) if isinstance(why, str) else ""
        if said or names:
            out.append(Gap(kind, said, names, max(0, _number(x.get("n")) - len(names))))
    return out


def _number(value: Any) -> int:
    return value if whole(value) and 0 <= value < 2**53 else 0


# --- what is open -------------------------------------------------------------------------


def open_points(r: Report) -> tuple[Text, ...]:
    """What the events leave open, each in a sentence."""
    i, out = r.incident, []
    if i.status is Status.MITIGATED:
        out.append(Text("Mitigated, not closed: the cause is still there.", "已缓解但未关闭：原因仍在。"))
    elif i.is_open:
        out.append(Text("The incident is not over.", "事件尚未结束。"))
    elif not i.ended:
        out.append(Text("How it ended was not said.", "未说明如何结束。"))
    if not i.owner and i.is_open:
        out.append(Text("Nobody takes care of it.", "无人负责。"))
    if not r.causes:
        out.append(Text("No cause was recorded.", "未记录原因。"))
    for c in r.causes:
        if c.finding.grade in ("probable", "possible"):
            t = c.finding.title
            out.append(Text(f"Not confirmed: {t.en}.", f"尚未确认：{t.in_('zh')}。"))
    by_book: dict[str, list[str]] = {}
    for s in r.left:
        by_book.setdefault(s.runbook, []).append(s.name)
    for book, names in by_book.items():
        n, said = len(names), ", ".join(names)
        out.append(Text(f"Runbook {book}: {n} step{'s' if n != 1 else ''} neither done nor skipped: {said}.",
                        f"处置手册 {book}：{n} 步未完成也未跳过：{'、'.join(names)}。"))  # fmt: skip
    out += [Text(f"Step {s.runbook}/{s.name} failed.", f"步骤 {s.runbook}/{s.name} 失败。") for s in r.failed]
    if r.newer:
        n = r.newer
        out.append(Text(f"{n} event{'s' if n != 1 else ''} of kinds that this version does not know: in the timeline only.",
                        f"{n} 个事件的类型是此版本不认识的：仅见于经过。"))  # fmt: skip
    return tuple(out)
