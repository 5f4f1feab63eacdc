"""``torch.cuda.memory._snapshot()``: pickles of ``_dump_snapshot`` and their JSON, read without unpickling.

A snapshot is ``{"segments": [...], "device_traces": [[...], ...], "allocator_settings": {...}}``; before torch 2 it
was the list of segments alone (torch/cuda/memory.py, torch/csrc/cuda/Module.cpp; docs: Understanding CUDA Memory
Usage). Segments hold blocks that are allocated, waiting for a stream to be freed, or inactive; the traces hold the
allocator's history, oldest first, as far back as it was recorded. All of it is taken for hostile.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import field
from pathlib import Path
from typing import Any, Final

import msgspec
import numpy as np

from knowledge.errors import InputError
from knowledge.language import Text
from knowledge.record import dataclass
from knowledge.text import clean
from probes.trace.allocator import pickled
from probes.trace.allocator.memory import timeline
from probes.trace.columns import I64
from probes.trace.model import MemoryUse

LARGEST: Final = 2 << 30  # bytes of a file; what is made of it is bounded on its own
_MOST: Final = 20_000_000  # blocks, and events, that are looked at
_TOP: Final = 10
_SLICES: Final = 5  # of the history: who grows in each but the first leaks; the first holds the model
_INT: Final = 1 << 62
_SIZE: Final = 1 << 44  # bytes of a block (16 TiB): sums stay within 64 bits


@dataclass(slots=True)
class _State:
    """What the segments of one device say."""

    reserved: int = 0
    allocated: int = 0
    split: int = 0  # free bytes in segments that also hold live blocks: nobody can give them back
    free: int = 0
    largest_free: int = 0
    holders: dict[str, int] = field(default_factory=dict)


class _Frames:
    """The name of the frame that asked, for lists of frames that recur thousands of times."""

    def __init__(self) -> None:
        self._names: dict[int, str] = {}

    def name(self, block: dict[str, Any]) -> str:
        frames = block.get("frames")
        if not isinstance(frames, list):
            history = block.get("history")  # torch 1.13
            first = history[0] if isinstance(history, list) and history else None
            frames = first.get("frames") if isinstance(first, dict) else None
        if not isinstance(frames, list) or not frames:
            return "?"
        found = self._names.get(id(frames))
        if found is None:
            found = self._names[id(frames)] = _asker(frames)
        return found


def looks_like(head: bytes) -> bool:
    """Whether a file that begins with `head` (a few KiB) is a memory snapshot, pickled or as JSON."""
    if pickled.looks_like(head):
        return b"segments" in head or b"device_traces" in head or (b"total_size" in head and b"address" in head)
    start = head.lstrip()[:64]
    return start[:1] == b"{" and (b'"segments"' in head or b'"device_traces"' in start) and b'"traceEvents"' not in head


def read_snapshot(path: str) -> tuple[MemoryUse, ...]:
    """One value for each device of the snapshot at `path`.

    InputError when it cannot be read, is no snapshot, or is a pickle of more than plain data.
    """
    segments, traces, settings = _parts(_load(path))
    states = _states(segments)
    devices = sorted({*states, *(i for i, t in enumerate(traces) if t)})[:256]
    if not devices:
        raise InputError(f"{path} is a snapshot without segments and history: no memory of a device was in use")
    return tuple(_use(d, states.get(d, _State()), traces[d] if d < len(traces) else [], settings) for d in devices)


def _load(path: str) -> Any:
    try:
        if (size := os.stat(path).st_size) > LARGEST:  # noqa: PTH116 - one call before the reading
            raise InputError(f"{path} has {size >> 20} MiB, more than a snapshot may have ({LARGEST >> 20} MiB)")
        data = Path(path).read_bytes()
    except OSError as error:
        raise InputError(f"{path}: {error.strerror or error}") from error
    if pickled.looks_like(data[:16]):
        return pickled.load(data, max(1 << 30, 16 * len(data)))
    try:
        return msgspec.json.decode(data)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise InputError(f"{path} is neither a pickle nor JSON: {error}") from error


def _parts(found: Any) -> tuple[list[Any], list[list[Any]], dict[str, Any]]:
    if isinstance(found, list):
        return found, [], {}
    if not isinstance(found, dict) or not ("segments" in found or "device_traces" in found):
        raise InputError("no memory snapshot: it has neither segments nor device_traces",
                         hint="torch.cuda.memory._dump_snapshot(path) writes one")  # fmt: skip
    segments, traces, settings = (found.get(k) for k in ("segments", "device_traces", "allocator_settings"))
    return (segments if isinstance(segments, list) else [],
            [t if isinstance(t, list) else [] for t in traces] if isinstance(traces, list) else [],
            settings if isinstance(settings, dict) else {})  # fmt: skip


def _text(thing: dict[str, Any], key: str) -> str:
    value = thing.get(key)
    return value if isinstance(value, str) else ""


def _number(thing: dict[str, Any], key: str) -> int:
    """A whole number; 0 for anything else, and for what no size or address can be."""
    value = thing.get(key)
    return value if type(value) is int and -_INT < value < _INT else 0


def _dicts(things: Any) -> Iterator[dict[str, Any]]:
    return (t for t in things if isinstance(t, dict)) if isinstance(things, list) else iter(())


def _states(segments: list[Any]) -> dict[int, _State]:
    states: dict[int, _State] = {}
    frames = _Frames()
    left = _MOST
    for segment in _dicts(segments):
        state = states.setdefault(_number(segment, "device"), _State())
        state.reserved += max(_number(segment, "total_size"), 0)
        live = free = waiting = 0
        for block in _dicts(segment.get("blocks")):
            left -= 1
            if left < 0:
                return states
            size = max(_number(block, "size"), 0)
            said = _text(block, "state")
            if said == "active_allocated":
                live += size
                asker = frames.name(block)
                state.holders[asker] = state.holders.get(asker, 0) + size
            waiting += said.startswith("active_") and said != "active_allocated"
            if said == "inactive":
                free += size
                state.largest_free = max(state.largest_free, size)
        state.allocated += live
        state.free += free
        state.split += free if live or waiting else 0
    return states


def _asker(frames: list[Any]) -> str:
    """The innermost frame of the user's own code; without one the innermost of Python; without one the innermost."""
    python = [f for f in _dicts(frames[:200]) if _text(f, "filename").endswith(".py")]
    own = next((f for f in python if not _library(_text(f, "filename"))), None)
    first = own or (python[0] if python else next(_dicts(frames), None))
    if first is None:
        return "?"
    file = _text(first, "filename")[-400:].rsplit("/", 1)[-1]
    return clean(f"{file}:{_number(first, 'line')} {_text(first, 'name')[:200]}".strip())


