"""What follows from what was seen and told: the diagnosis, and the plan for what else to look at.

Both are kept for a while: one turn asks for them several times over.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from threading import Lock
from typing import TYPE_CHECKING, Literal, TypeVar

from assistant.session.looking import available, ran
from assistant.session.naming import known
from knowledge.observation import Event as Line
from knowledge.observation import Observation, Scope, Subject

if TYPE_CHECKING:
    from assistant.diagnosis import Diagnosis
    from assistant.planner import Plan
    from assistant.session.core import Session
    from assistant.session.state import Frame, Seen, State

UNNAMED = "unknown:?"  # a GPU of which somebody said no more than that it is one
KEPT = 4
# The last conclusions, with what they were drawn from (so that an id stays its own): the same facts, the same answer.
_KEPT: dict[tuple[object, ...], tuple[object, Diagnosis]] = {}
_PLANS: dict[tuple[object, ...], tuple[object, Plan]] = {}
_LOCK = Lock()
T = TypeVar("T")


def concluded(session: Session, state: State, numbers: Sequence[int], told: tuple[Observation, ...]) -> Diagnosis:
    """The diagnosis of the rounds of looking `numbers`, and of what a person said."""
    from assistant.diagnosis import diagnose

    rounds = [state.seen[n] for n in numbers]
    key = (tuple(map(id, rounds)), tuple(map(id, told)), session.ruleset.fingerprint)
    if (kept := _KEPT.get(key)) is not None:
        return kept[1]
    seen = [o for r in rounds for o in r.observations]
    found = diagnose(
        [*seen, *_unseen(told, seen)],
        session.ruleset,
        notes=list(dict.fromkeys(n for r in rounds for n in r.notes)),
        sources=list(dict.fromkeys(s for r in rounds for s in r.sources)),
        cut=list(dict.fromkeys(c for r in rounds for c in r.cut)),
        as_of=max((r.as_of for r in rounds if r.as_of is not None), default=None),
        whole=any(r.whole for r in rounds),
        seen=_how(rounds),
        earlier=[o for r in rounds for o in r.earlier],
    )
    _keep(_KEPT, key, ((rounds, told), found))
    return found


def earlier_capture(session: Session, state: State, numbers: Sequence[int]) -> Diagnosis | None:
    """What the earlier of two captures that were given says; None where there is one of each thing."""
    from assistant.diagnosis import diagnose

    told = [o for n in numbers for o in state.seen[n].earlier]
    return diagnose(told, session.ruleset, sources=list(dict.fromkeys(o.source.call for o in told))) if told else None


def _how(rounds: Sequence[Seen]) -> Literal["live", "recorded", ""]:
    ways = {r.how for r in rounds}
    return "live" if "live" in ways else "recorded" if "recorded" in ways else ""


def planned(session: Session, state: State, frame: Frame, diagnosis: Diagnosis) -> Plan:
    """What else would settle the question of `frame`, without what the person refused or does not know."""
    from assistant.planner import goal_of, plan

    assert frame.query is not None
    done = ran(state, frame)
    key = (id(diagnosis), frame.query.plain()["echo"], frame.query.slots, frame.query.intent, done, frame.declined)
    if (kept := _PLANS.get(key)) is not None:
        return kept[1]
    goal = goal_of(frame.query, session.ruleset, diagnosis.facts)
    there = known(frame.query, diagnosis.facts)
    offered = [s for s in available(session, state, frame) if s.name not in frame.declined and s.wants <= there]
    found = plan(goal, diagnosis.facts, session.ruleset, offered, done, session.budget)
    asked = tuple(q for q in found.questions if q.fact not in frame.declined)
    found = found if asked == found.questions else replace(found, questions=asked)
    _keep(_PLANS, key, (diagnosis, found))
    return found


def rooted(subject: Subject, host: str) -> Subject:
    """`subject` with its nameless node called `host`."""
    if subject.scope is Scope.NODE:
        return subject if subject.id else Subject(Scope.NODE, host)
    return subject._replace(parent=rooted(subject.parent, host)) if subject.parent is not None else subject


def _keep(table: dict[tuple[object, ...], T], key: tuple[object, ...], value: T) -> None:
    with _LOCK:  # a screen looks at the machine while somebody asks
        while len(table) >= KEPT:
            table.pop(next(iter(table)))
        table[key] = value


def _unseen(told: Sequence[Observation], seen: Sequence[Observation]) -> list[Observation]:
    """What was told, without what is seen of a named thing: a code that a log of the node shows (the line itself says where
    and when), and a reading of "the GPU" that one of its GPUs has. Both would make up one thing more than there is."""
    lines = {(o.fact, o.value.code, o.subject.host) for o in seen if isinstance(o.value, Line)} if told else set()
    nodes = {host for _, _, host in lines}

    def line_there(o: Observation, line: Line) -> bool:
        hosts = {o.subject.host} if o.subject.host else nodes
        return any((o.fact, line.code, host) in lines for host in (*hosts, ""))

    def there(o: Observation) -> bool:
        if not o.subject.id.startswith(UNNAMED):
            return False
        if isinstance(o.value, Line):
            return line_there(o, o.value)
        hosts = (o.subject.host, "") if o.subject.host else None
        return any(
            o.fact == s.fact
            and o.subject.scope is s.subject.scope
            and (hosts is None or s.subject.host in hosts)
            and alike(o.value, s.value)
            for s in seen
        )

    return [o for o in told if not there(o)]


ALIKE = 0.15  # of a value: people round what they read, and a load moves from look to look


def alike(told: object, seen: object) -> bool:
    """Whether a reading is the one that somebody told."""
    numbers = [v for v in (told, seen) if isinstance(v, int | float) and not isinstance(v, bool)]
    if len(numbers) < 2:
        return told == seen
    return abs(numbers[0] - numbers[1]) <= ALIKE * max(map(abs, numbers))
