"""Stories of CUDA errors in program logs."""

from __future__ import annotations

from pathlib import Path

from knowledge.observation import Event, Observation, Scope, Status
from probes.base import Context, lines_of
from probes.parse import cuda_error
from probes.parse._app_cuda import STATUSES, classify
from tests.cases import each

CAPTURES = Path(__file__).parents[2] / "captures" / "app"


def read(text: str) -> list[Observation]:
    return cuda_error.parse(lines_of(text), Context("job.log"))


def events(text: str) -> list[Event]:
    return [o.value for o in read(text) if isinstance(o.value, Event)]


TORCH = """\
Traceback (most recent call last):
  File "/proj/train.py", line 9, in main
    y = layer(x)
  File "/opt/venv/lib/python3.11/site-packages/torch/nn/functional.py", line 2233, in embedding
    return torch.embedding(weight, input, padding_idx)
RuntimeError: CUDA error: an illegal memory access was encountered
CUDA kernel errors might be asynchronously reported at some other API call, so the stacktrace below might be incorrect.
For debugging consider passing CUDA_LAUNCH_BLOCKING=1
"""


def test_a_kernel_error_surfaces_later_than_its_cause() -> None:
    [event] = events(TORCH)
    assert (event.code, event.get("kind"), event.get("deferred"), event.get("sync")) == (
        700,
        "illegal_access",
        True,
        False,
    )
    assert (event.get("file"), event.get("function"), event.get("operator")) == (
        "/proj/train.py",
        "main",
        "torch.embedding",
    )


def test_blocking_launches_make_it_surface_where_it_happens() -> None:
    [event] = events(f"$ CUDA_LAUNCH_BLOCKING=1 python train.py\n{TORCH}")
    assert (event.get("deferred"), event.get("sync")) == (False, True)


def test_an_assertion_names_the_kernel_and_is_tied_to_the_error_of_the_rank() -> None:
    text = (CAPTURES / "cuda.device-assert.log").read_text()
    [(subject, event)] = [(o.subject, o.value) for o in read(text) if isinstance(o.value, Event)]
    assert (subject.scope, subject.id) == (Scope.RANK, "1")
    assert (event.get("kind"), event.get("threads"), event.get("kernel_line"), event.get("sync")) == (
        "device_assert",
        3,
        163,
        True,
    )
    assert "index out of bounds" in str(event.get("assertion"))
    assert event.get("count") == 2  # the traceback, and what std::terminate prints


def test_assertions_without_an_exception_are_an_error_of_their_own() -> None:
    line = "/b/Loss.cu:250: nll_loss: block: [0,0,0], thread: [{},0,0] Assertion `t >= 0 && t < n_classes` failed."
    [event] = events("\n".join(line.format(i) for i in range(5)))
    assert (event.get("kind"), event.get("threads"), event.get("kernel")) == ("device_assert", 5, "nll_loss")


@each(
    ("line", "kind", "code"),
    [
        ("RuntimeError: CUDA error: misaligned address", "misaligned_address", 716),
        ("torch.AcceleratorError: CUDA error: unspecified launch failure", "launch_failure", 719),
        ("RuntimeError: CUDA error: no kernel image is available for execution on the device", "no_kernel_image", 209),
        ("RuntimeError: CUDA error: uncorrectable ECC error encountered", "ecc_uncorrectable", 214),
        ("RuntimeError: CUDA error: uncorrectable NVLink error detected during the execution", "nvlink_error", 220),
        ("RuntimeError: CUDA error: all CUDA-capable devices are busy or unavailable", "device_unavailable", 46),
        ("RuntimeError: CUDA error: invalid device ordinal", "invalid_device_ordinal", 101),
        ("RuntimeError: CUDA error: invalid configuration argument", "invalid_configuration", 9),
        ("RuntimeError: CUDA error: initialization error", "initialization_error", 3),
        ("RuntimeError: CUDA error: the launch timed out and was terminated", "launch_timeout", 702),
        ("RuntimeError: CUDA error: hardware stack error", "hardware_stack_error", 714),
        ("RuntimeError: CUDA error: something of tomorrow", "other", None),
        ("RuntimeError: CUDA error: CUBLAS_STATUS_EXECUTION_FAILED when calling `cublasSgemm( handle, m, n)`", "cublas_execution_failed", None),
        ("RuntimeError: cuDNN error: CUDNN_STATUS_NOT_INITIALIZED", "cudnn_not_initialized", None),
        ("RuntimeError: cuFFT error: CUFFT_INTERNAL_ERROR", "cufft_internal_error", None),
        ("UserWarning: CUDA initialization: Unexpected error from cudaGetDeviceCount(). Error 802: system not yet initialized (Triggered x)",
         "system_not_ready", 802),
        ("RuntimeError: Unexpected error from cudaGetDeviceCount(). Error 803: system has unsupported display driver / cuda driver combination",
         "system_driver_mismatch", 803),
        ("RuntimeError: The NVIDIA driver on your system is too old (found version 11040).", "insufficient_driver", 35),
        ("RuntimeError: No CUDA GPUs are available", "no_device", 100),
        ("RuntimeError: Found no NVIDIA driver on your system. Please check", "no_driver", None),
        ("E external/xla/cuda_driver.cc:1000] failed call to cuInit: CUDA_ERROR_NO_DEVICE: no CUDA-capable device is detected", "no_device", 100),
        ("XlaRuntimeError: INTERNAL: Failed to execute: CUDA_ERROR_ILLEGAL_ADDRESS: an illegal memory access was encountered", "illegal_access", 700),
        ("cupy_backends.cuda.api.runtime.CUDARuntimeError: cudaErrorIllegalAddress: an illegal memory access was encountered", "illegal_access", 700),
        ("numba.cuda.cudadrv.driver.CudaAPIError: [719] Call to cuCtxSynchronize results in CUDA_ERROR_LAUNCH_FAILED", "launch_failure", 719),
        ("RuntimeError: Triton Error [CUDA]: an illegal memory access was encountered", "illegal_access", 700),
        ('CUDA error at main.cu:87 code=700(cudaErrorIllegalAddress) "cudaDeviceSynchronize()"', "illegal_access", 700),
        ("cuInit(0) returned 802", "system_not_ready", 802),
        ('msg="unknown error initializing cuda driver library /usr/lib/libcuda.so.550: cuda driver library init failure: 999. see"', "unknown", 999),
        ("cudaDeviceSynchronize failed with error code 700", "illegal_access", 700),
        ("HW Exception by GPU node-1 (Agent handle: 0x5600d3d6b0e0) reason :GPU Hang", "gpu_hang", None),
        ("CUDA Runtime API error 719: unspecified launch failure.", "launch_failure", 719),
        ("GPUassert: an illegal memory access was encountered main.cu 42", "illegal_access", 700),
        ("[rank0]:[E P.cpp:1182] [Rank 0] NCCL watchdog thread terminated with exception: CUDA error: an illegal memory access was encountered",
         "illegal_access", 700),
    ],
)  # fmt: skip
def test_every_framework_has_its_words(line: str, kind: str, code: int | None) -> None:
    [event] = events(line)
    assert (event.get("kind"), event.code) == (kind, code)


