"""The frame: sides, keys, commands, sources, what is written and what is kept."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from textual import events

from tests.tui.lab import BUS, DBE, DEMOS, app_of, arguments, running, screen, typed, until
from tui import commands, memory
from tui.themes import NAMES
from tui.widgets.command_line import CommandLine

if TYPE_CHECKING:
    from textual.pilot import Pilot


async def nothing_told(pilot: Pilot[Any]) -> None:
    """What was said in a corner of the screen is gone."""
    pilot.app.clear_notifications()
    await pilot.pause()


@pytest.mark.slow
async def test_commands_and_what_they_do_at_once(tmp_path: Path) -> None:
    async with running(tmp_path, *DBE, "--screen", "findings") as pilot:
        await the_verdict_stands_in_the_first_line(pilot)
        await nothing_told(pilot)
        await a_command_that_is_none_is_told_with_its_nearest(pilot)
        await nothing_told(pilot)
        await tab_completes_a_command(pilot)
        await nothing_told(pilot)
        await a_file_that_is_not_there_changes_nothing(pilot)
        await nothing_told(pilot)
        await themes(pilot)
        await nothing_told(pilot)
        await help_names_keys_and_commands(pilot)
        await nothing_told(pilot)
        await another_recording_and_back(pilot)
        await nothing_told(pilot)
        await another_language_at_once(pilot)


async def the_verdict_stands_in_the_first_line(pilot: Pilot[Any]) -> None:
    first = screen(pilot.app).splitlines()[0]
    assert "double-bit ECC" in first
    assert "✖" in first


async def a_command_that_is_none_is_told_with_its_nearest(pilot: Pilot[Any]) -> None:
    await typed(pilot, "colon", *"thme dark", "enter")
    await until(pilot, lambda: ":thme" in screen(pilot.app))
    assert "theme" in screen(pilot.app)


async def tab_completes_a_command(pilot: Pilot[Any]) -> None:
    app = app_of(pilot)
    assert "theme " in commands.completions(app, "th")
    assert commands.completions(app, "theme c") == ["theme contrast"]
    assert any(c.endswith("kern.log") for c in commands.completions(app, f"open {DEMOS}/double-bit-error/k"))
    assert commands.completions(app, "open /no/such/folder/") == []


async def a_file_that_is_not_there_changes_nothing(pilot: Pilot[Any]) -> None:
    await typed(pilot, "colon", *"open /no/such/file", "enter")
    await until(pilot, lambda: "no such file" in screen(pilot.app))
    assert "double-bit" in screen(pilot.app).splitlines()[0]


async def themes(pilot: Pilot[Any]) -> None:
    assert len(NAMES) > 2
    for theme in NAMES:
        commands.run(app_of(pilot), f"theme {theme}")
        await pilot.pause()
        assert pilot.app.theme == theme
        assert "double-bit ECC" in screen(pilot.app)


async def help_names_keys_and_commands(pilot: Pilot[Any]) -> None:
    await pilot.resize_terminal(100, 64)
    await pilot.press("question_mark")
    await until(pilot, lambda: ":export FILE" in screen(pilot.app))
    await pilot.press("escape")
    await until(pilot, lambda: ":export FILE" not in screen(pilot.app))
    await pilot.resize_terminal(120, 40)


async def another_recording_and_back(pilot: Pilot[Any]) -> None:
    app = app_of(pilot)
    commands.run(app, f"open {BUS[1]}")
    await until(pilot, lambda: "fallen off the bus" in screen(app).splitlines()[0])
    await pilot.press("ctrl+o")
    await until(pilot, lambda: "double-bit" in screen(app).splitlines()[0])
    await pilot.press("ctrl+o")
    await until(pilot, lambda: "fallen off the bus" in screen(app).splitlines()[0])
    await pilot.press("ctrl+o")
    await until(pilot, lambda: "double-bit" in screen(app).splitlines()[0])


async def another_language_at_once(pilot: Pilot[Any]) -> None:
    commands.run(app_of(pilot), "lang zh")
    await until(pilot, lambda: "发现" in screen(pilot.app).splitlines()[1])
    assert "双比特" in screen(pilot.app).splitlines()[0]


@pytest.mark.slow
async def test_one_side_or_both(tmp_path: Path) -> None:
    async with running(tmp_path, *BUS, "--screen", "findings", size=(80, 24)) as pilot:
        for size in ((80, 24), (200, 60), (110, 30)):
            await pilot.resize_terminal(*size)
            await pilot.pause()
            workspace = app_of(pilot).workspace
            both = size[0] >= 110
            assert workspace.query_one("#right").display
            assert bool(workspace.query_one("#left").region.width) == both
            await pilot.press("c")
            await pilot.pause()
            assert workspace.name_shown == "chat"
            assert bool(workspace.query_one("#right").region.width) == both
            await pilot.press("escape")
            await pilot.pause()
            assert workspace.name_shown == "findings"


@pytest.mark.slow
async def test_what_is_shown_can_be_written(tmp_path: Path) -> None:
    async with running(tmp_path, *DBE, "--screen", "findings") as pilot:
        for kind in ("md", "html", "json", "txt", "svg"):
            target = tmp_path / f"out.{kind}"
            commands.run(app_of(pilot), f"export {target}")
            text = target.read_text()
            assert "double-bit" in text.replace("&#160;", " "), kind
            if kind == "json":
                assert json.loads(text)
            pilot.app.clear_notifications()
            await pilot.press("colon")
            app_of(pilot).workspace.query_one(CommandLine).line.value = f"export {target}"
            await pilot.press("enter")  # what is there is not overwritten
            await until(pilot, lambda: "exists already" in screen(pilot.app))
            assert target.read_text() == text, kind


async def test_a_file_that_cannot_be_read_is_said_in_the_first_line(tmp_path: Path) -> None:
    broken = tmp_path / "broken.tar.gz"
    broken.write_bytes(b"\x1f\x8b broken")
    async with running(tmp_path, "--bundle", str(broken), "--screen", "findings") as pilot:
        assert "✖" in screen(pilot.app).splitlines()[0]
        assert str(broken)[-10:] in screen(pilot.app)


@pytest.mark.slow
async def test_where_one_was_is_kept(tmp_path: Path) -> None:
    async with running(tmp_path, *DBE, "--screen", "log") as pilot:
        commands.run(app_of(pilot), "theme light")
        await pilot.press("ctrl+q")
    async with running(tmp_path, *DBE) as pilot:
        assert pilot.app.theme == "light"
        assert app_of(pilot).workspace.pane_name == "log"


async def test_a_memory_that_is_none_is_no_trouble(tmp_path: Path) -> None:
    file = tmp_path / "state" / "tui.json"
    file.parent.mkdir()
    for nothing in ("", "{", "[]", '{"schema": "other", "theme": "light"}'):
        file.write_text(nothing)
        assert memory.load(arguments(tmp_path).settings) == {}, nothing
    file.write_text('{"schema": "gpudiag/tui/1", "theme": 7, "pane": ["x"], "screen-log": 3}')
    assert memory.load(arguments(tmp_path).settings)
    async with running(tmp_path, *DBE) as pilot:
        assert "double-bit" in screen(pilot.app).splitlines()[0]


@pytest.mark.slow
async def test_explaining_a_finding_asks_in_the_chat_and_rests_on_what_is_shown(tmp_path: Path) -> None:
    async with running(tmp_path, *DBE, "--screen", "findings") as pilot:
        await pilot.press("e")
        await until(pilot, lambda: not app_of(pilot).desk.talk.busy and "kern.log" in screen(pilot.app))


@pytest.mark.slow
async def test_keys_and_a_filter_where_there_is_little_room(tmp_path: Path) -> None:
    async with running(tmp_path, *BUS, "--screen", "findings", size=(80, 24)) as pilot:
        await what_is_typed_in_one_burst_goes_into_the_command_line_each_time(pilot)
        await a_filter_is_told_while_it_is_in_force(pilot)
        await what_is_hidden_can_be_told_something(pilot)


async def what_is_typed_in_one_burst_goes_into_the_command_line_each_time(pilot: Pilot[Any]) -> None:
    workspace = app_of(pilot).workspace
    line = workspace.query_one(CommandLine)
    for _ in range(2):
        for letter in ":oew":  # each of them is a key of the findings
            pilot.app.post_message(events.Key("colon" if letter == ":" else letter, letter))
        await until(pilot, lambda: line.line.value == "oew" and line.region.height == 1)
        assert pilot.app.screen is workspace
        await pilot.press("escape")
        await pilot.pause()
        assert not line.region.height


async def a_filter_is_told_while_it_is_in_force(pilot: Pilot[Any]) -> None:
    await pilot.pause()
    await typed(pilot, "slash", *"gpu", "enter")
    await until(pilot, lambda: "gpu  (Esc)" in screen(pilot.app).splitlines()[-1])
    await pilot.press("escape")
    await until(pilot, lambda: "(Esc)" not in screen(pilot.app).splitlines()[-1])


async def what_is_hidden_can_be_told_something(pilot: Pilot[Any]) -> None:
    workspace = app_of(pilot).workspace
    for n in range(3):  # the chat has no room and no lines now
        workspace.chat.course.note(f"word {n}")
    await pilot.press("c")
    await until(pilot, lambda: "word 2" in screen(pilot.app))
