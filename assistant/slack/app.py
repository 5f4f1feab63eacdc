"""Bolt's side: what comes in is acknowledged at once and handed to the bot. Nothing is done before Slack has its acknowledgement."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from slack_bolt.async_app import AsyncApp

from assistant.slack import heard as told

if TYPE_CHECKING:
    from slack_sdk.web.async_client import AsyncWebClient

    from assistant.slack.bot import Bot
    from assistant.slack.heard import Heard

_OURS = re.compile(re.escape(told.PREFIX) + ".*")


def app(client: AsyncWebClient, signing_secret: str, bot: Callable[[], Bot]) -> AsyncApp:
    """The listeners. `signing_secret`: empty over Socket Mode, where nothing needs signing; `bot` gives the bot once it is made."""
    listening = AsyncApp(
        client=client, signing_secret=signing_secret or None, request_verification_enabled=bool(signing_secret),
        ignoring_self_events_enabled=True,
    )  # fmt: skip

    def hear(found: Heard | None) -> None:
        """Beside Bolt: a listener that takes long would hold up the next one."""
        if found is not None:
            bot().spawn(bot().hear(found))

    @listening.command(re.compile(".*"))
    async def on_command(ack: Any, body: Mapping[str, Any]) -> None:
        await ack()
        hear(told.command(body))

    @listening.event("app_mention")
    async def on_mention(ack: Any, body: Mapping[str, Any]) -> None:
        await ack()
        hear(told.sentence(body, bot().user))

    @listening.event("message")
    async def on_message(ack: Any, body: Mapping[str, Any]) -> None:
        await ack()
        hear(told.sentence(body, bot().user))

    @listening.event("app_home_opened")
    async def on_home(ack: Any, body: Mapping[str, Any]) -> None:
        await ack()
        hear(told.home(body))

    @listening.action(_OURS)
    async def on_action(ack: Any, body: Mapping[str, Any]) -> None:
        await ack()
        hear(told.press(body))

    @listening.view(_OURS)
    async def on_form(ack: Any, body: Mapping[str, Any]) -> None:
        await ack()
        hear(told.form(body))

    @listening.event(re.compile(".*"))
    async def on_anything(ack: Any) -> None:
        """What the manifest subscribes to and we need not: files that are shared come with their message, too."""
        await ack()

    return listening
