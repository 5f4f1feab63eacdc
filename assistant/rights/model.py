"""People, what they want done, and what is ruled about it."""

from __future__ import annotations

import re
from collections.abc import Iterable
from enum import StrEnum

from assistant.inventory.words import NAME
from knowledge.language import Text
from knowledge.record import dataclass

COSTS = ("free", "cheap", "seconds", "heavy")  # as probes have them, rising
RISKS = ("safe", "disruptive", "destructive")  # as steps of runbooks have them, rising
ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@-]{0,63}")  # of a person or a channel, on any surface
WHAT = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:/-]{0,252}")
DIRECT = "direct"
"""The word for a message to the bot alone (Slack: channels whose ids begin with D), and for what has no channel."""


class Sight(StrEnum):
    """What a role may see of other users. Secrets are masked for everybody, so there is no word for them."""

    COMMAND_LINES = "command-lines"
    """The arguments of their processes, not only the program."""
    USERS = "users"
    """Their names."""


@dataclass(frozen=True, slots=True)
class Person:
    """Somebody, as the surface knows them now; ids, never names that people give themselves."""

    id: str  # Slack user id
    groups: frozenset[str] = frozenset()  # Slack user group ids
    guest: bool = False  # single- or multi-channel guest
    external: bool = False  # of another organisation, through Slack Connect
    bot: bool = False


@dataclass(frozen=True, slots=True)
class Act:
    """What somebody wants done."""

    what: str  # a probe, "test:NAME", "step:RUNBOOK/STEP", "check", "collect", "profile"
    node: str  # by the name of the inventory, an alias, or this machine's name
    cost: str = "cheap"  # one of COSTS
    risk: str = "safe"  # one of RISKS
    privileged: bool = False
    argv: tuple[str, ...] = ()  # what would be run; an approval is for this and nothing else

    @property
    def alone(self) -> bool:
        """Whether one person is enough."""
        return self.risk == "safe" and not self.privileged

    @property
    def sound(self) -> bool:
        """Whether its words are such as there are: anything else is denied."""
        known = self.cost in COSTS and self.risk in RISKS
        return known and bool(WHAT.fullmatch(self.what)) and bool(NAME.fullmatch(self.node))


class Decision(StrEnum):
    """What the policy says."""

    ALLOWED = "allowed"
    """At once."""
    SECOND_PERSON = "second-person"
    """Once somebody else, who holds a role that may, has agreed."""
    DENIED = "denied"


class Lack(StrEnum):
    """What is missing where an act is denied; the later ones are nearer to being allowed."""

    PERSON = "person"
    """The id is none, or a bot's."""
    MEMBER = "member"
    GUEST = "guest"
    EXTERNAL = "external"
    CHANNEL = "channel"
    SOUND = "unknown-act"
    GRANT = "grant"
    """No grant at all names a role of theirs."""
    ACT = "act"
    NODE = "node"
    COST = "cost"
    RISK = "risk"
    PRIVILEGED = "privileged"


@dataclass(frozen=True, slots=True)
class Ruling:
    """What is decided about one act of one person."""

    decision: Decision
    why: Text
    rule: str  # the grant that allows it, by its name; where it is denied, the `Lack`
    approvers: frozenset[str] = frozenset()  # roles, of which a second person has to hold one
    keepers: tuple[str, ...] = ()  # who can grant what is denied, in the policy's own words


@dataclass(frozen=True, slots=True)
class Globs:
    """Words with ``*`` and ``?`` in them."""

    words: tuple[str, ...]
    names: frozenset[str]
    patterns: tuple[re.Pattern[str], ...]

    def has(self, name: str) -> bool:
        """Whether a word fits `name` as a whole."""
        return name in self.names or any(p.fullmatch(name) for p in self.patterns)


def globs(words: Iterable[str], names: Iterable[str], *, within: str = "") -> Globs:
    """`words` as they were written; `names` what they mean, wildcards still in them, which do not reach over `within`."""
    any_ = f"[^{within}]" if within else "."
    wild: list[str] = []
    plain: list[str] = []
    for name in names:
        (wild if "*" in name or "?" in name else plain).append(name)
    told = (re.escape(w).replace(r"\*", f"{any_}*").replace(r"\?", any_) for w in wild)
    return Globs(tuple(words), frozenset(plain), tuple(re.compile(t, re.DOTALL) for t in dict.fromkeys(told)))


@dataclass(frozen=True, slots=True)
class Role:
    """Who belongs to it, and what they may see."""

    name: str
    users: frozenset[str] = frozenset()
    groups: frozenset[str] = frozenset()
    guests: bool = False  # whether it counts for guests
    external: bool = False  # whether it counts for people of other organisations
    see: frozenset[Sight] = frozenset()

    def names(self, person: Person) -> bool:
        """Whether the person is on its list."""
        return person.id in self.users or not self.groups.isdisjoint(person.groups)

    def holds(self, person: Person) -> bool:
        """Whether the role counts for the person."""
        return self.names(person) and (self.guests or not person.guest) and (self.external or not person.external)


@dataclass(frozen=True, slots=True)
class Grant:
    """What some roles may have run, and where."""

    name: str
    roles: frozenset[str]
    run: Globs
    nodes: Globs
    cost: str  # the highest
    risk: str = "safe"  # the highest
    privileged: bool = False
    approvers: frozenset[str] = frozenset()  # roles; never empty where something needs a second person
    place: str = ""  # file and line

    def lacks(self, act: Act) -> Lack | None:
        """The first condition that `act`, whose words are sound, does not meet."""
        if not self.run.has(act.what):
            return Lack.ACT
        if not self.nodes.has(act.node):
            return Lack.NODE
        if COSTS.index(act.cost) > COSTS.index(self.cost):
            return Lack.COST
        if RISKS.index(act.risk) > RISKS.index(self.risk):
            return Lack.RISK
        return Lack.PRIVILEGED if act.privileged and not self.privileged else None
