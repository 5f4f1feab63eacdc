"""The patterns that tell what a thread does: whole, typed, in both languages, and narrow enough not to fit a program's own files."""

from __future__ import annotations

import re

import pytest
from pydantic import ValidationError

from knowledge.activities import WRAPPER, Activity, activities
from knowledge.facts import vocabulary
from knowledge.schema.activities import Entry
from tests.cases import each

ALL = list(activities().values())
HAN = re.compile("[\u4e00-\u9fff]")


@each("activity", ALL, ids=lambda a: a.id)
def test_an_activity_has_both_names_and_something_to_be_known_by(activity: Activity) -> None:
    assert activity.title.en
    assert HAN.search(activity.title.zh)
    by_state = activity.id in ("python", "gil_wait", "unknown")  # what no frame says
    assert bool(activity.frames or activity.calls) is not by_state


def test_each_activity_but_wrappers_and_nothing_has_a_fact() -> None:
    for activity in ALL:
        if activity.id not in (WRAPPER, "unknown"):
            assert f"stack.{activity.id}.share" in vocabulary(), activity.id


def test_what_a_thread_waits_for_outranks_what_it_computes() -> None:
    rank = {a.id: a.rank for a in ALL}
    order = ["gil_wait", "data_work", "import", "checkpoint", "compile", "collective", "sync", "backward", "logging", "sleep", "io", "operator", "python"]  # fmt: skip
    assert sorted(order, key=lambda i: -rank[i]) == order


@each(
    "wrong",
    [
        {"frames": [{"files": ["torch/"]}]},  # fits /home/ana/torch/train.py
        {"frames": [{"files": ["queue.py"]}]},
        {"frames": [{"files": ["~/queue.py", "~/queue.py"]}]},
        {"frames": [{"files": []}]},
        {"calls": ["a b"]},
        {"claims": "some"},
        {"rank": 101},
        {"title": {"en": "x", "zh": "x"}},
        {"colour": "red"},
    ],
    ids=["one-folder", "one-file", "twice", "no-file", "no-name", "no-claim", "rank", "language", "unknown-key"],
)
def test_a_faulty_entry_is_refused(wrong: dict[str, object]) -> None:
    good = {"id": "io", "title": {"en": "reading", "zh": "读取"}, "rank": 1, "claims": "all"}
    Entry.model_validate(good)
    with pytest.raises(ValidationError):
        Entry.model_validate(good | wrong)
