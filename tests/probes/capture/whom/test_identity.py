"""Who a process is: real ones of other users, in namespaces, with many threads, and others that took the same pid."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from knowledge.errors import UsageError
from knowledge.observation import Status
from probes.capture.model import Process
from probes.capture.whom import identity
from probes.capture.whom._kin import Kin, is_python, kind, trains
from probes.host import CallKind, ReplayHost, Reply
from probes.live_host import LiveHost
from tests.components import cannot
from tests.live_jobs import Job, python, torch_python
from tests.probes.capture import real_processes as real
from tests.probes.live.machine import NOBODY, need_mounts, need_nobody

pytestmark = pytest.mark.process

TICK = 2.5 / os.sysconf("SC_CLK_TCK")  # seconds after which two starts differ for certain


def test_a_child_of_ours() -> None:
    with real.sleeping("--token", "hunter2") as pid:
        found = identity.read(pid)
        real.in_state(pid, "S")
        assert identity.read(pid).state == "S"
    assert (found.pid, found.inner_pid, found.parent) == (pid, pid, os.getpid())
    assert found.command[-2:] == ("--token", "***")
    assert (found.uid, found.user) == (os.getuid(), identity.user(os.getuid()))
    assert (found.threads, found.tracer, found.contained, found.container) == (1, 0, False, "")
    assert found.python is not None
    assert found.python.version == sys.version_info[:2]
    assert (found.python.torch, found.python.cuda) == ("absent", False)
    assert found.root == f"/proc/{pid}/root"


def test_a_program_that_is_no_python() -> None:
    with real.started(["sh", "-c", "echo ready; sleep 60"]) as pid:
        assert identity.read(pid).python is None


def test_the_number_of_a_thread_is_its_process() -> None:
    with Job("threads.py", "150") as job:
        tasks = sorted(int(path.name) for path in Path(f"/proc/{job.pid}/task").iterdir())
        found = identity.read(tasks[-1])
        assert len(identity.thread_names(job.pid)) == 151
    assert tasks[-1] != job.pid
    assert (found.pid, found.threads) == (job.pid, 151)


@pytest.mark.parametrize("pid", [0, -1, -4242, 1 << 22, 1 << 70])
def test_nothing_has_such_a_pid(pid: int) -> None:
    with pytest.raises(identity.NoProcessError) as caught:
        identity.read(pid)
    assert caught.value.code == "gone"
    assert isinstance(caught.value, UsageError)


def test_an_ended_process_is_the_same_until_its_parent_asks() -> None:
    child = subprocess.Popen([*real.PYTHON, "-c", ""])
    found = identity.read(child.pid)
    real.in_state(child.pid, "Z")
    assert identity.same(found)
    child.wait()
    assert not identity.same(found)


def test_processes_that_vanish_between_reads() -> None:
    """Whatever the moment, there is a whole answer or none."""
    stop = threading.Event()
    seen: list[int] = []

    def churn() -> None:
        while not stop.is_set():
            seen.append(os.spawnlp(os.P_NOWAIT, "true", "true"))
            os.waitpid(seen[-1], 0)

    thread = threading.Thread(target=churn)
    thread.start()
    told = gone = 0
    try:
        with LiveHost() as host:
            while told + gone < 300:
                if not seen:
                    continue
                try:
                    found = identity.read(seen[-1] + random.randint(-2, 2), host)
                    told += found.pid > 0
                except identity.NoProcessError:
                    gone += 1
    finally:
        stop.set()
        thread.join()
    assert gone > 0


# --- the law: a process is itself, and nobody else --------------------------------------------

# In a pid namespace of its own it starts and ends children, each time with the pid that it is told to take.
REUSE = """
import json, os, sys, time
sys.path.insert(0, sys.argv[1])
from probes.capture.whom import identity
from probes.capture.model import Process
orders, tick = json.loads(sys.argv[2]), float(sys.argv[3])
def child(pid):
    with open("/proc/sys/kernel/ns_last_pid", "w") as file:
        file.write(str(pid - 1))
    made = os.fork()
    if not made:
        time.sleep(60)
        os._exit(0)
    assert made == pid, (made, pid)
