"""What is refused before a capture, and why: real processes in every odd state."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from probes.capture.model import GENTLE, INJECTED, Item, Process, Refusal, Target
from probes.capture.whom import _access, _room, _tools, identity, preflight
from probes.live_host import LiveHost
from tests.components import cannot
from tests.live_jobs import Job, torch_python
from tests.probes.capture import real_processes as real
from tests.probes.live.machine import NOBODY, need_mounts, need_nobody

pytestmark = pytest.mark.process

ALL = frozenset(Item)


def codes(pid: int, items: Sequence[Item] | frozenset[Item] = ALL, *, force: bool = False) -> dict[str, str]:
    """Code of the refusal of each item, after a look at what is said."""
    found = preflight.check(Target(identity.read(pid)), items, force=force)
    for refusal in found.values():
        well_said(refusal)
    return {item.value: refusal.code for item, refusal in found.items()}


def well_said(refusal: Refusal) -> None:
    assert refusal.why.en
    assert refusal.why.zh
    assert bool(refusal.remedy.en) == bool(refusal.remedy.zh)


def injected(code: str, **others: str) -> dict[str, str]:
    return {item.value: code for item in INJECTED} | others


# --- a job that nothing is wrong with ----------------------------------------------------------


@pytest.mark.machine
def test_a_training_on_the_cpu_is_refused_nothing_but_kernels() -> None:
    with Job("train.py", interpreter=torch_python(), pause=0.01) as job:
        found = codes(job.pid)
        assert found == {"kernels": "no-cuda", "memory": "no-cuda"}
        assert set(found.values()) <= preflight.NOT_APPLICABLE
        before = job.iterations
        job.advance(3)
        assert job.iterations > before


def test_python_without_torch_gives_stacks_and_what_a_local_holds() -> None:
    with Job("threads.py", "150") as job:
        found = codes(job.pid)
    assert found == dict.fromkeys(("torch", "kernels", "memory", "shapes", "flops", "gradnorm"), "no-torch")


def test_only_what_was_asked_for_is_told() -> None:
    with real.sleeping() as pid:
        assert codes(pid, [Item.CPU, Item.STACKS]) == {}
        assert codes(pid, [Item.SHAPES]) == {"shapes": "no-torch"}
        assert codes(pid, []) == {}


# --- processes that are none ---------------------------------------------------------------------


def test_a_process_that_has_ended() -> None:
    with real.sleeping() as pid:
        target = Target(identity.read(pid))
    assert {r.code for r in preflight.check(target, ALL).values()} == {"gone"}
    assert len(preflight.check(target, ALL)) == len(Item)


def test_a_pid_that_another_process_has_now() -> None:
    with real.sleeping() as pid:
        old = Process(pid, identity.read(pid).start - 1, "python")
        assert {r.code for r in preflight.check(Target(old), ALL).values()} == {"gone"}


def test_a_zombie() -> None:
    with real.zombie() as pid:
        assert set(codes(pid).values()) == {"zombie"}


def test_a_thread_of_the_kernel() -> None:
    try:
        found = identity.read(2)
    except identity.NoProcessError:
        pytest.skip("no kernel threads are seen here")
    if found.name != "kthreadd":
        pytest.skip("pid 2 is no kernel thread here")
    assert set(codes(2).values()) == {"kernel-thread"}


def test_a_program_that_is_no_python() -> None:
    with real.started(["sh", "-c", "echo ready; exec sleep 60"]) as pid:
        assert codes(pid) == injected("no-python", stacks="no-python")


# --- states ------------------------------------------------------------------------------------


def test_a_stopped_process() -> None:
    with real.sleeping() as pid:
        os.kill(pid, signal.SIGSTOP)
        real.in_state(pid, "T")
        assert codes(pid) == injected("stopped")
        assert real.state(pid) == "T"
        os.kill(pid, signal.SIGCONT)
        real.in_state(pid, "S")
        assert "stopped" not in codes(pid).values()


def test_one_that_is_let_go_in_time_is_not_stopped() -> None:
    with real.sleeping() as pid:
        os.kill(pid, signal.SIGSTOP)
        real.in_state(pid, "T")
        with subprocess.Popen(["sh", "-c", f"sleep 0.05; kill -CONT {pid}"]):
            assert "stopped" not in codes(pid, [Item.LOSS]).values()


def test_one_that_waits_in_the_kernel(tmp_path: Path) -> None:
    with real.uninterruptible(tmp_path) as pid:
        assert codes(pid) == injected("state-d")


@pytest.mark.machine
@pytest.mark.parametrize("tool", ["strace", "gdb"])
def test_one_that_is_traced(tool: str, tmp_path: Path) -> None:
    path = shutil.which(tool)
    if path is None:
        pytest.skip(f"{tool} is not installed")
    with real.sleeping() as pid:
        log = tmp_path / "log"
        argv = {
            "strace": [path, "-o", str(log), "-p", str(pid)],
            "gdb": [path, "-q", "-batch", "-ex", "shell sleep 60", "-p", str(pid)],
        }[tool]
        child = subprocess.Popen(
            argv, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
        )
        try:
            real.until(lambda: identity.read(pid).tracer == child.pid, f"{tool} does not trace", 60)
            found = preflight.check(Target(identity.read(pid)), ALL)
            assert {item for item, r in found.items() if r.code == "tracer"} == INJECTED
            assert tool in found[Item.TORCH].why.en
            assert str(child.pid) in found[Item.TORCH].why.zh
            assert not GENTLE & set(found)
        finally:
            os.killpg(child.pid, signal.SIGKILL)
            child.wait()
        real.until(lambda: identity.read(pid).tracer == 0, "it is still traced")


# --- permissions ---------------------------------------------------------------------------------

CHECK = """
import json, sys
from probes.capture.whom import identity, preflight
from probes.capture.model import Item, Target
found = preflight.check(Target(identity.read(int(sys.argv[1]))), list(Item))
print(json.dumps({i.value: [r.code, r.why.en, r.remedy.en] for i, r in found.items()}))
"""


def as_nobody(pid: int, before: Sequence[str] = ()) -> Any:
    """(Codes of all refusals, why, remedy) as user nobody sees it."""
    found = real.as_nobody(CHECK, str(pid), before=before)
    assert "cpu" not in found
    assert found["stacks"][0] == found["torch"][0]
    return {code for code, _, _ in found.values()}, found["torch"][1], found["torch"][2]


@pytest.mark.machine
def test_a_process_of_another_user() -> None:
    with real.sleeping() as pid:
        found, why, remedy = as_nobody(pid)
    assert found == {"no-permission-user"}
    assert "belongs to user root; gpudiag runs as nobody without CAP_SYS_PTRACE" in why
    assert f"sudo gpudiag profile --pid {pid}" in remedy
    assert "--cap-add SYS_PTRACE" in remedy


@pytest.mark.machine
def test_a_process_of_another_group() -> None:
    argv = ["setpriv", "--reuid=65534", "--regid=12345", "--clear-groups", need_nobody(), "-I", "-S", "-c", real.SLEEP]
    with real.started(argv) as pid:
        found, why, _ = as_nobody(pid)
    assert found == {"no-permission-user"}
    assert "another group" in why


@pytest.mark.machine
def test_a_process_that_may_not_be_dumped() -> None:
    code = "import ctypes; ctypes.CDLL(None).prctl(4, 0, 0, 0, 0); " + real.SLEEP
    with real.of_nobody(code) as pid:
        found, why, _ = as_nobody(pid)
        assert "dumpable" in why
        assert "no-permission" not in "".join(codes(pid).values())  # root may
    assert found == {"no-permission-dumpable"}


@pytest.mark.machine
def test_a_process_with_more_rights_than_ours() -> None:
    more = ["--inh-caps=+net_admin", "--ambient-caps=+net_admin"]
    with real.started([*NOBODY, *more, need_nobody(), "-I", "-S", "-c", real.SLEEP]) as pid:
        found, why, _ = as_nobody(pid)
    assert found == {"no-permission-capabilities"}
    assert "capabilities" in why


@pytest.mark.machine
def test_rights_of_an_inner_user_namespace_count_nothing_outside() -> None:
    if shutil.which("unshare") is None:
        cannot("namespaces", "needs unshare")
    need_mounts()
    with real.sleeping() as pid:
        found, _, remedy = as_nobody(pid, ["unshare", "--user", "--map-root-user"])
    assert found == {"no-permission-namespace"}
    assert "outside of the container" in remedy


@pytest.mark.machine
def test_ones_own_processes_may_be_looked_into() -> None:
    with real.of_nobody() as pid:
        found = real.as_nobody(CHECK, str(pid))
    assert not {code for code, _, _ in found.values() if code.startswith("no-permission")}


@pytest.mark.parametrize("level", [1, 2])
def test_the_sentence_on_yama(level: int) -> None:
    refusal = _access._yama(Process(42, 1, "python"), level)
    well_said(refusal)
    assert f"level {level}" in refusal.why.en
    assert ("sysctl" in refusal.remedy.en) is (level == 1)
    assert _access.yama() in range(4)


# --- room -------------------------------------------------------------------------------------------


@pytest.mark.machine
def test_a_target_without_room_for_a_trace() -> None:
    need_mounts()
    full = 'for d in /tmp /dev/shm /var/tmp; do mount -t tmpfs -o size=1m none $d; done; exec "$@"'
    with real.started(
        ["unshare", "-m", "--propagation", "private", "sh", "-euc", full, "sh", *real.PYTHON, "-c", real.SLEEP]
    ) as pid:
        process = identity.read(pid)
        refusal = _room.space(process)
        assert refusal is not None
        well_said(refusal)
        assert refusal.code == "no-space"
        assert f"/proc/{pid}/root/tmp" in refusal.remedy.en
        assert _room.folder(process, need=4096) == "/tmp"


@pytest.mark.machine
def test_the_next_folder_is_taken_when_one_is_not_to_be_written() -> None:
    need_mounts()
    with real.started(["unshare", "-m", "--propagation", "private", "sh", "-euc", "mount -t tmpfs -o ro none /tmp; exec \"$@\"", "sh",
                       *real.PYTHON, "-c", real.SLEEP]) as pid:  # fmt: skip
        assert _room.folder(identity.read(pid), need=4096) in ("/dev/shm", "/var/tmp")


def test_a_control_group_that_is_nearly_full() -> None:
    with real.group(
        f"gpudiag-test-{os.getpid()}", "memory" if Path("/sys/fs/cgroup/memory").exists() else ""
    ) as folder:
        limit = next((p for n in ("memory.max", "memory.limit_in_bytes") if (p := folder / n).exists()), None)
        if limit is None:
            pytest.skip("no control group limits memory here")
        limit.write_text(str(300 << 20))
        with real.sleeping() as pid:
            (folder / "cgroup.procs").write_text(str(pid))
            refusal = _room.memory(identity.read(pid))
            assert refusal is not None
            well_said(refusal)
            assert (refusal.code, refusal.forced) == ("near-memory-limit", True)
            assert "300 MiB" in refusal.why.en
            assert str(folder) in refusal.why.en
            assert set(codes(pid).values()) == {"near-memory-limit"}
            assert "near-memory-limit" not in codes(pid, force=True).values()


def test_a_machine_with_room() -> None:
    tight = _room.tightest(os.getpid())
    assert tight is not None
    assert 0 < tight.left <= tight.limit


# --- other profilers, py-spy ------------------------------------------------------------------------


def profiler(pid: int) -> str:
    with LiveHost() as host:
        return _tools.profiled_by(identity.read(pid), host)


def test_a_job_under_nsys_by_its_variable() -> None:
    with real.sleeping(env={"CUDA_INJECTION64_PATH": "/opt/nsys/libToolsInjection64.so"}) as pid:
        assert profiler(pid) == "CUDA_INJECTION64_PATH=/opt/nsys/libToolsInjection64.so"


def test_a_job_under_nsys_by_what_is_mapped(tmp_path: Path) -> None:
    library = tmp_path / "libToolsInjection64.so"
    library.write_bytes(bytes(4096))
    with real.started(
        [
            *real.PYTHON,
            "-c",
            f"import mmap; f = open({str(library)!r}, 'r+b'); m = mmap.mmap(f.fileno(), 0); {real.SLEEP}",
        ]
    ) as pid:
        assert profiler(pid) == "libToolsInjection64.so"


def test_a_job_under_nsys_by_who_started_it(tmp_path: Path) -> None:
    shell = shutil.which("sh")
    assert shell is not None
    shutil.copy(shell, tmp_path / "nsys")
    line = " ".join([*real.PYTHON, "-c", f'"{real.SLEEP}"'])
    with real.started([str(tmp_path / "nsys"), "-c", f"{line}; true"]) as outer:
        (pid,) = real.children(outer)
        assert profiler(pid) == f"Nsight Systems (process {outer}, nsys)"


def test_a_job_under_no_profiler() -> None:
    with real.sleeping() as pid:
        assert profiler(pid) == ""


VERSIONS = st.tuples(st.integers(0, 3), st.integers(0, 9), st.integers(0, 30))


@given(VERSIONS, VERSIONS)
def test_a_newer_py_spy_reads_no_less(one: tuple[int, int, int], other: tuple[int, int, int]) -> None:
    old, new = sorted((one, other))
    assert _tools.newest_read(old) <= _tools.newest_read(new)


@pytest.mark.parametrize(
    ("said", "version"), [("py-spy 0.4.3", (0, 4, 3)), ("py-spy", None), ("", None), ("py-spy 0.4", None)]
)
def test_what_py_spy_says_of_itself(said: str, version: tuple[int, int, int] | None) -> None:
    assert _tools.py_spy_version(said) == version


def test_a_python_without_the_gil(tmp_path: Path) -> None:
    """Told by its name here; `interpreter` also knows it by what it exports."""
    source = Path(need_nobody()).resolve()
    shutil.copy(source, tmp_path / "python3.13t")
    env = {"PYTHONHOME": "/usr", "PATH": os.environ["PATH"]}
    with real.started([str(tmp_path / "python3.13t"), "-S", "-c", real.SLEEP], env=env) as pid:
        found = codes(pid, [Item.STACKS, Item.CPU])
    assert found == {"stacks": "free-threaded"}


def test_it_is_quick_and_leaves_nothing() -> None:
    with Job("threads.py", "150") as job:
        opened = len(list(Path(f"/proc/{job.pid}/fd").iterdir()))
        codes(job.pid)
        time.sleep(0.05)
        assert len(list(Path(f"/proc/{job.pid}/fd").iterdir())) == opened
        assert identity.read(job.pid).threads == 151
        assert identity.read(job.pid).tracer == 0
