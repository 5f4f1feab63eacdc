"""From one time of the day to another, in the words that people use; numbers of other things are no times."""

from __future__ import annotations

from assistant.intent.window import Window, window_of
from tests.cases import each


@each(
    ("said", "window"),
    [
        ("what happened between 03:00 and 04:00?", Window(180, 60)),
        ("what happened from 03:00 to 04:00", Window(180, 60)),
        ("between 3 and 4am", Window(180, 60)),
        ("三点到四点之间发生了什么", Window(180, 60)),
        ("下午两点到三点半", Window(840, 90)),
        ("between 22:00 and 02:00", Window(1320, 240)),
        ("from 4 to 8 GPUs it got slow", None),
        ("between 2 and 4 GPUs fail", None),
        ("from step 100 to step 200", None),
    ],
)
def test_a_span_is_the_time_between(said: str, window: Window | None) -> None:
    assert window_of(said, "") == window


def test_a_span_is_counted_back_from_the_last_line() -> None:
    hour = 3600 * 10**9
    window = window_of("in the last hour", "1h")
    assert window is not None
    assert [window.has(at, 9 * hour) for at in (7 * hour, 8 * hour, 9 * hour)] == [False, True, True]
