"""What the policy file says, and how it rules. What no grant names is denied.

A grant only ever adds: nothing in the file takes away what another grant gives. What is privileged, disruptive or destructive
is never allowed to one person alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import field, replace
from typing import TYPE_CHECKING

from assistant.rights import words
from assistant.rights.model import DIRECT, ID, Act, Decision, Grant, Lack, Person, Role, Ruling, Sight
from knowledge.record import dataclass

if TYPE_CHECKING:
    from knowledge.errors import Fault

__all__ = ["Act", "Decision", "Grant", "Lack", "Person", "Policy", "Role", "Ruling", "Sight"]
_ORDER = tuple(Lack)


@dataclass(frozen=True)
class Policy:
    """Who may have what run where."""

    channels: frozenset[str] = frozenset()  # ids, and `DIRECT`
    roles: Mapping[str, Role] = field(default_factory=dict)
    grants: tuple[Grant, ...] = ()
    people: tuple[frozenset[str], ...] = ()  # ids that are one person's
    called: Mapping[str, str] = field(default_factory=dict)  # names and aliases of machines, and what each means
    acts: Mapping[str, str] = field(default_factory=dict)  # names of acts that have another one, which counts
    file: str = ""  # where it stands; empty when there is none
    keepers: tuple[str, ...] = ()  # who keeps it: names, channels, addresses, for people
    doubts: tuple[Fault, ...] = ()  # what it names that nothing here is called: it counts, and reaches nothing

    def decide(self, person: Person, act: Act, channel: str = "") -> Ruling:
        """Whether `person` may have `act` done when asking in `channel`; empty: nowhere that has a channel.

        `person` is as the surface knows them now. Never raises: what makes no sense is denied.
        """
        return replace(self._decided(person, act, channel), keepers=self.keepers)

    def _decided(self, person: Person, act: Act, channel: str) -> Ruling:
        roles = self.roles_of(person)
        if (lack := self._outside(person, roles, channel)) is not None:
            return _denied(lack)
        if not act.sound:
            return _denied(Lack.SOUND)
        act = self.meant(act)
        own = [g for g in self.grants if not g.roles.isdisjoint(roles)]
        lacks = {g.name: g.lacks(act) for g in own}
        fits = [g for g in own if lacks[g.name] is None]
        if not fits:
            nearest = max((k for k in lacks.values() if k is not None), key=_ORDER.index, default=Lack.GRANT)
            return Ruling(Decision.DENIED, words.denied(nearest, act, self._most(own, act, nearest)), nearest.value)
        if act.alone:
            return Ruling(Decision.ALLOWED, words.allowed(fits[0].name), fits[0].name)
        approvers = frozenset[str]().union(*(g.approvers for g in fits))
        if not approvers:  # `parse` refuses such a grant: nobody could ever agree
            return Ruling(Decision.DENIED, words.NOBODY, (Lack.PRIVILEGED if act.privileged else Lack.RISK).value)
        return Ruling(Decision.SECOND_PERSON, words.second_person(fits[0].name, act), fits[0].name, approvers)

    def meant(self, act: Act) -> Act:
        """`act` by the names that count: a machine's own name for its aliases, ``test:NAME`` for an active test."""
        return replace(act, what=self.acts.get(act.what, act.what), node=self.called.get(act.node, act.node))

    def roles_of(self, person: Person) -> frozenset[str]:
        """The roles that count for `person`; none for bots and for what is no id."""
        if person.bot or not ID.fullmatch(person.id):
            return frozenset()
        return frozenset(r.name for r in self.roles.values() if r.holds(person))

    def approves(self, person: Person, roles: Iterable[str]) -> bool:
        """Whether `person` holds one of `roles`."""
        return not self.roles_of(person).isdisjoint(roles)

    def sees(self, person: Person) -> frozenset[Sight]:
        """What `person` may see of other users: what any of their roles may."""
        return frozenset[Sight]().union(*(self.roles[r].see for r in self.roles_of(person)))

    def same(self, one: str, other: str) -> bool:
        """Whether two ids are one person's, on whatever surface."""
        one, other = one.strip().casefold(), other.strip().casefold()
        return one == other or any({one, other} <= {i.casefold() for i in ids} for ids in self.people)

    def may_approve(self, roles: Iterable[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Ids of the users and of the user groups that hold one of `roles`."""
        held = [self.roles[r] for r in sorted(roles) if r in self.roles]
        users, groups = (
            sorted(frozenset[str]().union(*sets)) for sets in ([r.users for r in held], [r.groups for r in held])
        )
        return tuple(users), tuple(groups)

    def allows(self, channel: str) -> bool:
        """Whether anything may be asked for in `channel`."""
        direct = not channel or (channel.startswith("D") and ID.fullmatch(channel) is not None)
        return channel in self.channels - {DIRECT} or (direct and DIRECT in self.channels)

    def _outside(self, person: Person, roles: frozenset[str], channel: str) -> Lack | None:
        """Why nothing at all is open to `person` here."""
        if person.bot or not ID.fullmatch(person.id):
            return Lack.PERSON
        if not roles:
            named = [r for r in self.roles.values() if r.names(person)]
            if not named:
                return Lack.MEMBER
            return Lack.GUEST if person.guest and not any(r.guests for r in named) else Lack.EXTERNAL
        return None if self.allows(channel) else Lack.CHANNEL

    def _most(self, own: list[Grant], act: Act, lack: Lack) -> str:
        """The highest cost or risk that the person's own grants have for what is asked; empty for other lacks."""
        near = [g for g in own if g.lacks(act) is lack]
        match lack:
            case Lack.COST:
                return words.highest_cost(g.cost for g in near)
            case Lack.RISK:
                return words.highest_risk(g.risk for g in near)
        return ""


def _denied(lack: Lack) -> Ruling:
    return Ruling(Decision.DENIED, words.denied(lack), lack.value)
