"""What an incident knows of its alerts: what was noted, and which of them fire.

An alert is known by its fingerprint and the moment at which it began, and each of its two states is noted once. It fires when
it began after the latest moment at which it was over. These are unions and greatest values: their order does not matter.
That moments are compared, and not occurrences matched, is for the two Prometheus of a pair: they tell beginnings that differ by
seconds, and Alertmanager moves from one to the other.

One thing cannot be told from a message alone. When Prometheus was cut off from Alertmanager for some minutes, the alert is told to
be over, and then to fire with the beginning of before. The late copy of an old message looks the same. A copy comes within
seconds, so what comes later than `LATE` is taken for what it is: the alert fires.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import field
from typing import TYPE_CHECKING

from assistant.incidents.alert_message import Alert, State
from assistant.incidents.events import Event, Kind
from knowledge.record import dataclass

if TYPE_CHECKING:
    from assistant.incidents.alert_message import Notification

Identity = tuple[str, int, str]  # fingerprint, beginning (ns UTC), state
# ns: Alertmanager tries one message for as long as group_interval (5 minutes unless set), and peers wait 15 s for each other.
LATE = 330 * 10**9


@dataclass
class Ledger:
    """What was told. Times in ns UTC."""

    noted: set[Identity] = field(default_factory=set)
    begun: dict[str, int] = field(default_factory=dict)  # the latest beginning of each alert
    over: dict[str, int] = field(default_factory=dict)  # the latest moment at which each was over
    heard: dict[str, int] = field(default_factory=dict)  # when that was written down

    def note(self, fingerprint: str, state: str, starts: int, ends: int | None, at: int) -> None:
        """One alert, told at `at`."""
        self.noted.add((fingerprint, starts, state))
        if state == State.FIRING:
            self.begun[fingerprint] = max(starts, self.begun.get(fingerprint, starts))
            return
        end = max(starts, ends if ends is not None else starts)
        self.over[fingerprint] = max(end, self.over.get(fingerprint, end))
        self.heard[fingerprint] = max(at, self.heard.get(fingerprint, at))

    def take(self, alerts: Iterable[Alert], at: int) -> Ledger:
        """With these alerts as well."""
        for a in alerts:
            self.note(a.fingerprint, a.state, at if self.again(a, at) else a.starts, a.ends, at)
        return self

    def fires(self, fingerprint: str) -> bool:
        """Whether an alert is not over, as far as was told."""
        begun = self.begun.get(fingerprint)
        return begun is not None and begun > self.over.get(fingerprint, begun - 1)

    @property
    def firing(self) -> set[str]:
        """All alerts that are not over."""
        return {f for f in self.begun if self.fires(f)}

    def again(self, a: Alert, now: int) -> bool:
        """Whether an alert that was over fires with the beginning of before."""
        known = a.state is State.FIRING and a.identity in self.noted and not self.fires(a.fingerprint)
        return known and now - self.heard.get(a.fingerprint, now) > LATE

    def news(self, n: Notification, now: int) -> list[Alert]:
        """What a message tells that was not told yet, each once, the oldest first."""
        found = {a.identity: a for a in reversed(n.alerts) if self._is_new(a, now)}
        return sorted(found.values(), key=lambda a: (a.starts, a.fingerprint, a.state))

    def _is_new(self, a: Alert, now: int) -> bool:
        if a.identity not in self.noted or self.again(a, now):
            return True
        # Over once more, with the beginning of before; a copy of an old message ends before this one began.
        later = a.ends is not None and a.ends > self.begun.get(a.fingerprint, a.ends)
        return a.state is State.RESOLVED and self.fires(a.fingerprint) and later


def ledger(events: Iterable[Event]) -> Ledger:
    """What the events of an incident tell; what another writer left out counts for nothing."""
    out = Ledger()
    for e in events:
        starts, ends, again = (e.data.get(name) for name in ("starts", "ends", "again"))
        state, fingerprint = e.text("state"), e.text("fingerprint")
        if e.kind != Kind.ALERT or not fingerprint or state not in list(State) or not isinstance(starts, int):
            continue
        out.note(fingerprint, state, starts, ends if isinstance(ends, int) else None, e.at)
        if isinstance(again, int):
            out.note(fingerprint, state, again, None, e.at)
    return out
