"""What the conditions of a runbook say: its plain trees through the parser of the rules, over the facts that there are."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

from knowledge.facts import vocabulary
from knowledge.observation import Scope, Subject, node
from rules.condition import Condition, Path, facts_of
from rules.evaluate import evaluate
from rules.proof import Missing, Proof, Truth, conjunction, disjunction, leaf_proofs

if TYPE_CHECKING:
    from knowledge.runbook import Runbook, Step, Tree
    from knowledge.schema.runbook import Checks
    from rules.factbase import FactBase

Report = Callable[[Path, str, str], None]


def parse(tree: Any, report: Report) -> Condition | None:
    """The condition; None after a fault, which `report` was told with its path."""
    from rules.builder import Builder

    return Builder(vocabulary(), {}, report, set()).build(tree, ())


def checks() -> Checks:
    """For the lint: what a condition may say, and which probes there are."""
    from assistant.sources import provided
    from knowledge.schema.runbook import Checks as Handed
    from probes.live import probes

    told = provided()

    def condition(tree: Any, again: bool, report: Report) -> None:
        faults: list[Path] = []

        def noted(path: Path, message: str, hint: str) -> None:
            faults.append(path)
            report(path, message, hint)

        built = parse(tree, noted)
        if built is None or faults:
            return
        for name in sorted(facts_of(built)):
            spec = vocabulary()[name]
            if again and not tellers(frozenset((name,))):
                report((), f"no probe tells {name}: it cannot be looked at after the step", "")
            elif name not in told and not spec.derived and spec.ask is None:
                report((), f"nothing can tell {name}: no probe provides it, it is not derived, nobody is asked", "")

    return Handed(condition, frozenset(s.name for s in probes()))


@cache
def tellers(facts: frozenset[str]) -> tuple[str, ...]:
    """The cheapest probes that tell these facts; no active test and nothing that asks for a process to look into."""
    from assistant.planner.asked import givers
    from probes.active import is_test
    from probes.live import Cost, probes

    plain = [s for s in probes() if s.cost < Cost.HEAVY and not s.wants and not is_test(s.name)]
    return givers(facts, plain)


class Judged(NamedTuple):
    """What a condition came to."""

    truth: Truth
    proofs: tuple[Proof, ...] = ()
    missing: tuple[Missing, ...] = ()
    probes: tuple[str, ...] = ()  # that would tell what is missing
    fault: str = ""  # why the condition cannot be read

    @property
    def lacking(self) -> tuple[str, ...]:
        """Facts that are not known."""
        return tuple(dict.fromkeys(m.fact for m in self.missing))


class Judge:
    """Conditions over one set of facts, about the subjects of one walk."""

    def __init__(self, facts: FactBase, subjects: Sequence[Subject] = ()) -> None:
        self.facts, self.subjects = facts, tuple(subjects)

    def gate(self, tree: Tree) -> Judged:
        """Whether a step applies: where there are several subjects, to one of them at least."""
        return self._judged(tree, disjunction)

    def worked(self, tree: Tree) -> Judged:
        """Whether a step worked: for all of them."""
        return self._judged(tree, conjunction)

    def _judged(self, tree: Tree, join: Callable[[list[Truth]], Truth]) -> Judged:
        faults: list[str] = []
        condition = parse(tree, lambda path, message, _: faults.append(f"{'.'.join(map(str, path))}: {message}"))
        if condition is None or faults:
            return Judged(Truth.UNKNOWN, fault="; ".join(faults))
        proofs = tuple(evaluate(condition, s, self.facts) for s in self.about(condition))
        truth = join([p.truth for p in proofs])
        gaps = [g for p in proofs for leaf in leaf_proofs(p) if leaf.truth is Truth.UNKNOWN for g in leaf.missing]
        missing = tuple(dict.fromkeys(gaps)) if truth is Truth.UNKNOWN else ()
        wanted = frozenset(g.fact for g in missing)
        return Judged(truth, proofs, missing, tellers(wanted) if wanted else ())

    def about(self, condition: Condition) -> tuple[Subject, ...]:
        """What a condition is about: the walk's subjects; where it has none, everything of its kind in the facts."""
        if self.subjects:
            return self.subjects
        wanted = {vocabulary()[name].scope for name in facts_of(condition)}
        for scope in (Scope.PROCESS, Scope.GPU):
            found = tuple(self.facts.subjects(scope)) if scope in wanted else ()
            if found:
                return found
        return tuple(self.facts.subjects(Scope.NODE)) or (node(""),)


def aligned(subjects: Sequence[Subject], facts: FactBase) -> tuple[Subject, ...]:
    """The same things by the names that `facts` have for them: a log may not have told which node a GPU is of."""
    out = []
    for subject in subjects:
        known = facts.subjects(subject.scope)
        same = [s for s in known if s.id == subject.id and (s.host == subject.host or not subject.host or not s.host)]
        out.append(same[0] if subject not in known and len(same) == 1 else subject)
    return tuple(out)


def asked_of(tree: Tree, chosen: Sequence[str] = ()) -> tuple[str, ...]:
    """The probes to run before `tree` is judged: `chosen`, or the cheapest ones that tell its facts."""
    condition = parse(tree, lambda *_: None)
    return tuple(chosen) or (tellers(facts_of(condition)) if condition is not None else ())


def trees(step: Step) -> tuple[Tree, ...]:
    """All conditions of a step."""
    until = step.repeat.until if step.repeat is not None else None
    return tuple(t for t in (step.only_if, step.verify_if, until) if t is not None)


def has_conditions(book: Runbook) -> bool:
    """Whether facts have a say in it at all."""
    return any(trees(s) for s in book.steps)
