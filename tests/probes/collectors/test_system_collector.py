"""The collector `system` as a child process: on this machine, as root and as nobody, and on trees of other machines."""

from __future__ import annotations

import ast
import json
import os
import resource
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from knowledge.observation import Observation, Status
from probes.base import Context
from probes.parse import system_snapshot
from tests import system_trees as trees
from tests.system_trees import COLLECTOR, Machine, healthy, snapshot

pytestmark = pytest.mark.process

WINDOW = ("--interval", "0.05")


def by_fact(text: str) -> dict[str, Observation]:
    return {o.fact: o for o in system_snapshot.parse(text, Context()) if o.subject.scope == "node"}


# --- this machine -------------------------------------------------------------------------


@pytest.mark.parametrize("user", [None, 65534])
def test_this_machine(user: int | None) -> None:
    if user is not None and os.geteuid() != 0:
        pytest.skip("only root can become somebody else")
    document, text = trees.run("--deadline", "10", user=user)
    assert system_snapshot.FORMAT.sniff(text[:1000]) == 100
    seen = by_fact(text)
    cpus = os.sysconf("SC_NPROCESSORS_ONLN")
    assert (seen["node.cpu.online"].value, seen["node.hostname"].value) == (cpus, os.uname().nodename)
    assert seen["node.kernel.version"].value == os.uname().release
    assert document["boot_id"] == Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    total = seen["node.memory.total"].value
    assert isinstance(total, float)
    assert total == pytest.approx(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 2**20, rel=0.01)
    window = seen["node.cpu.busy"].window
    assert window is not None
    assert 0.4e9 < window[1] - window[0] < 3e9
    for fact in ("node.cpu.busy", "node.context_switches", "node.memory.available", "node.shm.size", "node.disk.read"):
        assert seen[fact].status.answered, seen[fact].detail
    assert not [o for o in seen.values() if o.status is Status.NOT_ASKED], "every file is asked for"


def test_work_is_seen() -> None:
    spin = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    try:
        _, text = trees.run("--deadline", "10", "--interval", "0.6")
    finally:
        spin.kill()
        spin.wait()
    seen = by_fact(text)["node.cpu.core.busy.max"].value
    assert isinstance(seen, float)
    assert seen > 40, "a process that spins was given a core"


def test_old_interpreters_can_read_it() -> None:
    assert ast.parse(COLLECTOR.read_text(), feature_version=(3, 9))


def test_own_cost_at_128_cores(tmp_path: Path) -> None:
    first, second = trees.write(healthy(Machine(cores=128, interrupts=1000, pci=8)), tmp_path)
    costs = []
    for _ in range(3):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        trees.run("--root", str(first), "--later", str(second), *WINDOW)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        costs.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    began = time.process_time()
    sum(i * i for i in range(1_000_000))
    slow = max(1.0, (time.process_time() - began) / 0.08)  # of a machine that is slower, or busy
    assert min(costs) < 0.1 * slow, costs


# --- trees --------------------------------------------------------------------------------


def test_what_a_tree_says(tmp_path: Path) -> None:
    seen = by_fact(snapshot(healthy(), tmp_path))
    expected = {
        "node.hostname": "gpu-12", "node.cpu.online": 8, "node.cpu.cores": 4, "node.cpu.threads_per_core": 2,
        "node.cpu.packages": 2, "node.cpu.busy": 10.0, "node.load.per_cpu": 0.388, "node.numa.nodes": 3,
        "node.numa.available.min": 20.0, "node.memory.available.share": 90.0, "node.interrupts.device": "nvidia",
        "node.interrupts.device.cpu": 2, "node.interrupts.device.core_share": 100.0, "node.cgroup.version": "v2",
        "node.kernel.taints": ("out_of_tree_module", "proprietary_module", "unsigned_module"), "node.virtual": False,
        "node.container": False, "node.disk.busiest": "nvme0n1", "node.cpu.boost": True, "node.iommu.parameter": "iommu=pt",
        "node.tcp.retransmits.share": 0.02, "node.clock.source": "tsc", "node.cpu.throttle.rate": 0.0,
    }  # fmt: skip
    assert {fact: seen[fact].value for fact in expected} == expected


def test_secrets_are_not_kept(tmp_path: Path) -> None:
    text = snapshot(healthy(), tmp_path)
    assert "geheim" not in text
    assert "UUID" not in text
    assert "token" not in text


