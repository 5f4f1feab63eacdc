"""What was known when."""

from __future__ import annotations

from functools import cache

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assistant import machine
from assistant.commands.demo import FOLDER
from assistant.live.frames import LOST, SECOND, SILENT, Frame, Gpu
from assistant.live.timeline import STALE, Mark, Timeline
from assistant.session.state import Seen
from knowledge.observation import Clock, Event, Observation, Status, gpu, node
from tests import live_story
from tests.assistant.live.live_lab import ADDRESSES, runs


@cache
def recorded(demo: str) -> Seen:
    """What a demo's bundle tells."""
    _, look = machine.bundle(str(FOLDER / demo / "bundle"))
    return Seen(look.host, tuple(look.observations), as_of=look.as_of, whole=look.whole)


@cache
def story(lang: str = "en") -> Timeline:
    """The GPU that overheats."""
    return Timeline.of(recorded("overheating"), live_story.frames(5), lang)


def test_marks_are_what_happened_in_order() -> None:
    line = Timeline.of(recorded("off-the-bus"))
    assert [m.severity for m in line.marks] == ["error", "critical", "info", "critical", "critical", "warning"]
    xid = line.marks[1]
    assert xid.text == "XID 79 on gpu 0000:ba:00.0: GPU has fallen off the bus."
    assert xid.gpu == "0000:ba:00.0"
    assert xid.line is not None
    assert isinstance(xid.line.value, Event)
    assert not line.still
    assert line.begin < line.marks[0].at < line.end == recorded("off-the-bus").as_of


def test_readings_make_marks_too_in_either_language() -> None:
    assert [m.text for m in story().marks] == [
        "GPU 1 slows down: SW Thermal Slowdown", "GPU 1 slows down: HW Thermal Slowdown",
    ]  # fmt: skip
    assert story("zh").marks[0].text == "GPU 1 降频：SW Thermal Slowdown"
    assert {m.gpu for m in story().marks} == {"0000:3b:00.0"}


def test_a_recording_of_one_moment_is_still() -> None:
    line = Timeline.of(recorded("overheating"))
    assert line.still
    assert line.marks == ()
    assert line.at(line.end) is line.seen
    frame = line.frame(line.end)
    assert frame is not None
    assert len(frame.gpus) == 8
    empty = Timeline.of(Seen("", ()))
    assert (empty.still, empty.begin, empty.frames, empty.frame(5), empty.next(0)) == (True, 0, (), None, None)


def test_timed_readings_of_a_file_are_its_end() -> None:
    """A scrape with times, of which nobody says when it was looked at."""
    busy = [
        Observation("gpu.utilization.core", gpu("0000:3b:00.0", "n1"), 90 + i, at=i * SECOND, clock=Clock.REALTIME)
        for i in (1, 2)
    ]
    line = Timeline.of(Seen("n1", tuple(busy)))
    frame = line.frame(line.end)
    assert frame is not None
    assert frame.gpus[0].value("utilization") == 92


def test_states_belong_to_the_end_unless_a_frame_tells_them() -> None:
    line = story()
    middle = line.at(line.begin + 60 * SECOND)
    facts = {o.fact for o in middle.observations}
    assert "gpu.row_remap.pending" not in facts
    assert "gpu.row_remap.pending" in {o.fact for o in line.at(line.end).observations}
    heat = [o.value for o in middle.observations if o.fact == "gpu.temperature.core" and o.subject.id == "0000:3b:00.0"]
    assert heat != [91]
    assert len(heat) == 1
    assert middle.as_of == line.begin + 60 * SECOND
    # a quiet log alone is no healthy machine
    before = line.at(line.begin - SECOND)
    asked = [o for o in before.observations if o.fact == "node.driver.state"]
    assert [o.status for o in asked] == [Status.NOT_ASKED]


@pytest.mark.slow
@given(st.integers(-20, 320))
def test_nothing_is_known_ahead_of_its_time(seconds: int) -> None:
    for line in (story(), Timeline.of(recorded("off-the-bus"))):
        moment = line.begin + seconds * SECOND
        known = line.at(moment)
        if moment < line.end:
            assert all(o.at is None or o.at <= moment for o in known.observations if not _lasting(o))
            assert all(o.window is None or o.window[1] <= moment for o in known.observations if not _lasting(o))
        else:
            assert known is line.seen


