"""The stacks of one process over a window, as a capture keeps them: raw samples, never only sums."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NotRequired, TypedDict

from probes.capture.model import STACK_RATE, Refusal
from probes.capture.stacks import pyspy


class ThreadSamples(TypedDict):
    """What was seen of one thread: since when (ns), for how long (ns), which stack."""

    name: str
    samples: list[list[int]]


class StackDoc(TypedDict):
    """The stacks of one process over a window. `threads` by OS number, or ``0x7f...`` where that could not be told."""

    tool: str
    rate: int  # Hz, asked for
    began: int  # ns, the first sample
    ended: int
    error: str  # why there is nothing, in English; `failure` has the whole of it
    frames: list[list[Any]]  # function, file, line
    stacks: list[list[int]]  # outermost frame first
    threads: dict[str, ThreadSamples]
    code: NotRequired[str]  # of the error: a key of pyspy.why
    detail: NotRequired[str]  # py-spy's own words
    clock_error: NotRequired[int]  # ns, either way
    torn: NotRequired[int]  # spans left out: impossible stacks
    real_rate: NotRequired[float]  # Hz, what py-spy came to: less than `rate` where it fell behind
    misses: NotRequired[int]  # samples that py-spy could not read
    cut: NotRequired[bool]  # more was recorded than is kept
    left_early: NotRequired[bool]  # the process ended within the window


def empty(code: str, detail: str = "", *, tool: str = "py-spy", rate: int = STACK_RATE) -> StackDoc:
    """The document of a process whose stacks could not be had."""
    return {
        "tool": tool, "rate": rate, "began": 0, "ended": 0, "error": pyspy.why(code, detail).why.en,
        "frames": [], "stacks": [], "threads": {}, "code": code, "detail": detail,
    }  # fmt: skip


def restored(value: object) -> StackDoc | None:
    """A document as it was kept, without what is no sample in it; None when it is none at all. Never raises."""
    if not isinstance(value, Mapping):
        return None
    frames = [
        [str(f[0]), str(f[1]), f[2] if isinstance(f[2], int) else 0]
        if isinstance(f, list) and len(f) == 3
        else ["?", "", 0]
        for f in _list(value.get("frames"))
    ]
    stacks = [[i for i in _list(s) if isinstance(i, int) and 0 <= i < len(frames)] for s in _list(value.get("stacks"))]
    threads: dict[str, ThreadSamples] = {}
    kept = value.get("threads")
    for tid, row in kept.items() if isinstance(kept, Mapping) else ():
        if isinstance(row, Mapping):
            samples = [s for s in _list(row.get("samples")) if _is_sample(s, len(stacks))]
            threads[str(tid)] = {"name": str(row.get("name") or ""), "samples": sorted(samples)}
    rate, code, real = value.get("rate"), value.get("code"), value.get("real_rate")
    asked = rate if isinstance(rate, int) and 0 < rate <= 10_000 else STACK_RATE
    return {
        "tool": str(value.get("tool") or "py-spy"), "rate": asked,
        "began": _whole(value.get("began")), "ended": _whole(value.get("ended")), "error": str(value.get("error") or ""),
        "frames": frames, "stacks": stacks, "threads": threads, "code": str(code or ""), "detail": str(value.get("detail") or ""),
        "torn": _whole(value.get("torn")), "misses": _whole(value.get("misses")), "clock_error": _whole(value.get("clock_error")),
        "cut": value.get("cut") is True, "left_early": value.get("left_early") is True,
        "real_rate": float(real) if isinstance(real, int | float) and 0 < real <= 10_000 else float(asked),
    }  # fmt: skip


def looks(doc: StackDoc, ns: int) -> int:
    """How often a thread was looked at in so long a time, about."""
    return round(ns * min(float(doc["rate"]), doc.get("real_rate") or float(doc["rate"])) / 10**9)


def _list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


def _whole(value: object) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 62 else 0


def _is_sample(row: object, stacks: int) -> bool:
    if not isinstance(row, list) or len(row) != 3 or any(type(v) is not int for v in row):
        return False
    return bool(0 <= row[0] < 1 << 62 and 0 < row[1] < 1 << 50 and 0 <= row[2] < stacks)


def clipped(doc: StackDoc, began: int, ended: int) -> StackDoc:
    """Only what lies in a window, monotonic ns."""
    threads: dict[str, ThreadSamples] = {}
    for tid, thread in doc["threads"].items():
        rows = ((max(s[0], began), min(s[0] + s[1], ended), s[2]) for s in thread["samples"])
        threads[tid] = {
            "name": thread["name"],
            "samples": [[low, high - low, n] for low, high, n in rows if high > low],
        }
    return {**doc, "began": max(doc["began"], began), "ended": min(doc["ended"], ended), "threads": threads}


def failure(doc: StackDoc) -> Refusal | None:
    """Why a document holds no stacks, in both languages with the remedy; None when it holds some."""
    return pyspy.why(doc.get("code") or "failed", doc.get("detail", "")) if doc["error"] else None