def _library(file: str) -> bool:
    return "site-packages/torch/" in file or "dist-packages/torch/" in file or file.startswith("torch/")


@dataclass(slots=True)
class _History:
    """The events of one device as columns: what changed the allocated, and the reserved bytes."""

    at: I64
    change: I64
    reserve: I64
    asker: list[str]  # of each allocation; empty for other events
    address: I64
    segments: int
    failed: tuple[int, ...]


_ALLOCATED: Final = {"alloc": 1, "free_requested": -1}
_RESERVED: Final = {"segment_alloc": 1, "segment_map": 1, "segment_free": -1, "segment_unmap": -1}


def _history(trace: list[Any]) -> _History:
    frames = _Frames()
    events = list(_dicts(trace[:_MOST]))
    actions = [_text(e, "action") for e in events]
    if "free_requested" not in actions:
        actions = ["free_requested" if a in ("free_completed", "free") else a for a in actions]
    sizes = [min(max(_number(e, "size"), 0), _SIZE) for e in events]
    times = [_number(e, "time_us") * 1000 for e in events]
    at = np.array(times if all(times) else range(len(events)), np.int64)
    return _History(
        at=np.maximum.accumulate(at) if len(at) else at,
        change=np.array([_ALLOCATED.get(a, 0) * s for a, s in zip(actions, sizes, strict=True)], np.int64),
        reserve=np.array([_RESERVED.get(a, 0) * s for a, s in zip(actions, sizes, strict=True)], np.int64),
        asker=[frames.name(e) if a == "alloc" else "" for a, e in zip(actions, events, strict=True)],
        address=np.array([_number(e, "addr") for e in events], np.int64),
        segments=sum(a in ("segment_alloc", "segment_free") for a in actions),
        failed=tuple(s for a, s in zip(actions, sizes, strict=True) if a == "oom")[:100],
    )


