"""What the facts of samples share: observations of one document, and reasons for what is missing."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from knowledge.observation import Clock, Observation, Source, Status, Subject, Value
from knowledge.record import dataclass
from knowledge.text import excerpt as clean
from probes.capture.readings import timebase

PRIVILEGE = "run as root, or as the user of the process"
_STATUS = {"unsupported": Status.UNSUPPORTED, "denied": Status.DENIED}
_EVER = (0, (1 << 62) - 1)

Window = tuple[int, int]  # begin and end, monotonic ns


@dataclass(frozen=True, slots=True)
class Gap:
    """Why there is no value."""

    status: Status
    detail: str


Told = Value | Gap


def mapping(value: object) -> Mapping[str, Any]:
    """`value` when it is a JSON object, else an empty one."""
    return value if isinstance(value, Mapping) else {}


def gap(value: object, otherwise: str = "it was not read") -> Gap | None:
    """The reason in ``{"status", "detail"}``; None when `value` is a series; `otherwise` where there is nothing at all."""
    if isinstance(value, list):
        return None
    about = mapping(value)
    if "status" not in about:
        return None if about else Gap(Status.FAILED, otherwise)
    status = _STATUS.get(str(about["status"]), Status.FAILED)
    detail = clean(str(about.get("detail", "")), 300) or otherwise
    return Gap(status, f"{detail}: {PRIVILEGE}" if status is Status.DENIED else detail)


class Teller:
    """Collects the observations of one document."""

    def __init__(self, probe: str, at: int | None) -> None:
        """`at` is when the window began, ns since 1970 UTC; None where the document does not tell."""
        self.out: list[Observation] = []
        self._probe, self._at = probe, at

    def add(self, fact: str, subject: Subject, told: Told, call: str = "", shown: str = "") -> None:
        """`told` of `subject`, with the raw figures it was computed from."""
        status, value, detail = Status.OK, told, ""
        if isinstance(told, Gap):
            status, value, detail = told.status, None, told.detail
        elif isinstance(told, float):
            if not math.isfinite(told):
                status, value, detail = Status.FAILED, None, "no sample lies within the window"
            else:
                value = _told_digits(told)
        assert not isinstance(value, Gap)
        clock = Clock.REALTIME if self._at is not None else Clock.NONE
        self.out.append(
            Observation(
                fact,
                subject,
                value,
                status,
                Source(self._probe, call),
                self._at,
                clock,
                excerpt=clean(shown, 400),
                detail=detail,
            )
        )


def bounds(at: timebase.Times, window: Window | None) -> Window:
    """The part of `window` that was looked at."""
    if not len(at):
        return (0, 0)
    first, last = int(at[0]), int(at[-1])
    return (first, last) if window is None else (max(first, window[0]), min(last, window[1]))


def inside(at: timebase.Times, window: Window | None) -> Any:
    """Which of the times lie within the window."""
    low, high = window or _EVER
    return (at >= low) & (at <= high)


def growth(at: timebase.Times, counter: object, window: Window | None) -> tuple[float, float]:
    """How much a counter grew within the window, and the seconds of it that were covered; NaN and 0 where nothing was."""
    span = [window or _EVER]
    values = timebase.column(counter, len(at))
    grown = timebase.increments(at, values, span)
    seconds = timebase.covered(at, values, span) / 1e9
    return float(grown[0]), float(seconds[0])


def known(values: object, keep: Any) -> Any:
    """The values of a series that were read, where `keep`."""
    found = timebase.column(values, len(keep))[keep]
    return found[np.isfinite(found)]


def begun(document: Mapping[str, Any], window: Window | None) -> int | None:
    """When what counts began, ns since 1970 UTC; None where the document does not tell."""
    base = timebase.base(document.get("clocks"))
    at = timebase.times(document.get("at"))
    if base is None or not len(at):
        return None
    moment = max(int(at[0]), window[0]) if window else int(at[0])
    return moment - base.first.monotonic + base.first.realtime


def _told_digits(value: float) -> float:
    """As many digits as a reading of some seconds is worth: four, and no more than thousandths."""
    return float(f"{round(value, 3):.4g}") if abs(value) < 10_000 else float(round(value))
