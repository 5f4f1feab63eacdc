"""Snapshots of processes: which job, rank, container, pod and user a process on a GPU belongs to."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from knowledge.facts import vocabulary
from knowledge.observation import Clock, Observation, Scope, Status, Subject, node
from probes.base import Context
from probes.parse._process_facts import blocked, cpus
from probes.parse._process_place import Place, place_of
from probes.parse.processes_snapshot import FORMAT, MAIN
from tests.cases import each

HERE = node("n1")
COLUMNS = [
    "pid",
    "ppid",
    "uid",
    "name",
    "state",
    "flags",
    "start_ticks",
    "cpu_ticks",
    "threads",
    "rss_pages",
    "cpu_ticks_later",
]
GPU = {"/dev/nvidia-uvm": {"descriptors": 1}, "/dev/nvidia0": {"descriptors": 3, "major": 195, "minor": 0}}
ID = "4c2f0a9b8d7e6f5a4c2f0a9b8d7e6f5a4c2f0a9b8d7e6f5a4c2f0a9b8d7e6f5a"
UID = "0a6f1c2e-7c1b-4b0e-9f42-0c5f0e1f2a3b"


def row(pid: int, name: str, ppid: int = 1, state: str = "S", flags: int = 0, uid: int = 1000) -> list[Any]:
    return [pid, ppid, uid, name, state, flags, 1000, 50, 4, 2560, 75]


def detail(pid: int, env: Mapping[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    """A process that computes on GPU 0, unless `more` says otherwise."""
    return {
        "pid": pid, "why": ["gpu"], "kernel": False, "devices": GPU, "cgroup": ["0::/user.slice"], "cmdline": ["python", "t.py"],
        "environ": dict(env or {}), "status": {"Cpus_allowed_list": "0-7", "CapEff": "0000000000000000"}, "executable": "/usr/bin/python3",
        "limits": {"memlock": ["8388608", "8388608", "bytes"], "nofile": ["1024", "4096", "files"]}, "counters": [], "blocked": [],
        "namespaces": {"mnt": "mnt:[1]"}, **more,
    }  # fmt: skip


def doc(rows: Sequence[list[Any]], details: Sequence[dict[str, Any]] = (), **more: Any) -> str:
    plain = {
        "schema": "gpudiag/processes/1", "host": "n1", "boot_id": "b", "at_ns": 1_700_000_000_000_000_000, "clock_ticks": 100,
        "page_size": 4096, "uptime_s": 1000.0, "interval_s": 0.5, "users": {"1000": "alice"},
        "reader": {"uid": 0, "pid_namespace": "pid:[4026531836]", "init_mount_namespace": "mnt:[1]"},
        "holders": {"looked_at": 9, "denied": 0}, "columns": COLUMNS,
        "processes": [row(1, "systemd", 0), row(2, "kthreadd", 0, flags=0x200000), *rows], "details": list(details), "light": [],
    }  # fmt: skip
    return json.dumps(plain | more)


def parse(text: str) -> list[Observation]:
    assert FORMAT.sniff(text) == 100
    return FORMAT.parse(text, Context("p.json"))


def told(text: str) -> dict[tuple[str, str], Any]:
    """Value, or status where there is none, by fact and "scope:id"."""
    return {
        (o.fact, f"{o.subject.scope}:{o.subject.id}"): o.value if o.status is Status.OK else o.status
        for o in parse(text)
    }


def torch(rank: int, world: int = 2, local_world: int = 2, **more: Any) -> dict[str, str]:
    return {"RANK": str(rank), "WORLD_SIZE": str(world), "LOCAL_RANK": str(rank % local_world), "LOCAL_WORLD_SIZE": str(local_world),
            "MASTER_ADDR": "10.0.0.1", "MASTER_PORT": "29500", "TORCHELASTIC_RUN_ID": "none", **more}  # fmt: skip


# --- places -------------------------------------------------------------------------------


@each(
    ("path", "expected"),
    [
        (f"/docker/{ID}", Place(ID[:12], "docker")),
        (f"/system.slice/docker-{ID}.scope", Place(ID[:12], "docker")),
        (f"/kubepods/burstable/pod{UID}/{ID}", Place(ID[:12], "kubernetes", UID)),
        (f"/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod{UID.replace('-', '_')}.slice/cri-containerd-{ID}.scope",
         Place(ID[:12], "containerd", UID)),
        (f"/kubepods.slice/kubepods-pod{UID.replace('-', '_')}.slice/crio-{ID}.scope/container", Place(ID[:12], "cri-o", UID)),
        (f"/kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-besteffort.slice/"
         f"kubelet-kubepods-besteffort-pod{UID.replace('-', '_')}.slice/cri-containerd-{ID}.scope", Place(ID[:12], "containerd", UID)),
        (f"/kubepods-besteffort-pod{UID.replace('-', '_')}.slice:cri-containerd:{ID}", Place(ID[:12], "containerd", UID)),
        (f"/kubepods/besteffort/pod6f2b5c1f0e9d4b7a8c3d2e1f0a9b8c7d/{ID}", Place(ID[:12], "kubernetes", "6f2b5c1f0e9d4b7a8c3d2e1f0a9b8c7d")),
        (f"/machine.slice/libpod-{ID}.scope/container", Place(ID[:12], "podman")),
        (f"/user.slice/user-1000.slice/user@1000.service/user.slice/libpod-{ID}.scope", Place(ID[:12], "podman")),
        ("/lxc.payload.web1/system.slice/sshd.service", Place("web1", "lxc")),
        ("/slurm/uid_1000/job_4711/step_0/task_3", Place(job="4711", step="0")),
        ("/system.slice/slurmstepd.scope/job_4711/step_batch/user/task_0", Place(job="4711", step="batch")),
        ("/system.slice/gpu01_slurmstepd.scope/job_4711/step_2/user", Place(job="4711", step="2")),
        ("/user.slice/user-1000.slice/session-3.scope", Place()),
        ("/system.slice/cron.service/job_4711", Place()),
        ("/", Place()),
    ],
)  # fmt: skip
def test_places(path: str, expected: Place) -> None:
    for line in (f"0::{path}", f"4:memory:{path}"):
        found = place_of(["3:cpu:/", line])
        assert (found.container, found.runtime, found.pod, found.job, found.step) == (
            expected.container, expected.runtime, expected.pod, expected.job, expected.step,
        )  # fmt: skip


def test_a_pod_with_a_name() -> None:
    cgroup = [f"0::/kubepods.slice/kubepods-pod{UID.replace('-', '_')}.slice/cri-containerd-{ID}.scope"]
    known = told(doc([row(42, "python")], [detail(42, {"POD_NAME": "train-0", "POD_NAMESPACE": "ml"}, cgroup=cgroup)]))
    assert known["process.in_container", "process:42"] == f"container:{ID[:12]}"
    assert known["container.in_pod", f"container:{ID[:12]}"] == "pod:ml/train-0"
    assert known["pod.name", "pod:ml/train-0"] == "ml/train-0"
    assert known["process.owner", "process:42"] == "pod ml/train-0"
    nameless = told(doc([row(42, "python")], [detail(42, cgroup=cgroup)]))
    assert nameless["container.in_pod", f"container:{ID[:12]}"] == f"pod:{UID}"


@pytest.mark.parametrize(("namespace", "parent", "expected"), [
    ("mnt:[1]", "bash", "nothing"), ("mnt:[7]", "slurmstepd", "mount_namespace"), ("mnt:[7]", "starter-suid", "apptainer"),
])  # fmt: skip
def test_containers_without_an_id(namespace: str, parent: str, expected: str) -> None:
    found = told(doc([row(40, parent), row(42, "python", 40)], [detail(42, namespaces={"mnt": namespace})]))
    assert found["process.contained_by", "process:42"] == expected


# --- jobs ---------------------------------------------------------------------------------


def test_ranks_of_torchrun() -> None:
    rows = [row(40, "torchrun"), row(41, "python", 40), row(42, "python", 40), row(43, "pt_data_worker", 42)]
    light = [{"pid": 43, "why": ["gpu"], "devices": GPU}]
    found = told(doc(rows, [detail(41, torch(0, 4)), detail(42, torch(1, 4))], light=light))
    assert found["rank.is_process", "rank:1"] == "process:42"
    assert found["job.ranks", "job:10.0.0.1:29500"] == 4
    assert found["job.ranks.expected_here", "job:10.0.0.1:29500"] == found["job.ranks.here", "job:10.0.0.1:29500"] == 2
    assert found["job.ranks.missing_here", "job:10.0.0.1:29500"] == 0
    assert found["job.spans_nodes", "job:10.0.0.1:29500"] is True
    assert found["process.in_job", "process:43"] == "job:10.0.0.1:29500"
    assert found["process.owner", "process:43"] == found["process.owner", "process:42"] == "user alice"
    assert found["process.adopted", "process:42"] is False
    assert found["job.launcher", "job:10.0.0.1:29500"] == "torchrun"
    assert found["job.limit.memlock", "job:10.0.0.1:29500"] == 8.0


def test_a_rank_that_is_gone() -> None:
    found = told(doc([row(41, "python"), row(43, "python")], [detail(41, torch(0, 4, 4)), detail(43, torch(2, 4, 4))]))
    assert found["job.ranks.missing_here", "job:10.0.0.1:29500"] == 2


def test_a_rank_that_cannot_be_read_is_not_missing() -> None:
    hung = detail(43, hung="/proc/43/cmdline")
    del hung["environ"], hung["cmdline"]
    found = told(doc([row(41, "python"), row(43, "python")], [detail(41, torch(0)), hung]))
    assert found["job.ranks.missing_here", "job:10.0.0.1:29500"] is Status.TIMEOUT
    assert found["process.in_job", "process:43"] is Status.TIMEOUT


def test_a_rank_that_was_adopted() -> None:
    rows = [row(30, "slurmstepd"), row(41, "python", 30), row(40, "torchrun"), row(42, "python", 40)]
    found = told(doc(rows, [detail(41, torch(0)), detail(42, torch(1))]))
    assert found["process.adopted", "process:41"] is True
    assert found["process.adopted", "process:42"] is False


def test_torchrun_within_a_batch_job() -> None:
    """The task of Slurm that runs the launcher is no rank, though it has a task number, and so have its children."""
    batch: dict[str, Any] = {
        "SLURM_JOB_ID": "4711",
        "SLURM_PROCID": "0",
        "SLURM_NTASKS": "1",
        "SLURM_LOCALID": "0",
        "SLURM_JOB_NAME": "pretrain",
    }
    cgroup = ["0::/system.slice/slurmstepd.scope/job_4711/step_0/user/task_0"]
    rows = [row(40, "torchrun"), row(41, "python", 40), row(42, "python", 40)]
    found = told(doc(rows, [detail(40, batch, cgroup=cgroup, devices={}), detail(41, torch(0, **batch), cgroup=cgroup),
                            detail(42, torch(1, **batch), cgroup=cgroup)]))  # fmt: skip
    assert found["job.launcher", "job:4711"] == "slurm"
    assert found["job.name", "job:4711"] == "pretrain"
    assert found["job.ranks.here", "job:4711"] == 2
    assert found["rank.is_process", "rank:0"] == "process:41"
    assert found["process.in_job", "process:40"] == "job:4711"
    assert found["process.owner", "process:41"] == "job 4711"


def test_ranks_of_srun_and_what_they_start() -> None:
    rows, details = [row(30, "slurmstepd")], []
    for i in range(2):
        env = {
            "SLURM_JOB_ID": "9",
            "SLURM_STEP_ID": "0",
            "SLURM_PROCID": str(i),
            "SLURM_NTASKS": "2",
            "SLURM_LOCALID": str(i),
        }
        rows += [row(50 + i, "bash", 30), row(60 + i, "python", 50 + i), row(70 + i, "nvidia-smi", 60 + i)]
        details += [detail(50 + i, env, devices={}), detail(60 + i, env), detail(70 + i, env, devices={})]
    found = told(doc(rows, details))
    assert [found["rank.is_process", f"rank:{i}"] for i in range(2)] == ["process:60", "process:61"]
    assert found["job.ranks", "job:9"] == 2


def test_the_batch_script_is_no_rank() -> None:
    env = {"SLURM_JOB_ID": "9", "SLURM_PROCID": "0", "SLURM_NTASKS": "8"}
    found = told(doc([row(50, "python")], [detail(50, env, cgroup=["0::/slurm/uid_1/job_9/step_batch/task_0"])]))
    assert ("job.ranks", "job:9") not in found
    assert found["process.in_job", "process:50"] == "job:9"


def test_two_launches_in_one_batch_job_are_two() -> None:
    details = [
        detail(41, torch(0, 1, 1, SLURM_JOB_ID="9")),
        detail(42, torch(0, 1, 1, SLURM_JOB_ID="9", MASTER_PORT="29501")),
    ]
    found = told(doc([row(41, "python"), row(42, "python")], details))
    assert found["process.in_job", "process:41"] == "job:9/10.0.0.1:29500"
    assert found["process.in_job", "process:42"] == "job:9/10.0.0.1:29501"


def test_the_same_port_in_two_containers_is_two_jobs() -> None:
    other = "f" * 64
    details = [
        detail(pid, torch(0, 1, 1, MASTER_ADDR="localhost"), cgroup=[f"0::/docker/{c}"])
        for pid, c in ((41, ID), (42, other))
    ]
    found = told(doc([row(41, "python"), row(42, "python")], details))
    assert found["process.in_job", "process:41"] != found["process.in_job", "process:42"]


def test_a_program_that_stands_alone_is_its_own_job() -> None:
    found = told(
        doc([row(41, "python"), row(42, "python", 41)], [detail(41, {"CUDA_LAUNCH_BLOCKING": "1"}), detail(42)])
    )
    assert found["process.in_job", "process:41"] == found["process.in_job", "process:42"] == "job:pid-41"
    assert "CUDA_LAUNCH_BLOCKING=1" in found["job.env", "job:pid-41"]
    assert found["job.launcher", "job:pid-41"] == "none"
    assert found["job.user", "job:pid-41"] == "alice"


def test_a_tool_that_watches_is_no_job() -> None:
    watched = {"/dev/nvidia0": GPU["/dev/nvidia0"], "/dev/nvidiactl": {"descriptors": 1}}
    found = told(doc([row(41, "nv-hostengine")], [detail(41, devices=watched)]))
    assert found["process.computes", "process:41"] is False
    assert found["process.in_job", "process:41"] is Status.NONE_SEEN
    assert found["process.opens_gpu", "process:41"] == "gpu:minor:0"


def test_settings_that_differ() -> None:
    odd = [torch(0, NCCL_ALGO="Ring", NCCL_DEBUG="INFO"), torch(1, NCCL_ALGO="Tree")]
    found = [
        o
        for o in parse(doc([row(41, "python"), row(42, "python")], [detail(41, odd[0]), detail(42, odd[1])]))
        if o.fact.startswith("job.env")
    ]
    by = {o.fact: o for o in found}
    assert by["job.env.differing"].value == 1  # the log of one rank is nobody's fault
    assert by["job.env.differing"].excerpt == "NCCL_ALGO: Ring (rank 0), Tree (rank 1)"
    assert by["job.env"].value == ("NCCL_ALGO=Ring", "NCCL_ALGO=Tree", "NCCL_DEBUG=INFO")


def test_processors_and_threads_of_openmp() -> None:
    details = [detail(41 + i, torch(i, OMP_NUM_THREADS="16"), status={"Cpus_allowed_list": "0-3"}) for i in range(2)]
    found = told(doc([row(41, "python"), row(42, "python")], details))
    job = "job:10.0.0.1:29500"
    assert (found["job.cpus", job], found["job.cpus_per_rank", job]) == (4, 2.0)
    assert (found["job.omp_threads", job], found["job.omp_threads_per_cpu", job]) == (32, 8.0)


# --- what is missing ----------------------------------------------------------------------


def test_what_others_do_not_let_us_see() -> None:
    denied = {"error": "EACCES: Permission denied"}
    hidden = detail(41, devices={}, environ=denied, executable=denied, cgroup=["0::/slurm/uid_1/job_9/step_0/task_0"])
    found = told(doc([row(41, "python")], [hidden], holders={"looked_at": 3, "denied": 90}))
    for fact in ("process.env", "process.executable_deleted", "process.opens_gpu", "process.adopted"):
        assert found[fact, "process:41"] is Status.DENIED, fact
    assert found["process.in_job", "process:41"] == "job:9"  # the cgroup tells
    assert found["job.env", "job:9"] is found["job.env.differing", "job:9"] is Status.DENIED
    assert found["node.processes.on_gpu", "node:n1"] is Status.DENIED


def test_in_a_container_the_node_is_not_seen() -> None:
    text = doc(
        [row(41, "python")],
        reader={"uid": 0, "pid_namespace": "pid:[4026532000]"},
        processes=[row(1, "python", 0), row(41, "python")],
    )
    found = told(text)
    assert found["node.processes.view", "node:n1"] == "own_namespace"
    assert found["node.processes.on_gpu", "node:n1"] is Status.DENIED


def test_root_that_is_not_enough() -> None:
    """In a container root may lack the capability: nobody is told to become what they are."""
    denied = {"error": "EACCES: Permission denied"}
    for uid, wanted in ((0, "CAP_SYS_PTRACE"), (1000, "sudo gpudiag check")):
        reader = {"uid": uid, "pid_namespace": "pid:[4026531836]"}
        found = parse(
            doc([row(41, "python")], [detail(41, environ=denied)], reader=reader, holders={"looked_at": 1, "denied": 2})
        )
        reasons = [o.detail for o in found if o.status is Status.DENIED]
        assert reasons
        assert all(wanted in why for why in reasons), reasons


def test_a_gpu_of_amd() -> None:
    held = {"/dev/kfd": {"descriptors": 1}, "/dev/dri/renderD128": {"descriptors": 1, "major": 226, "minor": 128}}
    numbers = {"nvidia": {}, "render": {"renderD128": "../../../0000:03:00.0", "renderD129": "../../../vgem"}}
    found = told(doc([row(41, "python")], [detail(41, devices=held)], device_numbers=numbers))
    assert found["process.opens_gpu", "process:41"] == "gpu:0000:03:00.0"
    assert found["process.computes", "process:41"] is True


def test_limits_that_do_not_hold() -> None:
    free = detail(41, limits={"memlock": ["unlimited", "unlimited", "bytes"]})
    capable = detail(42, status={"CapEff": "0000000000004000"})
    found = told(doc([row(41, "python"), row(42, "python")], [free, capable]))
    assert (
        found["process.limit.memlock", "process:41"]
        is found["process.limit.memlock", "process:42"]
        is Status.NOT_APPLICABLE
    )


def test_rates() -> None:
    def look(at: float, run: int, wait: int, slices: int) -> dict[str, Any]:
        stat = f"41 (a) b) R 1 1 1 0 -1 0 10 0 {slices} 0 50 0 0 0 20 0 1"
        return {
            "at_s": at,
            "stat": stat,
            "switches": [0, slices],
            "io": {"read_bytes": slices << 20},
            "threads": {"41": f"{run} {wait} {slices}"},
        }

    one = detail(41, counters=[look(1.0, 10**9, 10**8, 10), look(1.5, 13 * 10**8, 2 * 10**8, 20)])
    rows = [[41, 1, 1000, "a) b", "R", 0, 1000, 50, 1, 2560, 75]]
    found = told(doc(rows, [one]))
    expected = {
        "runqueue.wait": 25.0,
        "switches": 20.0,
        "switches.involuntary": 20.0,
        "io.read": 20.0,
        "faults.major": 20.0,
        "cpu": 0.5,
    }
    assert {name: found[f"process.{name}", "process:41"] for name in expected} == expected
    assert found["process.age", "process:41"] == 990.0
    assert found["process.memory.resident", "process:41"] == 10


@each(
    ("looks", "seconds"),
    [
        ([("1 1 5", "D"), ("1 1 5", "D"), ("1 1 5", "D")], 2.0),
        ([("1 1 5", "D"), ("1 1 6", "D"), ("1 1 6", "D")], 0.0),  # it ran in between
        ([("1 1 5", "D"), ("1 1 5", "D"), None], 0.0),  # it goes on
        ([("1 1 5", "D")], 0.0),
        ([("", "D"), ("", "D")], 0.0),  # a kernel without schedstat: that it did not run cannot be told
    ],
)
def test_blocked(looks: list[tuple[str, str] | None], seconds: float) -> None:
    plain = [
        {"at_s": float(i), "threads": {"7": {"schedstat": look[0], "state": look[1]}} if look else {}}
        for i, look in enumerate(looks)
    ]
    assert blocked(plain)[0] == seconds


@each(("text", "count"), [("0-3,8", 5), ("7", 1), ("", 0), ("3-1", 0), ("a", 0), ("0-99999,x", 0)])
def test_lists_of_cpus(text: str, count: int) -> None:
    assert len(cpus(text)) == count


# --- laws ---------------------------------------------------------------------------------

WHOLE = doc([row(41, "python"), row(42, "python", state="Z"), row(43, "x", state="D")],
            [detail(41, torch(0)), detail(43, blocked=[{"at_s": 1.0, "threads": {"43": {"schedstat": "1 1 1", "wchan": "x", "stack": []}}}])])  # fmt: skip
_JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 2**70) | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4), max_leaves=8,
)  # fmt: skip


def sound(found: Sequence[Observation]) -> None:
    vocab = vocabulary()
    for o in found:
        assert o.fact in FORMAT.provides
        assert (o.value is None) == (o.status is not Status.OK), o
        assert o.status is not Status.OK or vocab[o.fact].accepts(o.value), o
        assert o.subject.scope is vocab[o.fact].scope
        assert o.status.answered or o.detail
        assert o.clock in (Clock.REALTIME, Clock.NONE)
        assert o.source.call


def paths(value: Any, here: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [here, *(p for k, v in inner for p in paths(v, (*here, k)))]


@given(st.data())
def test_any_part_may_be_anything(data: st.DataObject) -> None:
    plain = json.loads(WHOLE)
    for _ in range(data.draw(st.integers(1, 3))):
        path = data.draw(st.sampled_from([p for p in paths(plain) if p and p != ("schema",)]))
        here = plain
        for key in path[:-1]:
            here = here[key]
        here[path[-1]] = data.draw(_JSON)
    sound(FORMAT.parse(json.dumps(plain), Context("p.json", "n1")))


@given(st.integers(0, len(WHOLE)))
def test_a_cut_document_says_so(end: int) -> None:
    found = FORMAT.parse(WHOLE[:end], Context("p.json", "n1"))
    sound(found)
    if end < len(WHOLE):
        assert {o.fact: o.status for o in found} == dict.fromkeys(MAIN, Status.FAILED)


@given(st.randoms(use_true_random=False))
def test_the_order_of_processes_says_nothing(random: Any) -> None:
    plain = json.loads(WHOLE)
    for key in ("processes", "details"):
        random.shuffle(plain[key])
    assert FORMAT.parse(json.dumps(plain), Context("p.json")) == parse(WHOLE)


def test_other_documents_are_not_recognised() -> None:
    assert FORMAT.sniff('{"schema": "gpudiag/system/1"}') == FORMAT.sniff("") == FORMAT.sniff(f"x{WHOLE}") == 0
    assert parse(WHOLE)[0].subject == HERE
    assert {o.subject for o in FORMAT.parse("{}", Context("p", "n1"))} == {Subject(Scope.NODE, "n1")}


def test_an_empty_proc_is_said() -> None:
    document = {
        "schema": "gpudiag/processes/1",
        "host": "n1",
        "at_ns": 5,
        "reader": {"pid": {"error": "ENOENT: x"}},
        "processes": [],
    }
    found = FORMAT.parse(json.dumps(document), Context("p.json", "n1"))
    assert {o.fact for o in found} == set(MAIN)
    assert all("no process is seen in /proc" in o.detail for o in found)


def test_a_process_that_ended_meanwhile_is_no_failure() -> None:
    document = json.loads(WHOLE)
    for detail in document["details"]:
        for part in ("cmdline", "environ", "executable", "status", "limits"):
            detail[part] = {
                "error": "ESRCH: No such process" if part != "executable" else "ENOENT: No such file or directory"
            }
    found = FORMAT.parse(json.dumps(document), Context("p.json", "n1"))
    ended = [o for o in found if "ended before this was read" in o.detail]
    assert ended
    assert {o.status for o in ended} == {Status.NOT_APPLICABLE}
    assert not [o for o in found if "ESRCH" in o.detail]
