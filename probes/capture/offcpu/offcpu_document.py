"""What the kernel knows of threads over a window, as a capture keeps it: spans off the CPU and kernel stacks, raw.

One document for all processes of a capture. Times are CLOCK_MONOTONIC ns; functions of the kernel stand without offset and suffix.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, TypedDict

MOST_SPANS: Final = 200_000  # of all threads: about 8 MB of JSON
MOST_STACKS: Final = 5000  # different ones
DEEPEST: Final = 48  # functions of a kernel stack that are kept, the innermost
STATES: Final = frozenset("RSDTtXZPI?")  # R: was ready all the time, so another thread had its CPU; ?: not told


class OffThread(TypedDict):
    """What was seen of one thread."""

    pid: int
    name: str
    off: list[list[Any]]  # [since ns, for ns, stack or -1, state]
    on: list[list[int]]  # [at ns, stack]: samples of the kernel's own work for it


class Launches(TypedDict):
    """How often functions of a library were called in one process. `counts`: [thread, function, calls]; `stacks`: [thread, frames, calls]."""

    library: str
    symbols: list[str]
    began: int
    ended: int
    error: str
    code: str
    detail: str
    counts: list[list[Any]]
    stacks: list[list[Any]]  # user frames, outermost first


class OffCpuDoc(TypedDict):
    """Threads of several processes over a window. `threads` by OS number."""

    tool: str  # "perf version 6.1.187"
    method: str  # sched_switch, context-switches (perf), bpftrace, samples (/proc)
    began: int
    ended: int
    error: str  # what is missing and why, in English; `offcpu.failure` has the whole of it
    code: str
    detail: str  # the tool's own words
    functions: list[str]
    stacks: list[list[int]]  # outermost function first
    threads: dict[str, OffThread]
    lost: int  # records that the kernel dropped
    cut: bool  # more was recorded than is kept
    launches: dict[str, Launches]  # by pid


def restored(value: object) -> OffCpuDoc | None:
    """A document as it was kept, without what is no span in it; None when it is none at all. Never raises."""
    if not isinstance(value, Mapping) or "threads" not in value:
        return None
    functions = [f if isinstance(f, str) else "?" for f in _list(value.get("functions"))]
    stacks = [[i for i in _list(s) if type(i) is int and 0 <= i < len(functions)] for s in _list(value.get("stacks"))]
    threads: dict[str, OffThread] = {}
    kept = value.get("threads")
    for tid, row in kept.items() if isinstance(kept, Mapping) else ():
        if isinstance(row, Mapping):
            off = [s for s in _list(row.get("off")) if _is_span(s, len(stacks))]
            on = [s for s in _list(row.get("on")) if _is_sample(s, len(stacks))]
            threads[str(tid)] = {
                "pid": whole(row.get("pid")),
                "name": str(row.get("name") or ""),
                "off": sorted(off),
                "on": sorted(on),
            }
    calls = value.get("launches")
    found = (
        {str(k): _launches(v) for k, v in calls.items() if isinstance(v, Mapping)} if isinstance(calls, Mapping) else {}
    )
    return {
        "tool": str(value.get("tool") or ""), "method": str(value.get("method") or ""),
        "began": whole(value.get("began")), "ended": whole(value.get("ended")), "error": str(value.get("error") or ""),
        "code": str(value.get("code") or ""), "detail": str(value.get("detail") or ""), "functions": functions, "stacks": stacks,
        "threads": threads, "lost": whole(value.get("lost")), "cut": value.get("cut") is True, "launches": found,
    }  # fmt: skip


def whole(value: object) -> int:
    """`value` when it is a number of ns, else 0."""
    return value if type(value) is int and 0 <= value < 1 << 62 else 0


def _launches(row: Mapping[str, Any]) -> Launches:
    counts = [c for c in _list(row.get("counts")) if isinstance(c, list) and len(c) == 3 and whole(c[2])]
    stacks = [
        s
        for s in _list(row.get("stacks"))
        if isinstance(s, list) and len(s) == 3 and isinstance(s[1], list) and whole(s[2])
    ]
    return {
        "library": str(row.get("library") or ""), "symbols": [str(s) for s in _list(row.get("symbols"))],
        "began": whole(row.get("began")), "ended": whole(row.get("ended")), "error": str(row.get("error") or ""),
        "code": str(row.get("code") or ""), "detail": str(row.get("detail") or ""), "counts": counts, "stacks": stacks,
    }  # fmt: skip


def _list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


def _is_span(row: object, stacks: int) -> bool:
    return (
        isinstance(row, list)
        and len(row) == 4
        and all(type(v) is int for v in row[:3])
        and 0 <= row[0] < 1 << 62
        and 0 < row[1] < 1 << 50
        and -1 <= row[2] < stacks
        and isinstance(row[3], str)
        and row[3] in STATES
    )


def _is_sample(row: object, stacks: int) -> bool:
    return (
        isinstance(row, list)
        and len(row) == 2
        and all(type(v) is int for v in row)
        and 0 <= row[0] < 1 << 62
        and 0 <= row[1] < stacks
    )
