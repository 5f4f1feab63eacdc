"""Laws of the walk: for every runbook that lints clean, whatever the facts and the people say."""

from __future__ import annotations

from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from assistant.incidents.events import StepState
from assistant.runbooks.engine import Outcome, bound, outcome, position, walk
from assistant.runbooks.judging import checks
from knowledge import runbook
from knowledge.runbook import Runbook, Step
from knowledge.schema import runbook as schema
from rules.proof import Truth

KNOWN = frozenset({"contact-support", "book"})
CONDITION = {"fact": "gpu.row_remap.pending", "op": "is", "value": True}
TRUTHS = st.sampled_from(list(Truth))
BOTH = {"en": "Look", "zh": "看"}


@st.composite
def steps(draw: st.DrawFn, names: list[str], n: int) -> dict[str, Any]:
    """A step; branches lead anywhere, so that many of the books do not lint clean."""
    out: dict[str, Any] = {"id": names[n], "title": BOTH, "do": BOTH, "risk": "safe", "consent": "none"}
    later = st.sampled_from([*names[n + 1 :], "contact-support"])
    anywhere = st.one_of(later, later, later, st.sampled_from([*names, "end"]))
    down = st.one_of(st.sampled_from([*names[n + 1 :], "end"]), anywhere)
    options = {
        "if": st.just(CONDITION), "verify_if": st.just(CONDITION), "next": down, "on_failure": anywhere,
        "verify": st.just(BOTH), "command": st.just("echo {node}"),
        "repeat": st.fixed_dictionaries({"until": st.just(CONDITION), "at_most": st.integers(1, 5), "every": st.just("10s")}),
    }  # fmt: skip
    for key, values in options.items():
        if draw(st.integers(0, 3)) == 0:
            out[key] = draw(values)
    if "next" in out and draw(st.booleans()):  # what it jumps over is reached when the step is left out
        out["if"] = CONDITION
    return out


@st.composite
def books(draw: st.DrawFn) -> Runbook | None:
    """A runbook as its file says it; None where the lint finds fault with it."""
    names = [f"s{n}" for n in range(draw(st.integers(1, 6)))]
    front = {
        "id": "book", "title": BOTH, "applies": ["thermal"], "summary": BOTH, "references": ["https://example.org"],
        "steps": [draw(steps(names, n)) for n in range(len(names))],
    }  # fmt: skip
    text = f"---\n{yaml.safe_dump(front, allow_unicode=True)}---\n\n## English\n\nQuiet.\n\n## 中文\n\n静。\n"
    data, faults = schema.read(text, "book.md", KNOWN, checks())
    return None if faults else runbook._runbook(data)


class Whim:
    """A world that says anything, and notes what it was asked and what was done."""

    def __init__(self, data: st.DataObject) -> None:
        self.data = data
        self.gates: dict[str, Truth] = {}
        self.entered: dict[str, bool] = {}
        self.rounds: dict[str, int] = {}
        self.verified: dict[str, Truth] = {}
        self.judged: dict[str, StepState] = {}

    def gate(self, step: Step) -> Truth:
        return self.gates.setdefault(step.id, self.data.draw(TRUTHS))

    def enters(self, step: Step) -> bool:
        return self.entered.setdefault(step.id, self.data.draw(st.booleans()))

    def does(self, step: Step, rounds: int) -> tuple[Truth, Truth]:
        self.rounds[step.id] = rounds
        until, self.verified[step.id] = self.data.draw(TRUTHS), self.data.draw(TRUTHS)
        return until, self.verified[step.id]

    def judges(self, step: Step) -> StepState:
        return self.judged.setdefault(step.id, self.data.draw(st.sampled_from(list(StepState))))


@pytest.mark.slow
@settings(max_examples=250)
@given(books(), st.data())
def test_every_walk_ends_within_its_bounds_and_takes_nothing_unknown_for_true(
    book: Runbook | None, data: st.DataObject
) -> None:
    if book is None:
        return
    world = Whim(data)
    taken, end = walk(book, world)
    assert sum(world.rounds.values()) <= bound(book)
    assert all(n <= book.step(name).bound for name, n in world.rounds.items())
    order = [s.id for s in book.steps]
    met = [t.step.id for t in taken]
    assert met == sorted(set(met), key=order.index)  # down the page, each once
    assert end.step is None or end.stuck
    for t in taken:
        gate = world.gates.get(t.step.id)
        if gate is Truth.UNKNOWN:  # neither left out nor done without a person's word
            assert t.asked
            assert (t.rounds > 0) == world.entered[t.step.id]
        assert (t.rounds == 0) == (t.state is StepState.SKIPPED and t.step.id not in world.judged)
        if gate is Truth.FALSE:
            assert t.rounds == 0
        by_person = t.step.id in world.judged
        if t.rounds and t.state is StepState.DONE and t.step.verify_if is not None and not by_person:
            assert world.verified[t.step.id] is Truth.TRUE


@given(books(), st.data())
def test_where_it_stands_follows_from_the_marks_alone(book: Runbook | None, data: st.DataObject) -> None:
    if book is None:
        return
    marks = {s.id: data.draw(st.sampled_from(list(StepState))) for s in book.steps}
    stand = position(book, marks)
    assert position(book, marks) == stand
    assert len(stand.path) == len(set(stand.path)) <= len(book.steps)
    if stand.step is not None and not stand.stuck:
        assert not marks[stand.step.id].ended
    begin = data.draw(st.sampled_from([s.id for s in book.steps]))
    later = position(book, {}, begin)
    assert later.step is not None
    assert later.step.id == begin


@pytest.mark.slow
def test_books_that_lint_clean_are_drawn_at_all() -> None:
    found: list[Runbook] = []

    @settings(max_examples=100, database=None)
    @given(books())
    def draw(book: Runbook | None) -> None:
        if book is not None and len(book.steps) > 2:
            found.append(book)

    draw()
    assert found
    assert any(s.next for b in found for s in b.steps)


def test_unknown_decides_nothing() -> None:
    for book in runbook.all_runbooks():
        for step in book.steps:
            came = outcome(step, step.bound)
            if step.repeat is not None or step.verify_if is not None:
                assert came is Outcome.ASK, (book.id, step.id)
