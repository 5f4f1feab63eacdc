"""Fact leaves: a value, or the values of several subjects, against a threshold."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from knowledge.facts import Type
from knowledge.observation import Observation, Scalar, Scope, Series, Status, Subject, Value
from rules.compare import compare, version
from rules.condition import FactLeaf, On, Op, Operand, Quantifier, Reference, Take
from rules.factbase import FactBase, subject_key
from rules.overtime import over_time
from rules.proof import LeafProof, Missing, Truth, gap_of

_EMPTY: dict[Type, Value] = {Type.BOOL: False, Type.INT: 0, Type.FLOAT: 0.0, Type.STR: "", Type.SET: (),
                                 Type.ENUM: "", Type.SUBJECT: "", Type.EVENT: None}  # fmt: skip


def fact_leaf(leaf: FactLeaf, subject: Subject, facts: FactBase) -> LeafProof:
    """The truth of a fact leaf about `subject`, over all subjects that it looks at."""
    if leaf.peer_ratio:
        return _ratio(leaf, subject, facts)
    if leaf.on is On.SELF and leaf.each is None:  # as most leaves
        return _signed(leaf, _on(leaf, facts.read_up(leaf.fact, subject)[0], facts))
    targets, broken = _targets(leaf, subject, facts)
    proofs = [_on(leaf, t, facts) for t in targets] + [_unknown(leaf, s, None) for s in broken]
    if not proofs:
        return _unknown(leaf, subject, None)
    if leaf.each is None:
        return _signed(leaf, proofs[0])
    can = [p for p in proofs if not _not_applicable(p)]
    if not can:
        seen = tuple(o for p in proofs for o in p.observations)
        return LeafProof(leaf, Truth.FALSE, seen, seen="not applicable")
    truth = quantify(leaf.each, [p.truth for p in can])
    wanted = ~truth if leaf.each.kind == "none" else truth
    shown = tuple(
        o for p in can if p.truth is (wanted if truth is not Truth.UNKNOWN else Truth.TRUE) for o in p.observations
    )
    gaps = tuple(g for p in can if p.truth is Truth.UNKNOWN for g in p.missing)
    hits = sum(p.truth is Truth.TRUE for p in can)
    return _signed(leaf, LeafProof(leaf, truth, shown, gaps, f"{hits} of {len(can)}"))


def _unknown(leaf: FactLeaf, subject: Subject, seen: Observation | None) -> LeafProof:
    return LeafProof(leaf, Truth.UNKNOWN, missing=(gap_of(leaf.fact, subject, seen),))


def _not_applicable(proof: LeafProof) -> bool:
    """A property that the subject cannot have, or a threshold that it cannot have."""
    return proof.truth is Truth.FALSE and any(o.status is Status.NOT_APPLICABLE for o in proof.observations)


def _signed(leaf: FactLeaf, proof: LeafProof) -> LeafProof:
    if not leaf.negated or _not_applicable(proof):
        return proof  # what cannot be is false, negated or not
    return LeafProof(leaf, ~proof.truth, proof.observations, proof.missing, proof.seen)


def quantify(each: Quantifier, truths: Sequence[Truth]) -> Truth:
    """Kleene truth of "so many of them hold": settled as soon as the unknown ones cannot change it.

    Where nothing is known, nothing is settled, even when there are too few subjects for `at_least`.
    """
    yes, maybe, total = truths.count(Truth.TRUE), truths.count(Truth.UNKNOWN), len(truths)
    if total and maybe == total:
        return Truth.UNKNOWN
    if each.kind == "none":
        return Truth.FALSE if yes else (Truth.UNKNOWN if maybe else Truth.TRUE)

    def enough(count: int) -> bool:
        if each.kind == "share":  # as a quotient: 0.07 * 100 is more than 7
            return total > 0 and count / total >= each.number
        return count >= {"any": 1, "all": total, "at_least": each.number}[each.kind]

    if enough(yes):
        return Truth.TRUE
    return Truth.UNKNOWN if enough(yes + maybe) else Truth.FALSE


def _targets(leaf: FactLeaf, subject: Subject, facts: FactBase) -> tuple[list[Subject], list[Subject]]:
    """Subjects that a leaf looks at, and those at which a relation that it follows is not known."""
    scope = facts.vocabulary[leaf.fact].scope
    if leaf.on in (On.SELF, On.BELOW):
        return facts.below(subject, scope), []
    if leaf.on is On.VIA:
        return follow(subject, leaf.via, facts)
    node = subject.up(Scope.NODE)
    if node is None:
        return [], []
    everyone = [node] if scope is Scope.NODE else facts.below(node, scope)
    return (everyone if leaf.on is On.NODE else [s for s in everyone if subject not in s.ancestors()]), []


def follow(subject: Subject, path: Iterable[Scope], facts: FactBase) -> tuple[list[Subject], list[Subject]]:
    """Subjects at the end of a path of relations, and those on the way of which the next step is not known."""
    here, broken = [subject], []
    for scope in path:
        steps = {s: facts.related(s, scope) for s in here}
        broken += [s for s, ends in steps.items() if not ends]
        here = sorted({t for ends in steps.values() for t in ends}, key=subject_key)
    return here, broken


def _on(leaf: FactLeaf, subject: Subject, facts: FactBase) -> LeafProof:
    seen = facts.current(leaf.fact, subject)
    if seen is None or not seen.status.answered:
        return _unknown(leaf, subject, seen)
    if seen.status is Status.NOT_APPLICABLE:
        return LeafProof(leaf, Truth.FALSE, (seen,))
    wanted, gap, other = _operand(leaf.value, subject, facts)
    if gap is not None:
        return LeafProof(leaf, Truth.UNKNOWN, missing=(gap,))
    if any(o.status is Status.NOT_APPLICABLE for o in other):
        return LeafProof(leaf, Truth.FALSE, (seen, *other))
    if seen.status is Status.NONE_SEEN:
        none = _EMPTY[facts.vocabulary[leaf.fact].type]
        truth = Truth.TRUE if compare(none, leaf.op, wanted) else Truth.FALSE
        return LeafProof(leaf, truth, (seen, *other), seen="none seen")
    if leaf.take is not Take.LAST:
        return over_time(leaf, subject, facts, wanted, other)
    value = facts.series(leaf.fact, subject)[0].values[-1:] if isinstance(seen.value, Series) else (seen.value,)
    if not value:
        return LeafProof(leaf, Truth.UNKNOWN, missing=(Missing(leaf.fact, subject, "no sample holds a number"),))
    if leaf.op in (Op.VERSION_BELOW, Op.VERSION_AT_LEAST):
        other_fact = leaf.value.fact if isinstance(leaf.value, Reference) else leaf.fact
        for fact, text in ((leaf.fact, value[0]), (other_fact, wanted)):
            if not version(str(text)):
                return LeafProof(leaf, Truth.UNKNOWN, missing=(Missing(fact, subject, f"{text!r} is no version"),))
    truth = Truth.TRUE if compare(value[0], leaf.op, wanted) else Truth.FALSE
    return LeafProof(leaf, truth, (seen, *other), seen=str(value[0]))


def _operand(
    value: Operand, subject: Subject, facts: FactBase
) -> tuple[Scalar | tuple[Scalar, ...], Missing | None, tuple[Observation, ...]]:
    if not isinstance(value, Reference):
        return value, None, ()
    where, seen = facts.read_up(value.fact, subject)
    if seen is None or not seen.status.answered:
        return None, gap_of(value.fact, where, seen), ()
    if seen.status is Status.NOT_APPLICABLE:
        return None, None, (seen,)
    raw = _EMPTY[facts.vocabulary[value.fact].type] if seen.status is Status.NONE_SEEN else seen.value
    if isinstance(raw, Series):
        raw = raw.values[-1] if raw.values else None
    if raw is None:
        return None, gap_of(value.fact, where, None), ()
    if isinstance(raw, bool) or not isinstance(raw, int | float):
        return (raw if isinstance(raw, bool | str) else None), None, (seen,)
    return raw * value.times + value.plus, None, (seen,)


def _ratio(leaf: FactLeaf, subject: Subject, facts: FactBase) -> LeafProof:
    """Own value over the median of the peers on the same node (at least `min_peers` others).

    Peers that gave no number may lie anywhere: the median is somewhere between what it would be
    with all of them below and with all of them above, and the leaf holds when it holds at both ends.
    """
    node = subject.up(Scope.NODE)
    own = facts.current(leaf.fact, subject)
    if own is None or not own.status.answered:
        return _unknown(leaf, subject, own)
    if own.status is Status.NOT_APPLICABLE:
        return LeafProof(leaf, Truth.FALSE, (own,))
    others = [
        (s, facts.current(leaf.fact, s)) for s in (facts.below(node, subject.scope) if node else []) if s != subject
    ]
    peers = [(s, o) for s, o in others if o is None or o.status is not Status.NOT_APPLICABLE]
    known = sorted(n for _, o in peers if o is not None and (n := _level(o)) is not None)
    shown = (own, *(o for _, o in peers if o is not None and _level(o) is not None))
    silent = tuple(gap_of(leaf.fact, s, o) for s, o in peers if o is None or _level(o) is None)
    mine = _level(own)
    if mine is None or len(known) < leaf.min_peers:
        if mine is not None and not silent:  # no reading is missing: there are too few to compare it with
            return LeafProof(leaf, Truth.UNKNOWN, (own,))
        reason = f"only {len(known)} peers with a value, {leaf.min_peers} needed"
        return LeafProof(leaf, Truth.UNKNOWN, (own,), (Missing(leaf.fact, subject, reason), *silent))
    wanted = None if isinstance(leaf.value, Reference) else leaf.value
    ends = [_median([edge] * len(silent) + known) for edge in (-math.inf, math.inf)]
    if min(ends) <= 0 or math.isinf(max(ends)):
        gaps = silent or (Missing(leaf.fact, subject, "the peers' median is not above zero"),)
        return LeafProof(leaf, Truth.UNKNOWN, (own,), gaps)
    holds = {compare(mine / median, leaf.op, wanted) for median in ends}
    if len(holds) > 1:
        return LeafProof(leaf, Truth.UNKNOWN, (own,), silent)
    seen = f"{mine / ends[0]:.3g} of the peers' median {ends[0]:.6g}"
    return _signed(leaf, LeafProof(leaf, Truth.TRUE if holds.pop() else Truth.FALSE, shown, seen=seen))


def _level(o: Observation) -> float | None:
    """The number that an observation stands for: nothing seen is zero; None when there is no number."""
    if o.status is Status.NONE_SEEN:
        return 0.0
    value = o.value.values[-1] if isinstance(o.value, Series) and o.value.values else o.value
    if o.status is not Status.OK or not isinstance(value, int | float) or math.isnan(value):
        return None
    return float(value)


def _median(values: Sequence[float]) -> float:
    ordered = sorted(values)
    half = len(ordered) // 2
    return ordered[half] if len(ordered) % 2 else (ordered[half - 1] + ordered[half]) / 2
