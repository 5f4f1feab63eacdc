"""The trace screen: opening, the views, the flame graph, difference, ranks, captures; and what it says when it cannot."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.assistant.test_trace_other_inputs import NCU
from tests.conftest import ROOT
from tests.trace_files import Job, compute_bound, data_bound
from tests.tui.lab import BUS, DEMOS, app_of, running, screen, until
from tui import commands
from tui.traces.pane import TracesPane
from tui.widgets.flame import WHOLE, Flame
from tui.widgets.grid import Grid

if TYPE_CHECKING:
    from textual.pilot import Pilot

pytestmark = pytest.mark.process

STARVED = str(DEMOS / "data-starved" / "rank0.json.gz")
LATE = str(ROOT / "tests" / "traces" / "late-rank")


def pane(pilot: Pilot[Any]) -> TracesPane:
    found = app_of(pilot).workspace.pane
    assert isinstance(found, TracesPane)
    return found


async def seen(pilot: Pilot[Any], *words: str) -> str:
    """The screen, once all of these stand on it."""
    await until(pilot, lambda: all(w in screen(pilot.app) for w in words))
    return screen(pilot.app)


async def test_a_trace_of_the_command_line_is_told_at_once_at_any_size_in_any_language(tmp_path: Path) -> None:
    async with running(tmp_path, "--trace", STARVED, *BUS, size=(80, 24)) as pilot:
        for size in ((80, 24), (120, 40), (200, 60)):
            await pilot.resize_terminal(*size)
            await seen(pilot, "DEGRADED", "computing", "waiting for data", "8 whole iterations", "71.6 %")
            await pilot.press("w")
            shown = await seen(pilot, "whole trace", "28.9 %")
            assert "289.2 ms" in shown
            await pilot.press("w")
        for view in ("flame", "iterations", "overview"):
            pane(pilot).go(view)
            for size in ((40, 10), (200, 60), (1, 1), (60, 15), (120, 40)):
                await pilot.resize_terminal(*size)
        await seen(pilot, "Where the time went", "waiting for data")
        commands.run(app_of(pilot), "lang zh")
        shown = await seen(pilot, "时间去向", "概览", "等待数据")
        assert "Where the time went" not in shown
        assert pane(pilot).question() == "是计算受限吗？"
        pane(pilot).go("flame")
        await seen(pilot, "算子")


async def test_one_trace_in_all_its_views(tmp_path: Path) -> None:
    async with running(tmp_path, "--trace", STARVED, *BUS, size=(200, 60)) as pilot:
        await views_follow_each_other_and_are_exported(pilot, tmp_path)
        await the_flame_graph_zooms_by_key_and_by_click_and_searches(pilot)
        await a_row_is_explained_from_the_trace_and_the_talk_goes_on_about_it(pilot)
        pane(pilot).go("kernels")
        await seen(pilot, "mean", "gemm")
        await pilot.press("ctrl+q")
    async with running(tmp_path, *BUS, "--screen", "traces") as pilot:  # what was open is open again
        await seen(pilot, "mean", "gemm")
        await until(pilot, lambda: has_keys(pilot))  # the kernels are drawn a moment before they have the keys
        await pilot.press("o")
        await seen(pilot, "data-starved/rank0.json.gz", "DEGRADED")


def has_keys(pilot: Pilot[Any]) -> bool:
    """Whether keys go to the trace screen."""
    return pilot.app.focused is not None and pane(pilot) in pilot.app.focused.ancestors_with_self


async def views_follow_each_other_and_are_exported(pilot: Pilot[Any], folder: Path) -> None:
    await seen(pilot, "DEGRADED")
    await pilot.press("v")
    shown = await seen(pilot, "Iterations differ", "median 48")
    assert "░" in shown
    await pilot.press("v")
    await seen(pilot, "std dev", "gemm")
    await pilot.press("v")
    await seen(pilot, "host own", "aten::")
    await pilot.press("v")
    await seen(pilot, "GPU time", "kernel")
    await pilot.press("V", "V")
    await seen(pilot, "std dev")
    target = folder / "kernels.md"
    await until(pilot, lambda: bool(pane(pilot).query(Grid)) and bool(pane(pilot).query_one(Grid).rows))
    commands.run(app_of(pilot), f"export {target}")
    await until(pilot, target.exists)
    assert "gemm" in target.read_text()
    pane(pilot).go("iterations")
    await seen(pilot, "Iterations differ")
    await pilot.press("d")  # two steps are compared
    shown = await seen(pilot, "SLOWER", "difference")
    assert "data loader" in shown


async def the_flame_graph_zooms_by_key_and_by_click_and_searches(pilot: Pilot[Any]) -> None:
    pane(pilot).go("flame")
    await until(pilot, lambda: bool(pane(pilot).query(Flame)) and pane(pilot).query_one(Flame).icicle is not None)
    flame = pane(pilot).query_one(Flame)
    assert flame.has_focus
    tree = flame.icicle
    assert tree is not None
    first = flame.cursor
    await pilot.press("j", "j", "enter")
    await pilot.pause()
    inner = flame.focus_at
    assert inner == flame.cursor
    assert tree.frames[inner].depth == 2
    assert all(box.width == flame.rows[0][0].width for row in flame.rows[:3] for box in row)
    await pilot.press("backspace")
    await pilot.pause()
    assert flame.focus_at == WHOLE
    await pilot.press("slash", *"gemm", "enter")
    shown = await seen(pilot, "/gemm:")
    assert "found" in shown
    count, time = flame.found
    assert count
    assert 0 < time <= tree.total
    await pilot.press("n")
    assert "gemm" in tree.frames[flame.cursor].name
    await pilot.press("escape")
    await pilot.pause()
    assert not flame.words
    assert app_of(pilot).workspace.name_shown == "traces"
    await pilot.press("g")
    assert first in {box.frame for row in flame.rows for box in row}
    box = flame.rows[3][0]
    await pilot.click(Flame, offset=(box.x, 3))
    await pilot.pause()
    assert flame.focus_at == box.frame
    top = flame.rows[0][0].frame
    await pilot.click(Flame, offset=(5, 0))  # on a caller: back
    await pilot.pause()
    assert flame.focus_at == top


async def a_row_is_explained_from_the_trace_and_the_talk_goes_on_about_it(pilot: Pilot[Any]) -> None:
    pane(pilot).go("overview")
    await seen(pilot, "DEGRADED", "Where the time went")
    await until(pilot, lambda: has_keys(pilot))
    await pilot.press("j", "j", "j", "e")
    await seen(pilot, "is the data loader the problem?", "Rank 0: Data-bound")
    talk = app_of(pilot).desk.talk
    await until(pilot, lambda: not talk.busy)
    talk.say("why?", about=app_of(pilot).desk.picture)  # as a sentence that is typed
    await seen(pilot, "understood: why", "DEGRADED")
    pane(pilot).go("iterations")
    await seen(pilot, "Iterations differ")
    assert pane(pilot).question() == "why is step 6 slow?"
    for view, kind in (("kernels", "kernel sm90_xmma_gemm"), ("operators", "operator aten::mm")):
        pane(pilot).go(view)
        asked = f"how much time does {kind}"
        await until(pilot, lambda asked=asked: pane(pilot).question().startswith(asked))  # type: ignore[misc]
        pane(pilot).explain()
        each = "382 us" if view == "kernels" else "766 us"
        await until(pilot, lambda each=each: not talk.busy and each in screen(pilot.app))  # type: ignore[misc]
    assert "Nothing is known here" not in screen(pilot.app)


async def test_ranks_are_compared_and_chosen(tmp_path: Path) -> None:
    async with running(tmp_path, "--trace", LATE, *BUS, size=(200, 60)) as pilot:
        await until(pilot, lambda: "ranks" in pane(pilot).opened.views and bool(pane(pilot).reading.answers))
        pane(pilot).go("ranks")
        await seen(pilot, "makes wait", "Collectives")
        grid = pane(pilot).grid
        assert grid is not None
        late = next(r for r in grid.rows if "▲" in r.cells[0][0])
        grid.select(late.key)
        await pilot.press("enter")
        await until(pilot, lambda: pane(pilot).opened.file == late.key.partition(" ")[2])


async def test_what_the_device_alone_tells_is_no_zero(tmp_path: Path) -> None:
    job = Job()
    with job.step(1):
        job.op("aten::mm", dims=[[8, 8], [8, 8]])
    async with running(tmp_path, "--trace", job.save(tmp_path / "host.json"), *BUS, size=(200, 60)) as pilot:
        await seen(pilot, "no GPU activity")
        pane(pilot).go("operators")
        shown = await seen(pilot, "aten::mm", "host own")
        row = next(line for line in shown.splitlines() if "aten::mm" in line and "–" in line)
        assert row.count("–") >= 4
        pane(pilot).go("flame")
        await seen(pilot, "host time", "no GPU time")
        pane(pilot).go("kernels")
        await seen(pilot, "ProfilerActivity.CUDA")


async def test_what_cannot_be_read_is_said_in_the_readers_words(tmp_path: Path) -> None:
    bad = tmp_path / "notes.json"
    bad.write_text('{"traceEvents": [')
    async with running(tmp_path, "--trace", str(bad), *BUS) as pilot:
        await seen(pilot, "✖")
        commands.run(app_of(pilot), f"trace {tmp_path}/none.json")
        await seen(pilot, "none.json")


async def test_stacks_and_reports_of_others_are_shown_and_two_files_compared(tmp_path: Path) -> None:
    stacks, report = tmp_path / "stacks.txt", tmp_path / "report.csv"
    stacks.write_text("main;train;step 7\nmain;load 3\n")
    report.write_text(NCU)
    fast, slow = (compute_bound(3).save(tmp_path / "fast.json"), data_bound(0.6).save(tmp_path / "slow.json"))
    async with running(tmp_path, *BUS, "--screen", "traces") as pilot:
        commands.run(app_of(pilot), f"diff {fast} {slow}")
        await seen(pilot, "fast", "difference", "idle")
        grids = pane(pilot).query(Grid)
        await until(pilot, lambda: any("faster calls" in row.cells for grid in grids for row in grid.rows))
        commands.run(app_of(pilot), f"trace {stacks}")
        await seen(pilot, "train", "10 samples")
        commands.run(app_of(pilot), f"trace {report}")
        await seen(pilot, "Latency-bound", "softmax")
        assert pane(pilot).question() == "which kernel is the worst?"


async def test_reading_is_given_up_and_the_app_ends_while_a_trace_is_read_and_leaves_no_process(tmp_path: Path) -> None:
    pipe = tmp_path / "never.json"
    os.mkfifo(pipe)
    async with running(tmp_path, "--trace", str(pipe), *BUS) as pilot:
        await seen(pilot, "Esc stops")
        await pilot.press("escape")
        await seen(pilot, "stopped")
        assert app_of(pilot).workspace.name_shown == "traces"
        await until(pilot, lambda: not readers(pipe))
        commands.run(app_of(pilot), f"trace {pipe}")
        await seen(pilot, "Esc stops")
        await until(pilot, lambda: bool(readers(pipe)))
        await pilot.press("ctrl+q")
    assert app_of(pilot).return_code == 0
    assert not readers(pipe)


def readers(path: Path) -> list[str]:
    """Processes that have been told to read `path`."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and entry.name != str(os.getpid()):
            try:
                words = (entry / "cmdline").read_bytes().split(b"\0")
            except OSError:
                continue
            if str(path).encode() in words:
                found.append(entry.name)
    return found