alive, known, wrong = {}, [], []
def look(pid):
    row = identity.collector.row_of(pid, identity.stat_of(pid))
    return Process(pid, row[identity.collector.START], row[identity.collector.NAME])
for number in orders:
    pid = 100 + number
    if pid in alive:
        os.kill(pid, 9); os.waitpid(pid, 0); del alive[pid]
        time.sleep(tick)
    else:
        child(pid); alive[pid] = look(pid); known.append(alive[pid])
    wrong += [k.pid for k in known if identity.same(k) is not any(k is a for a in alive.values())]
for pid in alive:
    os.kill(pid, 9); os.waitpid(pid, 0)
print(json.dumps({"wrong": wrong, "used_again": len(known) - len({k.pid for k in known})}))
"""


def _reuse(orders: list[int]) -> dict[str, object]:
    import json

    if os.geteuid() != 0 or shutil.which("unshare") is None:
        cannot("namespaces", "a pid namespace needs root and unshare")
    need_mounts()
    done = subprocess.run(
        ["unshare", "--pid", "--fork", "--mount-proc", "--kill-child", sys.executable, "-c", REUSE, str(real.ROOT), json.dumps(orders),
         str(TICK)],
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    if "ns_last_pid" in done.stderr:
        pytest.skip("this kernel lets nobody choose a pid")
    assert done.returncode == 0, done.stderr
    return dict(json.loads(done.stdout))


@pytest.mark.machine
@settings(max_examples=6)
@given(st.lists(st.integers(0, 3), min_size=1, max_size=24))
def test_same_means_this_very_process_whatever_pids_are_used_again(orders: list[int]) -> None:
    assert _reuse(orders)["wrong"] == []


@pytest.mark.machine
def test_a_pid_that_is_used_again() -> None:
    assert _reuse([0, 0, 0, 1, 0, 1, 0]) == {"wrong": [], "used_again": 2}


@given(st.integers(1, 1 << 22), st.integers(0, 1 << 40), st.integers(0, 1 << 40))
def test_of_two_starts_at_most_one_is_here(pid: int, one: int, other: int) -> None:
    first, second = Process(pid, one, "a"), Process(pid, other, "b")
    assert one == other or not (identity.same(first) and identity.same(second))


# --- namespaces, users, groups --------------------------------------------------------------------


def _unshared(*flags: str) -> list[str]:
    if os.geteuid() != 0 or shutil.which("unshare") is None:
        cannot("namespaces", "namespaces need root and unshare")
    need_mounts()
    return ["unshare", *flags]


@pytest.mark.machine
def test_in_a_pid_and_mount_namespace() -> None:
    argv = _unshared("--pid", "--mount", "--fork", "--kill-child", "--mount-proc")
    with real.started([*argv, *real.PYTHON, "-c", real.SLEEP]) as outer:
        (pid,) = real.children(outer)
        found = identity.read(pid)
    assert (found.pid, found.inner_pid, found.contained) == (pid, 1, True)
    assert found.python is not None


@pytest.mark.machine
def test_in_a_user_namespace_it_is_whom_we_see() -> None:
    argv = [*NOBODY, *_unshared("--user", "--map-root-user"), need_nobody(), "-I", "-S", "-c", real.SLEEP]
    with real.started(argv) as pid:
        found = identity.read(pid)
    assert (found.uid, found.user) == (65534, identity.user(65534))
    assert (found.contained, found.inner_pid) == (False, pid)


@pytest.mark.machine
def test_in_a_file_system_of_its_own() -> None:
    root = os.environ.get("GPUDIAG_PYTHON314_ROOT", "").rstrip("/")
    if not root or os.geteuid() != 0:
        pytest.skip("GPUDIAG_PYTHON314_ROOT names no file system with a Python")
    with real.started(["chroot", root, python(3, 14).removeprefix(root), "-I", "-S", "-c", real.SLEEP]) as pid:
        found = identity.read(pid)
        assert Path(found.root + "/usr/bin/python3.14").exists()
    assert found.python is not None
    assert found.python.version == (3, 14)


def test_a_container_by_its_control_group() -> None:
    name = "4c2f" * 16
    with real.group(f"docker/{name}") as folder, real.sleeping() as pid:
        (folder / "cgroup.procs").write_text(str(pid))
        found = identity.read(pid)
    assert found.container == name[:12]


@pytest.mark.machine
def test_of_another_user() -> None:
    with real.of_nobody() as pid:
        found = identity.read(pid)
    assert (found.uid, found.user) == (65534, "nobody")


@pytest.mark.machine
def test_nobody_reads_what_everybody_may() -> None:
    code = (
        "import json, sys\nfrom probes.capture.whom import identity\np = identity.read(int(sys.argv[1]))\n"
        "print(json.dumps([p.pid, p.uid, p.state, len(p.command), p.python is None, identity.same(p)]))"
    )
    with real.sleeping() as pid:
        found = real.as_nobody(code, str(pid))
    assert found == [pid, 0, "S", 5, True, True]


HIDDEN = """
import json, sys
from probes.capture.whom import identity
try:
    identity.read(int(sys.argv[1]))
