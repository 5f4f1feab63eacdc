"""Somebody who knows nothing and presses everything: seeded random walks through the whole app, and what must hold at each step.

Longer ones by hand, each seed in an app of its own::

    python -m tests.tui.test_monkey FIRST_SEED SEEDS STEPS
"""

from __future__ import annotations

import asyncio
import random
import sys
import tempfile
import threading
import time
from collections.abc import Awaitable, Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings
from textual import events
from textual.pilot import Pilot

from tests import live_story
from tests.tui.lab import BUS, DEMOS, app_of, running, screen, until
from tests.waiting import passing
from tui.screens import screens
from tui.widgets.banner import Banner
from tui.widgets.command_line import CommandLine
from tui.widgets.keys import KeyHints
from tui.widgets.replay import ReplayBar
from tui.widgets.sentence import Sentence
from tui.widgets.tabs import ScreenTabs

pytestmark = pytest.mark.process

KEYS = [
    "escape",
    "escape",
    "enter",
    "enter",
    "tab",
    "shift+tab",
    "up",
    "down",
    "left",
    "right",
    "pageup",
    "pagedown",
    "home",
    "end",
    "space",
    "backspace",
    "delete",
    "1",
    "2",
    "3",
    "4",
    "5",
    "6",
    "7",
    "8",
    "9",
    "alt+1",
    "alt+2",
    "alt+3",
    "alt+4",
    "alt+5",
    "alt+6",
    "alt+7",
    "alt+8",
    "alt+a",
    "alt+b",
    "alt+c",
    "j",
    "j",
    "k",
    "h",
    "l",
    "g",
    "G",
    "s",
    "S",
    "n",
    "N",
    "m",
    "o",
    "p",
    "a",
    "d",
    "f",
    "i",
    "t",
    "v",
    "w",
    "x",
    "y",
    "z",
    "e",
    "e",
    "c",
    "r",
    "b",
    "q",
    "slash",
    "colon",
    "question_mark",
    "less_than_sign",
    "greater_than_sign",
    "left_square_bracket",
    "right_square_bracket",
    "plus",
    "minus",
    "f1",
    "ctrl+o",
    "ctrl+p",
    "ctrl+up",
    "ctrl+down",
    "ctrl+j",
    "ctrl+a",
    "ctrl+e",
    "ctrl+u",
    "ctrl+w",
    "ctrl+k",
    "ctrl+l",
    "ctrl+d",
    "ctrl+r",
    "asterisk",
    "at",
    "number_sign",
]
SIZES = ((20, 5), (21, 7), (40, 12), (80, 24), (80, 24), (109, 30), (110, 30), (120, 40), (200, 60), (250, 80))
SENTENCES = (
    "is this node healthy?", "what is xid 79?", "why", "what if gpu.ecc.mode = off", "why not gpu-off-the-bus", "node 健康吗？", "yes",
    "show me the log", "2", "asdf qwer", "[bold]x[/bold] [/", "\\[", "NVRM: Xid (PCI:0000:3b:00): 79, pid=1, GPU has fallen off the bus.",
    "e\u0301\u200b👩‍👩‍👧‍👦全角文字", "x" * 300, "explain gpu 0", "how hot is gpu 1?", "stop",
)  # fmt: skip
WORDS = (
    "", "0", "-1", "99999999999999999999", "1m", "5m", "x", "[/]", "[bold]", "'", '"', "a b c", "全", "\u0000", "../..", "/", "~", "gpu",
    "79", "xid 79", "rule nothing", "en", "zh", "fr", "dark", "light", "contrast", "temperature", "gpu.ecc.mode = off", "line 3", "done ok",
    "doing", "error", "log", "live", "findings", "knowledge", "pci", "name", "%",
)  # fmt: skip
# Not pressed: what ends the app, what looks at the machine that the tests run on, and what writes where tests have no business.
LEFT_OUT = {"quit", "live", "export"}
# A walk is as long as most faults need; there are as many as the profile of hypothesis wants (`make fuzz`: 40).
STEPS = 25
SEEDS = max(2, settings().max_examples // STEPS)
SEEN = 3  # characters of the verdict that stand in the narrowest terminal
LEAVE = 1.0  # seconds that threads of ours may outlive the app


@cache
def _story() -> str:
    """Two minutes of eight GPUs, written once."""
    folder = Path(tempfile.mkdtemp(prefix="gpudiag-story-"))
    return str(live_story.bundle(folder / "story", 2.0))


def _sources(folder: Path) -> list[str]:
    """What can be opened: recordings, logs, outputs, and what is nothing of the kind."""
    (folder / "empty").mkdir(exist_ok=True)
    (folder / "nothing.log").write_bytes(b"")
    (folder / "noise.bin").write_bytes(random.Random(7).randbytes(5000))
    (folder / "broken.json").write_text('{"schema": "gpudiag/bundle/1", "entries": [', encoding="utf-8")
    (folder / "some words.txt").write_text("[red]NVRM: Xid\x1b[31m (PCI:0000:3b:00): 79\r\n" * 3, encoding="utf-8")
    half = folder / "half.tar.gz"
    half.write_bytes(b"\x1f\x8b\x08\x00" + bytes(40))
    demos = [str(p) for p in sorted(DEMOS.glob("*/bundle"))]
    logs = [str(p) for p in sorted((*DEMOS.glob("*/*.log"), *DEMOS.glob("*/*.txt"), *DEMOS.glob("*/*.json.gz")))]
    own = [
        str(folder / n)
        for n in ("empty", "nothing.log", "noise.bin", "broken.json", "half.tar.gz", "gone", "some words.txt")
    ]
    return [*demos, *logs, *own, _story(), _story()]


class Monkey:
    """Does one thing after another in an app, and looks after each."""

    def __init__(self, pilot: Pilot[Any], folder: Path, seed: int) -> None:
        self.pilot, self.folder, self.dice = pilot, folder, random.Random(seed)
        self.app = app_of(pilot)
        self.done: list[str] = []
        self.sources = _sources(folder)

    async def walk(self, steps: int) -> None:
        """So many things: one of each kind first, in any order."""
        ways: tuple[tuple[int, Callable[[], Awaitable[str]]], ...] = (
            (50, self.key), (14, self.click), (4, self.wheel), (8, self.resize), (10, self.command), (3, self.open),
            (3, self.ask), (2, self.theme), (2, self.language), (6, self.type), (4, self.wait),
        )  # fmt: skip
        weights, deeds = zip(*ways, strict=True)
        first = self.dice.sample(deeds, len(deeds))
        for deed in (*first, *self.dice.choices(deeds, weights, k=max(0, steps - len(first))))[:steps]:
            self.done.append(f"{deed.__name__} ...")
            self.done[-1] = await deed()
            await self.look()

    # --- what it does ---------------------------------------------------------------------

    async def key(self) -> str:
        key = self.dice.choice(KEYS)
        await self.pilot.press(key)
        return f"key {key}"

    async def type(self) -> str:
        text = self.dice.choice((*SENTENCES, *WORDS))[:40]
        for letter in text:
            self.app.screen.focused and self.app.post_message(events.Key("space" if letter == " " else letter, letter))
        await self.pilot.pause()
        return f"type {text!r}"

    async def click(self) -> str:
        width, height = self.app.size
        at = (self.dice.randrange(width), self.dice.choice((0, 1, height - 1, self.dice.randrange(height))))
        times = self.dice.choice((1, 1, 1, 2, 3))
        await self.pilot.click(offset=(at[0], min(at[1], height - 1)), times=times)
        return f"click {at} x{times}"

    async def wheel(self) -> str:
        width, height = self.app.size
        at = (self.dice.randrange(width), self.dice.randrange(height))
        kind = self.dice.choice((events.MouseScrollDown, events.MouseScrollUp, events.MouseMove))
        await self.pilot._post_mouse_events([kind], offset=at)
        return f"{kind.__name__} {at}"

    async def resize(self) -> str:
        size = self.dice.choice(SIZES)
        await self.pilot.resize_terminal(*size)
        return f"resize {size}"

    async def command(self) -> str:
        from tui import commands

        names = [
            c.name for c in commands.available(self.app) if c.name not in LEFT_OUT and c.name not in ("open", "nodes")
        ]
        line = f"{self.dice.choice((*names, 'nonsense', 'q?'))} {self.dice.choice(WORDS)}".strip(" ")
        return await self.say(line)

    async def say(self, line: str) -> str:
        """As it is typed behind the colon."""
        if self.app.screen is not self.app.workspace:
            return f"no room for :{line}"
        typed = self.app.workspace.query_one(CommandLine)
        typed.open(":", line)
        await self.pilot.pause()
        assert typed.region.height == 1
        assert typed.line.value == line
        await self.pilot.press("enter")
        return f":{line}"

    async def open(self) -> str:
        return await self.say(f"open '{self.dice.choice(self.sources)}'")

    async def ask(self) -> str:
        sentence = self.dice.choice(SENTENCES)
        self.app.ask(sentence)
        await self.pilot.pause()
        return f"ask {sentence!r}"

    async def theme(self) -> str:
        self.app.choose_theme(theme := self.dice.choice(("dark", "light", "contrast")))
        return f"theme {theme}"

    async def language(self) -> str:
        self.app.choose_language(lang := self.dice.choice(("en", "zh")))
        return f"language {lang}"

    async def wait(self) -> str:
        await asyncio.sleep(seconds := self.dice.choice((0.02, 0.1, 0.4)))
        return f"wait {seconds}"

    # --- what must hold -------------------------------------------------------------------

    async def look(self) -> None:
        """Look whether all is well."""
        await self.pilot.pause()
        assert self.app._exception is None
        trouble = self.app.desk.picture.trouble
        assert "this is a bug" not in trouble, trouble
        assert "内部错误" not in trouble, trouble
        for turn in self.app.workspace.chat.transcript.turns:
            assert "this is a bug" not in turn.trouble, turn.trouble
            assert "内部错误" not in turn.trouble, turn.trouble
        try:
            await until(self.pilot, self._agrees, 10)
        except AssertionError as error:
            error.add_note(f"{self.app.desk.picture.diagnosis and self.app.desk.picture.diagnosis.verdict}")
            raise
        self._inside()

    def _agrees(self) -> bool:
        """The first line says what the picture says: no verdict of another source, or of another moment."""
        diagnosis = self.app.desk.picture.diagnosis
        said = str(self.app.workspace.query_one(Banner).render())
        if diagnosis is None:
            return True
        return diagnosis.verdict.text.in_(self.app.desk.lang)[:SEEN] in said

    def _inside(self) -> None:
        """Nothing stands beside the screen, and no line is longer or shorter than the screen is wide."""
        width, height = self.app.size
        strips = self.app.screen._compositor.render_strips()
        assert len(strips) == height
        for strip in strips:
            assert strip.cell_length == width, (strip.cell_length, width, strip.text)
        room = self.app.screen.region
        for kind in (Banner, ScreenTabs, CommandLine, KeyHints, ReplayBar):
            widget = self.app.workspace.query_one(kind)
            if widget.display and height >= 8:
                assert room.contains_region(widget.region), (kind.__name__, widget.region, room)
        for side in ("#left", "#right"):
            widget = self.app.workspace.query_one(side)
            if widget.display:
                assert widget.region.right <= width, (side, widget.region, room)

    async def come_back(self) -> None:
        """Esc takes everything away that is open, and then the app is as usable as ever."""
        if self.app.size.height < 8:
            await self.pilot.resize_terminal(80, 24)
        for _ in range(8):
            await self.pilot.press("escape")
        assert self.app.screen is self.app.workspace
        assert not self.app.workspace.query_one(CommandLine).is_open
        for spec in screens():
            await self.pilot.press(f"alt+{spec.place}")
            assert self.app.workspace.name_shown == spec.name
            await self.look()
        await self.pilot.press("alt+1")
        line = self.app.workspace.query_one(Sentence)
        assert self.app.focused is line
        before = line.text
        await self.pilot.press("j")
        assert len(line.text) == len(before) + 1


async def walk(folder: Path, seed: int, steps: int) -> None:
    """One seed: an app of its own. An AssertionError tells how it came about."""
    dice = random.Random(seed)
    words = dice.choice((BUS, ("--bundle", _story()), ("--log", str(DEMOS / "double-bit-error" / "kern.log"))))
    size, lang = dice.choice(SIZES), dice.choice(("en", "zh"))
    threads = set(threading.enumerate())
    raised: list[Any] = []
    before, threading.excepthook = threading.excepthook, raised.append
    monkey: Monkey | None = None
    try:
        async with running(folder, *words, size=size, lang=lang) as pilot:
            monkey = Monkey(pilot, folder, seed)
            await monkey.walk(steps)
            await monkey.come_back()
            shown = screen(monkey.app)
        assert shown
        for _ in passing(LEAVE):
            if not (left := _ours(threads)):
                break
            await asyncio.sleep(0.02)
        assert not left, left
        assert not raised, raised
    except BaseException as error:
        done = "\n  ".join(monkey.done) if monkey is not None else ""
        error.add_note(f"seed {seed}, {' '.join(words)}, {size}, {lang}:\n  {done}")
        raise
    finally:
        threading.excepthook = before


def _ours(before: set[threading.Thread]) -> list[threading.Thread]:
    """Threads that were not there before; those of the event loop are its own."""
    return [t for t in threading.enumerate() if t not in before and not t.name.startswith("asyncio")]


@pytest.mark.parametrize("seed", range(SEEDS))
async def test_a_monkey_breaks_nothing(tmp_path: Path, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    await walk(tmp_path, seed, STEPS)


def _main(first: int, seeds: int, steps: int) -> None:
    import os
    import traceback

    broken = 0
    for seed in range(first, first + seeds):
        with tempfile.TemporaryDirectory() as folder:
            os.chdir(folder)
            begun = time.monotonic()
            try:
                asyncio.run(walk(Path(folder), seed, steps))
            except BaseException:  # noqa: BLE001 - the next seed may find something else
                broken += 1
                traceback.print_exc()
            os.chdir("/")
            print(f"seed {seed}: {time.monotonic() - begun:.1f} s", flush=True)
    print(f"{broken} of {seeds} broken")


if __name__ == "__main__":
    _main(*(int(word) for word in sys.argv[1:4]))
