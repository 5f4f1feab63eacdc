"""Two people for what is privileged or disruptive: asked for by one, agreed to by another, run once.

A request is one subject of the journal, and its records alone say how it stands (`assistant.rights.fold`). Whoever writes holds
the journal meanwhile, so that of two who use an approval at the same time one does. The policy and the people are asked anew at
every step: whoever lost a right between click and run has lost it.

An approval in a chat is weaker than a login here: it proves that somebody held the account, not that they were at the keyboard.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from assistant.incidents.events import Hand
from assistant.journal.chain import Entry
from assistant.rights.fold import LONGEST, SECOND, Approval, State, digest, fold
from assistant.rights.model import ID, Act, Decision, Person, Ruling
from assistant.rights.refusals import Reason, RightsError, refusal

if TYPE_CHECKING:
    from assistant.journal.chain import Record
    from assistant.rights.policy import Policy

# ns: long enough for somebody on call to come to the keyboard, short enough that the node is still as it was seen.
LASTS = 15 * 60 * SECOND
SHORTEST = 10 * SECOND


class Log(Protocol):
    """What is asked of the journal (`assistant.journal.Journal`)."""

    def append(self, subject: str, hand: Hand, *entries: Entry) -> tuple[Record, ...]:
        """Add records; they are durable when this returns."""

    def change(
        self, subject: str, hand: Hand, decide: Callable[[tuple[Record, ...]], Sequence[Entry]]
    ) -> tuple[Record, ...]:
        """Add what `decide` makes of the records so far, while nobody else writes."""

    def of(self, subject: str) -> tuple[Record, ...]:
        """The records of a subject, in order."""


class Approvals:
    """The requests in one journal."""

    def __init__(
        self, journal: Log, policy_source: Callable[[], Policy], clock: Callable[[], int] = time.time_ns, *,
        people: Callable[[str], Person | None],
    ) -> None:  # fmt: skip
        """`policy_source` reads the policy afresh; `clock` tells ns UTC; `people` who an id is now, None for nobody."""
        self._journal, self._policy, self._clock, self._people = journal, policy_source, clock, people

    def request(
        self, person: Person, act: Act, channel: str = "", *, lasts: int = LASTS, surface: str = "slack"
    ) -> Approval:
        """Ask for `act`, of which `argv` is what would be run. `lasts`: ns, from 10 s to a day.

        RightsError when the policy denies it, or when it needs nobody else.
        """
        if not SHORTEST <= lasts <= LONGEST:
            raise ValueError(f"an approval lasts {SHORTEST} to {LONGEST} ns, not {lasts}")
        policy = self._policy()
        act = policy.meant(act)
        ruling = policy.decide(person, act, channel)
        _needs_two(ruling)
        asked: dict[str, Any] = {
            "what": act.what, "node": act.node, "cost": act.cost, "risk": act.risk, "privileged": act.privileged,
            "argv": list(act.argv), "digest": digest(act), "channel": channel, "expires": self._clock() + lasts,
            "grant": ruling.rule, "approvers": sorted(ruling.approvers),
        }  # fmt: skip
        number = secrets.token_urlsafe(12)
        found = fold(self._journal.append(number, Hand(person.id, surface), Entry("requested", asked)))
        if found is None:  # the journal cleans what it takes: what it changed cannot be asked for
            raise refusal(Reason.UNKNOWN)
        return found

    def approve(self, number: str, person: Person, *, surface: str = "slack") -> Approval:
        """Agree. RightsError for the requester, for whoever holds no role that may, and for what is over."""
        before = self._known(number)
        policy = self._policy()
        ruling = _ruling(policy, before, self._people(before.requester))
        _second(policy, before, person, ruling)

        def judge(now: Approval) -> Sequence[Entry]:
            if now.state is State.APPROVED:
                raise refusal(Reason.APPROVED)
            return [Entry("approved", {"groups": sorted(person.groups), "roles": sorted(policy.roles_of(person))})]

        return self._step(number, Hand(person.id, surface), judge)

    def refuse(self, number: str, person: Person, *, surface: str = "slack") -> Approval:
        """Refuse it for good, or take it back: whoever may agree, and the requester. RightsError otherwise."""
        before = self._known(number)
        policy = self._policy()
        if person.bot or not ID.fullmatch(person.id):
            raise refusal(Reason.NOBODY)
        if person.id != before.requester:
            ruling = _ruling(policy, before, self._people(before.requester))
            if not policy.approves(person, ruling.approvers):
                raise refusal(Reason.ROLE)
        return self._step(number, Hand(person.id, surface), lambda _: [Entry("refused")])

    def claim(self, number: str, act: Act, person: Person, *, surface: str = "slack") -> Approval:
        """Use it, for exactly `act`, right before that is run. Returns once; RightsError with the reason otherwise.

        `person` is the requester, as the surface knows them now.
        """
        before = self._known(number)
        if person.id != before.requester:
            raise refusal(Reason.OTHER)
        policy = self._policy()
        bound = digest(policy.meant(act))
        if bound != before.digest:
            raise refusal(Reason.CHANGED)
        ruling = _ruling(policy, before, person)
        if before.approver:
            approver = self._people(before.approver)
            if approver is None or approver.id != before.approver:
                raise refusal(Reason.LOST)
            _second(policy, before, approver, ruling, lost=True)

        def judge(now: Approval) -> Sequence[Entry]:
            if now.state is not State.APPROVED or now.approver != before.approver:
                raise refusal(Reason.WAITING)
            return [Entry("used", {"digest": bound, "approver": now.approver})]

        return self._step(number, Hand(person.id, surface), judge)

    def look(self, number: str) -> Approval:
        """How it stands now. One whose time is over is written down as expired: a clock that is set back revives nothing."""
        found = self._known(number)
        if found.at(self._clock()) is found.state:
            return found
        try:
            self._step(number, Hand("gpudiag", "clock"), lambda _: [])
        except RightsError as error:
            if error.reason is not Reason.EXPIRED:
                raise
        return self._known(number)

    # --- within ---------------------------------------------------------------------------

    def _known(self, number: str) -> Approval:
        found = fold(self._journal.of(number))
        if found is None:
            raise refusal(Reason.UNKNOWN)
        return found

    def _step(self, number: str, hand: Hand, judge: Callable[[Approval], Sequence[Entry]]) -> Approval:
        """One transition; `judge` sees a request that is not over."""
        before: tuple[Record, ...] = ()
        expired = False

        def decide(records: tuple[Record, ...]) -> Sequence[Entry]:
            nonlocal before, expired
            before = records
            found = fold(records)
            if found is None:
                raise refusal(Reason.UNKNOWN)
            if found.state.over:
                raise refusal(Reason[found.state.name])
            if why := found.lapsed(self._clock()):
                expired = True
                return [Entry("expired", {"why": why})]
            return judge(found)

        added = self._journal.change(number, hand, decide)
        if expired:
            raise refusal(Reason.EXPIRED)
        after = fold((*before, *added))
        assert after is not None
        return after


def _needs_two(ruling: Ruling) -> None:
    if ruling.decision is Decision.DENIED:
        raise RightsError(Reason.DENIED, ruling.why)
    if ruling.decision is Decision.ALLOWED:
        raise refusal(Reason.ALONE)


def _ruling(policy: Policy, asked: Approval, requester: Person | None) -> Ruling:
    """What the policy says of the request now. RightsError when its requester may not ask for it any more."""
    if requester is None or requester.id != asked.requester:
        raise refusal(Reason.REQUESTER)
    ruling = policy.decide(requester, asked.act, asked.channel)
    if ruling.decision is not Decision.SECOND_PERSON:
        raise refusal(Reason.REQUESTER)
    return ruling


def _second(policy: Policy, asked: Approval, person: Person, ruling: Ruling, *, lost: bool = False) -> None:
    """RightsError unless `person` is somebody else and holds one of the roles that may agree."""
    if person.bot or not ID.fullmatch(person.id):
        raise refusal(Reason.LOST if lost else Reason.NOBODY)
    if policy.same(person.id, asked.requester):
        raise refusal(Reason.SELF)
    if not policy.approves(person, ruling.approvers):
        raise refusal(Reason.LOST if lost else Reason.ROLE)
