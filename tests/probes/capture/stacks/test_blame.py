"""Samples counted: the shares add up, the order does not matter, and a tree holds the same time."""

from __future__ import annotations

import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from probes.capture.stacks import blame
from probes.capture.stacks.activity import State
from probes.capture.stacks.blame import Place
from probes.capture.stacks.thread_states import States
from probes.trace.trees import flame, folded, speedscope
from probes.trace.trees.calltree import Kind
from probes.trace.trees.stacks import layout
from tests.probes.capture.stack_samples import DATA, MS, STACKS, TRAIN, UTIL, document, readings

SAMPLES = st.lists(st.tuples(st.integers(1, 200), st.integers(0, len(STACKS) - 1)), min_size=1, max_size=30)
ROWS = st.lists(st.sampled_from(["R", "S", "D", None]), max_size=15)


@given(SAMPLES, ROWS)
def test_shares_add_up_to_a_hundred(samples: list[tuple[int, int]], states: list[str | None]) -> None:
    found = blame.tally(document(samples), "7", {}, States(readings(states), 7, "x86_64"))
    assert found.total == sum(ms for ms, _ in samples) * MS == sum(found.hot.values()) == sum(found.states.values())
    assert sum(found.share(a) for a in found.activity) == pytest.approx(100)
    for activity, ns in found.activity.items():
        assert sum(found.functions[activity].values()) == ns


@given(SAMPLES, st.integers(0, 99))
def test_the_order_of_samples_does_not_matter(samples: list[tuple[int, int]], seed: int) -> None:
    doc = document(samples)
    before = blame.tally(doc, "7", {})
    random.Random(seed).shuffle(doc["threads"]["7"]["samples"])
    after = blame.tally(doc, "7", {})
    assert (after.activity, after.hot, after.lines) == (before.activity, before.hot, before.lines)
    for activity in before.activity:
        assert after.top(activity) == before.top(activity)
    assert blame.functions(doc, "7") == blame.functions(document(samples), "7")


@given(SAMPLES)
def test_a_tree_holds_the_time_of_all_stacks(samples: list[tuple[int, int]]) -> None:
    doc = document(samples)
    tree = blame.tree(doc, title="train")
    assert int(tree.cpu_ns.sum()) == sum(ms for ms, _ in samples) * MS
    assert (tree.kind[tree.parent < 0] == Kind.ROOT).all()
    again = folded.from_folded(folded.folded(tree, "cpu"))
    assert int(again.cpu_ns.sum()) == int(tree.cpu_ns.sum())
    assert layout(tree, "cpu").total == int(tree.cpu_ns.sum())
    assert list(flame.text(tree, "cpu"))
    assert speedscope.speedscope(tree)["profiles"]


@given(SAMPLES)
def test_what_a_function_takes_is_at_least_its_own(samples: list[tuple[int, int]]) -> None:
    found = blame.functions(document(samples), "7")
    total = sum(ms for ms, _ in samples) * MS
    assert all(0 <= f.own <= f.whole <= total for f in found)
    assert sum(f.own for f in found) <= total
    assert {f.place.file for f in found} <= {TRAIN, DATA, UTIL, "/home/ana/serve.py"}


def test_the_deepest_function_of_the_program_is_named_with_the_line_that_was_seen_most() -> None:
    found = blame.tally(document([(10, 3), (30, 4), (20, 2), (5, 6)]), "7", {})
    top = found.top("data_work")
    assert top is not None
    assert found.said(top[0]) == "decode_slowly (data.py:8)"
    waits = found.top("data_wait")
    assert waits is not None
    assert found.said(waits[0]) == "train (train.py:42)"


def test_a_helper_of_another_file_is_named_with_who_calls_it() -> None:
    found = blame.tally(document([(30, 5)]), "7", {})
    top = found.top("data_work")
    assert top is not None
    assert found.said(top[0]) == "burn (util.py:3) ← decode_slowly (data.py:8)"


def test_a_helper_of_two_activities_is_named_with_who_calls_it_in_each() -> None:
    found = blame.tally(document([(30, 5), (50, 12)]), "7", {})
    burn = Place("burn", UTIL)
    assert found.said(burn, "data_work") == "burn (util.py:3) ← decode_slowly (data.py:8)"
    assert found.said(burn, "python") == "burn (util.py:3) ← train (train.py:43)"
    assert found.said(burn) == "burn (util.py:3) ← train (train.py:43)", "over all of them who calls it most"


