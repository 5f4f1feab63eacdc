"""``p2pBandwidthLatencyTest`` and ``ibdiagnet``: who is named, and what a cut output leaves open."""

from __future__ import annotations

from pathlib import Path

from knowledge.observation import Observation, Status
from probes.base import Context
from probes.parse import ibdiagnet, p2p_bandwidth

CAPTURES = Path(__file__).parent.parent.parent / "captures"
HERE = Context("x.txt", "n1")


def read(name: str) -> str:
    return (CAPTURES / name).read_text()


def values(found: list[Observation], fact: str) -> dict[str, object]:
    return {o.subject.id: o.value for o in found if o.fact == fact}


def test_the_gpu_that_reaches_nobody_is_named_and_not_its_peers() -> None:
    found = p2p_bandwidth.parse(read("bench/p2p-bandwidth-one-gpu-alone.txt"), HERE)
    assert values(found, "gpu.peer.p2p.short") == {
        "0000:07:00.0": 0,
        "0000:0f:00.0": 0,
        "0000:47:00.0": 2,
        "0000:4e:00.0": 0,
    }
    assert values(found, "benchmark.d2d.median")["0000:47:00.0"] == 16.3


def test_rows_that_are_not_there_are_missing() -> None:
    text = read("bench/p2p-bandwidth-healthy.txt")
    found = p2p_bandwidth.parse(text[: text.index("Unidirectional P2P=Enabled")], HERE)
    assert [o.status for o in found if o.fact == "benchmark.d2d.median"] == [Status.FAILED] * 4


def test_a_port_is_named_once_with_its_other_end() -> None:
    found = ibdiagnet.parse(read("network/ibdiagnet-slow-link.txt"), HERE)
    faults = [o for o in found if o.fact == "fabric_port_fault"]
    assert {o.subject.id for o in faults} == {"Sleaf2/U1/P11"}
    assert [o.value.get("peer") for o in faults] == ["rack2-gpu07/mlx5_2/P1", None]  # type: ignore[union-attr]
    assert values(found, "fabric.check.errors") == {"x.txt": 2}


def test_a_check_without_its_table_of_stages_is_cut() -> None:
    text = read("network/ibdiagnet-healthy.txt")
    found = ibdiagnet.parse(text[: text.index("Summary")], HERE)
    assert [o.status for o in found if o.fact == "fabric.check.errors"] == [Status.FAILED]
