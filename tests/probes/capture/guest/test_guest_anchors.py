"""Function anchors in real processes of each Python version: exact counts, the loss, and nothing left behind."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest

from probes.capture.model import Item, Outcome, Target, Window
from probes.capture.whom import identity
from tests.live_jobs import Job, python
from tests.probes.capture.guests import capture, checked, descriptors, folders, guest, threads, wait

pytestmark = pytest.mark.process

VERSIONS = [(3, minor) for minor in range(8, 15)]
# anchor, what the loss is at iteration n: its kind only, n is not known
ANCHORS = ["loop:step", "__main__:decorated", "loop:closed", "loop:Trainer.run", "loop:Trainer.built", "loop:trainer", "loop:recursive",
           "loop:failing", "loop:partial"]  # fmt: skip


@pytest.mark.machine
@pytest.mark.parametrize("version", VERSIONS, ids=[f"{a}.{b}" for a, b in VERSIONS])
def test_anchors_count_exactly_and_come_off(version: tuple[int, int], tmp_path: Path) -> None:
    with Job("loop.py", interpreter=python(*version)) as job:
        before = descriptors(job)
        target = Target(identity.read(job.pid))
        for anchor in ANCHORS:
            got = capture(job, [Item.LOSS], Window(iterations=5, skip=3, anchor=anchor), tmp_path, target=target)
            assert got.state.phase == "done", (anchor, got.state)
            assert got.iterations is not None
            ends, began, ended = got.iterations["ends"], got.iterations["began"], got.iterations["ended"]
            assert began in ends, anchor
            assert ended in ends, anchor
            assert sum(began < e <= ended for e in ends) == 5, anchor
            assert ends.index(began) >= 3, anchor
            assert got.parts[Item.LOSS].outcome is Outcome.OK, anchor
            assert sorted(ends) == ends
        assert checked(job) == "left []"
        job.advance(5)
        assert descriptors(job) == before
        assert not [t for t in threads(job) if "gpudiag" in t]
        assert not folders(job)


def _losses(job: Job, anchor: str, folder: Path, loss: str = "loss") -> list[float | None]:
    got = capture(job, [Item.LOSS], Window(iterations=4, anchor=anchor), folder, loss=loss)
    assert got.iterations is not None, got.state
    found = got.iterations["loss"]
    assert isinstance(found, list)
    return found


def test_the_loss_is_a_local_or_what_was_returned(tmp_path: Path) -> None:
    with Job("loop.py", interpreter=python(3, 12)) as job:
        found = _losses(job, "loop:step", tmp_path)
        assert all(n is not None and 0 < n < 1 for n in found)
        assert all(n is not None for n in _losses(job, "loop:decorated", tmp_path))
        numbers = _losses(job, "loop:step", tmp_path, "number")
        assert all(n is not None and n > 1 for n in numbers)
        differences = {b - a for a, b in pairwise(numbers) if a is not None and b is not None}
        assert differences == {1.0}


def test_a_generator_counts_what_it_yields(tmp_path: Path) -> None:
    with Job("loop.py", interpreter=python(3, 12)) as job:
        got = capture(job, [Item.LOSS], Window(iterations=5, anchor="loop:batches"), tmp_path)
        assert got.state.phase == "done", got.state
        assert checked(job) == "left []"


@pytest.mark.parametrize(
    ("anchor", "code", "version"),
    [
        ("loop:nothing", "anchor-unknown", (3, 12)),
        ("nowhere:step", "anchor-unknown", (3, 12)),
        ("step", "anchor-unknown", (3, 12)),
        ("time:sleep", "anchor-native", (3, 12)),
        ("loop:batches", "anchor-generator", (3, 9)),
    ],
)
def test_anchors_that_cannot_be(anchor: str, code: str, version: tuple[int, int], tmp_path: Path) -> None:
    with Job("loop.py", interpreter=python(*version)) as job:
        got = capture(job, [Item.LOSS], Window(iterations=5, anchor=anchor), tmp_path)
        assert (got.state.phase, got.state.code) == ("failed", code)
        assert got.parts[Item.LOSS].outcome is Outcome.REFUSED
        assert got.parts[Item.LOSS].why.en
        assert got.parts[Item.LOSS].why.zh
        assert checked(job) == "left []"


def test_numbers_of_monitoring_that_others_have(tmp_path: Path) -> None:
    with Job("loop.py", interpreter=python(3, 12)) as job:
        job.execute("sys.monitoring.use_tool_id(3, 'a'), sys.monitoring.use_tool_id(4, 'b')")
        job.advance(3)
        got = capture(job, [Item.LOSS], Window(iterations=5, anchor="loop:step"), tmp_path)
        assert got.state.code == "monitoring-in-use"
        assert checked(job) == "left ['tool 3', 'tool 4']"


def test_an_anchor_that_never_comes_is_told_and_taken_off(tmp_path: Path) -> None:
    with Job("loop.py", interpreter=python(3, 11)) as job:
        got = capture(job, [Item.LOSS], Window(iterations=5, anchor="loop:main"), tmp_path, patience=1.0)
        assert got.state.code == "no-anchor"
        assert got.parts[Item.LOSS].outcome is Outcome.FAILED
        assert checked(job) == "left []"


def test_operators_need_torch(tmp_path: Path) -> None:
    with Job("loop.py", interpreter=python(3, 12)) as job:
        got = capture(job, [Item.TORCH, Item.MEMORY], Window(duration_ns=100_000_000), tmp_path)
        assert got.state.code == "no-torch"
        assert got.parts[Item.TORCH].outcome is Outcome.REFUSED
        assert checked(job) == "left []"


def test_two_at_once_are_refused(tmp_path: Path) -> None:
    with Job("loop.py", interpreter=python(3, 11)) as job:
        first = guest(job, [Item.LOSS], Window(duration_ns=60_000_000_000, anchor="loop:step"))
        try:
            wait(first, lambda s: s.phase == "capturing")
            second = capture(job, [Item.LOSS], Window(iterations=2, anchor="loop:step"), tmp_path)
            assert second.state.code == "busy"
            assert first.poll().phase == "capturing"
        finally:
            first.clean()
        job.advance(3)
        assert checked(job) == "left []"
        third = capture(job, [Item.LOSS], Window(iterations=2, anchor="loop:step"), tmp_path)
        assert third.state.phase == "done"


def test_a_withdrawn_call_does_nothing(tmp_path: Path) -> None:
    with Job("loop.py", interpreter=python(3, 10)) as job:
        one = guest(job, [Item.LOSS], Window(iterations=2, anchor="loop:step"))
        one.clean()
        code = one.code
        job.execute(code)
        job.advance(10)
        assert checked(job) == "left []"
        assert "Traceback" not in job.output
        assert not folders(job)
