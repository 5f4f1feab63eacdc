"""Flow control, counters and bonds of interfaces: from the collector's document, from ``ethtool -S`` and from ``mlnx_qos``."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from knowledge.observation import Observation, Scope, Status, Subject, node
from probes.base import Context
from probes.parse import ethtool_stats, mlnx_qos
from probes.parse.interfaces_snapshot import FORMAT
from tests.cases import each
from tests.probes.parse.smi_case import CAPTURES, CONTEXT, all_of, parse, status, value
from tests.probes.parse.vocabulary_check import assert_in_vocabulary

HERE = node("n7")
SECOND = 10**9
# A ConnectX-7 port in health, as the driver of Linux 6.8 names its counters.
CALM = {
    "rx_pause_ctrl_phy": 900, "tx_pause_ctrl_phy": 3, "rx_prio3_pause": 900, "rx_prio3_pause_duration": 5000,
    "tx_prio3_pause_duration": 10, "rx_discards_phy": 0, "rx_out_of_buffer": 4, "tx_pause_storm_error_events": 0,
    "tx_pause_storm_warning_events": 0, "outbound_pci_stalled_wr": 1, "outbound_pci_stalled_rd": 0, "module_high_temp": 0,
}  # fmt: skip


def port(later: dict[str, int] | None = None, **more: Any) -> dict[str, Any]:
    """One RoCE interface; `later` are the counters that moved."""
    readings = [
        {"at_ns": 0, "monotonic_ns": 100 * SECOND + at, "counters": {**CALM, **(later or {} if at else {})}}
        for at in (0, SECOND // 2)
    ]
    plain: dict[str, Any] = {
        "operstate": "up", "carrier": "1", "type": "1", "mtu": "4200", "speed": "400000", "driver": "mlx5_core", "model": "0x1021",
        "rdma": ["mlx5_2"], "pause": {"autoneg": False, "rx": False, "tx": False}, "fec": {"active": 8, "configured": 2},
        "dcb": {"pfc_capable": 8, "pfc": 8, "apps": [[5, 3, 26]]}, "readings": readings,
    }  # fmt: skip
    return plain | more


def document(interfaces: dict[str, Any] | None = None, **more: Any) -> str:
    plain = {
        "schema": "gpudiag/interfaces/1", "at_ns": 1795245330 * SECOND, "monotonic_ns": 100 * SECOND, "host": "n7",
        "listing": {"count": 1}, "bonds": {}, "interfaces": interfaces or {},
    }  # fmt: skip
    return json.dumps(plain | more, indent=1)


def read(text: str) -> list[Observation]:
    got = FORMAT.parse(text, Context("x"))
    assert_in_vocabulary(got, FORMAT)
    return got


def rails(count: int = 8, **odd: Any) -> list[Observation]:
    """`count` ports, the last of which is set otherwise."""
    ports = {f"eth{i}": port() for i in range(count - 1)}
    return read(document(ports | {f"eth{count - 1}": port(**odd)}))


def test_it_is_known_by_its_schema_alone() -> None:
    assert FORMAT.sniff(document()) == 100
    for other in ("", "{}", document().replace("interfaces/1", "services/1"), f"seen in a log: {document()}"):
        assert FORMAT.sniff(other) == 0


def test_the_settings_of_a_port() -> None:
    got = read(
        document(
            {"eth2": port(traffic_class="Global tclass=106", ecn_np={"3": "1", "4": "0"}, ecn_rp={"3": "1", "4": "1"})}
        )
    )
    facts = {o.fact: o.value for o in got if o.subject == Subject(Scope.NIC, "eth2", HERE)}
    assert facts["nic.pfc.priorities"] == ("3",)
    assert facts["nic.ecn.priorities"] == ("3",)
    assert [facts[f"nic.{n}"] for n in ("trust", "fec", "driver", "mtu", "rdma", "traffic_class")] == [
        "dscp", "rs", "mlx5_core", 4200, "mlx5_2", 106,
    ]  # fmt: skip
    assert facts["nic.flow_control.rx"] is False


@each(
    ("more", "expected"),
    [
        ({"dcb": {"pfc": 0, "apps": []}}, "pcp"),
        ({"dcb": {"pfc": 0, "apps": [[1, 3, 0x8906]]}}, "pcp"),
        ({"dcb": {"pfc": 0, "trusted": [5]}, "driver": "ice"}, "dscp"),
        ({"dcb": {"pfc": 0, "trusted": [5, 255]}, "driver": "ice"}, "both"),
        ({"dcb": {"pfc": 0}, "driver": "ice"}, Status.UNSUPPORTED),
        ({"dcb": {"error": "ENOTSUP: Operation not supported"}}, Status.UNSUPPORTED),
        ({"trust": "pcp"}, "pcp"),
    ],
)
def test_which_mark_is_trusted(more: dict[str, Any], expected: object) -> None:
    got = read(document({"eth2": port(**more)}))
    found = (
        value(got, "nic.trust")
        if isinstance(expected, str) and not isinstance(expected, Status)
        else status(got, "nic.trust")
    )
    assert found == expected


@pytest.mark.parametrize(
    ("more", "priority", "protected"),
    [
        ({"traffic_class": "Global tclass=104"}, 3, True),  # DSCP 26, which the table maps
        ({"traffic_class": "Global tclass=236"}, 7, False),  # DSCP 59: eight values a priority, as mlx5 begins
        ({"traffic_class": "Global tclass=236", "dcb": {"pfc": 32, "apps": [[5, 5, 59]]}}, 5, True),
    ],
)
def test_where_a_forced_class_travels(more: dict[str, Any], priority: int, protected: bool) -> None:
    got = read(document({"eth2": port(**more)}))
    assert (value(got, "nic.roce.priority"), value(got, "nic.roce.protected")) == (priority, protected)


@each(
    "more",
    [
        {},
        {"traffic_class": "Global tclass=0"},
        {"traffic_class": "Global tclass=236", "trust": "pcp"},
        {"traffic_class": "Global tclass=236", "dcb": {"error": "ENOTSUP: x"}},
        {
            "traffic_class": "Global tclass=236",
            "driver": "bnxt_en",
            "dcb": {"pfc": 8, "trusted": [5], "apps": [[5, 3, 26]]},
        },
    ],
)
def test_where_nothing_is_forced_or_known_nothing_is_told(more: dict[str, Any]) -> None:
    assert all(
        o.status is Status.NOT_APPLICABLE for o in all_of(read(document({"eth2": port(**more)})), "nic.roce.protected")
    )


def test_counters_are_told_at_both_readings_and_shares_once() -> None:
    moved = {"rx_prio3_pause_duration": 205000, "tx_prio3_pause_duration": 510, "tx_pause_storm_error_events": 1}
    got = read(document({"eth2": port(moved)}))
    assert [o.value for o in all_of(got, "nic.pause.storm.errors")] == [0, 1]
    first, second = (o.at for o in all_of(got, "nic.pause.storm.errors"))
    assert second is not None
    assert first is not None
    assert second - first == SECOND // 2
    assert value(got, "nic.pause.rx.share") == 40.0  # 200 ms of 500
    assert value(got, "nic.pause.tx.share") == 0.1
    assert value(got, "nic.pcie.stalled.write") == 1.0


def test_a_counter_that_began_again_gives_no_share() -> None:
    assert status(read(document({"eth2": port({"rx_prio3_pause_duration": 1})})), "nic.pause.rx.share") is Status.FAILED


def test_other_drivers_count_under_other_names() -> None:
    assert_in_vocabulary(
        bnxt := parse(ethtool_stats.FORMAT, "network/ethtool-S.healthy-bnxt.txt"), ethtool_stats.FORMAT
    )
    assert [value(bnxt, f"nic.{n}") for n in ("pause.rx", "pause.tx", "rx.buffer_discards", "link.downs")] == [
        311,
        7,
        0,
        1,
    ]
    ice = "NIC statistics:\n     rx_priority_3_xoff.nic: 8\n     link_xoff_rx.nic: 2\n     tx_priority_3_xoff.nic: 1\n"
    got = ethtool_stats.FORMAT.parse(ice, Context("ethtool -S ens2"))
    assert [o.value for o in all_of(got, "nic.pause.rx", "ens2")] == [10]


@pytest.mark.parametrize("name", ["healthy-mlx5", "storm"])
def test_the_text_of_ethtool(name: str) -> None:
    got = parse(ethtool_stats.FORMAT, f"network/ethtool-S.{name}.txt")
    assert value(got, "nic.pause.storm.errors", "eth2") == (2 if name == "storm" else 0)
    lines = (CAPTURES / f"network/ethtool-S.{name}.txt").read_text().splitlines()
    for o in got:
        if o.source.line:
            assert lines[o.source.line - 1].split(":")[0].strip() == o.excerpt.split(":")[0]


def test_an_interface_without_rdma_tells_what_it_has() -> None:
    got = read(document({"eno1": port(rdma=[], readings=[{"monotonic_ns": 1, "counters": {"tx_timeouts": 0}}])}))
    assert status(got, "nic.pause.rx") is Status.UNSUPPORTED
    assert not all_of(got, "nic.pcie.stalled.read")
    assert value(got, "node.roce.interfaces") == ()


def test_infiniband_has_no_flow_control_of_ethernet() -> None:
    got = read(document({"ib0": port(type="32")}))
    facts = ("flow_control.rx", "flow_control.tx", "pfc.priorities", "trust", "fec", "ecn.priorities")
    assert {status(got, f"nic.{fact}") for fact in facts} == {Status.NOT_APPLICABLE}
    assert (value(got, "nic.roce"), value(got, "node.roce.interfaces")) == (False, ())
    assert value(read(document({"eth2": port()})), "nic.roce") is True


@pytest.mark.parametrize(
    ("more", "fact"),
    [
        ({"mtu": "1500"}, "node.roce.mtu.differing"),
        ({"dcb": {"pfc": 0, "apps": [[5, 3, 26]]}}, "node.roce.pfc.differing"),
        ({"dcb": {"pfc": 8, "apps": []}}, "node.roce.trust.differing"),
    ],
)
def test_the_odd_one_out_is_named(more: dict[str, Any], fact: str) -> None:
    got = rails(**more)
    assert value(got, fact) == ("eth7",)
    assert all(value(got, f"node.roce.{n}.differing") == () for n in ("mtu", "pfc", "trust") if n not in fact)


def test_interfaces_of_another_kind_or_few_are_not_compared() -> None:
    others: list[dict[str, Any]] = [
        {"speed": "25000"}, {"model": "0x101d"}, {"operstate": "down"}, {"rdma": []}, {"physfn": "0000:18:00.0"},
    ]  # fmt: skip
    for more in others:
        assert value(rails(mtu="1500", **more), "node.roce.mtu.differing") == ()
    assert status(rails(3, mtu="1500"), "node.roce.mtu.differing") is Status.NOT_APPLICABLE


def test_halves_that_differ_are_no_odd_ones() -> None:
    halves = {f"eth{i}": port(mtu="1500" if i % 2 else "9000") for i in range(8)}
    assert value(read(document(halves)), "node.roce.mtu.differing") == ()


LACP = """Bonding Mode: IEEE 802.3ad Dynamic link aggregation
MII Status: up