def test_256_cores(tmp_path: Path) -> None:
    machine = healthy(Machine(cores=256, interrupts=2000, pci=16, per_core={255: {"softirq": 50}}))
    text = snapshot(machine, tmp_path)
    seen = by_fact(text)
    assert (seen["node.cpu.online"].value, seen["node.cpu.cores"].value) == (256, 128)
    assert seen["node.cpu.core.softirq.cpu"].value == 255
    assert seen["node.cpu.core.softirq.max"].value == 100.0
    assert len(text) < 400_000, "interrupts that did not come are left out"
    assert len([o for o in system_snapshot.parse(text, Context()) if o.fact == "gpu.numa"]) == 16


def test_a_kernel_without_pressure_and_schedstat(tmp_path: Path) -> None:
    files: dict[str, str | None] = {f"/proc/pressure/{r}": None for r in ("cpu", "memory", "io", "irq")}
    machine = healthy(Machine(files=files | {"/proc/schedstat": None}))
    machine.later["/proc/schedstat"] = None
    seen = by_fact(snapshot(machine, tmp_path))
    for fact in ("node.pressure.cpu.some.avg10", "node.pressure.memory.full.now", "node.cpu.queue_wait"):
        assert seen[fact].status is Status.UNSUPPORTED
    assert "psi=1" in seen["node.pressure.io.full.avg60"].detail
    assert seen["node.cpu.busy"].status is Status.OK, "the others are not lost"


POD = "/kubepods/besteffort/pod7/ab12"


def version1(folder: str) -> dict[str, str | None]:
    """A container of version 1: a limit of two CPUs and 4 GiB."""
    base = "/sys/fs/cgroup/"
    above: dict[str, str | None] = {
        f"{base}memory/memory.limit_in_bytes": "9223372036854771712\n", f"{base}cpu,cpuacct/cpu.cfs_quota_us": "-1\n",
    }  # fmt: skip
    return (above if folder else {}) | {
        f"{base}cpu,cpuacct{folder}/cpu.cfs_quota_us": "200000\n", f"{base}cpu,cpuacct{folder}/cpu.cfs_period_us": "100000\n",
        f"{base}cpu,cpuacct{folder}/cpu.stat": "nr_periods 100\nnr_throttled 40\nthrottled_time 5000000000\n",
        f"{base}memory{folder}/memory.limit_in_bytes": f"{4 << 30}\n", f"{base}memory{folder}/memory.usage_in_bytes": f"{4 << 30}\n",
        f"{base}memory{folder}/memory.stat": f"cache 1\nactive_file 1\ninactive_file 2\ntotal_active_file {1 << 30}\ntotal_inactive_file {2 << 30}\n",
        f"{base}memory{folder}/memory.oom_control": "oom_kill_disable 0\nunder_oom 0\noom_kill 2\n",
        f"{base}memory{folder}/memory.failcnt": "90\n", f"{base}pids{folder}/pids.max": "1000\n",
        f"{base}pids{folder}/pids.current": "990\n", f"{base}cpuset{folder}/cpuset.cpus": "2-5\n",
    }  # fmt: skip


def mounts1(root: str) -> str:
    """Mounts of the hierarchies of version 1, whose root is `root`."""
    return trees.ROOT_MOUNT.replace("ext4", "overlay") + "".join(
        f"3{i} 30 0:{i} {root} /sys/fs/cgroup/{name} ro - cgroup cgroup rw,{name}\n"
        for i, name in enumerate(("cpu,cpuacct", "memory", "pids", "cpuset"))
    )


@pytest.mark.parametrize("root", ["/", POD], ids=["seen from the host", "seen from within"])
def test_control_groups_of_version_1(tmp_path: Path, root: str) -> None:
    """A container without a namespace of its own reads its path on the host, and its folder is where they are mounted."""
    lines = "".join(f"{i}:{name}:{POD}\n" for i, name in enumerate(("cpu,cpuacct", "memory", "pids", "cpuset")))
    group: dict[str, str | None] = {"/proc/self/cgroup": lines, "/proc/self/mountinfo": mounts1(root)}
    machine = healthy(Machine(files=group | version1(POD if root == "/" else "")))
    machine.files = {p: t for p, t in machine.files.items() if not p.startswith("/sys/fs/cgroup/user.slice")}
    stat = next(p for p in machine.files if p.endswith("cpu.stat"))
    machine.later = {p: t for p, t in machine.later.items() if not p.startswith("/sys/fs/cgroup/")} | {
        stat: "nr_periods 105\nnr_throttled 44\nthrottled_time 5400000000\n"
    }
    seen = by_fact(snapshot(machine, tmp_path))
    expected = {
        "node.cgroup.version": "v1", "node.cgroup.cpu.limit": 2.0, "node.cgroup.cpu.throttled": 80.0,
        "node.cgroup.memory.limit": 4096.0, "node.cgroup.memory.used": 4096.0, "node.cgroup.memory.held": 1024.0,
        "node.cgroup.memory.share": 25.0, "node.cgroup.memory.oom_kills": 2, "node.cgroup.pids.share": 99.0,
        "node.cgroup.cpuset": "2-5", "node.cgroup.cpuset.count": 4, "node.container": True, "node.container.kind": "kubernetes",
    }  # fmt: skip
    assert {fact: seen[fact].value for fact in expected} == expected
    assert seen["node.cgroup.memory.high_hits"].status is Status.NOT_APPLICABLE


