"""What an agent wrote at its end, checked and in the shape of a capture."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from itertools import pairwise
from typing import Any

from knowledge.language import Text
from probes.capture.guest import _guest_words as words
from probes.capture.model import Item, Outcome, Part

MOST_STEPS = 100_000
_HUGE = 1e300  # more is no number of a training job
_BASE = re.compile(rb'"baseTimeNanoseconds":\s*(\d{1,20})')
_EVENTS = re.compile(rb'"traceEvents":\s*\[')
_KERNEL = re.compile(rb'"cat":\s*"kernel"')


class Result:
    """`told`: the agent's result.json. ValueError, TypeError or KeyError when it is not as the agent writes it."""

    def __init__(self, told: Mapping[str, Any], orders: Mapping[str, Any]) -> None:
        self.by_iterations, self._told = bool(orders["iterations"]), told
        self.notes = [str(n) for n in told["notes"]][:20]
        self.began, self.ended = _moment(told["window"]["began"]), _moment(told["window"]["ended"])
        self._wish, self.captured = _moment(told["window"]["wish"]), _moment(told["window"]["captured"])
        self.trace: Mapping[str, Any] = told.get("trace") or {}
        self.clock = int(told["clock"]["realtime"]) - int(told["clock"]["monotonic"])
        self._memory: Mapping[str, Any] = told.get("memory") or {}
        self.steps: Mapping[str, Any] = told["iterations"]
        self.ends = [_moment(e) for e in self.steps["ends"][:MOST_STEPS]]
        self.thread = _moment(self.steps["thread"])
        self.kernels = self.events = 0
        self.lost = ""

    @property
    def traced(self) -> bool:
        """Whether the profiler ran."""
        return bool(self.trace)

    @property
    def snapshot(self) -> bool:
        """Whether there is a snapshot of the allocator."""
        return bool(self._memory.get("snapshot"))

    def look(self, text: bytes) -> None:
        """Whether the trace holds kernels, and how many events."""
        self.kernels = len(_KERNEL.findall(text))
        self.events = text.count(b'"ph"')

    @property
    def iterations(self) -> dict[str, Any] | None:
        """For capture.json; None where no iteration ended."""
        if not self.ends:
            return None
        count = len(self.ends)
        return {
            "anchor": str(self.steps["anchor"])[:200], "thread": self.thread, "began": self.began, "ended": self.ended,
            "ends": self.ends, "batches": _numbers(self.steps.get("batches"), count),
            "loss": _numbers(self.steps.get("loss"), count), "gradnorm": _numbers(self.steps.get("gradnorm"), count),
            "others": {str(k)[:100]: _moment(v) for k, v in list(dict(self.steps.get("others") or {}).items())[:1000]},
        }  # fmt: skip

    @property
    def torch(self) -> dict[str, Any] | None:
        """What torch and the profiler said of themselves; None without torch."""
        told = self._told.get("torch")
        if not isinstance(told, dict):
            return None
        stats, profiler = _plain(self._memory.get("stats")), _plain(self.trace)
        known = {k: _plain(told.get(k)) for k in ("version", "cuda", "initialized")}
        return {**known, "memory_stats": stats, "profiler": dict(profiler) | {"events": self.events},
                "notes": self.notes}  # fmt: skip

    def part(self, item: Item, trace: str, memory: str) -> Part:
        """What became of it; `trace` and `memory` are names of files in the capture's folder."""
        if item in (Item.LOSS, Item.GRADNORM):
            return self._number(item)
        if item is Item.MEMORY:
            return self._of_memory(memory)
        began, ended = _moment(self.trace.get("began", 0)), _moment(self.trace.get("ended", 0))
        if not trace:
            why = Text(f"{words.NOT_TAKEN.en}: {self.lost}", f"{words.NOT_TAKEN.zh}：{self.lost}")
            return Part(item, Outcome.FAILED, why=why, began=began, ended=ended)
        why = self._short(began, ended)
        if item is Item.KERNELS:
            if "no-cuda" in self.notes:
                refused = words.refusal("no-cuda")
                return Part(item, Outcome.REFUSED, why=refused.why, remedy=refused.remedy)
            if not self.kernels:
                return Part(item, Outcome.PARTIAL, why=words.NO_KERNELS, file=trace, began=began, ended=ended)
        return Part(item, Outcome.PARTIAL if why else Outcome.OK, why=why, file=trace, began=began, ended=ended)

    def _short(self, began: int, ended: int) -> Text:
        """Why it is shorter than asked for; empty when it is not."""
        allowed = int(self.trace.get("budget", {}).get("allowed", 0))
        if "cut" in self.notes and self.by_iterations:
            return words.fewer(self.captured, self._wish, allowed)
        if "cut" in self.notes or "cut-in-iteration" in self.notes:
            return words.cut(ended - began, self._wish if not self.by_iterations else ended - began, allowed)
        if "patience" in self.notes:
            return words.refusal("patience").why
        return words.CANCELLED_EARLY if "stopped-early" in self.notes else Text("")

    def _number(self, item: Item) -> Part:
        if not self.ends:
            return Part(item, Outcome.FAILED, why=words.NO_STEPS, remedy=words.refusal("no-anchor").remedy)
        found = self.steps.get("loss" if item is Item.LOSS else "gradnorm")
        if not isinstance(found, list) or all(n is None for n in found):
            return Part(item, Outcome.FAILED, why=words.NO_LOSS if item is Item.LOSS else words.NO_NORM)
        return Part(item, Outcome.OK, began=self.began, ended=self.ended)

    def _of_memory(self, file: str) -> Part:
        if self._memory.get("refused"):
            refused = words.refusal(str(self._memory["refused"]))
            return Part(Item.MEMORY, Outcome.REFUSED, why=refused.why, remedy=refused.remedy)
        return Part(Item.MEMORY, Outcome.OK, file=file, began=self.began, ended=self.ended)


