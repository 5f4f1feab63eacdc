"""What is worked out beside what was told."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from knowledge.observation import Observation


def with_added(observations: Sequence[Observation], made: Iterable[Observation]) -> list[Observation]:
    """The batch with those of `made` of which nobody has told the fact of the subject."""
    added = list(made)
    facts = {o.fact for o in added}
    have = {(o.fact, o.subject) for o in observations if o.fact in facts}
    return [*observations, *(o for o in added if (o.fact, o.subject) not in have)]
