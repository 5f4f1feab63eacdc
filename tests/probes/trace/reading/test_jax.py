"""JAX traces of GPUs and TPUs, in the words of the XLA profiler; each device's time counts once."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from probes.trace.columns import ABSENT, Cat, Group, wanted
from probes.trace.reading.reader import Trace, read

ASKED = wanted(
    gpu="stream correlation device module occupancy", runtime="correlation", op="dims", mark="", python="", other=""
)


def named(pid: int, process: str, threads: dict[int, str]) -> list[dict[str, Any]]:
    return [{"ph": "M", "pid": pid, "name": "process_name", "args": {"name": process}}] + [
        {"ph": "M", "pid": pid, "tid": tid, "name": "thread_name", "args": {"name": name}}
        for tid, name in threads.items()
    ]


def ran(pid: int, tid: int, name: str, ts: float, dur: float, **args: Any) -> dict[str, Any]:
    return {"ph": "X", "pid": pid, "tid": tid, "ts": ts, "dur": dur, "name": name, **({"args": args} if args else {})}


GPU = [
    *named(1, "/device:GPU:0", {14: "Stream #14(Compute)", 15: "Stream #15(MemcpyH2D)", 100: "Steps", 101: "XLA Modules", 102: "XLA Ops"}),
    *named(2, "/device:GPU:1", {14: "Stream #14(Compute)", 102: "XLA Ops"}),
    *named(701, "/host:CPU", {1: "python", 2: "tf_data"}),
    *named(702, "Task Environment", {1: "x"}),
    ran(1, 14, "loop_add_fusion", 10.0000001, 5.0, correlation_id="77", hlo_op="add.1", hlo_module="jit_step"),
    ran(1, 14, "ncclDevKernel_AllReduce", 16, 4),
    ran(1, 15, "MemcpyH2D", 11, 2, memcpy_details="kind_src:pageable size:1024"),
    ran(1, 14, "Memset 0", 30, 1),
    ran(1, 102, "add.1", 10, 5), ran(1, 101, "jit_step(1)", 10, 22), ran(1, 100, "3", 10, 22), ran(1, 102, "all-reduce.1", 16, 4),
    ran(2, 14, "loop_add_fusion", 12, 5), ran(2, 102, "add.1", 12, 5),
    ran(701, 1, "train", 0, 40, step_num="3"), ran(701, 1, "$train.py:12 step", 1, 30), ran(701, 1, "PjitFunction(step)", 2, 9),
    ran(701, 1, "cuLaunchKernel", 3, 1, correlation_id=77), ran(701, 2, "IteratorGetNext", 3, 1), ran(702, 1, "x", 1, 1),
    {},
]  # fmt: skip


@pytest.fixture
def gpu(tmp_path: Path) -> Trace:
    path = tmp_path / "host.trace.json"
    path.write_text(json.dumps({"displayTimeUnit": "ns", "metadata": {"highres-ticks": True}, "traceEvents": GPU}))
    return read(str(path), ASKED)


def names(trace: Trace, group: Group) -> list[str]:
    return [trace.strings[n] for n in trace[group].name]


def test_only_streams_are_device_time(gpu: Trace) -> None:
    assert names(gpu, Group.GPU) == [
        "loop_add_fusion",
        "MemcpyH2D",
        "loop_add_fusion",
        "ncclDevKernel_AllReduce",
        "Memset 0",
    ]
    assert gpu.gpu.cat.tolist() == [Cat.KERNEL, Cat.MEMCPY, Cat.KERNEL, Cat.KERNEL, Cat.MEMSET]
    assert gpu.gpu.ints("device").tolist() == [0, 0, 1, 0, 0]
    assert [gpu.strings[s] for s in gpu.gpu.ids("stream")] == ["14", "15", "14", "14", "14"]
    assert gpu.gpu.ints("correlation").tolist() == [77, ABSENT, ABSENT, ABSENT, ABSENT]
    assert gpu.strings[int(gpu.gpu.ids("module")[0])] == "jit_step"
    assert gpu.gpu.start[0] == 10_000


def test_the_host_side(gpu: Trace) -> None:
    assert names(gpu, Group.RUNTIME) == ["cuLaunchKernel"]
    assert gpu[Group.RUNTIME].ints("correlation").tolist() == [77]
    assert names(gpu, Group.OP) == ["PjitFunction(step)", "IteratorGetNext"]
    assert names(gpu, Group.PYTHON) == ["$train.py:12 step"]
    assert sorted(names(gpu, Group.MARK)) == ["3", "jit_step(1)", "train#3"]
    assert "x" in names(gpu, Group.OTHER)
    assert (gpu.kind, gpu.notes, gpu.whole) == ("jax", [], True)


def test_a_tpu_has_no_streams(tmp_path: Path) -> None:
    events = [
        *named(3, "/device:TPU:2", {1: "XLA Ops", 2: "XLA Modules"}),
        ran(3, 1, "fusion.3", 1, 2),
        ran(3, 2, "jit_f", 1, 2),
    ]
    path = tmp_path / "t.json"
    path.write_text(json.dumps({"traceEvents": events}))
    trace = read(str(path), ASKED)
    assert names(trace, Group.GPU) == ["fusion.3"]
    assert trace.gpu.ints("device").tolist() == [2]


def test_a_torch_trace_is_none(tmp_path: Path) -> None:
    path = tmp_path / "t.json"
    path.write_text(
        json.dumps({"traceEvents": [*named(1, "python", {}), ran(1, 1, "/host:CPU", 1, 1) | {"cat": "cpu_op"}]})
    )
    assert read(str(path), ASKED).kind == "kineto"
