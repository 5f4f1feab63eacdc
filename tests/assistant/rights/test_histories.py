"""Random histories of several people, requests, roles and clocks: what is run had a second person, and is run once.

The machine keeps its own book of what people did, and knows from it alone whether a step has to succeed.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from assistant.rights.fold import SKEW
from assistant.rights.policy import Act, Person
from assistant.rights.refusals import RightsError
from tests.assistant.rights.rights_lab import KILL, LOOK, MINUTE, RESET, Desk, policy

PEOPLE = ("U1", "U2", "U3", "U4")
ACTS = (RESET, KILL, replace(RESET, argv=(*RESET.argv, "-i", "4")), replace(RESET, node="gpu-7"))
LASTS = 15 * MINUTE
AT = st.sampled_from((0, 0, 0, 1, 2))  # which request, from the newest on


@dataclass
class Asked:
    """What the book says of one request."""

    number: str
    who: str
    act: Act
    expires: int
    touched: int  # when its last record was written
    approver: str = ""
    over: bool = False  # refused, used, or seen when its time was over


class Histories(RuleBasedStateMachine):
    """People ask, agree, refuse, run; roles, guests and clocks change in between."""

    def __init__(self) -> None:
        super().__init__()
        self.desk = Desk()
        self.oncall, self.lead = {"U1", "U2"}, {"U3"}
        self.asked: list[Asked] = []
        self.ran = 0

    # --- what the book says -----------------------------------------------------------------

    def may_ask(self, who: str) -> bool:
        return who in self.oncall and not self.desk.people[who].guest

    def may_agree(self, who: str) -> bool:
        return who in self.lead and not self.desk.people[who].guest

    def alive(self, a: Asked) -> bool:
        """Whether it can still be used; looking at one whose time is over ends it."""
        return not a.over and self.desk.now < a.expires and self.desk.now >= a.touched - SKEW

    def did(self, a: Asked, kind: str, right: bool, who: str, act: Act | None = None) -> bool:
        """One step by the real code, which has to succeed when it is `right`, and not otherwise."""
        approvals, person = self.desk.approvals, self.desk.people[who]
        alive, before = self.alive(a), len(self.desk.log.rows)
        try:
            if act is not None:
                approvals.claim(a.number, act, person)
            elif kind == "approved":
                approvals.approve(a.number, person)
            else:
                approvals.refuse(a.number, person)
        except RightsError:
            assert not (right and alive), (kind, who, a)
            written = [row.kind for row in self.desk.log.rows[before:]]
            assert written == (["expired"] if right and not alive and not a.over else written[:1])
            assert set(written) <= {"expired"}
            a.over |= bool(written)
            return False
        assert right, (kind, who, a)
        assert alive, (kind, who, a)
        assert [row.kind for row in self.desk.log.rows[before:]] == [kind]
        a.touched = max(a.touched, self.desk.now)
        return True

    # --- what happens -----------------------------------------------------------------------

    @initialize(agreed=st.sampled_from((None, False, True, True)))
    def begin(self, agreed: bool | None) -> None:
        """Most histories begin where something is at stake."""
        if agreed is not None:
            self.ask("U1", RESET)
        if agreed:
            self.agree(0, "U3")

    @rule(who=st.sampled_from(PEOPLE), act=st.sampled_from((*ACTS, LOOK)))
    def ask(self, who: str, act: Act) -> None:
        try:
            number = self.desk.ask(act, who, LASTS)
        except RightsError:
            assert act is LOOK or not self.may_ask(who)
            return
        assert act is not LOOK
        assert self.may_ask(who)
        self.asked.append(Asked(number, who, act, self.desk.now + LASTS, self.desk.now))

    @precondition(lambda self: self.asked)
    @rule(k=AT, who=st.sampled_from(("U3", *PEOPLE)))
    def agree(self, k: int, who: str) -> None:
        a = self.asked[-1 - k % len(self.asked)]
        right = self.may_agree(who) and who != a.who and self.may_ask(a.who) and not a.approver
        if self.did(a, "approved", right, who):
            a.approver = who

    @precondition(lambda self: self.asked)
    @rule(k=AT, who=st.sampled_from(PEOPLE))
    def refuse(self, k: int, who: str) -> None:
        a = self.asked[-1 - k % len(self.asked)]
        if self.did(a, "refused", who == a.who or (self.may_agree(who) and self.may_ask(a.who)), who):
            a.over = True

    @precondition(lambda self: self.asked)
    @rule(k=AT, who=st.sampled_from((None,) * 8 + PEOPLE), act=st.sampled_from((None,) * 8 + ACTS))
    def run(self, k: int, who: str | None, act: Act | None) -> None:
        a = self.asked[-1 - k % len(self.asked)]
        who, act = who or a.who, act or a.act
        agreed = bool(a.approver) and a.approver != a.who and self.may_agree(a.approver)
        if self.did(a, "used", agreed and who == a.who and act == a.act and self.may_ask(who), who, act):
            a.over = True
            self.ran += 1
        assert [row.kind for row in self.desk.log.rows].count("used") == self.ran

    @precondition(lambda self: self.asked)
    @rule(lead=st.booleans(), keeps=st.booleans(), guest=st.sampled_from((False, False, True)))
    def change_of_one_concerned(self, lead: bool, keeps: bool, guest: bool) -> None:
        a = self.asked[-1]
        who = a.approver if lead and a.approver else a.who
        self.change(who, keeps and who in self.oncall, keeps and who in self.lead, guest)

    @rule(
        who=st.sampled_from(PEOPLE),
        oncall=st.booleans(),
        lead=st.booleans(),
        guest=st.sampled_from((False, False, True)),
    )
    def change(self, who: str, oncall: bool, lead: bool, guest: bool) -> None:
        for role, member in ((self.oncall, oncall), (self.lead, lead)):
            (role.add if member else role.discard)(who)
        self.desk.people[who] = Person(who, guest=guest)
        known = policy()  # the file with its lists changed; reading it anew is tested elsewhere
        roles = {
            "oncall": replace(known.roles["oncall"], users=frozenset(self.oncall)),
            "lead": replace(known.roles["lead"], users=frozenset(self.lead)),
        }
        self.desk.policy = replace(known, roles=roles)

    @rule(by=st.sampled_from((10**9, MINUTE, 5 * MINUTE, -SKEW, LASTS, -MINUTE, -LASTS)))
    def time_goes(self, by: int) -> None:
        self.desk.now += by

    @precondition(lambda self: self.asked)
    @rule(k=AT)
    def look(self, k: int) -> None:
        a = self.asked[-1 - k % len(self.asked)]
        over = not self.alive(a)
        assert self.desk.approvals.look(a.number).state.over == over
        a.over |= over


Histories.TestCase.settings = settings(
    max_examples=max(1000, settings().max_examples),
    stateful_step_count=14,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
TestHistories = pytest.mark.slow(Histories.TestCase)


def test_the_machine_can_run_things() -> None:
    """That the laws hold is worth something only where things do get run."""
    machine = Histories()
    machine.ask("U1", RESET)
    machine.agree(0, "U3")
    machine.run(0, None, None)
    assert machine.ran == 1
