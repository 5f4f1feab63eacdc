"""Which processes are captured: real jobs by pid, name, GPU, job and container."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from knowledge.errors import UsageError
from probes.capture.whom import target
from probes.capture.whom._containers import means, named
from probes.live_host import LiveHost
from probes.parse._process_place import Place
from tests.components import cannot
from tests.live_jobs import Job, Ranks, torch_python
from tests.probes.capture import real_processes as real
from tests.probes.live.machine import need_mounts, tool

pytestmark = pytest.mark.process


def found(**asked: Any) -> list[int]:
    return sorted(t.process.pid for t in target.find(**asked))


def refusal(**asked: Any) -> UsageError:
    with pytest.raises(UsageError) as caught:
        target.find(**asked)
    return caught.value


def script(folder: Path, name: str, code: str = real.SLEEP) -> str:
    path = folder / name
    path.write_text(code)
    return str(path)


def unique(name: str) -> str:
    """A name that no other process of this machine has in its command line."""
    return f"{name}_{os.getpid()}"


# --- pids and names -------------------------------------------------------------------------


def test_by_pid() -> None:
    with real.sleeping() as pid:
        (one,) = target.find([pid, pid])
    assert (one.process.pid, one.why, one.rank, one.job, one.gpus, one.notes) == (pid, f"--pid {pid}", None, "", (), ())


def test_nothing_was_named() -> None:
    assert "--pid" in refusal().hint


def test_pids_that_are_not_there_are_told_at_once() -> None:
    with real.started([*real.PYTHON, "-c", real.SLEEP]) as pid:
        error = refusal(pids=[4194303, pid, 4194302])
    assert error.message == "there are no processes 4194303, 4194302"
    assert "running Python here: " in error.hint


def test_by_every_kind_of_name(tmp_path: Path) -> None:
    name = unique("train")
    path = script(tmp_path, f"{name}.py")
    script(tmp_path, f"{name}_module.py")
    with (
        real.started([*real.PYTHON, path, "--config", f"{name}.yaml"]) as one,
        real.started([sys.executable, "-m", f"{name}_module"], cwd=tmp_path) as two,
    ):
        assert found(names=[f"{name}.py"]) == found(names=[name]) == found(names=[path]) == [one]
        assert found(names=[f"{name}.yaml"]) == found(names=[f"--config {name}.yaml"]) == [one]
        assert found(names=[f"{name}_module"]) == [two]
        assert found(names=[f"{name}.py", f"{name}_module"]) == found(names=[f"{name}*"]) == sorted([one, two])
        both = target.find([one], [f"{name}.py"])
        assert [t.why for t in both] == [f"--pid {one}, --name {name}.py"]


def test_shells_and_editors_are_not_meant(tmp_path: Path) -> None:
    path = script(tmp_path, unique("train") + ".py")
    with (
        real.started(["sh", "-c", f"{sys.executable} {path}; true"]) as shell,
        real.started(["sh", "-c", "echo ready; exec sleep 60", path]),
    ):
        (inner,) = real.children(shell)
        assert found(names=[Path(path).name]) == [inner]
        assert found(pids=[shell]) == [shell]


def test_gpudiag_itself_is_not_meant(tmp_path: Path) -> None:
    name = unique("train") + ".py"
    own = script(tmp_path, "gpudiag")
    with real.started([*real.PYTHON, own, "profile", "--name", name]) as pid:
        assert name in refusal(names=[name]).message
        assert found(pids=[pid]) == [pid]
        with real.started([*real.PYTHON, script(tmp_path, name)]) as job:
            assert found(names=[name]) == [job]


def test_a_name_that_only_a_launcher_has(tmp_path: Path) -> None:
    path = script(tmp_path, "torchrun")
    with real.started([*real.PYTHON, path, unique("nothing")]) as pid:
        error = refusal(names=[unique("nothing")])
    assert f"--pid {pid}" in error.hint


def test_the_nearest_names(tmp_path: Path) -> None:
    name = unique("pretrain") + ".py"
    with real.started([*real.PYTHON, script(tmp_path, name)]) as pid:
        error = refusal(names=[name.replace("pre", "pra")])
    assert error.message.startswith("no process is called")
    assert f"did you mean {name}" in error.hint
    assert str(pid) in error.hint or "more" in error.hint


def test_workers_are_taken_only_by_their_pid(tmp_path: Path) -> None:
    code = (
        "import os, time\npids = [os.fork() for _ in range(1)]\nif pids[0]: print('ready', flush=True)\ntime.sleep(120)"
    )
    path = script(tmp_path, unique("forks") + ".py", code)
    with real.started([*real.PYTHON, path]) as pid:
        (worker,) = real.children(pid)
        (one,) = target.find(names=[Path(path).name])
        assert one.process.pid == pid
        assert [p.pid for p in one.helpers] == [worker]
        (alone,) = target.find([worker])
        assert alone.process.pid == worker
        assert f"works for process {pid}" in alone.notes[0].en


def _refused_or_found(names: list[str], host: LiveHost) -> str:
    """The message, or the names, when targets were found."""
    try:
        return " ".join(t.why for t in target.find(names=names, host=host))
    except UsageError as error:
        return error.message


def test_many_that_come_and_go(tmp_path: Path) -> None:
    """What ends while it is looked at is left out, or all of it has ended; nothing else happens."""
    path = script(tmp_path, unique("brief") + ".py", "")
    loop = f"echo ready; while true; do {sys.executable} -I -S {path}; done"
    with real.started(["sh", "-c", loop]), real.sleeping() as steady, LiveHost() as host:
        for _ in range(10):
            message = _refused_or_found([Path(path).name], host)
            assert Path(path).name in message or "ended" in message
            assert steady in found(pids=[steady], host=host)


# --- jobs -------------------------------------------------------------------------------------


@pytest.mark.machine
def test_the_ranks_of_a_job_from_one_of_them() -> None:
    with Ranks(pause=0.05) as ranks:
        pids = [job.pid for job in ranks.jobs]
        for asked in ({"names": ["ranks.py"]}, {"pids": pids[:1], "whole_job": True}, {"jobs": [str(pids[1])]}):
            targets = [t for t in target.find(**asked) if t.process.pid in pids]  # another test may run ranks too
            assert [t.process.pid for t in targets] == pids
            assert [(t.rank, t.local_rank, t.world_size) for t in targets] == [(0, 0, 2), (1, 1, 2)]
            assert len({t.job for t in targets}) == 1
        job = targets[0].job
        assert (
            found(jobs=[job])
            == found(jobs=[job.removeprefix("torchrun-")])
            == found(jobs=[f"job:{job}"])
            == sorted(pids)
        )
        assert [t.process.pid for t in target.find(pids[1:])] == pids[1:]


@pytest.mark.machine
def test_torchrun_starts_ranks_and_is_none(tmp_path: Path) -> None:
    run = Path(torch_python()).parent / "torchrun"
    if not run.exists():
        pytest.skip("no torchrun beside torch")
    name = unique("elastic") + ".py"
    code = "import os, time\nopen(os.path.join(os.environ['AT'], os.environ['RANK']), 'w')\ntime.sleep(120)"
    path = script(tmp_path, name, code)
    child = subprocess.Popen(
        [str(run), "--standalone", "--nproc-per-node", "2", path], env=os.environ | {"AT": str(tmp_path), "OMP_NUM_THREADS": "1"},
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True,
    )  # fmt: skip
    try:
        real.until(lambda: (tmp_path / "0").exists() and (tmp_path / "1").exists(), "the ranks did not start", 90)
        ranks = target.find(names=[name])
        assert [t.rank for t in ranks] == [0, 1]
        assert child.pid not in {t.process.pid for t in ranks}
        whole = target.find([ranks[1].process.pid], whole_job=True)
        assert [t.process.pid for t in whole] == [t.process.pid for t in ranks]
        assert found(pids=[child.pid]) == [child.pid]
        (launcher,) = target.find([child.pid])
        assert str(ranks[0].process.pid) in launcher.notes[0].en
        assert found(pids=[child.pid], whole_job=True) == [t.process.pid for t in ranks]
        assert found(jobs=[str(child.pid)]) == [t.process.pid for t in ranks]
    finally:
        for pid in real.children(child.pid):
            os.kill(pid, 9)
        child.kill()
        child.wait()


@pytest.mark.machine
def test_ranks_that_their_script_spawned(spawned: Job) -> None:
    """Their command lines do not name the script, and their environments no rank."""
    ranks = [p for p in real.children(spawned.pid) if "spawn_main" in Path(f"/proc/{p}/cmdline").read_text()]
    assert len(ranks) == 2
    assert found(names=[f"spawns_{os.getpid()}.py"]) == ranks
    assert found(pids=ranks[:1], whole_job=True) == found(pids=[spawned.pid], whole_job=True) == ranks
    assert found(pids=ranks[:1]) == ranks[:1]


def _rank(folder: Path, **variables: str) -> Any:
    env = {"PATH": os.environ["PATH"], **variables}
    return real.started([*real.PYTHON, script(folder, unique("rank") + ".py")], env=env)


def test_the_tasks_of_a_slurm_step(tmp_path: Path) -> None:
    number = str(4_000_000 + os.getpid())
    common = {"SLURM_JOB_ID": number, "SLURM_STEP_ID": "0", "SLURM_NTASKS": "16"}
    with (
        _rank(tmp_path, **common, SLURM_PROCID="8", SLURM_LOCALID="0") as one,
        _rank(tmp_path, **common, SLURM_PROCID="9", SLURM_LOCALID="1") as two,
    ):
        assert found(jobs=[number]) == found(pids=[two], whole_job=True) == sorted([one, two])
        targets = target.find(jobs=[number])
    assert [(t.rank, t.local_rank, t.world_size, t.job) for t in targets] == [(8, 0, 16, number), (9, 1, 16, number)]


def test_the_ranks_of_mpi(tmp_path: Path) -> None:
    env = {
        "OMPI_COMM_WORLD_RANK": "5",
        "OMPI_COMM_WORLD_SIZE": "8",
        "OMPI_COMM_WORLD_LOCAL_RANK": "1",
        "OMPI_COMM_WORLD_LOCAL_SIZE": "4",
    }
    with _rank(tmp_path, **env) as pid:
        (one,) = target.find([pid])
    assert (one.rank, one.local_rank, one.world_size) == (5, 1, 8)


def test_a_job_that_is_not_here() -> None:
    error = refusal(jobs=["no-such-job"])
    assert error.message == "no job 'no-such-job' on this node"
    assert error.hint


DENIED = """
import json, sys
from probes.capture.whom import target
one, = target.find([int(sys.argv[1])])
print(json.dumps([one.process.uid, one.rank, [[n.en, n.zh] for n in one.notes]]))
"""


@pytest.mark.machine
def test_a_rank_whose_environment_may_not_be_read(tmp_path: Path) -> None:
    with _rank(tmp_path, RANK="0", WORLD_SIZE="2") as pid:
        uid, rank, notes = real.as_nobody(DENIED, str(pid))
    assert (uid, rank) == (0, None)
    assert "EACCES" in notes[0][0]
    assert "rank" in notes[0][0]
    assert notes[0][1]


# --- GPUs and containers -------------------------------------------------------------------------


def _on_gpu(argv: Sequence[str]) -> Any:
    need_mounts()
    return real.started(["unshare", "-m", "--propagation", "private", "sh", "-euc", real.DEVICES, "sh", *argv])


@pytest.mark.machine
def test_whoever_computes_on_a_gpu(tmp_path: Path) -> None:
    code = "import os, time\npid = os.fork()\nif pid: print('ready', flush=True)\ntime.sleep(120)"
    with _on_gpu([*real.PYTHON, script(tmp_path, unique("gpu") + ".py", code)]) as pid, real.sleeping() as idle:
        targets = {t.process.pid: t for t in target.find(gpu_users=True)}
        assert pid in targets
        assert targets[pid].why == "--gpu-users"
        assert not {idle, *real.children(pid)} & set(
            targets
        )  # its worker shares what it has open, and computes nothing
        assert targets[pid].process.contained is True


@pytest.mark.machine
def test_nobody_computes_here() -> None:
    """In a pid namespace of its own: other tests have processes that seem to."""
    if os.geteuid() != 0 or shutil.which("unshare") is None:
        cannot("namespaces", "a pid namespace needs root and unshare")
    need_mounts()
    code = "from probes.capture.whom import target\ntry: target.find(gpu_users=True)\nexcept target.UsageError as error: print(error)"
    done = subprocess.run(
        ["unshare", "--pid", "--fork", "--mount-proc", "--kill-child", sys.executable, "-c", code],
        capture_output=True, text=True, timeout=60, check=False, cwd=real.ROOT,
    )  # fmt: skip
    assert "no process that can be seen computes on a GPU here" in done.stdout, done.stderr
    assert "no process that runs Python is seen here" in done.stdout


def test_what_runs_python_in_a_container(tmp_path: Path) -> None:
    box = "9a1b" * 16
    path = script(tmp_path, unique("boxed") + ".py")
    with real.group(f"docker/{box}") as folder, real.started(["sh", "-c", f"{sys.executable} {path}; true"]) as shell:
        (inner,) = real.children(shell)
        for pid in (shell, inner):
            (folder / "cgroup.procs").write_text(str(pid))
        assert found(containers=[box]) == found(containers=[box[:12]]) == found(containers=["9a1b9"]) == [inner]
        (one,) = target.find(containers=[box])
        assert one.process.container == box[:12]
        assert box[:12] in refusal(containers=["nothing"]).hint
        bin_ = tmp_path / "bin"
        bin_.mkdir()
        tool(bin_, "docker", f"echo '{box} trainer-{os.getpid()}'")
        with LiveHost(environ={"PATH": f"{bin_}:{os.environ['PATH']}"}) as host:
            assert found(containers=[f"trainer-{os.getpid()}"], host=host) == [inner]


def test_a_container_without_python() -> None:
    box = "7c3d" * 16
    with real.group(f"docker/{box}") as folder, real.started(["sh", "-c", "echo ready; exec sleep 60"]) as pid:
        (folder / "cgroup.procs").write_text(str(pid))
        error = refusal(containers=[box])
    assert "runs Python" in error.message
    assert str(pid) in error.hint


@pytest.mark.machine
def test_a_pid_as_its_container_calls_it(tmp_path: Path) -> None:
    if os.geteuid() != 0 or shutil.which("unshare") is None:
        cannot("namespaces", "a pid namespace needs root and unshare")
    need_mounts()
    pid = int(Path("/proc/sys/kernel/pid_max").read_text()) - 5  # nobody has it outside
    take = f'echo {pid - 1} > /proc/sys/kernel/ns_last_pid; "$@"; true'
    argv = [
        "unshare",
        "--pid",
        "--fork",
        "--mount-proc",
        "--kill-child",
        "sh",
        "-c",
        take,
        "sh",
        *real.PYTHON,
        script(tmp_path, "in.py"),
    ]
    with real.started(argv):
        message = refusal(pids=[pid]).message
    assert message.startswith(f"there is no process {pid}")
    assert f"has pid {pid} in its container" in message


@pytest.mark.parametrize(
    ("wanted", "yes"),
    [
        ("4c2f4c2f4c2f", True),
        ("4c2f", True),
        ("4c2f" * 16, True),
        ("4c", False),
        ("4c3f", False),
        ("web", False),
        ("pod-uid", True),
        ("", False),
    ],
)
def test_what_names_a_container(wanted: str, yes: bool) -> None:
    assert means(wanted, Place("4c2f4c2f4c2f", "docker", "pod-uid")) is yes
    assert means("trainer", Place("4c2f4c2f4c2f"), {"trainer", "main"})
    assert not means(wanted, Place())


def test_containers_of_a_kubernetes_node(tmp_path: Path) -> None:
    box = "5e6f" * 16
    logs = tmp_path / "var/log/containers"
    logs.mkdir(parents=True)
    (logs / f"trainer-0_team-a_main-{box}.log").touch()
    (logs / "nothing.log").touch()
    with LiveHost(root=str(tmp_path), environ={"PATH": "/nowhere"}) as host:
        assert {"trainer-0", "main", "team-a/trainer-0/main"} <= named(host)[box[:12]]
