"""What a wrong clock does to the history: it takes nothing away, and is said."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from assistant.store.clock import agreed
from assistant.store.codec import Cell, Key, Seen
from assistant.store.location import parse
from assistant.store.write import SLICES, Batch, Writer
from knowledge.facts import vocabulary
from knowledge.language import Text
from knowledge.observation import Status
from tests.assistant.store.history_lab import DAY, HOST, MINUTE, T0, reader
from tests.assistant.store.test_history_story import rows_of


def written(url: str, times: list[int]) -> list[str]:
    """What was said while a machine was checked at these times; its replay counter moves each time."""
    location = parse(url)
    assert location is not None
    said = []
    key = Key("gpu.pcie.replay", "gpu:n1/0000:3b:00.0", "nvml")
    with closing(Writer(location, 30, vocabulary())) as writer:
        for number, at in enumerate(times):
            cell = Seen(Cell(str(Status.OK), number), at, "call")
            writer.write(Batch(HOST, at, "watch", "b", "r", "ok", "yes", Text("fine"), 0, {}, {key: cell}, [], []))
            said.append("; ".join(text.en for text in writer.complaints))
            writer.complaints.clear()
    return said


def test_a_jump_and_back_loses_no_run(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/h.db"
    before = [T0 + n * 10 * MINUTE for n in range(SLICES // 2)]
    jumped = [before[-1] + 480 * DAY + n * 10 * MINUTE for n in range(1, SLICES + 3)]
    after = [before[-1] + n * 10 * MINUTE for n in range(SLICES + 3, SLICES + 9)]
    said = written(url, [*before, *jumped, *after])
    assert [i for i, text in enumerate(said) if text] == [len(before), len(before) + len(jumped)]
    assert "480 days ahead" in said[len(before)]
    assert "480 days behind" in said[len(before) + len(jumped)]
    location = parse(url)
    assert location is not None
    with closing(Writer(location, 30, vocabulary())) as writer:
        writer.prune()  # asked for, on this machine's clock
    with reader(url) as r:
        assert {run.as_of for run in r.runs(HOST, limit=10_000)} == {*before, *jumped, *after}
    assert rows_of(url, "observation") >= len({*before, *jumped, *after})  # each value of the counter


@given(st.lists(st.integers(0, 400), min_size=1, max_size=30), st.integers(1, 60))
@settings(max_examples=50)
def test_what_is_agreed_on(days: list[int], keep: int) -> None:
    """It is one of the times, no other lies beyond it without a gap, and a time that is far ahead of all changes nothing."""
    times = [T0 + d * DAY for d in days]
    now = agreed(times, keep)
    assert now in times
    beyond = [t for t in times if t > now]
    assert not beyond or min(beyond) - now > keep * DAY
    assert agreed([*times, max(times) + (keep + 1) * DAY], keep) == now
