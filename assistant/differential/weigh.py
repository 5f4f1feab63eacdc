"""What the rules say about one hypothesis: the findings for it, and why it cannot be, or what is not known."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from enum import StrEnum
from typing import TYPE_CHECKING

from knowledge.observation import Event, Observation, Scope, Subject, node
from knowledge.record import dataclass
from knowledge.symptoms import Hypothesis
from rules.condition import EventLeaf, FactLeaf, Op, facts_of, leaves
from rules.engine import Finding, Grade, Role, Undecided, applies
from rules.evaluate import evaluate, proof_of
from rules.model import Rule, Rules, RuleStatus, Severity
from rules.proof import GroupProof, LeafProof, Missing, Proof, Truth, deciding, gap_of

if TYPE_CHECKING:
    from assistant.diagnosis import Diagnosis
    from rules.loader import RuleSet

_COUNTS = ("node.gpu.count", "node.gpu.listed", "node.pci.gpu_count")
_NARROWED = frozenset({Scope.PROCESS, Scope.RANK, Scope.JOB, Scope.GPU})
PLACES = 4  # subjects of one rule of which the gaps are told: those of the others are the same


class Stand(StrEnum):
    """What is known of a hypothesis, in the order in which the rows stand."""

    FOR = "for"
    POSSIBLE = "possible"
    UNKNOWN = "unknown"
    AGAINST = "against"


@dataclass(frozen=True, slots=True)
class Gap:
    """A value that a rule of the hypothesis waits for."""

    rule: str
    missing: Missing


@dataclass(frozen=True, slots=True)
class Weighed:
    """One hypothesis and all that is known of it."""

    hypothesis: Hypothesis
    stand: Stand
    findings: tuple[Finding, ...] = ()
    for_: tuple[Observation, ...] = ()
    against: tuple[LeafProof, ...] = ()  # leaves that cannot hold
    gaps: tuple[Gap, ...] = ()
    causes: tuple[str, ...] = ()  # ids of findings that explain all of `findings`: it is a consequence


@dataclass(slots=True)
class _Denied:
    """Whether the deciding rules cannot hold, and why."""

    settled: bool
    leaves: list[LeafProof]
    gaps: dict[Gap, None]


def _weighs(f: Finding, tags: Collection[str]) -> bool:
    return f.severity is not Severity.INFO or not tags or not set(tags).isdisjoint(f.rule.symptoms)


class Scales:
    """Weighs hypotheses against one diagnosis. Rules are evaluated once each, however many hypotheses name them."""

    def __init__(self, diagnosis: Diagnosis, ruleset: RuleSet, about: Collection[Subject] = ()) -> None:
        """`about`: of processes, ranks, jobs and GPUs only these count (empty: all); what is found on a node always does."""
        self._facts = diagnosis.facts
        self._about = frozenset(about)
        self._found: dict[str, list[Finding]] = {}
        for f in diagnosis.findings:
            if not self._meant(f.subject):
                continue
            self._found.setdefault(f.rule.id, []).append(f)
        self._place = {f.id: i for i, f in enumerate(diagnosis.findings)}
        self._whole = not diagnosis.cut
        self._open: dict[str, list[Undecided]] = {}
        for u in filter(lambda u: self._meant(u.subject), diagnosis.undecided):
            self._open.setdefault(u.rule.id, []).append(u)
        self._excluded = {(f.rule.id, f.subject): f for f in diagnosis.ruled_out}
        self._rules = ruleset.rules
        self._by_id = {} if isinstance(self._rules, Rules) else {r.id: r for r in self._rules}
        self._denied: dict[str, _Denied] = {}

    def _meant(self, subject: Subject) -> bool:
        return not self._about or subject.scope not in _NARROWED or subject in self._about

    def weigh(self, hypothesis: Hypothesis, tags: Collection[str] = ()) -> Weighed:
        """What stands for and against it. It is ruled out only when every deciding rule was evaluated and cannot hold, or
        when what it is about is known not to be there.

        `tags` are the words of the symptom that rules carry: a mere remark (info) that carries none of them supports
        nothing, it only makes possible.
        """
        own = self._findings(hypothesis.rules)
        sure = [f for f in own if f.grade in (Grade.CONFIRMED, Grade.PROBABLE) and _weighs(f, tags)]
        hints = sure or [*own, *self._findings(hypothesis.signs)]
        undecided = [u for name in hypothesis.rules for u in self._open.get(name, ()) if self._telling(u)]
        causes = _causes(sure)
        denied = [self._deny(name) for name in hypothesis.decides] if causes or not sure else []
        absent = () if own or undecided else self._absent(hypothesis.needs)
        if sure and not causes:
            stand = Stand.FOR
        elif (absent or (denied and all(d.settled for d in denied))) and not own and not undecided:
            stand = Stand.AGAINST
        elif hints or undecided:
            stand = Stand.POSSIBLE
        else:
            stand = Stand.UNKNOWN
        gaps = dict.fromkeys(gap for d in denied for gap in d.gaps)
        gaps |= dict.fromkeys(Gap(u.rule.id, m) for u in undecided for m in u.missing)
        gaps |= dict.fromkeys(Gap(f.rule.id, m) for f in hints for m in f.missing)
        seen = [o for f in hints for o in _own(f)] or [o for u in undecided for o in u.because]
        return Weighed(
            hypothesis,
            stand,
            tuple(hints) if stand is not Stand.AGAINST else (),
            () if stand is Stand.AGAINST else tuple({id(o): o for o in seen}.values()),
            (*absent, *(leaf for d in denied for leaf in d.leaves)),
            () if sure or stand is Stand.AGAINST else tuple(gaps),
            causes,
        )

    def _findings(self, rules: Iterable[str]) -> list[Finding]:
        """The findings of several rules, the worst first."""
        return sorted((f for name in rules for f in self._found.get(name, ())), key=lambda f: self._place[f.id])

    def _telling(self, undecided: Undecided) -> bool:
        """Whether something happened that it is about. Levels and settings alone are its background: they always hold."""
        return any(isinstance(o.value, Event) for o in undecided.because)

    # --- what speaks against --------------------------------------------------------------

    def _rule(self, name: str) -> Rule | None:
        """The rule, unless the site took it out."""
        if isinstance(self._rules, Rules):
            try:
                return self._rules.named(name)
            except KeyError:
                return None
        return self._by_id.get(name)

    def _deny(self, name: str) -> _Denied:
        if name not in self._denied:
            rule = self._rule(name)
            usable = rule is not None and rule.status is not RuleStatus.RETIRED
            self._denied[name] = self._denial(rule) if rule is not None and usable else _Denied(False, [], {})
        return self._denied[name]

    def _denial(self, rule: Rule) -> _Denied:
        """The rule on all subjects of its scope: settled when it cannot hold on any, and there is at least one."""
        asked = facts_of(rule.when)
        if asked.isdisjoint(self._facts.facts):
            return _Denied(False, [], self._never_asked(rule, asked))
        subjects = [s for s in self._facts.subjects(rule.scope) if self._meant(s)]
        out = _Denied(bool(subjects) if self._about else self._all_known(rule.scope, subjects), [], {})
        waiting = 0
        for subject in subjects:
            if not applies(rule, subject, self._facts):
                continue
            proof = proof_of(rule.when, subject, self._facts)
            if proof.truth is Truth.FALSE:
                out.leaves += deciding(proof)
            elif (rule.id, subject) in self._excluded:
                out.leaves += self._excluding(rule, subject)
            else:
                out.settled = False
                waiting += 1
                out.gaps |= dict.fromkeys(Gap(rule.id, m) for m in _lacking(proof))
                if waiting == PLACES:
                    break
        if not subjects:
            out.gaps |= self._never_asked(rule, asked)
        if not self._whole and any(isinstance(leaf, EventLeaf) for leaf in leaves(rule.when)):
            out.settled = False  # what was cut off may hold anything
        if silent := self._silent(rule):
            out.settled = False
            out.gaps |= dict.fromkeys(Gap(rule.id, gap_of(name, node(), None)) for name in silent)
        return out

    def _absent(self, needs: str) -> tuple[LeafProof, ...]:
        """That no node has what a hypothesis is about; empty unless each of them told so."""
        nodes = self._facts.subjects(Scope.NODE) if needs in self._facts.facts else ()
        leaf = FactLeaf(needs, Op.IS_NOT, ())
        proofs = [p for n in nodes if isinstance(p := evaluate(leaf, n, self._facts), LeafProof)]
        return tuple(proofs) if proofs and all(p.truth is Truth.FALSE for p in proofs) else ()

    def _silent(self, rule: Rule) -> list[str]:
        """Kinds of events of which a job's log tells none: it is the log of some ranks, and the others may have any.

        An event of the kind that is not the one meant does speak: the job said what its trouble is.
        """
        if rule.scope not in (Scope.RANK, Scope.JOB):
            return []
        kinds = [leaf.event for leaf in leaves(rule.when) if isinstance(leaf, EventLeaf)]
        return [] if any(self._facts.events(name) for name in kinds) else kinds

    def _excluding(self, rule: Rule, subject: Subject) -> Iterator[LeafProof]:
        """What ruled a finding out that the rule's condition alone would have made."""
        for condition in rule.excludes:
            proof = evaluate(condition, subject, self._facts)
            if proof.truth is Truth.TRUE:
                yield from deciding(proof)

    def _all_known(self, scope: Scope, subjects: Sequence[Subject]) -> bool:
        """Whether as many subjects are known as there are said to be: of a GPU that nothing tells of, nothing is known."""
        if scope is not Scope.GPU:
            return bool(subjects)
        hosts = Counter(s.up(Scope.NODE) for s in subjects)
        return all(self._counted(host) <= n for host, n in hosts.items() if host is not None) and bool(subjects)

    def _counted(self, host: Subject) -> int:
        """How many GPUs the node is said to have; 0 when nothing says."""
        told = (self._facts.current(name, host) for name in _COUNTS)
        return max((o.value for o in told if o is not None and isinstance(o.value, int)), default=0)

    def _never_asked(self, rule: Rule, asked: Iterable[str]) -> dict[Gap, None]:
        """Gaps for facts of a rule that nobody has told anything about."""
        absent = sorted(set(asked) - self._facts.facts)
        return {Gap(rule.id, gap_of(name, node(), None)): None for name in absent}


def _causes(findings: Sequence[Finding]) -> tuple[str, ...]:
    """Ids of the findings that explain all of these; empty when one of them is a root, or explained by another of them."""
    own = {f.id for f in findings}
    if any(f.role is Role.ROOT or own & set(f.explained_by) for f in findings):
        return ()
    return tuple(dict.fromkeys(cause for f in findings for cause in f.explained_by))


def _own(finding: Finding) -> Sequence[Observation]:
    """The evidence of a finding that is about its subject, not about what it is compared with; all where none is."""
    here = finding.subject
    own = [o for o in finding.because if here in o.subject.ancestors() or o.subject in here.ancestors()]
    return own or finding.because


def _lacking(proof: Proof) -> Iterator[Missing]:
    """The gaps that keep a proof from being decided; what stands under a decided part keeps nothing."""
    if proof.truth is not Truth.UNKNOWN:
        return
    if isinstance(proof, GroupProof):
        for child in proof.children:
            yield from _lacking(child)
    else:
        yield from proof.missing
