"""Writes rounds to the history, in a process of their own (`assistant.watch.errand`)."""

from __future__ import annotations

import pickle
import sys
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from assistant.watch.errand import Errand

if TYPE_CHECKING:
    from assistant.config import Settings
    from assistant.diagnosis import Diagnosis
    from assistant.machine import Look
    from rules.model import Rule


class Keeper:
    """Called with each round that is worth keeping; `complain` hears of trouble, in a thread."""

    def __init__(self, settings: Settings, rules: Iterable[Rule], complain: Callable[[str], None]) -> None:
        self._history = settings.history
        self._lang = settings.output.lang
        self._rules = tuple(rules)
        self._errand = Errand(__name__, complain)

    def __call__(self, look: Look, diagnosis: Diagnosis) -> None:
        """Keep a round, behind those that wait."""
        about = (self._history.url, look.host, diagnosis, look.results, self._history.days, look.boot_id)
        self._errand.send(pickle.dumps((*about, self._rules, self._lang)))

    def again(self) -> None:
        """Try what was refused once more."""
        self._errand.again()

    def close(self, seconds: float, patient: Callable[[], bool]) -> None:
        """Let the last one end (see `Errand.close`)."""
        self._errand.close(seconds, patient)


def main() -> None:
    """Write the round on standard input."""
    from assistant.store import remember

    url, host, diagnosis, results, days, boot_id, rules, lang = pickle.load(sys.stdin.buffer)
    complaint = remember(url, host, diagnosis, results, "watch", days=days, boot_id=boot_id, rules=rules, lang=lang)
    print(complaint or "")
