"""Two people for what is privileged or disruptive: never one alone, never twice, never something else."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assistant.incidents.events import Hand
from assistant.journal import Entry, Journal
from assistant.journal.chain import Record
from assistant.rights.approvals import LASTS, Approvals
from assistant.rights.fold import LONGEST, SKEW, State, digest, fold
from assistant.rights.policy import Act, Person
from assistant.rights.refusals import Reason, RightsError
from assistant.store.location import StoreError
from tests.assistant.rights.rights_lab import KILL, LOOK, MINUTE, RESET, Desk, hosts, policy, text


def why(desk: Desk, number: str, act: Act = RESET, who: str = "U1") -> Reason:
    """Why an approval cannot be used."""
    with pytest.raises(RightsError) as caught:
        desk.approvals.claim(number, act, desk.people.get(who, Person(who)))
    assert caught.value.said.zh
    assert str(caught.value) == caught.value.said.en
    return caught.value.reason


def no(desk: Desk, number: str, person: Person) -> Reason:
    """Why somebody cannot agree."""
    with pytest.raises(RightsError) as caught:
        desk.approvals.approve(number, person)
    return caught.value.reason


def test_one_asks_another_agrees_it_is_run_once() -> None:
    desk = Desk()
    number = desk.ask()
    assert why(desk, number) is Reason.WAITING
    assert desk.approvals.approve(number, Person("U3")).approver == "U3"
    assert no(desk, number, Person("U3")) is Reason.APPROVED
    used = desk.approvals.claim(number, RESET, Person("U1"))
    assert (used.state, used.shown) == (State.USED, RESET.argv)
    assert why(desk, number) is Reason.USED
    assert [r.kind for r in desk.log.of(number)] == ["requested", "approved", "used"]


def test_who_can_agree() -> None:
    desk = Desk()
    desk.policy = policy(oncall=("U1", "U2", "U3"), more='[people]\nann = ["U3", "W3"]')
    number = desk.ask(who="U3")
    assert no(desk, number, Person("U3")) is Reason.SELF  # who leads too
    assert no(desk, number, Person("u3")) is Reason.SELF
    assert no(desk, number, Person("W3", frozenset({"S3"}))) is Reason.SELF  # the same person, by another id
    assert no(desk, number, Person("U2")) is Reason.ROLE
    assert no(desk, number, Person("U9")) is Reason.ROLE
    assert no(desk, number, Person("U4", frozenset({"S3"}), guest=True)) is Reason.ROLE
    assert no(desk, number, Person("U4", frozenset({"S3"}), external=True)) is Reason.ROLE
    assert no(desk, number, Person("U4", frozenset({"S3"}), bot=True)) is Reason.NOBODY
    assert no(desk, number, Person("", frozenset({"S3"}))) is Reason.NOBODY
    assert no(desk, "no-such-number", Person("U4", frozenset({"S3"}))) is Reason.UNKNOWN
    assert desk.approvals.approve(number, Person("U4", frozenset({"S3"}))).state is State.APPROVED


def test_what_needs_nobody_or_is_denied_is_no_request() -> None:
    desk = Desk()
    for act, who, reason in ((LOOK, "U1", Reason.ALONE), (RESET, "U4", Reason.DENIED), (RESET, "U3", Reason.DENIED)):
        with pytest.raises(RightsError) as caught:
            desk.ask(act, who)
        assert caught.value.reason is reason
    for lasts in (0, LONGEST + 1):
        with pytest.raises(ValueError, match="lasts"):
            desk.ask(lasts=lasts)
    assert desk.log.rows == []


@given(
    st.sampled_from(["what", "node", "cost", "risk", "privileged", "argv"]), st.text(max_size=8), st.sampled_from([RESET, KILL])
)  # fmt: skip
def test_an_approval_is_for_one_thing(field: str, word: str, act: Act) -> None:
    change: Any = {"privileged": not act.privileged, "argv": (*act.argv, word)}.get(field, word)
    other = replace(act, **{field: change})
    desk = Desk()
    number = desk.ask(act)
    desk.approvals.approve(number, Person("U3"))
    assert why(desk, number, other) is Reason.CHANGED
    assert desk.approvals.claim(number, act, Person("U1")).state is State.USED


def test_words_of_a_command_cannot_move_between_arguments() -> None:
    a, b = replace(RESET, argv=("a", "b c")), replace(RESET, argv=("a b", "c"))
    assert len({digest(a), digest(b), digest(replace(a, argv=("a", "b", "c"))), digest(replace(a, argv=()))}) == 4


def test_an_alias_that_means_another_machine_by_now() -> None:
    desk = Desk()
    number = desk.ask(replace(RESET, node="dgx3"))
    desk.approvals.approve(number, Person("U3"))
    there = desk.policy
    desk.policy = replace(there, called={**there.called, "dgx3": "gpu-7"})
    assert why(desk, number, replace(RESET, node="dgx3")) is Reason.CHANGED
    assert desk.approvals.claim(number, RESET, Person("U1")).act.node == "gpu-12"


def test_roles_are_asked_for_again_at_run() -> None:
    desk = Desk()
    number = desk.ask()
    desk.approvals.approve(number, Person("U3"))
    desk.policy = policy(lead=("U4",))
    assert why(desk, number) is Reason.LOST
    desk.policy = policy(oncall=("U2",))
    assert why(desk, number) is Reason.REQUESTER
    desk.policy = policy()
    del desk.people["U3"]  # who left
    assert why(desk, number) is Reason.LOST
    desk.people["U3"] = Person("U3", guest=True)
    assert why(desk, number) is Reason.LOST
    desk.people["U3"] = Person("U3")
    assert why(desk, number, who="U2") is Reason.OTHER
    assert desk.approvals.claim(number, RESET, Person("U1")).approver == "U3"


def test_nobody_agrees_to_what_was_asked_by_one_who_has_left() -> None:
    desk = Desk()
    number = desk.ask()
    asked = desk.people.pop("U1")
    assert no(desk, number, Person("U3")) is Reason.REQUESTER
    desk.people["U1"] = Person("U2")  # the id is somebody else's by now, who may ask for it too
    assert no(desk, number, Person("U3")) is Reason.REQUESTER
    desk.people["U1"] = asked
    assert desk.approvals.approve(number, Person("U3")).approver == "U3"


def test_a_group_that_somebody_has_left() -> None:
    desk = Desk()
    number = desk.ask()
    desk.people["U4"] = Person("U4", frozenset({"S3"}))
    desk.approvals.approve(number, desk.people["U4"])
    desk.people["U4"] = Person("U4")
    assert why(desk, number) is Reason.LOST


def test_refused_stays_refused() -> None:
    for who in ("U3", "U1"):
        desk = Desk()
        number = desk.ask()
        with pytest.raises(RightsError):
            desk.approvals.refuse(number, Person("U2"))
        assert desk.approvals.refuse(number, Person(who)).state is State.REFUSED
        assert no(desk, number, Person("U3")) is Reason.REFUSED
        assert why(desk, number) is Reason.REFUSED


def test_time() -> None:
    desk = Desk()
    number = desk.ask(lasts=LASTS)
    begun = desk.now
    desk.approvals.approve(number, Person("U3"))
    desk.now = begun + LASTS
    assert desk.approvals.look(number).state is State.EXPIRED
    desk.now = begun + 1  # the clock is set back
    assert why(desk, number) is Reason.EXPIRED
    later = desk.ask()
    desk.approvals.approve(later, Person("U3"))
    desk.now -= SKEW + 1  # how old it is, nobody knows
    assert why(desk, later) is Reason.EXPIRED
    desk.now += SKEW + MINUTE
    assert why(desk, later) is Reason.EXPIRED
    assert desk.approvals.look(later).state is State.EXPIRED


RECORDS = st.builds(
    lambda kind, who, at, data: Record(0, at, kind, "x", who, "slack", data),
    st.sampled_from(["requested", "approved", "refused", "expired", "used", "note", "intent", ""]),
    st.sampled_from(["U1", "U2", ""]), st.integers(0, 40),
    st.dictionaries(st.sampled_from(["expires", "digest", "what", "argv"]), st.one_of(st.integers(0, 50), st.text("ab", max_size=2), st.none(), st.just(["a"])), max_size=4),
)  # fmt: skip


@given(st.lists(RECORDS, max_size=12))
def test_the_fold_takes_any_record(records: list[Record]) -> None:
    found = fold(records)
    if found is None:
        return
    kinds = [r.kind for r in records]
    assert found.approver != found.requester
    assert (found.state is State.USED) == ("used" in kinds[kinds.index("requested") :] and found.state.over)
    for n in range(len(records)):
        earlier = fold(records[:n])
        if earlier is not None and earlier.state.over:  # nothing but a use comes after the end
            assert found.state in (earlier.state, State.USED)
        if earlier is not None and earlier.state is State.USED:
            assert found.state is State.USED


def test_nothing_runs_without_a_journal(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for url in ("off", f"sqlite:///{tmp_path}/file/h.db", "sqlite:////proc/none/h.db"):
        approvals = Approvals(Journal(url), policy, people=Person)
        with pytest.raises(StoreError):
            approvals.request(Person("U1"), RESET, "C1")


CLAIM = """
import sys, time
from pathlib import Path
from assistant.inventory.parse import parse as machines
from assistant.journal import Journal
from assistant.rights.approvals import Approvals
from assistant.rights.parse import parse
from assistant.rights.policy import Act, Person
from assistant.rights.refusals import RightsError
url, number, where = sys.argv[1:4]
hosts = machines("[hosts.gpu-12]", "i")
policy = parse(Path(where).read_text(), where, None)
approvals = Approvals(Journal(url), lambda: policy, people=Person)
act = Act("step:gpu-off-bus/reset", "gpu-12", "heavy", "disruptive", True, ("nvidia-smi", "--gpu-reset", "-i", "3"))
print("ready", flush=True)
sys.stdin.readline()
try:
    approvals.claim(number, act, Person("U1"))
    print("won")
