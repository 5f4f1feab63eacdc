"""The live screen, over a recording with readings for ten minutes."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assistant.live import questions
from assistant.live.frames import Frame
from tests.tui.lab import BUS, DEMOS, app_of, running, screen, understood, until
from tests.tui.live_lab import END, SECOND, SLOTS, frames, in_trouble, lost, recording
from tui.app import GpudiagApp
from tui.feed import FrameCame
from tui.screens._live_layout import shared
from tui.screens.live import LivePane


def pane_of(app: GpudiagApp) -> LivePane:
    """The live screen."""
    pane = app.workspace.pane
    assert isinstance(pane, LivePane)
    return pane


@pytest.mark.slow
async def test_gpus_plots_and_processes_at_every_size_and_after_a_storm_of_them(tmp_path: Path) -> None:
    path = recording(tmp_path, 120, every=4)
    async with running(tmp_path, "--bundle", path, "--screen", "live", size=(80, 24)) as pilot:
        app = app_of(pilot)
        await until(pilot, lambda: app.desk.player is not None and len(pane_of(app).gpus.rows) == 8)
        pane = pane_of(app)
        for size in ((80, 24), (120, 40), (200, 60)):
            await pilot.resize_terminal(*size)
            await pilot.pause()
            shown = screen(app)
            assert "61." in shown
            assert "/700 W" in shown
            assert "Power" in shown
            assert "train.py" in shown
            assert max(len(line) for line in shown.splitlines()) <= size[0]
            assert all(p.x + p.cells <= pane.plots.size.width for p in pane.plots.places)
        for size in ((20, 5), (300, 90), (41, 9), (80, 24), (7, 3), (110, 16), (200, 60)):
            await pilot.resize_terminal(*size)
            app.desk.player.step(-1)  # type: ignore[union-attr]
            await pilot.pause()
            lines = screen(app).split("\n")
            assert len(lines) == size[1]
            places = pane.plots.places
            assert all(p.x + p.cells <= pane.plots.size.width for p in places) or not pane.plots.display
        assert "train.py" in screen(app)


@pytest.mark.slow
async def test_a_driver_that_hangs_leaves_the_last_values_with_their_age(tmp_path: Path) -> None:
    async with running(tmp_path, "--bundle", recording(tmp_path, 60), "--screen", "live") as pilot:
        app = app_of(pilot)
        pane = pane_of(app)
        await until(pilot, lambda: app.desk.player is not None and pane.gpu is not None)
        moment = app.desk.feed.until
        app.post_message(FrameCame(next(frames(end=END + 100 * SECOND))))  # of a stream that was closed meanwhile
        await pilot.pause()
        assert app.desk.feed.until == moment
        last = app.desk.feed.frame
        assert last is not None
        await show(pilot, in_trouble(last, 12))
        assert "driver unresponsive: nvmlDeviceGetMemoryInfo of GPU 3" in screen(app)
        assert "returned for 12 s" in screen(app)
        assert "10s" in screen(app)
        assert "/700 W" in screen(app)
        await show(pilot, lost(last, 3))
        assert "lost" in screen(app)
        assert pane.gpus.select(SLOTS[3])
        await pilot.pause()
        assert understood(pane.question())


async def show(pilot: object, frame: Frame) -> None:
    """As if it came from the machine."""
    from textual.pilot import Pilot

    assert isinstance(pilot, Pilot)
    app = app_of(pilot)
    app.desk.feed.frame, app.desk.feed.until = frame, frame.at
    app.workspace.pane.moment_changed(frame, frame.at)  # type: ignore[union-attr]
    await pilot.pause()


@pytest.mark.slow
async def test_everything_under_the_cursor_can_be_explained(tmp_path: Path) -> None:
    async with running(tmp_path, "--bundle", recording(tmp_path, every=5), "--screen", "live", size=(200, 60)) as pilot:
        app = app_of(pilot)
        pane = pane_of(app)
        await until(pilot, lambda: app.desk.player is not None and pane.gpu is not None)
        asked = set()
        for _ in pane.gpus.columns:
            asked.add(pane.question())
            await pilot.press("l")
        pane.plots.focus()
        await pilot.pause()
        for _ in pane.plots.places:
            asked.add(pane.question())
            await pilot.press("h")
            asked.add(pane.question())
            await pilot.press("j")
        pane.processes.focus()
        await pilot.pause()
        for _ in pane.processes.columns:
            asked.add(pane.question())
            await pilot.press("l")
        assert len(asked) > 15
        assert not [q for q in asked if not understood(q)]


@pytest.mark.slow
async def test_a_place_in_a_plot_is_explained_with_what_was_known_then(tmp_path: Path) -> None:
    async with running(tmp_path, "--bundle", recording(tmp_path, every=5), "--screen", "live", size=(200, 60)) as pilot:
        app = app_of(pilot)
        pane = pane_of(app)
        await until(pilot, lambda: app.desk.player is not None and pane.gpu is not None)
        pane.gpus.select(SLOTS[2])
        pane.plots.focus()
        await pilot.pause()
        assert pane.plots.select("temperature")
        await pilot.press("h", *"hhhhh", "H")
        assert (pane.plots.value() or 0) > 87
        await pilot.press("e")
        await until(pilot, lambda: "Do next" in screen(app))
        assert "why is gpu 2 too hot?" in screen(app)
        assert "live.jsonl" in screen(app)  # the evidence: at the end of the recording it has cooled
        await pilot.press("escape")  # takes the cursor away ...
        assert pane.plots.at is None
        assert app.workspace.name_shown == "live"
        await pilot.press("escape")  # ... and only then goes to the other side
        assert app.workspace.name_shown == "chat"


@pytest.mark.slow
async def test_one_metric_of_all_gpus_and_what_is_shown_written_to_a_file(tmp_path: Path) -> None:
    async with running(tmp_path, "--bundle", recording(tmp_path, 60), "--screen", "live", size=(200, 60)) as pilot:
        app = app_of(pilot)
        pane = pane_of(app)
        await until(pilot, lambda: app.desk.player is not None and pane.gpu is not None)
        await pilot.press("v")
        await pilot.pause()
        assert [g.title for g in pane.plots.panels.graphs] == [f"GPU {i}" for i in range(8)]
        scales = {g.scale for g in pane.plots.panels.graphs}
        assert len(scales) == 1
        await pilot.press("m")
        await pilot.pause()
        assert "power" in screen(app).casefold()
        assert pane.kept()["all"] is True
        for suffix in ("md", "json", "html", "txt"):
            app.workspace.export(str(tmp_path / f"live.{suffix}"))
            text = (tmp_path / f"live.{suffix}").read_text(encoding="utf-8")
            assert "GiB" in text
            assert "train.py" in text


async def test_a_recording_of_one_moment_has_bars_and_nothing_to_play(tmp_path: Path) -> None:
    async with running(tmp_path, *BUS, "--screen", "live") as pilot:
        app = app_of(pilot)
        await until(pilot, lambda: app.desk.player is not None and pane_of(app).gpu is not None)
        pane = pane_of(app)
        assert all(g.gauge is not None or g.note for g in pane.plots.panels.graphs)


@given(*(st.integers(least, most) for least, most in ((0, 100), (20, 250), (0, 16), (1, 16), (0, 40), (0, 3))))
def test_the_parts_never_take_more_lines_than_there_are(
    height: int, columns: int, gpus: int, plots: int, processes: int, note: int
) -> None:
    shares = shared(height, columns, gpus, plots, processes, note)
    taken = (
        shares.table + shares.plots + shares.processes + note + (1 if gpus else 0) + (2 if shares.airy and gpus else 0)
    )
    assert taken <= max(height, 3 + note) or height < 8
    if gpus and height >= 24 and note < 2:
        assert shares.plots >= 3
        assert shares.table >= min(gpus + 1, 12)


@pytest.mark.slow
@pytest.mark.parametrize("lang", ["en", "zh"])
def test_every_question_is_understood(lang: str) -> None:
    *_, last = frames(60)
    hot = next(f for f in frames(60) if f.gpus[2].reasons)
    for gpu in (*last.gpus[::3], hot.gpus[2], in_trouble(last, 5).gpus[0], lost(last, 3).gpus[3]):
        said = [questions.of_gpu(gpu, lang), questions.of_reasons(gpu, lang)]
        said += [questions.of_metric(gpu, metric, lang) for metric in (*gpu.values, *gpu.missing)]
        assert not [q for q in set(said) if not understood(q, lang)]
    for column in ("", "memory", "pod", "job", "rank"):
        assert understood(questions.of_process(last.processes[0], column, lang), lang)
    assert understood(questions.of_trouble(lang), lang)


@pytest.mark.slow
@pytest.mark.parametrize("lang", ["en", "zh"])
async def test_mig_instances_have_rows_of_their_own(tmp_path: Path, lang: str) -> None:
    bundle = str(DEMOS / "mig" / "bundle")
    async with running(tmp_path, "--bundle", bundle, "--screen", "live", size=(200, 60), lang=lang) as pilot:
        app = app_of(pilot)
        pane = pane_of(app)
        await until(pilot, lambda: len(pane.gpus.rows) == 10)
        assert [r.key.partition("/")[2] for r in pane.gpus.rows[:4]] == ["", "1", "9", ""]
        shown = screen(app)
        assert "0/1" in shown
        assert "20.0/40 GiB" in shown
        assert "3g.40gb" in shown
        pane.gpus.focus()
        pane.show_target("0/9")
        await pilot.pause()
        assert pane.gpu is not None
        assert pane.gpu.index == 0, "its plots are those of its GPU"
        assert "MIG-5e1f0000-1111-2222-3333-000002000000" in screen(app)
        assert "MIG-5e1f0000-1111-2222-3333-000002000000" in pane.copied()
        await pilot.press("o")
        assert not pane.processes.rows, "nothing runs on that instance"
        await pilot.press("k")
        assert [r.key for r in pane.processes.rows] == ["4200"]
        asked = set()
        for _ in pane.gpus.columns:
            asked.add(pane.question())
            await pilot.press("l")
        assert len(asked) >= 2  # memory and profile; the UUID where there is room for its column
        assert all(understood(q, lang) for q in asked), asked
        pane.moment_changed(app.desk.feed.frame, 0)
        await pilot.pause()
        assert pane.gpus.row is not None
        assert pane.gpus.row.key.endswith("/1"), "the cursor stays on the instance"
        pane.gpus.sort_by("gpu", True)
        assert [r.key.partition("/")[2] for r in pane.gpus.shown[-4:]] == ["", "9", "1", ""]
