"""Why a trace does not tell a fact, and what would make it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

_NO_GPU: Final = "the trace holds no GPU activity: record with activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]"
_NO_CALLS: Final = "the trace holds no launch calls of the kernels: record with ProfilerActivity.CPU as well"
_NO_STACKS: Final = "the trace holds no Python functions: record with with_stack=True"
_NO_SHAPES: Final = "the trace holds no shapes: record with record_shapes=True"
_NO_MEMORY: Final = "the trace holds no allocator events: record with profile_memory=True"
_NO_STEPS: Final = "the trace holds no whole iterations: record with prof.step() in the loop"
_NO_DEVICE: Final = "the trace does not describe the GPU (deviceProperties)"

# Why a fact of this beginning is not told, when nothing more exact is known. The first that fits counts.
_REASONS: Final[Mapping[str, str]] = {
    "trace.idle.python.share": _NO_STACKS, "trace.idle.threads.share": "the trace holds the Python functions of one thread at most",
    "trace.python.": _NO_STACKS, "trace.checkpoint.": _NO_STACKS,
    "trace.data_loader.": "the trace holds no iterator of a torch.utils.data.DataLoader",
    "trace.iteration": _NO_STEPS, "trace.allocator.calls": _NO_CALLS, "trace.allocator.idle": _NO_CALLS, "trace.allocator.": _NO_MEMORY,
    "trace.memory_bound": _NO_SHAPES, "trace.compute_bound": _NO_SHAPES, "trace.gemm.rate": _NO_SHAPES,
    "trace.gemm.of_peak": _NO_SHAPES, "trace.gemm.batch": _NO_SHAPES, "trace.device": _NO_DEVICE,
    "trace.kernels.underfilled": _NO_DEVICE,
    "trace.copies.": "the names of the copies do not tell whether the host's memory was pinned",
    "trace.optimizer": "the trace holds no Optimizer.step with kernels",
    "trace.collective_wait": "the trace of one rank was given, or its collectives have no partner in the others",
    "trace.": _NO_CALLS,
}  # fmt: skip
# Names that stand only where there is something to name: their absence says nothing.
NAMES: Final = (".top", ".what", ".device", "trace.iteration.slow")


def reason(fact: str, gpu: bool, shapes: bool, stacks: bool) -> str:
    """Why `fact` was not told by a trace with or without GPU activity, shapes and stacks, and what would record it."""
    if not gpu:
        return _NO_GPU
    why = next(why for start, why in _REASONS.items() if fact.startswith(start))
    if why == _NO_SHAPES and shapes:
        return "no product of the recorded shapes tells, or the peaks of the GPU are not known"
    return _NO_CALLS if why == _NO_STACKS and stacks else why
