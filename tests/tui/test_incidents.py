"""Incidents and runbooks on the screen: opened from what is found, walked, written down; without a history, said."""

from __future__ import annotations

from pathlib import Path

import pytest
from textual.pilot import Pilot

from assistant.incidents.book import Book
from assistant.incidents.events import Entry, Hand, Kind, closed, note, runbook
from assistant.incidents.fold import Incident
from tests.tui.lab import BUS, app_of, running, screen, understood, until
from tui.screens.incidents import IncidentsPane
from tui.widgets.command_line import CommandLine
from tui.widgets.lines import Lines
from tui.widgets.page import Page


@pytest.fixture
def history(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path}/history.db"


def pane(pilot: Pilot[int]) -> IncidentsPane:
    found = app_of(pilot).workspace.pane
    assert isinstance(found, IncidentsPane)
    return found


def keep(pilot: Pilot[int], url: str) -> None:
    """The history lies there, from the next read on."""
    desk = app_of(pilot).desk
    desk.settings = desk.settings._replace(history=desk.settings.history._replace(url=url))


async def opened(pilot: Pilot[int], url: str) -> IncidentsPane:
    """The screen, with an incident that was opened from what was found."""
    keep(pilot, url)
    shown = pane(pilot)
    await until(pilot, lambda: bool(shown.books))
    await pilot.press("o")
    await until(pilot, lambda: shown.shown_kind == "incident")
    return shown


def now(shown: IncidentsPane) -> Incident:
    assert shown.incident is not None
    return shown.incident


async def command(pilot: Pilot[int], line: str) -> None:
    await pilot.press("colon")
    app_of(pilot).workspace.query_one(CommandLine).line.value = line
    await pilot.press("enter")


@pytest.mark.slow
async def test_from_the_finding_to_the_end(tmp_path: Path, history: str) -> None:
    async with running(tmp_path, *BUS, "--screen", "incidents") as pilot:
        shown = await opened(pilot, history)
        text = screen(pilot.app)
        assert "has fallen off the bus" in text
        assert "lspci" not in text
        assert "Keep the kernel log" in text
        await pilot.press("d")
        await until(pilot, lambda: len(now(shown).steps) == 1)
        assert shown.step is not None
        assert shown.step.name == "presence", "the next step has the cursor"
        await until(pilot, lambda: "lspci -nn -s 0000:" in screen(pilot.app))
        await pilot.press("w")
        await until(pilot, lambda: len(now(shown).steps) == 2)
        assert {m.state for m in now(shown).steps.values()} == {"done", "doing"}
        await pilot.press("n", *"slot 3", "enter")
        await until(pilot, lambda: bool(now(shown).notes))
        assert "slot 3" in screen(pilot.app), "what happened stands below"
        await command(pilot, "close board replaced")
        await until(pilot, lambda: not now(shown).is_open)
        assert "board replaced" in screen(pilot.app)
        (kept,) = Book(history).incidents()
        assert kept == shown.incident
        assert {e.surface for e in kept.events} == {"tui"}


@pytest.mark.slow
async def test_what_another_surface_writes_appears(tmp_path: Path, history: str) -> None:
    async with running(tmp_path, *BUS, "--screen", "incidents") as pilot:
        shown = await opened(pilot, history)
        Book(history).add(1, Hand("bob", "cli"), note("power cycled by hand"))
        shown.clerk.read()
        await until(pilot, lambda: "power cycled by hand" in screen(pilot.app))
        await pilot.press("escape")
        await until(pilot, lambda: "Runbooks" in screen(pilot.app))
        await pilot.press("o")
        await until(pilot, lambda: shown.shown_kind == "incident")
        assert len(Book(history).incidents()) == 1, "the same finding opens no second one"


@pytest.mark.slow
async def test_without_a_history_the_runbooks_are_there(tmp_path: Path) -> None:
    async with running(tmp_path, *BUS, "--screen", "incidents") as pilot:
        shown = pane(pilot)
        await until(pilot, lambda: bool(shown.books))
        assert "it is off (history_url)" in screen(pilot.app)
        await pilot.press("o")
        await until(pilot, lambda: any("it is off" in n.message for n in app_of(pilot)._notifications))
        await command(pilot, "runbook gpu-reset")
        await until(pilot, lambda: shown.shown_kind == "runbook")
        assert "gpu-reset" in screen(pilot.app)
        assert shown.step is not None
        await pilot.press("escape")
        await until(pilot, lambda: not shown.shown_kind)


@pytest.mark.slow
async def test_a_history_that_breaks_leaves_what_was_known(tmp_path: Path, history: str) -> None:
    async with running(tmp_path, *BUS, "--screen", "incidents") as pilot:
        shown = await opened(pilot, history)
        before = now(shown)
        for left in tmp_path.glob("history.db*"):
            left.unlink()
        (tmp_path / "history.db").write_bytes(b"no database at all" * 400)
        shown.clerk.read()
        await until(pilot, lambda: "cannot be read" in shown.one.query_one("#head", Lines).text)
        assert shown.incident == before
        await pilot.press("d")
        await until(pilot, lambda: any("not kept" in n.message for n in app_of(pilot)._notifications))
        assert shown.incident == before


