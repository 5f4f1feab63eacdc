"""Takes Alertmanager's messages into incidents, one after the other, and says which incident each went to."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from threading import Lock
from typing import TYPE_CHECKING, NamedTuple

from assistant.incidents.alert_labels import Card, Knows
from assistant.incidents.alerts import SURFACE, adding, begins, group_of, opening
from assistant.incidents.events import Entry, Hand
from knowledge.errors import UnknownNameError
from knowledge.language import Text

if TYPE_CHECKING:
    from assistant.config import Settings
    from assistant.incidents.alert_message import Notification
    from assistant.incidents.book import Book
    from assistant.incidents.fold import Incident

HAND = Hand("alertmanager", SURFACE)
GROUPS = 10_000  # of which the incident is remembered; others are looked up in the history
FRESH = 300.0  # seconds for which the names of nodes are taken as they were
NODES = 10_000  # names that are remembered between two of these
TURNS = 3  # looks at which incident is the newest one, while others open and close them


class Outcome(NamedTuple):
    """What became of a message."""

    incident: Incident
    new: bool  # this message opened it
    added: int  # events that it brought


class _Over(Exception):
    """The incident is closed, and the message is about something new."""

    def __init__(self, incident: Incident) -> None:
        super().__init__(incident.number)
        self.incident = incident


class Desk:
    """What messages are handed to. Used by one thread at a time."""

    def __init__(self, book: Book, knows: Knows, clock: Callable[[], int] = time.time_ns) -> None:
        """`clock` tells ns UTC: the one that the book has."""
        self._book, self._knows, self._clock = book, knows, clock
        self._numbers: dict[str, int] = {}  # group -> its newest incident, as far as is known

    def take(self, n: Notification) -> Outcome:
        """Write down what is new. When it returns, it is on the disk. StoreError when it cannot be kept."""
        last: Incident | None = None
        for _ in range(TURNS):
            number = self._number(n.group, last)
            if number is None or (last is not None and number == last.number):
                break
            try:
                return self._grown(n, number)
            except UnknownNameError:  # another history than a moment ago
                self._numbers.pop(n.group, None)
            except _Over as over:
                last = over.incident
        return self._opened(n, last)

    def _number(self, group: str, last: Incident | None) -> int | None:
        """The newest incident of a group; looked up anew where the one that was known (`last`) is closed."""
        if last is None and group in self._numbers:
            return self._numbers[group]
        found = self._book.opened_with("group", group)
        return found.number if found is not None else None

    def _grown(self, n: Notification, number: int) -> Outcome:
        brought: list[Entry] = []

        def decide(incident: Incident) -> Sequence[Entry]:
            if not incident.is_open and begins(n, incident, self._clock()):
                raise _Over(incident)
            brought[:] = adding(n, incident, self._knows, self._clock())
            return brought

        incident = self._book.change(number, HAND, decide)
        self._remember(n.group, number)
        return Outcome(incident, new=False, added=len(brought))

    def _opened(self, n: Notification, last: Incident | None) -> Outcome:
        """A new one; unless somebody else opened it in this moment."""
        found: list[Entry] = []

        def same(incident: Incident) -> Sequence[Entry] | None:
            if group_of(incident) != n.group:
                return None
            found[:] = adding(n, incident, self._knows, self._clock())
            return found

        entries = opening(n, self._knows, self._clock(), last)
        incident, new = self._book.open(HAND, entries, same, ("group", n.group))
        self._remember(n.group, incident.number)
        return Outcome(incident, new, len(entries) if new else len(found))

    def _remember(self, group: str, number: int) -> None:
        while len(self._numbers) >= GROUPS and group not in self._numbers:
            del self._numbers[next(iter(self._numbers))]
        self._numbers[group] = number


# --- what names mean ----------------------------------------------------------------------


def knowing(settings: Settings) -> Knows:
    """Names looked up in the rules and runbooks that ship, and among the nodes that are known here."""
    from knowledge.runbook import runbook

    def has_runbook(name: str) -> bool:
        try:
            return runbook(name).id == name
        except UnknownNameError:
            return False

    return Knows(Nodes(settings), card, has_runbook)


def card(rule: str) -> Card | None:
    """What there is to know of a rule; None when none is called so."""
    from rules.loader import shipped

    found = shipped().get(rule)
    if found is None:
        return None
    data = found[1]
    action = data.get("action") or {}
    split = data.get("split_by", "")
    return Card(Text.of(data["title"]), str(data["severity"]), str(action.get("runbook", "")), split == "code")


class Nodes:
    """Which node a name means: this one, one of the inventory, or one of the history."""

    def __init__(self, settings: Settings, clock: Callable[[], float] = time.monotonic) -> None:
        self._settings, self._clock = settings, clock
        self._until = float("-inf")
        self._guard = Lock()
        self._said: dict[str, str] = {}
        self._find: Callable[[str], str] = lambda _: ""
        self.here = ""
        self.reach: frozenset[str] = frozenset()  # that can be looked at from here, this one among them

    def __call__(self, said: str) -> str:
        """The name that it is known by; empty when it is not."""
        with self._guard:
            self._renewed()
            if said not in self._said:
                if len(self._said) >= NODES:
                    self._said.clear()
                self._said[said] = self._find(said)
            return self._said[said]

    def checkable(self, name: str) -> bool:
        """Whether gpudiag can look at the node of this name from here."""
        with self._guard:
            self._renewed()
            return name in self.reach

    def _renewed(self) -> None:
        if self._clock() < self._until:
            return
        from assistant.session.inventory import Index, Known, configured, known

        hosts = configured(self._settings)
        inventory = known(self._settings, others=hosts)
        addresses = _addresses(hosts.nodes if hosts is not None else {})
        others, index = Index(inventory.called), inventory.whole_index if inventory.more else inventory.index

        def find(said: str) -> str:
            if said in addresses:
                return addresses[said]
            if inventory.is_here(said):
                return inventory.here
            direct = inventory.called.get(said) or index.find(said)
            found = direct or others.find(said)
            name = found.name if isinstance(found, Known) else found if isinstance(found, str) else ""
            return inventory.called.get(name, name)

        self._find, self._said = find, {}
        self.here, self.reach = inventory.here, inventory.reach | {inventory.here}
        self._until = self._clock() + FRESH


def _addresses(nodes: Mapping[str, object]) -> dict[str, str]:
    """The addresses of the inventory that are one node's alone: an exporter may be named by its."""
    out: dict[str, list[str]] = {}
    for name, node in nodes.items():
        how = getattr(node, "how", {})
        if isinstance(address := how.get("address"), str):
            out.setdefault(address, []).append(name)
    return {address: names[0] for address, names in out.items() if len(names) == 1}
