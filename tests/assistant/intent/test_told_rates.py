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
