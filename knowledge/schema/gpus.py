"""Shape of ``knowledge/data/gpus.yaml``."""

from __future__ import annotations

from typing import Literal

import re2
from pydantic import Field, field_validator

from knowledge.schema import Strict
from knowledge.schema.glossary import Bilingual, Line, Sourced


class Nvlink(Strict):
    """NVLink of one GPU; `gbs` is GB/s of all links, both directions together."""

    generation: int = Field(ge=1, le=5)
    links: int = Field(ge=1, le=18)
    gbs: float = Field(gt=0, strict=False)


class Peaks(Strict):
    """Dense peaks in TFLOP/s (int8: TOP/s); null where not known or not there."""

    fp64: float | None = Field(gt=0, strict=False)
    fp64_tensor: float | None = Field(gt=0, strict=False)
    fp32: float | None = Field(gt=0, strict=False)
    tf32: float | None = Field(gt=0, strict=False)
    fp16: float | None = Field(gt=0, strict=False)
    bf16: float | None = Field(gt=0, strict=False)
    fp8: float | None = Field(gt=0, strict=False)
    int8: float | None = Field(gt=0, strict=False)
    fp4: float | None = Field(gt=0, strict=False)


class Entry(Sourced):
    """One model; see `knowledge.gpus.GpuSpec`."""

    id: str = Field(pattern=r"^[a-z0-9]+(-[a-z0-9]+)*$")
    title: Line
    vendor: Literal["nvidia", "amd"]
    family: Line
    architecture: Line
    compute_capability: str | None
    form_factor: str = ""
    memory_gib: float | None = Field(gt=0, strict=False)
    bandwidth_gbs: float | None = Field(gt=0, strict=False)
    bandwidth_low_gbs: float | None = Field(default=None, gt=0, strict=False)
    tdp_w: float | None = Field(gt=0, strict=False)
    max_clock_mhz: float | None = Field(None, gt=0, strict=False)
    nvlink: Nvlink | None = None
    pcie_generation: int | None = Field(ge=3, le=6)
    peaks: Peaks
    achievable: dict[Literal["fp32", "tf32", "fp16", "bf16", "fp8", "int8"], float] = {}
    names: list[Line] = Field(min_length=1)
    certainty: Literal["checked", "datasheet", "memory"]
    note: Bilingual | None = None

    @field_validator("names")
    @classmethod
    def _patterns(cls, names: list[str]) -> list[str]:
        for name in names:
            try:
                re2.compile(name)
            except re2.error as error:
                raise ValueError(f"{name!r} is not an RE2 pattern: {error}") from error
        return names
