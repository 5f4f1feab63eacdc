"""What was known at a place in a plot."""

from __future__ import annotations

from assistant.live.frames import Frame, Gpu
from assistant.live.then import seen_then
from assistant.live.track import Track
from assistant.session.state import Seen
from knowledge.observation import Clock, Observation, gpu

PCI = "0000:1a:00.0"
SECOND = 10**9


def _frame(at: int, power: float) -> Frame:
    return Frame(at * SECOND, "h", (Gpu(PCI, 0, values={"power": power}, at=at * SECOND),))


def test_the_readings_of_then_and_what_had_happened() -> None:
    track = Track.of(_frame(at, 100.0 + at) for at in range(10, 60))
    late = Observation("gpu.power.limit", gpu(PCI, "h"), 700, at=50 * SECOND, clock=Clock.REALTIME)
    early = Observation("gpu.power.limit.default", gpu(PCI, "h"), 700, at=5 * SECOND, clock=Clock.REALTIME)
    seen = Seen("h", (early, late), as_of=55 * SECOND)
    found = seen_then(seen, track, _frame(59, 0.0), 30 * SECOND)
    assert found is not None
    assert found.as_of == 30 * SECOND
    told = {o.fact: o.value for o in found.observations}
    assert told["gpu.power.draw"] == 130.0
    assert "gpu.power.limit.default" in told
    assert told.get("gpu.power.limit") is None


def test_newer_than_the_last_look_the_readings_count_too() -> None:
    track = Track.of(_frame(at, 100.0 + at) for at in range(10, 60))
    found = seen_then(Seen("h", (), as_of=20 * SECOND), track, _frame(59, 0.0), 59 * SECOND)
    assert found is not None
    assert {o.fact: o.value for o in found.observations}["gpu.power.draw"] == 159.0


def test_before_the_first_reading_there_is_nothing() -> None:
    track = Track.of([_frame(10, 1.0)])
    assert seen_then(Seen("h", ()), track, _frame(10, 1.0), 5 * SECOND) is None
