"""Pictures of some screens: those of the documentation, and snapshots that tests hold the app against.

``python -m tests.tui.pictures`` draws them again, into docs/pictures. Recordings are looked at, so that no clock shows.
"""

from __future__ import annotations

import asyncio
import re
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from tests import live_story
from tests.conftest import ROOT
from tests.tui.lab import DEMO_BUS, app_of, running, until

FOLDER = ROOT / "docs" / "pictures"
_FONTS = re.compile(r"@font-face \{.*?\}\s*", re.DOTALL)  # they would be fetched from the network


class Scene(NamedTuple):
    """What is opened, and the keys that lead to the picture."""

    words: Sequence[str]  # the word STORY stands for the recording of 8 GPUs of which one overheats
    keys: Sequence[str]
    size: tuple[int, int] = (120, 40)


SCENES = {
    "findings": Scene((*DEMO_BUS, "--screen", "findings"), ("c", *"why?", "enter")),
    "live": Scene(("--bundle", "STORY", "--screen", "live"), ("e",)),
    "narrow": Scene((*DEMO_BUS, "--screen", "log"), ("j",), (80, 24)),
}


async def drawn(name: str) -> str:
    """The picture called `name`, as SVG without fonts."""
    scene = SCENES[name]
    with tempfile.TemporaryDirectory() as folder:
        story = Path(folder) / "gpu-12"
        words = [str(story) if w == "STORY" else w for w in scene.words]
        if "STORY" in scene.words:
            live_story.bundle(story, 8)
        async with running(Path(folder), *words, size=scene.size) as pilot:
            app = app_of(pilot)
            await until(pilot, lambda: app.desk.player is not None)
            for key in scene.keys:
                await pilot.press(key)
                await until(pilot, lambda: not app.desk.talk.busy)
            await pilot.pause(0.5)
            return _FONTS.sub("", app.export_screenshot()) + "\n"


def main() -> None:
    """Write them all."""
    FOLDER.mkdir(exist_ok=True)
    for name in SCENES:
        (FOLDER / f"{name}.svg").write_text(asyncio.run(drawn(name)), encoding="utf-8")


if __name__ == "__main__":
    main()
