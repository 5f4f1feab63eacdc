"""What an earlier look of one output showed and a later one takes back: a fan that reported an error and turns again, a diagnostic that
failed and passed when it was run again.

Of two looks the later one is the state of now (`rules.factbase`), and a fault that only the earlier one shows is past: it is told as
such, since who reads the answer has both before his eyes, and what went by itself comes back by itself.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import pairwise

from knowledge.derive import derive
from knowledge.derive.sequence import COUNTS, PEERS, STATES
from knowledge.facts import vocabulary
from knowledge.identity import resolve
from knowledge.observation import Event, Observation, Origin, Series, Status, Subject
from rules.engine import Evaluation, Finding, rank, run
from rules.factbase import FactBase
from rules.life import Life, before
from rules.loader import RuleSet
from rules.resolve import Case

_ALIKE = 0.6  # of what one look tells the other one must tell, to be a look at the same thing
_MOST = 16  # looks that are judged: of a loop the last ones
_NAMES = ("gpu.uuid", "gpu.serial", "port.guid")  # where these differ, the looks are at two machines
_FOLLOWED = {*STATES, *COUNTS, PEERS}  # whose changes are events of their own (`knowledge.derive.sequence`)
_OF_WORK = ("gpu.work.", "mig.work.")  # of all samples together: of one of them nothing follows
_TESTS = ("dcgm_diag", "dcgm_diag_node")  # events of tests that somebody runs, each with its result
_WATCHES = ("dcgm_health", "dcgm_health_node")
_Key = tuple[str, Subject]


def with_past(
    result: Evaluation, observations: Iterable[Observation], earlier: Sequence[Observation], ruleset: RuleSet, facts: FactBase
) -> Evaluation:  # fmt: skip
    """`result`, with what earlier looks of the outputs show and now is not so; `earlier` is what was replaced as a whole."""
    result = replace(result, findings=tuple(_run_again(f, facts) for f in result.findings))
    looks = list(_earlier_looks(observations, earlier))
    if not looks:
        return result
    open_ = {(u.rule.id, u.subject) for u in result.undecided}
    known = {f.id for f in result.findings} | {f.id for f in result.ruled_out}
    past: dict[str, tuple[Finding, Observation, FactBase]] = {}
    times: dict[str, list[int]] = defaultdict(list)
    for n, look in enumerate(looks):
        then = FactBase(derive(look), vocabulary(), ages=False)
        for f in run(ruleset.rules, then).findings:
            new = f.counts and not f.behind and f.id not in known and (f.rule.id, f.subject) not in open_
            if new and (now := _otherwise(f, facts)) is not None:
                past[f.id] = f, now, then
                times[f.id].append(n)
    ended = [_ended(*found, often=sum(b - a > 1 for a, b in pairwise(times[i])) + 1) for i, found in past.items()]
    return replace(result, findings=tuple(rank([*result.findings, *ended]))) if ended else result


def _earlier_looks(observations: Iterable[Observation], earlier: Sequence[Observation]) -> Iterator[list[Observation]]:
    """What each look but the last tells, under the names that all looks together give."""
    groups: dict[tuple[str, str, str], list[Observation]] = defaultdict(list)
    told = [o for o in (*observations, *earlier) if _is_read(o)]
    if not earlier and not _repeats(told):
        return  # which is what most inputs are, and costs next to nothing
    replaced = {(o.source.probe, o.source.call, o.at) for o in earlier}
    for o in resolve(told):
        groups[o.source.probe, o.source.call, o.subject.host].append(o)
    for group in groups.values():
        looks = _apart(group)[-_MOST - 1 :]
        for n, look in enumerate(looks):
            alone = {(o.source.probe, o.source.call, o.at) for o in look} <= replaced
            if alone or any(_of_one_thing(look, other) for other in (*looks[:n], *looks[n + 1 :])):
                yield look


def _is_read(o: Observation) -> bool:
    """Whether a line of an output tells it: what was noted in a log has happened, whatever is seen later."""
    read = o.origin is Origin.MEASURED and o.source.line is not None and not o.source.call.startswith("history:")
    return read and o.status.answered and not isinstance(o.value, Event | Series)


def _repeats(told: Sequence[Observation]) -> bool:
    """Whether one input tells anything at two places."""
    places: dict[tuple[str, str, str, Subject], int | None] = {}
    return any(places.setdefault((o.source.probe, o.source.call, o.fact, o.subject), o.source.line) != o.source.line for o in told)  # fmt: skip


def _apart(group: Sequence[Observation]) -> list[list[Observation]]:
    """The looks of one output, one below the other: the next one begins where something is told again."""
    looks: list[list[Observation]] = []
    lines: dict[_Key, int | None] = {}
    for o in sorted(group, key=lambda o: o.source.line or 0):
        if not looks or lines.setdefault((o.fact, o.subject), o.source.line) != o.source.line:
            looks.append([])
            lines = {(o.fact, o.subject): o.source.line}
        looks[-1].append(o)
    return looks


def _of_one_thing(look: Sequence[Observation], other: Sequence[Observation]) -> bool:
    """Whether two looks are at the same: both tell of the same, and no name is another one."""
    a, b = ({(o.fact, o.subject): o.value for o in found} for found in (look, other))
    common = a.keys() & b.keys()
    same = all(a[key] == b[key] for key in common if key[0] in _NAMES)
    return same and len(common) >= _ALIKE * max(len(a), len(b))


def _otherwise(f: Finding, facts: FactBase) -> Observation | None:
    """What now speaks against a finding of an earlier look; None where not all that it stands on was read again."""
    if f.events or any(o.fact in _FOLLOWED or o.fact.startswith(_OF_WORK) for o in f.because):
        return None
    pairs = [(o, facts.current(o.fact, o.subject)) for o in f.because]
    changed = [now for o, now in pairs if now is not None and now.status.answered and now.value != o.value]
    read_again = all(now is not None and now.status is Status.OK for _, now in pairs)
    return changed[-1] if read_again and changed else None


def _run_again(f: Finding, facts: FactBase) -> Finding:
    """`f`, as past where all that failed (tests, watches, a reset that was refused) has gone well when it was tried again."""
    later = [[p for p in _passes(o, facts) if _later(p, o)] for o in f.events]
    return _ended(f, later[-1][-1], facts) if later and all(later) else f


def _passes(o: Observation, facts: FactBase) -> list[Observation]:
    """What says that all is well with what a test or a watch of DCGM has found, there or on all GPUs of the node; of a reset, that it was done."""
    where = list(o.subject.ancestors())
    if o.fact in _WATCHES:
        return [h for s in where for h in facts.of("node.dcgm.health", s) if h.value == "healthy"]
    if o.fact == "gpu_reset_attempt":
        tries = [(p, p.value) for s in where for p in facts.events_at(o.fact, s)]
        return [p for p, said in tries if isinstance(said, Event) and said.get("stage") == "succeeded"]
    if o.fact not in _TESTS or not isinstance(o.value, Event) or not _several_runs(where, facts):
        return []
    wanted = o.value.get("test"), "pass"
    every = [(p, p.value) for fact in _TESTS for s in where for p in facts.events_at(fact, s)]
    return [p for p, said in every if isinstance(said, Event) and (said.get("test"), said.get("status")) == wanted]


def _several_runs(where: Sequence[Subject], facts: FactBase) -> bool:
    return sum(len(facts.of("node.dcgm.diag.result", s)) for s in where) > 1


def _later(one: Observation, other: Observation) -> bool:
    same = one.source.call == other.source.call and one.at is None and other.at is None
    return (one.source.line or 0) > (other.source.line or 0) if same else before(other, one)


def _ended(f: Finding, now: Observation, then: FactBase, often: int = 1) -> Finding:
    life = Life(now, None, again=False, same=True, often=often)
    advice = life.advice(f.advice, Case(f.rule, f.subject, f.events, then))
    severity = life.severity(f.severity)
    return replace(f, severity=severity, life=life, advice=advice, explains=(), explained_by=(), may_explain=())
