"""What schedulers say of nodes: ``sinfo -R`` and ``kubectl describe node``."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from probes.base import Context, DocumentFormat
from probes.parse import kubectl_node, sinfo_reasons
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
        ("gpu-pool-7xk2", "node.kubernetes.gpus"): 8,
        ("gpu-pool-7xk2", "node.kubernetes.gpus.allocatable"): 6,
        ("gpu-pool-7xk2", "node.kubernetes.gpus.withheld"): 2,
    }


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
