"""The line to Slack (Socket Mode), made again with growing pauses where it breaks; an outage is two lines of the log, whatever its length.

slack_sdk tries again every few seconds for ever, with a traceback each time, and with the address that failed.
"""

from __future__ import annotations

import asyncio
import logging
import random
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from slack_bolt.adapter.socket_mode.async_internals import run_async_bolt_app, send_async_response
from slack_sdk.socket_mode.aiohttp import SocketModeClient

from knowledge.text import excerpt

if TYPE_CHECKING:
    from slack_bolt.async_app import AsyncApp
    from slack_sdk.socket_mode.request import SocketModeRequest
    from slack_sdk.web.async_client import AsyncWebClient

FIRST, MOST = 1.0, 60.0  # seconds between two tries
ANSWER = 20.0  # seconds that one try may take
log = logging.getLogger("gpudiag.slack.socket")


class Line(SocketModeClient):
    """One connection at a time."""

    async def connect(self) -> None:
        """Until there is one, or it is closed."""
        pause, broken = FIRST, 0.0
        while not self.closed:
            try:
                await asyncio.wait_for(self._join(), ANSWER)
            except Exception as error:  # noqa: BLE001 - whatever it is, a bot without its line does nothing but try again
                if not broken:
                    broken = time.monotonic()
                    why = excerpt(str(error), 200) or type(error).__name__
                    log.warning("the line to Slack is broken: %s. It is tried again, at least once a minute", why)
                await asyncio.sleep(pause * random.uniform(0.5, 1.0))
                pause = min(2 * pause, MOST)
            else:
                if broken:
                    log.warning("the line to Slack stands again, after %.0f s", time.monotonic() - broken)
                return

    async def connect_to_new_endpoint(self, force: bool = False) -> None:
        """Where the line has gone, or Slack asks for another one."""
        async with self.connect_operation_lock:
            if force or not await self.is_connected():
                await self.connect()

    async def _join(self) -> None:
        """A new address, a new connection to it, and who listens and looks after it."""
        self.auto_reconnect_enabled = False
        if self.current_session is not None:
            with suppress(Exception):
                await self.current_session.close()
        answer = await self.web_client.apps_connections_open(app_token=self.app_token)
        self.wss_uri = str(answer["url"])
        self.current_session = await self.aiohttp_client_session.ws_connect(
            self.wss_uri, autoping=False, heartbeat=self.ping_interval, proxy=self.proxy,
            ssl=self.web_client.ssl if self.web_client.ssl is not None else True,
        )  # fmt: skip
        self.auto_reconnect_enabled, self.stale, self.last_ping_pong_time = (
            self.default_auto_reconnect_enabled,
            False,
            None,
        )
        for task in (self.current_session_monitor, self.message_receiver):
            if task is not None:
                task.cancel()
        self.current_session_monitor = asyncio.ensure_future(self.monitor_current_session())
        self.message_receiver = asyncio.ensure_future(self.receive_messages())


def line(app: AsyncApp, token: str, web: AsyncWebClient) -> Line:
    """A line over which `app` gets what Slack sends; `connect` it, and `close` it."""
    made = Line(token, logger=log, web_client=web)

    async def take(client: Any, request: SocketModeRequest) -> None:
        begun = time.time()
        await send_async_response(client, request, await run_async_bolt_app(app, request), begun)

    made.socket_mode_request_listeners.append(take)
    return made
