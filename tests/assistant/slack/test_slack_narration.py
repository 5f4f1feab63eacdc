"""In Slack an answer in other words is a second message of its thread, in rich text; a suggestion is a button, and nothing else."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("slack_bolt")

from assistant.config import Llm
from tests.llm_lab import Model, serving, stand_in_python
from tests.slack_blocks import faults
from tests.slack_bot import KERNEL_LOG, lab, quiet, settings, words
from tests.slack_lab import Slack

TRUE = json.dumps({"sentences": [{"text": "{gpu_1} has probably fallen off the bus.", "cites": ["f1"]}]})
LIE = json.dumps({"sentences": [{"text": "All is well <!channel>, see https://evil.example", "cites": ["f1"]}]})
SLOTS = json.dumps({"intent": "explain", "slots": {"xid": ["79"]}})


@pytest.fixture
def slack() -> Iterator[Slack]:
    with Slack() as slack:
        slack.add_user("U1", name="u1")
        slack.add_group("S1", [])
        slack.add_channel("C1")
        yield slack


@pytest.fixture
def server() -> Iterator[Model]:
    with serving() as model:
        yield model


def said(body: Mapping[str, Any]) -> str:
    return SLOTS if '"slots"' in body["messages"][0]["content"] else TRUE


@pytest.mark.process
async def test_other_words_and_what_was_meant(slack: Slack, server: Model, tmp_path: Path) -> None:
    server.text = said
    llm = Llm("openai/m", server.base, python=stand_in_python(), deadline=60)
    given = settings(tmp_path, slack)._replace(llm=llm)
    async with lab(tmp_path, slack, given=given) as here:
        thread = await here.mention(f"what is this?\n```\n{KERNEL_LOG}```")
        answer = await here.answer(thread)
        assert "fallen off the bus" in words(answer)
        other = await here.answer(thread, after=1)
        assert "put together by openai/m" in words(other)
        assert "GPU 0000:3b:00.0 has probably fallen off the bus." in words(other)
        assert {block["type"] for block in other.blocks} == {"rich_text"}
        assert not faults(other.blocks)
        # what does not pass is not spoken of
        server.text = LIE
        thread = await here.mention(f"what is wrong?\n```\n{KERNEL_LOG}```")
        await here.answer(thread)
        asked = len(server.requests)
        await slack.until(lambda: len(server.requests) > asked - 1, 60)
        await quiet(1.0)
        assert len(here.said("C1", thread)) == 1
        assert "evil" not in json.dumps([m.blocks for m in slack.messages])
        # a mention that nobody understood: asked about, and answered after a yes
        server.text = said
        thread = await here.mention("zork flum 79")
        await here.answer(thread)
        question = await here.answer(thread, after=1)
        assert words(question).startswith("Did you mean: ")
        await quiet(0.5)
        assert len(here.said("C1", thread)) == 2
        await here.press(question, "meant")
        explained = await here.answer(thread, after=2)
        assert "79" in words(explained)
        assert "Did you mean" not in words(explained)
        pid = here.bot.turns._narrations._narrator
        assert pid is not None
    assert pid._worker is not None
    assert pid._worker.pid is None  # its process ended with the bot
