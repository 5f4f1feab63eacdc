"""One queue a machine: never two looks at once at it, the same look is shared, everybody has a turn, what nobody wants ends."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Event, Lock

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from assistant.session.state import Seen
from assistant.slack.nodes import AbandonedError, Nodes, Waiting, What
from probes.runner import Progress

SOME = Progress(0, 1, ())


def what(*probes: str) -> What:
    return What(frozenset(probes))


def nothing(_: object = None) -> None:
    pass


def look(nodes: Nodes, user: str, one: What, run: object, **more: object) -> tuple[Seen, bool]:
    given: dict[str, object] = {"tell": nothing, "check": nothing, **more}
    return nodes.look("gpu-12", one, user, run, **given)  # type: ignore[arg-type]


@settings(max_examples=25, deadline=None)
@given(
    st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from("xyz"), st.sampled_from("mn")), min_size=1, max_size=12)
)
def test_never_two_at_once_and_everybody_gets_what_they_asked_for(asks: list[tuple[str, str, str]]) -> None:
    nodes, lock = Nodes(), Lock()
    busy: Counter[str] = Counter()

    def ask(user: str, probe: str, node: str) -> str:
        def run(tell: object) -> Seen:
            with lock:
                busy[node] += 1
                assert busy[node] == 1
            time.sleep(0.001)
            with lock:
                busy[node] -= 1
            return Seen(f"{node} {probe}", ())

        return nodes.look(node, what(probe), user, run, tell=nothing, check=nothing)[0].host

    with ThreadPoolExecutor(12) as pool:
        found = list(pool.map(lambda one: ask(*one), asks))
    assert found == [f"{node} {probe}" for _, probe, node in asks]
    assert not nodes._queues


def test_each_person_has_a_look_in_turn() -> None:
    nodes, begun, free = Nodes(), Event(), Event()
    order: list[str] = []

    def first(tell: object) -> Seen:
        begun.set()
        free.wait(60)
        return Seen("0", ())

    def noted(probe: str) -> Callable[[object], Seen]:
        def run(tell: object) -> Seen:
            order.append(probe)
            return Seen(probe, ())

        return run

    with ThreadPoolExecutor(8) as pool:
        pool.submit(look, nodes, "ann", what("0"), first)
        begun.wait(60)
        waiting = []
        for user, probe in (("ann", "a1"), ("ann", "a2"), ("ann", "a3"), ("bob", "b1")):
            stood = Event()
            waiting.append(pool.submit(
                look, nodes, user, what(probe), noted(probe), waits=lambda _, s=stood: s.set()
            ))  # fmt: skip
            assert stood.wait(60)
        free.set()
        for one in waiting:
            one.result(10)
    assert order == ["a1", "b1", "a2", "a3"]


def test_who_joins_is_told_how_far_it_is_and_keeps_it_going() -> None:
    nodes, begun, free = Nodes(), Event(), Event()
    told: list[Progress] = []
    runs = Counter[str]()

    class GoneError(Exception):
        pass

    gone = Event()

    def run(tell: object) -> Seen:
        runs["run"] += 1
        assert callable(tell)
        tell(SOME)
        begun.set()
        while not free.wait(0.02):
            tell(SOME)
        return Seen("x", ())

    def leave() -> None:
        if gone.is_set():
            raise GoneError

    with ThreadPoolExecutor(4) as pool:
        one = pool.submit(look, nodes, "ann", what("x"), run, check=leave)
        begun.wait(60)
        joined: list[Waiting] = []
        two = pool.submit(look, nodes, "bob", what("x"), run, tell=told.append, waits=joined.append)
        while not (told and joined):
            time.sleep(0.01)
        gone.set()
        with pytest.raises(GoneError):
            one.result(10)
        free.set()
        assert two.result(10) == (Seen("x", ()), True)
    assert runs["run"] == 1
    assert joined[0].joined


def test_what_nobody_waits_for_is_ended_and_the_next_one_begins() -> None:
    nodes, ended = Nodes(), Event()

    class GoneError(Exception):
        pass

    def run(tell: object) -> Seen:
        assert callable(tell)
        try:
            while True:
                tell(SOME)
                time.sleep(0.01)
        except AbandonedError:
            ended.set()
            raise

    def leave() -> None:
        raise GoneError

    with pytest.raises(GoneError):
        look(nodes, "ann", what("x"), run, check=leave)
    assert ended.wait(60)
    assert look(nodes, "bob", what("x"), lambda _: Seen("y", ())) == (Seen("y", ()), False)


def test_what_a_look_raises_is_raised_for_all_who_wait() -> None:
    nodes, begun, free = Nodes(), Event(), Event()

    def run(tell: object) -> Seen:
        begun.set()
        free.wait(60)
        raise TimeoutError("the machine")

    with ThreadPoolExecutor(4) as pool:
        one = pool.submit(look, nodes, "ann", what("x"), run)
        begun.wait(60)
        two = pool.submit(look, nodes, "bob", what("x"), run, waits=lambda _: free.set())
        for each in (one, two):
            with pytest.raises(TimeoutError, match="the machine"):
                each.result(10)
