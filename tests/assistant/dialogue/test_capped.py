"""What a lower power limit costs, and what stands idle at a price."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from assistant.dialogue._capped import answer
from assistant.intent.capped import Capped, capped


@given(st.floats(0.2, 0.99))
def test_a_lower_limit_never_costs_more_than_the_power_it_takes(share: float) -> None:
    """The bounds are in order, and below the share of the power that is gone."""
    low, high = answer(Capped("H100", share * 700, 700.0, share), "en").data["loss"]
    assert 0 <= low <= high <= round(100 * (1 - share)) + 1


@given(st.integers(701, 2000))
def test_a_limit_above_what_the_board_is_built_for_costs_nothing(watts: int) -> None:
    """Whatever it is."""
    asked = capped(f"power limit {watts} W on H100, how much do I lose")
    assert asked is not None
    assert answer(asked, "en").data["loss"] == [0, 0]


def test_a_gpu_that_is_held_down_is_no_limit_that_somebody_thinks_of() -> None:
    """What the driver does is diagnosed."""
    assert capped("why is sw power cap active, does it hurt performance at 500 W") is None
    assert capped("gpu 3 draws 500 W, is that normal") is None


@given(st.integers(300, 700), st.integers(100, 299))
def test_of_two_limits_the_one_that_is_thought_of_counts(today: int, then: int) -> None:
    """And the loss is of what it is today."""
    for said in (
        f"how much perf do i lose if i cap h100 from {today}w to {then}w",
        f"H100 功耗从 {today}W 限到 {then}W 会慢多少",
    ):
        assert (capped(said) or Capped("", 0, 0, 0))[1:] == (then, today, then / today), said
