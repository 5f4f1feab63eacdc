"""Nodes: many of them by state, from the history and from recordings, and the way down to one."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from itertools import product
from pathlib import Path

import pytest
from textual.pilot import Pilot

from assistant.nodes import Look
from assistant.nodes.gather import Gathered
from knowledge.language import Text
from tests.assistant.store.history_lab import HOST, MINUTE, T0, Machine, check, xid
from tests.tui.lab import BUS, DBE, app_of, running, screen, typed, understood, until
from tui.screens.nodes import NodesPane, _Read
from tui.widgets.grid import Grid

NODES = ("--screen", "nodes")


def pane_of(pilot: Pilot[int]) -> NodesPane:
    return app_of(pilot).workspace.query_one(NodesPane)


def grid_of(pilot: Pilot[int]) -> Grid:
    return pane_of(pilot).query_one(Grid)


async def known(
    pilot: Pilot[int], looks: Mapping[str, Sequence[Look]], names: Sequence[str] = (), **more: object
) -> None:
    """Show these, whatever the machine's own history holds."""
    pane = pane_of(pilot)
    await until(pilot, lambda: pane._known is not None)
    assert pane._job is not None
    pane.post_message(_Read(Gathered(tuple(names), looks, **more), pane._job))  # type: ignore[arg-type]
    await until(pilot, lambda: len(grid_of(pilot).rows) == len({*looks, *names}))


def look(state: str, age_s: int, now: int, text: str = "") -> Look:
    return Look(state, Text(text or f"said {state}", "结论"), now - age_s * 10**9, "history", "watch", 7)


@pytest.mark.process
async def test_a_folder_of_recordings_and_the_way_down(tmp_path: Path) -> None:
    fleet = tmp_path / "fleet"
    shutil.copytree(BUS[1], fleet / "sick")
    (fleet / "broken.tar.gz").write_bytes(b"no archive")
    async with running(tmp_path, *BUS, *NODES, "--nodes", str(fleet)) as pilot:
        await until(pilot, lambda: len(grid_of(pilot).rows) == 2 and "to read" not in screen(pilot.app))
        shown = screen(pilot.app)
        assert "1 unhealthy" in shown
        assert "1 unknown" in shown
        assert "fallen off the bus" in shown
        app = app_of(pilot)
        await pilot.press("enter")
        await until(
            pilot, lambda: app.desk.origin.bundle == str(fleet / "sick") and app.workspace.name_shown == "findings"
        )


@pytest.mark.slow
async def test_every_size_shows_state_node_verdict_and_age_and_each_can_be_explained(tmp_path: Path) -> None:
    async with running(tmp_path, *DBE, *NODES, size=(80, 24)) as pilot:
        now = pane_of(pilot).now()
        await known(pilot, {
            "gpu-12": [look("unhealthy", 120, now, "GPU 3 has fallen off the bus")],
            "gpu-13": [look("unknown", 60, now), look("ok", 7200, now)],
            "gpu-14": [look("ok", 3 * 86_400, now)],
        }, ["gpu-15"])  # fmt: skip
        assert grid_of(pilot).select("gpu-12")
        for lang, size in product(("en", "zh"), ((80, 24), (120, 40), (200, 60))):
            app_of(pilot).choose_language(lang)
            await pilot.resize_terminal(*size)
            await pilot.pause()
            shown = screen(pilot.app)
            assert ("节点" in shown) == (lang == "zh")
            for mark in ("✖", "?", "◌", "–"):
                assert mark in shown
            for age in ("2m", "1m", "3d"):
                assert age in shown
            if lang == "en":
                assert "was ok 2h ago" in shown, "what was known last stays beside what could not be seen now"
                assert "not looked at" in shown
            assert "gpu-12" in pane_of(pilot).question()
            assert understood(pane_of(pilot).question(), lang)


