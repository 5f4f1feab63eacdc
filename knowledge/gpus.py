"""GPU models: peaks, memory, links and power, found by the product name that the driver prints.

Peaks are dense (no sparsity) and at boost clock, in TFLOP/s. Variants of one family differ by a
factor of up to 1.3 and more, so a name that fits several gives none: see `candidates`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import field
from enum import StrEnum
from functools import cache, lru_cache
from typing import Any

from knowledge.catalog.cuda import Disagreement
from knowledge.language import Text
from knowledge.record import dataclass

# What the driver reports against the nominal size: up to 12 % less (ECC in GDDR, reserved memory), and a
# little more where the name counts 10^9 bytes.
_LEAST, _MOST = 0.88, 1.03


class Certainty(StrEnum):
    """How the figures of a model are known."""

    CHECKED = "checked"  # on independent pages
    DATASHEET = "datasheet"
    MEMORY = "memory"  # recalled: check before a figure decides anything


class Dtype(StrEnum):
    """Number formats with a peak of their own; the tensor cores' where the GPU has them, except FP64 and FP32."""

    FP64 = "fp64"
    FP64_TENSOR = "fp64_tensor"
    FP32 = "fp32"
    TF32 = "tf32"
    FP16 = "fp16"
    BF16 = "bf16"
    FP8 = "fp8"
    INT8 = "int8"
    FP4 = "fp4"


@dataclass(frozen=True, slots=True)
class Nvlink:
    """NVLink of one GPU."""

    generation: int
    links: int
    gbs: float  # GB/s, all links, both directions together


@dataclass(frozen=True, slots=True)
class GpuSpec:
    """One model. None stands for what is not known here, never for zero."""

    id: str
    title: str
    vendor: str
    family: str  # "H100": what people say
    architecture: str
    compute_capability: str | None
    form_factor: str
    memory_gib: float | None  # nominal size, as in the product name
    bandwidth_gbs: float | None  # memory, GB/s
    tdp_w: float | None
    pcie_generation: int | None
    peaks: Mapping[Dtype, float | None]  # dense TFLOP/s (int8: TOP/s)
    names: tuple[str, ...]  # RE2 patterns for the whole product name
    certainty: Certainty
    bandwidth_low_gbs: float | None = None  # where publications give a range
    nvlink: Nvlink | None = None
    max_clock_mhz: float | None = None  # the highest SM clock that the driver names
    note: Text | None = None
    sources: tuple[str, ...] = ()
    disagrees: tuple[Disagreement, ...] = ()
    achievable: Mapping[Dtype, float] = field(default_factory=dict)  # TFLOP/s that the vendor's own products reach

    @classmethod
    def from_plain(cls, data: Mapping[str, Any]) -> GpuSpec:
        """From checked YAML."""
        link, note = data.get("nvlink"), data.get("note")
        return cls(
            id=data["id"], title=data["title"], vendor=data["vendor"], family=data["family"],
            architecture=data["architecture"], compute_capability=data["compute_capability"],
            form_factor=data.get("form_factor", ""), memory_gib=data["memory_gib"],
            bandwidth_gbs=data["bandwidth_gbs"], tdp_w=data["tdp_w"], pcie_generation=data["pcie_generation"],
            peaks={Dtype(k): v for k, v in data["peaks"].items()}, names=tuple(data["names"]),
            certainty=Certainty(data["certainty"]), bandwidth_low_gbs=data.get("bandwidth_low_gbs"),
            nvlink=Nvlink(link["generation"], link["links"], link["gbs"]) if link else None,
            max_clock_mhz=data.get("max_clock_mhz"), note=Text.of(note) if note else None, sources=tuple(data["sources"]), disagrees=Disagreement.all_of(data),
            achievable={Dtype(k): float(v) for k, v in data.get("achievable", {}).items()},
        )  # fmt: skip

    def peak(self, dtype: Dtype | str) -> float | None:
        """Dense peak in TFLOP/s; None when unknown or when the GPU has no such format."""
        return self.peaks.get(Dtype(dtype))

    def knee(self, dtype: Dtype | str) -> float | None:
        """FLOP per byte above which a kernel is bound by computing: peak over memory bandwidth (roofline)."""
        peak = self.peak(dtype)
        return peak * 1000 / self.bandwidth_gbs if peak and self.bandwidth_gbs else None

    def fits(self, memory_mib: float) -> bool:
        """Whether a GPU that reports `memory_mib` can be this model."""
        return self.memory_gib is None or _LEAST <= memory_mib / 1024 / self.memory_gib <= _MOST


@cache
def all_specs() -> tuple[GpuSpec, ...]:
    """Every model, in the order of the data file (by generation)."""
    from knowledge.compiled import shard

    return tuple(GpuSpec.from_plain(data) for data in shard("gpus"))


def spec(identifier: str) -> GpuSpec | None:
    """The model called `identifier` (``h100-sxm``)."""
    return next((s for s in all_specs() if s.id == identifier), None)


def find(product_name: str, memory_mib: float | None = None) -> GpuSpec | None:
    """The one model that the driver's product name (and reported memory) fits; None when none or several do."""
    exact = _exact(product_name, memory_mib)
    return exact[0] if len(exact) == 1 else None


def candidates(product_name: str, memory_mib: float | None = None) -> tuple[GpuSpec, ...]:
    """All models that the name may mean: those it names exactly, else those whose family it mentions.

    A MIG slice (``... MIG 1g.10gb``) is no model of its own: `find` gives none, this gives the whole GPU.
    """
    whole = re.split(r" MIG \d", product_name, maxsplit=1)[0]  # a slice names the GPU it was cut from
    if exact := _exact(whole, memory_mib if whole == product_name else None):
        return exact
    words = _plain(product_name)
    if _BARE.fullmatch(words):  # A6000, 4090: as people call a card whose full name is RTX ...
        words = f"rtx {words}"
    named = [s for s in all_specs() if f" {_plain(s.family)} " in f" {words} "]
    longest = max((len(s.family) for s in named), default=0)  # "RTX 6000 Ada", not a shorter name within it
    return tuple(s for s in named if len(s.family) == longest and (memory_mib is None or s.fits(memory_mib)))


_BARE = re.compile(r"a?[2-6][0-9]{3}(?: (?:ti|super|ada|d))?")


@lru_cache(maxsize=512)
def _exact(product_name: str, memory_mib: float | None) -> tuple[GpuSpec, ...]:
    import re2

    name = " ".join(product_name.encode("utf-8", "replace").decode("utf-8").split())[:200]
    options = re2.Options()
    options.case_sensitive = False
    found = [s for s in all_specs() if any(re2.compile(p, options).fullmatch(name) for p in s.names)]
    return tuple(s for s in found if memory_mib is None or s.fits(memory_mib))


def _plain(text: str) -> str:
    return " ".join(re.findall(r"[a-z0-9]+", text.lower()))
