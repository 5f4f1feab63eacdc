"""What an incident's conditions are judged by: probes of its machine run when they are asked for, or facts that were given."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from knowledge.derive import derive
from knowledge.facts import vocabulary
from rules.factbase import FactBase

if TYPE_CHECKING:
    from assistant.config import Settings
    from assistant.machine import Look
    from knowledge.observation import Observation

Looker = Callable[[Sequence[str]], "Look | None"]


class Sight:
    """What is known of the machine during one walk. Nothing is read before a condition asks for it."""

    def __init__(self, look: Looker | None, given: FactBase | None = None) -> None:
        """`look` runs probes by name on the machine (None: it cannot be reached); `given` facts stand for it instead."""
        self._look, self._given = look, given
        self._seen: dict[str, tuple[Observation, ...]] = {}
        self._as_of: int | None = None

    @property
    def live(self) -> bool:
        """Whether the machine itself can be looked at."""
        return self._given is None and self._look is not None

    def facts(self, probes: Sequence[str] = (), *, afresh: bool = False) -> FactBase:
        """What is known once `probes` were run; those that were run before are run again only `afresh`.

        Facts that were given are old once something was done: afresh nothing is known of them.
        """
        if self._given is not None:
            return FactBase((), vocabulary()) if afresh else self._given
        wanted = [p for p in probes if afresh or p not in self._seen]
        look = self._look(wanted) if wanted and self._look is not None else None
        if look is not None:
            for result in look.results:
                self._seen[result.probe] = tuple(result.observations)
            self._as_of = look.as_of
        return FactBase(derive([o for seen in self._seen.values() for o in seen]), vocabulary(), self._as_of)


def looker(settings: Settings, host: str) -> tuple[Looker | None, bool]:
    """How the machine called `host` is looked at, None when it cannot be; and whether it is this one."""
    from assistant import machine
    from assistant.inventory import load
    from assistant.inventory.target import named
    from knowledge.errors import UnknownNameError
    from probes.remote import ConnectError

    if not host:
        return None, False
    try:
        other = named(host, settings, load(settings))
    except UnknownNameError:  # no inventory names it, and it is not this one
        return None, False

    def look(probes: Sequence[str]) -> Look | None:
        wish = machine.Wish(only=tuple(probes))
        if other is None:
            return machine.here(settings, wish)
        try:
            return machine.there(settings, other.reach, wish)
        except ConnectError as error:  # of a machine that cannot be reached nothing is known, with the reason
            return machine.unreached(other.name, wish, error.why, settings.output.lang)

    return look, other is None
