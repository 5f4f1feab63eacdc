"""Files and pasted logs through the whole bot: diagnosed in their thread, named as they were, and nowhere a path of the machine."""

from __future__ import annotations

import json
import tarfile
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("slack_bolt")

from tests import slack_payloads as sent
from tests.slack_bot import KERNEL_LOG, buttons, lab, words
from tests.slack_lab import Slack

ROOT = Path(__file__).parents[3]


@pytest.fixture
def slack() -> Iterator[Slack]:
    with Slack() as slack:
        slack.add_user("U1", name="u1")
        slack.add_user("U3", locale="zh-CN")
        slack.add_group("S1", ["U3"])
        slack.add_channel("C1")
        yield slack


async def test_uploads_are_diagnosed_and_exported_under_their_names(slack: Slack, tmp_path: Path) -> None:
    folder = tmp_path / "only-here"
    with tarfile.open(tmp_path / "b.tar.gz", "w:gz") as tar:
        tar.add(ROOT / "tests/tui/recordings/off-the-bus", "bundle")
    files = [slack.add_file("node seven.tar.gz", (tmp_path / "b.tar.gz").read_bytes())]
    files[0]["url_private_download"] = f"{slack.root}/files-pri/{sent.TEAM}-{files[0]['id']}/x"
    async with lab(folder, slack) as here:
        thread = await here.write(f"<@{sent.BOT_USER}> what is wrong?", files=files)
        answer = await here.answer(thread)
        assert "fallen off the bus" in words(answer)
        await here.press(answer, "evidence")
        await here.answer(thread, after=1)
        await here.press(answer, "export")
        await slack.until(lambda: sum(f.thread_ts == thread for f in slack.files.values()) == 2, 30)
        exported = [f for f in slack.files.values() if f.thread_ts == thread]
        assert {f.name.rpartition(".")[2] for f in exported} == {"html", "md"}
        whole = json.dumps([[m.text, m.blocks] for m in slack.messages]).encode()
        for text in (whole, *(f.content or b"" for f in exported)):
            assert b"only-here" not in text


async def test_what_cannot_be_read_is_said_beside_the_answer(slack: Slack, tmp_path: Path) -> None:
    good = slack.add_file("kern.log", KERNEL_LOG.encode())
    gone = slack.add_file("gone.log", KERNEL_LOG.encode())
    slack.files.pop(gone["id"])
    async with lab(tmp_path, slack) as here:
        thread = await here.write(f"<@{sent.BOT_USER}>", user="U3", files=[good, gone])
        answer = await here.answer(thread)
        assert "掉线" in words(answer)
        assert buttons(answer, "why")
        await slack.until(lambda: any("gone.log：" in words(m) for m in here.said("C1", thread).values()))
        alone = await here.write(f"<@{sent.BOT_USER}>", user="U3", files=[gone])
        await slack.until(lambda: any("gone.log：" in words(m) for m in here.whispers("U3")))
        assert not here.said("C1", alone)
