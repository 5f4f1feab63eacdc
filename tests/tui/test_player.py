"""The player: a recording moment by moment, and what was known then."""

from __future__ import annotations

from pathlib import Path

import pytest
from textual.pilot import Pilot
from textual.widget import Widget

from tests.tui.lab import app_of, running, screen, until
from tests.tui.live_lab import END, SECOND, recording
from tui.player import SPEEDS, Player
from tui.screens.live import LivePane
from tui.widgets.replay import ReplayBar


@pytest.mark.slow
async def test_the_recording_is_played_and_the_verdict_goes_with_it(tmp_path: Path) -> None:
    path = recording(tmp_path, every=5)
    async with running(tmp_path, "--bundle", path, "--screen", "live") as pilot:
        app = app_of(pilot)
        player = await read(pilot)
        assert player.moment == player.timeline.end
        player.seek(END - 300 * SECOND + 30 * SECOND)  # GPU 2 is too hot
        await until(pilot, lambda: app.desk.picture.moment == player.moment)
        hot = app.desk.feed.frame
        assert hot is not None
        assert hot.gpus[2].reasons
        diagnosis = app.desk.picture.diagnosis
        assert diagnosis is not None
        player.seek(END - 590 * SECOND)
        await until(pilot, lambda: app.desk.picture.moment == player.moment)
        assert not any("0000:4c" in f.subject.id for f in app.desk.picture.diagnosis.findings)  # type: ignore[union-attr]
        await pilot.press("right_square_bracket")
        assert player.moment == END - 580 * SECOND
        await pilot.press("greater_than_sign")
        assert player.moment > END - 580 * SECOND
        await pilot.press("plus", "plus", "space")
        assert player.playing
        assert player.speed == 5
        moment = player.moment
        player.advance(2.0)
        assert player.moment == moment + 10 * SECOND
        await pilot.press("space")
        assert not player.playing


async def read(pilot: Pilot[int]) -> Player:
    """The player, when the recording was read."""
    app = app_of(pilot)
    await until(pilot, lambda: app.desk.player is not None and app.desk.feed.frame is not None)
    assert app.desk.player is not None
    return app.desk.player


@pytest.mark.slow
async def test_at_the_end_it_stops_and_the_whole_recording_is_back(tmp_path: Path) -> None:
    async with running(tmp_path, "--bundle", recording(tmp_path, 60), "--screen", "findings") as pilot:
        app, player = app_of(pilot), await read(pilot)
        whole = app.desk.picture
        player.play()
        assert player.moment == player.timeline.begin
        await until(pilot, lambda: app.desk.picture.moment is not None)
        while player.speed < SPEEDS[-1]:
            player.faster(1)
        player.advance(10.0)
        assert not player.playing
        assert player.moment == player.timeline.end
        await until(pilot, lambda: app.desk.picture.moment is None)
        assert app.desk.picture.diagnosis is whole.diagnosis


@pytest.mark.slow
async def test_its_line_is_there_only_with_it_and_a_click_goes_to_the_time(tmp_path: Path) -> None:
    async with running(
        tmp_path, "--bundle", recording(tmp_path, 600, every=5), "--screen", "live", size=(80, 24)
    ) as pilot:
        app, player = app_of(pilot), await read(pilot)
        bar: Widget = app.workspace.query_one(ReplayBar)
        await until(pilot, lambda: bar.display)
        assert "13:05:44" in screen(app)
        assert await pilot.click(ReplayBar, offset=(30, 0))
        assert player.timeline.begin < player.moment < player.timeline.end
        app.desk.open(app.desk.origin._replace(bundle="", inputs=(__file__,)))
        await until(pilot, lambda: not bar.display)
        assert app.desk.player is not player


@pytest.mark.slow
async def test_in_the_chat_its_keys_are_letters(tmp_path: Path) -> None:
    async with running(tmp_path, "--bundle", recording(tmp_path, 60), "--screen", "live") as pilot:
        app, player = app_of(pilot), await read(pilot)
        await pilot.press("c")
        await pilot.press("a", "space", "left_square_bracket", "plus", "less_than_sign")
        assert not player.playing
        assert player.speed == 1
        assert "a [+<" in screen(app)


@pytest.mark.slow
async def test_a_pane_that_is_hidden_is_not_drawn_and_catches_up(tmp_path: Path) -> None:
    async with running(tmp_path, "--bundle", recording(tmp_path, 60), "--screen", "live") as pilot:
        app, player = app_of(pilot), await read(pilot)
        live = app.workspace.pane
        assert isinstance(live, LivePane)
        await until(pilot, lambda: len(live.gpus.rows) == 8)
        before = live.gpus.rows[0]
        await pilot.press("3")
        player.seek(END - 30 * SECOND)
        await pilot.pause()
        assert live.gpus.rows[0] == before
        await pilot.press("2")
        await until(pilot, lambda: live.gpus.rows[0] != before)
