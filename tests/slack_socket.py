"""Socket Mode of `tests.slack_lab`: envelopes that are sent, acknowledged and sent again; connections that are refreshed and cut."""

from __future__ import annotations

import asyncio
import contextlib
import secrets
import time
from collections.abc import Coroutine, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar
from uuid import uuid4

from aiohttp import WSMsgType, web

from tests.slack_methods import Workspace
from tests.slack_payloads import APP, Payload
from tests.slack_shapes import object_of

T = TypeVar("T")
ACKNOWLEDGE_SECONDS = 3.0  # Slack's patience with an app
RESPONSE_SECONDS = 1_800.0


@dataclass(frozen=True, slots=True)
class Ack:
    """An acknowledged envelope: the answer within it, seconds from sending to acknowledgement, how often it was sent."""

    payload: Payload | None
    seconds: float
    attempts: int


class NotAcknowledged(Exception):
    """Nobody acknowledged an envelope in time, or nobody was connected."""


@dataclass(eq=False, slots=True)
class _Link:
    socket: web.WebSocketResponse
    transport: asyncio.Transport


class SocketMode(Workspace):
    """The workspace, and the apps connected to it. All methods that begin with `_` but `_run` belong to the server's loop."""

    _loop: asyncio.AbstractEventLoop

    def __init__(self) -> None:
        super().__init__()
        self.connections = 0  # so far
        self.pings = 0
        self.answer_pings = True
        self._response_urls: dict[str, tuple[float, str, str]] = {}
        self._links: list[_Link] = []
        self._waiting: dict[str, tuple[asyncio.Future[Ack], float, int]] = {}

    def send_envelope(
        self, kind: str, payload: Mapping[str, Any], *, deadline: float = ACKNOWLEDGE_SECONDS, resend: int = 0
    ) -> Ack:
        """Send a `slash_commands`, `interactive` or `events_api` payload and wait for the acknowledgement.

        `resend`: so often is it sent anew after each `deadline` seconds, with `retry_attempt` and `retry_reason` and an envelope
        id of its own; the payload, with its event id, stays the same. Raises `NotAcknowledged`.
        """
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            return self._run(self._deliver(kind, payload, deadline, resend))
        raise RuntimeError("this would block the app's own event loop: use 'await slack.envelope(...)'")

    async def envelope(
        self, kind: str, payload: Mapping[str, Any], *, deadline: float = ACKNOWLEDGE_SECONDS, resend: int = 0
    ) -> Ack:
        """`send_envelope` for asynchronous tests."""
        sent = asyncio.run_coroutine_threadsafe(self._deliver(kind, payload, deadline, resend), self._loop)
        return await asyncio.wrap_future(sent)

    def disconnect(self, reason: str = "refresh_requested", grace: float = 10.0) -> None:
        """Ask all connected apps to connect anew; who has not left after `grace` seconds is closed."""

        async def ask() -> None:
            for link in list(self._links):
                await link.socket.send_json(
                    {"type": "disconnect", "reason": reason, "debug_info": {"host": "applink-lab"}}
                )
                self._loop.call_later(grace, link.transport.close)

        self._run(ask())

    def cut(self) -> None:
        """Drop all connections without a close frame, as a dead network does."""

        async def drop() -> None:
            for link in list(self._links):
                link.transport.abort()

        self._run(drop())

    @property
    def connected(self) -> int:
        """Socket Mode connections open now."""
        return len(self._links)

    def response_url(self, channel: str = "C1", user: str = "U1", seconds: float = RESPONSE_SECONDS) -> str:
        """A URL for five posts within its time."""
        url = f"{self.root}/response/{secrets.token_hex(8)}"
        self._response_urls[url] = (time.monotonic() + seconds, channel, user)
        return url

    def _run(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(120)

    async def _listen(self, request: web.Request) -> web.StreamResponse:
        ticket = request.query.get("ticket", "")
        if ticket not in self.tickets or request.transport is None:
            return web.Response(status=401, text="invalid ticket")
        self.tickets.remove(ticket)  # a URL is good for one connection
        ws = web.WebSocketResponse(autoping=False)
        await ws.prepare(request)
        link = _Link(ws, request.transport)
        info = {"host": "applink-lab", "build_number": 1, "approximate_connection_time": 18060}
        self.connections += 1
        hello = {
            "type": "hello",
            "num_connections": len(self._links) + 1,
            "debug_info": info,
            "connection_info": {"app_id": APP},
        }
        await ws.send_json(hello)
        self._links.append(link)
        try:
            async for frame in ws:
                if frame.type == WSMsgType.PING:
                    self.pings += 1
                    if self.answer_pings:
                        await ws.pong(frame.data)
                elif frame.type == WSMsgType.TEXT:
                    self._acknowledged(object_of(frame.data))
        finally:
            self._links.remove(link)
        return ws

    def _acknowledged(self, answer: Payload) -> None:
        waiting, sent, attempt = self._waiting.pop(answer.get("envelope_id", ""), (None, 0.0, 0))
        if waiting is not None and not waiting.done():
            waiting.set_result(Ack(answer.get("payload"), time.monotonic() - sent, attempt + 1))

    async def _deliver(self, kind: str, payload: Mapping[str, Any], deadline: float, resend: int) -> Ack:
        acked: asyncio.Future[Ack] = self._loop.create_future()
        if payload.get("response_url") == "":  # Slack never leaves it empty
            channel, user = (
                payload.get("channel_id") or payload["channel"]["id"],
                payload.get("user_id") or payload["user"]["id"],
            )
            payload = {**payload, "response_url": self.response_url(channel, user)}
        for attempt in range(resend + 1):
            envelope: Payload = {
                "envelope_id": str(uuid4()),
                "type": kind,
                "accepts_response_payload": kind != "events_api",
                "payload": dict(payload),
            }
            envelope |= {"retry_attempt": attempt, "retry_reason": "timeout"} if attempt else {}
            self._waiting[envelope["envelope_id"]] = (acked, time.monotonic(), attempt)
            if self._links:  # the newest connection; with none, the retry is all that an app will see
                with contextlib.suppress(ConnectionError):  # it was cut meanwhile
                    await self._links[-1].socket.send_json(envelope)
            await asyncio.wait({acked}, timeout=deadline)
            if acked.done():
                return acked.result()
        raise NotAcknowledged(f"{kind}: sent {resend + 1} times, no acknowledgement within {deadline:g} s each")