@pytest.mark.slow
async def test_small_and_large(tmp_path: Path, history: str) -> None:
    async with running(tmp_path, *BUS, "--screen", "incidents", size=(200, 60)) as pilot:
        shown = await opened(pilot, history)
        log = shown.one.timeline
        for size in ((200, 60), (80, 24)):
            await pilot.resize_terminal(*size)
            await pilot.pause()
            assert shown.query_one(Page).region.height > 2
            assert shown.one.steps.region.height > 4
            assert bool(log.region.height) == (size[1] > 30)
            await pilot.press("t")
            await until(pilot, lambda: log.region.height > 4)
            assert "opened from what was found" in screen(pilot.app)
            await pilot.press("t")


@pytest.mark.slow
async def test_everything_answers_to_explain_and_is_copied_and_exported(tmp_path: Path, history: str) -> None:
    async with running(tmp_path, *BUS, "--screen", "incidents") as pilot:
        shown = await opened(pilot, history)
        assert shown.copied().startswith("journalctl -k -b")
        sheet = shown.exported()
        assert sheet is not None
        assert sheet.data["incident"]["number"] == 1
        said = {shown.question()}
        shown.one.timeline.focus()
        await pilot.pause()
        shown.one.timeline.select("2")
        said.add(shown.question())
        await pilot.press("escape")
        await until(pilot, lambda: not shown.shown_kind)
        sheet = shown.exported()
        assert sheet is not None
        assert [i["number"] for i in sheet.data["incidents"]] == [1]
        said.add(shown.question())
        shown.shelf.focus()
        await pilot.pause()
        said.add(shown.question())
        assert len(said) > 2
        assert all(map(understood, said)), said


@pytest.mark.slow
async def test_in_chinese_and_where_one_was_the_last_time(tmp_path: Path, history: str) -> None:
    async with running(tmp_path, *BUS, "--screen", "incidents", lang="zh") as pilot:
        shown = await opened(pilot, history)
        assert "保存内核日志" in screen(pilot.app)
        app_of(pilot).keep()
    async with running(tmp_path, *BUS, "--screen", "incidents", lang="zh") as pilot:
        keep(pilot, history)
        shown = pane(pilot)
        shown.clerk.read()
        await until(pilot, lambda: shown.shown_kind == "incident")


@pytest.mark.slow
async def test_from_any_screen_and_by_hand(tmp_path: Path, history: str) -> None:
    async with running(tmp_path, *BUS, "--screen", "findings") as pilot:
        keep(pilot, history)
        await command(pilot, "incident rack 4 smells of smoke")
        await until(pilot, lambda: "#1 rack 4 smells of smoke" in screen(pilot.app))
        shown = pane(pilot)
        assert "No runbook yet" in screen(pilot.app)
        await command(pilot, "runbook thermal")
        await until(pilot, lambda: "Read temperatures and their limits" in screen(pilot.app))
        await command(pilot, "severity error")
        await until(pilot, lambda: now(shown).severity == "error")
        await pilot.press("d", "d")
        await until(pilot, lambda: len(now(shown).steps) == 2)
        assert [e.kind for e in now(shown).events] == ["opened", "runbook", "severity", "step", "step"]
        app_of(pilot).workspace.show("incidents", "gpu-off-bus/reset")
        await until(pilot, lambda: shown.shown_kind == "runbook")
        assert "disruptive" in screen(pilot.app)
        assert shown.step is not None
        assert shown.step.name == "reset"
        await pilot.press("o")
        await until(pilot, lambda: shown.shown_kind == "incident")
        assert now(shown).hosts == ("oak-h100-042",), "the node that is looked at"
        await pilot.press("question_mark")
        await until(pilot, lambda: "the step failed, is skipped" in screen(pilot.app))


@pytest.mark.slow
async def test_an_earlier_incident_like_it_is_named_in_its_head(tmp_path: Path, history: str) -> None:
    alice = Hand("alice", "cli")
    Book(history).open(
        alice, [Entry(Kind.OPENED, {"title": "the riser"}), runbook("gpu-off-bus"), closed("riser replaced")]
    )
    async with running(tmp_path, *BUS, "--screen", "incidents") as pilot:
        shown = await opened(pilot, history)
        await until(pilot, lambda: "like #1 (closed " in screen(pilot.app))
        assert "earlier: riser replaced)" in screen(pilot.app)
        await command(pilot, "close again")
        await until(pilot, lambda: not now(shown).is_open)
        assert "riser replaced" not in screen(pilot.app), "what is over needs no advice"
