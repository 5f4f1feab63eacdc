"""How much of the machine a round looks at: while nothing is wrong, most probes every few minutes, and of the
kernel log only what is new.

What was not looked at again keeps its last answer with the time of that answer. A light round is therefore no
proof that a fault has gone; `Watcher` asks for a full one whenever there is a doubt.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from assistant.machine import Look, Wish
from knowledge.observation import Clock, Event, Observation, Status
from knowledge.record import dataclass
from probes.host import Recording
from probes.runner import ProbeResult, select

FULL = 300.0  # seconds between two rounds that ask every probe
EACH = frozenset({"nvml", "kernel-log", "system"})  # asked every round: what changes within a minute
KERNEL = "kernel-log"
WHOLE_LOG = 3600.0  # seconds between two readings of the whole kernel log
AHEAD = 10 * 10**9  # ns: a line can reach the journal a moment late
LOOKBACK = 7 * 86_400 * 10**9  # ns of kernel log that are kept, as the probe does

Looking = Callable[[Wish, Mapping[str, Mapping[str, str]]], Look]


@dataclass(frozen=True, slots=True)
class Taken:
    """The look of a round, and whether every probe was asked for it."""

    look: Look
    full: bool


class Pace:
    """Remembers the last answers. `look` is what asks the machine."""

    def __init__(self, wish: Wish, look: Looking) -> None:
        self._wish = wish
        self._look = look
        specs = select(wish.only, wish.extra, wish.without)
        self._all = tuple(s.name for s in specs)
        self._stand_ins = frozenset(s.name for s in specs if s.instead_of in EACH)
        self._each = tuple(s.name for s in specs if s.name in EACH or s.name in self._stand_ins)
        self._last: dict[str, ProbeResult] = {}
        self._full: float | None = None  # monotonic time of the last full round
        self._whole_log: float | None = None

    def take(self, full: bool, now: float) -> Taken:
        """Look. `full`: ask every probe; else as few as the time since allows. `now` is monotonic.

        Of the log what is new is enough either way, as long as it joins what is known without a gap.
        """
        full = full or self._full is None or now - self._full >= FULL - 1.0 or not self._last
        full = full or not self._each
        names = self._all if full else self._each
        whole = self._whole_log is None or now - self._whole_log >= WHOLE_LOG
        since = None if whole else _until(self._last.get(KERNEL))
        look = self._ask(names, since)
        fresh = {r.probe: r for r in look.results}
        if since is not None and KERNEL in fresh:
            joined = _joined(self._last[KERNEL], fresh[KERNEL], since - AHEAD, look.as_of or since)
            if joined is None:  # it could not be read, or there is a gap: what is there in full
                again = self._ask((KERNEL,), None)
                joined = next(r for r in again.results if r.probe == KERNEL)
                whole = True
            fresh[KERNEL] = joined
        if full:
            self._last, self._full = fresh, now
        else:
            self._last = {n: r for n, r in self._last.items() if n not in self._stand_ins} | fresh
        if whole:
            self._whole_log = now
        results = tuple(self._last[name] for name in sorted(self._last))
        recording = Recording(self._all, tuple(r.probe for r in results if r.unasked))
        return Taken(replace(look, results=results, replies=(), recording=recording), full)

    def _ask(self, names: Sequence[str], since: int | None) -> Look:
        options = {} if since is None else {KERNEL: {"since": str(since - AHEAD)}}
        return self._look(replace(self._wish, only=tuple(names), extra=(), without=()), options)


def _windows(result: ProbeResult) -> list[tuple[int, int]]:
    return [
        o.window for o in result.observations if o.status is Status.NONE_SEEN and o.window and o.clock is Clock.REALTIME
    ]


def _until(result: ProbeResult | None) -> int | None:
    """Up to when (ns UTC) the log is known without a gap; None when it must be read as a whole."""
    if result is None or result.status is not Status.OK:
        return None
    if any(o.status is Status.NONE_SEEN and o.clock is not Clock.REALTIME for o in result.observations):
        return None
    return min((w[1] for w in _windows(result)), default=None)


def _joined(before: ProbeResult, tail: ProbeResult, since: int, now: int) -> ProbeResult | None:
    """The log as known before and what was written since; None when the two do not touch, or the clock was set back."""
    if now < since + AHEAD:
        return None
    windows = _windows(tail)
    readable = any(o.fact == "log.kernel.readable" and o.status is Status.OK for o in tail.observations)
    if tail.status is not Status.OK or not readable or not windows or max(w[0] for w in windows) > since + AHEAD:
        return None
    oldest = now - LOOKBACK
    new = {(o.fact, o.subject): o for o in tail.observations if o.status is Status.NONE_SEEN}
    out: list[Observation] = []
    kept: set[object] = set()
    for o in before.observations:
        if o.status is Status.NONE_SEEN and (later := new.pop((o.fact, o.subject), None)) is not None:
            assert o.window is not None
            assert later.window is not None
            start = max(min(o.window[0], later.window[0]), oldest)
            o = replace(later, window=(start, later.window[1]), source=o.source)
        elif isinstance(o.value, Event) and o.at is not None and o.clock is Clock.REALTIME and o.at < oldest:
            continue
        kept.add(_what(o))
        out.append(o)
    for o in tail.observations:
        told_before = _what(o) in kept or (o.fact.startswith("log.kernel.") and o.status is Status.OK)
        if o.status is not Status.NONE_SEEN and not told_before:
            out.append(o)
    return replace(before, observations=(*out, *new.values()), seconds=tail.seconds)


def _what(o: Observation) -> object:
    """What makes two readings of one line the same."""
    return o.fact, o.subject, o.at, o.excerpt, o.status
