"""How Nsight Systems calls things, in the words of Kineto's traces: so that one analysis serves both."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

import numpy as np

from probes.trace.columns import ABSENT, BASE, NO_TEXT, Array, Mask, Table, dtype_of

_VERSION: Final = re.compile(r"(?:_v\d+)?(?:_ptsz|_ptds)?$")
_DRIVER: Final = re.compile(r"cu[A-Z]")
# ENUM_CUDA_MEMCPY_OPER and ENUM_CUDA_MEM_KIND of an export; CUpti_ActivityMemcpyKind, CUpti_ActivityMemoryKind
_COPIES: Final = {
    1: "HtoD",
    2: "DtoH",
    3: "HtoA",
    4: "AtoH",
    5: "AtoA",
    6: "AtoD",
    7: "DtoA",
    8: "DtoD",
    9: "HtoH",
    10: "PtoP",
}
_PLACES: Final = {0: "Pageable", 1: "Pinned", 2: "Device", 3: "Array", 4: "Managed", 5: "Device", 6: "Managed"}
# of the reports of `nsys stats`
_REPORTED: Final = {"Host-to-Device": "HtoD", "Device-to-Host": "DtoH", "Device-to-Device": "DtoD", "Host-to-Host": "HtoH",
                    "HtoD": "HtoD", "DtoH": "DtoH", "DtoD": "DtoD", "Peer-to-Peer": "PtoP", "PtoP": "PtoP"}  # fmt: skip


def call_name(name: str) -> str:
    """``cudaLaunchKernel_v7000`` as ``cudaLaunchKernel``."""
    return _VERSION.sub("", name)


def is_driver(name: str) -> bool:
    """Whether a call is one of the driver: ``cuLaunchKernel``."""
    return _DRIVER.match(name) is not None


def copy_name(kind: int, source: int, target: int) -> str:
    """``Memcpy HtoD (Pinned -> Device)``; without the places where they were not recorded."""
    name = f"Memcpy {_COPIES.get(kind, 'unknown')}"
    if source in _PLACES and target in _PLACES:
        name += f" ({_PLACES[source]} -> {_PLACES[target]})"
    return name


def reported_copy(name: str) -> str | None:
    """A copy's or set's name out of ``[CUDA memcpy Host-to-Device]``; None for a kernel's."""
    if name.startswith("[CUDA memset"):
        return "Memset (Device)"
    if not name.startswith("[CUDA memcpy"):
        return None
    return f"Memcpy {_REPORTED.get(name[len('[CUDA memcpy ') : -1], 'unknown')}"


def table(parts: list[dict[str, Array]], args: Iterable[str]) -> Table:
    """One table of several parts, in the tables' order; what a part has not, and what nsys never has, is absent."""
    names = [*BASE, *sorted(args)]
    if not parts:
        return Table.empty(args)
    columns = {n: np.concatenate([p[n].astype(dtype_of(n)) if n in p else _absent(n, len(p["start"])) for p in parts])
               for n in names}  # fmt: skip
    found = Table(columns)
    return found.take(np.lexsort((-found.dur, found.start)))


def _absent(column: str, count: int) -> Array:
    kind = dtype_of(column)
    missing = float("nan") if kind is np.float64 else ABSENT if kind is np.int64 else NO_TEXT
    return np.full(count, missing, kind)


def possible(start: Array, end: Array, longest: int) -> Mask:
    """Rows whose times can be: not before the session, not backwards, not longer than `longest` ns."""
    keep = (start >= 0) & (start < 1 << 61) & (end >= start) & (end < 1 << 61)
    return keep & (np.where(keep, end - start, 0) <= longest)
