"""The whole bot in a test: the real Bolt and slack_sdk over loopback against `tests.slack_lab`, on this machine as ``gpu-12``."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from assistant.config import Dialogue, History, Machine, Output, Settings
from assistant.config import Slack as SlackSection
from assistant.slack.bot import Bot
from assistant.slack.serve import running
from assistant.slack.tokens import Tokens
from rules.loader import RuleSet
from tests import slack_payloads as sent
from tests.slack_blocks import faults
from tests.slack_lab import Slack
from tests.slack_shapes import Message

NODE = "gpu-12"
POLICY = f"""
channels = ["C1", "C2", "direct"]

[roles.oncall]
users = ["U1", "U2"]
groups = ["S1"]
see = ["users", "command-lines"]

[roles.lead]
users = ["U9"]

[grants.looks]
roles = ["oncall", "lead"]
run = ["*"]
nodes = ["{NODE}"]
cost = "heavy"

[grants.tests]
roles = ["oncall"]
run = ["test:*"]
nodes = ["{NODE}"]
cost = "heavy"
risk = "disruptive"
privileged = true
approvers = ["lead"]
"""
KERNEL_LOG = (
    "[ 1042.123456] NVRM: Xid (PCI:0000:3b:00): 79, pid=4242, name=python, GPU has fallen off the bus.\n"
    "[ 1042.123460] NVRM: GPU 0000:3b:00.0: GPU has fallen off the bus.\n"
    "[ 1042.223456] NVRM: Xid (PCI:0000:3b:00): 154, GPU recovery action changed from 0x0 (None) to 0x2 (Node Reboot Required)\n"
)


@cache
def ruleset() -> RuleSet:
    from rules.loader import load

    return load()


def settings(folder: Path, slack: Slack, policy: str = POLICY) -> Settings:
    """Everything below `folder`."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "policy.toml").write_text(policy)
    (folder / "inventory.toml").write_text("")
    return Settings(
        Output("en"), machine=Machine(name=NODE, state_dir=folder / "state"), cache_dir=None,
        history=History(f"sqlite:///{folder}/history.db"), dialogue=Dialogue(7), inventory=folder / "inventory.toml",
        policy_file=folder / "policy.toml", slack=SlackSection(api=slack.base_url),
    )  # fmt: skip


@dataclass
class Lab:
    """Slack, the bot, and how people use the one and look at what the other says."""

    slack: Slack
    bot: Bot
    where: str

    async def command(self, text: str, *, user: str = "U1", channel: str = "C1") -> str:
        """`/gpudiag text`: the time stamp of the message that begins its thread."""
        before = set(self.said(channel))
        url = self.slack.response_url(channel, user)
        await self.slack.envelope(
            "slash_commands", sent.slash_command("/gpudiag", text, user=user, channel=channel, response_url=url)
        )
        await self.slack.until(lambda: set(self.said(channel)) - before, 30)
        return next(iter(set(self.said(channel)) - before))

    async def mention(
        self, text: str, *, user: str = "U1", channel: str = "C1", thread: str = "", resend: int = 0
    ) -> str:  # fmt: skip
        """A message that names the bot: its own time stamp. `resend`: how often Slack sends it again where nobody acknowledges."""
        said = self.slack.say(f"<@{sent.BOT_USER}> {text}", user=user, channel=channel, thread_ts=thread)
        await self.slack.envelope(
            "events_api",
            sent.app_mention(text, user=user, channel=channel, ts=said.ts, thread_ts=thread),
            resend=resend,
        )
        return said.ts

    async def write(
        self, text: str, *, user: str = "U1", channel: str = "C1", thread: str = "", files: Any = ()
    ) -> str:
        """A message that names nobody."""
        said = self.slack.say(text, user=user, channel=channel, thread_ts=thread)
        kind = "im" if channel.startswith("D") else "channel"
        await self.slack.envelope(
            "events_api",
            sent.message(text, user=user, channel=channel, ts=said.ts, thread_ts=thread, files=files, channel_type=kind),
        )  # fmt: skip
        return said.ts

    async def press(
        self, message: Message, kind: str, *, user: str = "U1", which: int = 0, old: dict[str, Any] | None = None
    ) -> None:  # fmt: skip
        """Press a button of a message; `old`: one that stood there before, on somebody's screen still."""
        button = old or buttons(message, kind)[which]
        await self.slack.envelope("interactive", sent.block_actions(
            button["action_id"], button["value"], user=user, channel=message.channel, message_ts=message.ts,
            thread_ts=message.thread_ts, response_url=self.slack.response_url(message.channel, user),
        ))  # fmt: skip

    def said(self, channel: str = "C1", thread: str = "") -> dict[str, Message]:
        """What the bot said openly outside of any thread, or in one."""
        return {
            m.ts: m for m in list(self.slack.messages)
            if m.channel == channel and m.user == sent.BOT_USER and not m.to and m.thread_ts == thread
        }  # fmt: skip

    def whispers(self, user: str) -> list[Message]:
        """What only this person saw."""
        return [m for m in list(self.slack.messages) if m.to == user]

    async def answer(
        self, thread: str, *, channel: str = "C1", after: int = 0, seconds: float = 60.0,
        such: Callable[[Message], bool] = lambda _: True,
    ) -> Message:  # fmt: skip
        """The next answer in a thread: a message that no longer tells how far a look is."""

        def found() -> list[Message]:
            done = [m for m in self.said(channel, thread).values() if not buttons(m, "cancel") and such(m)]
            return done[after:]

        await self.slack.until(found, seconds)
        message = found()[0]
        assert not faults(message.blocks), faults(message.blocks)
        return message


def words(message: Message) -> str:
    """All that a message shows, as running text."""
    out: list[str] = []

    def walk(value: Any) -> None:
        if isinstance(value, dict):
            if value.get("type") in ("text", "plain_text", "mrkdwn"):
                out.append(str(value.get("text")) if isinstance(value.get("text"), str) else "")
            for key in ("elements", "text", "blocks"):
                if isinstance(value.get(key), list | dict):
                    walk(value[key])
        elif isinstance(value, list):
            for one in value:
                walk(one)

    walk(message.blocks)
    return "\n".join(out)


def buttons(message: Message, kind: str) -> list[dict[str, Any]]:
    """The buttons of one kind."""
    return [
        e for block in message.blocks if block.get("type") == "actions" for e in block["elements"]
        if e["action_id"].removeprefix("gpudiag.").partition(".")[0] == kind
    ]  # fmt: skip


@asynccontextmanager
async def lab(
    folder: Path, slack: Slack, *, http: bool = False, policy: str = POLICY, given: Settings | None = None
) -> AsyncIterator[Lab]:  # fmt: skip
    """The bot, running against `slack`."""
    tokens = Tokens(slack.bot_token, slack.app_token, slack.signing_secret if http else "")
    way = ("127.0.0.1", 0) if http else None
    async with running(given or settings(folder, slack, policy), ruleset(), tokens, http=way, pace=0.05) as ready:
        if not http:
            await slack.until(lambda: slack.connected)
        yield Lab(slack, ready.bot, ready.where)


async def quiet(seconds: float = 0.5) -> None:
    """Long enough for something to happen that must not."""
    await asyncio.sleep(seconds)
