"""Everything that the bot says: messages, edits of them, whispers, files, forms. In order, and as fast as Slack takes it.

Slack answers a client that is too fast with 429 and the seconds to wait: that is obeyed (`retrying`), and what would have been
an edit meanwhile is not sent late but replaced by the newer one. A message's edits are never out of order, and its last one
always arrives.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any

from aiohttp import ClientError
from slack_sdk.errors import SlackApiError, SlackClientError, SlackRequestError
from slack_sdk.http_retry.builtin_async_handlers import (
    AsyncConnectionErrorRetryHandler,
    AsyncRateLimitErrorRetryHandler,
    AsyncServerErrorRetryHandler,
)
from slack_sdk.web.async_client import AsyncWebClient

from assistant.slack.mrkdwn import POSTING
from knowledge.errors import GpudiagError
from knowledge.language import Text
from knowledge.text import excerpt

if TYPE_CHECKING:
    from assistant.slack.heard import Place
    from assistant.slack.page import Rendered

PACE = 1.0  # seconds between two edits of one message
TRIES = 3  # after 429, a broken connection, a server at fault
SILENCE = 20  # seconds without an answer of Slack
_HINTS = {
    "not_in_channel": Text("invite the bot to the channel: /invite @gpudiag", "请先将机器人邀请进频道：/invite @gpudiag"),
    "channel_not_found": Text("invite the bot to the channel: /invite @gpudiag", "请先将机器人邀请进频道：/invite @gpudiag"),
    "is_archived": Text("the channel is archived", "该频道已归档"),
    "missing_scope": Text("install the app again with the manifest of gpudiag slack manifest",
                          "请用 gpudiag slack manifest 的清单重新安装应用"),
    "invalid_auth": Text("the bot's token is not valid: see docs/slack.md", "机器人令牌无效：参见 docs/slack.md"),
    "token_revoked": Text("the bot's token was revoked: install the app again", "机器人令牌已被撤销：请重新安装应用"),
    "ratelimited": Text("Slack asks for a pause: try again in a minute", "Slack 要求放慢：请一分钟后重试"),
}  # fmt: skip


class SlackError(GpudiagError):
    """Slack did not take it. `code`: its own word."""

    def __init__(self, method: str, code: str, *, silent: bool = False) -> None:
        """`silent`: Slack gave no answer at all; `code` is what the line says then."""
        said = _HINTS.get(code, Text("", ""))
        lead = Text("Slack cannot be reached", "无法连接 Slack") if silent else Text("Slack refused", "Slack 拒绝了")
        mark = Text(f" ({method})", f"（{method}）") if silent else Text(f" {method}", f" {method}")
        super().__init__(f"{lead.en}{mark.en}: {code}", hint=said.en)
        told = f"{lead.in_('zh')}{mark.in_('zh')}：{code}"
        self.code, self._zh = code, told + (f"\n  {said.in_('zh')}" if said.en else "")

    def in_(self, language: str) -> str:
        """In a language."""
        return self._zh if language == "zh" else str(self)


def retrying(client: AsyncWebClient) -> AsyncWebClient:
    """The client, waiting as long as Slack says after 429, and trying again when the line or the server fails."""
    client.retry_handlers = [
        AsyncRateLimitErrorRetryHandler(max_retry_count=TRIES), AsyncConnectionErrorRetryHandler(max_retry_count=TRIES),
        AsyncServerErrorRetryHandler(max_retry_count=TRIES),
    ]  # fmt: skip
    return client


async def called(method: str, call: Awaitable[Any]) -> Any:
    """The answer to a call. SlackError for every way in which it can fail."""
    try:
        return await call
    except SlackApiError as error:
        raise SlackError(method, _word(error)) from error
    except (TimeoutError, SlackClientError, SlackRequestError, ClientError, OSError) as error:
        raise SlackError(method, excerpt(str(error), 200) or type(error).__name__, silent=True) from error


def _word(error: SlackApiError) -> str:
    found = error.response
    data = found.data if hasattr(found, "data") else found
    word = data.get("error") if isinstance(data, Mapping) else ""
    return excerpt(str(word or getattr(found, "status_code", "") or "no answer"), 80)


class _Edits:
    """The edits of one message: the newest that waits, and who waits for it."""

    def __init__(self) -> None:
        self.wanted: Rendered | None = None
        self.task: asyncio.Task[None] | None = None
        self.at = 0.0  # monotonic seconds: when the last one was sent


class Poster:
    """The bot's voice."""

    def __init__(self, client: AsyncWebClient, pace: float = PACE, clock: Callable[[], float] = time.monotonic) -> None:
        """`pace`: seconds between two edits of one message."""
        self._client, self._pace, self._clock = retrying(client), pace, clock
        self._edits: dict[tuple[str, str], _Edits] = {}
        self._turns: dict[tuple[str, str], asyncio.Lock] = {}

    async def post(self, place: Place, message: Rendered) -> str:
        """A message, in its thread where there is one; what is posted to one place first stands first. Its time stamp."""
        async with self._turn(place):
            found = await called("chat.postMessage", self._client.chat_postMessage(
                channel=place.channel, thread_ts=place.thread or None, blocks=message.blocks, text=message.text, **POSTING,
            ))  # fmt: skip
        return str(found["ts"])

    async def edit(self, place: Place, ts: str, message: Rendered) -> None:
        """Show `message` in place of what stands there. Returns when it, or a newer one, is shown."""
        key = (place.channel, ts)
        edits = self._edits.setdefault(key, _Edits())
        edits.wanted = message
        if edits.task is None:
            edits.task = asyncio.create_task(self._editing(place.channel, ts, edits))
        await asyncio.shield(edits.task)

    async def whisper(self, place: Place, user: str, message: Rendered) -> None:
        """Only this person sees it, and only now."""
        if place.direct:  # nobody else is there
            await self.post(place, message)
            return
        await called("chat.postEphemeral", self._client.chat_postEphemeral(
            channel=place.channel, user=user, thread_ts=place.thread or None, blocks=message.blocks, text=message.text,
            **{k: v for k, v in POSTING.items() if not k.startswith("unfurl")},
        ))  # fmt: skip

    async def upload(self, place: Place, name: str, content: bytes, title: str) -> None:
        """A file, in the thread where there is one."""
        await called("files.uploadV2", self._client.files_upload_v2(
            channel=place.channel, thread_ts=place.thread or None, content=content, filename=name, title=title,
        ))  # fmt: skip

    async def open(self, trigger: str, view: dict[str, Any]) -> None:
        """A form."""
        await called("views.open", self._client.views_open(trigger_id=trigger, view=view))

    async def publish(self, user: str, view: dict[str, Any]) -> None:
        """Somebody's home page."""
        await called("views.publish", self._client.views_publish(user_id=user, view=view))

    async def answer(self, url: str, message: Rendered) -> None:
        """Where the bot is no member: to the person who gave the command, through its response URL."""
        from slack_sdk.webhook.async_client import AsyncWebhookClient

        hook = AsyncWebhookClient(url, timeout=SILENCE)
        found = await called(
            "response_url", hook.send(text=message.text, blocks=message.blocks, response_type="ephemeral")
        )
        if found.status_code != 200:
            raise SlackError("response_url", excerpt(found.body, 80))

    # --- within -------------------------------------------------------------------------------

    def _turn(self, place: Place) -> asyncio.Lock:
        key = (place.channel, place.thread)
        if len(self._turns) > 10_000:  # of places in which nothing is said now
            self._turns = {k: lock for k, lock in self._turns.items() if lock.locked()}
        return self._turns.setdefault(key, asyncio.Lock())

    async def _editing(self, channel: str, ts: str, edits: _Edits) -> None:
        try:
            while edits.wanted is not None:
                if (wait := edits.at + self._pace - self._clock()) > 0:
                    await asyncio.sleep(wait)
                message, edits.wanted = edits.wanted, None
                edits.at = self._clock()
                await called("chat.update", self._client.chat_update(
                    channel=channel, ts=ts, blocks=message.blocks, text=message.text, parse="none", link_names=False,
                ))  # fmt: skip
        finally:
            edits.task = None
            if len(self._edits) > 1_000:
                old = self._clock() - 60
                self._edits = {k: e for k, e in self._edits.items() if e.task is not None or e.at > old}
