"""Lists of RDMA ports by ibv_devinfo, rdma link and ibdev2netdev: what is down is down in each of them; a cut is told."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from knowledge.observation import Status
from probes.parse.rdma_ports import FORMAT
from tests.cases import each
from tests.probes.parse.smi_case import CONTEXT, capture, check_cut

NAMES = ("network/ibv_devinfo.txt", "network/rdma-link.txt", "network/ibdev2netdev.txt")


@each("name", NAMES)
def test_the_port_that_is_not_active_is_named(name: str) -> None:
    text = capture(name)
    assert FORMAT.sniff(text) == 94
    states = {o.subject.id: o.value for o in FORMAT.parse(text, CONTEXT) if o.fact == "port.state"}
    assert states.pop("mlx5_1/1") == ("init" if "devinfo" in name else "down")
    assert set(states.values()) == {"active"}


def test_a_listing_that_ends_within_a_port_counts_nothing() -> None:
    text = capture(NAMES[0])
    found = FORMAT.parse(text[: text.rindex("state:")], CONTEXT)
    assert {o.status for o in found if o.fact == "node.ib.ports.total"} == {Status.FAILED}


def test_recognition() -> None:
    for other in ("hca_id:\tmlx5_0\n", "CA 'mlx5_0'\n", "1: lo: <LOOPBACK> state DOWN\n", "link mlx5_0/1\n", ""):
        assert FORMAT.sniff(other) == 0


@given(st.sampled_from(NAMES), st.integers(0, 900))
def test_cut_anywhere(name: str, at: int) -> None:
    check_cut(FORMAT, name, at)
