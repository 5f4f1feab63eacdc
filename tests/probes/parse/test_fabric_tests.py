"""``p2pBandwidthLatencyTest`` and ``ibdiagnet``: who is named, and what a cut output leaves open."""

from __future__ import annotations

from pathlib import Path

from knowledge.observation import Event, Observation, Status
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


def test_the_counters_below_a_port_are_its_own() -> None:
    text = (
        "-I- Fabric Discover finished successfully\n-E- Ports counters value Check finished with errors\n"
        "-E- lid=0x0008 dev=51000 S1/N1/P27\n    Performance Monitor counter   : Value\n    symbol_error_counter    : 65535   (overflow)\n"
        "    port_rcv_errors         : 12\n    link_downed_counter     : 3\n-I- Routing\n    port_xmit_discard : 9\n"
        '-E- n7/mlx5_5/P1 - "symbol_error_counter" increased during the run (difference value=812,difference allowed threshold=1)\n'
    )
    told = [
        (o.subject.id, o.value.get("kind"), o.value.get("counters"))
        for o in ibdiagnet.parse(text, HERE)
        if o.fact == "fabric_port_fault" and isinstance(o.value, Event)
    ]
    assert told == [
        ("S1/N1/P27", "down", "symbol_error_counter 65535 or more, port_rcv_errors 12, link_downed_counter 3"),
        ("n7/mlx5_5/P1", "counter", "symbol_error_counter 812"),
    ]


def test_a_port_of_a_cage_is_named_with_its_switch() -> None:
    text = (
        "-E- lid=0x0070 dev=54002 MF0;ib-leaf-07:MQM9700/U1/13/2\n"
        '    "symbol_error_counter" increased during the run (difference value=412,difference allowed threshold=0)\n'
    )
    assert ibdiagnet.sniff(text)
    found = ibdiagnet.parse(text, HERE)
    assert [o.subject.id for o in found if o.fact == "fabric_port_fault"] == ["ib-leaf-07:MQM9700/U1/13/2"]
