"""Lies that people wrote against the fence, class by class: none passes.

Each line of ``lies/CLASS.jsonl`` is false or unsupported. The blind ones were written from the materials alone, by someone who had
not read the fence; the others in the knowledge of its rule. They name only placeholders that their material holds and break no
rule of form, so that only what they say can refuse them.
"""

from __future__ import annotations

import re

from assistant.narrate.fence import Guard, Withheld
from tests.assistant.narrate.narrate_lab import LIES, Lie, lies, made
from tests.cases import Faults, each

SAYS = {Guard.STATEMENT, Guard.PLACEHOLDER}  # refused for what it says, not for its form
MARKS = {"letters_changed": {Guard.SIGNS}, "out_of_role": {Guard.SIGNS}, "certainty_changed": set()}


@each("name", LIES)
def test_none_passes(name: str) -> None:
    allowed = SAYS | MARKS.get(name, set())
    with Faults() as faults:
        for lie in lies(name):
            with faults.of(lie):
                found = lie.told()
                assert isinstance(found, Withheld), lie.why
                assert found.guard in allowed


def test_only_what_it_says_can_refuse_it() -> None:
    """Cites and placeholders are right: no blind lie is refused for its form."""
    with Faults() as faults:
        for lie in every():
            if lie.blind:
                with faults.of(lie):
                    in_order(lie)


def in_order(lie: Lie) -> None:
    m = made(lie.case, lie.lang)
    for text, cites in lie.sentences:
        assert set(cites) <= set(m.by_id)
        for slot in re.findall(r"\{([^}]+)\}", text):
            assert m.slots[slot].owners & set(cites), slot


def every() -> list[Lie]:
    return [lie for name in LIES for lie in lies(name)]


def test_there_are_enough() -> None:
    """No class is small, and no lie stands there twice."""
    assert len(every()) == len({(lie.case, lie.lang, lie.sentences) for lie in every()}) >= 1500
    assert sum(lie.blind for lie in every()) >= 240
    assert min(len(lies(name)) for name in LIES) >= 8
    assert len(LIES) >= 20
    assert len({lie.case for lie in every()}) >= 20
