"""Walking a runbook in the app, beside other incidents and their report: a real book, a real journal, real commands."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from textual.pilot import Pilot
from textual.widgets import Input

from assistant.incidents import events
from assistant.incidents.book import Book
from assistant.incidents.deeds import deeds
from assistant.incidents.events import Hand, Kind, StepState
from assistant.incidents.opening import by_hand
from assistant.journal import Journal
from knowledge.errors import UsageError
from knowledge.runbook import lay_over
from tests.tui.lab import BUS, app_of, running, screen, until
from tests.tui.test_incidents import command, keep, now, opened, pane
from tui.incidents.orders import link_order, run_order
from tui.incidents.walking import WalkDialog
from tui.screens.incidents import IncidentsPane
from tui.widgets.lines import Lines

ALICE = Hand("alice", "cli")
PAGE = """\
---
id: harmless
title: {en: Harmless, zh: 无害}
applies: [thermal]
summary: {en: Walk., zh: 执行。}
steps:
  - id: greet
    title: {en: Say something, zh: 说一句}
    do: {en: Print a word., zh: 输出一个词。}
    command: /bin/echo "good [b]morning[/b]"
    risk: safe
    consent: none
  - id: wait
    title: {en: Take long, zh: 等很久}
    do: {en: Sleep., zh: 休眠。}
    command: /bin/sleep 600
    risk: safe
    consent: none
  - id: cut
    title: {en: Interrupt, zh: 中断}
    do: {en: Touch a file., zh: 创建文件。}
    command: /usr/bin/touch TOUCHED
    risk: disruptive
    consent: operator
    verify: {en: The file is there., zh: 文件已存在。}
