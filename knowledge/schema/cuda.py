"""Shape of ``knowledge/data/cuda/*.yaml``: error codes of CUDA, cuBLAS and cuDNN."""

from __future__ import annotations

from typing import Literal, Self

from pydantic import Field, field_validator, model_validator

from knowledge.schema.glossary import Bilingual, Line, Sourced
from knowledge.schema.nccl import known_bucket

_PREFIX = {
    "cuda": ("cudaError", "cudaSuccess"), "cuda_driver": ("CUDA_ERROR_",),
    "cublas": ("CUBLAS_STATUS_",), "cudnn": ("CUDNN_STATUS_",),
}  # fmt: skip


class Entry(Sourced):
    """One status code; see `knowledge.catalog.cuda.CudaStatus` for the meaning of each key."""

    name: str
    api: Literal["cuda", "cuda_driver", "cublas", "cudnn"]
    code: int = Field(ge=0)
    driver_name: str = ""
    messages: list[Line] = []
    title: Bilingual
    cause: Bilingual
    sticky: Literal["yes", "in_practice", "no"]
    hardware: Literal["yes", "possible", "no"]
    bucket: str
    since: str = ""

    _bucket = field_validator("bucket")(known_bucket)

    @model_validator(mode="after")
    def _named(self) -> Self:
        if not self.name.startswith(_PREFIX[self.api]):
            raise ValueError(f"a name of {self.api} starts with {' or '.join(_PREFIX[self.api])}")
        return self