def test_a_collective_is_named_with_the_line_that_calls_it() -> None:
    found = blame.tally(document([(30, 8)]), "7", {})
    top = found.top("collective")
    assert top == (Place("train", TRAIN, "all_reduce"), 30 * MS)
    assert found.said(top[0]) == "all_reduce (train.py:43)"


def test_the_line_of_an_activity_is_its_own() -> None:
    doc = document([(90, 1), (10, 8)])
    found = blame.tally(doc, "7", {f"{TRAIN}:42": "for i in x:"})
    collective = found.top("collective")
    assert collective is not None
    assert found.said(collective[0], "collective") == "all_reduce (train.py:43)"
    hot = blame.most(found.hot)
    assert hot is not None
    assert found.said(hot[0]) == "train (train.py:42)"


def thread(name: str, *spans: tuple[int, int]) -> dict[str, Any]:
    return {"name": name, "samples": document(list(spans))["threads"]["7"]["samples"]}


@pytest.mark.parametrize(
    ("threads", "pid", "drives"),
    [
        ({"7": thread("MainThread", (100, 1)), "8": thread("x", (100, 6))}, 7, "7"),
        ({"7": thread("MainThread", (100, 7)), "8": thread("runner", (100, 6)), "9": thread("y", (100, 7))}, 7, "8"),
        ({"7": thread("MainThread", (100, 11)), "8": thread("runner", (60, 6), (40, 7))}, 7, "8"),
        (
            {"7": thread("MainThread", (100, 2)), "8": thread("runner", (100, 6))},
            7,
            "7",
        ),  # it waits for its loader: it drives
        ({"7": thread("MainThread", (100, 7)), "8": thread("y", (100, 7))}, 7, "7"),  # all wait
        ({"0x7f": thread("MainThread", (100, 1)), "8": thread("y", (100, 7))}, 7, "0x7f"),
        ({"8": thread("a", (100, 7)), "9": thread("b", (100, 1))}, 7, "9"),
        ({}, 7, None),
    ],
    ids=["main", "ray", "server", "loader", "all-wait", "no-number", "no-main", "none"],
)
def test_the_thread_that_drives_is_the_one_that_runs_the_loop(
    threads: dict[str, Any], pid: int, drives: str | None
) -> None:
    doc = document([(1, 1)])
    doc["threads"] = threads
    assert blame.driving(doc, pid, {}) == drives


def test_workers_are_those_in_the_loop_of_a_worker() -> None:
    docs = {11: document([(60, 9), (40, 10)], tid="11"), 12: document([(100, 1)], tid="12")}
    found = blame.worker_tallies(docs, {}, None)
    assert list(found) == [11]
    whole, work = found[11]
    assert (whole.total, work.total) == (100 * MS, 60 * MS)
    top = blame.most(work.hot)
    assert top is not None
    assert work.said(top[0]) == "decode_slowly (data.py:7)"


def test_who_held_the_lock_is_who_ran_meanwhile() -> None:
    doc = document([(100, 1)])
    doc["threads"] |= {"8": thread("scorer", (100, 5)), "9": thread("idle", (100, 7))}  # type: ignore[dict-item]
    at = [i * 20 * MS for i in range(5)]
    rows = {
        "7": {"state": ["S"] * 5, "syscall": [202] * 5, "gil": [1, 1, 1, 0, 0]},
        "8": {"state": ["R"] * 5, "syscall": ["running"] * 5, "gil": [0] * 5},
        "9": {"state": ["S"] * 5, "syscall": [202] * 5, "gil": [0] * 5},
    }
    states = States({"hz": 50, "at": at, "rows": {"7": rows}}, 7, "x86_64")
    found = blame.gil_holders(doc, "7", states)
    assert found.total == 60 * MS
    top = found.top("python")
    assert top is not None
    assert found.said(top[0]) == "burn (util.py:3) ← decode_slowly (data.py:8)"
    assert blame.tally(doc, "7", {}, states).states[State.GIL] == 60 * MS
