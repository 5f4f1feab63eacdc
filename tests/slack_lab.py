"""A Slack of our own over loopback: the Web API with state, uploads, response URLs and Socket Mode.

`with Slack() as slack:` runs it in a thread with its own event loop, so that the real slack_sdk clients and the real Bolt run
against `slack.base_url` unpatched, in synchronous and asynchronous tests alike. Payloads to send are in `tests.slack_payloads`.
"""

from __future__ import annotations

import asyncio
import secrets
import socket
import threading
import time
from collections import defaultdict, deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Self
from uuid import uuid4

from aiohttp import web

from tests.slack_payloads import BOT_USER, TEAM, Payload, stamp
from tests.slack_shapes import File, Message, Refused, channel_shown, listed, object_of
from tests.slack_socket import Ack, NotAcknowledged, SocketMode

__all__ = ["Ack", "Call", "Message", "NotAcknowledged", "Response", "Slack"]

RESPONSE_USES = 5
FORMS = {"application/x-www-form-urlencoded", "multipart/form-data"}


@dataclass(frozen=True, slots=True)
class Call:
    """One call of a Web API method as it came in, and its answer's error word (empty: it went well)."""

    method: str
    args: Payload
    at: float  # monotonic seconds
    error: str


@dataclass(frozen=True, slots=True)
class Response:
    """What was posted to a response URL."""

    url: str
    body: Payload
    at: float


