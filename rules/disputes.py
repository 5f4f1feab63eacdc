"""Where sources contradict each other: the facts as they are if one of them is right.

Two inputs are never judged milder than either alone. A state on which they differ leaves a condition unknown, and would let go
what each alone proves. So the rules run once more for each source that is contradicted, without what the others say of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from knowledge.derive import derive
from knowledge.observation import Observation, Origin, Subject
from rules.factbase import FactBase, source_of


def worlds(facts: FactBase) -> Iterator[FactBase]:
    """The facts as each source that takes part in a dispute has them, in order of the sources' names; none without a dispute."""
    contested = {key: {source_of(o) for o in said} for key, said in facts.disputes.items()}
    measured = [k.inner for k in facts.observations if k.inner.origin is not Origin.DERIVED]
    for source in sorted({name for names in contested.values() for name in names}):
        against = {key: names - {source} for key, names in contested.items() if source in names}
        batch = derive(o for o in measured if not _told_against(o, against))
        yield FactBase(
            (o for o in batch if not _told_against(o, against)), facts.vocabulary, facts.as_of, ages=facts.ages
        )


def _told_against(o: Observation, against: Mapping[tuple[str, Subject], set[str]]) -> bool:
    return source_of(o) in against.get((o.fact, o.subject), ())
