"""What a bot lives through: copies of the same event, other people, reconnects, the kill -9 in the middle, the giving up."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections import Counter
from concurrent.futures import Future
from pathlib import Path

import pytest

pytest.importorskip("slack_bolt")


from aiohttp import ClientSession

from assistant.slack.nodes import What
from tests import slack_payloads as sent
from tests.conftest import ROOT
from tests.slack_bot import KERNEL_LOG, POLICY, Lab, buttons, lab, quiet, settings, words
from tests.slack_lab import Slack


def answers(here: Lab) -> list[str]:
    return [m.text for m in here.said().values()]


async def test_copies_of_an_event_are_answered_once(slack: Slack, tmp_path: Path) -> None:
    async with lab(tmp_path, slack) as here:
        said = slack.say(f"<@{sent.BOT_USER}> explain xid 79")
        one = sent.app_mention("explain xid 79", ts=said.ts)
        same = sent.message(f"<@{sent.BOT_USER}> explain xid 79", ts=said.ts)  # a mention comes as a message, too
        for payload in (one, same, one, dict(one, event_id="EvOTHER")):
            await slack.envelope("events_api", payload)
        await here.answer(said.ts)
        command = sent.slash_command("/gpudiag", "explain xid 48", response_url=slack.response_url())
        for _ in range(3):
            await slack.envelope("slash_commands", command)
        await slack.until(lambda: answers(here), 20)
        await quiet(1.0)
        assert len(here.said("C1", said.ts)) == 1
        assert len(here.said()) == 1


async def test_what_was_heard_before_a_restart_is_known_after_it(slack: Slack, tmp_path: Path) -> None:
    command = sent.slash_command("/gpudiag", "explain xid 48", response_url=slack.response_url())
    async with lab(tmp_path, slack) as here:
        await slack.envelope("slash_commands", command)
        await slack.until(here.said, 20)
        (root,) = here.said()
        await here.answer(root)
        thread = await here.mention(f"```\n{KERNEL_LOG}```")
        await here.answer(thread)
    async with lab(tmp_path, slack) as here:
        await slack.envelope("slash_commands", command)
        await here.write("can I keep using it?", thread=thread)  # the thread is as it was
        usable = await here.answer(thread, after=1)
        assert "no" in usable.text.lower()
        assert len(here.said()) == 1


async def test_a_broken_line_is_made_again(slack: Slack, tmp_path: Path) -> None:
    async with lab(tmp_path, slack) as here:
        for breaking in (slack.disconnect, slack.cut):
            breaking()
            thread = await here.mention("explain xid 79", resend=5)  # what was sent into the gap comes again
            await here.answer(thread)
            await quiet(0.3)
            assert len(here.said("C1", thread)) == 1


async def test_it_waits_as_long_as_slack_says(slack: Slack, tmp_path: Path) -> None:
    async with lab(tmp_path, slack) as here:
        slack.limit("chat.postMessage", times=2, retry_after=1)
        thread = await here.mention("explain xid 79")
        await here.answer(thread)
        refused = [c for c in slack.calls if c.method == "chat.postMessage" and c.error]
        taken = [c for c in slack.calls if c.method == "chat.postMessage" and not c.error]
        assert len(refused) == 2
        assert taken[0].at - refused[-1].at >= 1.0


@pytest.mark.process
async def test_the_status_is_edited_no_more_than_once_a_pace_and_ends_with_the_verdict(
    slack: Slack, tmp_path: Path
) -> None:
    async with lab(tmp_path, slack) as here:
        here.bot.poster._pace = 0.4
        root = await here.command("check gpu-12")
        await here.answer(root)
        await slack.until(lambda: not buttons(here.said()[root], "cancel"), 20)
        at = [c.at for c in slack.calls if c.method == "chat.update" and c.args.get("ts") == root]
        # over all of them: on a starved machine one arrives late, and the next one seems to follow at once
        assert (len(at) - 1) * 0.4 <= at[-1] - at[0] + 0.4


async def test_a_turn_is_given_up_by_its_asker_alone(slack: Slack, tmp_path: Path) -> None:
    async with lab(tmp_path, slack) as here:
        # the real queue; the machine is kept busy by a look of somebody else
        free: Future[None] = Future()
        started: Future[None] = Future()

        def busy(tell: object) -> object:
            started.set_result(None)
            free.result(60)
            raise RuntimeError("over")

        async def hold() -> None:
            with pytest.raises(RuntimeError):
                await asyncio.to_thread(
                    here.bot.turns.nodes.look, "gpu-12", What(frozenset({"x"})), "U9", busy,  # type: ignore[arg-type]
                    tell=lambda _: None, check=lambda: None,
                )  # fmt: skip

        holding = asyncio.create_task(hold())
        await asyncio.wrap_future(started)
        root = await here.command("check gpu-12")
        await slack.until(lambda: "waiting" in words(here.said()[root]), 20)
        await here.press(here.said()[root], "cancel", user="U2")
        await slack.until(lambda: here.whispers("U2"), 20)
        await here.press(here.said()[root], "cancel", user="U1")
        await slack.until(lambda: "cancelled" in words(here.said()[root]), 20)
        free.set_result(None)
        await holding
        await quiet()
        assert not here.said("C1", root)
        assert not [r for r in here.bot.journal.records() if r.kind == "intent"]  # nothing was run


@pytest.mark.process
async def test_the_same_look_is_shared(slack: Slack, tmp_path: Path) -> None:
    async with lab(tmp_path, slack) as here:
        roots = await asyncio.gather(*(here.mention("check gpu-12", user=user) for user in ("U1", "U2", "U1", "U2")))
        for root in roots:
            await here.answer(root)
        kinds = Counter(r.kind for r in here.bot.journal.records())
        assert kinds["intent"] + kinds["note"] >= 4
        assert kinds["intent"] == kinds["result"]
        assert kinds["note"], "nobody joined"


async def test_nobody_has_more_than_their_share_under_way(slack: Slack, tmp_path: Path) -> None:
    from assistant.slack import turns

    async with lab(tmp_path, slack) as here:
        threads = await asyncio.gather(*(here.mention(f"explain xid {n}") for n in range(31, 31 + turns.WAITING + 4)))
        await slack.until(
            lambda: len(here.whispers("U1")) + sum(bool(here.said("C1", t)) for t in threads) == len(threads), 40
        )
        answered = sum(bool(here.said("C1", t)) for t in threads)
        assert answered >= turns.WAITING
        assert all("under way" in words(m) for m in here.whispers("U1"))


@pytest.mark.slow
async def test_fifty_people_at_once_each_have_their_own_answer(slack: Slack, tmp_path: Path) -> None:
    people = [f"U{n}" for n in range(100, 150)]
    for user in people:
        slack.add_user(user, name=user.lower(), locale="zh-CN" if int(user[1:]) % 5 == 0 else "en-US")
    slack.add_group("S1", people)
    codes = (13, 31, 43, 45, 48, 63, 64, 74, 79, 94)
    slack.limit("chat.postMessage", times=5, retry_after=1)
    async with lab(tmp_path, slack) as here:

        async def one(n: int, user: str) -> None:
            code = codes[n % len(codes)]
            if n % 3 == 0:
                thread = await here.mention(
                    f"```\n{KERNEL_LOG.replace('Xid (PCI:0000:3b:00): 79', f'Xid (PCI:0000:3b:00): {code}')}```",
                    user=user,
                )
                answer = await here.answer(thread, seconds=90)
                assert buttons(answer, "why")
            else:
                words_ = f"xid {code} 是什么" if int(user[1:]) % 5 == 0 else f"explain xid {code}"
                thread = await here.mention(words_, user=user)
                answer = await here.answer(thread, seconds=90)
            assert str(code) in words(answer)
            assert any("\u4e00" <= c <= "\u9fff" for c in words(answer)) == (int(user[1:]) % 5 == 0)
            assert len(here.said("C1", thread)) == 1

        await asyncio.gather(*(one(n, user) for n, user in enumerate(people)))
        assert not here.said()


@pytest.mark.process
async def test_over_http_only_what_slack_signed_now_is_heard(slack: Slack, tmp_path: Path) -> None:
    async with lab(tmp_path, slack, http=True) as here, ClientSession() as session:
        payload = sent.slash_command("/gpudiag", "explain xid 79", response_url=slack.response_url())
        body, kind = sent.http_body("slash_commands", payload)

        async def post(body: str, headers: dict[str, str]) -> int:
            async with session.post(here.where, data=body, headers={"Content-Type": kind, **headers}) as got:
                return got.status

        import time

        good = sent.sign(slack.signing_secret, body)
        assert await post(body, {}) == 401
        assert await post(body, sent.sign("another secret", body)) == 401
        assert await post(body.replace("79", "48"), good) == 401
        assert await post(body, sent.sign(slack.signing_secret, body, time.time() - 600)) == 401
        await quiet(0.3)
        assert not here.said()
        assert [await post(body, good) for _ in range(3)] == [200, 200, 200]  # Bolt takes a replay; the bot does not
        await slack.until(here.said, 20)
        (root,) = here.said()
        await here.answer(root)
        await quiet(0.5)
        assert len(here.said()) == 1


# --- killed -------------------------------------------------------------------------------


def started(folder: Path, slack: Slack, policy: str = POLICY, **environ: str) -> subprocess.Popen[str]:
    """`gpudiag slack` as users run it."""
    given = settings(folder, slack, policy)
    env = os.environ | {
        "GPUDIAG_SLACK_BOT_TOKEN": slack.bot_token, "GPUDIAG_SLACK_APP_TOKEN": slack.app_token,
        "GPUDIAG_SLACK_API": slack.base_url, "GPUDIAG_POLICY_FILE": str(given.policy_file),
        "GPUDIAG_INVENTORY": str(given.inventory), "GPUDIAG_STATE_DIR": str(folder / "state"),
        "GPUDIAG_HISTORY_URL": given.history.url, "GPUDIAG_HOST_NAME": "gpu-12", "GPUDIAG_LANG": "en", **environ,
    }  # fmt: skip
    return subprocess.Popen(
        [sys.executable, "-m", "assistant", "slack"], cwd=ROOT, env=env, text=True, stderr=subprocess.PIPE
    )


@pytest.mark.process
async def test_killed_in_the_middle_it_asks_again_and_says_so(slack: Slack, tmp_path: Path) -> None:
    here = Lab(slack, None, "")  # type: ignore[arg-type]  # the bot is a process of its own
    child = started(tmp_path, slack)
    try:
        await slack.until(lambda: slack.connected, 40)
        slack.delays["users.info"] = 1.5  # the turn is under way when the kill comes
        slash = sent.slash_command("/gpudiag", "check gpu-12", response_url=slack.response_url())
        await slack.envelope("slash_commands", slash)
        await asyncio.sleep(0.3)
        child.send_signal(signal.SIGKILL)
        child.wait(20)
        assert not here.said()
        slack.delays.clear()
        child = started(tmp_path, slack)
        await slack.until(here.said, 60)  # taken up by itself: Slack does not send a command twice
        (root,) = here.said()
        await here.answer(root)
        await quiet(0.5)
        assert len(here.said()) == 1
        child.send_signal(signal.SIGTERM)
        assert child.wait(20) == 0
    finally:
        child.kill()
        child.wait(20)


@pytest.mark.process
async def test_without_tokens_it_says_what_is_missing(slack: Slack, tmp_path: Path) -> None:
    env = {k: v for k, v in os.environ.items() if not k.startswith("GPUDIAG_SLACK")} | {
        "GPUDIAG_LANG": "en",
        "HOME": str(tmp_path),
    }
    done = subprocess.run(
        [sys.executable, "-m", "assistant", "slack"],
        cwd=ROOT,
        env=env,
        text=True,
        capture_output=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 2
    assert "slack_bot_token is not set" in done.stderr
    assert "GPUDIAG_SLACK_BOT_TOKEN" in done.stderr
    assert json.dumps(done.stdout) == '""'
