"""Which probes a talk can run, ran, and is to run or to ask consent for next."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from assistant.intent.query import Intent
from assistant.session import phrases
from assistant.session.naming import whom
from assistant.session.state import Frame, Pending, Seen, State
from knowledge.language import NO_TEXT

if TYPE_CHECKING:
    from assistant.planner import Plan
    from assistant.session.core import Session
    from probes.live import ProbeSpec
    from rules.factbase import FactBase


OUTSIDE = "job-stacks"  # the probe that looks into a running job and leaves it alone
FRESH = 60 * 10**9  # ns that a reading of a live machine answers further questions; then it is looked at again


def fresh(state: State, frame: Frame, at: int | None) -> bool:
    """Whether what `frame` has seen still answers a question that is put `at` this time (ns UTC; None: any)."""
    if not frame.origin.live:
        return True
    times = [state.seen[n].as_of for n in frame.seen]
    return at is None or all(t is not None and 0 <= at - t <= FRESH for t in times)


def not_into(state: State, frame: Frame) -> bool:
    """Whether `frame` is about another machine on which no running job can be looked into from here."""
    there = frame.origin.live and frame.origin.host
    return bool(there) and any(OUTSIDE in state.seen[n].absent for n in frame.seen)


def ran(state: State, frame: Frame) -> tuple[str, ...]:
    """The probes that were run for `frame`, in order."""
    return tuple(dict.fromkeys(name for n in frame.seen for name in state.seen[n].probes))


def available(session: Session, state: State, frame: Frame) -> tuple[ProbeSpec, ...]:
    """The probes that can be run for `frame`: of this machine, or what a recording offers."""
    if frame.origin.live:
        from probes.live import Cost

        # A cheap one says itself that its tool is not there; nobody is asked for consent to what cannot run.
        absent = (
            session.absent() if not frame.origin.host else {name for n in frame.seen for name in state.seen[n].absent}
        )
        return tuple(
            s for s in session.probes
            if s.name not in session.without and (s.name not in absent or (s.default and s.cost < Cost.SECONDS))
        )  # fmt: skip
    offers = {name for n in frame.seen for name in state.seen[n].offers}
    if not offers:
        return ()
    from probes.live import Cost

    # What was recorded costs nothing to read again, and disturbs nobody.
    return tuple(replace(s, cost=Cost.FREE, side_effects=(), default=True) for s in session.probes if s.name in offers)


def not_again(session: Session, state: State, frame: Frame) -> tuple[str, ...]:
    """After "again": probes that were run before, that can be run, and that have not been run again."""
    if not frame.before or frame.origin.live:
        return ()
    done = ran(state, frame)
    offered = {s.name for s in available(session, state, frame)}
    before = ran(state, replace(frame, seen=frame.before))
    return tuple(name for name in before if name in offered and name not in done)


def unasked(session: Session, state: State, frame: Frame) -> tuple[str, ...]:
    """Those that ran, without what was agreed to for once: "again" is no consent."""
    from assistant.planner.ranking import needs_consent

    base = {s.name for s in session.probes if s.default}
    dear = {s.name for s in session.probes if needs_consent(s, base)}
    return tuple(name for name in ran(state, frame) if name not in dear)


def replaced(state: State, frame: Frame) -> str:
    """After "again": the node of the look before, when this look is of another one; nothing can be compared then."""
    now, before = ({state.seen[n].host for n in ns} - {""} for ns in (frame.seen, frame.before))
    return min(before, default="") if now and before and now.isdisjoint(before) else ""


def other_recording(a: Seen, b: Seen) -> bool:
    """Whether two looks at one path were at different recordings."""
    return (a.host, a.as_of) != (b.host, b.as_of)


def wanted(session: Session, frame: Frame, plan: Plan, facts: FactBase, *, answered: bool = False) -> Pending | None:
    """The one thing that would help most: consent to a probe, or a word of the person.

    `answered`: a cause was found. Then nobody is asked to let something run inside a job that was looked into, nor for
    what `check` leaves out and nothing points to.
    """
    from probes.live import Cost

    if plan.decided:
        return None
    for candidate in plan.probes:
        if candidate.consent and candidate.probe not in frame.declined and _helps(session, frame, candidate.probe):
            spec = next(s for s in session.probes if s.name == candidate.probe)
            if answered and spec.wants and spec.cost >= Cost.HEAVY:
                continue
            if answered and not (
                spec.default or spec.wants or candidate.hinted or _called_for(session, frame, spec.name)
            ):
                continue
            of = whom(frame.query, facts) if spec.wants and frame.query is not None else NO_TEXT
            return Pending(probes=(spec.name,), reason=candidate.reason, text=phrases.consent(spec, of))
    if plan.questions:
        q = plan.questions[0]
        return Pending(q.fact, q.subject, reason=q.reason, text=q.text, kind=q.kind)
    return None


def granted(session: Session, state: State, frame: Frame, plan: Plan, facts: FactBase) -> tuple[str, ...]:
    """Probes that would be asked for next and that nobody is asked for again: they leave alone what they look at, and it
    was agreed to all of that kind (``--yes``), or, after "again", to this one in the answer that is looked at again."""
    from probes.live import Cost

    pending = wanted(session, frame, plan, facts) if frame.origin.live else None
    if pending is None or not pending.probes:
        return ()
    before = ran(state, replace(frame, seen=frame.before))
    gentle = {s.name for s in session.probes if s.cost < Cost.HEAVY and (session.agreed or s.name in before)}
    return pending.probes if gentle.issuperset(pending.probes) else ()


def _called_for(session: Session, frame: Frame, probe: str) -> bool:
    from assistant.planner.asked import named_probes

    return frame.query is not None and probe in named_probes(frame.query.text, session.probes)


def _helps(session: Session, frame: Frame, probe: str) -> bool:
    """Whether a probe shows what was asked to be seen, rather than only what that is called."""
    from assistant.planner.asked import asked_facts, named_probes
    from assistant.planner.goal import only_by_looking

    query = frame.query
    if query is None or query.intent is not Intent.PROBE:
        return True
    spec = next(s for s in session.probes if s.name == probe)
    if only_by_looking(query):
        return bool(spec.wants)
    if named := named_probes(query.text, session.probes):  # of several that tell the same: the one that was named
        return probe in named
    return not set(asked_facts(query)).isdisjoint(spec.provides)
