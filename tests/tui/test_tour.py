"""docs/tui.md names every screen, every key that is bound everywhere, and every command of the app."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.conftest import ROOT
from tests.tui.lab import BUS, app_of, running
from tui import commands
from tui.app import GpudiagApp
from tui.screens import screens
from tui.workspace import Workspace

TOUR = (ROOT / "docs" / "tui.md").read_text(encoding="utf-8")
SHOWN = {
    "slash": "/", "colon": ":", "question_mark": "?", "escape": "Esc", "tab": "Tab", "ctrl+o": "Ctrl-O", "ctrl+p": "Ctrl-P",
    "less_than_sign": "<", "greater_than_sign": ">", "left_square_bracket": "[", "right_square_bracket": "]", "plus": "+",
    "minus": "-", "space": "Space", "ctrl+q": "Ctrl-Q", "ctrl+c": "Ctrl-C", "ctrl+z": "Ctrl-Z",
}  # fmt: skip
UNTOLD = {"f1"}  # the same as ?, for those who try it


def test_every_screen_has_its_line() -> None:
    for spec in screens():
        assert f"| `{spec.place}` | {spec.title.en} |" in TOUR


def test_every_key_is_told() -> None:
    told = set(re.findall(r"`([^`\n]+)`", re.sub("```.*?```", "", TOUR, flags=re.DOTALL)))
    bound = {key for b in (*Workspace.BINDINGS, *GpudiagApp.BINDINGS) for key in b.key.split(",")}  # type: ignore[union-attr]
    for key in bound - UNTOLD:
        if not key.isdecimal() and not key.startswith("alt+"):
            assert SHOWN.get(key, key) in told, key


@pytest.mark.process
async def test_every_command_of_every_screen_is_told(tmp_path: Path) -> None:
    async with running(tmp_path, *BUS) as pilot:
        app = app_of(pilot)
        untold = set()
        for spec in screens():
            app.workspace.go(spec.name)
            await pilot.pause()
            untold |= {c.name for c in commands.available(app) if f"`:{c.name}" not in TOUR}
        assert untold == set()
