"""The app without a terminal: a real session over recordings, driven by Textual's pilot."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from assistant import cli, config
from assistant.arguments import command_parser
from tests.conftest import ROOT

if TYPE_CHECKING:
    import argparse

    from textual.pilot import Pilot

    from tui.app import GpudiagApp

DEMOS = ROOT / "assistant" / "demos"
DBE = (
    "--log",
    str(DEMOS / "double-bit-error" / "kern.log"),
    "--input",
    str(DEMOS / "double-bit-error" / "nvidia-smi-q.txt"),
)
BUS = ("--bundle", str(DEMOS / "off-the-bus" / "bundle"))
PATIENCE = 30.0  # seconds until something that must come is missed: machines are slow at times


def arguments(folder: Path, *words: str, lang: str = "en") -> argparse.Namespace:
    """What the command line hands the app; its memory lies in `folder`."""
    command = cli.load("tui")
    args: argparse.Namespace = command_parser(command).parse_args(list(words))
    environ = {"GPUDIAG_STATE_DIR": str(folder / "state"), "GPUDIAG_HISTORY_URL": "off"}
    args.settings = config.load({"format": None, "lang": lang, "color": None}, environ, ())
    return args


@asynccontextmanager
async def running(
    folder: Path, *words: str, size: tuple[int, int] = (120, 40), lang: str = "en"
) -> AsyncIterator[Pilot[int]]:
    """The app in a terminal of `size`; the recording has been read when it is yielded."""
    from tui.app import GpudiagApp

    app = GpudiagApp(arguments(folder, *words, lang=lang))
    async with app.run_test(size=size, notifications=True) as pilot:
        if words:
            await until(pilot, lambda: app.desk.picture.diagnosis is not None or bool(app.desk.picture.trouble))
        yield pilot


async def until(pilot: Pilot[Any], condition: Callable[[], bool], seconds: float = PATIENCE) -> None:
    """Wait until `condition` holds; an AssertionError with the screen when it never does."""
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            raise AssertionError("it did not come about:\n" + screen(pilot.app))
        await asyncio.sleep(0.02)
        await pilot.pause()
    await pilot.pause()


def screen(app: Any) -> str:
    """What stands on the screen, as text: each line without the blanks at its end."""
    width, height = app.size
    lines = [""] * height
    for y, strips in enumerate(app.screen._compositor.render_strips()):  # the public way gives SVG only
        lines[y] = "".join(segment.text for segment in strips).rstrip()
    assert width
    return "\n".join(lines)


def app_of(pilot: Pilot[Any]) -> GpudiagApp:
    """The app that `pilot` drives."""
    from tui.app import GpudiagApp

    assert isinstance(pilot.app, GpudiagApp)
    return pilot.app


def understood(question: str, lang: str = "en") -> bool:
    """Whether the conversation knows what is asked: "explain this" must never lead to a shrug."""
    from assistant.intent.parse import understand
    from assistant.intent.query import Intent

    return understand(question, lang=lang).intent is not Intent.UNKNOWN
