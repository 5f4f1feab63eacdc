"""Plain questions as they are typed: the first sentence answers what was asked, of no machine in particular."""

from __future__ import annotations

import re

import pytest

from assistant.diagnosis import diagnose
from assistant.dialogue import Turn, answerer
from assistant.intent.parse import understand
from rules.loader import load


def first(said: str) -> str:
    """The first paragraph of the answer to a sentence that no machine is looked at for."""
    query = understand(said)
    diagnosis = diagnose(list(query.observations), load()) if query.observations else None
    return answerer(query.intent).answer(Turn(query, query.lang, load(), diagnosis)).headline


@pytest.mark.parametrize(
    ("said", "says"),
    [
        ("xid 63 is back after the reset, should we return the card?", "Not decided yet.*row.*failed"),
        ("xid 63 again after a reboot, can I keep using it?", "no new work"),
        ("Xid 63 复位后又出现，要返修吗？", "还不能断定"),
        ("our HBM temps sit at 88 all day, should we worry", "memory temperature.* 88 °C"),
        ("gpu clocks are 8% lower on gpu 2, fine?", "^(?!.*maximum of 8)"),
    ],
)
def test_what_is_asked_is_answered_first(said: str, says: str) -> None:
    assert re.search(says, first(said), re.DOTALL), first(said)
