"""An answer in other words in the app: it appears below the answer, moves nothing, and what does not pass is never seen."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from assistant.config import Llm
from tests.llm_lab import Model, serving, stand_in_python
from tests.tui.lab import BUS, app_of, arguments, until
from tui.app import GpudiagApp
from tui.widgets.rows import LETTERED, LETTERS, plain

pytestmark = pytest.mark.process

TRUE = json.dumps({"sentences": [{"text": "{gpu_1} has fallen off the bus.", "cites": ["f1"]}]})
SLOTS = json.dumps({"intent": "explain", "slots": {"xid": [79]}})
LIE = json.dumps({"sentences": [{"text": "[bold]All is well.[/bold]", "cites": ["f1"]}]})


@pytest.fixture
def server() -> Iterator[Model]:
    with serving() as model:
        yield model


def held(text: str) -> tuple[Callable[[Mapping[str, Any]], str], threading.Event]:
    """What the model says, once it may: what was on the screen before has then been looked at."""
    may = threading.Event()

    def said(_: Mapping[str, Any]) -> str:
        may.wait(60)
        return text

    return said, may


def with_model(server: Model, folder: Path) -> GpudiagApp:
    """The app on a recorded incident, with a model set."""
    args = arguments(folder, *BUS)
    args.settings = args.settings._replace(llm=Llm("openai/m", server.base, python=stand_in_python(), deadline=60))
    return GpudiagApp(args)


async def test_it_appears_below_the_answer_and_what_was_meant_is_asked(server: Model, tmp_path: Path) -> None:
    server.text, may = held(TRUE)
    app = with_model(server, tmp_path)
    async with app.run_test(size=(120, 40)) as pilot:
        assert app_of(pilot) is app
        await until(pilot, lambda: app.desk.picture.diagnosis is not None)
        transcript = app.workspace.chat.transcript

        def rows(n: int) -> list[str]:
            return [plain(row) for row in transcript.turns[n].rows(100, app.t, "en", live=False)[0]]

        app.ask("is this node healthy?")
        await until(pilot, lambda: transcript.turns[-1].shown is not None)
        first = len(transcript.turns) - 1
        before = rows(first)
        may.set()
        await until(pilot, lambda: bool(transcript.turns[first].retold[1]), 60)
        after = rows(first)
        assert after[: len(before)] == before
        added = "\n".join(after[len(before) :])
        assert "put together by openai/m" in added
        assert "GPU 5 (0000:ba:00.0) has fallen off the bus." in added
        server.text, requests = LIE, len(server.requests)
        app.ask("can it be used?")
        await until(pilot, lambda: transcript.turns[-1].shown is not None and len(transcript.turns) > first + 1)
        await until(pilot, lambda: len(server.requests) > requests, 60)
        await until(pilot, lambda: not any(j.running for j in app.jobs._jobs if j.thread.name == "narration"), 60)
        assert transcript.turns[-1].retold == ("", "")
        narrator = app.workspace.chat._narration._narrator
        assert narrator is not None
        # what a sentence may have meant is asked, and not done
        server.text, may = held(SLOTS)
        turns = len(transcript.turns)
        app.ask("zork flum 79")
        await until(pilot, lambda: len(transcript.turns) > turns and transcript.turns[-1].shown is not None)
        asked = transcript.turns[-1]
        before = [plain(row) for row in asked.rows(100, app.t, "en", live=True)[0]]
        may.set()
        await until(pilot, lambda: asked.meant is not None, 60)
        after = [plain(row) for row in asked.rows(100, app.t, "en", live=True)[0]]
        assert after[: len(before)] == before
        assert "Did you mean: explain xid 79?" in "\n".join(after[len(before) :])
        assert transcript.turns[-1] is asked  # nothing was asked by itself
        stops = asked.rows(100, app.t, "en", live=True)[1]
        letters = [s for s in stops if s.kind in LETTERED]
        await pilot.press(f"alt+{LETTERS[len(letters) - 1]}")  # the last letter is the suggestion's
        await until(pilot, lambda: transcript.turns[-1] is not asked and transcript.turns[-1].shown is not None)
        assert "XID 79" in "\n".join(plain(row) for row in transcript.turns[-1].rows(100, app.t, "en", live=True)[0])
        assert "Did you mean" not in "\n".join(plain(row) for row in asked.rows(100, app.t, "en", live=False)[0])
    assert narrator._worker is not None
    assert narrator._worker.pid is None  # its process ended with the app
