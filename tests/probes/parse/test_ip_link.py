"""Stories of network interfaces."""

from __future__ import annotations

from pathlib import Path

import pytest

from knowledge.observation import Observation, Status
from probes.base import Context
from probes.parse import ip_link

CAPTURES = Path(__file__).parents[2] / "captures" / "network"


def told(found: list[Observation]) -> dict[tuple[str, str], object]:
    return {(o.subject.id, o.fact): o.value for o in found}


@pytest.mark.parametrize(
    ("name", "total", "down"), [("ip-link.json", 3, ("ibp59s0", "ibp80s0")), ("ip-link.txt", 2, ("ibp59s0",))]
)
def test_interfaces_that_are_up_and_down(name: str, total: int, down: tuple[str, ...]) -> None:
    facts = told(ip_link.parse((CAPTURES / name).read_text(), Context()))
    assert (facts["", "node.ib.interfaces.total"], facts["", "node.ib.interfaces.up"]) == (total, 1)
    assert facts["", "node.ib.interfaces.down_names"] == down
    assert (facts["ibp24s0", "nic.carrier"], facts["ibp59s0", "nic.carrier"]) == (True, False)
    assert (facts["ibp59s0", "nic.operstate"], facts["ibp24s0", "nic.link_type"]) == ("down", "infiniband")


def test_of_an_interface_that_is_switched_off_the_carrier_is_not_known() -> None:
    facts = told(ip_link.parse((CAPTURES / "ip-link.json").read_text(), Context()))
    assert ("ibp80s0", "nic.carrier") not in facts


def test_counters_are_read_where_they_are() -> None:
    facts = told(ip_link.parse((CAPTURES / "ip-link.json").read_text(), Context()))
    assert (facts["eno1", "nic.rx.errors"], facts["eno1", "nic.tx.dropped"]) == (2, 2)


def test_text_that_is_cut_is_a_failure_and_no_silence() -> None:
    [found] = ip_link.parse((CAPTURES / "ip-link.json").read_text()[:500], Context())
    assert (found.fact, found.status) == ("node.ib.interfaces.total", Status.FAILED)
    assert found.detail


def test_a_list_of_anything_else_is_not_recognised() -> None:
    assert ip_link.sniff('[{"name": "x"}]') == 0
    assert ip_link.sniff("1: a list\n2: of things\n") == 0


ONE = (
    "4: ens1f0np0: <NO-CARRIER,BROADCAST,MULTICAST,UP> mtu 9000 qdisc mq state DOWN mode DEFAULT group default qlen 1000\n"
    "    link/ether a0:88:c2:9b:1a:2c brd ff:ff:ff:ff:ff:ff\n    RX: bytes  packets  errors  dropped missed  mcast   \n"
    "    912831233  8123312  812     1233    0       12     \n    TX: bytes  packets  errors  dropped carrier collsns \n"
    "    812312331  7123312  0       0       3       0       \n"
)


def test_the_one_interface_that_was_asked_about_and_its_counters() -> None:
    found = {o.fact: o.value for o in ip_link.parse(ONE, Context("-", "n1"))}
    assert found["nic.link.detected"] is False
    told = [found[f"nic.{name}"] for name in ("rx.errors", "rx.dropped", "tx.errors", "tx.carrier_errors")]
    assert told == [812, 1233, 0, 3]
    others = ONE.replace("ens1f0np0", "docker0"), ONE + ONE.replace("ens1f0np0", "ens1f1np1").replace("4:", "5:")
    assert all(o.fact != "nic.link.detected" for text in others for o in ip_link.parse(text, Context("-", "n1")))
