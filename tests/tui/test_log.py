"""The log: lines, what they mean, how one walks through them."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from tests.tui.lab import BUS, DBE, app_of, arguments, running, screen, understood, until
from tui.screens.log import LogPane

XID = "NVRM: Xid (PCI:0000:3b:00): 79, pid=4242, name=python, GPU has fallen off the bus."


def pane_of(pilot: Any) -> LogPane:
    return app_of(pilot).workspace.query_one(LogPane)


async def ready(pilot: Any) -> LogPane:
    await until(pilot, lambda: bool(app_of(pilot).workspace.query(LogPane)) and pane_of(pilot)._done)
    return pane_of(pilot)


@pytest.mark.slow
async def test_the_line_that_tells_of_trouble_is_in_view_with_its_meaning(tmp_path: Path) -> None:
    async with running(tmp_path, *BUS, "--screen", "log", size=(80, 24)) as pilot:
        pane = await ready(pilot)
        assert pane.lines.row is not None
        assert pane.lines.row.data.decoded.topic == "rule pcie-aer-fatal"  # the first line that is grave
        for size in ((80, 24), (120, 40), (200, 60)):
            await pilot.resize_terminal(*size)
            await until(pilot, lambda: "PCIe error:" in screen(pilot.app))
        while pane.lines.row is not None and pane.lines.row.data.decoded.topic != "xid 79":
            await pilot.press("n")
        for size in ((200, 60), (120, 40), (80, 24)):
            await pilot.resize_terminal(*size)
            await until(pilot, lambda: "XID 79:" in screen(pilot.app))
            shown = screen(pilot.app)
            assert "XID 79" in shown
            assert "2026-08-19" in shown  # the whole time, of the line under the cursor
            assert understood(pane.question())


@pytest.mark.slow
async def test_marks_filter_and_marked_only(tmp_path: Path) -> None:
    async with running(tmp_path, *DBE, "--screen", "log") as pilot:
        pane = await ready(pilot)
        every = len(pane.lines.shown)
        await pilot.press("g", "n")
        first = pane.lines.row
        assert first is not None
        assert first.data.decoded.topic == "xid 48"
        await pilot.press("n")
        assert pane.lines.row is not None
        assert pane.lines.row.data.decoded.topic == "xid 63"
        await pilot.press("N")
        assert pane.lines.row is not None
        assert pane.lines.row.key == first.key
        await pilot.press("m")
        await pilot.pause()
        assert 0 < len(pane.lines.shown) < every
        assert pane.lines.row is not None
        assert pane.lines.row.key == first.key
        await pilot.press("m")
        pane.filter("remapper")
        assert [r.data.decoded.topic for r in pane.lines.shown] == ["xid 63"]
        pane.filter("")
        pane.show_target("line 1")
        assert pane.lines.row.data.number == 1


@pytest.mark.slow
async def test_a_line_is_explained_in_the_chat_and_enter_opens_its_page(tmp_path: Path) -> None:
    async with running(tmp_path, *BUS, "--screen", "log") as pilot:
        await ready(pilot)
        await pilot.press("e")
        await until(pilot, lambda: "fallen off" in screen(pilot.app) and not app_of(pilot).desk.talk.busy)
        await pilot.press("enter")
        await until(pilot, lambda: app_of(pilot).workspace.name_shown == "knowledge")


@pytest.mark.slow
async def test_a_long_log_comes_without_holding_up_the_keys(tmp_path: Path) -> None:
    path = tmp_path / "kern.log"
    lines = [f"[{n}.000000] usb 1-{n % 9}: something that happens all the time, number {n}" for n in range(1, 6_001)]
    lines[3_500] = f"[3501.000000] {XID}"
    path.write_text("\n".join(lines) + "\n")
    async with running(tmp_path, "--log", str(path), "--screen", "log") as pilot:
        pane = await ready(pilot)
        assert len(pane.lines.rows) == 6_000
        assert pane.lines.row is not None
        assert pane.lines.row.data.number == 3501
        await until(pilot, lambda: "6,000 lines" in screen(pilot.app))
        await pilot.press("G")
        await pilot.pause()
        await until(pilot, lambda: "6000.000000 s since boot" in screen(pilot.app))
        pane.filter("number 777")
        assert len(pane.lines.shown) == sum("777" in f"{n}.000 1-{n % 9}: {n}" for n in range(1, 6_001))
        await pilot.press("escape")
        await until(pilot, lambda: len(pane.lines.shown) == 6_000)


@pytest.mark.process
async def test_what_cannot_be_read_says_why(tmp_path: Path) -> None:
    strange = tmp_path / "journal"
    strange.write_bytes(b"LPKSHHRH" + bytes(200))
    kern = tmp_path / "kern.log"
    kern.write_text(f"[1.0] {XID}\n")
    async with running(tmp_path, "--log", str(kern), "--log", str(strange), "--screen", "log") as pilot:
        pane = await ready(pilot)
        assert "XID 79" in screen(pilot.app)
        await pilot.press("o")
        await pilot.pause()
        assert "could not look" in screen(pilot.app)
        assert pane.question() == ""
        await pilot.press("o")
        await pilot.pause()
        assert pane.lines.row is not None


@pytest.mark.process
async def test_this_machine_s_log_grows_on_the_screen(tmp_path: Path) -> None:
    from tui.app import GpudiagApp

    (tmp_path / "dev").mkdir()
    kmsg = tmp_path / "dev" / "kmsg"
    kmsg.write_text("".join(f"6,{n},{n}000000,-;line {n} of the kernel\n" for n in range(60)))
    args = arguments(tmp_path, "--screen", "log", "--probe", "versions")
    args.settings = args.settings._replace(machine=args.settings.machine._replace(root=str(tmp_path)))
    app = GpudiagApp(args)
    async with app.run_test(size=(120, 40), notifications=True) as pilot:
        pane = await ready(pilot)
        assert pane._logs[0].log.title == "/dev/kmsg"
        await until(pilot, lambda: "following" in screen(app))
        await until(pilot, lambda: "line 59 of the kernel" in screen(app))  # it begins at its end
        assert "line 0 of" not in screen(app)
        with kmsg.open("a") as out:
            out.write(f"4,60,60000000,-;{XID}\n")
        await until(pilot, lambda: "XID 79" in screen(app))
        assert pane.lines.row is not None
        assert pane.lines.row.data.decoded.topic == "xid 79"


@pytest.mark.slow
async def test_another_source_and_another_language(tmp_path: Path) -> None:
    async with running(tmp_path, *BUS, "--screen", "log") as pilot:
        pane = await ready(pilot)
        app = app_of(pilot)
        app.choose_language("zh")
        await until(pilot, lambda: "含义" in screen(pilot.app) or "日志行" in screen(pilot.app))
        await until(pilot, lambda: pane._done)
        assert understood(pane.question(), "zh")
        app.open_files(DBE[1])
        await until(
            pilot,
            lambda: (row := pane.lines.row) is not None and row.data.decoded.topic == "xid 48" if pane._done else False,
        )


@pytest.mark.slow
async def test_lines_after_the_moment_are_faint_and_the_cursor_goes_along(tmp_path: Path) -> None:
    async with running(tmp_path, *BUS, "--screen", "log") as pilot:
        pane = await ready(pilot)
        app = app_of(pilot)
        await until(pilot, lambda: app.desk.player is not None)
        player = app.desk.player
        assert player is not None
        times = [r.data.at for r in pane.lines.rows]
        there = next(n for n, r in enumerate(pane.lines.rows) if r.data.decoded and r.data.decoded.topic == "xid 154")
        player.seek(times[there])
        await until(pilot, lambda: pane.lines.at == max(n for n, t in enumerate(times) if t <= times[there]))
        assert pane.lines.faded is not None
        assert pane.lines.faded(pane.lines.rows[-1])
        assert not pane.lines.faded(pane.lines.rows[0])
        player.seek(player.timeline.end)
        await until(pilot, lambda: pane.lines.faded is None)
        await asyncio.sleep(0)


@pytest.mark.slow
async def test_any_size_at_any_moment(tmp_path: Path) -> None:
    path = tmp_path / "kern.log"
    path.write_text(
        "".join(f"[{n}.000000] 一行很长的日志 line {n}\n" for n in range(1, 2_001)) + f"[2001.000000] {XID}\n"
    )
    async with running(tmp_path, "--log", str(path), "--screen", "log") as pilot:
        for width, height in [(20, 5), (200, 60), (40, 12), (81, 24), (10, 3), (120, 40)]:
            await pilot.resize_terminal(width, height)
            await pilot.pause()
        pane = await ready(pilot)
        await until(pilot, lambda: "XID 79" in screen(pilot.app))
        assert pane.lines.row is not None
        assert pane.lines.row.data.number == 2001
