"""A reading that somebody tells of "the GPU" is one of a GPU that is there, and makes up no GPU more."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from assistant.session.concluding import alike


@given(st.floats(0, 1e6), st.floats(0, 1e6))
def test_which_of_two_was_told_changes_nothing(a: float, b: float) -> None:
    assert alike(a, b) is alike(b, a)
    assert alike(a, a)
    assert not alike(a + 1, (a + 1) * 2)


def test_states_are_alike_when_they_are_equal() -> None:
    assert alike("P0", "P0")
    assert not alike("P0", "P8")
