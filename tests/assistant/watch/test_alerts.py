"""Alerts over time: nothing is cleared that was not looked for, and what comes and goes never reads as healthy."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from assistant.watch.alerts import (
    MOST,
    SECOND,
    Alert,
    Book,
    Change,
    Phase,
    Policy,
    Sighting,
    What,
    dump,
    hold,
    renamed,
    restore,
    shifted,
    step,
)
from rules.model import Severity

POLICY = Policy()
MINUTE = 60 * SECOND
START = 1_780_000_000 * SECOND


def sighting(
    rule: str = "gpu-fell-off-bus", severity: Severity = Severity.CRITICAL, subject: str = "gpu 0000:3b:00.0"
) -> Sighting:
    return Sighting(rule, subject, "n1", severity, title={"en": rule, "zh": rule}, facts=(("xid", subject),))


KEY = sighting().key


def play(
    rounds: str, severity: Severity = Severity.CRITICAL, minutes: int = 1
) -> tuple[Book, list[tuple[int, Change]]]:
    """One letter a round: x seen, . looked and not found, ? could not look."""
    book, told = Book(), []
    for i, letter in enumerate(rounds):
        found = [sighting(severity=severity)] if letter == "x" else []
        blind = set(book.alerts) if letter == "?" else set()
        book, changes = step(book, found, blind, START + i * minutes * MINUTE, POLICY)
        told += [(i, c) for c in changes]
    return book, told


def story(told: list[tuple[int, Change]]) -> list[tuple[int, What]]:
    return [(i, c.what) for i, c in told]


def test_an_error_is_said_at_once_and_a_warning_when_it_stays() -> None:
    assert story(play("x")[1]) == [(0, What.FIRED)]
    assert story(play("x", Severity.WARNING)[1]) == []
    assert story(play("xx", Severity.WARNING)[1]) == [(1, What.FIRED)]


def test_it_is_said_once_and_cleared_once_after_staying_away() -> None:
    book, told = play("xxx" + "." * 12)
    assert story(told) == [(0, What.FIRED), (12, What.CLEARED)]
    assert not book.alerts


def test_a_round_that_could_not_look_proves_nothing() -> None:
    book, told = play("x" + "?" * 600)
    assert story(told) == [(0, What.FIRED)]
    assert book.firing


def test_looking_is_needed_however_long_it_is_away() -> None:
    book, told = play("x.?.", minutes=60)
    assert story(told) == [(0, What.FIRED)]
    assert book.alerts[KEY].phase is Phase.HOLDING
    assert story(play("x.?..", minutes=60)[1]) == [(0, What.FIRED), (4, What.CLEARED)]


def test_what_comes_and_goes_stays_said_and_grows() -> None:
    book, told = play("x.x.x.x.x.", Severity.ERROR)
    assert story(told) == [(0, What.FIRED), (6, What.ESCALATED)]
    assert book.alerts[KEY].severity is Severity.CRITICAL
    assert book.firing[0].phase is Phase.HOLDING


def test_a_warning_that_flickers_adds_up() -> None:
    assert story(play("x..x", Severity.WARNING)[1]) == [(3, What.FIRED)]


def test_the_same_fault_after_it_was_cleared_is_a_return_and_must_stay_away_longer() -> None:
    book, told = play("x" + "." * 12 + "x" + "." * 12)
    assert story(told) == [(0, What.FIRED), (10, What.CLEARED), (13, What.FIRED)]
    assert hold(book.alerts[KEY], START + 14 * MINUTE, POLICY) == 2 * POLICY.hold
    assert story(play("x" + "." * 12 + "x" + "." * 25)[1])[-1] == (33, What.CLEARED)


def test_a_finding_that_gets_worse_is_told_again() -> None:
    book, _ = step(Book(), [sighting(severity=Severity.ERROR)], (), START, POLICY)
    book, changes = step(book, [sighting()], (), START + MINUTE, POLICY)
    assert [c.what for c in changes] == [What.ESCALATED]
    _, changes = step(book, [sighting(severity=Severity.ERROR)], (), START + 2 * MINUTE, POLICY)
    assert changes == ()


def test_old_faults_are_forgotten() -> None:
    book, _ = play("x" + "." * 12)
    assert KEY in book.past
    book, _ = step(book, [], (), START + 2 * 86_400 * SECOND, POLICY)
    assert not book.past


ROUNDS = st.text(alphabet="x.?", min_size=1, max_size=60)


@given(ROUNDS, st.sampled_from([Severity.WARNING, Severity.ERROR, Severity.CRITICAL]))
def test_laws(rounds: str, severity: Severity) -> None:
    book, told = play(rounds, severity)
    said = False
    for i, change in told:
        if change.what is What.FIRED:
            assert not said
            assert rounds[i] == "x", "nothing is said that was not seen"
            said = True
        elif change.what is What.CLEARED:
            assert said
            since = rounds.rindex("x", 0, i)
            assert "?" not in rounds[i], "a round that did not look clears nothing"
            assert rounds[since : i + 1].count(".") >= POLICY.clear_rounds
            assert (i - since) * 60 >= POLICY.hold
            said = False
    assert said == bool(book.firing)
    if rounds[-1] == "x" and severity is not Severity.WARNING:
        assert book.firing, "what is seen now is said"


@given(ROUNDS, ROUNDS)
def test_a_restart_in_between_changes_nothing(before: str, after: str) -> None:
    book, _ = play(before)
    again = restore(json.loads(json.dumps(dump(book))))
    assert again == book
    later = START + len(before) * MINUTE
    one, two = book, again
    for i, letter in enumerate(after):
        found = [sighting()] if letter == "x" else []
        one, a = step(one, found, (), later + i * MINUTE, POLICY)
        two, b = step(two, found, (), later + i * MINUTE, POLICY)
        assert a == b
    assert one == two


@given(
    st.recursive(
        st.none() | st.integers() | st.text(max_size=5),
        lambda x: st.lists(x, max_size=3) | st.dictionaries(st.sampled_from(["alerts", "past", "k"]), x, max_size=3),
    )
)
def test_a_state_that_is_no_state_is_empty(data: object) -> None:
    assert not restore(data).firing


def test_two_findings_of_one_thing_are_one_alert() -> None:
    book, changes = step(Book(), [sighting(severity=Severity.ERROR), sighting()], (), START, POLICY)
    assert [c.alert.severity for c in changes] == [Severity.CRITICAL]
    assert isinstance(book.firing[0], Alert)


# --- clocks and names ---------------------------------------------------------------------


@given(ROUNDS, ROUNDS, st.integers(-40 * 365 * 86_400, 40 * 365 * 86_400))
def test_a_clock_that_is_set_changes_nothing(before: str, after: str, seconds: int) -> None:
    one, _ = play(before)
    later, by = START + len(before) * MINUTE, seconds * SECOND
    two = shifted(one, by)
    for i, letter in enumerate(after):
        found = [sighting()] if letter == "x" else []
        one, a = step(one, found, one.alerts.keys() if letter == "?" else (), later + i * MINUTE, POLICY)
        two, b = step(two, found, two.alerts.keys() if letter == "?" else (), later + i * MINUTE + by, POLICY)
        assert [c.what for c in a] == [c.what for c in b]
    assert shifted(one, by) == two


def test_a_state_of_the_future_is_of_now() -> None:
    """The clock stood in 2066 when it was written, and was set right while nobody watched."""
    book, _ = play("x")
    book = shifted(book, 40 * 365 * 86_400 * SECOND)
    changes: list[Change] = []
    for i in range(1, 14):
        book, more = step(book, [], (), START + i * MINUTE, POLICY)
        changes += more
    assert [c.what for c in changes] == [What.CLEARED]


def test_a_gpu_that_is_known_by_another_name_is_the_same() -> None:
    by_index = sighting(subject="gpu index:3", severity=Severity.ERROR)
    book, _ = step(Book(), [by_index], (), START, POLICY)
    book = renamed(book, {"gpu index:3": "gpu 0000:3b:00.0"}, {})
    assert list(book.alerts) == [KEY]
    assert book.alerts[KEY].last.facts == (("xid", "gpu 0000:3b:00.0"),)
    book, changes = step(book, [sighting(severity=Severity.ERROR)], (), START + MINUTE, POLICY)
    assert changes == ()
    assert len(book.firing) == 1


def test_two_names_of_one_fault_become_one_alert() -> None:
    links = [sighting(subject=f"gpu {name} link 3") for name in ("index:3", "0000:3b:00.0")]
    book, _ = step(Book(), links, (), START, POLICY)
    book = renamed(book, {"gpu index:3": "gpu 0000:3b:00.0"}, {})
    (alert,) = book.alerts.values()
    assert alert.last.subject == "gpu 0000:3b:00.0 link 3"
    assert alert.phase is Phase.FIRING


def test_a_node_that_was_renamed_keeps_its_alerts() -> None:
    book, _ = step(Book(), [sighting(subject="node n1")], (), START, POLICY)
    book = renamed(book, {"node n1": "node n2"}, {"n1": "n2"})
    (alert,) = book.alerts.values()
    assert (alert.last.subject, alert.last.host) == ("node n2", "n2")


def test_what_is_remembered_has_an_end() -> None:
    book = Book()
    for i in range(3):
        many = [sighting(subject=f"gpu {i}-{n}") for n in range(MOST)]
        book, _ = step(book, many, (), START + i * 20 * MINUTE, Policy(clear_rounds=1))
    for i in range(3, 6):
        book, _ = step(book, [], (), START + i * 20 * MINUTE, Policy(clear_rounds=1))
    assert not book.alerts
    assert len(book.past) == MOST
