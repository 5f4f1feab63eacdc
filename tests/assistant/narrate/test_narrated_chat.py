"""Narration where somebody types: it appears above an empty prompt, never into a line, and a suggestion waits for a yes."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.assistant.session.terminal_lab import Terminal
from tests.command_server import CommandServer
from tests.conftest import ROOT, Gpudiag
from tests.llm_lab import Model, serving, stand_in_python

BUS = ("--bundle", str(ROOT / "assistant/demos/off-the-bus/bundle"))
TRUE = json.dumps({"sentences": [{"text": "{gpu_1} has fallen off the bus.", "cites": ["f1"]}]})
SLOTS = json.dumps({"intent": "explain", "slots": {"xid": ["79"]}})
GARBLED = "zork flum 79"  # no grammar reads it
OTHER = "In short (put together by openai/m"


@pytest.fixture(scope="module")
def server() -> Iterator[Model]:
    with serving() as model:
        yield model


def environment(folder: Path, server: Model, **more: str) -> dict[str, str]:
    return {
        "GPUDIAG_STATE_DIR": str(folder), "GPUDIAG_LLM_MODEL": "openai/m", "GPUDIAG_LLM_BASE": server.base,
        "GPUDIAG_LLM_PYTHON": stand_in_python(), "GPUDIAG_LLM_DEADLINE": "60", "GPUDIAG_HISTORY_URL": "off", **more,
    }  # fmt: skip


def said(body: Mapping[str, Any]) -> str:
    """What a model would answer to what it is asked for."""
    return SLOTS if '"slots"' in body["messages"][0]["content"] else TRUE


def test_it_appears_above_an_empty_prompt_and_a_yes_is_needed(
    server: Model, tmp_path: Path, command_server: CommandServer, clean_environment: dict[str, str]
) -> None:
    server.mode, server.text = "ok", said
    with Terminal(command_server, ["chat", *BUS], clean_environment | environment(tmp_path, server)) as there:
        there.prompt(0)
        before = len(there.seen)
        answer = there.say("is this node healthy?")
        assert "In short" not in answer  # the prompt stands, and nobody waited
        there.until(OTHER, before)
        assert there.prompt(before).endswith("fallen off the bus.\n\n> ")
        # while somebody types nothing is written; it comes once the line is empty again
        server.mode, server.seconds = "slow", 1.0
        before = len(there.seen)
        there.say("can it be used?")
        there.type("half a li")
        there.until("half a li", before)
        pause = time.monotonic() + 2.5
        while time.monotonic() < pause:
            there._read()
        assert "In short" not in there.seen[before:]
        there.type("\x15")
        there.until(OTHER, before)
        there.prompt(there.seen.rindex(OTHER))
        # a sentence that nobody understood
        server.mode = "ok"
        before = len(there.seen)
        there.say(GARBLED)
        there.until("Did you mean: ", before)
        there.prompt(there.seen.rindex("Did you mean: "))
        assert "understood: explain" not in there.seen[before:]
        assert "understood: explain" in there.say("y")
        assert "understood: explain" not in there.say("y")  # it was asked once
        there.type("\x04")
        assert there.end() == 0


def test_over_a_pipe_it_is_waited_for_where_it_is_asked_for(gpudiag: Gpudiag, server: Model, tmp_path: Path) -> None:
    server.mode, server.text = "ok", said
    env = environment(tmp_path, server)
    lines = f"is this node healthy?\n{GARBLED}\nno\n"
    off = gpudiag("chat", *BUS, "--new", stdin=lines, env=env)
    assert "In short" not in off.out
    on = gpudiag("chat", *BUS, "--new", "--narrate", stdin=lines, env=env)
    assert on.code == off.code == 0
    blocks = on.out.partition(OTHER)
    assert off.out.startswith(blocks[0].rstrip("\n"))
    assert blocks[2].partition(":\n\n")[2].startswith("GPU 5 (0000:ba:00.0) has fallen off the bus.\n\n")
    assert on.out.count("Did you mean: ") == 1
    assert "understood: explain" not in on.err
    rows = gpudiag("chat", *BUS, "--new", "--narrate", "--format", "json", stdin=f"{GARBLED}\nyes\n", env=env).out
    asked, then = (json.loads(line) for line in rows.splitlines())
    assert asked["narration"]["query"]["slots"] == {"xid": [79]}
    assert then["query"]["intent"] == "explain"
