"""A conversation over many turns of one process: kept, taken up again, and never waited for."""

from __future__ import annotations

from pathlib import Path

import pytest

from assistant.session.continued import Continued
from assistant.session.key import Key
from assistant.session.state import State, plain
from assistant.session.store import Dialogues
from tests.assistant.session.test_core import OFF_BUS, held

KEY = Key("tui", "", "t", "1")


def talk(*sentences: str) -> State:
    """The state after some turns."""
    return held(OFF_BUS, sentences)[-1].state


@pytest.mark.slow
def test_what_was_kept_is_taken_up_by_the_next_process(tmp_path: Path) -> None:
    state = talk("what is wrong?")
    Continued(Dialogues(tmp_path), KEY).keep(state)
    assert plain(Continued(Dialogues(tmp_path), KEY).now()) == plain(state)


def test_the_state_stays_the_same_object_while_nobody_else_speaks(tmp_path: Path) -> None:
    talking, state = Continued(Dialogues(tmp_path), KEY), talk("what is wrong?")
    talking.keep(state)
    assert talking.now() is state


@pytest.mark.slow
def test_what_another_process_said_meanwhile_counts(tmp_path: Path) -> None:
    talking, other = Continued(Dialogues(tmp_path), KEY), Continued(Dialogues(tmp_path), KEY)
    talking.keep(talk("what is wrong?"))
    other.keep(talk("what is wrong?", "why?"))
    assert plain(talking.now()) == plain(other.now())


def test_nobody_waits_for_a_turn_that_was_given_up(tmp_path: Path) -> None:
    lingering, next_ = Continued(Dialogues(tmp_path), KEY), Continued(Dialogues(tmp_path), KEY)
    lingering.now()  # its turn never ends
    next_.keep(talk("what is wrong?"))
    assert next_.now().frames


def test_where_nothing_is_remembered_the_talk_goes_on_all_the_same(tmp_path: Path) -> None:
    talking, state = Continued(Dialogues(tmp_path, days=0), KEY), talk("what is wrong?")
    talking.keep(state)
    assert talking.now() is state
    assert not list(tmp_path.glob("*.gz"))


def test_a_folder_that_cannot_be_written_is_told_once(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    talking, state = Continued(Dialogues(tmp_path / "file"), KEY), talk("what is wrong?")
    talking.keep(state)
    assert talking.complaints()
    talking.keep(state)
    assert not talking.complaints()
    assert talking.now() is state


def test_a_damaged_file_is_set_aside_and_the_talk_begins_anew(tmp_path: Path) -> None:
    Continued(Dialogues(tmp_path), KEY).keep(talk("what is wrong?"))
    store = Dialogues(tmp_path)
    assert store.save(KEY, {"version": 1, "sum": 0})
    talking = Continued(store, KEY)
    assert talking.now() == State()
    assert talking.complaints()


def test_forgetting_begins_anew(tmp_path: Path) -> None:
    talking = Continued(Dialogues(tmp_path), KEY)
    talking.keep(talk("what is wrong?"))
    talking.forget()
    assert talking.now() == State()
    assert Continued(Dialogues(tmp_path), KEY).now() == State()
