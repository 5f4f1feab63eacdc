"""What a kernel is, from its name: communication, matrix product, attention, copy, ... and whether it uses tensor cores.

Only names stand in a trace, so each class is a list of patterns with their source; tensor-core use is yes, no
or unknown, and only a hardware counter proves it.
"""

from __future__ import annotations

from enum import StrEnum
from functools import cache, lru_cache
from typing import Final

import re2


class KernelClass(StrEnum):
    """What a kernel does. Of several that fit, the first counts."""

    COMMUNICATION = "communication"
    ATTENTION = "attention"
    GEMM = "gemm"
    CONVOLUTION = "convolution"
    OTHER = "other"


class TensorCore(StrEnum):
    """Whether a kernel computes on tensor cores (AMD: matrix cores), as far as a name tells."""

    YES = "yes"
    NO = "no"
    UNKNOWN = "unknown"


# NCCL and RCCL; DeepEP; NVSHMEM; torch symmetric memory; vLLM, SGLang, FlashInfer and AITER custom and fused all-reduce.
_COMMUNICATION: Final = (
    r"(?i)nccl(?:dev)?kernel|^nccl|rccl|^ncclKernel|deep_ep::|\bdeep_?ep\b|nvshmem|multimem_|symm_?mem|cross_device_reduce|"
    r"custom_?all_?reduce|all_?reduce|all_?gather|reduce_?scatter|all_?to_?all|one_shot_|two_shot_|trtllm_.*allreduce|mscclpp|msccl"
)


@cache
def _communication() -> re2._Regexp:
    return re2.compile(_COMMUNICATION)


@lru_cache(maxsize=65536)
def is_communication(name: str) -> bool:
    """Whether a kernel of this name moves data between ranks."""
    return _communication().search(name) is not None
