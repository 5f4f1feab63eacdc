"""A policy, its people and a journal in memory, for tests of who may do what."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from functools import cache

from assistant.incidents.events import Hand
from assistant.inventory.model import Hosts
from assistant.inventory.parse import parse as machines
from assistant.journal.chain import GENESIS, Entry, Head, Record, Row, canonical, linked
from assistant.journal.cleaning import cleaned
from assistant.rights.approvals import Approvals
from assistant.rights.parse import parse
from assistant.rights.policy import Act, Person, Policy

MINUTE = 60 * 10**9
RESET = Act("step:gpu-off-bus/reset", "gpu-12", "heavy", "disruptive", True, ("nvidia-smi", "--gpu-reset", "-i", "3"))
KILL = Act("step:stuck-process/kill", "gpu-7", "cheap", "destructive", True, ("kill", "-9", "4242"))
LOOK = Act("nvml", "gpu-12", "cheap")


def hosts() -> Hosts:
    """Machines with an alias and a group."""
    return machines(
        "[hosts.gpu-12]\naliases = ['dgx3']\n[hosts.gpu-7]\n[hosts.web-1]\n[groups]\ntraining = ['gpu-7']", "i"
    )


def text(oncall: Sequence[str] = ("U1", "U2"), lead: Sequence[str] = ("U3",), more: str = "") -> str:
    """A policy file: who is on call, and who may agree."""
    return f"""
channels = ["C1", "direct"]
[roles.oncall]
users = {json.dumps(list(oncall))}
groups = ["S1"]
[roles.lead]
users = {json.dumps(list(lead))}
groups = ["S3"]
[grants.looks]
roles = ["oncall", "lead"]
run = ["*"]
nodes = ["gpu-*"]
cost = "seconds"
[grants.acts]
roles = "oncall"
run = ["step:*"]
nodes = ["gpu-*"]
cost = "heavy"
risk = "destructive"
privileged = true
approvers = ["lead"]
{more}
"""


@cache
def policy(oncall: Sequence[str] = ("U1", "U2"), lead: Sequence[str] = ("U3",), more: str = "") -> Policy:
    """What that file says, read once: a policy is frozen, and histories begin with it a thousand times."""
    return parse(text(oncall, lead, more), "p.toml", hosts())


class Memory:
    """The journal's interface over a list: what it takes is cleaned and read back from JSON as the real one does."""

    def __init__(self, clock: Callable[[], int]) -> None:
        self.rows: list[Row] = []
        self.clock = clock

    def append(self, subject: str, hand: Hand, *entries: Entry) -> tuple[Record, ...]:
        return self.change(subject, hand, lambda _: entries)

    def change(
        self, subject: str, hand: Hand, decide: Callable[[tuple[Record, ...]], Sequence[Entry]]
    ) -> tuple[Record, ...]:
        added = []
        for entry in decide(self.of(subject)):
            head = Head(self.rows[-1].seq, self.rows[-1].hash) if self.rows else Head(0, GENESIS)
            data = canonical(cleaned(entry.data))
            row = Row(0, self.clock(), str(entry.kind), subject, hand.who, hand.surface, data, "", "")
            self.rows.append(linked(head, row))
            added.append(self.rows[-1].record())
        return tuple(added)

    def of(self, subject: str) -> tuple[Record, ...]:
        return tuple(row.record() for row in self.rows if row.subject == subject)


class Desk:
    """Approvals over a journal, with a clock and people that tests turn."""

    def __init__(self) -> None:
        self.now = 1_800_000_000 * 10**9
        self.people = {i: Person(i) for i in ("U1", "U2", "U3", "U4")}
        self.policy = policy()
        self.log = Memory(lambda: self.now)
        self.approvals = Approvals(self.log, lambda: self.policy, lambda: self.now, people=self.people.get)

    def ask(self, act: Act = RESET, who: str = "U1", lasts: int = 15 * MINUTE) -> str:
        """A new request; its number."""
        return self.approvals.request(self.people[who], act, "C1", lasts=lasts).id
