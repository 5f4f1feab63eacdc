"""The peaks that a trace's work is held against: of the GPU that the trace or the user names."""

from __future__ import annotations

from typing import Any

from knowledge.gpus import Dtype, GpuSpec, candidates, spec
from knowledge.record import dataclass

_SLICE = " MIG "


@dataclass(frozen=True, slots=True)
class Chip:
    """A GPU, or several that a name may mean; a figure is None unless all of them agree on it."""

    title: str
    models: tuple[GpuSpec, ...]

    @property
    def bandwidth_gbs(self) -> float | None:
        """Memory bandwidth, GB/s."""
        return _agreed([m.bandwidth_gbs for m in self.models])

    def peak(self, dtype: str) -> float | None:
        """Dense peak in TFLOP/s of a number format; None when it is not known, or has none."""
        return _agreed([m.peak(dtype) for m in self.models]) if dtype in set(Dtype) else None

    def reachable(self, dtype: str) -> float | None:
        """What large products reach in practice, where the vendor says so, else the peak; TFLOP/s."""
        said = [m.achievable.get(Dtype(dtype)) for m in self.models] if dtype in set(Dtype) else []
        return _agreed(said) or self.peak(dtype)

    def knee(self, dtype: str) -> float | None:
        """FLOP per byte above which the peak binds and not the memory (roofline model)."""
        peak, bandwidth = self.peak(dtype), self.bandwidth_gbs
        return peak * 1000 / bandwidth if peak and bandwidth else None

    @property
    def has_tf32(self) -> bool:
        """Whether any of the models multiplies FP32 in TF32 on tensor cores."""
        return any(m.peak(Dtype.TF32) for m in self.models)


def chip(name: str, devices: list[dict[str, Any]]) -> Chip:
    """The GPU called `name` (an id, a product name or a family); without one, that of ``deviceProperties``.

    No models when neither names one that is known.
    """
    if name:
        one = spec(name.strip().lower())
        found = (one,) if one is not None else candidates(name)
        return Chip(_title(found, name), found)
    for device in devices:
        if said := str(device.get("name") or ""):
            size = device.get("totalGlobalMem")
            known = type(size) is int and size > 0
            if _SLICE in said:  # a part of the GPU has a part of its peaks
                return Chip(said[:200], ())
            found = candidates(said, size / 2**20 if known and size else None)
            return Chip(_title(found, said), found)
    return Chip("", ())


def _title(found: tuple[GpuSpec, ...], said: str) -> str:
    return found[0].title if len(found) == 1 else said[:200]


def _agreed(values: list[float | None]) -> float | None:
    return values[0] if len(set(values)) == 1 else None
