"""What schedulers say of nodes: ``sinfo``, slurmctld's log and ``kubectl describe node``."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from probes.base import Context, DocumentFormat, lines_of
from probes.parse import kernel_log, kubectl_node, sinfo_nodes, sinfo_reasons
from tests.cases import each
from tests.probes.parse.smi_case import capture

SINFO = capture("slurm/sinfo-reasons.txt")
DESCRIBED = capture("other/kubectl-node.txt")


def values(form: DocumentFormat, text: str) -> dict[tuple[str, str], object]:
    return {(o.subject.id, o.fact): o.value for o in form.parse(text, Context("x"))}


def test_each_node_of_a_list_has_its_reason() -> None:
    got = values(sinfo_reasons.FORMAT, SINFO)
    held = {name for name, fact in got if fact == "node.slurm.held"}
    assert held == {"gpu017", "gpu022", "gpu023", "gpu024", "gpu031", "login-1"}
    assert got["gpu023", "node.slurm.reason"] == "gres/gpu count repor"
    assert got["login-1", "node.slurm.reason"] == "NVRM Xid 79 GPU5"


def test_gpus_that_the_kubelet_withholds() -> None:
    got = values(kubectl_node.FORMAT, DESCRIBED)
    assert got == {
        ("gpu-pool-7xk2", "node.kubernetes.ready"): False,
        ("gpu-pool-7xk2", "node.kubernetes.pressure"): (),
        ("gpu-pool-7xk2", "node.kubernetes.gpus"): 8,
        ("gpu-pool-7xk2", "node.kubernetes.gpus.allocatable"): 6,
        ("gpu-pool-7xk2", "node.kubernetes.gpus.withheld"): 2,
    }


STATES = capture("slurm/sinfo.txt")
LONG = """\
Tue Mar 10 03:10:01 2026
NODELIST   NODES PARTITION       STATE CPUS    S:C:T MEMORY TMP_DISK WEIGHT AVAIL_FE REASON
gpu001         1      gpu*   allocated 192    2:48:2 206300        0      1     h100 none
gpu009         1      gpu*    draining 192    2:48:2 206300        0      1     h100 Kill task failed
"""


def test_states_of_nodes_say_which_are_held_and_why() -> None:
    got = values(sinfo_nodes.FORMAT, STATES)
    assert {name for (name, fact), held in got.items() if fact == "node.slurm.held" and held} == {"gpu017", "gpu003"}
    assert got["gpu017", "node.slurm.reason"] == "drain, does not answer"
    assert values(sinfo_nodes.FORMAT, LONG)["gpu009", "node.slurm.reason"] == "Kill task failed"
    assert not values(sinfo_nodes.FORMAT, LONG)["gpu001", "node.slurm.held"]


LINES: list[tuple[str, dict[str, str]]] = [
    ("error: Nodes n[1-2] not responding", {"n1": "not responding", "n2": "not responding"}),
    ("error: Nodes n1 not responding, setting DOWN", {"n1": "not responding, set to DOWN"}),
    (
        "error: Nodes n[1-2] not responding\nNode n1 now responding\nnode n1 returned to service",
        {"n2": "not responding"},
    ),
    ("error: Setting node n1 state to DOWN with reason:Not responding", {"n1": "Not responding"}),
    (
        "error: _slurm_rpc_node_registration node=n1: Low RealMemory (reported:15 < 100.00% of configured:20)\n"
        "drain_nodes: node n1 state set to DRAIN",
        {"n1": "Low RealMemory (reported:15 < 100.00% of configured:20)"},
    ),
]


@each(("log", "held"), LINES)
def test_the_last_line_about_a_node_tells_whether_slurm_gives_it_work(log: str, held: dict[str, str]) -> None:
    lines = [f"[2026-03-10T06:11:{i:02}.331] {text}" for i, text in enumerate(log.splitlines())]
    got = kernel_log.parse(lines_of("\n".join(lines)), Context("x"))
    assert {o.subject.id: o.value for o in got if o.fact == "node.slurm.reason"} == held
    assert {o.subject.id for o in got if o.fact == "node.slurm.held" and o.value} == set(held)
    assert not [o for o in got if o.fact == "log.driver.errors_not_read"]


def test_the_kubelet_says_what_is_short_and_gpus_cut_up_are_not_none() -> None:
    text = "Name: n1\nConditions:\n  DiskPressure   True  x\n  PIDPressure  False  x\nCapacity:\n  nvidia.com/gpu: 0\n{}Allocatable:\n"
    got = values(kubectl_node.FORMAT, text.format(""))
    assert got["n1", "node.kubernetes.pressure"] == ("disk",)
    assert got["n1", "node.kubernetes.gpus"] == 0
    cut_up = values(kubectl_node.FORMAT, text.format("  nvidia.com/mig-1g.10gb: 7\n"))
    assert ("n1", "node.kubernetes.gpus") not in cut_up


@each(("form", "text"), [(sinfo_reasons.FORMAT, SINFO), (kubectl_node.FORMAT, DESCRIBED)])
def test_it_knows_its_own_and_is_quiet_about_others(form: DocumentFormat, text: str) -> None:
    other = DESCRIBED if text == SINFO else SINFO
    assert form.sniff(text) >= 90
    assert not form.sniff(other)
    assert form.parse(other, Context("x")) == []
    assert not form.sniff("the node has 8 GPUs\n")


@given(st.text(st.sampled_from("gpu01[],-9 "), max_size=60))
def test_a_list_of_nodes_is_bounded_and_never_fails(listed: str) -> None:
    assert len(sinfo_reasons.nodes(listed)) <= 2000
