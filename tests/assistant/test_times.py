"""Times are printed with the clock they were read from."""

from __future__ import annotations

import re
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assistant.render.times import iso, readable, stamp
from knowledge.observation import Clock
from tests.cases import each


def ns(year: int, month: int, day: int, hour: int, minute: int, second: int, micro: int = 0) -> int:
    moment = datetime(year, month, day, hour, minute, second, tzinfo=UTC)
    return int(moment.timestamp()) * 10**9 + micro * 1000


@each(
    ("at", "clock", "text"),
    [
        (ns(2025, 3, 6, 3, 12, 7, micro=402118), Clock.REALTIME, "2025-03-06T03:12:07.402118Z"),
        (ns(2025, 3, 6, 3, 12, 7), Clock.REALTIME, "2025-03-06T03:12:07Z"),
        (ns(2025, 3, 6, 3, 12, 7), Clock.LOCAL, "2025-03-06T03:12:07"),
        (ns(2000, 8, 17, 6, 18, 1), Clock.YEARLESS, "--08-17T06:18:01"),
        (430954509105000, Clock.BOOT, "boot+430954.509105s"),
        (5, Clock.MONOTONIC, None),
        (5, Clock.TRACE, None),
        (5, Clock.NONE, None),
        (None, Clock.REALTIME, None),
    ],
)
def test_stamps(at: int | None, clock: Clock, text: str | None) -> None:
    assert stamp(at, clock) == text


@given(st.integers(0, 4 * 10**18))
def test_utc_times_read_back_to_the_microsecond(at: int) -> None:
    back = datetime.fromisoformat(iso(at))
    assert (back - datetime(1970, 1, 1, tzinfo=UTC)).total_seconds() == pytest.approx(at / 1e9, abs=1e-5)


@given(st.integers(0, 10**17))
def test_boot_times_keep_six_digits(at: int) -> None:
    text = stamp(at, Clock.BOOT)
    assert text is not None
    assert re.fullmatch(r"boot\+\d+\.\d{6}s", text)


def test_readable() -> None:
    assert readable("2025-03-06T03:12:07Z") == "2025-03-06 03:12:07Z"
    assert readable("--08-17T06:18:01") == "--08-17 06:18:01"
    assert readable("boot+1.000000s") == "boot+1.000000s"
