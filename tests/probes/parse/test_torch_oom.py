"""Stories of programs that ran out of device memory."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from knowledge.observation import Event, Status
from probes.base import Context, lines_of
from probes.parse import torch_oom
from tests.cases import each

CAPTURES = Path(__file__).parents[2] / "captures" / "app"


def events(text: str) -> list[Event]:
    return [o.value for o in torch_oom.parse(lines_of(text), Context("job.log")) if isinstance(o.value, Event)]


def one(text: str) -> Event:
    [event] = events(text)
    return event


NEW = (
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 2 has a total {capacity} of 80.00 GiB of which 512.00 MiB is free. "
    "{processes} Of the allocated memory 60.00 GiB is allocated by PyTorch, and 6.00 GiB is reserved by PyTorch but unallocated."
)
OWN = "Including non-PyTorch memory, this process has 68.00 GiB memory in use."


def test_all_amounts_are_mebibytes() -> None:
    event = one(NEW.format(capacity="capacity", processes=OWN))
    assert {name: event.get(name) for name in ("requested", "total", "free", "in_use_process", "allocated", "reserved", "gpu")} == {
        "requested": 2048.0, "total": 81920.0, "free": 512.0, "in_use_process": 69632.0, "allocated": 61440.0, "reserved": 67584.0, "gpu": 2,
    }  # fmt: skip
    assert (event.get("reserved_unallocated"), event.get("fragmentation")) == (6144.0, 3.0)
    assert event.get("other_process") is None


def test_the_misspelt_version_and_another_process() -> None:
    event = one(NEW.format(capacity="capacty", processes=f"Process 4242 has 10.00 GiB memory in use. {OWN}"))
    assert (event.get("total"), event.get("other_process"), event.get("other_pids")) == (81920.0, 10240.0, "4242")


def test_within_a_container_a_process_is_listed_as_one_of_the_others() -> None:
    listed = "Process 77 has 10.00 GiB memory in use. Process 4242 has 68.00 GiB memory in use."
    event = one(NEW.format(capacity="capacity", processes=listed))
    assert (event.get("in_use_process"), event.get("other_process"), event.get("other_pids")) == (
        69632.0,
        10240.0,
        "77",
    )


def test_the_old_format() -> None:
    event = one(
        "RuntimeError: CUDA out of memory. Tried to allocate 20.00 MiB (GPU 0; 8.00 GiB total capacity; 6.00 GiB already allocated; "
        "19.50 MiB free; 6.50 GiB reserved in total by PyTorch)"
    )
    assert (
        event.get("requested"),
        event.get("free"),
        event.get("reserved_unallocated"),
        event.get("fragmentation"),
    ) == (20.0, 19.5, 512.0, 25.6)


def test_a_message_that_is_cut_gives_fewer_fields_and_no_zeros() -> None:
    event = one(
        "CUDA out of memory. Tried to allocate 15.41 GiB. GPU 3 has a total capacity of 79.10 GiB of which 15.40 GiB is free"
    )
    assert set(event.fields) == {"requested", "total", "free", "gpu", "framework", "message"}


@each(
    ("line", "framework", "requested"),
    [
        (
            "jaxlib.xla_extension.XlaRuntimeError: RESOURCE_EXHAUSTED: Out of memory while trying to allocate 17179869184 bytes.",
            "jax",
            16384.0,
        ),
        (
            "W tsl/bfc_allocator.cc:497] Allocator (GPU_0_bfc) ran out of memory trying to allocate 2.00GiB (rounded to 2147483648)",
            "tensorflow",
            2048.0,
        ),
        (
            "ResourceExhaustedError: OOM when allocating tensor with shape[32,128] and type float on /device:GPU:0",
            "tensorflow",
            None,
        ),
        ("ValueError: No available memory for the cache blocks. Try increasing `gpu_memory_utilization`", "vllm", None),
        (
            "cupy.cuda.memory.OutOfMemoryError: Out of memory allocating 8,589,934,592 bytes (allocated so far: 512 bytes)",
            "cupy",
            8192.0,
        ),
        (
            "ggml_backend_cuda_buffer_type_alloc_buffer: allocating 4096.00 MiB on device 0: cudaMalloc failed: out of memory",
            "llama.cpp",
            4096.0,
        ),
        (
            "[TensorRT-LLM][ERROR] CUDA runtime error in ::cudaMallocAsync(ptr, n, mCudaStream->get()): out of memory (/x/tllmBuffers.h:112)",
            "trtllm",
            None,
        ),
        (
            "[TensorRT-LLM][ERROR] Assertion failed: Can't allocate new blocks. No free blocks left. (/x/kvCacheManager.cpp:362)",
            "trtllm",
            None,
        ),
        ("RuntimeError: CUDA error: out of memory", "torch", None),
        ("torch.cuda.OutOfMemoryError: HIP out of memory. Tried to allocate 1.00 GiB.", "torch", 1024.0),
    ],
)
def test_every_framework_has_its_words(line: str, framework: str, requested: float | None) -> None:
    event = one(line)
    assert (event.get("framework"), event.get("requested")) == (framework, requested)


def test_a_setting_is_known_and_an_advice_is_none() -> None:
    advice = "CUDA out of memory. Tried to allocate 1.00 GiB. If reserved memory is large try setting PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True to avoid"
    assert one(advice).get("expandable_segments") is None
    assert one(f"export PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True\n{advice}").get("expandable_segments") is True
    assert events("export PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True") == []


def test_wrappers_that_print_it_again_do_not_count() -> None:
    line = "CUDA out of memory. Tried to allocate 1.00 GiB."
    assert (
        len(
            events(
                f"torch.OutOfMemoryError: {line}\nRuntimeError: worker failed: {line}\nRuntimeError: CUDA error: out of memory"
            )
        )
        == 1
    )
    assert len(events(f"[rank0]: {line}\n[rank1]: {line}")) == 2


def test_the_frame_of_the_user_is_kept() -> None:
    event = events((CAPTURES / "oom.formats.log").read_text())[0]
    assert (event.get("file"), event.get("function"), event.get("rank")) == ("/proj/orchid/train.py", "step", 2)


def test_the_memory_of_the_host_is_not_the_memory_of_the_device() -> None:
    lines = "slurmstepd: error: Detected 1 oom_kill event\nMemoryError: Unable to allocate 8.00 GiB for an array\nOut of memory: Killed process 42"
    found = torch_oom.parse(lines_of(lines), Context("job.log"))
    assert [o.status for o in found] == [Status.NONE_SEEN]


@given(st.integers(1, 10**6), st.sampled_from(["B", "KiB", "MiB", "GiB", "TiB"]))
def test_units_are_binary(value: int, unit: str) -> None:
    factor = {"B": 2**-20, "KiB": 2**-10, "MiB": 1, "GiB": 2**10, "TiB": 2**20}[unit]
    assert torch_oom.amount(f"{value:,}", unit) == pytest.approx(value * factor, abs=0.001)
    assert torch_oom.amount("many", unit) is None


@each(
    ("line", "many"),
    [
        ("INFO: CUDA out of memory guard enabled (retry=3)", 0),
        ("INFO: will retry on CUDA out of memory", 0),
        ("WARNING: a larger batch may lead to CUDA out of memory", 0),
        ("worker 3 died on CUDA out of memory", 1),
        ("retrying after CUDA out of memory", 1),
        ("caught CUDA out of memory, halving the batch", 1),
        ("CUDA out of memory. Tried to allocate 2.00 GiB", 1),
    ],
)
def test_out_of_memory_that_is_only_spoken_of_is_none(line: str, many: int) -> None:
    found = torch_oom.parse(lines_of(line), Context("x"))
    assert sum(isinstance(o.value, Event) for o in found) == many
