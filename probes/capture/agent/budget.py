"""How long may be profiled: a pilot measures how many events come, and what one costs when the profiler stops.

The harm is in the stop: it holds the interpreter's lock for a few us an event, and so does writing the trace. Both are
measured here, and the window is cut such that each of the two stays below `stall_ns`.
"""

# ruff: noqa: PTH108, PTH110, PTH123 - nothing raises into the target, and nothing more is imported there than must be
from __future__ import annotations

import os
import time
from typing import Any

from probes.capture.agent.report import Report
from probes.capture.agent.session import Session
from probes.capture.agent.steps import Steps

FIRST = 25_000_000  # ns of the first pilot
UNKNOWN = 120_000_000  # ns of the second one while no iteration was seen
LONGEST = 400_000_000
FEWEST = 1000  # events: what a stop costs besides must not be taken for a cost of each
SPARE = 1.25  # events a second vary
COSTS = (3000, 7000)  # ns an event at least, without and with shapes: small pilots tell too little (bench/capture.py)
ALWAYS = 4000  # events that a capture may have, whatever they cost
LEAST = 5_000_000  # ns of a window


class Budget:
    """What the pilots found."""

    def __init__(self, orders: dict[str, Any]) -> None:
        self._most, self._stall = int(orders["events"]), int(orders["stall_ns"])
        self._least = COSTS[bool(orders["shapes"])]
        self.rate = 0.0  # events a second
        self.each = 0.0  # events an iteration
        self._window = 0  # ns of the longest pilot
        self.cost = 0.0  # ns an event at stop or at save, whichever is more
        self.pilots = 0
        self.events = 0  # of the largest pilot

    def add(self, events: int, window: int, stop: int, save: int, period: int = 0, ends: int = 0) -> None:
        """A pilot of `window` ns gave so many events; stopping and saving took so many ns of CPU. `period`: ns of an iteration;
        `ends`: iterations that ended in the pilot."""
        self.pilots += 1
        rate = events * 1e9 / max(window, 1)
        whole = period and window > 0.9 * period and window > self._window  # all phases of an iteration were in it
        self.rate, self._window = rate if whole else max(self.rate, rate), max(window, self._window)
        if ends > 1:
            self.each = events / ends
        elif period:
            self.each = max(self.each, self.rate * period / 1e9)
        if events >= self.events:  # what a stop costs besides counts least in the largest
            self.events = events
            self.cost = max(self._least, stop / max(events, FEWEST), save / max(events, FEWEST))

    @property
    def allowed(self) -> int:
        """Events that a capture may have."""
        if not self.cost:
            return self._most
        return max(ALWAYS, min(self._most, int(self._stall / self.cost)))

    @property
    def longest(self) -> int:
        """ns that may be captured at this rate."""
        if not self.rate:
            return 1 << 62
        return max(LEAST, int(self.allowed * 1e9 / (self.rate * SPARE)))

    def iterations(self, asked: int) -> int:
        """Of those asked for, so many may be captured; at least one."""
        if not self.each:
            return asked
        return max(1, min(asked, int(self.allowed / self.each)))

    def document(self) -> dict[str, Any]:
        """For the result."""
        return {
            "pilots": self.pilots,
            "events_per_s": round(self.rate),
            "ns_per_event": round(self.cost),
            "allowed": self.allowed,
        }


def measure(report: Report, session: Session, budget: Budget, window: int, steps: Steps) -> None:
    """One pilot by this thread. Stopped as `Report.check`, with nothing left on."""
    session.start()
    try:
        report.wait(time.monotonic_ns() + window)
    finally:
        kept = session.stop()
    if kept:
        account(report, session, budget, steps)
    session.forget()


def account(report: Report, session: Session, budget: Budget, steps: Steps) -> None:
    """What a pilot that has ended gave."""
    path = report.path("pilot.json")
    try:
        session.save(path)
        with open(path, "rb") as file:
            events = file.read().count(b'"ph"')
        ends = sum(session.began < e <= session.ended for e in steps.ends)
        window = session.ended - session.began
        budget.add(events, window, session.stop_cpu_ns, session.save_cpu_ns, steps.period, ends)
    finally:
        if os.path.exists(path):
            os.unlink(path)


def second(budget: Budget, steps: Steps) -> int:
    """ns of the second pilot: a whole iteration, so that no phase of it is missed; 0 when the first was enough."""
    period = min(steps.period or UNKNOWN, LONGEST)
    return 0 if period <= FIRST else int(min(period, budget.longest))
