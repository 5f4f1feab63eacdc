"""Which versions of the driver stack go together: CUDA, DCGM, the device plugin and PyTorch with drivers and GPU architectures.

Every row has its source (``knowledge/data/compatibility.yaml``). What the table does not know has no answer: None is never "fine".
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Any

from knowledge.compiled import shard
from knowledge.lazy import lazy
from knowledge.record import dataclass

_DAY = 86_400 * 10**9  # ns
# 2.6.0+cu124   2.6.0: a release; 2.6.0a0+df5bbc09d1.nv24.12 is somebody's own build
_RELEASE = lazy(r"(\d{1,3}\.\d{1,3})\.\d{1,3}(?:\+cu\d{2,4})?")
# sm_90a   compute_120   sm_100f
_ARCH = lazy(r"(sm|compute)_(\d{1,2})(\d)([af]?)")
# Boards (Jetson, DRIVE, Thor) whose code and that of other GPUs do not run on each other, whatever their numbers say.
# https://docs.nvidia.com/cuda/cuda-c-programming-guide/ (binary compatibility)
_BOARDS = frozenset({(5, 3), (6, 2), (7, 2), (8, 7), (10, 1), (11, 0)})
_LEADING = lazy(r"[vV]?(\d{1,9}(?:\.\d{1,9})*)")


@dataclass(frozen=True, slots=True)
class Architecture:
    """What GPUs of one compute capability need."""

    compute_capability: str
    driver: str  # oldest branch
    cuda: str  # oldest toolkit
    open_only: bool  # the open kernel modules only
    dcgm: str | None = None  # oldest DCGM that knows them, where that is published


@dataclass(frozen=True, slots=True)
class Plugin:
    """What a release of NVIDIA's device plugin for Kubernetes needs at least."""

    driver: str
    toolkit: str  # of the container toolkit


def numbers(version: str) -> tuple[int, ...]:
    """The numbers that a version begins with, for comparing: ``"12.4.1+cu"`` is (12, 4, 1). Empty when it begins with none."""
    found = _LEADING.match(version.strip())
    return tuple(map(int, found[1].split("."))) if found else ()


def driver_for_cuda(version: str) -> str | None:
    """Oldest driver on which programs of this CUDA release run; None for a release that the table does not know.

    The most exact row counts: ``"10.2.89"`` is of 10.2, ``"12.4"`` of 12.
    """
    row = _fitting("cuda", version)
    return str(row["driver"]) if row else None


def driver_for_dcgm(version: str) -> str | None:
    """Oldest driver that a release of DCGM works with; None for a release that the table does not know."""
    row = _fitting("dcgm", version)
    return str(row["driver"]) if row else None


def device_plugin(version: str) -> Plugin | None:
    """What a release of the device plugin needs; None for one that the table does not know."""
    row = _fitting("plugin", version.lstrip("vV"))
    return Plugin(str(row["driver"]), str(row["toolkit"])) if row else None


def published_architectures(torch: str, cuda: str) -> tuple[str, ...] | None:
    """The architectures of the x86-64 wheels of a PyTorch release for a CUDA release, as ``("sm_80", ...)``.

    None for releases that the table does not know, and for builds that are no release: they may hold anything.
    """
    release, wanted = _RELEASE.fullmatch(torch.strip()), numbers(cuda)[:2]
    if release is None or len(wanted) < 2:
        return None
    for row in _rows("torch"):
        if row["version"] == release[1] and numbers(row["cuda"]) == wanted:
            return tuple(row["architectures"])
    return None


def runs_on(architectures: Sequence[str], capability: str) -> bool | None:
    """Whether code compiled for `architectures` (``sm_80``, ``compute_90``...) runs on a GPU of a compute capability (``"8.6"``).

    Machine code (sm) runs on its major version from its minor one on, PTX (compute) is translated for any later GPU; the suffix a
    ties either to exactly one, f to one family. None where that cannot be said: words that are no architecture, or boards.
    https://docs.nvidia.com/cuda/cuda-c-programming-guide/#compute-capabilities
    """
    wanted = numbers(capability)
    if len(wanted) != 2 or not architectures:
        return None
    known = [m for m in map(_ARCH.fullmatch, architectures) if m]
    if any(_covers(m, wanted) for m in known):
        return True
    return None if wanted in _BOARDS or len(known) < len(architectures) else False


def _covers(arch: re.Match[str], wanted: tuple[int, ...]) -> bool:
    have = (int(arch[2]), int(arch[3]))
    if have == wanted:
        return True
    if arch[4] == "a" or wanted in _BOARDS or (arch[1] == "sm" and have in _BOARDS):
        return False
    if arch[1] == "compute" and not arch[4]:
        return have <= wanted
    return have[0] == wanted[0] and have[1] <= wanted[1]


def architecture(compute_capability: str) -> Architecture | None:
    """What GPUs of a compute capability such as ``"9.0"`` need; None for one that the table does not know."""
    for row in _rows("architecture"):
        if row["version"] == compute_capability:
            return Architecture(row["version"], row["driver"], row["cuda"], bool(row.get("open")), row.get("dcgm"))
    return None


def branch_ended(driver: str, at: int) -> int | None:
    """Whole days for which the branch of a driver is past its end of life at a time (ns since 1970 UTC), 0 before it.

    None where that is not published here.
    """
    branch = numbers(driver)[:1]
    for row in _rows("branch"):
        if numbers(row["version"]) == branch:
            last = datetime.fromisoformat(row["end"]).replace(tzinfo=UTC) + timedelta(days=1)
            return max(0, -(-(at - int(last.timestamp()) * 10**9 + 1) // _DAY))
    return None


def _fitting(kind: str, version: str) -> dict[str, Any] | None:
    """The most exact row for a version."""
    wanted = numbers(version)
    fits = [(len(have), row) for row in _rows(kind) if (have := numbers(row["version"])) == wanted[: len(have)]]
    return max(fits, key=lambda f: f[0])[1] if fits and wanted else None


@cache
def _rows(kind: str) -> tuple[dict[str, Any], ...]:
    return tuple(d for d in shard("compatibility") if d["kind"] == kind)