def _moment(value: Any) -> int:
    """A whole number as the agent writes them. ValueError for one that no clock and no counter has."""
    number = int(value)
    if not 0 <= number < 1 << 63:
        raise ValueError(f"{value!r:.40} is no such number")
    return number


def _plain(value: Any, depth: int = 4) -> Any:
    """Of JSON that a target wrote, what our own document may hold: short words, numbers, and these in few levels."""
    if isinstance(value, dict):
        return {str(k)[:100]: _plain(v, depth - 1) for k, v in list(value.items())[:1000]} if depth else None
    if isinstance(value, str):
        return value[:200]
    if isinstance(value, int) and not -(1 << 63) <= value < 1 << 64:
        return None
    return value if isinstance(value, bool | int | float) else None


def _numbers(found: Any, count: int) -> list[float | int | None] | None:
    """As JSON may hold them: the agent writes nan and inf as words, and so do we keep them out of arithmetic by accident."""
    if not isinstance(found, list):
        return None
    out: list[float | int | None] = []
    for value in found[:count]:
        if isinstance(value, str) and value in ("nan", "inf", "-inf"):
            out.append(float(value))
        elif isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) < _HUGE:
            out.append(value)
        else:
            out.append(None)
    return out


def marked(text: bytes, result: Result) -> bytes:
    """The trace with its iterations as torch.profiler marks them (ProfilerStep#N): one lasts from an end to the next.

    Times in the trace are us since `baseTimeNanoseconds`, by the system's clock.
    """
    place, base = _EVENTS.search(text), _BASE.search(text)
    began, ended = int(result.trace.get("began", 0)), int(result.trace.get("ended", 0))
    moments = [e for e in result.ends if began <= e <= ended]
    if result.by_iterations and result.began:  # the window itself begins at an end
        moments.insert(0, began)
        moments = [*moments[: 1 + result.captured]]
    if place is None or len(moments) < 2 or not result.thread:
        return text
    zero = int(base[1]) if base is not None else 0
    pid = _pid(text)
    added = []
    for number, (first, last) in enumerate(pairwise(moments)):
        event = {"ph": "X", "cat": "user_annotation", "name": f"ProfilerStep#{number}", "pid": pid, "tid": result.thread,
                 "ts": (first + result.clock - zero) / 1000, "dur": (last - first) / 1000}  # fmt: skip
        added.append(json.dumps(event).encode())
    return text[: place.end()] + b"\n" + b",\n".join(added) + b"," + text[place.end() :]


def _pid(text: bytes) -> int:
    found = re.search(rb'"pid":\s*(\d{1,10})', text)
    return int(found[1]) if found is not None else 0
