"""Outputs as operators paste them: what each format takes from a sick one, and that a healthy one tells of no trouble."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from knowledge.observation import Event, Observation, Status
from probes import registry
from probes.base import Context, DocumentFormat, lines_of
from probes.parse import (
    amd_smi,
    container_runtime,
    df,
    ethtool_link,
    ethtool_stats,
    free,
    ib_errors,
    iblinkinfo,
    imex_status,
    kubectl_conditions,
    kubectl_events,
    kubectl_pods,
    nvidia_smi_table,
    nvsm_health,
    ps,
    python_traceback,
    rocm_smi,
    slurm_jobs,
    smartctl,
    systemctl_status,
)
from probes.parse._columns import cells
from tests.cases import each
from tests.probes.parse.smi_case import capture


def read(form: DocumentFormat, text: str) -> list[Observation]:
    assert form.sniff(text) >= 90
    return form.parse(text, Context("x"))


def told(form: DocumentFormat, text: str, *facts: str) -> dict[tuple[str, str], object]:
    """Values by subject and fact; of an event its fields."""
    found = {(o.subject.id, o.fact): o.value for o in read(form, text) if o.fact in facts}
    return {key: dict(v.fields) if isinstance(v, Event) else v for key, v in found.items()}


SICK: list[tuple[DocumentFormat, str, dict[tuple[str, str], object]]] = [
    (
        slurm_jobs.FORMAT,
        "slurm/squeue.txt",
        {
            ("node07", "node.slurm.held"): True,
            ("node08", "node.slurm.held"): True,
            ("4711", "slurm_job_waits"): {"job": "4711", "reason": "ReqNodeNotAvail, UnavailableNodes:node[07-08]"},
            ("4713", "slurm_job_waits"): {"job": "4713", "reason": "launch failed requeued held"},
        },
    ),
    (
        rocm_smi.FORMAT,
        "vendor/rocm-smi-table.txt",
        {
            ("amd:card0", "gpu.readings.absent"): False,
            ("amd:card1", "gpu.readings.absent"): False,
            ("amd:card2", "gpu.readings.absent"): True,
            ("amd:card3", "gpu.readings.absent"): False,
        },
    ),
    (
        rocm_smi.FORMAT,
        "vendor/rocm-smi-sections.txt",
        {
            ("amd:card0", "gpu.ras.uncorrected"): 0,
            ("amd:card1", "gpu.ras.uncorrected"): 2,
            ("amd:card1", "gpu.ras.uncorrected.blocks"): ("umc",),
            ("amd:card0", "gpu.ras.uncorrected.blocks"): (),
            ("amd:card1", "gpu.bad_pages.pending"): 1,
            ("amd:card1", "gpu.xgmi.state"): "multiple_errors",
            ("amd:card0", "gpu.xgmi.state"): "ok",
        },
    ),
    (
        amd_smi.FORMAT,
        "vendor/amd-smi-monitor.txt",
        {
            ("amd:0", "gpu.ras.uncorrected"): 0,
            ("amd:1", "gpu.ras.uncorrected"): 3,
            ("amd:0", "gpu.temperature.hotspot"): 44,
            ("amd:1", "gpu.temperature.hotspot"): 45,
        },
    ),
    (
        amd_smi.FORMAT,
        "vendor/amd-smi-metric.txt",
        {
            ("amd:0", "gpu.ras.uncorrected"): 0,
            ("amd:1", "gpu.ras.uncorrected"): 1,
            ("amd:1", "gpu.ras.uncorrected.blocks"): ("umc",),
            ("amd:0", "gpu.clock.graphics"): 132,
        },
    ),
    (
        ib_errors.FORMAT,
        "network/ibqueryerrors.txt",
        {
            ("mlx5_3/1", "port.counters.over"): ("LinkErrorRecoveryCounter 12", "SymbolErrorCounter 1233"),
            ("leaf-3/12", "port.counters.over"): ("SymbolErrorCounter 88121",),
            ("leaf-3/14", "port.counters.over"): (),
        },
    ),
    (
        iblinkinfo.FORMAT,
        "network/iblinkinfo.txt",
        {
            ("mlx5_3/1", "port.link.could_be"): "runs at 1X 106.25 Gbps a lane; could be 4X",
            ("leaf-3/12", "port.link.could_be"): "runs at 1X 106.25 Gbps a lane; could be 4X",
            ("node08", "node.ib.unsorted.down_ports"): ("mlx5_0/1",),
            ("node07", "node.ib.unsorted.down_ports"): (),
        },
    ),
    (
        ethtool_link.FORMAT,
        "network/ethtool.txt",
        {
            ("ens2f0np0", "nic.speed"): 25.0,
            ("ens2f0np0", "nic.speed.best"): 100.0,
            ("ens2f0np0", "nic.link.detected"): True,
            ("ens2f1np1", "nic.link.detected"): False,
            ("ens2f1np1", "nic.link.why"): "No cable",
        },
    ),
    (
        smartctl.FORMAT,
        "drives/smartctl-nvme.txt",
        {
            ("EX0NVME0001", "drive.healthy"): False,
            ("EX0NVME0001", "drive.media_errors"): 1822,
            ("EX0NVME0001", "drive.wear"): 103.0,
        },
    ),
    (
        smartctl.FORMAT,
        "drives/smartctl-sata.txt",
        {
            ("EX0SATA0002", "drive.healthy"): True,
            ("EX0SATA0002", "drive.attributes.failing"): ("Reallocated Sector Ct",),
            ("EX0SATA0002", "drive.sectors.pending"): 8,
        },
    ),
    (
        df.FORMAT,
        "other/df-inodes.txt",
        {
            ("/", "fs.inodes.used.share"): 100.0,
            ("/run", "fs.inodes.used.share"): 1.0,
            ("/scratch", "fs.inodes.used.share"): 1.0,
        },
    ),
    (
        ps.FORMAT,
        "other/ps.txt",
        {
            ("88123", "process.blocked_in"): "nvidia_uvm",
            ("91221", "process.blocked_in"): "nvidia",
            ("88123", "process.state"): "blocked",
            ("88130", "process.state"): "zombie",
            ("91221", "process.state"): "blocked",
            ("1204", "process.state"): "sleeping",
        },
    ),
    (
        imex_status.FORMAT,
        "other/imex-status.txt",
        {("", "node.imex.domain"): "DEGRADED", ("", "node.imex.absent"): ("192.0.2.13 UNAVAILABLE",)},
    ),
    (free.FORMAT, "other/free.txt", {("", "node.memory.available.share"): 0.2, ("", "node.swap.used.share"): 100.0}),
    (
        kubectl_conditions.FORMAT,
        "other/kubectl-conditions.json",
        {
            ("", "node.kubernetes.ready"): False,
            ("", "kubernetes_condition"): {
                "condition": "DiskPressure",
                "reason": "KubeletHasDiskPressure",
                "message": "kubelet has disk pressure",
            },
        },
    ),
    (
        systemctl_status.FORMAT,
        "other/systemctl-status.txt",
        {
            ("nvidia-fabricmanager.service", "service.state"): "failed",
            ("", "node.service.fabric_manager.state"): "failed",
        },
    ),
]


@each(("form", "name", "wanted"), SICK)
def test_a_sick_output_tells_what_and_where(
    form: DocumentFormat, name: str, wanted: dict[tuple[str, str], object]
) -> None:
    assert told(form, capture(name), *{fact for _, fact in wanted}) == wanted


def test_why_slurm_ended_each_job() -> None:
    ends = told(slurm_jobs.FORMAT, capture("slurm/sacct.txt"), "job_terminated")
    assert {job: (v["reason"], v.get("host")) for (job, _), v in ends.items() if isinstance(v, dict)} == {
        "4601": ("node_failure", "node[01-04,07]"),
        "4602": ("oom_killed", "node03"),
        "4603": ("time_limit", "node05"),
    }
    shown = told(slurm_jobs.FORMAT, capture("slurm/scontrol-job.txt"), "job_terminated")
    assert [v["reason"] for v in shown.values() if isinstance(v, dict)] == ["node_failure"]


def _sheared(text: str, change: Callable[[int, str], str]) -> str:
    head, rule, *rows = text.strip("\n").splitlines()
    return "\n".join((head, rule, *(change(n, row) for n, row in enumerate(rows))))


@each(
    "change",
    [
        lambda n, row: row[:12] + " " * (1 + n % 3) + row[12:],
        lambda n, row: row[:13] + row[13 + n % 4 :],
        lambda _, row: " ".join(row.split()),
    ],
)
def test_rows_of_sacct_that_are_not_under_their_heading_tell_the_same(change: Callable[[int, str], str]) -> None:
    whole = told(slurm_jobs.FORMAT, capture("slurm/sacct.txt"), "job_terminated")
    sheared = told(slurm_jobs.FORMAT, _sheared(capture("slurm/sacct.txt"), change), "job_terminated")

    def of(found: dict[tuple[str, str], object]) -> list[object]:
        return [(v["job"], v["reason"], v["host"], v["exitcode"]) for v in found.values() if isinstance(v, dict)]

    assert of(sheared) == of(whole)


def test_states_that_squeue_cuts_are_known() -> None:
    heading = "JOBID PARTITION NAME USER STATE TIME TIME_LIMI NODES NODELIST(REASON)\n"
    rows = [
        f"{n} gpu a b {s} 1:00 2:00 1 node01" for n, s in enumerate(("RUNNING", "COMPLETI", "CONFIGUR", "NODE_FAI"))
    ]
    ends = told(slurm_jobs.FORMAT, heading + "\n".join(rows), "job_terminated")
    assert [v["reason"] for v in ends.values() if isinstance(v, dict)] == ["node_failure"]


def test_a_row_of_sacct_whose_state_is_none_of_slurms_is_not_fine() -> None:
    found = read(slurm_jobs.FORMAT, "JobID|State|ExitCode\n7|COMPLETED|0:0\n8|LOST_TRACK|0:0\n")
    assert {(o.fact, o.status) for o in found} == {(f, Status.FAILED) for f in ("job_terminated", "slurm_job_waits")}


def test_the_youngest_event_of_a_node_counts_and_each_warning_is_told() -> None:
    found = read(kubectl_events.FORMAT, capture("other/kubectl-events.txt"))
    ready = {o.subject.id: o.value for o in found if o.fact == "node.kubernetes.ready"}
    assert ready == {"pool-a-2": True, "pool-a-3": False}
    pods = {(o.subject.id, o.fact) for o in found if o.subject.id.startswith("ml/")}
    assert pods == {("ml/trainer-9", "pod_unplaced"), ("ml/trainer-3", "pod_refused"), ("ml/trainer-1", "pod_failing")}
    rest = [o.value for o in found if o.fact == "kubernetes_warning"]
    assert [v.get("object") for v in rest if isinstance(v, Event)] == ["pod/ml/trainer-5"]


WRAPPED = "Error: failed to create containerd task: exit status 1, stderr: Auto-detected mode as 'legacy'\nnvidia-container-cli: initialization error: nvml error: driver not loaded: unknown\n"
LISTED = (
    "LAST SEEN   TYPE      REASON      OBJECT        MESSAGE\n"
    "9m          Normal    Scheduled   pod/train-0   Successfully assigned ml/train-0 to gpu-w-14\n"
    f"8m          Warning   Failed      pod/train-0   {WRAPPED}"
    "7m          Warning   BackOff     pod/train-0   Back-off restarting failed container\n"
)
DESCRIBED = (
    "Events:\n  Type     Reason     Age   From               Message\n  ----     ------     ----  ----               -------\n"
    "  Normal   Scheduled  9m    default-scheduler  Successfully assigned ml/train-0 to gpu-w-14\n"
    f"  Warning  Failed     8m    kubelet            {WRAPPED}"
    "  Warning  BackOff    7m    kubelet            Back-off restarting failed container\n"
)


@each(("started", "left"), [("1m", []), ("5m", ["FailedMount"]), ("", ["FailedMount"])])
def test_a_warning_that_its_pod_got_over_is_none(started: str, left: list[str]) -> None:
    text = (
        "LAST SEEN   TYPE      REASON        OBJECT     MESSAGE\n"
        "2m          Warning   FailedMount   pod/t-2    MountVolume.SetUp failed\n"
        "1m          Normal    Started       pod/t-3    Started container main\n"
    )
    text += f"{started:11} Normal    Started       pod/t-2    Started container main\n" if started else ""
    found = [o.value.get("reason") for o in read(kubectl_events.FORMAT, text) if isinstance(o.value, Event)]
    assert found == left


@each(("form", "text"), [(kubectl_events.FORMAT, LISTED), (kubectl_pods.FORMAT, DESCRIBED)])
def test_an_event_whose_message_goes_on_is_one_event_of_one_pod(form: DocumentFormat, text: str) -> None:
    found = [o for o in read(form, text) if isinstance(o.value, Event)]
    refused = [(o.subject.host, o.value.get("kind"), o.value.get("pod")) for o in found if isinstance(o.value, Event) and o.fact == "container_gpus_refused"]  # fmt: skip
    assert refused == [("gpu-w-14", "driver", "ml/train-0")]
    assert {(o.subject.id, o.subject.host) for o in found if o.fact == "pod_failing"} == {("ml/train-0", "gpu-w-14")}


def test_an_image_that_is_full_is_read_only() -> None:
    found = told(df.FORMAT, capture("other/df.txt"), "fs.read_only", "fs.used.share", "fs.available")
    assert found["/snap/core20/2318", "fs.read_only"] is True
    assert ("/", "fs.read_only") not in found
    assert (found["/", "fs.used.share"], found["/", "fs.available"]) == (100.0, 0)
    assert found["/scratch", "fs.available"] == round(5.8 * 1024 * 1024)


def test_checks_of_the_vendor_that_failed_with_their_words() -> None:
    found = [o.value for o in read(nvsm_health.FORMAT, capture("other/nvsm-health.txt"))]
    assert [(v.get("check"), v.get("message")) for v in found if isinstance(v, Event)] == [
        ("GPU link width [0000:01:00.0][x16]", ""),
        ("Verify power supply PSU3", "Power supply PSU3 has lost input power"),
    ]


HEALTHY: list[tuple[DocumentFormat, str]] = [
    (
        slurm_jobs.FORMAT,
        "  JOBID PARTITION  NAME  USER ST  TIME  NODES NODELIST(REASON)\n    7  gpu  a  b PD  0:00  2 (Resources)\n",
    ),
    (slurm_jobs.FORMAT, "JobID|State|ExitCode\n7|COMPLETED|0:0\n8|CANCELLED by 1000|0:0\n"),
    (
        kubectl_events.FORMAT,
        "LAST SEEN   TYPE     REASON    OBJECT      MESSAGE\n2m   Normal   Pulled   pod/a   Successfully pulled image\n",
    ),
    (ib_errors.FORMAT, "## Summary: 41 nodes checked, 0 bad nodes found\n"),
    (
        nvsm_health.FORMAT,
        "Verify PSU1........ Healthy\n1 out of 1 checks are healthy\nOverall system status is healthy\n",
    ),
]


@each(("form", "text"), HEALTHY)
def test_of_a_healthy_list_it_is_said_that_nothing_was_seen(form: DocumentFormat, text: str) -> None:
    found = read(form, text)
    assert {o.status for o in found} == {Status.NONE_SEEN}


@each(
    ("form", "name", "end"),
    [
        (rocm_smi.FORMAT, "vendor/rocm-smi-table.txt", "==== End"),
        (imex_status.FORMAT, "other/imex-status.txt", "Domain State"),
        (nvsm_health.FORMAT, "other/nvsm-health.txt", "Verify installed"),
    ],
)
def test_a_text_that_lacks_its_end_says_so(form: DocumentFormat, name: str, end: str) -> None:
    text = capture(name)
    cut = text[: text.index(end)] + ("Verify a............ Healthy\n" * 3 if form is nvsm_health.FORMAT else "")
    assert [o for o in read(form, cut) if o.status is Status.FAILED and "ends early" in o.detail]


def test_a_filter_that_took_the_heading_away_leaves_the_command() -> None:
    text = "$ ps -eo pid,stat,wchan:32,cmd | awk '$2 ~ /D/'\n 4711 D    os_acquire_rwlock_write   nvidia-smi -q -x\n"
    assert told(ps.FORMAT, text, "process.blocked_in") == {("4711", "process.blocked_in"): "nvidia"}
    counted = "$ ethtool -S ens2np0 | grep phy\n     rx_crc_errors_phy: 1882301\n"
    assert told(ethtool_stats.FORMAT, counted, "nic.counters.over") == {
        ("ens2np0", "nic.counters.over"): ("rx_crc_errors_phy 1882301",)
    }


def test_a_whole_list_of_nodes_keeps_them_apart() -> None:
    ready = {"type": "Ready", "status": "True", "reason": "KubeletReady", "message": "kubelet is posting ready status"}
    lost = {
        "type": "Ready",
        "status": "Unknown",
        "reason": "NodeStatusUnknown",
        "message": "Kubelet stopped posting node status.",
    }
    nodes = [
        {"metadata": {"name": name}, "spec": {"unschedulable": name == "b"}, "status": {"conditions": [one]}}
        for name, one in (("a", ready), ("b", lost))
    ]
    got = told(
        kubectl_conditions.FORMAT,
        json.dumps({"kind": "List", "items": nodes}),
        "node.kubernetes.ready",
        "node.kubernetes.schedulable",
    )
    assert got == {
        ("a", "node.kubernetes.ready"): True,
        ("a", "node.kubernetes.schedulable"): True,
        ("b", "node.kubernetes.ready"): False,
        ("b", "node.kubernetes.schedulable"): False,
    }


def test_why_a_container_ended_stands_above_that_it_is_tried_again() -> None:
    text = (
        "Name:  t-0\nNamespace:  ml\nNode:  n1/10.0.0.2\nContainers:\n  t:\n    State:          Waiting\n      Reason:       CrashLoopBackOff\n"
        "    Last State:     Terminated\n      Reason:       OOMKilled\n      Exit Code:    137\n"
    )
    got = told(kubectl_pods.FORMAT, text, "pod_failing")["ml/t-0", "pod_failing"]
    assert isinstance(got, dict)
    assert (got["reason"], got["exitcode"]) == ("OOMKilled", 137)


def test_what_refused_a_container_its_gpus() -> None:
    said = {
        'could not select device driver "nvidia" with capabilities: [[gpu]]': "unconfigured",
        'failed to get sandbox runtime: no runtime for "nvidia" is configured': "unconfigured",
        "nvidia-container-cli: initialization error: nvml error: driver not loaded: unknown": "driver",
        "nvidia-container-cli: requirement error: unsatisfied condition: cuda>=12.4, please update your driver": "requirement",
        "nvidia-container-cli: device error: 7: unknown device: unknown": "device",
        "CDI device injection failed: unresolvable CDI devices nvidia.com/gpu=all": "cdi",
    }
    for text, kind in said.items():
        for line in (
            f"docker: Error response from daemon: {text}.",
            "Nov 12 22:11:40 n1 containerd[9]: level=error error=" + json.dumps(text),
        ):
            (event,) = (o.value for o in container_runtime.parse(lines_of(line), Context("x")))
            assert isinstance(event, Event)
            assert event.get("kind") == kind
            assert "\\" not in str(event.get("message"))
    assert container_runtime.parse(lines_of("nvidia-container-toolkit is installed"), Context("x")) == []


def test_a_log_of_training_is_one_whatever_it_prints_between() -> None:
    text = capture("app/training-loss.txt")
    assert python_traceback.FORMAT.sniff(text)
    found = python_traceback.parse(lines_of(text), Context("x"))
    assert [o.value.get("kind") for o in found if o.fact == "python_error" and isinstance(o.value, Event)] == [
        "nan_loss"
    ]
    healthy = "\n".join(text.splitlines()[:2])
    assert python_traceback.FORMAT.sniff(healthy)
    assert not [o for o in python_traceback.parse(lines_of(healthy), Context("x")) if o.status is Status.OK]


@pytest.mark.parametrize("text", ["a b c", "a b c d e f", "a", ""])
def test_what_is_too_much_in_a_row_belongs_to_the_loose_column(text: str) -> None:
    row = cells(text, ["A", "B", "C"], "B")
    words = text.split()
    wanted = {"A": words[0], "B": " ".join(words[1:-1]), "C": words[-1]} if len(words) >= 3 else {}
    assert row == wanted


def test_an_event_that_quotes_a_tool_is_an_event_and_names_its_namespace() -> None:
    text = (
        "LAST SEEN   TYPE      REASON      OBJECT                          MESSAGE\n"
        "2m11s       Warning   BackOff     pod/nvidia-driver-daemonset-k2   Back-off restarting failed container c in pod nvidia-driver-daemonset-k2_gpu-operator(88f1)\n"
        "5m          Warning   Unhealthy   pod/nvidia-driver-daemonset-k2   NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.\n"
    )
    assert kubectl_events.FORMAT.sniff(text) > nvidia_smi_table.FORMAT.sniff(text)
    assert ("gpu-operator/nvidia-driver-daemonset-k2", "pod_failing") in told(
        kubectl_events.FORMAT, text, "pod_failing"
    )


def _events(*rows: str) -> str:
    return "\n".join(
        ["Events:", "  Type     Reason   Age   From   Message", "  ----     ------   ----  ----   -------", *rows]
    )


SANDBOX = "  Warning  FailedCreatePodSandBox  7m (x2 over 8m)  kubelet  Failed to create pod sandbox: rpc error: code = Unknown desc = failed to set up network"
SHORT = "  Warning  FailedScheduling  9m (x3 over 10m)  default-scheduler  0/4 nodes are available: 3 Insufficient nvidia.com/gpu, 1 node(s) were unschedulable. preemption: 0/4"
PLACED = "  Normal   Scheduled  8m  default-scheduler  Successfully assigned ml/llama-0 to gpu-07"
STARTED = "  Normal   Started  6m  kubelet  Started container vllm"
PRESSED = "  Normal   NodeHasDiskPressure  5m  kubelet  Node gpu-07 status is now: NodeHasDiskPressure"
RELIEVED = "  Normal   NodeHasNoDiskPressure  1m  kubelet  Node gpu-07 status is now: NodeHasNoDiskPressure"
NO_RUNTIME = '  Warning  FailedCreatePodSandBox  1m  kubelet  Failed to create pod sandbox: no runtime for "nvidia" is configured'


@each(
    ("rows", "expected"),
    [
        ([SHORT], {("unknown:?", "pod_unplaced")}),
        ([SHORT, PLACED], set()),
        ([PLACED, SANDBOX], {("ml/llama-0", "pod_failing")}),
        ([PLACED, SANDBOX, STARTED], set()),
        ([PLACED, STARTED], set()),
        ([PLACED, NO_RUNTIME], {("gpu-07", "container_gpus_refused")}),
        ([PRESSED], {("gpu-07", "kubernetes_condition")}),
        ([PRESSED, RELIEVED], set()),
        (["  Normal  NodeNotReady  9m  kubelet  Node n7 status is now: NodeNotReady", "  Normal  NodeReady  1m  kubelet  Node n7 status is now: NodeReady"],
         {("n7", "node.kubernetes.ready")}),
    ],
)  # fmt: skip
def test_events_of_a_description_tell_what_was_not_overcome(rows: list[str], expected: set[tuple[str, str]]) -> None:
    for text in (_events(*rows), "\n".join(_events(*rows).splitlines()[1:])):
        found = read(kubectl_pods.FORMAT, text)
        assert {(o.subject.id, o.fact) for o in found if o.status is Status.OK} == expected
    assert all(o.value is True for o in found if o.fact == "node.kubernetes.ready")


def test_a_message_that_quotes_a_tool_makes_an_event_no_output_of_that_tool() -> None:
    said = "  Warning  Failed  1m  kubelet  Error: nvidia-container-cli: initialization error: nvml error: driver not loaded: unknown"
    text = _events(PLACED, said)
    assert kubectl_pods.FORMAT.sniff(text) > nvidia_smi_table.FORMAT.sniff(text) > 0
    assert told(kubectl_pods.FORMAT, text, "container_gpus_refused").keys() == {("gpu-07", "container_gpus_refused")}


def test_a_described_pod_tells_its_other_warnings_too() -> None:
    head = "Name:             t-0\nNamespace:        ml\nNode:             gpu-07/10.0.0.7\nStatus:           Running\nContainers:\n"
    probe = "  Warning  Unhealthy  30s (x20 over 8m)  kubelet  Readiness probe failed: HTTP probe failed with statuscode: 503"
    got = told(kubectl_pods.FORMAT, head + _events(SHORT, probe), *kubectl_pods.FORMAT.provides)
    assert got[("gpu-07", "kubernetes_warning")]["object"] == "pod/ml/t-0"  # type: ignore[index]
    assert ("ml/t-0", "pod_unplaced") not in got


@each(
    ("text", "port", "over"),
    [
        ("/sys/class/infiniband/mlx5_2/ports/1/counters/link_downed:14\n", "mlx5_2/1", ("LinkDownedCounter 14",)),
        ("mlx5_2/ports/1/counters/symbol_error 12\nmlx5_2/ports/1/counters/port_rcv_data 88123\n", "mlx5_2/1", ("SymbolErrorCounter 12",)),
        ("link_downed: 0\nsymbol_error: 0\nport_xmit_wait: 81263512\nport_xmit_data: 1\n", "unknown:?", ()),
        ("./link_downed:12\n./symbol_error:0\n", "unknown:?", ("LinkDownedCounter 12",)),
        ("counters/link_downed = 12\ncounters/symbol_error = 0\n", "unknown:?", ("LinkDownedCounter 12",)),
        ("SymbolErrorCounter:..............3\nLinkDownedCounter:...............11\n", "unknown:?", ("LinkDownedCounter 11",)),
    ],
)  # fmt: skip
def test_counters_of_a_port_without_a_heading(text: str, port: str, over: tuple[str, ...]) -> None:
    found = {
        o.subject.id: o.value for o in ib_errors.FORMAT.parse(text, Context("x")) if o.fact == "port.counters.over"
    }
    assert ib_errors.FORMAT.sniff(text) > 0
    assert found == {port: over}


@each("text", ["name:12\nother_name 13\n", "loss 12\nstep 13\n", "mlx5_0 12\nlink_downed\n"])
def test_other_pairs_are_no_counters_of_ports(text: str) -> None:
    assert ib_errors.FORMAT.sniff(text) == 0


@each(("count", "told_as"), [(5000, 1), (9, 0)])
def test_one_reading_of_lost_packets_does_not_say_that_they_go_on(count: int, told_as: int) -> None:
    text = f"/sys/class/infiniband/mlx5_0/ports/1/hw_counters/local_ack_timeout_err:{count}\n"
    assert ib_errors.FORMAT.sniff(text) > 0
    assert ib_errors.FORMAT.unread is not None
    assert len(ib_errors.FORMAT.unread(text)) == told_as


def test_rows_of_ethtool_are_known_by_counters_of_the_wire() -> None:
    found = ethtool_stats.FORMAT.parse("     rx_symbol_err_phy: 991234\n     link_down_events_phy: 2\n", Context("x"))
    assert ethtool_stats.FORMAT.sniff("     rx_symbol_err_phy: 991234\n") > 0
    assert ethtool_stats.FORMAT.sniff("     rx_packets: 991234\n     name: 2\n") == 0
    assert [o.value for o in found if o.fact == "nic.counters.over"] == [("rx_symbol_err_phy 991234",)]


def test_a_unit_that_is_shown_twice_is_as_it_is_shown_last_and_its_file_is_named() -> None:
    runs = capture("other/systemctl-status.txt").replace("failed (Result: exit-code)", "active (running)")
    shown = "\n\n".join((runs, capture("other/systemctl-status.txt")))
    states = [o for o in systemctl_status.parse(shown, Context("two.txt")) if o.fact == "service.state"]
    assert {o.source.call for o in states} == {"two.txt"}
    once = systemctl_status.parse(capture("other/systemctl-status.txt"), Context("one.txt"))
    assert {(o.subject, o.value) for o in states} == {(o.subject, o.value) for o in once if o.fact == "service.state"}
    assert runs != capture("other/systemctl-status.txt")


PODS = (
    "NAMESPACE   NAME     READY   STATUS      RESTARTS   AGE\nml          train-1  0/1     OOMKilled   3          41m\n"
)


@each(
    "text, name",
    [
        (PODS, "kubectl-pods"),
        ("step 1 loss 2.1\n" + PODS, "python-traceback"),
        (PODS + "Traceback (most recent call last):\nValueError: x\n", "python-traceback"),
        (
            '{"kind": "Pod", "metadata": {}, "status": {"phase": "Failed", "reason": "OOMKilled"}}\n',
            "kubectl-pods-json",
        ),
    ],
)
def test_a_word_within_a_table_or_a_value_of_json_makes_it_no_log(text: str, name: str) -> None:
    found = registry.sniff(text)
    assert found is not None
    assert found.name == name