class Slack(SocketMode):
    """The server. What a test may look at: `calls`, `messages`, `files`, `views`, `homes`, `responses`, `connections`, `pings`."""

    def __init__(
        self, bot_token: str = "xoxb-lab", app_token: str = "xapp-lab", signing_secret: str = "lab-secret"
    ) -> None:
        super().__init__()
        self.bot_token, self.app_token, self.signing_secret = bot_token, app_token, signing_secret
        self.calls: list[Call] = []
        self.responses: list[Response] = []
        self.delays: dict[str, float] = {}  # seconds before a method answers
        self._orders: defaultdict[str, deque[tuple[int, str, dict[str, str]]]] = defaultdict(deque)
        self._ready: Future[int] = Future()
        self._thread = threading.Thread(target=self._main, name="slack-lab", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        self.root = f"http://127.0.0.1:{self._ready.result(30)}"
        self.base_url = f"{self.root}/api/"
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._end.set)
        self._thread.join(30)

    # what a test sets

    def add_user(self, user: str, *, name: str = "", guest: bool = False, external: bool = False, bot: bool = False,
                 locale: str = "en-US", zone: str = "UTC", deleted: bool = False) -> Payload:  # fmt: skip
        """A person; `external` ones come from another organisation through Slack Connect."""
        self.users[user] = {
            "id": user, "team_id": "T0OTHER" if external else TEAM, "name": name or user.lower(), "deleted": deleted,
            "real_name": name or user, "tz": zone, "tz_offset": 0, "is_admin": False, "is_bot": bot, "is_restricted": guest,
            "is_ultra_restricted": False, "is_stranger": external, "locale": locale, "profile": {"display_name": name or user},
        }  # fmt: skip
        return self.users[user]

    def add_group(self, group: str, users: Sequence[str], *, handle: str = "") -> Payload:
        """A user group (`<!subteam^S1>`); once more with the same id: its members are replaced."""
        self.groups[group] = {
            "id": group, "team_id": TEAM, "is_usergroup": True, "handle": handle or group.lower(), "name": handle or group,
            "users": list(users), "user_count": len(users), "date_delete": 0,
        }  # fmt: skip
        return self.groups[group]

    def add_channel(
        self, channel: str, *, private: bool = False, shared: bool = False, member: bool = True, archived: bool = False
    ) -> Payload:
        """A channel; `member`: the bot is in it; `shared`: with another organisation."""
        self.channels[channel] = channel_shown(
            channel, private=private, shared=shared, member=member, archived=archived
        )
        return self.channels[channel]

    def add_file(self, name: str, content: bytes, *, user: str = "U1") -> Payload:
        """A file that a person shared, as events and `files.info` carry it."""
        file = File(f"F{secrets.token_hex(4).upper()}", name, len(content), user, content)
        self.files[file.id] = file
        return self.file_shown(file)

    def say(self, text: str, *, user: str = "U1", channel: str = "C1", thread_ts: str = "") -> Message:
        """A person's message, so that it stands in its thread. The app hears of it only through an event that the test sends."""
        said = Message(channel, stamp(), user, text, thread_ts=thread_ts)
        self.messages.append(said)
        return said

    def limit(self, method: str, times: int = 1, retry_after: int = 1) -> None:
        """The next calls of a method are answered with HTTP 429."""
        self._orders[method].extend([(429, "ratelimited", {"Retry-After": str(retry_after)})] * times)

    def fail(self, method: str, error: str, times: int = 1, status: int = 200) -> None:
        """The next calls of a method are refused with this word; status 500 or 503: the server itself fails."""
        self._orders[method].extend([(status, error, {})] * times)

    def answers(self, url: str) -> list[Payload]:
        """What was posted to a response URL."""
        return [one.body for one in list(self.responses) if one.url == url]

    # waiting

    def wait(self, condition: Callable[[], object], seconds: float = 10.0) -> None:
        """Wait until something holds; `TimeoutError` otherwise."""
        end = time.monotonic() + seconds
        while not condition():
            if time.monotonic() > end:
                raise TimeoutError(f"not so after {seconds:g} s")
            time.sleep(0.01)

    async def until(self, condition: Callable[[], object], seconds: float = 10.0) -> None:
        """`wait` for asynchronous tests."""
        async with asyncio.timeout(seconds):
            while not condition():
                await asyncio.sleep(0.01)

    # the server, in its own thread

    def _main(self) -> None:
        try:
            asyncio.run(self._serve())
        except Exception as error:
            if self._ready.done():
                raise
            self._ready.set_exception(error)  # `with Slack()` raises it

    async def _serve(self) -> None:
        self._loop, self._end = asyncio.get_running_loop(), asyncio.Event()
        app = web.Application(client_max_size=1 << 30)
        app.router.add_route("*", "/api/{method}", self._api)
        app.router.add_route("*", "/upload/v1/{file}", self._upload)
        app.router.add_get("/files-pri/{file}/{rest:.*}", self._download)
        app.router.add_get("/login", self._login)
        app.router.add_post("/response/{id}", self._respond)
        app.router.add_get("/link/", self._listen)
        runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
        await runner.setup()
        door = socket.create_server(("127.0.0.1", 0))
        await web.SockSite(runner, door).start()
        self._ready.set_result(door.getsockname()[1])
        await self._end.wait()
        for link in list(self._links):
            link.transport.abort()
        await runner.cleanup()

    async def _api(self, request: web.Request) -> web.Response:
        method, args, token = request.match_info["method"], dict(request.query), ""
        at, error, status, headers = (
            time.monotonic(),
            "",
            200,
            {"X-OAuth-Scopes": "chat:write,commands", "X-Slack-Req-Id": uuid4().hex},
        )
        answer: Payload = {"ok": True}
        whole: Payload = dict(args)
        try:
            if request.content_type == "application/json" and (raw := await request.text()):
                whole |= object_of(raw)
            elif request.content_type in FORMS:
                form = {name: str(value) for name, value in (await request.post()).items()}
                whole, token = whole | form, form.get("token", "")
            token = request.headers.get("Authorization", "").removeprefix("Bearer ") or token or args.get("token", "")
            if self._orders[method]:
                status, error, more = self._orders[method].popleft()
                headers |= more
                raise Refused(error)
            if method not in self.methods:
                raise Refused("unknown_method")
            if method != "api.test":
                self._authorise(method, token)
            await asyncio.sleep(self.delays.get(method, 0))
            answer |= self.methods[method](whole)
        except Refused as refused:
            error = refused.error
            answer = {"ok": False, "error": error}
            if refused.messages:
                answer |= {"response_metadata": {"messages": refused.messages}}
        self.calls.append(Call(method, {k: v for k, v in whole.items() if k != "token"}, at, error))
        return web.json_response(answer, status=status, headers=headers)

    def _authorise(self, method: str, token: str) -> None:
        if not token:
            raise Refused("not_authed")
        if token not in {self.bot_token, self.app_token}:
            raise Refused("invalid_auth")
        if (token == self.app_token) != (method == "apps.connections.open"):
            raise Refused("not_allowed_token_type")

    async def _upload(self, request: web.Request) -> web.Response:
        file = self.files.get(request.match_info["file"])
        if file is None or request.method not in {"POST", "PUT"}:
            return web.Response(status=404, text="not found")
        if request.content_type == "multipart/form-data":
            part = next(iter((await request.post()).values()), "")
            content = part.file.read() if isinstance(part, web.FileField) else str(part).encode()
        else:
            content = await request.read()
        if len(content) != file.size:
            return web.Response(status=400, text=f"expected {file.size} bytes")
        file.content = content
        return web.Response(text=f"OK - {len(content)}")

    async def _download(self, request: web.Request) -> web.Response:
        file = self.files.get(request.match_info["file"].rpartition("-")[2])
        if request.headers.get("Authorization") != f"Bearer {self.bot_token}":
            raise web.HTTPFound("/login")  # Slack shows its login page with status 200, whatever the file is
        if file is None or file.content is None:
            return web.Response(status=404, text="not found")
        return web.Response(body=file.content, content_type="application/octet-stream")

    async def _login(self, _: web.Request) -> web.Response:
        return web.Response(text="<!DOCTYPE html><html><title>Slack</title>Sign in</html>", content_type="text/html")

    async def _respond(self, request: web.Request) -> web.Response:
        url = f"{self.root}{request.path}"
        end, channel, user = self._response_urls.get(url, (0.0, "", ""))
        if time.monotonic() > end:
            return web.json_response({"ok": False, "error": "expired_url"}, status=404)
        if len(self.answers(url)) >= RESPONSE_USES:
            return web.json_response({"ok": False, "error": "used_url"}, status=404)
        try:
            body = object_of(await request.text())
            text, blocks = str(body.get("text") or ""), listed(body.get("blocks"))
            if not body.get("delete_original"):
                self.check(text, blocks)
                to = "" if body.get("response_type") == "in_channel" else user
                self.messages.append(
                    Message(channel, stamp(), BOT_USER, text, blocks, str(body.get("thread_ts") or ""), to=to)
                )
        except Refused as refused:
            return web.json_response({"ok": False, "error": refused.error}, status=400)
        self.responses.append(Response(url, body, time.monotonic()))
        return web.Response(text="ok")
