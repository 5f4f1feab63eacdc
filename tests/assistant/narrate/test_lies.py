"""Lies that people wrote against the fence, without a look at it or in the knowledge of its rule: none passes."""

from __future__ import annotations

from typing import Any

import pytest

from assistant.narrate.fence import Guard, Withheld
from tests.assistant.narrate.narrate_lab import lines, made, say

NAMES = ("lies", "lies_extracts", "lies_last", "lies_six", "lies_seven", "lies_eight", "lies_nine", "lies_ten")
LIES = tuple(line for name in NAMES for line in lines(name))


def told(line: dict[str, Any]) -> list[dict[str, Any]]:
    """The sentences of a lie: many are of one alone."""
    return line.get("say") or [{"text": line["text"], "cites": line["cites"]}]


def test_there_are_enough_of_them() -> None:
    assert len(LIES) == 1237
    assert len({x["kind"] for x in LIES}) >= 30
    assert len({x["case"] for x in LIES}) >= 20


@pytest.mark.parametrize("lang", ["en", "zh"])
@pytest.mark.parametrize("name", NAMES)
def test_none_passes(name: str, lang: str) -> None:
    passed = []
    for x in (x for x in lines(name) if x["lang"] == lang):
        found = say(made(x["case"], lang), *told(x))
        if not isinstance(found, Withheld):
            passed.append((x["id"], told(x), x["why"]))
        else:  # refused for what it says, not for its form
            assert found.guard in (Guard.STATEMENT, Guard.PLACEHOLDER), (x["id"], found)
    assert not passed
