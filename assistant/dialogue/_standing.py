"""Where a rule stands on a subject: concluded, a consequence, ruled out, undecided, or not so, and what it would take."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from enum import StrEnum
from typing import TYPE_CHECKING

from knowledge.observation import Event
from knowledge.record import dataclass
from rules.condition import FactLeaf
from rules.engine import Finding, Role, applies
from rules.evaluate import proof_of
from rules.model import Rule, RuleStatus
from rules.proof import LeafProof, Proof, Truth, flips, leaf_proofs

if TYPE_CHECKING:
    from assistant.diagnosis import Diagnosis
    from knowledge.observation import Subject

SUBJECTS = 256  # of one rule that are looked at; a machine has fewer, a hostile input may not


class Stand(StrEnum):
    """What the rules say of a hypothesis, in order: what is nearest to holding first."""

    CONCLUDED = "concluded"  # it is among the findings, a root
    SYMPTOM = "symptom"  # it holds, and another finding explains it
    RULED_OUT = "ruled_out"  # its condition holds, and an exclude does too
    UNKNOWN = "unknown"  # what it asks for is not known
    NOT_MATCHED = "not_matched"  # it is known not to hold
    INAPPLICABLE = "inapplicable"  # the rule is about things of another kind
    NO_SUBJECT = "no_subject"  # nothing of the kind is known


@dataclass(frozen=True, slots=True)
class Standing:
    """One rule on one subject."""

    stand: Stand
    rule: Rule
    subject: Subject | None = None
    finding: Finding | None = None
    proof: Proof | None = None
    alike: tuple[Subject, ...] = ()  # every subject on which it stands like this, this one among them
    lacking: tuple[LeafProof, ...] = ()  # a smallest set of leaves that would have to differ for the rule to hold

    @property
    def order(self) -> tuple[int, int, int, int, str, float, str]:
        """Nearest to holding first: fewest leaves that differ, most that agree."""
        leaves = list(leaf_proofs(self.proof)) if self.proof is not None else []
        agree = sum(p.truth is Truth.TRUE for p in leaves)
        near = list(Stand).index(self.stand)
        speaks = 0 if agree or near <= 2 else 1  # something speaks for it
        away = self._distance() if len(self.lacking) == 1 else 0.0
        level = min(near, 3) if near < 5 else near
        return (level, speaks, len(self.lacking), near, self.rule.id, away, str(self.subject))

    def _distance(self) -> float:
        """How far the value that was seen lies from the threshold, as a share of it; 0 where neither is a number."""
        (p,) = self.lacking
        if (
            not isinstance(p.leaf, FactLeaf)
            or isinstance(p.leaf.value, bool)
            or not isinstance(p.leaf.value, int | float)
        ):
            return 0.0
        try:
            seen = float(p.seen)
        except ValueError:
            return 0.0
        return abs(seen - p.leaf.value) / (abs(p.leaf.value) or 1.0)


def standing(rule: Rule, subject: Subject, d: Diagnosis) -> Standing:
    """Where `rule` stands on `subject`."""
    for f in d.findings:
        if f.rule.id == rule.id and f.subject == subject and _of_code(f, rule):
            kind = Stand.SYMPTOM if f.role is Role.SYMPTOM else Stand.CONCLUDED
            return Standing(kind, rule, subject, f, f.proof)
    for f in d.ruled_out:
        if f.rule.id == rule.id and f.subject == subject and _of_code(f, rule):
            return Standing(Stand.RULED_OUT, rule, subject, f, f.proof)
    if not applies(rule, subject, d.facts):
        return Standing(Stand.INAPPLICABLE, rule, subject)
    proof = proof_of(rule.when, subject, d.facts)
    kind = Stand.UNKNOWN if proof.truth is Truth.UNKNOWN else Stand.NOT_MATCHED
    return Standing(kind, rule, subject, None, proof, lacking=tuple(flips(proof, Truth.TRUE)))


def _alike(a: Standing, b: Standing) -> bool:
    """Whether two subjects lack the same, for the same reason."""
    if a is b:
        return True
    mine, theirs = ([(p.leaf, p.truth, p.seen) for p in s.lacking] for s in (a, b))
    return a.finding is None and b.finding is None and a.stand is b.stand and mine == theirs


def _of_code(f: Finding, rule: Rule) -> bool:
    """Whether a finding of a rule about many codes is of the one that is asked about."""
    if rule.split_by != "code" or rule.xid is None:
        return True
    return any(isinstance(o.value, Event) and o.value.code == rule.xid for o in f.events)


def standings(rules: Iterable[Rule], d: Diagnosis, subjects: Sequence[Subject] = ()) -> list[Standing]:
    """Each rule where it is nearest to holding, the nearest rule first; within `subjects` and what they belong to."""
    from assistant.dialogue._scope import belongs

    out = []
    for rule in rules:
        if rule.status is RuleStatus.RETIRED:
            continue
        every = d.facts.subjects(rule.scope)
        here = [s for s in every if not subjects or belongs(s, subjects, d.facts)][:SUBJECTS]
        each = [standing(rule, s, d) for s in here] or [Standing(Stand.NO_SUBJECT, rule)]
        best = min(each, key=lambda s: s.order)
        alike = tuple(s.subject for s in each if s.subject is not None and _alike(s, best))
        out.append(replace(best, alike=alike))
    return sorted(out, key=lambda s: s.order)
