"""The probe `system` on recorded answers: a sound node is silent, a missing answer is said, a replay says the same."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

from assistant.diagnosis import diagnose
from knowledge.observation import Observation, Status
from probes.base import Context, lines_of
from probes.host import CallKind, RecordingHost, ReplayHost, Reply
from probes.live import ProbeRequest, system
from probes.parse import nccl_log
from rules.loader import load
from tests import system_trees as trees
from tests.system_trees import Machine, healthy, snapshot

pytestmark = pytest.mark.process


REQUEST = ProbeRequest(5.0)


@cache
def sound() -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        return snapshot(healthy(Machine(cores=16)), Path(folder)).encode()


def reply(data: bytes = b"", status: Status = Status.OK, **more: object) -> Reply:
    return Reply(CallKind.SNAPSHOT, ("system",), status, data, **more)  # type: ignore[arg-type]


def collected(*replies: Reply) -> list[Observation]:
    return system.PROBE.collect(REQUEST, ReplayHost("n1", replies))


def test_a_sound_node() -> None:
    found = collected(reply(sound()))
    assert {o.fact for o in found} == set(system.PROBE.provides)
    assert {o.subject.host for o in found} == {"n1"}


def test_a_recording_of_it_says_the_same() -> None:
    first = RecordingHost(ReplayHost("n1", [reply(sound())]))
    found = system.PROBE.collect(REQUEST, first)
    assert system.PROBE.collect(ProbeRequest(0.1, {"any": "thing"}), ReplayHost("n1", first.replies)) == found


@pytest.mark.parametrize(
    ("answer", "status"),
    [
        (reply(status=Status.TIMEOUT, detail="no answer in 5 s"), Status.TIMEOUT),
        (reply(status=Status.DENIED, detail="may not start it"), Status.DENIED),
        (reply(b"", exit_code=1, stderr=b"Traceback"), Status.FAILED), (reply(b"garbage"), Status.FAILED), (None, Status.NOT_ASKED),
    ],
)  # fmt: skip
def test_no_answer_is_said(answer: Reply | None, status: Status) -> None:
    found = collected(*([answer] if answer else []))
    assert {o.fact for o in found} >= set(system.MAIN)
    assert {o.status for o in found} == {status}


def test_a_sound_node_gives_no_finding() -> None:
    diagnosis = diagnose(collected(reply(sound())), load())
    assert [f.id for f in diagnosis.findings] == []


def starved() -> Machine:
    """Every core is busy and two tasks wait for each that runs."""
    machine = Machine(
        cores=16,
        ticks={"user": 50},
        files={"/proc/pressure/cpu": trees.pressure(92), "/proc/loadavg": "50.0 40.0 20.0 48/900 1\n"},
    )
    machine.later["/proc/schedstat"] = trees.schedstat(16, 1, 10**9)
    return healthy(machine)


def thrashing() -> Machine:
    """Swap and memory pressure on a node without memory."""
    machine = Machine(
        files={"/proc/meminfo": trees.meminfo(4000, SwapTotal=8000), "/proc/pressure/memory": trees.pressure(80, 45)}
    )
    machine.later["/proc/vmstat"] = trees.table(
        trees.VMSTAT | {"pswpin": 9000, "pswpout": 9000, "allocstall_normal": 5000}
    )
    return healthy(machine)


def drops() -> Machine:
    """One core does all interrupts of an adapter and cannot keep up."""
    machine = Machine(cores=32, per_core={3: {"softirq": 50}})
    machine.later["/proc/net/dev"] = trees.NET_HEAD + trees.net("eth0", rx_drop=5000)
    sick = healthy(machine)
    sick.files["/proc/interrupts"] = trees.interrupts(sick, 0, "eth0-TxRx-0", 3, 9000)
    sick.later["/proc/interrupts"] = trees.interrupts(sick, 1, "eth0-TxRx-0", 3, 9000)
    return sick


def slow_clocks() -> Machine:
    """Held at the lowest frequency, with a clock that is slow to read, after an oops."""
    policy = trees.CPU + "cpu0/cpufreq/"
    return healthy(Machine(files={
        "/sys/devices/system/clocksource/clocksource0/current_clocksource": "acpi_pm\n", policy + "scaling_driver": "acpi-cpufreq\n",
        policy + "scaling_governor": "powersave\n", policy + "scaling_max_freq": "800000\n", "/proc/sys/kernel/tainted": "12417\n",
    }))  # fmt: skip


def stolen() -> Machine:
    """A virtual machine on a full host."""
    return healthy(Machine(ticks={"user": 20, "steal": 20, "idle": 10}))


def waits_for_disk() -> Machine:
    """A disk with long requests; everybody waits."""
    machine = Machine(files={"/proc/pressure/io": trees.pressure(95, 80)})
    machine.later["/proc/diskstats"] = trees.disk("nvme0n1", 510, 5100, 5000, 99000)
    sick = healthy(machine)
    sick.later["/proc/stat"] = trees.stat(sick, 1).replace("procs_blocked 0", "procs_blocked 30")
    return sick


def container() -> Machine:
    """At its limits: CPU, memory, tasks; something was killed."""
    group = trees.cgroup2("/", cpu_max="100000 100000\n", memory_max="1000000000\n", memory_current="1000000000\n",
                          memory_stat="anon 1\nactive_file 100\ninactive_file 100\nslab_reclaimable 0\n", pids_max="100\n",
                          pids_current="99\n", cpu_stat="nr_periods 900\nnr_throttled 400\nthrottled_usec 1\n",
                          memory_events="low 0\nhigh 0\nmax 7\noom 1\noom_kill 1\n")  # fmt: skip
    group = {path.replace("//", "/"): text for path, text in group.items()}
    machine = Machine(files=group | {"/proc/self/cgroup": "0::/\n", "/.dockerenv": ""})
    machine.later["/sys/fs/cgroup/cpu.stat"] = "nr_periods 905\nnr_throttled 405\nthrottled_usec 500000\n"
    return healthy(machine)


def full_tables() -> Machine:
    """No files and no threads are left."""
    return healthy(Machine(files={"/proc/sys/fs/file-nr": "990\t0\t1000\n", "/proc/sys/kernel/pid_max": "1999\n"}))


@pytest.mark.parametrize(
    ("machine", "roots", "symptoms"),
    [
        (starved, {"cpu-starved"}, set()), (thrashing, {"host-memory-thrashing"}, {"host-memory-nearly-gone", "host-swaps"}),
        (drops, {"interrupts-on-one-core"}, {"nic-drops-packets"}),
        (slow_clocks, {"cpu-held-at-lowest-frequency", "cpu-frequency-capped", "slow-clock-source", "kernel-tainted-by-fault"}, set()),
        (stolen, {"cpu-time-stolen"}, set()), (waits_for_disk, {"disk-saturated"}, {"node-waits-for-storage"}),
        (container, {"cgroup-cpu-throttled", "cgroup-killed-for-memory", "container-tasks-nearly-out"}, {"cgroup-memory-near-limit"}),
        (full_tables, {"file-descriptors-nearly-out", "node-threads-nearly-out"}, set()),
    ],
)  # fmt: skip
def test_a_sick_node(machine: Callable[[], Machine], roots: set[str], symptoms: set[str], tmp_path: Path) -> None:
    """The real collector on a tree, the parser and all rules: what is found, and nothing else."""
    diagnosis = diagnose(collected(reply(snapshot(machine(), tmp_path).encode())), load())
    named = {f.id: f.rule.id for f in diagnosis.findings}
    found = {role: {named[f.id] for f in diagnosis.findings if f.role == role} for role in ("root", "symptom")}
    assert found == {"root": roots, "symptom": symptoms}


def test_small_shared_memory_explains_what_the_job_says() -> None:
    data = json.loads(sound())
    data["readings"][1]["/dev/shm"] |= {"size": 64 << 20, "free": 60 << 20, "mounted": True}
    log = (
        "gpu-1:41:99 [0] misc/shmutils.cc:72 NCCL WARN Error: failed to extend /dev/shm/nccl-Xk2fPz to 9637892 bytes\n"
        "gpu-1:41:99 [0] NCCL WARN Error while creating shared memory segment /dev/shm/nccl-Xk2fPz (size 9637888), error: No space left on device (28)\n"
    )
    told = nccl_log.FORMAT.parse(lines_of(log), Context("job.log", "n1"))
    diagnosis = diagnose([*collected(reply(json.dumps(data).encode())), *told], load())
    roles = {f.rule.id: str(f.role) for f in diagnosis.findings}
    assert roles["shared-memory-too-small"] == "root"
    assert roles["nccl-shared-memory-full"] == "symptom"