def _lasting(o: Observation) -> bool:
    return o.fact.startswith(("gpu.pci", "gpu.uuid", "gpu.index", "gpu.minor", "gpu.name", "gpu.arch", "gpu.brand", "gpu.serial",
                              "node.boot_id", "node.driver.version", "log."))  # fmt: skip


@pytest.mark.slow
@given(st.integers(-20, 1000), st.integers(0, 100))
def test_what_happened_stays_happened(seconds: int, later: int) -> None:
    line = Timeline.of(recorded("off-the-bus"))
    moment = line.begin + seconds * SECOND
    assert _events(line.at(moment)) <= _events(line.at(moment + later * SECOND))


def _events(seen: Seen) -> set[tuple[str, int | None, str]]:
    return {(o.fact, o.at, o.excerpt) for o in seen.observations if isinstance(o.value, Event)}


@given(st.integers(-20, 1000))
def test_next_and_previous_lie_on_either_side(seconds: int) -> None:
    line = Timeline.of(recorded("off-the-bus"))
    moment = line.begin + seconds * SECOND
    after, before = line.next(moment), line.previous(moment)
    assert after is None or after.at > moment
    assert before is None or before.at < moment
    assert line.passed(moment) == tuple(m for m in line.marks if m.at <= moment)
    if after is not None and before is not None:
        between = line.marks[line.marks.index(before) + 1 : line.marks.index(after)]
        assert all(m.at == moment for m in between)


@given(runs(), st.integers(0, 10**6))
def test_the_same_stage_is_the_same_state(frames: list[Frame], moment: int) -> None:
    line = Timeline.of(Seen("n1", (), as_of=2 * 10**6 * SECOND), frames)
    at = moment * SECOND
    frame = line.frame(at)
    assert frame == next((f for f in reversed(frames) if f.at <= at), None if frames else frame)
    if frame is not None and at - frame.at <= STALE and at < line.end:
        assert line.stage(at) == line.stage(frame.at)


def test_a_gpu_that_goes_and_errors_that_come() -> None:
    pci = ADDRESSES[0]

    def moment(second: int, state: str = "", errors: float = 0.0, reasons: tuple[str, ...] = ()) -> Frame:
        return Frame(
            second * SECOND, "n1", (Gpu(pci, 0, values={"ecc_uncorrected": errors}, reasons=reasons, state=state),)
        )

    brake = ("hw_slowdown", "hw_power_brake_slowdown")
    frames = [moment(1), moment(2, SILENT), moment(3, SILENT), moment(4, errors=2.0), moment(5, LOST), moment(6, reasons=brake),
              moment(7, reasons=("sw_power_cap",))]  # fmt: skip
    marks = Timeline.of(Seen("n1", ()), frames).marks
    assert [(m.at // SECOND, m.text, m.severity) for m in marks] == [
        (2, "GPU 0 does not answer", "error"),
        (4, "GPU 0: 2 uncorrected ECC errors more", "error"),
        (5, "GPU 0 is lost", "critical"),
        (6, "GPU 0 slows down: HW Power Brake Slowdown", "warning"),
    ]


@pytest.mark.parametrize("clock", [Clock.BOOT, Clock.LOCAL, Clock.NONE])
def test_an_event_on_another_clock_has_no_place_before_the_end(clock: Clock) -> None:
    event = Observation("xid", gpu(ADDRESSES[0], "n1"), Event(79), at=5, clock=clock)
    line = Timeline.of(Seen("n1", (event,), as_of=100), [Frame(50, "n1")])
    assert line.marks == ()
    assert event not in line.at(60).observations
    assert event in line.at(100).observations


def test_a_burst_of_the_same_is_one_mark() -> None:
    burst = [
        Observation("xid", gpu(ADDRESSES[0], "n1"), Event(13), at=n * SECOND // 10, clock=Clock.REALTIME)
        for n in range(1, 40)
    ]
    other = Observation("oom_kill", node("n1"), Event(None, {"process": "python3"}), at=SECOND, clock=Clock.REALTIME)
    marks: tuple[Mark, ...] = Timeline.of(Seen("n1", (*burst, other))).marks
    assert [(m.at, m.severity) for m in marks] == [(SECOND // 10, "error"), (SECOND, "error")]
