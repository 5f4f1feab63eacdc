"""From the records of one request to how it stands: pure, in their order, and never refusing one.

What makes no sense where it stands changes nothing: nobody agrees to their own request, to one that is over, or twice. A use
always counts: whatever came before it, the act was run and is never run again.

==========  ====================================================================================================
requested   what, node, cost, risk, privileged, argv (shown), digest, channel, expires (ns UTC)
approved    by whom is the record's ``who``; groups
refused     -
expired     why: time, clock
used        digest
==========  ====================================================================================================
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import field, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from assistant.rights.model import Act
from knowledge.record import dataclass

if TYPE_CHECKING:
    from assistant.journal.chain import Record

SECOND = 10**9
LONGEST = 24 * 3600 * SECOND  # ns: an approval of yesterday is about another machine, whatever its name
# ns that two machines' clocks may differ: one that stands further back has been set, and says nothing about how old a request is.
SKEW = 30 * SECOND


class State(StrEnum):
    """How far a request is."""

    WAITING = "waiting"
    APPROVED = "approved"
    REFUSED = "refused"
    EXPIRED = "expired"
    USED = "used"

    @property
    def over(self) -> bool:
        """Whether nothing can happen to it any more."""
        return self not in (State.WAITING, State.APPROVED)


@dataclass(frozen=True, slots=True)
class Approval:
    """A request for something that needs a second person, and what became of it."""

    id: str
    state: State
    requester: str
    act: Act  # without its arguments, which are kept for people only
    digest: str
    channel: str
    asked_at: int  # ns UTC
    expires: int  # ns UTC
    newest: int  # ns UTC, of the newest record
    approver: str = ""
    shown: tuple[str, ...] = field(default=())  # the command line as the journal has it, secrets masked

    def at(self, now: int) -> State:
        """How it stands at `now` (ns UTC), which may be long after its last record, or before it."""
        return State.EXPIRED if not self.state.over and self.lapsed(now) else self.state

    def lapsed(self, now: int) -> str:
        """Why nobody may use it any more: "time", "clock"; empty while it may be."""
        if now >= self.expires:
            return "time"
        return "clock" if now < self.newest - SKEW else ""


def digest(act: Act) -> str:
    """What an approval is bound to (SHA-256, hexadecimal): the act with its node and every argument."""
    from hashlib import sha256  # loads OpenSSL

    parts = ["gpudiag/approval/1", act.what, act.node, act.cost, act.risk, act.privileged, list(act.argv)]
    return sha256(json.dumps(parts, separators=(",", ":")).encode("ascii")).hexdigest()


def fold(records: Iterable[Record]) -> Approval | None:
    """The request that these records, in their order, make; None when none of them begins one."""
    found: Approval | None = None
    for record in records:
        found = _begun(record) if found is None else _after(found, record)
    return found


def _begun(r: Record) -> Approval | None:
    expires = r.data.get("expires")
    if r.kind != "requested" or not isinstance(expires, int) or not r.who or not r.text("digest"):
        return None
    return Approval(
        r.subject, State.WAITING, r.who, _act(r.data), r.text("digest"), r.text("channel"), r.at,
        min(expires, r.at + LONGEST), r.at, shown=_argv(r.data),
    )  # fmt: skip


def _after(a: Approval, r: Record) -> Approval:
    kind = r.kind
    if kind not in ("approved", "refused", "expired", "used"):
        return a
    a = replace(a, newest=max(a.newest, r.at))
    match kind:
        case "used":
            return replace(a, state=State.USED)
        case "approved" if a.state is State.WAITING and r.who and r.who != a.requester and r.at < a.expires:
            return replace(a, state=State.APPROVED, approver=r.who)
        case "refused" if not a.state.over:
            return replace(a, state=State.REFUSED)
        case "expired" if not a.state.over:
            return replace(a, state=State.EXPIRED)
    return a


def _act(data: Mapping[str, Any]) -> Act:
    what, node, cost, risk = (str(data.get(k, "")) for k in ("what", "node", "cost", "risk"))
    return Act(what, node, cost, risk, data.get("privileged") is not False)


def _argv(data: Mapping[str, Any]) -> tuple[str, ...]:
    argv = data.get("argv")
    return tuple(map(str, argv)) if isinstance(argv, list) else ()
