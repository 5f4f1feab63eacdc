"""A listing beside one that has more: what it lacks is told, unless it was asked for some GPUs only, or at another time."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from knowledge.derive import derive
from knowledge.observation import Clock, Observation, Source, node

MINUTE = 60 * 10**9


def listed(count: int, probe: str, at: int | None = None, fact: str = "node.gpu.listed") -> Observation:
    clock = Clock.REALTIME if at is not None else Clock.NONE
    return Observation(fact, node("n1"), count, source=Source(probe, "paste.txt", 1), at=at, clock=clock)


def lacking(*told: Observation) -> dict[str, object]:
    names = ("node.gpu.left_out", "node.gpu.listed_fewest", "node.gpu.bus_only")
    return {o.fact.removeprefix("node.gpu."): o.value for o in derive(told) if o.fact in names}


@given(st.integers(2, 16), st.integers(2, 16))
def test_the_shorter_of_two_listings_lacks_gpus_where_it_has_most(one: int, other: int) -> None:
    most, fewest = max(one, other), min(one, other)
    short = 0 < most - fewest <= most / 3
    wanted = {"left_out": most - fewest, "listed_fewest": fewest} if short else {}
    assert lacking(listed(one, "nvidia-smi"), listed(other, "dcgmi-discovery")) == wanted
    on_bus = listed(most, "lspci", fact="node.pci.gpu_count")
    bus = {"bus_only": most - fewest} if short or most == fewest else {}
    assert lacking(listed(fewest, "nvidia-smi"), on_bus) == {**wanted, **bus}


def test_listings_of_two_times_lack_nothing() -> None:
    assert lacking(listed(7, "nvidia-smi", 0), listed(8, "dcgmi-discovery", 30 * MINUTE)) == {}
    assert lacking(listed(7, "nvidia-smi", 0), listed(8, "dcgmi-discovery", 1)) == {"left_out": 1, "listed_fewest": 7}
