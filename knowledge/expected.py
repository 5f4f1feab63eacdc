"""What sound hardware reaches in the active tests: `knowledge/data/expected.yaml`."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

from knowledge.compiled import shard
from knowledge.language import NO_TEXT, Text
from knowledge.record import dataclass


@dataclass(frozen=True, slots=True)
class Expected:
    """One measure on one kind of hardware; units as the data file says."""

    id: str
    measure: str
    typical: float
    floor: float  # below it something is wrong
    pcie_generation: int | None = None
    pcie_width: int | None = None
    gpus: tuple[str, ...] = ()  # ids of `knowledge.gpus`
    ranks: int | None = None
    note: Text = NO_TEXT
    sources: tuple[str, ...] = ()


@cache
def expected() -> tuple[Expected, ...]:
    """All of them. FaultsError when the data has faults."""
    return tuple(_of(d) for d in shard("expected"))


def host_copy(generation: int, width: int) -> Expected | None:
    """Copies between host and GPU over this PCIe link; None when nothing is known of it."""
    found = (e for e in expected() if e.measure == "host_copy")
    return next((e for e in found if (e.pcie_generation, e.pcie_width) == (generation, width)), None)


def peer_copy(product_name: str) -> Expected | None:
    """Copies from a GPU of this name to another over NVLink."""
    return next((e for e in expected() if e.measure == "peer_copy" and _is(product_name, e)), None)


def all_reduce(product_name: str, ranks: int) -> Expected | None:
    """Bus bandwidth of a large all-reduce over so many GPUs of one node."""
    found = (e for e in expected() if e.measure == "all_reduce" and e.ranks == ranks)
    return next((e for e in found if _is(product_name, e)), None)


def rdma_share() -> Expected | None:
    """Percent of a port's rate."""
    return next((e for e in expected() if e.measure == "rdma_share"), None)


def _is(product_name: str, e: Expected) -> bool:
    from knowledge.gpus import find

    model = find(product_name)
    return model is not None and model.id in e.gpus


def _of(d: Mapping[str, Any]) -> Expected:
    return Expected(
        d["id"], d["measure"], float(d["typical"]), float(d["floor"]), d.get("pcie_generation"), d.get("pcie_width"),
        tuple(d.get("gpus", ())), d.get("ranks"), Text.of(d["note"]) if d.get("note") else NO_TEXT, tuple(d["sources"]),
    )  # fmt: skip
