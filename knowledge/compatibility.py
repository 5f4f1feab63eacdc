"""Which versions of the driver stack go together: CUDA and driver, GPU architecture and driver, driver branch and its end.

Every row has its source (``knowledge/data/compatibility.yaml``). What the table does not know has no answer: None is never "fine".
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Any

from knowledge.compiled import shard

_DAY = 86_400 * 10**9  # ns
_LEADING = re.compile(r"[vV]?(\d{1,9}(?:\.\d{1,9})*)")


@dataclass(frozen=True, slots=True)
class Architecture:
    """What GPUs of one compute capability need."""

    compute_capability: str
    driver: str  # oldest branch
    cuda: str  # oldest toolkit
    open_only: bool  # the open kernel modules only


def numbers(version: str) -> tuple[int, ...]:
    """The numbers that a version begins with, for comparing: ``"12.4.1+cu"`` is (12, 4, 1). Empty when it begins with none."""
    found = _LEADING.match(version.strip())
    return tuple(map(int, found[1].split("."))) if found else ()


def driver_for_cuda(version: str) -> str | None:
    """Oldest driver on which programs of this CUDA release run; None for a release that the table does not know.

    The most exact row counts: ``"10.2.89"`` is of 10.2, ``"12.4"`` of 12.
    """
    wanted = numbers(version)
    fits = [(len(have), row) for row in _rows("cuda") if (have := numbers(row["version"])) == wanted[: len(have)]]
    return str(max(fits, key=lambda f: f[0])[1]["driver"]) if fits and wanted else None


def architecture(compute_capability: str) -> Architecture | None:
    """What GPUs of a compute capability such as ``"9.0"`` need; None for one that the table does not know."""
    for row in _rows("architecture"):
        if row["version"] == compute_capability:
            return Architecture(row["version"], row["driver"], row["cuda"], bool(row.get("open")))
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


@cache
def _rows(kind: str) -> tuple[dict[str, Any], ...]:
    return tuple(d for d in shard("compatibility") if d["kind"] == kind)
