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
