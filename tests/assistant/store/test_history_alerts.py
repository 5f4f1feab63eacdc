"""Groups of alerts and their incidents in a history of each kind."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

from assistant.incidents.alert_desk import Desk
from assistant.incidents.alert_message import read
from assistant.incidents.book import Book
from assistant.incidents.events import Hand, closed
from tests.assistant.incidents.alert_lab import KNOWS, alert, message


def test_two_listeners_make_one_incident_of_a_group_and_the_next_one_after_it_is_closed(url: str) -> None:
    desks = [Desk(Book(url), KNOWS) for _ in range(2)]
    for minutes in (0, 10, 20):
        line = Barrier(2)
        body = message([alert("a", "firing", minutes)])

        def take(desk: Desk, line: Barrier = line, body: object = body) -> int:
            line.wait()
            return desk.take(read(body)).incident.number

        with ThreadPoolExecutor(2) as pool:
            numbers = set(pool.map(take, desks))
        assert len(numbers) == 1
        Book(url).add(numbers.pop(), Hand("alice", "cli"), closed(""))
    found = Book(url).incidents()
    assert len(found) == 3
    assert all(sum(e.kind == "alert" for e in i.events) == 1 for i in found)


def test_a_group_is_found_by_its_opening_and_not_by_a_label_that_says_so(url: str) -> None:
    book = Book(url)
    first, body = Desk(book, KNOWS), message([alert("a")])
    group = read(body).group
    first.take(read(body))
    forged = message([alert("x")], key="other")
    forged["groupLabels"] = {"group": group, "alertname": "x"}
    assert first.take(read(forged)).incident.number == 2
    assert Desk(book, KNOWS).take(read(body)).incident.number == 1
    found = book.opened_with("group", group)
    assert found is not None
    assert found.number == 1
    book.add(1, Hand("alice", "cli"), closed(""))
    again = Desk(book, KNOWS).take(read(message([alert("a", "firing", 30)])))
    assert (again.incident.number, again.new) == (3, True)
    assert Desk(book, KNOWS).take(read(message([alert("a", "resolved", 30)]))).incident.number == 3
