"""Diagnoses of the driver stack: a build without the GPU explains the error, and a stack in order says nothing."""

from __future__ import annotations

import json
from collections.abc import Sequence

from assistant.diagnosis import Diagnosis, diagnose
from assistant.sources import parse_text
from knowledge.observation import Observation, Scope, Source, Subject, gpu, node
from rules.engine import Role
from rules.loader import load
from rules.model import Severity

ERROR = "RuntimeError: CUDA error: no kernel image is available for execution on the device\n"
ENV = """PyTorch version: {torch}
Is debug build: False
CUDA used to build PyTorch: {cuda}
ROCM used to build PyTorch: N/A
GPU models and configuration:
GPU 0: {gpu}

Nvidia driver version: 570.86.15
"""
HERE = node("n1")
BOTH = Source("nvml-snapshot", "nvml")


def env(torch: str = "2.6.0+cu124", cuda: str = "12.4", gpu: str = "NVIDIA H200") -> list[Observation]:
    return parse_text("input", ENV.format(torch=torch, cuda=cuda, gpu=gpu))


def job(architectures: Sequence[str]) -> list[Observation]:
    """The snapshot of a node on which a program with PyTorch runs, and which GPU it uses."""
    torch = {"version": "cuda: Optional[str] = '12.4'\n", "architectures": [" ".join(architectures)]}
    snapshot = {
        "schema": "gpudiag/stack/1", "host": "n1", "loaded": "570.86.15",
        "libraries": [{"path": "/usr/lib64/libdcgm.so.4.2.3", "link": None}],
        "processes": [{"pid": 42, "libraries": [], "packages": {"torch": "2.6.0"}, "torch": torch}],
    }  # fmt: skip
    on = gpu("0000:3b:00.0", "n1")
    return [
        *parse_text("input", json.dumps(snapshot)),
        Observation("process.uses_gpu", Subject(Scope.PROCESS, "42", HERE), f"gpu:{on.id}", source=BOTH),
        Observation("gpu.compute_capability", on, "9.0", source=BOTH),
        Observation("node.driver.version", HERE, "570.86.15", source=BOTH),
        Observation("node.version.container_toolkit", HERE, "1.17.8", source=BOTH),
        Observation("node.device_plugin.version", HERE, "0.17.1", source=BOTH),
    ]


def found(diagnosis: Diagnosis, at_least: Severity = Severity.WARNING) -> dict[str, Role]:
    return {f.rule.id: f.role for f in diagnosis.findings if f.severity.rank >= at_least.rank}


def test_a_stack_in_order_says_nothing() -> None:
    assert found(diagnose(env(), load()), Severity.INFO) == {}
    assert found(diagnose(job(("sm_80", "sm_90")), load()), Severity.INFO) == {}


def test_a_build_without_the_gpu_explains_the_error() -> None:
    got = found(diagnose([*env(gpu="NVIDIA B200"), *parse_text("log", ERROR)], load()))
    assert got == {"torch-built-without-this-gpu": Role.ROOT, "cuda-no-kernel-image": Role.SYMPTOM}


def test_the_error_alone_blames_no_build_that_fits() -> None:
    got = found(diagnose([*job(("sm_80", "sm_90")), *parse_text("log", ERROR)], load()))
    assert got == {"cuda-no-kernel-image": Role.ROOT}


def test_a_running_job_tells_it_before_anything_failed() -> None:
    assert found(diagnose(job(("sm_80", "sm_86")), load())) == {"torch-built-without-this-gpu": Role.ROOT}


def test_a_build_for_a_cuda_that_the_driver_cannot_run() -> None:
    assert "torch-cuda-newer-than-driver" in found(diagnose(env("2.9.0+cu130", "13.0"), load()))


def test_a_build_for_the_cpu_beside_a_gpu() -> None:
    assert set(found(diagnose(env("2.9.0+cpu", "None"), load()))) == {"torch-built-for-cpu"}
