"""The history of many readings, in little room: one column of numbers for each GPU and metric, beside one of times.

An hour of eight GPUs at one a second is five megabytes here, and sixty as frames.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import replace
from math import isnan, nan
from typing import TYPE_CHECKING

from assistant.live.frames import SILENT
from knowledge.language import NO_TEXT

if TYPE_CHECKING:
    from assistant.live.frames import Frame, Gpu, Instance

CAPACITY = 3600  # frames: an hour at one a second
_NOT_THEN = "not_asked: nothing was recorded of this moment"


class Track:
    """Readings of the newest frames, oldest first. Not for several threads at once."""

    def __init__(self, capacity: int = CAPACITY) -> None:
        self._capacity = max(1, capacity)
        self._times: array[int] = array("q")
        self._values: dict[tuple[str, str], array[float]] = {}  # (pci, metric); NaN: not told then
        self._reasons: dict[str, list[tuple[str, ...] | None]] = {}  # None: not told then

    @classmethod
    def of(cls, frames: Iterable[Frame]) -> Track:
        """All of `frames`."""
        every = list(frames)
        track = cls(len(every))
        for frame in every:
            track.add(frame)
        return track

    def __len__(self) -> int:
        return len(self._times)

    @property
    def begin(self) -> int | None:
        """When it begins, ns UTC."""
        return self._times[0] if self._times else None

    @property
    def end(self) -> int | None:
        """When the newest reading was made."""
        return self._times[-1] if self._times else None

    def add(self, frame: Frame) -> None:
        """One more frame. Those that are not older than it are let go: a clock was set back."""
        self._drop_newer(frame.at)
        count = len(self._times)
        self._times.append(frame.at)
        for gpu in frame.gpus:
            self._add(gpu, count)
        for column in self._values.values():
            if len(column) == count:
                column.append(nan)
        for held in self._reasons.values():
            if len(held) == count:
                held.append(None)
        if len(self._times) > self._capacity + self._capacity // 4:
            self._drop(slice(len(self._times) - self._capacity))

    def _add(self, gpu: Gpu, count: int) -> None:
        silent = gpu.state == SILENT
        for key, value in () if silent else gpu.values.items():
            column = self._values.get((gpu.pci, key))
            if column is None:
                column = self._values[gpu.pci, key] = array("d", [nan]) * count
            column.append(value)
        held = self._reasons.get(gpu.pci)
        if held is None:
            held = self._reasons[gpu.pci] = [None] * count
        held.append(None if silent or gpu.state else gpu.reasons)

    def _drop_newer(self, at: int) -> None:
        kept = bisect_left(self._times, at)
        if kept < len(self._times):
            self._drop(slice(kept, None))

    def _drop(self, which: slice) -> None:
        del self._times[which]
        for column in self._values.values():
            del column[which]
        for held in self._reasons.values():
            del held[which]

    # --- what is asked of it --------------------------------------------------------------

    def series(self, pci: str, metric: str, since: int, until: int) -> Iterator[tuple[int, float | None]]:
        """Times (ns UTC) and values from `since` to `until`, both included; None where it was not told then."""
        column = self._values.get((pci, metric))
        begin, end = self._between(since, until)
        for i in range(begin, end):
            value = nan if column is None else column[i]
            yield self._times[i], None if isnan(value) else value

    def frame(self, like: Frame, at: int) -> Frame | None:
        """The GPUs of `like` as they were at the newest reading that is not newer than `at`; None before the first."""
        number = bisect_right(self._times, at) - 1
        if number < 0:
            return None
        moment = self._times[number]
        gpus = tuple(self._gpu(g, number, moment) for g in like.gpus)
        return replace(like, at=moment, gpus=gpus, processes=(), trouble=NO_TEXT)

    def _gpu(self, like: Gpu, number: int, moment: int) -> Gpu:
        values = {
            key: column[number]
            for (pci, key), column in self._values.items()
            if pci == like.pci and not isnan(column[number])
        }
        missing = {key: like.missing.get(key, _NOT_THEN) for key in (*like.values, *like.missing) if key not in values}
        held = self._reasons[like.pci][number] if like.pci in self._reasons else None
        state = "" if values else like.state or SILENT
        return replace(
            like, values=values, missing=missing, reasons=held or (), state=state, at=moment, instances=_bare(like)
        )

    def told(self, pci: str, metric: str) -> bool:
        """Whether the metric was told at any time."""
        return (pci, metric) in self._values

    def held(self, pci: str, since: int, until: int) -> Iterator[tuple[int, tuple[str, ...] | None]]:
        """Times, and the reasons that held its clocks down then; None where nobody told."""
        column = self._reasons.get(pci)
        begin, end = self._between(since, until)
        for i in range(begin, end):
            yield self._times[i], None if column is None else column[i]

    def _between(self, since: int, until: int) -> tuple[int, int]:
        return bisect_left(self._times, since), bisect_right(self._times, until)


def _bare(gpu: Gpu) -> tuple[Instance, ...]:
    """Its MIG instances without what was read of them: that is not kept."""
    return tuple(replace(i, memory_used=None) for i in gpu.instances)


def untold(frame: Frame, at: int) -> Frame:
    """The same GPUs at a moment before anything was read of them: no value, and the reason."""
    gpus = tuple(
        replace(
            g,
            values={},
            missing=dict.fromkeys((*g.values, *g.missing), _NOT_THEN),
            reasons=(),
            state="",
            at=0,
            instances=_bare(g),
        )
        for g in frame.gpus
    )
    return replace(frame, at=at, gpus=gpus, processes=(), trouble=NO_TEXT)