802.3ad info
Active Aggregator Info:
\tAggregator ID: 1
\tNumber of ports: 2
\tPartner Mac Address: set

Slave Interface: eth2
MII Status: up
Speed: 100000 Mbps
Aggregator ID: 1
details partner lacp pdu:
    system mac address: set

Slave Interface: eth3
MII Status: up
Speed: 100000 Mbps
Aggregator ID: 1"""


@each(
    ("text", "down", "outside", "slow", "partner"),
    [
        (LACP, (), (), (), True),
        (LACP[::-1].replace("pu :sutatS IIM", "nwod :sutatS IIM", 1)[::-1], ("eth3",), (), (), True),
        (LACP[::-1].replace("1 :DI rotagerggA", "2 :DI rotagerggA", 1)[::-1], (), ("eth3",), (), True),
        (LACP[::-1].replace("000001 :deepS", "00052 :deepS", 1)[::-1], (), (), ("eth3",), True),
        (LACP.replace("Address: set", "Address: unset"), (), (), (), False),
    ],
)
def test_a_bond(
    text: str, down: tuple[str, ...], outside: tuple[str, ...], slow: tuple[str, ...], partner: bool
) -> None:
    got = read(document(bonds={"bond0": text.splitlines()}))
    names = ("members", "members.down", "members.outside", "members.slow", "partner")
    assert [value(got, f"bond.{n}") for n in names] == [2, down, outside, slow, partner]
    assert {o.subject.id for o in all_of(got, "nic.member_of")} == {"eth2", "eth3"}


def test_a_bond_for_standby_has_no_aggregate() -> None:
    text = "Bonding Mode: fault-tolerance (active-backup)\nMII Status: up\n\nSlave Interface: eno1\nMII Status: up\n\nSlave Interface: eno2\nMII Status: up"
    got = read(document(bonds={"bond0": text.splitlines()}))
    assert (value(got, "bond.members.down"), status(got, "bond.members.outside")) == ((), Status.NOT_APPLICABLE)


def test_what_could_not_be_read_is_told() -> None:
    hung = read(document({"eth2": {"rdma": ["mlx5_2"], "hung": "ethtool -S"}}))
    assert status(hung, "nic.pause.rx") is status(hung, "nic.pfc.priorities") is Status.TIMEOUT
    below = read(
        document({"eth2": port(kernel={"skipped": "below --root only files are read"}, pause=None, readings=None)})
    )
    assert status(below, "nic.pause.rx") is status(below, "nic.flow_control.rx") is Status.NOT_ASKED
    denied = read(document(bonds={"error": "EACCES: Permission denied"}))
    assert status(denied, "bond.members") is Status.DENIED
    assert {o.status for o in read(document(listing={"error": "EACCES: Permission denied"}))} == {Status.DENIED}


def test_mlnx_qos() -> None:
    got = parse(mlnx_qos.FORMAT, "network/mlnx_qos.lossless.txt")
    assert (value(got, "nic.trust", "eth2"), value(got, "nic.pfc.priorities", "eth2")) == ("dscp", ("3",))
    assert mlnx_qos.FORMAT.sniff("Priority trust state: dscp\n") == 0
    cut = mlnx_qos.FORMAT.parse(
        "Priority trust state: pcp\nPFC configuration:\n\tpriority 0 1\n\tenabled 0 1 0\n", CONTEXT
    )
    assert status(cut, "nic.pfc.priorities") is Status.UNSUPPORTED


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from([*port(), "counters", "at_ns", "x", "error"]), inner, max_size=4),
    max_leaves=12,
)  # fmt: skip


@given(interfaces=st.dictionaries(st.text(max_size=6), JSON, max_size=3), bonds=JSON, at=JSON)
def test_no_document_breaks_it(interfaces: dict[str, Any], bonds: Any, at: Any) -> None:
    assert_in_vocabulary(FORMAT.parse(document(interfaces, bonds=bonds, at_ns=at, listing=bonds), Context("x")), FORMAT)


@given(text=st.text(max_size=200))
def test_no_text_breaks_the_others(text: str) -> None:
    for form in (ethtool_stats.FORMAT, mlnx_qos.FORMAT):
        head = (
            "NIC statistics:\n" if form is ethtool_stats.FORMAT else "Priority trust state: dscp\nPFC configuration:\n"
        )
        assert_in_vocabulary(form.parse(head + text, CONTEXT), form)
        assert_in_vocabulary(form.parse(text, CONTEXT), form)