@each(
    "line",
    [
        "RuntimeError: CUDA error: out of memory",  # cuda-oom's
        "node:1:2 [0] enqueue.cc:1 NCCL WARN Cuda failure 700 'an illegal memory access was encountered'",  # nccl-log's
        "NVRM: Xid (PCI:0000:17:00): 31, pid=1, Ch 00000010, MMU Fault",  # kernel-log's
        "For debugging consider passing CUDA_LAUNCH_BLOCKING=1",
        "CUDA errors: 0",
        "HTTP Error 404: not found",
        "cublas handles created",
        "cuInit(0) returned 0",
        "cudaMemcpy gives 12 GB/s",
    ],
)
def test_what_belongs_to_others_or_is_no_error(line: str) -> None:
    assert events(line) == []


def test_the_api_and_shapes_are_kept_when_printed() -> None:
    [event] = events(
        "RuntimeError: CUDA error: CUBLAS_STATUS_INVALID_VALUE when calling `cublasSgemm( handle, opa)` size [4, 5]"
    )
    assert (event.get("api"), event.get("shapes")) == ("cublasSgemm", "[4, 5]")


def test_two_ranks_are_two_events() -> None:
    text = (
        "[rank0]: RuntimeError: CUDA error: misaligned address\n[rank1]: RuntimeError: CUDA error: misaligned address"
    )
    assert [o.subject.id for o in read(text) if isinstance(o.value, Event)] == ["0", "1"]


def test_a_log_without_such_a_line_says_so() -> None:
    [seen] = read("[rank0]: step 1 | loss 2.1")
    assert (seen.fact, seen.status) == ("cuda_error", Status.NONE_SEEN)
    assert read("a letter to a friend\n[rank0]: and one to a rank") == []


@each("line", [
    "n1:77:99 [0] enqueue.cc:12 NCCL WARN Cuda failure 'invalid argument'",
    "torch.distributed.DistBackendError: NCCL error in: x.cpp:1, unhandled cuda error, CUDA error: misaligned address",
    "Search for `cudaErrorIllegalAddress' in https://docs.nvidia.com/cuda/cuda-runtime-api/group__CUDART__TYPES.html",
    "CUDA kernel errors might be asynchronously reported at some other API call",
])  # fmt: skip
def test_what_nccl_reports_and_what_is_advised_is_recognised_as_no_error_of_the_program(line: str) -> None:
    assert cuda_error.sniff(f"{line}\n") < 60 == cuda_error.sniff("CUDA error: misaligned address\n")


def test_names_numbers_and_messages_of_the_table_agree() -> None:
    assert len({s.code for s in STATUSES}) == len(STATUSES)
    for status in STATUSES:
        for text in (status.runtime, status.driver, f"CUDA error: {status.text}"):
            reading = classify(text) if text else None
            assert reading is None or (reading.kind, reading.code) == (status.kind, status.code), text
        assert classify(status.runtime) is not None


@each(
    ("line", "kind"),
    [
        ("No devices were found", "no_device"),
        ("3: No devices were found", "no_device"),
        ("NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver. Make sure that the latest NVIDIA driver is installed.", "no_driver"),
        ("INFO: No devices were found in the catalogue", None),
        ("see the FAQ: if nvidia-smi says No devices were found, reboot", None),
    ],
)  # fmt: skip
def test_what_nvidia_smi_prints_within_a_job_is_its_error(line: str, kind: str | None) -> None:
    text = f"srun: job 7 has been allocated resources\n{line}\nsrun: error: n7: task 3: Exited with exit code 6\n"
    found = [event.fields["kind"] for event in events(text)]
    assert found == ([kind] if kind else [])
    assert cuda_error.sniff(line) < 40, "alone it is an output of nvidia-smi"
