"""What the kernel said of threads, beside their stacks."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from probes.capture.stacks.activity import State
from probes.capture.stacks.thread_states import States, state_of

MS = 1_000_000


@pytest.mark.parametrize(
    ("letter", "call", "gil", "state"),
    [
        ("R", "running", None, State.CPU),
        ("R", 202, 1, State.CPU),
        ("S", 202, 1, State.GIL),
        ("S", 202, 0, State.LOCK),
        ("S", 202, None, State.LOCK),
        ("S", 7, 0, State.POLL),
        ("S", 230, 0, State.SLEEP),
        ("S", 0, 0, State.READ),
        ("S", 16, 0, State.BLOCKED),  # ioctl: a driver
        ("S", None, 0, State.BLOCKED),
        ("D", 0, 0, State.DISK),
        ("T", 0, 0, State.STOPPED),
        ("t", 0, 0, State.STOPPED),
        ("Z", None, None, None),
        (None, 0, 0, None),
    ],
)
def test_a_reading_has_one_state(
    letter: str | None, call: int | str | None, gil: int | None, state: State | None
) -> None:
    assert state_of(letter, call, gil, "x86_64") is state


def test_calls_have_other_numbers_on_arm() -> None:
    assert state_of("S", 98, 0, "aarch64") is State.LOCK
    assert state_of("S", 98, 0, "x86_64") is State.BLOCKED
    assert state_of("S", 98, 0, "riscv64") is State.BLOCKED


def document(states: list[Any], step: int = 20 * MS) -> dict[str, Any]:
    row = {"state": states, "syscall": [202] * len(states), "gil": [0] * len(states)}
    return {"hz": 50, "at": [i * step for i in range(len(states))], "rows": {"7": {"8": row}}}


@given(
    st.lists(st.sampled_from(["R", "S", "D", None]), max_size=20), st.integers(0, 500 * MS), st.integers(1, 500 * MS)
)
def test_the_parts_of_a_span_add_up_to_it(states: list[str | None], began: int, ns: int) -> None:
    parts = list(States(document(states), 7, "x86_64").parts("8", began, ns))
    assert sum(p[1] for p in parts) == ns
    assert all(p[1] >= 0 for p in parts)


def test_a_span_is_divided_among_the_readings_in_it() -> None:
    states = States(document(["R", "S", "D", "R"]), 7, "x86_64")
    assert [(n, s) for _, n, s in states.parts("8", 0, 60 * MS)] == [
        (20 * MS, State.CPU),
        (20 * MS, State.LOCK),
        (20 * MS, State.DISK),
    ]
    assert [s for *_, s in states.parts("8", 21 * MS, 5 * MS)] == [State.LOCK]  # none within: the nearest
    assert [s for *_, s in states.parts("8", 5000 * MS, MS)] == [None]  # none near


KEPT = st.recursive(
    st.none() | st.integers() | st.text(max_size=3) | st.floats(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(["rows", "7", "8", "at", "hz", "state", "gil"]), inner, max_size=5),
    max_leaves=15,
)  # fmt: skip


@given(KEPT)
def test_any_document_is_taken(value: Any) -> None:
    states = States(value, 7)
    states.known("8")
    states.gil_known("8")
    list(states.parts("8", 0, 100))
