"""Work beside the screen that breaks: it is told in one sentence, and the app goes on."""

from __future__ import annotations

from pathlib import Path
from threading import Event
from typing import Any, cast

import pytest

from knowledge.errors import UsageError
from tests.tui.lab import BUS, DBE, app_of, running, screen, until
from tui.work import Job


def _bug(job: Job) -> None:
    raise TypeError("3 is no GPU")


@pytest.mark.slow
async def test_a_thread_that_breaks_says_so_and_the_app_goes_on(tmp_path: Path) -> None:
    said = ["this is a bug in gpudiag (TypeError: 3 is no GPU)", "gpudiag 内部错误（TypeError: 3 is no GPU）"]
    async with running(tmp_path, *BUS) as pilot:
        app, after = app_of(pilot), Event()
        for number, lang in enumerate(("en", "zh"), 1):
            app.choose_language(lang)
            broken = app.jobs.start("broken", _bug)
            await until(pilot, lambda number=number: [n.message for n in app._notifications] == said[:number])  # type: ignore[misc]
            assert not broken.running
        app.jobs.start("after", lambda job: after.set())
        await until(pilot, after.is_set)
        await pilot.press("alt+3")
        assert app.workspace.pane_name == "findings"


async def test_what_waits_for_a_thread_is_told_in_its_own_way(tmp_path: Path) -> None:
    def asked_wrongly(job: Job) -> None:
        raise UsageError("there is no GPU 9")

    def given_up(job: Job) -> None:
        job.stop()
        raise TypeError("nobody waits for this")

    async with running(tmp_path, *BUS) as pilot:
        app, told = app_of(pilot), []
        for work in (given_up, asked_wrongly, _bug):
            job = app.jobs.start("broken", work, lambda _, said: told.append(said))
            await until(pilot, lambda job=job: not job.running)  # type: ignore[misc]
        assert told == ["there is no GPU 9", "this is a bug in gpudiag (TypeError: 3 is no GPU)"]
        assert not list(app._notifications)


@pytest.mark.slow
async def test_a_look_that_breaks_leaves_the_one_before(tmp_path: Path) -> None:
    async with running(tmp_path, *DBE) as pilot:
        app = app_of(pilot)
        known = app.desk.picture.diagnosis
        app.desk._rules = cast(Any, None.__class__)  # no rules at all
        app.desk.look()
        await until(pilot, lambda: app.desk.picture.looking is None)
        assert "bug in gpudiag" in app.desk.picture.trouble
        assert app.desk.picture.diagnosis is known
        assert "the last look failed" in screen(app)


@pytest.mark.slow
async def test_a_turn_that_breaks_says_so_in_the_conversation(tmp_path: Path) -> None:
    async with running(tmp_path, *BUS) as pilot:
        app = app_of(pilot)
        app.desk._rules = cast(Any, None.__class__)  # no rules at all
        app.desk.talk.say("is this node healthy?")
        await until(pilot, lambda: not app.desk.talk.busy)
        await until(pilot, lambda: "bug in gpudiag" in screen(app))
        await pilot.press("alt+3")
        assert app.workspace.pane_name == "findings"
