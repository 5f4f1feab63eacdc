"""Jobs on a node of eight GPUs, from the collector to the findings: what is well stays silent, what is wrong is named."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from knowledge.derive import derive
from knowledge.facts import vocabulary
from knowledge.observation import Observation
from probes.base import Context
from probes.parse import nvidia_smi_csv, processes_snapshot
from rules.engine import Evaluation, run
from rules.factbase import FactBase
from rules.loader import load
from tests.probes.collectors.collecting import collect
from tests.probes.collectors.process_tree import Tree, ranks

HOST = Context("-", "gpu-1")


def listed(pids: list[int], gpu: Callable[[int], int] = lambda i: i) -> list[Observation]:
    """What nvidia-smi lists: one process a GPU, unless `gpu` says otherwise."""
    lines = [f"{pid}, python3, 00000000:{0x1B + gpu(i):02X}:00.0, 61000 MiB" for i, pid in enumerate(pids)]
    text = "\n".join(["pid, process_name, gpu_bus_id, used_gpu_memory [MiB]", *lines]) + "\n"
    return nvidia_smi_csv.FORMAT.parse(text, HOST)


def node(root: Path) -> Tree:
    tree = Tree(root)
    for i in range(8):
        tree.gpu(f"0000:{0x1B + i:02x}:00.0", i)
    tree.process(900, "nv-hostengine", opens=["/dev/nvidiactl", *(f"/dev/nvidia{i}" for i in range(8))])
    tree.process(901, "nvidia-persiste", opens=["/dev/nvidiactl", *(f"/dev/nvidia{i}" for i in range(8))])
    tree.process(950, "sh", state="Z")
    return tree


def judged(tree: Tree, other: list[Observation]) -> Evaluation:
    text = collect("processes", tree.root, "--interval", "0.1")
    facts = FactBase(derive([*processes_snapshot.FORMAT.parse(text, HOST), *other]), vocabulary())
    assert facts.conflicts == ()
    return run(load().rules, facts)


def found(result: Evaluation) -> set[str]:
    return {f"{f.rule.id}@{f.subject.id}" for f in result.findings}


SLURM = "0::/system.slice/gpu-1_slurmstepd.scope/job_{}/step_0/user/task_0"


@pytest.mark.process
@pytest.mark.parametrize("cgroup", ["0::/user.slice", SLURM.format(4711), "0::/docker/" + "4c2f0a9b" * 8])
def test_a_healthy_job_is_silent(tmp_path: Path, cgroup: str) -> None:
    tree = node(tmp_path)
    pids = ranks(tree, 8, cgroup=cgroup, NCCL_DEBUG="WARN")
    for i in range(16):
        tree.process(
            6000 + i,
            "pt_data_worker",
            ppid=pids[i % 8],
            opens=["/dev/nvidia-uvm", f"/dev/nvidia{i % 8}"],
            cgroup=cgroup,
        )
    result = judged(tree, listed(pids))
    assert found(result) == set()
    assert result.undecided == ()


@pytest.mark.process
def test_an_idle_node_is_silent(tmp_path: Path) -> None:
    result = judged(node(tmp_path), [])
    assert (found(result), result.undecided) == (set(), ())


@pytest.mark.process
def test_a_job_with_debugging_left_on_and_a_rank_in_the_driver(tmp_path: Path) -> None:
    tree = node(tmp_path)
    pids = ranks(tree, 8, CUDA_LAUNCH_BLOCKING="1", OMP_NUM_THREADS="96")
    shutil.rmtree(tree.root / "proc" / str(pids[7]))  # gone
    stuck = {"RANK": "6", "LOCAL_RANK": "6", "WORLD_SIZE": "8", "LOCAL_WORLD_SIZE": "8"}
    shutil.rmtree(tree.root / "proc" / str(pids[6]))
    tree.process(
        pids[6], "python3", ppid=pids[0] - 1, state="D", env={**stuck, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "29500",
        "TORCHELASTIC_RUN_ID": "none", "OMP_NUM_THREADS": "96", "CUDA_LAUNCH_BLOCKING": "1"},
        opens=["/dev/nvidia-uvm", "/dev/nvidia6"], stack="[<0>] rm_ioctl+0x7d/0x400 [nvidia]\n", wchan="0",
    )  # fmt: skip
    result = judged(tree, listed(pids[:7]))
    job = "127.0.0.1:29500"
    assert found(result) == {
        f"cuda-launch-blocking-left-on@{job}", f"omp-threads-oversubscribed@{job}", f"rank-missing-on-node@{job}",
        f"gpu-process-stuck@{pids[6]}",
    }  # fmt: skip
    assert {str(f.grade) for f in result.findings} == {"confirmed"}


@pytest.mark.process
def test_two_batch_jobs_on_one_gpu(tmp_path: Path) -> None:
    tree = node(tmp_path)
    ours = ranks(tree, 2, cgroup=SLURM.format(1))
    theirs = ranks(tree, 2, first=5000, cgroup=SLURM.format(2), MASTER_PORT="29501")
    result = judged(tree, [*listed(ours), *listed(theirs, lambda i: i + 1)])
    assert found(result) == {"gpu-shared-with-batch-job@0000:1c:00.0", "gpu-shared-by-owners@0000:1c:00.0"}
    shared = next(f for f in result.findings if f.rule.id == "gpu-shared-by-owners")
    assert any("gpu-shared-with-batch-job" in cause for cause in shared.explained_by)


@pytest.mark.process
def test_a_rank_that_outlived_its_launcher(tmp_path: Path) -> None:
    tree = node(tmp_path)
    pids = ranks(tree, 1)
    shutil.rmtree(tree.root / "proc" / str(pids[0] - 1))
    text = (tree.root / f"proc/{pids[0]}/stat").read_text().replace(f" S {pids[0] - 1} ", " S 1 ")
    tree.file(f"proc/{pids[0]}/stat", text)
    assert found(judged(tree, listed(pids))) == {f"rank-outlived-its-launcher@{pids[0]}"}


@pytest.mark.process
def test_ranks_on_one_core(tmp_path: Path) -> None:
    tree = node(tmp_path)
    pids = ranks(tree, 4)
    for pid in pids:
        path = tree.root / f"proc/{pid}/status"
        path.write_text(path.read_text().replace("0-95", "5"))
    job = "127.0.0.1:29500"
    result = judged(tree, listed(pids))
    assert found(result) == {f"ranks-share-few-cpus@{job}", f"omp-threads-oversubscribed@{job}"}
    assert [f.rule.id for f in result.findings if not f.explained_by] == ["ranks-share-few-cpus"]