except RightsError as error:
    print(error.reason.value)
"""


@pytest.mark.process
def test_of_two_processes_one_wins(tmp_path: Path) -> None:
    url, where = f"sqlite:///{tmp_path}/history.db", tmp_path / "p.toml"
    where.write_text(text())
    approvals = Approvals(Journal(url), policy, people=Person)
    numbers = [approvals.request(Person("U1"), RESET, "C1").id]
    approvals.approve(numbers[0], Person("U3"))
    racing = [
        subprocess.Popen([sys.executable, "-c", CLAIM, url, numbers[0], str(where)], stdin=-1, stdout=-1, text=True)
        for _ in range(2)
    ]
    for process in racing:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
    for process in racing:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    assert sorted(process.communicate(timeout=60)[0].strip() for process in racing) == ["used", "won"]
    records = Journal(url).of(numbers[0])
    assert [r.kind for r in records] == ["requested", "approved", "used"]
    assert (records[2].who, records[2].text("approver"), hosts().called["dgx3"]) == ("U1", "U3", "gpu-12")


def test_who_writes_an_approval_by_hand_is_asked_for_the_role(tmp_path: Path) -> None:
    journal = Journal(f"sqlite:///{tmp_path}/history.db")
    approvals = Approvals(journal, policy, people=Person)
    asked = approvals.request(Person("U1"), RESET, "C1")
    journal.append(asked.id, Hand("U1", "cli"), Entry("approved"))  # one's own counts for nothing
    with pytest.raises(RightsError, match="Nobody has agreed"):
        approvals.claim(asked.id, RESET, Person("U1"))
    journal.append(asked.id, Hand("U2", "cli"), Entry("approved"))
    with pytest.raises(RightsError, match="may not do so any more"):
        approvals.claim(asked.id, RESET, Person("U1"))
