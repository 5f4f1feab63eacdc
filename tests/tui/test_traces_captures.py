"""Captures in the trace screen: listed, opened, told with what could not be captured."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.assistant.capture import documents
from tests.tui.lab import BUS, app_of, running, screen, understood, until
from tui.traces.pane import TracesPane
from tui.widgets.bars import Bars

pytestmark = pytest.mark.process


@pytest.fixture
def kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A data folder with one capture."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    return documents.written(tmp_path / "data" / "gpudiag" / "captures" / "20260102T030405-4242", documents.two_ranks())


async def test_a_capture_is_listed_and_opened_and_each_line_explained_from_it(tmp_path: Path, kept: Path) -> None:
    async with running(tmp_path, *BUS, "--screen", "traces", size=(200, 60)) as pilot:
        pane = app_of(pilot).workspace.pane
        assert isinstance(pane, TracesPane)
        await until(pilot, lambda: kept.name in screen(pilot.app))
        assert understood(pane.question())
        await pilot.press("enter")
        await until(
            pilot, lambda: "waiting for the data loader" in screen(pilot.app) or "collectives" in screen(pilot.app)
        )
        shown = screen(pilot.app)
        assert "rank 1 (pid 4243)" in shown
        assert "? torch: consent was not given · --yes agrees to it" in shown
        assert "one thread of kineto stays" in shown
        await until(pilot, lambda: "Found" in screen(pilot.app))
        assert pane.opened.inputs == (f"{kept}/capture.json",)
        bars = pane.query_one("Capture Bars", Bars)
        questions = set()
        for line in bars.lines:
            if line.key:
                bars.point(line.key)
                questions.add(pane.question())
        assert len(questions) > 2
        assert all(understood(q) for q in questions)
        await pilot.press("G", "e")
        await until(pilot, lambda: not app_of(pilot).desk.talk.busy)
        await until(pilot, lambda: "4243" in screen(pilot.app))


async def test_without_captures_and_traces_it_says_what_opens_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "nothing"))
    async with running(tmp_path, *BUS, "--screen", "traces") as pilot:
        await until(pilot, lambda: ":trace FILE opens one" in screen(pilot.app))
