"""Speedscope's file format (https://www.speedscope.app/file-format-schema.json): written, and read from any tool.

Written are sampled profiles, one for device time and one for host time, over the same frames. Read are sampled and
evented ones, as py-spy, rbspy, and speedscope itself save them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, Literal

import msgspec
import numpy as np

from knowledge.errors import InputError
from knowledge.text import clean
from probes.trace.names.naming import frame_of
from probes.trace.trees.calltree import CallTree, Time
from probes.trace.trees.folded import Builder

SCHEMA: Final = "https://www.speedscope.app/file-format-schema.json"
_NAMES: Final[dict[Time, str]] = {"gpu": "GPU time", "cpu": "CPU time"}
_UNITS: Final = {"nanoseconds": 1, "microseconds": 10**3, "milliseconds": 10**6, "seconds": 10**9}


class _Frame(msgspec.Struct):
    name: str
    file: str | None = None
    line: int | None = None


class _Shared(msgspec.Struct):
    frames: list[_Frame]


class _Event(msgspec.Struct):
    type: Literal["O", "C"]
    frame: int
    at: float | int


class _Sampled(msgspec.Struct, tag_field="type", tag="sampled"):
    name: str
    unit: str
    samples: list[list[int]]
    weights: list[float | int]


class _Evented(msgspec.Struct, tag_field="type", tag="evented"):
    name: str
    unit: str
    events: list[_Event]


class _File(msgspec.Struct):
    shared: _Shared
    profiles: list[_Sampled | _Evented]
    name: str | None = None


def speedscope(tree: CallTree, name: str = "") -> dict[str, Any]:
    """The tree as a speedscope file: a profile each for device and host time, of those that the tree has."""
    times: list[Time] = [t for t in ("gpu", "cpu") if tree.own(t).any()]
    return {
        "$schema": SCHEMA,
        "exporter": "gpudiag",
        "name": clean(name or tree.title) or "gpudiag",
        "activeProfileIndex": 0,
        "shared": {"frames": [_frame(n) for n in tree.names]},
        "profiles": [_profile(tree, time) for time in times or ["cpu"]],
    }


def _frame(name: str) -> dict[str, Any]:
    text = " ".join(clean(name).split()) or "?"
    python = frame_of(text)
    return {"name": python.function, "file": python.file, "line": python.line} if python else {"name": text}


def _profile(tree: CallTree, time: Time) -> dict[str, Any]:
    own = tree.own(time)
    nodes = np.flatnonzero(own)
    return {
        "type": "sampled",
        "name": _NAMES[time],
        "unit": "nanoseconds" if tree.unit == "nanoseconds" else "none",
        "startValue": 0,
        "endValue": int(own.sum()),
        "samples": [_stack(tree, node) for node in nodes.tolist()],
        "weights": own[nodes].tolist(),
    }


def _stack(tree: CallTree, node: int) -> list[int]:
    found = []
    while node >= 0:
        found.append(int(tree.frame[node]))
        node = int(tree.parent[node])
    return found[::-1]


def from_speedscope(data: bytes, title: str = "") -> CallTree:
    """The tree of a speedscope file. Profiles of one that gpudiag wrote become host and device time; several others
    (py-spy: one a thread) a tree each. Times in `cpu_ns`, or samples where the unit is no time.

    InputError for anything that does not keep to the format.
    """
    try:
        file = msgspec.json.decode(data, type=_File)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise InputError(f"{title or 'the input'} is no speedscope file: {error}") from error
    names = [_name(f) for f in file.shared.frames]
    timed = bool(file.profiles) and all(p.unit in _UNITS for p in file.profiles)
    builder = Builder(title or clean(file.name or ""), "nanoseconds" if timed else "samples")
    kinds: dict[str, Time] = {text: time for time, text in _NAMES.items()}
    ours = all(p.name in kinds for p in file.profiles)
    for profile in file.profiles:
        root = [] if ours or len(file.profiles) == 1 else [clean(profile.name) or "?"]
        unit = _UNITS[profile.unit] if timed else 1
        for stack, weight in _samples(profile, unit, title):
            if not all(0 <= i < len(names) for i in stack):
                raise InputError(f"{title or 'the input'} names a frame that it does not hold")
            builder.add(root + [names[i] for i in stack], weight, kinds.get(profile.name, "cpu") if ours else "cpu")
    return builder.tree()


def _name(frame: _Frame) -> str:
    if frame.file and frame.line:
        return f"{frame.file}({frame.line}): {frame.name}"
    return frame.name


def _samples(profile: _Sampled | _Evented, unit: int, title: str) -> Iterator[tuple[list[int], int]]:
    if isinstance(profile, _Sampled):
        for sample, weight in zip(profile.samples, profile.weights, strict=False):
            yield sample, _whole(weight, unit, title)
        return
    stack: list[int] = []
    last = 0.0
    for event in profile.events:
        if stack and event.at != last:
            yield stack, _whole(event.at - last, unit, title)
        last = event.at
        if event.type == "O":
            stack = [*stack, event.frame]
        elif stack and stack[-1] == event.frame:
            stack = stack[:-1]
        else:
            raise InputError(f"{title or 'the input'} closes frame {event.frame}, which is not the innermost open one")


def _whole(value: float, unit: int, title: str) -> int:
    scaled = value * unit
    if not abs(scaled) < 2**62 or scaled < 0:
        raise InputError(f"{title or 'the input'} holds a time that cannot be: {value}")
    return round(scaled)
