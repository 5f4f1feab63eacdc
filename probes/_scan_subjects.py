"""How many things the events of one log may be about: of a fleet's log, the first ones and one of each sort are told apart.

Each thing with trouble becomes findings with proofs of their own, which take a hundred times the memory of the line. What is not
told apart is counted, and the answer says so.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import lru_cache
from typing import Final

from knowledge.observation import AT_LEAST, Event, Observation, Scope, Subject
from probes._trouble import tells_trouble

MOST: Final = 512  # things in trouble, and as many others: the GPUs of 64 nodes
LEAST: Final = f"{AT_LEAST}: more things have it than one answer tells apart"
FIRST: Final = 2  # events of a sort that are kept whatever else there is


_DIGITS: Final = bytes(0x30 if 0x30 <= byte <= 0x39 else byte for byte in range(256))
_tells = lru_cache(4096)(tells_trouble)  # lines that differ in their numbers tell the same


class Subjects:
    """What the events of one log are about so far."""

    def __init__(self, most: int = MOST) -> None:
        self._most = most
        self._grave: set[Subject] = set()
        self._calm: set[Subject] = set()
        self._hosts: set[str] = set()  # of things in trouble
        self._sorts: Counter[tuple[str, int | str | None]] = Counter()
        self.refused = 0  # lines with trouble, of things that are not told apart
        self._cut: set[tuple[str, int | str | None]] = set()  # sorts of them

    def told(self, found: Sequence[Observation]) -> list[Observation]:
        """The observations without events of things that are too many."""
        return [o for o in found if not isinstance(o.value, Event) or self._takes(o, o.value)]

    def least(self, o: Observation) -> bool:
        """Whether other things have an event of this sort as well, which are not told apart."""
        return isinstance(o.value, Event) and (o.fact, o.value.code) in self._cut

    def _takes(self, o: Observation, event: Event) -> bool:
        if not _tells(o.excerpt.encode("utf-8", "surrogatepass").translate(_DIGITS)):
            if o.subject not in self._grave and o.subject not in self._calm:
                beside = o.subject.scope is Scope.NODE and o.subject.host in self._hosts
                if not beside and len(self._calm) >= self._most:
                    return False
                self._calm.add(o.subject)
            return True
        sort = (o.fact, event.code)
        if o.subject not in self._grave and len(self._grave) >= self._most and self._sorts[sort] >= FIRST:
            self.refused += o.times
            self._cut.add(sort)
            return False
        self._sorts[sort] += 1
        self._grave.add(o.subject)
        self._hosts.add(o.subject.host)
        return True