except identity.NoProcessError as error:
    print(json.dumps([error.code, error.message, error.hint]))
"""


@pytest.mark.machine
def test_a_process_that_proc_hides() -> None:
    need_mounts()
    with real.sleeping() as pid:
        script = 'mount -t proc -o hidepid=2 proc /proc && exec "$@"'
        argv = [
            *NOBODY,
            "/usr/bin/env",
            f"PYTHONPATH={real.ROOT}",
            "PYTHONDONTWRITEBYTECODE=1",
            need_nobody(),
            "-c",
            HIDDEN,
            str(pid),
        ]
        done = subprocess.run(
            ["unshare", "-m", "sh", "-euc", script, "sh", *argv],
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
            cwd="/",
        )
    assert done.returncode == 0, done.stderr
    assert '"hidden"' in done.stdout
    assert "hidepid" in done.stdout
    assert "root" in done.stdout


# --- helpers ----------------------------------------------------------------------------------

WORKERS = """
import multiprocessing, os, subprocess, sys, time
def work(): time.sleep(120)
if __name__ == "__main__":
    context = multiprocessing.get_context(sys.argv[1])
    workers = [context.Process(target=work) for _ in range(2)]
    for w in workers: w.start()
    shell = subprocess.Popen(["sleep", "120"])
    other = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(120)"])
    print("workers", *(w.pid for w in workers), flush=True)
    print("other", other.pid, flush=True)
    print("ready", flush=True)
    time.sleep(120)
"""


def _pids(job: Job, word: str) -> list[int]:
    line = next(line for line in job.output.splitlines() if line.startswith(word + " "))
    return sorted(int(part) for part in line.split()[1:])


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
@pytest.mark.parametrize("version", [(3, minor) for minor in range(8, 14)], ids=lambda v: f"{v[0]}.{v[1]}")
def test_workers_however_they_were_started(version: tuple[int, int], method: str, tmp_path: Path) -> None:
    script = tmp_path / "job.py"
    script.write_text(WORKERS)
    with Job(str(script), method, interpreter=python(*version)) as job:
        (other,) = _pids(job, "other")
        found = identity.helpers(job.pid)
        with LiveHost() as host:
            kinds = dict(identity.kin(job.pid, host))
        assert sorted(p.pid for p in found) == _pids(job, "workers")
    assert kinds[other] is Kin.OTHER
    others = {k for pid, k in kinds.items() if pid != other and pid not in {p.pid for p in found}}
    assert others == {"fork": set(), "spawn": {Kin.TRACKER}, "forkserver": {Kin.TRACKER, Kin.SERVER}}[method]


LOADER = """
import os, sys, time
import torch
from torch.utils.data import DataLoader, Dataset
class Slow(Dataset):
    def __len__(self): return 1 << 20
    def __getitem__(self, i): time.sleep(0.05); return torch.zeros(1)
