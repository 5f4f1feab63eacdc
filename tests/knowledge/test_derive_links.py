"""Which NVLinks of a GPU are down."""

from __future__ import annotations

from knowledge.derive.links import FACT, enrich
from knowledge.observation import Clock, Observation, Scope, Source, Subject, gpu

GPU = gpu("0000:3b:00.0", "n1")


def state(link: int, word: str, call: str = "a.txt", at: int | None = None) -> Observation:
    clock = Clock.NONE if at is None else Clock.REALTIME
    return Observation(
        "link.state", Subject(Scope.LINK, str(link), GPU), word, source=Source("nvlink", call), at=at, clock=clock
    )


def test_the_latest_source_names_the_links_that_are_down_in_order() -> None:
    before = [state(n, "inactive", at=1) for n in (2, 3)]
    now = [state(10, "inactive", "b.txt", 2), state(4, "inactive", "b.txt", 2), state(5, "active", "b.txt", 2)]
    assert [o.value for o in enrich([*before, *now]) if o.fact == FACT] == [("4", "10")]
    assert not [o for o in enrich([state(5, "active")]) if o.fact == FACT]
