"""Which events have come before another one: asked of each of many events, without holding each against all others."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable

from knowledge.observation import Clock, Observation
from rules.proof import Truth, disjunction


class Earlier:
    """Events that may have come before others. By the clock where both tell it; in one tick of it or without one by the lines of
    one file; else nobody knows."""

    def __init__(self, events: Iterable[Observation]) -> None:
        self._by_clock: dict[Clock | None, _Order] = {}
        self._ticks: dict[tuple[Clock, int], _Order] = {}
        times: dict[Clock, list[int]] = {}
        for o in events:
            clock = None if o.at is None else o.clock
            self._by_clock.setdefault(clock, _Order()).add(o)
            if o.at is not None:
                times.setdefault(o.clock, []).append(o.at)
                self._ticks.setdefault((o.clock, o.at), _Order()).add(o)
        self._times = {clock: sorted(of_clock) for clock, of_clock in times.items()}

    def before(self, later: Observation, within: int) -> Truth:
        """Whether one of them, and not `later` itself, came at most `within` ns before it."""
        if later.at is not None:
            times = self._times.get(later.clock, [])
            if bisect_left(times, later.at - within) < bisect_left(times, later.at):
                return Truth.TRUE
            tick = self._ticks.get((later.clock, later.at))
            if tick is not None and tick.before(later) is not Truth.FALSE:  # no line says that it came after
                return Truth.TRUE
        clock = None if later.at is None else later.clock
        return disjunction(
            [order.before(later) for c, order in self._by_clock.items() if clock is None or c is not clock]
        )


class _Order:
    """Events that only the lines of a file can put into order."""

    def __init__(self) -> None:
        self._first: dict[str, int] = {}  # of each file the first line that has one of them
        self._lined: dict[str, int] = {}  # and how many have a line in it
        self._ids: set[int] = set()

    def add(self, o: Observation) -> None:
        self._ids.add(id(o))
        if o.source.line is not None:
            call, line = o.source.call, o.source.line
            self._first[call] = min(line, self._first.get(call, line))
            self._lined[call] = self._lined.get(call, 0) + 1

    def before(self, later: Observation) -> Truth:
        """Whether one of them stands on an earlier line; unknown where one is not `later` and has no line in its file."""
        call, line = later.source.call, later.source.line
        if line is None:
            return Truth.UNKNOWN if len(self._ids) > (id(later) in self._ids) else Truth.FALSE
        if self._first.get(call, line) < line:
            return Truth.TRUE
        return Truth.UNKNOWN if len(self._ids) > self._lined.get(call, 0) else Truth.FALSE