@pytest.mark.slow
async def test_a_history_that_cannot_be_read_and_512_nodes_walked_and_filtered(tmp_path: Path) -> None:
    async with running(tmp_path, *DBE, *NODES) as pilot:
        now = pane_of(pilot).now()
        await known(pilot, {"gpu-12": [look("ok", 60, now)]})
        pane = pane_of(pilot)
        assert pane._job is not None
        pane.post_message(_Read(Gathered(trouble=Text("the history is locked")), pane._job))
        await until(pilot, lambda: "the history is locked" in screen(pilot.app))
        assert [r.key for r in grid_of(pilot).rows] == ["gpu-12"], "what was known stays"
        states = ("ok", "ok", "ok", "degraded")
        await known(pilot, {f"gpu-{n:03d}": [look(states[n % 4], n, now)] for n in range(512)})
        grid = grid_of(pilot)
        grid.focus()
        assert "128 degraded" in screen(pilot.app)
        await pilot.press("G")
        assert grid.row is not None
        assert grid.row.key == "gpu-510"
        pane_of(pilot).filter("gpu-00")
        assert len(grid.shown) == 10
        await pilot.press("escape")
        assert len(grid.shown) == 512


@pytest.mark.slow
async def test_the_checks_of_a_node_from_a_real_history(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/h.db"
    check(url, Machine(), T0)
    check(url, Machine(more=[xid(79, T0)]), T0 + MINUTE)
    async with running(tmp_path, *BUS, "--screen", "findings") as pilot:
        app = app_of(pilot)
        app.desk.settings = app.desk.settings._replace(history=app.desk.settings.history._replace(url=url))
        await pilot.press("7")
        await until(pilot, lambda: any(r.key == HOST for r in grid_of(pilot).rows))
        grid_of(pilot).select(HOST)
        await pilot.press("enter")
        await until(pilot, lambda: "Checks" in screen(pilot.app) and "✔✖" in screen(pilot.app).replace(" ", ""))
        assert pane_of(pilot).exported() is not None
        await pilot.press("escape")
        await pilot.pause()
        assert grid_of(pilot).has_focus
        assert app.workspace.name_shown == "nodes"
        await pilot.press("e")
        await until(pilot, lambda: f"On {HOST} since" in screen(pilot.app))
        assert "still there" in screen(pilot.app), (
            "the answer is that of the history, not of the recording that is open"
        )


@pytest.mark.slow
async def test_the_recorded_node_stands_among_them(tmp_path: Path) -> None:
    async with running(tmp_path, *BUS, *NODES) as pilot:
        app, host = app_of(pilot), "oak-h100-042"
        await until(pilot, lambda: any(r.key == host for r in grid_of(pilot).rows))
        shown = [line for line in screen(app).split("\n") if f"✖ unhealthy      {host}" in line]
        assert len(shown) == 1, screen(app)
        grid_of(pilot).select(host)
        await pilot.press("enter")
        await until(pilot, lambda: app.workspace.name_shown == "findings")
        assert app.desk.origin.bundle == BUS[1]
        # it stays when something else is looked at, and is one key away
        app.open_files(" ".join(DBE[1::2]))
        await until(pilot, lambda: app.desk.picture.diagnosis is not None and bool(app.desk.origin.inputs))
        await pilot.press("7")
        await until(pilot, lambda: grid_of(pilot).has_focus and grid_of(pilot).select(host))
        await pilot.press("o")
        await until(pilot, lambda: app.desk.origin.bundle == BUS[1])
        # those that were asked for by name are those
        await pilot.press("7")
        await until(pilot, lambda: grid_of(pilot).has_focus)
        await typed(pilot, "colon", *"nodes /nowhere", "enter")
        await until(pilot, lambda: "no such folder" in screen(pilot.app))
        await typed(pilot, "colon", *"nodes gpu[1-3]", "enter")
        await until(pilot, lambda: "3 not looked at" in screen(pilot.app))
        assert [r.key for r in grid_of(pilot).rows] == ["gpu1", "gpu2", "gpu3"]
        assert pane_of(pilot).kept()["nodes"] == "gpu[1-3]"
