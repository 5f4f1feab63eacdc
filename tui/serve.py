"""The app in a browser, through textual-serve: for those who are given the address, and nobody else.

What runs there has the rights of who started it, on a machine that others may be logged in to. So it listens on the loopback
interface unless told otherwise; a visitor needs the token that stands in the printed address; and pages of other sites cannot
reach it through somebody's browser (the names in Host and Origin are compared). The command that is run is made here once: nothing that a
visitor sends becomes a part of it. What a browser sends is bounded and checked before the app hears of it.
"""

from __future__ import annotations

import asyncio
import json
import secrets
import shlex
import signal
import sys
from typing import TYPE_CHECKING, Any, NamedTuple

from knowledge.errors import UsageError

if TYPE_CHECKING:
    import argparse
    from collections.abc import AsyncIterator, Awaitable, Callable, Sequence

HERE = ("127.0.0.1", "localhost", "::1")
PORT = 8000
COOKIE = "gpudiag"
VISITORS = 16  # at a time: each has a process of the app
MOST = 1000  # cells of a window, each way


class Address(NamedTuple):
    """Where to listen."""

    host: str
    port: int

    @property
    def shown(self) -> str:
        """As it stands in an address."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def address(text: str) -> Address:
    """``HOST:PORT``, ``HOST``, ``PORT``, ``[::1]:8000``, or nothing: the loopback interface. UsageError for what is none."""
    said = text.strip()
    if said.startswith("["):
        host, _, rest = said[1:].partition("]")
        port = rest.removeprefix(":")
    elif said.isdecimal():
        host, port = "", said
    elif said.count(":") > 1:  # an IPv6 address without brackets
        host, port = said, ""
    else:
        host, _, port = said.partition(":")
    if port and not (port.isdecimal() and 0 < int(port) < 65536):
        raise UsageError(
            f"--serve {text}: {port!r} is no port",
            hint="for example 127.0.0.1:8000",
            zh=f"--serve {text}：{port!r} 不是端口",
            hint_zh="例如 127.0.0.1:8000",
        )
    return Address(host or HERE[0], int(port or PORT))


def command(args: argparse.Namespace) -> list[str]:
    """The command line of the app that each visitor gets: what was given here, without ``--serve``."""
    words = [sys.executable, "-P", "-m", "assistant", "tui", "--lang", args.settings.output.lang]
    single = ("bundle", "host", "via", "inventory", "site", "nodes", "screen", "theme", "thread")
    words += [f"--{option}={value}" for option in single if (value := getattr(args, option))]
    for option, name in (("rules", "rules"), ("probe", "probe"), ("with_", "with"), ("without", "without")):
        words += [f"--{name}={value}" for value in getattr(args, option)]
    words.append(f"--budget={args.budget:g}")
    for option in ("no_history", "again", "new"):
        if getattr(args, option):
            words.append("--" + option.replace("_", "-"))
    for option in ("log", "input", "trace"):
        if values := getattr(args, option):
            words += [f"--{option}", *values]
    return words


def run(args: argparse.Namespace) -> int:
    """Serve until it is interrupted. UsageError where textual-serve is not installed, or the address cannot be had."""
    where = address(args.serve)
    try:
        server = _server(where, command(args), secrets.token_urlsafe(16))
    except ModuleNotFoundError as error:
        raise UsageError(
            f"a browser needs {error.name}, which is not installed",
            hint="install gpudiag with its extra: gpudiag[web]",
            zh=f"浏览器方式需要 {error.name}，尚未安装",
            hint_zh="安装 gpudiag 的附加组件：gpudiag[web]",
        ) from None
    try:
        asyncio.run(_serve(server, where))
    except OSError as error:
        why = error.strerror or error
        raise UsageError(f"--serve {where.shown}: {why}", zh=f"--serve {where.shown}：{why}") from None
    return 0


async def _serve(server: Any, where: Address) -> None:
    """Until SIGTERM or SIGINT, and at most a few seconds longer. OSError when the address cannot be listened on."""
    from assistant.bounded import serving
    from assistant.ending import within
    from assistant.output import say

    ended = asyncio.Event()

    def end() -> None:
        within()
        ended.set()

    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, end)
    async with serving(await server._make_app(), where.host, where.port, server.guests):
        say(f"gpudiag: http://{where.shown}/?token={server.token} (Ctrl-C ends it)")
        if where.host not in HERE:
            say(
                "gpudiag: others can reach this address, and it is not encrypted: whoever has the token acts with your rights"
            )
        await ended.wait()


def _server(where: Address, words: Sequence[str], token: str) -> Any:
    """textual-serve's server behind a door."""
    import aiohttp_jinja2
    from textual_serve.server import Server

    class Guarded(Server):
        """The page and the socket, for those with the token."""

        def __init__(self) -> None:
            # A shell runs this line: every word is quoted, and none comes from a visitor.
            super().__init__(shlex.join(words), where.host, where.port, "gpudiag")
            self.token = token
            self.guests: set[object] = set()  # connections of visitors that have an app
            self._sockets: set[Any] = set()

        async def on_startup(self, app: Any) -> None:
            """Said elsewhere."""

        async def on_shutdown(self, app: Any) -> None:
            """The pages are told, and with them their apps."""
            await asyncio.gather(*(one.close() for one in self._sockets), return_exceptions=True)

        async def _make_app(self) -> Any:
            app = await super()._make_app()
            app.middlewares.append(door(where.port, token, self.guests))
            return app

        @aiohttp_jinja2.template("app_index.html")
        async def handle_index(self, request: Any) -> dict[str, Any]:
            """The page. Its addresses are those that the visitor used: a forwarded port has another number here."""
            scheme = "wss" if request.secure else "ws"
            return {
                "font_size": 14, "app_websocket_url": f"{scheme}://{request.host}/ws",
                "config": {"static": {"url": "/static/"}}, "application": {"name": "gpudiag"},
            }  # fmt: skip

        async def _process_messages(self, websocket: Any, app_service: Any) -> None:
            """What the page sends, to its app."""
            heard: Any = _Heard(websocket)
            self._sockets.add(websocket)
            try:
                await super()._process_messages(heard, app_service)
            finally:
                self._sockets.discard(websocket)

    return Guarded()


