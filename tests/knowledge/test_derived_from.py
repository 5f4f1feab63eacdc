"""`derived_from` tells the truth: without one of these inputs a derived fact is not worked out, and with them it is."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from knowledge.derive import derive
from knowledge.facts import vocabulary
from knowledge.observation import Event, Observation, Scope, Source, Status, Subject, gpu, node

HOST = "n1"
GPU = gpu("0000:3b:00.0", HOST)
PROCESS = Subject(Scope.PROCESS, "42", node(HOST))
BOTH = Source("nvml-snapshot", "nvml")


def seen(fact: str, value: object, on: Subject = GPU, status: Status = Status.OK) -> Observation:
    return Observation(fact, on, value, status, BOTH)  # type: ignore[arg-type]


JOB = Subject(Scope.JOB, "7", node(HOST))
NIC = Subject(Scope.NIC, "mlx5_0", node(HOST))
USES = seen("process.uses_gpu", "gpu:0000:3b:00.0", PROCESS)
STATE = seen("process.state", "S", PROCESS)
# Of each derived fact a batch from which it follows.
BATCHES: dict[str, list[Observation]] = {
    "gpu.pcie.replay.limit": [seen("gpu.pcie.gen.max", 5), seen("gpu.pcie.width.max", 16)],
    "gpu.retired_pages.total": [seen("gpu.retired_pages.single_bit", 1), seen("gpu.retired_pages.double_bit", 2)],
    "gpu.power.share": [seen("gpu.power.draw", 350.0), seen("gpu.power.limit", 700.0)],
    "gpu.memory.share": [seen("gpu.memory.used", 10.0), seen("gpu.memory.total", 80.0)],
    "gpu.clock.sm.share": [seen("gpu.clock.sm", 990), seen("gpu.clock.sm.max", 1980)],
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
    "xid_implied": [seen("xid", Event(45, {"text": "Ch 00000008, caused by previous Xid 31", "caused_by": 31}))],
    "gpu.recovery_action": [seen("xid", Event(154, {"text": "GPU recovery action changed from 0x0 (None) to 0x1 (GPU Reset Required)"}))],
}  # fmt: skip


def told(fact: str, batch: Sequence[Observation]) -> bool:
    return any(o.fact == fact and o.status is Status.OK for o in derive(batch))


def test_every_derived_fact_declares_its_inputs_and_has_a_case_here() -> None:
    vocab = vocabulary()
    assert {s.name for s in vocab if s.derived} == {s.name for s in vocab.having("derived_from")} == set(BATCHES)
    for spec in vocab.having("derived_from"):
        assert all(name in vocab for name in spec.derived_from), spec.name
        assert spec.name not in spec.derived_from


@pytest.mark.parametrize("fact", BATCHES)
def test_it_follows_from_declared_inputs_alone(fact: str) -> None:
    batch = BATCHES[fact]
    assert {o.fact for o in batch} <= set(vocabulary()[fact].derived_from)
    assert told(fact, batch)


@pytest.mark.parametrize("fact", BATCHES)
def test_it_follows_from_nothing_else(fact: str) -> None:
    """The whole of the other cases gives it no more than the declared inputs among them do."""
    declared = set(vocabulary()[fact].derived_from)
    every = [o for batch in BATCHES.values() for o in batch]
    assert not told(fact, [o for o in every if o.fact not in declared])


def test_having_builds_only_what_is_asked_for() -> None:
    vocab = vocabulary()
    assert {s.name for s in vocab.having("kind", "relation")} == {s.name for s in vocab if s.kind == "relation"}
    assert {s.name for s in vocab.having("ask")} == {s.name for s in vocab if s.ask is not None}
