"""`derived_from` tells the truth: without one of these inputs a derived fact is not worked out, and with them it is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from knowledge.derive import derive
from knowledge.facts import vocabulary
from knowledge.observation import Clock, Event, Observation, Origin, Scope, Source, Status, Subject, gpu, node
from tests.cases import each
from tests.probes.parse.vocabulary_check import faults_of

HOST = "n1"
SECOND = 10**9
GPU = gpu("0000:3b:00.0", HOST)
PROCESS = Subject(Scope.PROCESS, "42", node(HOST))
BOTH = Source("nvml-snapshot", "nvml")


def seen(fact: str, value: object, on: Subject = GPU, status: Status = Status.OK, at: int | None = None) -> Observation:
    return Observation(fact, on, value, status, BOTH, at)  # type: ignore[arg-type]


JOB = Subject(Scope.JOB, "7", node(HOST))
NIC = Subject(Scope.NIC, "mlx5_0", node(HOST))
MIG = Subject(Scope.MIG, "0", GPU)
USES = seen("process.uses_gpu", "gpu:0000:3b:00.0", PROCESS)
STATE = seen("process.state", "S", PROCESS)
OTHER = Subject(Scope.PROCESS, "43", node(HOST))
TWO_OWNERS = [USES, seen("process.uses_gpu", "gpu:0000:3b:00.0", OTHER), seen("process.owner", "pod a", PROCESS),
              seen("process.owner", "pod b", OTHER)]  # fmt: skip
BUSY = [*TWO_OWNERS, seen("process.gpu_utilization", 90, PROCESS), seen("process.gpu_utilization", 5, OTHER)]
HOLDING = [*TWO_OWNERS, seen("process.gpu_memory", 900, PROCESS), seen("process.gpu_memory", 50, OTHER)]
HAMI = seen("process.env", ("CUDA_DEVICE_MEMORY_LIMIT_0=4g", "CUDA_DEVICE_SM_LIMIT=30"), PROCESS)
RANKS = [seen("process.in_job", "job:7", PROCESS), seen("process.in_job", "job:7", OTHER)]
LOADED = Observation("node.driver.loaded_version", node(HOST), "550.90.07", source=BOTH, at=1_795_000_000_000_000_000)
# Active tests: what was measured, and what that is held against.
COPIED = [seen("benchmark.h2d", 27.0), seen("gpu.pcie.gen.max", 5), seen("gpu.pcie.width.max", 16)]
RUN = Subject(Scope.COLLECTIVE, "all_reduce", node(HOST))
REDUCED = [seen("benchmark.collective.busbw.largest", 200.0, RUN), seen("benchmark.collective.ranks", 8, RUN),
           seen("benchmark.collective.nodes", 1, RUN), seen("benchmark.collective.op", "all_reduce", RUN),
           seen("gpu.name", "NVIDIA H200")]  # fmt: skip
WRITE = Subject(Scope.OBJECT, "ib_write_bw", node(HOST))
WRITTEN = [seen("benchmark.rdma.bw.largest", 200.0, WRITE), seen("benchmark.rdma.device", "mlx5_0", WRITE),
           seen("port.rate", 400.0, Subject(Scope.PORT, "mlx5_0/1", node(HOST)))]  # fmt: skip

ON_BUS = Subject(Scope.PCI, "0000:3b:00.0", node(HOST))
AMD = seen("pci.accelerator", "amd", ON_BUS)
LISTED = seen("node.gpu.listed", 1, node(HOST))
SEEN_BY_DRIVER = Source("nvidia-smi", "smi.txt", 4)
BUS_HAS_MORE = [
    *(seen("gpu.on_bus", True, gpu(f"0000:{n}b:00.0", HOST)) for n in (1, 2, 3)),
    seen("node.pci.gpu_count", 3, node(HOST)),
    *(replace(seen("gpu.index", n, gpu(f"0000:{n}b:00.0", HOST)), source=SEEN_BY_DRIVER) for n in (1, 2)),
    replace(seen("node.gpu.listed", 2, node(HOST)), source=SEEN_BY_DRIVER),
]


# A GPU that is busy and does next to nothing, and what else is told of such a one.
WORKING = [seen("gpu.utilization.core", 99), seen("gpu.activity.sm", 7.0)]
DRAWING = [seen("gpu.utilization.core", 99), seen("gpu.power.draw", 131.0)]
LINKED = [*WORKING, seen("gpu.name", "NVIDIA H100 80GB HBM3")]
PART = [
    seen("mig.activity.graphics", 99.0, MIG),
    seen("mig.activity.sm", 6.0, MIG),
    seen("mig.activity.dram", 1.0, MIG),
]
FOUR = [seen(fact, value, gpu(f"0000:0{i}:00.0", HOST)) for i in range(1, 5)
        for fact, value in (("gpu.utilization.core", 99), ("gpu.activity.sm", 60.0 + i))]  # fmt: skip

ONE_IDLE = [seen(fact, value, gpu(f"0000:0{i}:00.0", HOST)) for i in range(1, 5)
            for fact, value in (("gpu.utilization.core", 0 if i == 1 else 99), ("gpu.activity.sm", 0.0 if i == 1 else 60.0 + i),
                                ("gpu.memory.used", 60000.0))]  # fmt: skip


def before(fact: str, now: float, then: float, on: Subject = GPU) -> list[Observation]:
    """A test now, and one in the history."""
    return [seen(fact, now, on), Observation(fact, on, then, Status.OK, Source("active-run", "history:1"))]


def grown(fact: str, on: Subject) -> list[Observation]:
    """Two looks at one counter, the later one first."""
    return [replace(seen(fact, value, on, at=at), clock=Clock.LOCAL) for value, at in ((3, 7_200 * SECOND), (0, 0))]


def back(fact: str, on: Subject, was: object, now: object) -> list[Observation]:
    """Two looks at one state, the later one first."""
    return [replace(seen(fact, value, on, at=at), clock=Clock.LOCAL) for value, at in ((now, 7_200 * SECOND), (was, 0))]


CHANGED = [
    seen(name, value, at=i * SECOND)
    for name, values in (("gpu.utilization.core", [0] * 5 + [99] * 5), ("gpu.activity.sm", [0.0] * 5 + [91.0] * 5))
    for i, value in enumerate(values)
]

# Of each derived fact a batch from which it follows.
BATCHES: dict[str, list[Observation]] = {
    "gpu.pcie.replay.limit": [seen("gpu.pcie.gen.max", 5), seen("gpu.pcie.width.max", 16)],
    "gpu.retired_pages.total": [seen("gpu.retired_pages.single_bit", 1), seen("gpu.retired_pages.double_bit", 2)],
    "gpu.row_remap.recurs": [replace(seen("xid", Event(63, {})), origin=Origin.TOLD), replace(seen("gpu.fault.back_after", "reset"), origin=Origin.TOLD)],
    "gpu.power.share": [seen("gpu.power.draw", 350.0), seen("gpu.power.limit", 700.0)],
    "gpu.memory.share": [seen("gpu.memory.used", 10.0), seen("gpu.memory.total", 80.0)],
    "gpu.clock.sm.share": [seen("gpu.clock.sm", 990), seen("gpu.clock.sm.max", 1980)],
    "gpu.nvlink.down_links": [seen("link.state", "inactive", Subject(Scope.LINK, "4", GPU))],
    "gpu.power.design": [*DRAWING, seen("gpu.name", "NVIDIA H100 80GB HBM3")],
    "gpu.work.class": WORKING,
    **dict.fromkeys(("gpu.work.before", "gpu.work.now.samples", "gpu.work.all.samples"), CHANGED),
    "gpu.work.busy": WORKING,
    "gpu.work.share": WORKING,
    "gpu.work.power": [*WORKING, DRAWING[1]],
    "gpu.work.power.limit": [*DRAWING, seen("gpu.power.limit", 700.0)],
    "gpu.work.samples": [WORKING[1], *(seen("gpu.utilization.core", 99 - i) for i in range(10))],
    "gpu.work.rank": [*WORKING, USES, seen("process.env", ("RANK=5",), PROCESS)],
    "gpu.work.seconds": [WORKING[1], *(seen("gpu.utilization.core", 99 - i, at=i * SECOND) for i in range(10))],
    "gpu.work.owner": [*WORKING, seen("pod.uses_gpu", "gpu:0000:3b:00.0", Subject(Scope.POD, "ml/train-0", node(HOST)))],
    "gpu.work.limit": [*DRAWING, seen("gpu.power.limit", 132.0)],
    "gpu.work.power.normal": [*DRAWING, seen("gpu.power.limit", 132.0), seen("gpu.power.limit.default", 700.0)],
    "gpu.work.clock.lost.least": [seen("gpu.utilization.core", 99), seen("gpu.clock.sm", 345)],
    "gpu.work.pcie.both": [seen("gpu.utilization.core", 92), seen("gpu.pcie.rx", 24.1), seen("gpu.pcie.tx", 23.0)],
    "gpu.work.nvlink.carries": [*LINKED, seen("gpu.nvlink.rx", 390.0)],
    "gpu.work.nvlink.assumed": [*WORKING, seen("gpu.nvlink.rx", 390.0)],
    "gpu.work.peers.spread": FOUR,
    "gpu.work.unread": [WORKING[0], replace(seen("gpu.activity.sm", None, status=Status.UNSUPPORTED), source=Source("dcgmi-dmon", "dmon.txt"))],
    "mig.work.owner": [*PART[:2], seen("pod.uses_mig", "mig:0@gpu:0000:3b:00.0", Subject(Scope.POD, "ml/nb-0", node(HOST)))],
    "gpu.work.cause": [*WORKING, seen("gpu.activity.dram", 1.0)],
    "gpu.work.pcie.share": [*LINKED, seen("gpu.pcie.rx", 50.0)],
    "gpu.work.pcie.carries": [*LINKED, seen("gpu.pcie.rx", 50.0)],
    "gpu.work.pcie.assumed": [seen("gpu.utilization.core", 92), seen("gpu.pcie.rx", 24.1)],
    "gpu.clock.sm.least": [seen("gpu.utilization.core", 99), seen("gpu.clock.sm", 345)],
    "gpu.work.nvlink.share": [*LINKED, seen("gpu.nvlink.rx", 50.0)],
    "gpu.work.clock.lost": [seen("gpu.utilization.core", 99), seen("gpu.clock.sm", 345), seen("gpu.clock.sm.max", 1980)],
    "gpu.work.held.power": [WORKING[0], seen("gpu.violation.power.share", 99)],
    "gpu.work.held.heat": [WORKING[0], seen("gpu.violation.thermal.now", True)],
    "gpu.work.held.brake": [WORKING[0], *(seen("gpu.clock.event.hw_power_brake", True, at=i) for i in range(12))],
    "mig.work.class": PART,
    "mig.work.busy": PART[:2],
    "mig.work.share": PART[:2],
    "mig.work.lost.share": PART,
    "mig.work.samples": [PART[1], *(seen("mig.activity.graphics", 99.0 - i, MIG) for i in range(10))],
    "gpu.work.programs": [*WORKING, USES, seen("process.uses_gpu", "gpu:0000:3b:00.0", OTHER)],
    "gpu.mig.unprofiled": [seen("mig.profile", "1g.10gb", MIG)],
    "gpu.work.idle.share": [seen("gpu.utilization.core", (99 - i) * (i % 2), at=i) for i in range(12)],
    "gpu.work.lost.share": WORKING,
    "gpu.work.at_stake": WORKING,
    "gpu.work.peers.share": FOUR,
    "gpu.work.peers.idle": FOUR,
    "gpu.work.peers.at_work": ONE_IDLE,
    "process.holds_gpu": [STATE, USES],
    "process.cpus_near_gpu": [STATE, USES, seen("process.computes", True, PROCESS),
                              seen("process.cpus_allowed", "0-7", PROCESS), seen("gpu.cpu_affinity", "0-3")],
    "gpu.owners": [STATE, USES, seen("process.owner", "job 7", PROCESS)],
    "gpu.owners.batch": [STATE, USES, seen("process.owner", "job 7", PROCESS)],
    "gpu.unlisted_holders": [STATE, seen("process.opens_gpu", "gpu:0000:3b:00.0", PROCESS),
                             seen("process.computes", True, PROCESS), seen("gpu.processes", 0),
                             seen("node.processes.on_gpu", 1, node(HOST))],
    "process.late.share": [seen("job.slow_rank.is_process", "process:42", JOB), seen("job.slow_rank.wait.share", 30.0, JOB)],
    "process.late.function": [seen("job.slow_rank.is_process", "process:42", JOB), seen("job.slow_rank.function", "f (a.py:1)", JOB)],
    "process.holds_up_job": [seen("job.hung.is_process", "process:42", JOB), seen("job.hung", True, JOB)],
    "process.rank": [seen("process.is_rank", "rank:3", PROCESS)],
    "process.gpu_idle.share": [USES, seen("gpu.window.utilization", 60.0)],
    "stack.sync.cost.share": [USES, seen("gpu.window.utilization", 60.0), seen("stack.sync.share", 30.0, PROCESS)],
    "stack.sync.host.share": [seen("process.uses_gpu", None, PROCESS, Status.NONE_SEEN), seen("stack.sync.share", 30.0, PROCESS),
                              seen("capture.window.seconds", 2.0, PROCESS)],
    "process.read.wait.share": [seen("stack.io.share", 30.0, PROCESS)],
    "process.read.wait.function": [seen("stack.io.share", 30.0, PROCESS), seen("stack.io.function", "f (a.py:1)", PROCESS)],
    "job.collective.share": [seen("process.in_job", "job:7", PROCESS), seen("stack.collective.share", 30.0, PROCESS),
                             seen("process.in_job", "job:7", Subject(Scope.PROCESS, "43", node(HOST))),
                             seen("stack.collective.share", 40.0, Subject(Scope.PROCESS, "43", node(HOST)))],
    "gpu.window.idle.share": [seen("gpu.window.utilization", 60.0)],
    "gpu.window.clock.lost.share": [seen("gpu.window.clock.share", 60.0)],
    "gpu.window.waits_for": [USES, seen("stack.collective.share", 60.0, PROCESS), seen("stack.collective.function", "all_reduce", PROCESS)],
    "gpu.window.seconds": [USES, seen("capture.window.seconds", 2.0, PROCESS)],
    "job.window.seconds": [seen("process.in_job", "job:7", PROCESS), seen("capture.window.seconds", 2.0, PROCESS)],
    "gpu.window.pcie.used.share": [seen("gpu.window.pcie.rx", 1e9), seen("gpu.window.pcie.tx", 1e9), seen("gpu.pcie.gen", 4),
                                   seen("gpu.pcie.width", 8)],
    "node.window.nic.used.share": [seen("node.window.nic.rx", 1e9, NIC), seen("node.window.nic.tx", 1e9, NIC), seen("nic.speed", 100.0, NIC)],
    "node.driver.branch.ended_days": [LOADED],
    "node.driver.usual": [seen("node.driver.version", version, node(name)) for name, version in (("n1", "570.124.06"), ("n2", "565.57.01"))],
    "node.cuda.toolkit.driver_needed": [seen("node.cuda.toolkit.version", "12.4.1", node(HOST))],
    "gpu.driver_needed": [seen("gpu.compute_capability", "9.0")],
    "gpu.cuda_needed": [seen("gpu.compute_capability", "9.0")],
    "gpu.needs_open_module": [seen("gpu.name", "NVIDIA B200")],
    "process.cuda.driver_needed": [seen("process.cuda.version", "12.4.127", PROCESS)],
    "node.torch.driver_needed": [seen("node.torch.cuda", "12.4", node(HOST))],
    "node.dcgm.driver_needed": [seen("node.dcgm.version", "4.2.3", node(HOST))],
    "gpu.dcgm_needed": [seen("gpu.compute_capability", "9.0")],
    "node.device_plugin.driver_needed": [seen("node.device_plugin.version", "0.17.1", node(HOST))],
    "node.device_plugin.toolkit_needed": [seen("node.device_plugin.version", "0.17.1", node(HOST))],
    "gpu.torch.has_kernels": [USES, seen("process.torch.architectures", ("sm_80", "sm_90"), PROCESS),
                              seen("gpu.compute_capability", "9.0")],
    "job.nccl.versions": [*RANKS, seen("process.nccl.version", "2.21.5", PROCESS)],
    "job.torch.versions": [*RANKS, seen("process.torch.version", "2.4.0", PROCESS)],
    "process.share.by": [HAMI],
    "process.share.memory_limit": [HAMI],
    "process.share.memory_used": [USES, HAMI, seen("process.gpu_memory", 900, PROCESS)],
    "process.share.compute_limit": [HAMI],
    "process.mps.served": [USES, seen("process.env", ("CUDA_MPS_PIPE_DIRECTORY=/tmp/mps",), PROCESS),
                           seen("process.gpu_contexts", ("compute", "mps"), PROCESS)],
    "process.visible_gpus.repeated": [seen("process.env", ("NVIDIA_VISIBLE_DEVICES=GPU-a,GPU-a",), PROCESS)],
    "gpu.sharing": [USES, HAMI],
    "gpu.share.memory_promised": [USES, HAMI, seen("gpu.memory.total", 81920)],
    "gpu.neighbour.name": BUSY,
    "gpu.neighbour.share": BUSY,
    "gpu.neighbour.busy": BUSY,
    "gpu.neighbour.memory": [*HOLDING, seen("gpu.memory.total", 81920)],
    "gpu.neighbour.memory_name": [*HOLDING, seen("gpu.memory.total", 81920)],
    "gpu.mps.bypassed": [USES, seen("process.comm", "nvidia-cuda-mps", PROCESS), seen("process.uses_gpu", "gpu:0000:3b:00.0", OTHER),
                         seen("process.gpu_contexts", ("compute",), OTHER)],
    "mig.memory.share": [seen("mig.memory.used", 100, MIG), seen("mig.memory.total", 1000, MIG)],
    "benchmark.host_copy.typical": COPIED,
    "benchmark.host_copy.floor": COPIED,
    "benchmark.peer_copy.typical": [seen("benchmark.d2d.median", 200.0), seen("gpu.name", "NVIDIA H200")],
    "benchmark.peer_copy.floor": [seen("benchmark.d2d.median", 200.0), seen("gpu.name", "NVIDIA H200")],
    "benchmark.collective.busbw.typical": REDUCED,
    "benchmark.collective.busbw.floor": REDUCED,
    "benchmark.rdma.bw.typical": WRITTEN,
    "benchmark.rdma.bw.floor": WRITTEN,
    "benchmark.h2d.change": before("benchmark.h2d", 50.0, 55.0),
    "benchmark.d2h.change": before("benchmark.d2h", 50.0, 55.0),
    "benchmark.d2d.change": before("benchmark.d2d.median", 300.0, 390.0),
    "benchmark.burn.change": before("benchmark.burn.gflops", 15000, 17000),
    "benchmark.collective.busbw.change": before("benchmark.collective.busbw.largest", 300.0, 480.0, RUN),
    "node.gpus.other": [AMD],
    "node.gpus.not_judged": [AMD],
    "node.gpus.unbound": [AMD, seen("pci.accelerator.bound", False, ON_BUS)],
    "node.gpus.unlisted": [AMD, seen("gpu.vendor_index", "amd:0")],
    "node.gpu.shown": [LISTED],
    "node.gpu.left_out": [LISTED, seen("gpu.index", 0)],
    "node.gpu.listed_fewest": [o for o in BUS_HAS_MORE if o.subject.scope is Scope.NODE],
    "node.gpu.left_out_names": BUS_HAS_MORE,
    "node.gpu.bus_only": [o for o in BUS_HAS_MORE if o.subject.scope is Scope.NODE],
    "gpu.unlisted": [LISTED, seen("gpu.index", 0), seen("xid", Event(79, {"text": "GPU has fallen off the bus."}))],
    "xid_implied": [seen("xid", Event(45, {"text": "Ch 00000008, caused by previous Xid 31", "caused_by": 31}))],
    "xid_kept": [seen("gpu.xid.last", 95)],
    "gpu_reset": [
        seen("xid", Event(154, {"text": "GPU recovery action changed from 0x1 (GPU Reset Required) to 0x0 (None)"})),
        seen("amdgpu_reset", Event(None, {"stage": "succeeded"})),
        seen("gpu_reset_attempt", Event(None, {"stage": "succeeded", "reporter": "nvidia-smi"})),
    ],
    "gpu_reset_failed": [
        seen("amdgpu_reset", Event(None, {"stage": "failed"})),
        seen("gpu_reset_attempt", Event(None, {"stage": "failed", "reporter": "kernel"})),
        replace(seen("gpu_reset_attempt", Event(None, {"stage": "begun"})), at=SECOND, clock=Clock.BOOT),
        replace(seen("gpu_init_failed", Event(None, {"reason": "x", "reason_zh": "x"})), at=2 * SECOND, clock=Clock.BOOT),
    ],
    "gpu_counter_growth": grown("gpu.row_remap.uncorrectable", GPU),
    "link_counter_growth": grown("link.errors.replay", Subject(Scope.LINK, "4", GPU)),
    "port_counter_growth": grown("port.counters.link_downed", Subject(Scope.PORT, "mlx5_0/1", node(HOST))),
    "nic_counter_growth": grown("nic.link.downs", NIC),
    "pci_counter_growth": grown("pci.aer.count.fatal", ON_BUS),
    "object_counter_growth": grown("dimm.errors.corrected", Subject(Scope.OBJECT, "A1", node(HOST))),
    "node_counter_growth": grown("node.memory.errors.corrected", node(HOST)),
    "gpu_state_change": back("gpu.fabric.state", GPU, "in_progress", "completed"),
    "link_state_change": back("link.state", Subject(Scope.LINK, "4", GPU), "inactive", "active"),
    "port_state_change": back("port.state", Subject(Scope.PORT, "mlx5_0/1", node(HOST)), "down", "active"),
    "nic_state_change": back("nic.operstate", NIC, "down", "up"),
    "node_state_change": back("node.gpu.count", node(HOST), 7, 8),
    "gpu.recovery_action": [seen("xid", Event(154, {"text": "GPU recovery action changed from 0x0 (None) to 0x1 (GPU Reset Required)"}))],
}  # fmt: skip


FILLED_IN = {"gpu.vendor"}  # tools tell it, and where none does the bus and the kernel log


def told(fact: str, batch: Sequence[Observation]) -> bool:
    return any(o.fact == fact and o.status is Status.OK for o in derive(batch))


def test_every_derived_fact_declares_its_inputs_and_has_a_case_here() -> None:
    vocab = vocabulary()
    assert {s.name for s in vocab if s.derived} == {s.name for s in vocab.having("derived_from")} == set(BATCHES)
    for spec in vocab.having("derived_from"):
        assert all(name in vocab for name in spec.derived_from), spec.name
        assert spec.name not in spec.derived_from


@each("fact", BATCHES)
def test_it_follows_from_declared_inputs_alone(fact: str) -> None:
    batch = BATCHES[fact]
    assert {o.fact for o in batch} <= set(vocabulary()[fact].derived_from)
    assert told(fact, batch)
    made = [o for o in derive(batch) if o.origin is Origin.DERIVED]
    assert faults_of(made, {*BATCHES, *FILLED_IN}) == []


@each("fact", BATCHES)
def test_it_follows_from_nothing_else(fact: str) -> None:
    """The whole of the other cases gives it no more than the declared inputs among them do."""
    declared = set(vocabulary()[fact].derived_from)
    every = [o for batch in BATCHES.values() for o in batch]
    assert not told(fact, [o for o in every if o.fact not in declared])


def test_having_builds_only_what_is_asked_for() -> None:
    vocab = vocabulary()
    assert {s.name for s in vocab.having("kind", "relation")} == {s.name for s in vocab if s.kind == "relation"}
    assert {s.name for s in vocab.having("ask")} == {s.name for s in vocab if s.ask is not None}