class _Heard:
    """A visitor's socket, of which nothing is heard but what the page says."""

    def __init__(self, websocket: Any) -> None:
        self._websocket = websocket
        self.send_json = websocket.send_json

    async def __aiter__(self) -> AsyncIterator[Any]:
        async for message in self._websocket:
            if isinstance(message.data, str) and spoken(message.data):
                yield message


def spoken(data: str) -> bool:
    """Whether the page says such a thing: keys, a size, whether somebody is there, whether it is looked at."""
    try:
        match json.loads(data):
            case ["stdin", str(text)]:
                return bool(text.encode())
            case ["resize", {"width": int(width), "height": int(height)}]:
                return sized(str(width), str(height))
            case ["ping", str()] | ["blur" | "focus"]:
                return True
    except (ValueError, RecursionError):  # no JSON; half a character
        pass
    return False


def sized(width: str, height: str) -> bool:
    """Whether these are the cells of a window: an app draws every one of them."""
    return all(n.isascii() and n.isdecimal() and 0 < int(n[:9]) <= MOST for n in (width, height))


def door(port: int, token: str, guests: set[object]) -> Any:
    """Lets nobody in without the token: it comes in the address once, then as a cookie that other sites cannot use. `guests` are the
    connections that have an app, `VISITORS` at most."""
    from aiohttp import web

    from assistant.door import same

    name = f"{COOKIE}-{port}"  # a browser shares cookies between the ports of a machine
    refused = "The address that gpudiag printed holds a token; without it there is nothing here.\n"

    async def visit(request: Any, handler: Callable[[Any], Awaitable[Any]]) -> Any:
        size = (request.query.get("width", "80"), request.query.get("height", "24"))
        if not sized(*size) or not web.WebSocketResponse().can_prepare(request).ok:
            return web.Response(status=400, text="No page of gpudiag asks so.\n")
        if len(guests) >= VISITORS:
            return web.Response(status=503, text=f"{VISITORS} visitors are here already.\n")
        guests.add(request.protocol)
        try:
            return await handler(request)
        finally:
            guests.discard(request.protocol)

    @web.middleware
    async def middleware(request: Any, handler: Callable[[Any], Awaitable[Any]]) -> Any:
        if request.path == "/" and same(request.query.get("token", ""), token):
            response = web.Response(status=302, headers={"Location": "/", "Referrer-Policy": "no-referrer"})
            response.set_cookie(name, token, httponly=True, samesite="Strict")
            return response
        origin = request.headers.get("Origin", "")
        if not same(request.cookies.get(name, ""), token) or (origin and origin.partition("://")[2] != request.host):
            return web.Response(status=403, text=refused)
        response = await (visit(request, handler) if request.path == "/ws" else handler(request))
        if not response.prepared:
            response.headers["Content-Security-Policy"] = _CONTENT
            response.headers["Referrer-Policy"] = "no-referrer"
        return response

    return middleware


# What the page needs, all of it from here: the template names a font of another site, which nobody's browser has to ask.
_CONTENT = (
    "default-src 'self'; script-src 'self' 'unsafe-inline'; style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; "
    "font-src 'self' data:; connect-src 'self' ws: wss:; frame-ancestors 'none'"
)
