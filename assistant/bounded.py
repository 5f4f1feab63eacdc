"""HTTP servers with an end to every connection: neither many clients nor slow ones hold more than a few threads or sockets.

`watch` serves its metrics with `Bounded`, `incident listen` takes alerts; the app in a browser and Slack's requests are `serving`.
"""

from __future__ import annotations

import asyncio
import logging
import socket
import time
from contextlib import asynccontextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from socketserver import TCPServer
from threading import Lock
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Container

    from aiohttp import web

CLIENTS = 32  # connections at a time; one more ends the oldest
CONNECTIONS = 64  # as much, where a connection costs no thread
LEAVE = 2.0  # seconds that requests under way have when the end comes
PATIENCE = 20.0  # seconds that a connection may last, whatever it does


class Bounded(ThreadingHTTPServer):
    """One thread a connection, at most `CLIENTS` of them, none for longer than `patience` seconds."""

    daemon_threads = True
    allow_reuse_address = True
    request_queue_size = 128  # connections that wait while something else computes

    def __init__(
        self, address: tuple[str, int], handler: type[BaseHTTPRequestHandler], patience: float = PATIENCE
    ) -> None:
        """OSError or OverflowError when the address cannot be listened on."""
        found = socket.getaddrinfo(*address, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        self.address_family = found[0][0]
        self._open: dict[Any, float] = {}  # connection -> when it began
        self._guard = Lock()
        self._patience = patience
        super().__init__(address, handler)

    def server_bind(self) -> None:
        """Without the look-up of a name that nobody needs, which can take as long as DNS does."""
        TCPServer.server_bind(self)

    def process_request(self, request: Any, client_address: Any) -> None:
        """One more connection; the oldest goes when there are too many."""
        with self._guard:
            oldest = next(iter(self._open), None) if len(self._open) >= CLIENTS else None
            self._open[request] = time.monotonic()
        if oldest is not None:
            self._end(oldest)
        super().process_request(request, client_address)

    def service_actions(self) -> None:
        """Twice a second."""
        self._end_old()

    def _end_old(self) -> None:
        with self._guard:
            old = [s for s, begun in self._open.items() if time.monotonic() - begun > self._patience]
        for connection in old:
            self._end(connection)

    def _end(self, connection: Any) -> None:
        """Its thread notices, and lets go of it."""
        with self._guard:
            self._open.pop(connection, None)
        with suppress(OSError):
            connection.shutdown(socket.SHUT_RDWR)

    def shutdown_request(self, request: Any) -> None:
        """It has ended."""
        with self._guard:
            self._open.pop(request, None)
        super().shutdown_request(request)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that goes away in the middle is no news."""


@asynccontextmanager
async def serving(app: web.Application, host: str, port: int, guests: Container[object] = ()) -> AsyncIterator[Any]:
    """aiohttp's server at an address, while the body runs, which gets the address. OSError when it cannot be listened on."""
    from aiohttp import web

    runner = web.AppRunner(app, access_log=None, logger=_faults(), shutdown_timeout=LEAVE)
    await runner.setup()
    bounding = asyncio.create_task(bounded(runner, guests=guests))
    try:
        await web.TCPSite(runner, host, port).start()
        yield runner.addresses[0]
    finally:
        bounding.cancel()
        await runner.cleanup()


def _faults() -> logging.Logger:
    """Where aiohttp says what broke: bugs of ours, and not each request that is none."""
    from aiohttp.http_exceptions import HttpProcessingError
    from aiohttp.web import RequestPayloadError

    # A body that cannot be unpacked is told once more where the rest of it is read and thrown away, after the answer.
    theirs = (HttpProcessingError, RequestPayloadError)

    def wanted(record: logging.LogRecord) -> bool:
        return not (record.exc_info and isinstance(record.exc_info[1], theirs))

    log = logging.getLogger("gpudiag.http")
    log.filters[:] = [wanted]
    return log


async def bounded(
    runner: web.AppRunner, most: int = CONNECTIONS, look: float = 0.2, guests: Container[object] = ()
) -> None:
    """Where more than `most` connections are open, the oldest end, but those of `guests`: whoever opens many and says nothing
    keeps nobody out, and puts nobody out who was let in."""
    while True:
        await asyncio.sleep(look)
        held = [c for c in (runner.server.connections if runner.server is not None else ()) if c not in guests]
        for one in held[: max(0, len(held) - most)]:
            one.force_close()