if __name__ == "__main__":
    loader = DataLoader(Slow(), num_workers=int(sys.argv[2]), multiprocessing_context=sys.argv[1])
    batches = iter(loader)
    next(batches)
    (torch.ones(3, requires_grad=True) * 2).sum().backward()
    if sys.argv[1] == "fork":
        from torch._inductor.compile_worker.subproc_pool import SubprocPool
        pool = SubprocPool(1)
        print("compiler", pool.process.pid, flush=True)
    print("workers", *(w.pid for w in batches._workers), flush=True)
    print("ready", flush=True)
    while True: next(batches)
"""


@pytest.mark.machine
@pytest.mark.parametrize(("method", "count"), [("fork", 2), ("spawn", 1), ("forkserver", 1)])  # those import torch each
def test_workers_of_a_data_loader(method: str, count: int, tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text(LOADER)
    with Job(str(script), method, str(count), interpreter=torch_python()) as job:
        assert len(_pids(job, "workers")) == count
        assert sorted(p.pid for p in identity.helpers(job.pid)) == _pids(job, "workers")
        if method == "fork":
            with LiveHost() as host:
                kinds = dict(identity.kin(job.pid, host))
            (compiler,) = _pids(job, "compiler")
            assert kinds[compiler] is Kin.COMPILER


@pytest.mark.machine
def test_ranks_that_torch_spawned_are_no_workers(spawned: Job) -> None:
    with LiveHost() as host:
        kinds = dict(identity.kin(spawned.pid, host))
    assert sorted(pid for pid, k in kinds.items() if k is Kin.RANK) == _pids(spawned, "ranks")
    assert identity.helpers(spawned.pid) == ()


# --- what a child is, from its words --------------------------------------------------------------

WORDS = st.lists(st.text(max_size=30), max_size=5)


@given(WORDS, WORDS, WORDS, st.booleans(), st.booleans())
def test_whatever_the_words_are_something_is_said(
    words: list[str], threads: list[str], above: list[str], forked: bool, computes: bool
) -> None:
    found = kind(words, threads, above, forked=forked, computes=computes)
    assert found in Kin
    if forked:
        assert found is not Kin.OTHER


@pytest.mark.parametrize(
    ("path", "is_one"),
    [("/usr/bin/python3.11", True), ("python", True), ("/opt/conda/bin/python3.13t", True), ("/x/python3.8 (deleted)", True),
     ("pypy3.10", True), ("/usr/bin/python3-config", False), ("ipython", False), ("", False), ("pythonista", False),
     ("/usr/bin/python3.11-dbg", True)],
)  # fmt: skip
def test_file_names_of_interpreters(path: str, is_one: bool) -> None:
    assert is_python(path) is is_one


def test_threads_of_one_that_trains() -> None:
    assert trains(["python", "pt_autograd_0"])
    assert trains(["python", "pt_nccl_watchdg"])
    assert not trains(["pt_data_worker", "pt_data_pin", "python"])


def test_a_read_that_hangs_costs_the_command_line_and_no_more() -> None:
    """What waits for the lock of a process's memory is given up by the helper, and the rest is told."""
    with real.sleeping() as pid:
        call = (f"/proc/{pid}/cmdline",)
        host = ReplayHost("gpu-1", [Reply(CallKind.FILE, call, Status.TIMEOUT, detail="no answer in 5 s")])
        found = identity.read(pid, host)
    assert (found.pid, found.command, found.python) == (pid, (), None)
