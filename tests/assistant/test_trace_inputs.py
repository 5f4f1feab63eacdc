"""Traces as inputs of `check` and `ask`: recognised, read by path, and answered with what bounds the job."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from assistant.diagnosis import diagnose
from probes.parse import torch_trace
from probes.trace.verdict import digest as digest_
from probes.trace.verdict.facts import observations
from rules.engine import Role
from rules.loader import load
from tests.cases import each
from tests.conftest import Gpudiag
from tests.trace_files import (
    Job,
    TraceFile,
    comm_bound,
    compute_bound,
    data_bound,
    launch_bound,
    read,
    sync_bound,
)


def full() -> Job:
    """Products of a size that takes about 60 % of an H100's peak for their length, launched well ahead."""
    job = Job()
    for number in range(3):
        job.train_step(number, gemm=400, pointwise=60, size=(8192, 4096, 3584))
    return job


AILMENTS = (
    (data_bound, "trace-data-bound"),
    (launch_bound, "trace-launch-bound"),
    (comm_bound, "trace-communication-bound"),
    (sync_bound, "trace-sync-bound"),
    (full, "trace-gpu-compute-bound"),
    (compute_bound, "trace-products-below-roofline"),
)


def answer_of(gpudiag: Gpudiag, *words: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(gpudiag(*words, "--format", "json").out)
    return found


# --- verdicts -----------------------------------------------------------------------------


@each(("make", "rule"), AILMENTS, ids=[r for _, r in AILMENTS])
def test_what_ails_a_job_is_the_first_thing_found(make: Callable[[], Job], rule: str) -> None:
    d = diagnose(observations([digest_.digest(read(make(), digest_.NEEDS))]), load())
    first = d.findings[0]
    assert (first.rule.id, first.role) == (rule, Role.ROOT)
    if rule != "trace-products-below-roofline":  # nobody can say how much faster they could be
        assert first.impact is not None
        assert first.impact.share > 0.5
        assert first.impact.seconds is not None
    assert first.title.en in d.verdict.text.en
    assert first.title.zh in d.verdict.text.zh
    assert "node" not in d.verdict.text.en


def test_findings_of_a_trace_are_ranked_by_the_time_they_explain() -> None:
    d = diagnose(observations([digest_.digest(read(launch_bound(), digest_.NEEDS))]), load())
    shares = [f.impact.share for f in d.roots if f.impact is not None and f.severity.value == "warning"]
    assert shares == sorted(shares, reverse=True)
    assert len(shares) > 1


def test_batches_made_in_the_training_process_explain_that_the_job_is_data_bound() -> None:
    job = Job()
    for number in range(3):
        with job.step(number):
            job.wait_data(3000, "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__")
            job.op("aten::mm", [("sm90_gemm", 500)])
            job.item()
    d = diagnose(observations([digest_.digest(read(job, digest_.NEEDS))]), load())
    roles = {f.rule.id: f.role for f in d.findings}
    assert roles["trace-data-loader-in-process"] is Role.ROOT
    assert roles["trace-data-bound"] is Role.SYMPTOM
    assert roles["input-bound-job"] is Role.SYMPTOM


def test_no_two_verdicts_say_the_same_of_a_healthy_job() -> None:
    d = diagnose(observations([digest_.digest(read(full(), digest_.NEEDS))]), load())
    assert d.verdict.state.value == "ok"
    assert not [f for f in d.roots if f.severity.value != "info"]


# --- the commands -------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["rank3.json", "rank3.pt.trace.json.gz"])
def test_check_recognises_a_trace_and_says_what_bounds_the_job(gpudiag: Gpudiag, tmp_path: Path, name: str) -> None:
    answer = gpudiag("check", "--input", data_bound().save(tmp_path / name))
    assert answer.code == 1
    assert answer.out.startswith("DEGRADED  Rank 3: Data-bound: the GPU waits for the data loader")
    assert "explains 59.8 % of the traced window" in answer.out
    assert "Traceback" not in answer.err


def test_the_answer_reads_well_in_chinese_markdown_and_html(gpudiag: Gpudiag, tmp_path: Path) -> None:
    path = data_bound().save(tmp_path / "rank3.json")
    said = gpudiag("check", "--input", path, "--lang", "zh").out
    assert "数据受限：GPU 在等待数据加载器" in said
    assert "占采集窗口的 59.8 %" in said
    assert "explains 59.8 % of the traced window" in gpudiag("check", "--input", path, "--format", "markdown").out
    assert "explains 59.8 % of the traced window" in gpudiag("check", "--input", path, "--format", "html").out


def test_json_gives_the_impact_of_each_finding(gpudiag: Gpudiag, tmp_path: Path) -> None:
    found = answer_of(gpudiag, "check", "--input", data_bound().save(tmp_path / "rank3.json"))
    first = found["findings"][0]
    assert first["rule"] == "trace-data-bound"
    assert first["impact"] == {"share": pytest.approx(0.598, abs=0.002), "seconds": pytest.approx(0.0117, abs=1e-4),
                               "of": "the traced window", "gpu_hours_a_day": None}  # fmt: skip
    assert {f["impact"] is None for f in found["findings"]} == {True, False}  # input-bound-job tells no seconds


def test_ask_answers_from_a_trace(gpudiag: Gpudiag, tmp_path: Path) -> None:
    path = data_bound().save(tmp_path / "rank0.json.gz")
    found = answer_of(gpudiag, "ask", "--no-history", "--input", path, "why is training slow?")
    assert found["query"]["intent"] == "diagnose"
    assert "Data-bound" in found["verdict"]["text"]


def test_a_trace_and_a_kernel_log_are_answered_together(gpudiag: Gpudiag, tmp_path: Path) -> None:
    log = tmp_path / "kern.log"
    log.write_text("Jan  5 10:00:00 n1 kernel: NVRM: Xid (PCI:0000:3b:00): 79, pid=1, GPU has fallen off the bus.\n")
    found = answer_of(gpudiag, "check", "--log", str(log), "--input", data_bound().save(tmp_path / "rank0.json"))
    rules = [f["rule"] for f in found["findings"]]
    assert rules[0] == "gpu-fell-off-bus"
    assert "trace-data-bound" in rules


def test_without_gpu_activity_the_verdict_is_unknown(gpudiag: Gpudiag, tmp_path: Path) -> None:
    path = TraceFile().op("aten::mul", 0, 10).save(tmp_path / "cpu.json")
    answer = gpudiag("check", "--input", path)
    assert answer.code == 3
    assert answer.out.startswith("UNKNOWN  Trace cpu holds no GPU activity")


def test_a_trace_that_is_cut_off_says_so(gpudiag: Gpudiag, tmp_path: Path) -> None:
    whole = data_bound().save(tmp_path / "whole.json")
    path = data_bound().save(tmp_path / "rank0.json", cut=Path(whole).stat().st_size * 2 // 3)
    answer = gpudiag("check", "--input", path, "--verbose")
    assert "the trace is cut off" in answer.out
    assert "Traceback" not in answer.err


def test_traces_of_several_ranks_are_one_job(gpudiag: Gpudiag, tmp_path: Path) -> None:
    paths = [comm_bound(rank=r, world=3).save(tmp_path / f"r{r}.json") for r in (0, 1)]
    found = answer_of(gpudiag, "check", "--input", *paths)
    assert {f["subject"]["id"] for f in found["findings"] if f["subject"]["scope"] == "rank"} == {"0", "1"}
    assert "trace-ranks-missing" in {f["rule"] for f in found["findings"]}


def test_what_is_no_trace_after_all_is_told_and_does_not_stop_the_others(gpudiag: Gpudiag, tmp_path: Path) -> None:
    broken = tmp_path / "broken.json"
    broken.write_text('{"schemaVersion": 1, "traceEvents": [')
    answer = gpudiag("check", "--input", str(broken), data_bound().save(tmp_path / "rank0.json"))
    assert "Data-bound" in answer.out
    assert "broken.json" in answer.out
    assert "Traceback" not in answer.err


@each(
    ("head", "sure"),
    [
        ('{"schemaVersion": 1, "deviceProperties": [{"id": 0}], "traceEvents": [', True),
        ('{\n  "traceEvents" : [\n', True),
        ('[{"ph": "X", "cat": "kernel", "name": "k", "ts": 1, "dur": 2}', True),
        ('{"schema": "gpudiag/nvml/1", "schemaVersion": 1}', False),
        ('{"MESSAGE": "traceEvents"}', False),
        ('[{"ph": "reading"}]', False),
        ('the log says "traceEvents": [', False),
        ("", False),
    ],
)
def test_only_traces_are_taken_for_traces(head: str, sure: bool) -> None:
    assert (torch_trace.sniff(head) > 0) is sure


# --- single causes, each as the only thing wrong ------------------------------------------


def _steps(file: TraceFile, count: int = 4, us: int = 1000) -> TraceFile:
    """Steps of `us`, each with a kernel that fills it but for a tenth, launched ahead."""
    for step in range(count):
        at = step * us
        file.annotation(f"ProfilerStep#{step}", at, us - 1)
        file.launch(at + 1, 4, correlation=1000 + step).kernel(
            "sm90_gemm", at + 10, 0.9 * us, correlation=1000 + step, grid=(512, 8, 1)
        )
    return file


def _roots(file: TraceFile) -> list[str]:
    d = diagnose(observations([digest_.digest(read(file, digest_.NEEDS))]), load())
    return [f.rule.id for f in d.roots if f.severity.value != "info"]


def test_a_job_without_trouble_has_no_warning() -> None:
    assert _roots(_steps(TraceFile())) == []


def test_allocations_in_the_step_are_the_root_of_a_slow_host() -> None:
    file = TraceFile()
    for i in range(40):
        at = i * 500
        file.launch(at + 5, 380, name="cudaFree", correlation=100 + i)
        file.launch(at + 390, 4, correlation=i).kernel("sm90_gemm", at + 400, 100, correlation=i, grid=(512, 8, 1))
    assert _roots(file)[0] == "trace-memory-churn"


def test_a_checkpoint_in_the_window_is_named() -> None:
    file = TraceFile().python("train.py(1): main", 0, 9000).python("torch/serialization.py(850): save", 4010, 3000)
    file = _steps(file)
    at = 8000
    file.launch(at, 4, correlation=9).kernel("sm90_gemm", at + 10, 500, correlation=9, grid=(512, 8, 1))
    d = diagnose(observations([digest_.digest(read(file, digest_.NEEDS), "trace")]), load())
    first = d.roots[0]
    assert first.rule.id == "trace-checkpoint-stall"
    assert "torch/serialization.py(850): save" in {o.value for o in first.because}


def test_products_without_tensor_cores_are_a_matter_of_precision() -> None:
    file = TraceFile(head={"deviceProperties": [{"id": 0, "name": "NVIDIA A100", "computeMajor": 8, "numSms": 108}]})
    file.launch(0, 4, correlation=1).kernel("ampere_sgemm_128x64_tn", 10, 900, correlation=1, grid=(512, 8, 1))
    assert _roots(file) == ["trace-no-tensor-cores"]


def test_a_rank_that_computes_longer_explains_why_the_other_communicates_so_long(
    gpudiag: Gpudiag, tmp_path: Path
) -> None:
    paths = []
    for rank in (0, 1):
        file = TraceFile(rank=rank, world=2)
        for step in range(4):
            at, work = step * 2000, 500 + 600 * rank
            args: dict[str, Any] = {"Collective name": "allreduce", "In msg nelems": 1 << 20, "Out msg nelems": 1 << 20,
                                    "dtype": "Float", "Group size": 2, "Process Group Name": "0",
                                    "Process Group Ranks": "[0, 1]"}  # fmt: skip
            file.annotation(f"ProfilerStep#{step}", at, 1990)
            file.launch(at + 1, 4, correlation=10 * step + 1).kernel(
                "sm90_gemm", at + 10, work, correlation=10 * step + 1
            )
            file.launch(at + 6, 4, correlation=10 * step + 2)
            file.kernel("ncclDevKernel_AllReduce_Sum_f32_RING_LL", at + 10 + work, 1200 - work, stream=20,
                        correlation=10 * step + 2, **args)  # fmt: skip
        paths.append(file.save(tmp_path / f"rank{rank}.json"))
    found = {(f["rule"], f["subject"]["id"]): f for f in answer_of(gpudiag, "check", "--input", *paths)["findings"]}
    straggler = next(f for (rule, _), f in found.items() if rule == "trace-straggler-slow-gpu")
    assert straggler["role"] == "root"
    assert {o["observation"]["value"] for o in straggler["because"]} >= {"1", "compute"}
    waiting = found["trace-communication-bound", "0"]
    assert (waiting["role"], waiting["explained_by"][0].startswith("trace-ranks-wait")) == ("symptom", True)
    assert ("trace-communication-bound", "1") not in found
