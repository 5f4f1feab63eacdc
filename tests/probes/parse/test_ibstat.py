"""Stories of RDMA ports: compute rails, other ports, listings that end early."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from knowledge.observation import Observation, Scope, Status, Subject, node
from probes.base import Context
from probes.parse import ibstat

CAPTURES = Path(__file__).parents[2] / "captures" / "network"


def port(
    index: int,
    model: str = "MT4129",
    state: str = "Active",
    rate: str = "400",
    layer: str = "InfiniBand",
    phys: str = "",
) -> str:
    phys = phys or ("LinkUp" if state == "Active" else "Disabled")
    return (
        f"CA 'mlx5_{index}'\n\tCA type: {model}\n\tNumber of ports: 1\n\tPort 1:\n\t\tState: {state}\n"
        f"\t\tPhysical state: {phys}\n\t\tRate: {rate}\n\t\tBase lid: 1\n\t\tLink layer: {layer}\n"
    )


def down(index: int, model: str = "MT4129", layer: str = "InfiniBand") -> str:
    return port(index, model, "Down", "40", layer)


def read(text: str) -> list[Observation]:
    return ibstat.parse(text, Context("ibstat", "gpu-1"))


def told(text: str) -> dict[str, object]:
    return {o.fact: o.value for o in read(text) if o.subject == node("gpu-1") and o.status is Status.OK}


def test_two_of_eight_rails_are_down() -> None:
    facts = told((CAPTURES / "ibstat.rails-down.txt").read_text())
    assert (facts["node.ib.rails_down"], facts["node.ib.rails.expected"], facts["node.ib.rails.active"]) == (2, 8, 6)
    assert facts["node.ib.rails.down_ports"] == ("mlx5_1/1", "mlx5_6/1")
    assert (facts["node.ib.ports.total"], facts["node.ib.ports.active"], facts["node.ib.others_down"]) == (10, 8, 0)


def test_ports_outside_the_rails_are_down() -> None:
    facts = told((CAPTURES / "ibstat.front-down.txt").read_text())
    assert (facts["node.ib.rails_down"], facts["node.ib.others_down"], facts["node.ib.rails.active"]) == (0, 2, 8)


def test_what_is_assumed_is_said() -> None:
    [rails] = [o for o in read((CAPTURES / "ibstat.rails-down.txt").read_text()) if o.fact == "node.ib.rails_down"]
    assert "ConnectX-7" in rails.detail
    assert "mlx5_1/1" in rails.excerpt
    [others] = [o for o in read((CAPTURES / "ibstat.front-down.txt").read_text()) if o.fact == "node.ib.others_down"]
    assert "mlx5_8/1" in others.excerpt


def test_a_listing_that_ends_at_an_error_is_used_up_to_there_and_counts_nothing() -> None:
    found = read((CAPTURES / "ibstat.cut.txt").read_text())
    states = [o for o in found if o.fact == "port.state"]
    assert [o.value for o in states] == ["active"] * 3
    [rails] = [o for o in found if o.fact == "node.ib.rails_down"]
    assert rails.status is Status.FAILED
    assert "Invalid argument" in rails.detail


@pytest.mark.parametrize(
    "lost", ["Link layer: InfiniBand\n", "Rate: 400\n\t\tBase lid: 1\n\t\tLink layer: InfiniBand\n"]
)
def test_a_listing_that_ends_without_an_error_is_noticed(lost: str) -> None:
    text = port(0) + port(1)
    [rails] = [o for o in read(text[: text.rindex(lost)].rstrip("\t")) if o.fact == "node.ib.rails_down"]
    assert rails.status is Status.FAILED


def test_a_disabled_port_of_the_model_that_changed_its_layer_is_still_a_rail() -> None:
    facts = told("".join(port(i) for i in range(6)) + down(6, layer="Ethernet") + down(7, layer="Ethernet"))
    assert (facts["node.ib.rails_down"], facts["node.ib.rails.expected"]) == (2, 8)


def test_a_whole_set_with_more_of_the_same_model_down_is_whole() -> None:
    facts = told("".join(port(i) for i in range(8)) + down(8) + down(9))
    assert (facts["node.ib.rails_down"], facts["node.ib.others_down"]) == (0, 2)


def test_half_of_sixteen_is_half() -> None:
    assert told("".join(port(i) for i in range(8)) + "".join(down(i) for i in range(8, 16)))["node.ib.rails_down"] == 8


def test_one_rail_is_slower_than_its_siblings() -> None:
    facts = told("".join(port(i) for i in range(7)) + port(7, rate="200"))
    assert (facts["node.ib.rails.slow_ports"], facts["node.ib.rails_down"]) == (("mlx5_7/1",), 0)
    assert facts["node.ib.rails.expected"] == 8


def test_a_slow_rail_is_told_beside_one_that_waits_for_the_subnet_manager() -> None:
    waits = port(1, state="Initializing", phys="LinkUp")
    facts = told(port(0) + waits + port(2, rate="200"))
    assert (facts["node.ib.rails.slow_ports"], facts["node.ib.rails_down"]) == (("mlx5_2/1",), 1)


def test_storage_ports_of_the_same_model_at_half_the_rate_are_no_rails() -> None:
    facts = told("".join(port(i) for i in range(8)) + port(8, rate="200") + port(9, rate="200"))
    assert (facts["node.ib.rails.expected"], facts["node.ib.rails.slow_ports"]) == (8, ())


def test_all_rails_down_are_known_by_their_model() -> None:
    facts = told("".join(down(i) for i in range(8)) + port(8, "MT4127", rate="25", layer="Ethernet"))
    assert (facts["node.ib.rails_down"], facts["node.ib.rails.active"], facts["node.ib.rails.rate"]) == (8, 0, 400.0)


def test_nothing_active_of_an_unknown_model_cannot_be_told() -> None:
    [rails] = [o for o in read(down(0, "0xabcd")) if o.fact == "node.ib.rails_down"]
    assert rails.status is Status.FAILED
    assert rails.detail


def test_a_state_that_nobody_knows_is_not_dropped() -> None:
    found = read(port(0, state="Confused", phys="Polling"))
    [state] = [o for o in found if o.fact == "port.state"]
    assert (state.status, "Confused" in state.detail) == (Status.FAILED, True)
    assert state.subject == Subject(Scope.PORT, "mlx5_0/1", node("gpu-1"))


@given(st.integers(0, 8), st.integers(0, 4))
def test_losses_add_up(lost: int, front: int) -> None:
    text = "".join(down(i) if i < lost else port(i) for i in range(8)) + "".join(
        down(8 + i, "MT4127", "Ethernet") for i in range(front)
    )
    facts = told(text)
    assert facts["node.ib.rails_down"] == lost
    assert facts["node.ib.others_down"] == front
    assert facts["node.ib.ports.total"] == 8 + front
    assert facts["node.ib.ports.active"] == 8 - lost


def test_a_list_of_hosts_and_guids() -> None:
    text = "VM_hostname vm-a\n0ff08c4321664e96\nVM_hostname vm-b\n0ff08c43217299f2\n"
    assert ibstat.sniff(text)
    assert [(o.subject.host, o.value) for o in read(text)] == [
        ("vm-a", "0x0ff08c4321664e96"),
        ("vm-b", "0x0ff08c43217299f2"),
    ]