references: [https://example.org]
---

## English

Quiet.

## 中文

静。
"""


@pytest.fixture
def history(tmp_path: Path) -> Iterator[str]:
    """A history with an incident about this machine that follows a runbook of three harmless steps."""
    import socket

    folder = tmp_path / "books"
    folder.mkdir()
    (folder / "harmless.md").write_text(PAGE.replace("TOUCHED", str(tmp_path / "touched")), encoding="utf-8")
    lay_over([folder])
    url = f"sqlite:///{tmp_path}/history.db"
    Book(url).open(ALICE, [*by_hand("it smells", host=socket.gethostname()), events.runbook("harmless")])
    yield url
    lay_over(())


async def shown(pilot: Pilot[int], url: str) -> IncidentsPane:
    """The screen with incident 1."""
    keep(pilot, url)
    found = pane(pilot)
    found.clerk.read()
    await until(pilot, lambda: any(i.number == 1 for i in found.incidents))
    app_of(pilot).workspace.show("incidents", "1")
    await until(pilot, lambda: found.shown_kind == "incident" and found.one.steps.has_focus)
    return found


def asked(pilot: Pilot[int], words: str) -> bool:
    """Whether the walk waits for an answer to this."""
    dialog = pilot.app.screen
    return (
        isinstance(dialog, WalkDialog)
        and not dialog.query_one(Input).disabled
        and words in dialog.query_one("#walk-question", Lines).text
    )


async def answer(pilot: Pilot[int], words: str, typed: str) -> None:
    await until(pilot, lambda: asked(pilot, words) and pilot.app.screen.meant)  # type: ignore[attr-defined]
    await pilot.press(*typed, "enter")


async def begun(pilot: Pilot[int], how: str = "") -> None:
    if how:
        await command(pilot, f"run {how}")
    else:
        await pilot.press("R")
    await until(pilot, lambda: isinstance(pilot.app.screen, WalkDialog))


@pytest.mark.process
async def test_walked_left_in_the_middle_and_gone_on_with(tmp_path: Path, history: str) -> None:
    book = Book(history)
    async with running(tmp_path, *BUS, "--screen", "incidents") as pilot:
        page = await shown(pilot, history)
        await begun(pilot)
        await answer(pilot, "Run this command?", "y")
        await until(pilot, lambda: "harmless/greet: done" in screen(pilot.app))
        assert "good [b]morning[/b]" in screen(pilot.app), "what a command prints is no markup"
        await answer(pilot, "Run this command?", "y")
        began = time.monotonic()
        await until(pilot, lambda: len(list(Journal(history).records())) == 3)  # the intent of the second
        await pilot.press("escape")
        await until(pilot, lambda: not isinstance(pilot.app.screen, WalkDialog))
        assert time.monotonic() - began < 20, "the command was ended"
        await until(pilot, lambda: ("harmless", "wait") in now(page).steps)
        kept = book.incident(1)
        assert [m.state for m in kept.steps.values()] == [StepState.DONE, StepState.DOING]
        assert kept.events[-1].data["left"] is True
        assert {e.surface for e in kept.events[2:]} == {"tui"}
        assert [e.data["end"] for e in deeds(kept.events) if e.kind == Kind.ACTION] == ["exited", "stopped"]
        # the third step alone: a name is typed, and another word is no consent
        await begun(pilot, "cut")
        await answer(pilot, "Do this step?", "y")
        await answer(pilot, "Type the node's name", "y")
        await answer(pilot, "Enter when it is done", "")
        await answer(pilot, "Did it work?", "n")
        await until(pilot, lambda: pilot.app.screen.over)  # type: ignore[attr-defined]
        assert not (tmp_path / "touched").exists()
        await pilot.press("enter")
        await until(pilot, lambda: str(now(page).steps["harmless", "cut"].state) == "failed")
        await begun(pilot, "cut")
        await answer(pilot, "Do this step?", "y")
        await answer(pilot, "Type the node's name", kept.hosts[0])
        await answer(pilot, "Did it work?", "y")
        await until(pilot, lambda: pilot.app.screen.over)  # type: ignore[attr-defined]
        assert (tmp_path / "touched").exists()


@pytest.mark.slow
async def test_nothing_typed_before_a_question_answers_it(tmp_path: Path, history: str) -> None:
    async with running(tmp_path, *BUS, "--screen", "incidents") as pilot:
        await shown(pilot, history)
        await begun(pilot)
        dialog = pilot.app.screen
        assert isinstance(dialog, WalkDialog)
        pilot.app.pause = 600.0  # type: ignore[attr-defined]  # the moment lasts, however slow this machine is
        for question in (None, "Run this command?"):  # while nothing is asked, and in the moment when it is
            if question is not None:
                await until(pilot, lambda: asked(pilot, "Run this command?"))
            await pilot.press("y", "enter")
        await pilot.pause(0.2)
        assert asked(pilot, "Run this command?"), "it was no answer"
        assert not dialog.query_one(Input).value
        await pilot.press("ctrl+c")
        await until(pilot, lambda: not isinstance(pilot.app.screen, WalkDialog))
        assert not [e for e in Book(history).incident(1).events if e.kind == Kind.ACTION]


@pytest.mark.slow
async def test_why_it_cannot_be_walked_is_said(tmp_path: Path, history: str) -> None:
    async with running(tmp_path, *BUS, "--screen", "incidents", lang="zh") as pilot:
        page = await shown(pilot, history)
        Book(history).add(1, ALICE, events.closed("done"))
        await begun(pilot)
        await until(pilot, lambda: "事件 1 已关闭" in screen(pilot.app))
        await pilot.press("escape")
        await until(pilot, lambda: not now(page).is_open)
        await begun(pilot, "--node elsewhere nosuchstep")
        await until(pilot, lambda: pilot.app.screen.over)  # type: ignore[attr-defined]


@pytest.mark.process
async def test_the_app_ends_while_a_command_runs(tmp_path: Path, history: str) -> None:
    async with running(tmp_path, *BUS, "--screen", "incidents") as pilot:
        await shown(pilot, history)
        await begun(pilot, "wait")
        await answer(pilot, "Run this command?", "y")
        await until(pilot, lambda: len(list(Journal(history).records())) == 1)
    end = time.monotonic() + 20
    while not Book(history).incident(1).events[-1].data.get("left"):
        assert time.monotonic() < end
        time.sleep(0.1)


@pytest.mark.slow
async def test_others_are_shown_with_their_reason_and_linked(tmp_path: Path, history: str) -> None:
    book = Book(history)
    book.open(ALICE, [*by_hand("it smells again", host=book.incident(1).hosts[0])])
    async with running(tmp_path, *BUS, "--screen", "incidents") as pilot:
        page = await shown(pilot, history)
        app_of(pilot).workspace.show("incidents", "2")
        await until(pilot, lambda: now(page).number == 2)
        assert "same node" in screen(pilot.app), "its head names the reason"
        await until(pilot, lambda: page.one.keys.has_focus or page.one.steps.has_focus)
        await command(pilot, "others")
        await until(pilot, lambda: "it smells" in screen(pilot.app) and "Other incidents" in screen(pilot.app))
        await pilot.press("L")
        await until(pilot, lambda: now(page).links == (1,))
        assert book.incident(1).links == (2,)
        await command(pilot, "link 99")
        await until(pilot, lambda: any("99" in n.message for n in app_of(pilot)._notifications))
        await command(pilot, "link 1 --merge")
        await until(pilot, lambda: not next(i for i in page.incidents if i.number == 1).is_open)
        await command(pilot, "others")
        await until(pilot, lambda: "linked" in screen(pilot.app))
        await pilot.press("enter")
        await until(pilot, lambda: now(page).number == 1)


@pytest.mark.slow
async def test_the_report_is_written(tmp_path: Path, history: str) -> None:
    async with running(tmp_path, *BUS, "--screen", "incidents") as pilot:
        await shown(pilot, history)
        target = tmp_path / "post mortem.md"
        await command(pilot, f"report '{target}' 2.10 EUR")
        await until(pilot, target.exists)
        assert "it smells" in target.read_text(encoding="utf-8")
        await command(pilot, f"report '{target}'")
        await until(pilot, lambda: any("exists already" in n.message for n in app_of(pilot)._notifications))
        await command(pilot, f"report {tmp_path}/nowhere/x.html")
        await until(pilot, lambda: any("cannot be written" in n.message for n in app_of(pilot)._notifications))
        await pilot.press("question_mark")
        await until(pilot, lambda: "walk the runbook" in screen(pilot.app))


@pytest.mark.slow
async def test_an_incident_of_what_was_found_asks_for_its_node(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/h.db"
    async with running(tmp_path, *BUS, "--screen", "incidents", size=(80, 24)) as pilot:
        await opened(pilot, url)
        await begun(pilot)
        await answer(pilot, "Do this step?", "y")
        await until(pilot, lambda: asked(pilot, "Enter when it is done"))
        assert "this is another machine" in screen(pilot.app)
        await pilot.press("escape")
        await until(pilot, lambda: not isinstance(pilot.app.screen, WalkDialog))


@pytest.mark.parametrize("line", ["--nosuch", "a b", "--node", "'open"])
def test_run_says_what_it_does_not_know(line: str) -> None:
    with pytest.raises(UsageError):
        run_order(line)


def test_words_of_orders() -> None:
    wanted = run_order("cut --node n1 --take-over")
    assert (wanted.step, wanted.node, wanted.take_over, wanted.yes_safe) == ("cut", "n1", True, False)
    assert link_order("#5 --merge") == (5, True)
    assert link_order("--with 5") == (5, False)
    for wrong in ("", "x", "5 6", "9" * 30):
        with pytest.raises(UsageError):
            link_order(wrong)
