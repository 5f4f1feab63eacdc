"""Stories of ibstatus."""

from __future__ import annotations

from pathlib import Path

from knowledge.observation import Status
from probes.base import Context
from probes.parse import ibstatus

CAPTURES = Path(__file__).parents[2] / "captures" / "network"


def test_a_port_that_waits_for_the_subnet_manager() -> None:
    found = ibstatus.parse((CAPTURES / "ibstatus.one-init.txt").read_text(), Context("ibstatus"))
    told = {(o.subject.id, o.fact): o.value for o in found}
    assert (told["mlx5_7/1", "port.state"], told["mlx5_7/1", "port.phys_state"]) == ("init", "linkup")
    assert (told["mlx5_8/1", "port.state"], told["mlx5_8/1", "port.link_layer"]) == ("down", "ethernet")
    assert (told["mlx5_0/1", "port.rate"], told["mlx5_0/1", "port.lid"]) == (400.0, 1)
    assert (told["", "node.ib.rails_down"], told["", "node.ib.others_down"]) == (1, 1)


def test_numbers_speak_where_words_are_unknown() -> None:
    text = "Infiniband device 'mlx5_0' port 1 status:\n\tstate:\t\t 4: AKTIV\n\tphys state:\t 9: ?\n\trate:\t\t fast\n"
    told = {o.fact: o for o in ibstatus.parse(text, Context())}
    assert told["port.state"].value == "active"
    assert (told["port.phys_state"].status, told["port.rate"].status) == (Status.FAILED, Status.FAILED)


def test_an_error_ends_the_counting() -> None:
    text = (CAPTURES / "ibstatus.one-init.txt").read_text() + "Fatal error: device 'mlx5_9': sys files not found\n"
    found = [o for o in ibstatus.parse(text, Context()) if o.fact == "node.ib.rails_down"]
    assert [o.status for o in found] == [Status.FAILED]


def test_a_port_on_one_lane_is_slow_whatever_its_siblings_are() -> None:
    def port(name: str, rate: str, layer: str) -> str:
        return f"Infiniband device '{name}' port 1 status:\n\tstate:\t\t 4: ACTIVE\n\trate:\t\t {rate}\n\tlink_layer:\t {layer}\n\n"

    def slow(text: str) -> list[object]:
        return [o.value for o in ibstatus.parse(text, Context()) if o.fact == "node.ib.rails.slow_ports"]

    narrow, full = (
        port(name, rate, "InfiniBand") for name, rate in (("a", "100 Gb/sec (1X NDR)"), ("b", "400 Gb/sec (4X NDR)"))
    )
    assert slow(narrow + full) == slow(narrow) == [("a/1",)]
    assert slow(full) == slow(port("a", "25 Gb/sec (1X EDR)", "Ethernet")) == [()], "25GbE is one lane"
    assert slow(
        full + port("c", "200 Gb/sec (2X NDR)", "InfiniBand") + port("d", "200 Gb/sec (2X NDR)", "InfiniBand")
    ) == [()]