def test_the_tightest_limit_of_version_2_may_be_above(tmp_path: Path) -> None:
    limits = trees.cgroup2("/pod", memory_max=f"{2 << 30}\n", memory_current=f"{2 << 30}\n", cpu_max="50000 100000\n",
                           memory_stat=f"anon 1\nactive_file {1 << 20}\ninactive_file 0\nslab_reclaimable 0\n")  # fmt: skip
    group: dict[str, str | None] = {"/proc/self/cgroup": "0::/pod/main\n"}
    machine = healthy(Machine(files=group | limits | trees.cgroup2("/pod/main", cpu_max="400000 100000\n")))
    seen = by_fact(snapshot(machine, tmp_path))
    assert seen["node.cgroup.cpu.limit"].value == 0.5
    assert seen["node.cgroup.cpu.limit"].source.call == "/sys/fs/cgroup/pod/cpu.max"
    assert seen["node.cgroup.memory.share"].value == pytest.approx(100 * 2047 / 2048, abs=0.01)
    assert seen["node.cgroup.path"].value == "/sys/fs/cgroup/pod/main"


def test_a_path_of_another_namespace_is_not_believed(tmp_path: Path) -> None:
    machine = healthy(Machine(files={"/proc/self/cgroup": "0::/../../elsewhere\n"}))
    document = json.loads(snapshot(machine, tmp_path))
    assert document["cgroups"] == {"unified": ["/sys/fs/cgroup"]}


