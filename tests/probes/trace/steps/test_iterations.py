"""Iterations: which marks count, which work is charged to which, and which iteration is out of the ordinary."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from knowledge.errors import InputError
from probes.trace.columns import Cat, Group, Strings, Table
from probes.trace.model import Iterations
from probes.trace.reading.reader import Trace, read
from probes.trace.steps.iterations import NEEDS, iterations
from probes.trace.steps.markers import MOST, Step, step_of
from probes.trace.steps.outliers import unusual
from tests.trace_files import DATA_LOADER, Job, TraceFile, data_bound

NCCL = "ncclDevKernel_AllReduce_Sum_f32_RING_LL()"


def found_in(file: TraceFile, folder: Path, marker: str = "", style: str = "kineto") -> Iterations:
    return iterations(read(file.save(folder / "t.json", style=style), NEEDS), marker)


def behind(marks: Sequence[tuple[str, int, int]], delay: int, **file: object) -> TraceFile:
    """One kernel of 60 us from the middle of each mark, on the device `delay` us later."""
    trace = TraceFile()
    for i, (name, start, dur) in enumerate(marks, 1):
        trace.annotation(name, start, dur)
        trace.launch(start + dur // 2, 2, correlation=i)
        trace.kernel("gemm", start + dur // 2 + delay, 60, correlation=i)
    return trace


def test_kernels_count_where_they_were_launched_not_where_they_ran(tmp_path: Path) -> None:
    trace = behind([(f"ProfilerStep#{n}", n * 100, 100) for n in range(4, 8)], delay=250)
    found = found_in(trace, tmp_path)
    assert (found.marker, found.clock, len(found.items)) == ("ProfilerStep", "gpu", 4)
    assert [i.number for i in found.items] == [4, 5, 6, 7]
    assert all(i.kernels == 1 for i in found.items)
    assert all(i.compute_ns == 60_000 for i in found.items)
    assert found.items[1].start_ns == found.items[0].end_ns == 760_000
    assert found.items[1].idle_ns == 40_000
    assert found.items[1].cpu_start_ns == 500_000
    assert found.between_ns == 0


def test_what_was_launched_before_the_first_iteration_delays_its_start(tmp_path: Path) -> None:
    trace = behind([("ProfilerStep#1", 1000, 200), ("ProfilerStep#2", 1200, 200)], delay=400)
    trace.launch(900, 2, correlation=99)
    trace.kernel("earlier", 920, 300, correlation=99)
    first = found_in(trace, tmp_path).items[0]
    assert first.start_ns == 1_220_000
    assert first.kernels == 1


def test_a_kernel_without_a_call_and_a_lower_id_came_before(tmp_path: Path) -> None:
    trace = TraceFile()
    trace.kernel("earlier", 950, 200, correlation=3)
    trace.annotation("ProfilerStep#1", 1000, 500)
    for i in range(4):
        trace.launch(1010 + i, 1, correlation=10 + i)
        trace.kernel("gemm", 1200 + 60 * i, 50, correlation=10 + i)
    (one,) = found_in(trace, tmp_path).items
    assert (one.start_ns, one.end_ns, one.kernels) == (1_150_000, 1_430_000, 4)


def test_the_backward_threads_launches_belong_to_the_step(tmp_path: Path) -> None:
    trace = TraceFile().annotation("ProfilerStep#1", 0, 100).annotation("ProfilerStep#1", 12, 2, gpu=True)
    trace.launch(10, 1, correlation=1).kernel("forward", 12, 2, correlation=1)
    trace.launch(50, 1, correlation=2, tid=77).kernel("backward", 60, 30, correlation=2)
    (one,) = found_in(trace, tmp_path).items
    assert (one.start_ns, one.end_ns, one.kernels) == (0, 90_000, 2)


def test_without_calls_the_devices_own_marks_serve(tmp_path: Path) -> None:
    trace = TraceFile().annotation("ProfilerStep#1", 0, 100).annotation("ProfilerStep#2", 100, 100)
    for n in (1, 2):
        trace.annotation(f"ProfilerStep#{n}", 300 * n, 50, gpu=True).annotation(
            f"ProfilerStep#{n}", 300 * n + 20, 60, gpu=True, stream=9
        )
        trace.kernel("gemm", 300 * n, 80)
    found = found_in(trace, tmp_path)
    assert found.clock == "gpu"
    assert [(i.start_ns, i.end_ns) for i in found.items] == [(300_000, 380_000), (600_000, 680_000)]
    assert found.between_ns == 220_000
    assert any("device-side" in n.en for n in found.notes)


def test_marks_of_the_device_alone(tmp_path: Path) -> None:
    trace = TraceFile()
    for n in (1, 2):
        trace.annotation(f"step[DECODE bs={n}]", 300 * n, 50, gpu=True).launch(1000, 1, correlation=n)
        trace.kernel("gemm", 300 * n, 40, correlation=n)
    found = found_in(trace, tmp_path)
    assert [(i.start_ns, i.end_ns, i.compute_ns) for i in found.items] == [
        (300_000, 350_000, 40_000),
        (600_000, 650_000, 40_000),
    ]


def test_a_copy_that_runs_on_does_not_swallow_later_iterations(tmp_path: Path) -> None:
    trace = behind([(f"ProfilerStep#{n}", n * 100, 100) for n in range(1, 6)], delay=30)
    trace.launch(160, 1, correlation=99, name="cudaMemcpyAsync").memcpy(
        "Memcpy DtoH", 185, 290, stream=9, correlation=99
    )
    found = found_in(trace, tmp_path)
    assert [i.number for i in found.items] == [1, 2, 3, 4, 5]
    assert [i.compute_ns for i in found.items] == [60_000] * 5
    assert [i.end_ns for i in found.items] == [n * 100_000 + 140_000 for n in range(1, 6)]
    assert found.items[1].mem_ns == 100_000


def test_without_a_device_only_the_hosts_times_are_known(tmp_path: Path) -> None:
    found = found_in(TraceFile().annotation("ProfilerStep#1", 0, 100).op("aten::mm", 1, 5), tmp_path)
    assert (found.clock, found.device) == ("cpu", False)
    assert found.items[0].span_ns == 100_000
    assert any("only the host's" in n.en for n in found.notes)


def test_no_marks_is_said(tmp_path: Path) -> None:
    found = found_in(TraceFile().kernel("gemm", 0, 5), tmp_path)
    assert (found.marker, found.items, found.median_ns) == ("", (), None)
    assert found.notes


def test_a_trailing_step_without_work_is_none(tmp_path: Path) -> None:
    trace = behind([("ProfilerStep#1", 0, 100), ("ProfilerStep#2", 100, 100)], delay=5)
    trace.annotation("ProfilerStep#3", 200, 1)
    found = found_in(trace, tmp_path)
    assert [i.number for i in found.items] == [1, 2]
    assert any("left out" in n.en for n in found.notes)


def test_the_old_format_keeps_annotations_among_operators(tmp_path: Path) -> None:
    trace = TraceFile()
    for n in (5, 6):
        trace.op(f"ProfilerStep#{n}", n * 100, 100).op(DATA_LOADER, n * 100, 30)
        trace.launch(n * 100 + 40, 2, correlation=n).kernel("gemm", n * 100 + 45, 50, correlation=n)
    found = found_in(trace, tmp_path, style="old")
    assert [(i.number, i.data_loader_ns) for i in found.items] == [(5, 30_000), (6, 30_000)]


def test_waiting_for_data_is_idle_time_of_the_step_that_waits(tmp_path: Path) -> None:
    found = iterations(read(data_bound(0.6, steps=5).save(tmp_path / "t.json"), NEEDS))
    for item in found.items:
        assert item.data_loader_ns / item.span_ns == pytest.approx(0.6, abs=0.05)
        assert item.idle_ns >= 0.95 * item.data_loader_ns


def optimizer(file: TraceFile, name: str, at: int, i: int) -> None:
    file.launch(at - 40, 2, correlation=2 * i).kernel("backward", at - 30, 20, correlation=2 * i)
    file.annotation(f"Optimizer.step#{name}.step", at, 10)
    file.launch(at + 2, 2, correlation=2 * i + 1).kernel("update", at + 5, 4, correlation=2 * i + 1)


def test_optimizer_steps_end_iterations(tmp_path: Path) -> None:
    trace = TraceFile()
    for i in range(4):
        optimizer(trace, "SGD", 100 * (i + 1), i + 1)
    found = found_in(trace, tmp_path)
    assert (found.marker, len(found.items)) == ("Optimizer.step", 3)
    assert [(i.cpu_start_ns, i.cpu_end_ns) for i in found.items] == [
        (n * 100_000 + 10_000, n * 100_000 + 110_000) for n in (1, 2, 3)
    ]
    assert all(i.kernels == 2 for i in found.items)


def test_two_optimizers_in_turn_make_one_iteration(tmp_path: Path) -> None:
    trace = TraceFile()
    for i in range(8):
        optimizer(trace, ("Adam", "SGD")[i % 2], 100 * (i + 1), i + 1)
    found = found_in(trace, tmp_path)
    assert [(i.cpu_start_ns, i.cpu_end_ns) for i in found.items] == [
        (n * 200_000 + 10_000, n * 200_000 + 210_000) for n in (1, 2, 3)
    ]
    assert {i.name for i in found.items} == {"Optimizer.step#SGD.step"}


def test_steps_of_several_optimizers_with_nothing_between_are_one(tmp_path: Path) -> None:
    trace = TraceFile()
    for i in range(4):
        optimizer(trace, "SGD", 100 * (i + 1), i + 1)
        trace.annotation("Optimizer.step#SGD.step", 100 * (i + 1) + 11, 3)
    assert len(found_in(trace, tmp_path).items) == 3


def test_steps_that_update_are_no_outliers_among_those_that_accumulate(tmp_path: Path) -> None:
    job = Job()
    for n in range(1, 17):
        with job.step(n):
            job.op("aten::mm", [("gemm", 500 + 400 * (n == 8))])
            if n % 4 == 0:
                with job.annotate("Optimizer.step#AdamW.step"):
                    job.op("aten::_foreach_add_", [("update", 900)])
            job.sync()
    found = iterations(read(job.save(tmp_path / "t.json"), NEEDS))
    assert [i.kind for i in found.items] == ["accumulate", "accumulate", "accumulate", "update"] * 4
    assert [i.number for i in found.items if i.outlier] == [8]


@pytest.mark.slow
def test_a_pattern_that_fits_every_operator_is_bounded() -> None:
    strings, count = Strings(), MOST + 3
    start = np.arange(count, dtype=np.int64) * 10
    columns = {"start": start, "dur": np.full(count, 5), "name": np.full(count, strings.id("aten::mm"), np.int32),
               "cat": np.full(count, Cat.OP, np.uint8), "pid": np.zeros(count, np.int32), "tid": np.zeros(count, np.int32)}  # fmt: skip
    tables = {group: Table.empty(["correlation"]) for group in (Group.GPU, Group.RUNTIME)}
    trace = Trace("t.json", strings, {**tables, Group.OP: Table(columns)})
    found = iterations(trace, "^(aten)")
    assert len(found.items) == MOST
    assert any(f"the first {MOST}" in n.en for n in found.notes)


@pytest.mark.parametrize("name", ["iteration {}", "Iteration #{}", "train_step {}", "step_{}", "iter {}", "train {}"])
def test_numbered_ranges(tmp_path: Path, name: str) -> None:
    found = found_in(behind([(name.format(n), n * 100, 90) for n in (11, 12, 13)], delay=1), tmp_path)
    assert [i.number for i in found.items] == [11, 12, 13]


def test_frames_of_a_serving_engine_serve_without_marks(tmp_path: Path) -> None:
    trace = TraceFile()
    for n in range(3):
        trace.python("vllm/v1/worker/gpu_model_runner.py(3380): execute_model", n * 100, 80)
        trace.launch(n * 100 + 10, 1, correlation=n + 1).kernel("gemm", n * 100 + 20, 30, correlation=n + 1)
    found = found_in(trace, tmp_path)
    assert (found.marker, len(found.items)) == ("execute_model", 3)
    assert found.between_ns == 2 * 70_000


@pytest.mark.parametrize(("name", "step"), [
    ("execute_context_2(512)_generation_30(30)", Step("mixed", 32, 542)),
    ("execute_context_0(0)_generation_8(8)", Step("decode", 8, 8)),
    ("execute_8192_context_9(sq8155sk8430sqsq74sqsk76)_generation_37(sq37sk34489sqsq37sqsk34489)", Step("mixed", 46, 8192)),
    ("step[EXTEND bs=4 toks=1024]", Step("prefill", 4, 1024)),
    ("step[DECODE bs=32]", Step("decode", 32, 32)),
    ("step[IDLE]", Step("idle", None, None)),
    ("step[EXTEND bs=2 toks=12 c_sqsq=80 c_sqsk=120 c_sk=20]", Step("prefill", 2, 12)),
    ("step[VERIFY bs=4]", Step("verify", 4, None)),
    ("[Executor] _forward_step 60000: 0 ctx reqs, 0 ctx tokens, 32 gen reqs", Step("decode", 32, 32)),
    ("[Executor] _forward_step 7: 2 ctx reqs, 30 gen reqs", Step("mixed", 32, None)),
    ("decode[bs=8]", Step("decode", 8, 8)),
    ("prefill[bs=2 tok=16384]", Step("prefill", 2, 16384)),
    ("ProfilerStep#7", Step()),
    ("execute_context_x(2)", Step()),
])  # fmt: skip
def test_what_a_serving_step_held(name: str, step: Step) -> None:
    assert step_of(name) == step


def test_prefill_is_no_outlier_among_decodes(tmp_path: Path) -> None:
    steps = [("step[EXTEND bs=4 toks=1024]", 900) if n % 6 == 5 else ("step[DECODE bs=32]", 100) for n in range(24)]
    steps[8] = ("step[DECODE bs=32]", 300)
    trace, at = TraceFile(), 0
    for i, (name, us) in enumerate(steps, 1):
        trace.annotation(name, at, us).launch(at, 1, correlation=i).kernel("gemm", at + 2, us - 10, correlation=i)
        at += us + 20
    found = found_in(trace, tmp_path)
    assert {i.kind for i in found.items} == {"prefill", "decode"}
    assert [(n, i.outlier) for n, i in enumerate(found.items) if i.outlier] == [(8, "compute")]


@pytest.mark.parametrize(
    ("late", "part"), [("compute", "compute"), ("comm", "exposed_comm"), ("data", "data_loader"), ("host", "idle")]
)
def test_the_part_that_makes_an_iteration_long_is_named(tmp_path: Path, late: str, part: str) -> None:
    job = Job()
    for n in range(1, 9):
        more = 900 if n == 5 else 0
        with job.step(n):
            job.wait_data(20 + more * (late == "data"))
            job.spend(more * (late == "host"))
            job.op("aten::mm", [("gemm", 500 + more * (late == "compute"))])
            job.launch(NCCL, 100 + more * (late == "comm"))
            job.sync()
    found = iterations(read(job.save(tmp_path / "t.json"), NEEDS))
    assert [(i.number, i.outlier) for i in found.items if i.outlier] == [(5, part)]


def test_a_long_first_iteration_may_be_a_warm_up(tmp_path: Path) -> None:
    marks = [("ProfilerStep#1", 0, 400), *((f"ProfilerStep#{n}", 200 + n * 100, 100) for n in range(2, 7))]
    found = found_in(behind(marks, delay=1), tmp_path)
    assert found.items[0].outlier
    assert any("warm-up" in n.en for n in found.notes)


def test_loss_and_gradient_norm_where_recorded(tmp_path: Path) -> None:
    trace = behind([(f"ProfilerStep#{n}", n * 100, 100) for n in (1, 2, 3)], delay=1)
    trace.annotation("metrics", 150, 1, loss=2.5, gradnorm=0.75)
    trace.annotation("loss=1.25e-1 grad_norm: 3", 260, 1)
    found = found_in(trace, tmp_path).items
    assert [(i.loss, i.gradnorm) for i in found] == [(2.5, 0.75), (0.125, 3.0), (None, None)]


def test_a_mark_of_the_users_choice(tmp_path: Path) -> None:
    marks = [("ProfilerStep#1", 0, 1000), *((f"phase {k} 7", n * 100, 50) for n, k in enumerate(("a", "b", "a")))]
    found = found_in(behind(marks, delay=1), tmp_path, r"^phase (\w)")
    assert [i.kind for i in found.items] == ["a", "b", "a"]
    assert found.marker == r"^phase (\w)"
    with pytest.raises(InputError, match="regular expression") as wrong:
        found_in(behind(marks, delay=1), tmp_path, "(")
    assert "b'" not in str(wrong.value)  # RE2 speaks in bytes, people do not


def test_steps_of_a_recorded_jax_trace() -> None:
    """bench/record_jax.py: three steps under StepTraceAnnotation, on a CPU."""
    found = iterations(read(str(Path(__file__).parents[3] / "traces" / "jax_cpu.trace.json.gz"), NEEDS))
    assert found.marker == "JAX step"
    assert [i.name for i in found.items] == ["train#0", "train#1", "train#2"]


def test_steps_of_a_recorded_torch_trace() -> None:
    """bench/record_traces.py: the loader is what each step waits for; its marks are annotations of torch 2.13."""
    found = iterations(read(str(Path(__file__).parents[3] / "traces" / "cpu_train.json.gz"), NEEDS))
    assert [i.name for i in found.items] == [f"ProfilerStep#{n}" for n in (1, 2, 3)]
    assert all(0.2 < i.data_loader_ns / i.span_ns < 0.6 for i in found.items)


def test_a_number_of_a_thousand_digits_is_only_a_name(tmp_path: Path) -> None:
    found = found_in(
        behind([("iteration " + "9" * 5000, 0, 90), ("step[DECODE bs=" + "9" * 5000 + "]", 100, 90)], delay=1),
        tmp_path,
        "9",
    )
    assert [i.number for i in found.items] == [0, 1]


def test_marks_of_several_threads(tmp_path: Path) -> None:
    trace = behind([(f"step {n}", n * 100, 90) for n in range(1, 4)], delay=1)
    trace.annotation("step 9", 120, 5, tid=5)
    found = found_in(trace, tmp_path)
    assert [i.number for i in found.items] == [1, 2, 3]
    assert any("2 threads" in n.en for n in found.notes)


def test_names_are_cleaned(tmp_path: Path) -> None:
    trace = behind([("iteration 1", 0, 50), ("\x1b[31miteration\u202e 2" + "x" * 5000, 100, 50)], delay=1)
    found = found_in(trace, tmp_path, "iteration")
    assert all(i.name.isprintable() and len(i.name) <= 160 for i in found.items)


steps = st.lists(st.tuples(st.integers(10, 500), st.integers(1, 400), st.integers(0, 300)), min_size=1, max_size=12)


@given(steps)
def test_parts_add_up_and_iterations_follow_each_other(steps: list[tuple[int, int, int]]) -> None:
    import tempfile

    trace, at, free = TraceFile(), 0, 0
    for n, (host, kernel, delay) in enumerate(steps, 1):
        trace.annotation(f"ProfilerStep#{n}", at, host).launch(at + host // 2, 1, correlation=n)
        free = max(free, at + host // 2 + delay)
        trace.kernel("gemm", free, kernel, correlation=n)
        free, at = free + kernel, at + host
    with tempfile.TemporaryDirectory() as folder:
        found = found_in(trace, Path(folder))
    assert len(found.items) == len(steps)
    for item, (_, kernel, _) in zip(found.items, steps, strict=True):
        assert item.compute_ns == kernel * 1000
        assert item.compute_ns + item.idle_ns == item.span_ns
    for a, b in zip(found.items, found.items[1:], strict=False):
        assert a.end_ns == b.start_ns
    assert found.between_ns == 0


@given(st.lists(st.integers(1, 10**9), min_size=4, max_size=30), st.integers(1, 1000))
def test_what_is_unusual_does_not_depend_on_the_unit(values: list[int], factor: int) -> None:
    one, other = (
        np.array(values, np.float64),
        np.array(values, np.float64) * 2.0**factor if factor < 900 else np.array(values, np.float64),
    )
    assert (unusual(one) == unusual(other)).all()
    assert not unusual(np.full(8, 5.0)).any()
