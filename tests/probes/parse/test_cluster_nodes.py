"""What schedulers say of nodes: ``sinfo``, ``sinfo -R``, ``kubectl get nodes`` and ``kubectl describe node``."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from knowledge.observation import Event, Status
from probes import registry
from probes.base import Context, DocumentFormat, lines_of
from probes.parse import (
    kernel_log,
    kubectl_get_nodes,
    kubectl_node,
    kubectl_pods,
    sinfo_nodes,
    sinfo_reasons,
    slurm_controller,
)
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
        ("gpu-pool-7xk2", "kubernetes_condition"): None,
        ("gpu-pool-7xk2", "node.kubernetes.ready"): False,
        ("gpu-pool-7xk2", "node.kubernetes.gpus"): 8,
        ("gpu-pool-7xk2", "node.kubernetes.gpus.allocatable"): 6,
        ("gpu-pool-7xk2", "node.kubernetes.gpus.withheld"): 2,
    }


def test_capacity_and_what_can_be_given_alone() -> None:
    text = "Capacity:\n  cpu:             192\n  nvidia.com/gpu:  8\nAllocatable:\n  cpu:             191\n  nvidia.com/gpu:  6\n"
    assert kubectl_node.FORMAT.sniff(text) == 95
    assert values(kubectl_node.FORMAT, text)["", "node.kubernetes.gpus.withheld"] == 2
    assert not kubectl_node.FORMAT.sniff(text.replace("nvidia.com/gpu", "memory"))


def test_states_that_a_table_of_nodes_shortens() -> None:
    got = values(sinfo_nodes.FORMAT, capture("slurm/sinfo.txt"))
    held = {name for (name, fact), value in got.items() if fact == "node.slurm.held" and value}
    assert held == {"node07", "node11", "node12", "node13"}
    assert {name for (name, fact), value in got.items() if fact == "node.slurm.answers" and not value} == {"node07"}
    assert len({name for name, _ in got}) == 12
    long = values(sinfo_nodes.FORMAT, capture("slurm/sinfo-long.txt"))
    assert long["node07", "node.slurm.reason"] == "fan 4 failed"
    assert not long["node11", "node.slurm.answers"]
    assert ("node01", "node.slurm.reason") not in long


def test_nodes_that_are_not_ready_or_closed() -> None:
    got = values(kubectl_get_nodes.FORMAT, capture("other/kubectl-get-nodes.txt"))
    assert {name for (name, fact), value in got.items() if fact.endswith("ready") and not value} == {
        "pool-a-2",
        "pool-a-3",
    }
    assert {name for (name, fact), value in got.items() if fact.endswith("schedulable") and not value} == {
        "pool-a-3",
        "pool-a-4",
    }


def test_pods_that_fail_and_whose_they_are() -> None:
    def failing(name: str) -> dict[object, tuple[object, object]]:
        found = [o.value for o in kubectl_pods.FORMAT.parse(capture(name), Context("x")) if o.fact == "pod_failing"]
        return {v.get("pod"): (v.get("reason"), v.get("infrastructure")) for v in found if isinstance(v, Event)}

    assert failing("other/kubectl-get-pods.txt") == {
        "gpu-operator/nvidia-driver-daemonset-8kq2x": ("CrashLoopBackOff", True),
        "ml/trainer-2": ("ImagePullBackOff", False),
    }
    assert failing("other/kubectl-describe-pod.txt") == {"monitoring/dcgm-exporter-q7w2z": ("CrashLoopBackOff", True)}


def test_a_condition_that_is_good_when_it_is_true_is_no_trouble() -> None:
    head = "Name:  n1\nTaints:  a.b/bad=x1:NoSchedule\nConditions:\n"
    times = "Wed, 12 Nov 2025 09:02:11 +0000   Mon, 03 Nov 2025 11:00:58 +0000"
    rows = [
        ("DiskPressure", "True"),
        ("NetworkUnavailable", "False"),
        ("AcceleratedHardwareReady", "False"),
        ("EtcdIsVoter", "True"),
        ("Ready", "True"),
    ]
    text = head + "".join(f"  {name}  {status}  {times}   Why{name}   its words\n" for name, status in rows)
    found = kubectl_node.FORMAT.parse(text, Context("x"))
    told = [o.value.fields for o in found if o.fact == "kubernetes_condition" and isinstance(o.value, Event)]
    assert [(f["condition"], f["reason"]) for f in told] == [
        (n, f"Why{n}") for n in ("DiskPressure", "AcceleratedHardwareReady")
    ]
    assert ("n1", "node.kubernetes.taints") in {(o.subject.id, o.fact) for o in found}


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


LINES: list[tuple[str, dict[str, str]]] = [
    ("error: Nodes n[1-2] not responding", {"n1": "not responding", "n2": "not responding"}),
    ("error: Nodes n1 not responding, setting DOWN", {"n1": "not responding, set to DOWN"}),
    (
        "error: Nodes n[1-2] not responding\nNode n1 now responding\nnode n1 returned to service",
        {"n2": "not responding"},
    ),
    ("error: Setting node n1 state to DOWN with reason:Not responding", {"n1": "Not responding"}),
    (
        "error: Node n1 unexpectedly rebooted boot_time=1764397401 last response=1764397001",
        {"n1": "unexpectedly rebooted"},
    ),
    ("Node n1 unexpectedly rebooted boot_time=9 last response=8\nnode n1 returned to service", {}),
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


def test_a_step_that_slurm_ended_is_understood_and_covers_no_other_error() -> None:
    ended = "[2026-03-10T06:11:01.331] [88.0] error: *** STEP 88.0 ON n1 CANCELLED AT 2026-03-10T06:11:01 DUE TO TIME LIMIT ***"
    other = "[2026-03-10T06:11:02.331] error: gres_plugin: device error of another kind"
    got = kernel_log.parse(lines_of(f"{ended}\n{other}"), Context("x"))
    assert [(o.value, o.source.line) for o in got if o.fact == "log.driver.errors_not_read"] == [(1, 2)]


@each(
    ("text", "count"),
    [
        (
            '"Failed to get system container stats" err="failed to get cgroup stats for \\"/system.slice/docker.service\\""',
            [],
        ),
        ('"Error syncing pod, skipping" err="failed to \\"StartContainer\\" with CrashLoopBackOff" pod="ml/t-0"', []),
        ('"Error syncing pod, skipping" err="failed" pod="gpu-operator/nvidia-driver-daemonset-x1"', [1]),
        ('"Failed to initialize device plugin"', [1]),
    ],
)
def test_what_a_kubelet_says_of_each_failing_pod_is_no_error_of_the_node(text: str, count: list[int]) -> None:
    line = f"Nov 29 03:11:01 n7 kubelet[2110]: E1129 03:11:01.120111    2110 x.go:48] {text}"
    got = kernel_log.parse(lines_of(line), Context("x"))
    assert [o.value for o in got if o.fact == "log.driver.errors_not_read"] == count


@each(
    ("writer", "host", "subject"),
    [("", "", "n1"), ("", "login", "n1"), ("n1", "", "n1"), ("n1.cluster", "", "n1.cluster"), ("n10", "", "n1"), ("", "n1.cluster", "n1.cluster")],
)  # fmt: skip
def test_a_step_that_cannot_be_killed_is_of_the_node_that_the_line_names(writer: str, host: str, subject: str) -> None:
    before = f"Mar 10 06:11:01 {writer} slurmstepd[8]: " if writer else "[2026-03-10T06:11:01.331] [88.0] "
    stuck = "error: *** STEP 88.0 STEPD TERMINATED ON n1 AT 2026-03-10T06:11:01 DUE TO JOB NOT ENDING WITH SIGNALS ***"
    got = kernel_log.parse(lines_of(before + stuck), Context("x", host))
    assert {o.subject.id for o in got if o.fact == "slurm_step_unkillable" and o.status is Status.OK} == {subject}


@each(
    ("text", "answers"),
    [("", True), ("$ sinfo -R", True), ("slurm_load_node error: Unable to contact slurm controller", False)],
)
def test_no_node_is_held_where_nothing_but_the_heading_was_printed(text: str, answers: bool) -> None:
    got = sinfo_reasons.parse(f"{text}\nREASON               USER      TIMESTAMP           NODELIST\n", Context("x"))
    assert [(o.fact, o.status) for o in got] == [("node.slurm.held", Status.NONE_SEEN)] * answers


@each(
    "text, silent",
    [
        ("Slurmctld(primary) at slurm01 is DOWN\nSlurmctld(backup) at slurm02 is UP\n", ["slurm01"]),
        ("Slurmctld(primary) at slurm01 is UP\n", []),
        ("$ sinfo\nslurm_load_partitions: Unable to contact slurm controller (connect failure)\n", [""]),
    ],
)
def test_a_controller_that_does_not_answer(text: str, silent: list[str]) -> None:
    assert registry.sniff(text) is slurm_controller.FORMAT
    found = slurm_controller.FORMAT.parse(text, Context("x", "n1"))
    assert [o.value.fields["controller"] for o in found if isinstance(o.value, Event)] == silent
    assert found