def test_an_unreadable_file_loses_nothing_else(tmp_path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("root alone can take files away from nobody")
    first, second = trees.write(healthy(), tmp_path)
    for root in (first, second):
        (root / "proc/meminfo").chmod(0)
    for folder in (tmp_path, *tmp_path.parents):  # that of pytest is the user's alone, and so is that of a worker
        folder.chmod(folder.stat().st_mode | 0o055)
    _, text = trees.run("--root", str(first), "--later", str(second), *WINDOW, user=65534)
    seen = by_fact(text)
    assert seen["node.memory.total"].status is Status.DENIED
    assert "sudo" in seen["node.memory.total"].detail
    assert seen["node.cpu.busy"].status is Status.OK


# --- deadlines ----------------------------------------------------------------------------


def test_a_file_that_never_answers(tmp_path: Path) -> None:
    """A pipe that nobody writes to: opening it does not return."""
    first, second = trees.write(healthy(), tmp_path)
    (first / "proc/vmstat").unlink()
    os.mkfifo(first / "proc/vmstat")
    document, text = trees.run("--deadline", "3", "--root", str(first), "--later", str(second))
    assert document["hung"] == "/proc/vmstat"
    seen = by_fact(text)
    assert seen["node.kernel.version"].status is Status.OK, "what was read before is there"
    assert seen["node.faults.major"].status is Status.TIMEOUT
    assert "/proc/vmstat" in seen["node.faults.major"].detail
    assert seen["node.memory.available"].status is Status.TIMEOUT
    assert seen["node.cpu.busy"].status is Status.TIMEOUT


def test_a_window_longer_than_the_deadline_is_shortened(tmp_path: Path) -> None:
    first, second = trees.write(healthy(), tmp_path)
    document, text = trees.run("--deadline", "3", "--interval", "60", "--root", str(first), "--later", str(second))
    assert "hung" not in document
    assert by_fact(text)["node.cpu.busy"].status is Status.OK


@pytest.mark.parametrize("words", [["--wrong", "1"], ["--deadline"], ["--deadline", "soon"]])
def test_called_wrongly(words: list[str]) -> None:
    done = subprocess.run([sys.executable, "-I", str(COLLECTOR), *words], capture_output=True, check=False, timeout=20)
    assert (done.returncode, done.stdout) == (2, b"")
    assert done.stderr.startswith(b"system: ")


def test_an_empty_machine(tmp_path: Path) -> None:
    document, text = trees.run("--root", str(tmp_path), *WINDOW)
    assert document["host"] == ""
    seen = system_snapshot.parse(text, Context())
    assert {o.fact for o in seen} >= set(system_snapshot.MAIN)
    assert not [
        o for o in seen if o.status is Status.OK and o.fact.startswith(("node.cpu", "node.memory", "node.disk"))
    ]


# --- the kernel's own answers ---------------------------------------------------------------


def test_writing_to_a_disk_is_seen(tmp_path: Path) -> None:
    code = "import os,sys\nf=os.open(sys.argv[1],os.O_CREAT|os.O_WRONLY)\nwhile True: os.pwrite(f,b'x'*(1<<20),0); os.fsync(f)"
    writer = subprocess.Popen([sys.executable, "-c", code, str(tmp_path / "x")])
    try:
        _, text = trees.run("--deadline", "10")
    finally:
        writer.kill()
        writer.wait()
    seen = by_fact(text)["node.disk.write"]
    if seen.status is Status.NOT_APPLICABLE or not os.stat(tmp_path).st_dev >> 8:  # noqa: PTH116 - the device, not the file
        pytest.skip("the folder of the tests lies on no disk of the machine")
    assert isinstance(seen.value, float)
    assert seen.value > 0.5


def within_a_namespace(script: str) -> str:
    """What the collector prints after `script` in a mount namespace of its own."""
    argv = ["unshare", "-m", "sh", "-ec", f'{script}; exec "$@"', "sh", sys.executable, "-I", "-B", str(COLLECTOR)]
    if os.geteuid() != 0 or shutil.which("unshare") is None:
        pytest.skip("only root can make a mount namespace")
    done = subprocess.run([*argv, *WINDOW], capture_output=True, check=False, timeout=30)
    if done.returncode:
        pytest.skip(f"no mount namespace here: {done.stderr.decode()[:200]}")
    return done.stdout.decode()


def test_shared_memory_as_docker_gives_it() -> None:
    text = within_a_namespace("mount -t tmpfs -o size=64m tmpfs /dev/shm; head -c 48000000 /dev/zero > /dev/shm/x")
    seen = by_fact(text)
    assert (seen["node.shm.size"].value, seen["node.shm.mounted"].value) == (64.0, True)
    assert seen["node.shm.share"].value == pytest.approx(71.5, abs=0.5)


def test_a_kernel_file_that_is_hidden() -> None:
    """A container may have /proc/stat covered: an empty file is not understood, and nothing else is lost."""
    seen = by_fact(within_a_namespace("mount --bind /dev/null /proc/stat"))
    assert seen["node.cpu.busy"].status is Status.FAILED
    assert seen["node.memory.available"].status is Status.OK


@pytest.fixture
def limited() -> Iterator[dict[str, Path]]:
    """Control groups of version 1 with a tenth of a CPU and 256 MiB, empty again afterwards."""
    base = Path("/sys/fs/cgroup")
    groups = {name: base / name / f"gpudiag-test-{os.getpid()}" for name in ("cpu", "memory")}
    made: list[Path] = []
    try:
        for folder in groups.values():
            folder.mkdir()
            made.append(folder)
        (groups["cpu"] / "cpu.cfs_quota_us").write_text("10000")
        (groups["memory"] / "memory.limit_in_bytes").write_text(str(256 << 20))
    except OSError as error:
        for folder in made:
            folder.rmdir()
        pytest.skip(f"no control group of version 1 can be made here: {error}")
    yield groups
    for folder in made:
        for _ in range(100):
            try:
                folder.rmdir()
                break
            except OSError:
                time.sleep(0.05)


def test_a_real_limit_holds_a_group_back(limited: dict[str, Path]) -> None:
    enter = "".join(f"echo $$ > {folder}/cgroup.procs; " for folder in limited.values())
    work = f'"{sys.executable}" -c "x = b\'y\' * (200 << 20)\nwhile True: pass" & pid=$!; '
    # a tenth of a CPU writes 200 MiB in its own time
    held = f"{limited['memory']}/memory.usage_in_bytes"
    work += f'n=0; while [ $(cat "{held}") -lt 190000000 ] && [ $n -lt 100 ]; do sleep 0.2; n=$((n+1)); done; '
    script = f'{enter}{work}"{sys.executable}" -I -B "{COLLECTOR}" --deadline 20; kill $pid'
    done = subprocess.run(["sh", "-c", script], capture_output=True, check=True, timeout=60)
    seen = by_fact(done.stdout.decode())
    assert seen["node.cgroup.cpu.limit"].value == 0.1
    assert seen["node.cgroup.cpu.limit"].source.call == f"{limited['cpu']}/cpu.cfs_quota_us"
    throttled, share = seen["node.cgroup.cpu.throttled"].value, seen["node.cgroup.memory.share"].value
    assert isinstance(throttled, float)
    assert isinstance(share, float)
    assert throttled > 50, "it wants a whole CPU and gets a tenth"
    assert seen["node.cgroup.memory.limit"].value == 256.0
    assert 70 < share < 100
    assert seen["node.cgroup.memory.oom_kills"].value == 0