def _use(device: int, state: _State, trace: list[Any], settings: dict[str, Any]) -> MemoryUse:
    past = _history(trace)
    allocated, reserved = _levels(past.change, state.allocated), _levels(past.reserve, state.reserved)
    taken = past.change[past.change > 0]
    asked = max([int(taken.max()) if len(taken) else 0, *past.failed])
    return MemoryUse(
        device=f"CUDA {device}",
        allocations=len(taken),
        frees=int((past.change < 0).sum()),
        churn_bytes=int(taken.sum()),
        peak_allocated=max(int(allocated.max()) if len(allocated) else 0, state.allocated),
        peak_reserved=max(int(reserved.max()) if len(reserved) else 0, state.reserved),
        end_allocated=state.allocated,
        end_reserved=state.reserved,
        growth_per_iteration=None,
        fragmentation=state.split / state.reserved if state.reserved else None,
        timeline=timeline(past.at, allocated, reserved),
        top=_best(state.holders),
        segment_events=past.segments,
        notes=tuple(_notes(state, past, asked, settings)),
        largest_free=state.largest_free,
        largest_request=asked or None,
        suspects=_best(suspects(past.change, past.address, past.asker)),
        out_of_memory=past.failed,
    )


def _levels(change: I64, end: int) -> I64:
    """The level after each change, such that the last is `end`: the history may begin late, but it ends now."""
    total = np.cumsum(change)
    return total + (end - int(total[-1])) if len(total) else total


def suspects(change: I64, address: I64, asker: list[str]) -> dict[str, int]:
    """Frames whose live bytes rise in each part of the history but the first, and by how much after it.

    The history is cut into five parts of equal numbers of events. What a model, an optimizer or a cache takes once
    rises in one of them; what is freed again falls in one. A slow cache that fills looks like a leak.
    """
    real = np.flatnonzero(change)
    change, address, asker = change[real], address[real], [asker[i] for i in real.tolist()]
    count = len(change)
    if count < 10 * _SLICES:
        return {}
    names = sorted(set(asker) - {""})
    number = {n: i for i, n in enumerate(names)}
    who = np.array([number.get(a, -1) for a in asker], np.int64)
    order = np.argsort(address, kind="stable")
    before = np.concatenate([[-1], order[:-1]])
    follows = np.zeros(count, np.bool_)
    follows[1:] = address[order][1:] == address[order][:-1]
    owner = who.copy()
    frees = (change[order] < 0) & follows
    owner[order[frees]] = who[before[frees]]  # a free undoes the last allocation at its address
    size = np.where(change < 0, 0, change)
    size[order[frees]] = -np.maximum(change[before[frees]], 0)
    part = np.arange(count) * _SLICES // count
    keep = owner >= 0
    net = np.bincount(owner[keep] * _SLICES + part[keep], size[keep], len(names) * _SLICES).reshape(-1, _SLICES)
    rises = (net[:, 1:] > 0).all(axis=1) & (net[:, 0] >= 0)
    return {names[i]: int(net[i, 1:].sum()) for i in np.flatnonzero(rises).tolist() if names[i] != "?"}


def _best(found: dict[str, int]) -> tuple[tuple[str, int], ...]:
    return tuple(sorted(found.items(), key=lambda x: (-x[1], x[0]))[:_TOP])


def _notes(state: _State, past: _History, asked: int, settings: dict[str, Any]) -> list[Text]:
    said = []
    if not len(past.at):
        said.append(Text("no history was recorded (torch.cuda.memory._record_memory_history): peaks and leaks do not show",
                         "没有记录历史（torch.cuda.memory._record_memory_history）：看不到峰值和泄漏"))  # fmt: skip
    if state.holders and set(state.holders) == {"?"}:
        said.append(
            Text("no stacks were recorded: who holds memory does not show", "没有记录调用栈：无法得知由谁占用显存")
        )
    failed = past.failed[-1] if past.failed else 0
    if failed:
        said.append(Text(
            f"out of memory: {_mib(failed)} were asked for while {_mib(state.free)} lay free in reserved segments, the largest piece {_mib(state.largest_free)}",
            f"显存不足：请求 {_mib(failed)}，而已保留的段中有 {_mib(state.free)} 空闲，最大一块为 {_mib(state.largest_free)}"))  # fmt: skip
    elif asked > state.largest_free and state.split > asked:
        said.append(Text(
            f"the largest request seen ({_mib(asked)}) does not fit into the largest free piece ({_mib(state.largest_free)}), though {_mib(state.split)} are free in pieces",
            f"出现过的最大请求（{_mib(asked)}）放不进最大的空闲块（{_mib(state.largest_free)}），尽管零散空闲共有 {_mib(state.split)}"))  # fmt: skip
    if state.split and settings.get("expandable_segments") is False:
        said.append(Text("expandable_segments is off (PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True lets free pieces join)",
                         "expandable_segments 未启用（PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True 可让空闲块合并）"))  # fmt: skip
    return said


def _mib(size: int) -> str:
    return f"{size / 2**20:.1f} MiB"
