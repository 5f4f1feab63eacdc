"""Loops, failures and what is not known, in walks with a real incident, a real journal and real commands."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from assistant.incidents import events
from assistant.incidents.book import Book
from assistant.incidents.deeds import deeds
from assistant.incidents.events import Hand, Kind
from assistant.incidents.looking import Sight
from assistant.incidents.opening import by_hand
from assistant.incidents.walk import Walk
from assistant.incidents.walk_parts import LeftError, Way
from assistant.journal import Journal
from assistant.render.sheet import Part
from assistant.store.location import StoreError
from knowledge.facts import vocabulary
from knowledge.language import Text
from knowledge.observation import Observation, Source, Status, node
from knowledge.runbook import lay_over
from rules.factbase import FactBase

ALICE = Hand("alice", "cli")
PAGE = """\
---
id: looped
title: {en: A loop, zh: 循环}
applies: [thermal]
summary: {en: Walk., zh: 执行。}
steps:
  - id: wait
    title: {en: Wait, zh: 等待}
    do: {en: Wait., zh: 等待。}
    command: /bin/echo waited
    risk: safe
    consent: none
    if: {fact: node.gpu.count, op: at_least, value: 1}
    repeat:
      until: {fact: node.gpu.count, op: at_least, value: 8}
      at_most: 3
      every: 7s
    on_failure: contact-support
references: [https://example.org]
---

## English

Quiet.

## 中文

静。
"""


class Person:
    """Answers in order, and keeps what was said."""

    def __init__(self, *answers: str) -> None:
        self.answers, self.said = list(answers), ""

    def say(self, text: Text) -> None:
        self.said += f"{text.en}\n"

    def show(self, title: str, parts: list[Part]) -> None:
        self.said += f"{title} {len(parts)}\n"

    def ask(self, question: Text) -> str:
        self.said += f"{question.en}\n"
        if not self.answers:
            raise LeftError
        return self.answers.pop(0)


@pytest.fixture
def book(tmp_path: Path) -> Iterator[Book]:
    (tmp_path / "looped.md").write_text(PAGE, encoding="utf-8")
    lay_over([tmp_path])
    made = Book(f"sqlite:///{tmp_path}/h.db")
    made.open(ALICE, [*by_hand("wait", host="n1"), events.Entry(Kind.RUNBOOK, {"runbook": "looped"})])
    yield made
    lay_over(())


def counted(n: int | None) -> FactBase:
    """What is known of the number of GPUs."""
    source = Source("nvml")
    status = Status.OK if n is not None else Status.DENIED
    return FactBase([Observation("node.gpu.count", node("n1"), n, status, source=source)], vocabulary())


class Counting(Sight):
    """A machine on which GPUs come back, one look after another."""

    def __init__(self, *counts: int | None) -> None:
        super().__init__(None)
        self.counts = list(counts)

    def facts(self, probes: object = (), *, afresh: bool = False) -> FactBase:
        assert probes == ("nvml",)
        return counted(self.counts.pop(0) if len(self.counts) > 1 else self.counts[0])


def walk(book: Book, tmp_path: Path, sight: Sight, person: Person, slept: list[float], yes_safe: bool = False) -> Walk:
    journal = Journal(f"sqlite:///{tmp_path}/h.db")
    return Walk(book, 1, ALICE, journal, sight, person, Way("n1", True, yes_safe), sleep=slept.append)


def state(book: Book) -> str:
    return str(book.incident(1).steps["looped", "wait"].state)


@pytest.mark.process
def test_a_loop_ends_once_it_holds(book: Book, tmp_path: Path) -> None:
    slept: list[float] = []
    person = Person("y")
    assert walk(book, tmp_path, Counting(1, 4, 8), person, slept).run()
    assert (slept, state(book)) == ([7.0], "done")
    assert person.said.count("waited") == 2


@pytest.mark.process
def test_a_loop_ends_at_its_bound_and_leads_on(book: Book, tmp_path: Path) -> None:
    slept: list[float] = []
    person = Person("y")
    assert not walk(book, tmp_path, Counting(1), person, slept).run()
    assert (slept, state(book)) == ([7.0, 7.0], "failed")
    assert person.said.count("waited") == 3
    assert book.incident(1).runbooks == ("looped", "contact-support")
    assert "It goes on in runbook contact-support." in person.said
    rounds = [e.data["round"] for e in deeds(book.incident(1).events) if e.kind == Kind.ACTION]
    assert rounds == [1, 2, 3]


@pytest.mark.process
def test_what_is_not_known_leaves_nothing_out_and_makes_nothing_true(book: Book, tmp_path: Path) -> None:
    slept: list[float] = []
    person = Person("y")
    assert not walk(book, tmp_path, Counting(None), person, slept, yes_safe=True).run()
    assert "Not known whether this step applies" in person.said
    assert "probe nvml" in person.said
    assert person.said.count("waited") == 3  # unknown ends no loop
    assert "Did it work?" in person.said  # and a person says what came of it
    assert state(book) == "doing"


def test_what_does_not_hold_is_left_out_with_its_reason(book: Book, tmp_path: Path) -> None:
    assert walk(book, tmp_path, Counting(0), Person(), []).run()
    assert state(book) == "skipped"
    assert "does not hold (0)" in book.incident(1).steps["looped", "wait"].text


@pytest.mark.process
def test_without_a_journal_nothing_runs_and_the_step_is_left(book: Book, tmp_path: Path) -> None:
    person = Person("y")
    one = Walk(book, 1, ALICE, Journal("off"), Counting(1), person, Way("n1", True))
    with pytest.raises(StoreError):
        one.run()
    assert "waited" not in person.said
    assert state(book) == "doing"
    assert book.incident(1).events[-1].data["left"] is True
    assert walk(book, tmp_path, Counting(8), Person("y"), []).run()
    assert state(book) == "done"
