"""Where sources contradict each other: the facts as they are if one of them is right.

Two inputs are never judged milder than either alone. A state on which they differ leaves a condition unknown, and would let go
what each alone proves. So the rules run once more for each source that is contradicted, without what the others say of it.
"""

from __future__ import annotations

from collections.abc import Iterator

from knowledge.derive import derive
from knowledge.observation import Observation, Origin
from rules.factbase import FactBase, source_of


def worlds(facts: FactBase) -> Iterator[FactBase]:
    """The facts as each source that takes part in a dispute has them, in order of the sources' names; none without a dispute."""
    contested = {key: {source_of(o) for o in said} for key, said in facts.disputes.items()}
    for source in sorted({name for names in contested.values() for name in names}):
        against = {key: names - {source} for key, names in contested.items() if source in names}

        def kept(o: Observation, against: dict[object, set[str]] = against) -> bool:  # type: ignore[assignment]
            return source_of(o) not in against.get((o.fact, o.subject), ())

        measured = [k.inner for k in facts.observations if k.inner.origin is not Origin.DERIVED]
        batch = derive(o for o in measured if kept(o))
        yield FactBase((o for o in batch if kept(o)), facts.vocabulary, facts.as_of)
