"""The whole bot over loopback: the real Bolt and slack_sdk, the real session, this machine."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path

import pytest

pytest.importorskip("slack_bolt")

from tests import slack_payloads as sent
from tests.slack_bot import KERNEL_LOG, buttons, lab, quiet, words
from tests.slack_lab import Slack


async def test_a_command_begins_a_thread_and_ends_with_the_verdict(slack: Slack, tmp_path: Path) -> None:
    async with lab(tmp_path, slack) as here:
        root = await here.command("explain xid 79")
        answer = await here.answer(root)
        assert "79" in words(answer)
        await slack.until(lambda: not buttons(here.said()[root], "cancel"))
        assert words(here.said()[root]).startswith("u1: ")
        assert "explain xid 79" in words(here.said()[root])


@pytest.mark.process
async def test_a_check_of_this_machine(slack: Slack, tmp_path: Path) -> None:
    async with lab(tmp_path, slack) as here:
        root = await here.command("check gpu-12")
        answer = await here.answer(root)
        assert buttons(answer, "why")
        assert answer.text
        kinds = [r.kind for r in here.bot.journal.records()]
        assert kinds[:2] == ["intent", "result"]


async def test_a_pasted_log_and_what_follows_in_its_thread(slack: Slack, tmp_path: Path) -> None:
    async with lab(tmp_path, slack) as here:
        thread = await here.mention(f"what is this?\n```\n{KERNEL_LOG}```")
        answer = await here.answer(thread)
        assert "fallen off the bus" in words(answer)
        await here.press(answer, "why")
        why = await here.answer(thread, after=1)
        assert why.blocks != answer.blocks
        await here.write("can I keep using it?", thread=thread)
        usable = await here.answer(thread, after=2)
        assert "no" in usable.text.lower()
        await here.write("lunch anybody", thread=thread)
        await quiet()
        assert len(here.said("C1", thread)) == 3
        # Somebody else goes on where the thread stands.
        await here.write("如何得知？", user="U3", thread=thread)
        zh = await here.answer(thread, after=3)
        assert any("\u4e00" <= c <= "\u9fff" for c in words(zh))


async def test_who_may_not_turn_to_it_is_told_and_nothing_is_run(slack: Slack, tmp_path: Path) -> None:
    async with lab(tmp_path, slack) as here:
        for user, channel in (("U4", "C1"), ("U1", "C9")):
            thread = await here.mention("check gpu-12", user=user, channel=channel)
            await slack.until(partial(here.whispers, user), 20)
            assert not here.said(channel, thread)
        assert not here.bot.journal.records()


async def test_where_it_is_no_member_it_says_so_to_who_asked(slack: Slack, tmp_path: Path) -> None:
    slack.add_channel("C2", member=False)
    async with lab(tmp_path, slack):
        url = slack.response_url("C2", "U1")
        await slack.envelope(
            "slash_commands", sent.slash_command("/gpudiag", "check gpu-12", channel="C2", response_url=url)
        )
        await slack.until(lambda: slack.answers(url), 20)
        (told,) = slack.answers(url)
        assert "/invite @gpudiag" in json.dumps(told)
        assert told["response_type"] == "ephemeral"


async def test_no_file_of_this_machine_is_opened_or_written_for_a_chat(slack: Slack, tmp_path: Path) -> None:
    secret = tmp_path / "secret.log"
    secret.write_text(KERNEL_LOG)
    async with lab(tmp_path, slack) as here:
        for text in (f"what is wrong in {secret}?", f"diagnose {secret}", f"read {secret}"):
            thread = await here.mention(text)
            answer = await here.answer(thread)
            assert "fallen" not in words(answer)
        thread = await here.mention(f"```\n{KERNEL_LOG}```")
        await here.answer(thread)
        await here.write(f"export as html to {tmp_path}/stolen.html", thread=thread)
        told = await here.answer(thread, after=1)
        assert str(tmp_path) not in words(told)
        await slack.until(lambda: slack.files, 20)
        assert not list(tmp_path.glob("stolen*"))
