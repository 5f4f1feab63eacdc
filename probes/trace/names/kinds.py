"""What each kernel of a trace is, as arrays: names are classified once each, rows by their names' numbers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import StrEnum
from typing import Final, TypeVar

import numpy as np

from probes.trace.columns import I32, U8, Cat, Mask, Table
from probes.trace.names.classify import (
    KernelClass,
    TensorCore,
    is_communication,
    kernel_class,
    moves_only_bytes,
    tensor_core,
)
from probes.trace.reading.reader import Trace

CLASSES: Final = tuple(KernelClass)
TENSOR_CORES: Final = tuple(TensorCore)
_Word = TypeVar("_Word", bound=StrEnum)


def used(numbers: I32, size: int) -> I32:
    """Which of the string numbers 0..size-1 occur in `numbers`, ascending."""
    seen = np.zeros(size + 1, np.bool_)
    seen[numbers] = True  # -1 marks the last, which is no string
    return np.flatnonzero(seen[:size]).astype(np.int32)


def communication(trace: Trace, gpu: Table | None = None) -> Mask:
    """For each GPU row whether it is a communication kernel."""
    gpu = trace.gpu if gpu is None else gpu
    kernels = np.equal(gpu.cat, Cat.KERNEL)
    return kernels & _by_name(trace, gpu.name, kernels, is_communication)


def only_bytes(trace: Trace, gpu: Table | None = None) -> Mask:
    """For each GPU row whether it is a kernel that by its nature only moves bytes (`classify.moves_only_bytes`)."""
    gpu = trace.gpu if gpu is None else gpu
    kernels = np.equal(gpu.cat, Cat.KERNEL)
    return kernels & _by_name(trace, gpu.name, kernels, moves_only_bytes)


def classes(trace: Trace, gpu: Table | None = None) -> U8:
    """For each GPU row the place of its class in `CLASSES`; copies and sets are of class copy."""
    return _places(trace, gpu, CLASSES, kernel_class, KernelClass.OTHER, KernelClass.COPY)


def tensor_cores(trace: Trace, gpu: Table | None = None) -> U8:
    """For each GPU row the place in `TENSOR_CORES` of what its name says; copies and sets use none."""
    return _places(trace, gpu, TENSOR_CORES, tensor_core, TensorCore.UNKNOWN, TensorCore.NO)


def _places(
    trace: Trace, gpu: Table | None, words: Sequence[_Word], said: Callable[[str], _Word], unsaid: _Word, copies: _Word
) -> U8:
    """The place in `words` of what `said` says of each row's name, asked once a name."""
    gpu = trace.gpu if gpu is None else gpu
    kernels = np.equal(gpu.cat, Cat.KERNEL)
    code = np.full(len(trace.strings) + 1, words.index(unsaid), np.uint8)
    names = used(gpu.name[kernels], len(trace.strings))
    code[names] = [words.index(said(trace.strings[i])) for i in names.tolist()]
    return np.where(kernels, code[gpu.name], np.uint8(words.index(copies)))


def _by_name(trace: Trace, names: I32, which: Mask, test: Callable[[str], bool]) -> Mask:
    said = np.zeros(len(trace.strings) + 1, np.bool_)
    numbers = used(names[which], len(trace.strings))
    said[numbers] = [test(trace.strings[i]) for i in numbers.tolist()]
    return said[names]
