"""One call of an operator as the profiler recorded it: shapes, types, values; and what its work comes to."""

from __future__ import annotations

import json
from collections.abc import Sequence
from enum import StrEnum
from typing import Any, Final, TypeAlias

from knowledge.record import dataclass

_LONGEST: Final = 1 << 16  # characters of an argument's text: lists of thousands of tensors are no product

_RANK: Final = 8  # dimensions of a tensor that any of the formulas has a use for

Dims: TypeAlias = tuple[int, ...]

# `Input type` as the profiler writes it -> (number format, bytes of an element)
TYPES: Final = {
    "double": ("fp64", 8), "float": ("fp32", 4), "c10::Half": ("fp16", 2), "c10::BFloat16": ("bf16", 2),
    "c10::Float8_e4m3fn": ("fp8", 1), "c10::Float8_e5m2": ("fp8", 1), "c10::Float8_e4m3fnuz": ("fp8", 1),
    "c10::Float8_e5m2fnuz": ("fp8", 1), "signed char": ("int8", 1), "unsigned char": ("int8", 1), "char": ("int8", 1),
}  # fmt: skip
SIZES: Final = dict(TYPES.values()) | {"tf32": 4}


class Kind(StrEnum):
    """What sort of work an operator does."""

    GEMM = "gemm"
    CONVOLUTION = "convolution"
    ATTENTION = "attention"


class Doubt(StrEnum):
    """What had to be assumed."""

    NONE = ""
    CAUSAL = "causal"  # not recorded: counted as not causal, twice the work of a causal one
    MASK = "mask"  # which gradients were asked for is not recorded: counted as both


@dataclass(frozen=True, slots=True)
class Cost:
    """The work of one call."""

    kind: Kind
    flop: int
    bytes: int
    dtype: str  # number format of the first operand: "bf16"
    # (size, bytes that stay when it grows): dimensions that more samples or tokens may stand in
    batches: tuple[tuple[int, int], ...] = ()
    doubt: Doubt = Doubt.NONE


@dataclass(frozen=True, slots=True)
class Call:
    """The recorded inputs of a call: shapes, types and the values of what is no tensor."""

    dims: Sequence[Any]
    types: Sequence[Any]
    concrete: Sequence[Any]
    assumed: str = ""  # number format where no types were recorded
    result: Dims | None = None  # of a convolution whose stride was not recorded: the result its gradient tells of

    def shape(self, index: int) -> Dims | None:
        """The shape of a tensor argument; None when it is none, was not recorded, or is no list of sizes."""
        found = self.dims[index] if index < len(self.dims) else None
        if not isinstance(found, list) or not 0 < len(found) <= _RANK:
            return None
        return tuple(found) if all(type(n) is int and 0 <= n < 1 << 48 for n in found) else None

    def format(self, index: int) -> tuple[str, int] | None:
        """Number format and element size of a tensor argument."""
        if index < len(self.types) and (said := self.types[index]):
            return TYPES.get(said) if isinstance(said, str) else None
        return (self.assumed, SIZES[self.assumed]) if self.assumed in SIZES else None

    def flag(self, index: int) -> bool | None:
        """A recorded True or False (or 0, 1, 2: kinds of masks); None when it was not recorded."""
        text = self.text(index)
        return {"True": True, "False": False, "0": False, "1": True, "2": True}.get(text)

    def numbers(self, index: int) -> list[int] | None:
        """A recorded list of integers."""
        found = parse(self.text(index))
        return found if found is not None and all(type(n) is int for n in found) else None

    def text(self, index: int) -> str:
        """A recorded value as text; empty when there is none."""
        found = self.concrete[index] if index < len(self.concrete) else ""
        return found if isinstance(found, str) else ""


def parse(text: str) -> list[Any] | None:
    """A JSON list; None for anything else, for what is too long and for what nests too deeply."""
    if not text.lstrip().startswith("[") or len(text) > _LONGEST:
        return None
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, list) else None


def shown(dims: str) -> str:
    """Shapes for reading: ``768 x 788x768``; what is no tensor is left out."""
    parts = []
    for one in parse(dims) or ():
        if isinstance(one, list) and one:
            nested = any(isinstance(n, list) for n in one)
            parts.append("[...]" if nested else "x".join(str(n)[:12] for n in one[:_RANK]))
    return ", ".join(parts[:8])
