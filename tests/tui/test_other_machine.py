"""Another machine in the terminal app: from the list of nodes, by command, and when it cannot be reached."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from assistant.session.state import Origin
from tests.probes.remote.sshd_lab import Sshd, free_port
from tests.tui.lab import BUS, app_of, running, screen, until
from tui import commands
from tui.screens.nodes import NodesPane
from tui.widgets.grid import Grid

pytestmark = pytest.mark.machine

SOME = ("--probe", "system", "--probe", "kernel-log")


@pytest.fixture(scope="module")
def inventory(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("far")
    sshd = Sshd(folder / "sshd").start()
    path = folder / "inventory.toml"
    path.write_text(
        f'[defaults]\nssh_config = "sshd/ssh_config"\n[hosts.gpu-12]\naliases = ["dgx3"]\n[hosts.gpu-14]\nport = {free_port()}\n'
    )
    yield path
    sshd.stop()


async def test_a_node_of_the_inventory_is_looked_at(tmp_path: Path, inventory: Path) -> None:
    async with running(tmp_path, *BUS, *SOME, "--inventory", str(inventory), "--screen", "nodes") as pilot:
        app = app_of(pilot)
        grid = app.workspace.query_one(NodesPane).query_one(Grid)
        await until(pilot, lambda: {"gpu-12", "gpu-14"} <= {r.key for r in grid.rows})
        grid.select("gpu-12")
        await pilot.press("enter")
        await until(pilot, lambda: app.desk.origin == Origin(host="gpu-12") and app.desk.picture.diagnosis is not None)
        assert app.workspace.name_shown == "findings"
        assert app.desk.picture.host == "gpu-12"
        assert app.desk.here is None  # what this machine told is another thing
        assert app.desk.feed._job is None, "the readings of this machine are not those of that one"
        assert "gpu-12" in screen(app)
        for name in ("live", "log", "nodes", "findings"):
            app.workspace.go(name)
            await until(pilot, lambda: "reading" not in screen(app))
        pane = app.workspace.query_one(NodesPane)
        grid.select("gpu-12")
        assert pane.question() == "what is wrong with gpu-12?"
        assert pane.node is not None
        assert pane.node.last is not None
        assert pane.node.last.source == "live"
        app.workspace.go("log")
        await until(pilot, lambda: "/dev/kmsg" in screen(app) or "journalctl" in screen(app))
        assert "following" not in screen(app)
        app.desk.talk.say("is this node healthy?", about=app.desk.picture)
        await until(pilot, lambda: any(t.shown is not None for t in app.workspace.chat.transcript.turns))
        commands.run(app, "live")
        assert app.desk.origin == Origin()


async def test_a_machine_that_is_not_reached_and_one_that_is_not_known(tmp_path: Path, inventory: Path) -> None:
    async with running(tmp_path, *BUS, *SOME, "--inventory", str(inventory)) as pilot:
        app = app_of(pilot)
        assert list(commands.completions(app, "host g")) == ["host gpu-12", "host gpu-14"]
        with pytest.raises(Exception, match="no machine named 'gpu-15'"):
            commands.run(app, "host gpu-15")
        commands.run(app, "host gpu-14")
        await until(pilot, lambda: "refuses connections" in app.desk.picture.trouble)
        assert app.desk.picture.diagnosis is None
        commands.run(app, "host dgx3")
        assert app.desk.origin == Origin(host="gpu-12")


async def test_the_app_begins_with_another_machine(tmp_path: Path, inventory: Path) -> None:
    async with running(tmp_path, *SOME, "--inventory", str(inventory), "--host", "dgx3") as pilot:
        app = app_of(pilot)
        assert app.desk.picture.host == "gpu-12"
        assert app.desk.here is None
        app.desk.talk.say("is this node healthy?", about=app.desk.picture)
        await until(pilot, lambda: any(t.shown is not None for t in app.workspace.chat.transcript.turns))
        assert "node gpu-12" in screen(app)
