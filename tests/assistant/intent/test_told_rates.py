"""A rate that is told is a rate: a count over a time, in the unit of its fact, and never a count since the driver was loaded."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assistant.intent.parse import understand

DAY = {"minute": 1440, "hour": 24, "day": 1}
SPAN = st.sampled_from(sorted(DAY))


@given(st.integers(1, 100_000), SPAN, st.sampled_from(("per", "a", "every")))
def test_corrected_errors_in_any_time_are_so_many_a_day(count: int, span: str, per: str) -> None:
    """Whatever stands between the count and the time."""
    told = understand(f"gpu 2 shows {count} corrected ecc errors {per} {span}, keep going?").observations
    assert {o.fact: o.value for o in told} == {"gpu.ecc.corrected.rate": pytest.approx(count * DAY[span])}


@given(st.integers(2, 100_000))
def test_without_a_time_it_stays_a_count(count: int) -> None:
    """Nobody said how fast."""
    told = understand(f"gpu 2 shows {count} corrected ecc errors, keep going?").observations
    assert {o.fact: o.value for o in told} == {"gpu.ecc.volatile.corrected.total": count}


@given(
    st.integers(1, 10_000),
    SPAN,
    st.sampled_from(
        (
            "pcie replay counter climbing {} per {} on gpu 2",
            "replay counter 4 and going up by about {} every {}, the others are at 0",
        )
    ),
)
def test_a_replay_counter_that_climbs_is_so_many_a_minute(count: int, span: str, said: str) -> None:
    """However the growth is put, and with the counter itself beside it."""
    told = {o.fact: o.value for o in reversed(understand(said.format(count, span)).observations)}
    assert told["gpu.pcie.replay.rate"] == pytest.approx(count * DAY[span] / 1440, rel=0.01, abs=6e-3)
