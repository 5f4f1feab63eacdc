"""The HTTP endpoints of `watch`: metrics, liveness, readiness, and the newest answer as JSON."""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from socketserver import TCPServer
from threading import Lock, Thread
from typing import Any
from urllib.parse import urlsplit

from prometheus_client.exposition import choose_encoder
from prometheus_client.registry import CollectorRegistry

from knowledge.errors import UsageError

Answer = tuple[int, Any]  # HTTP status, JSON document
CLIENTS = 32  # connections at a time; one more ends the oldest
PATIENCE = 20.0  # seconds that a connection may last, whatever it does


class Server:
    """Serves in a thread of its own until `close`."""

    def __init__(
        self, address: tuple[str, int], registry: CollectorRegistry, pages: Mapping[str, Callable[[], Answer]]
    ) -> None:
        """UsageError when the address cannot be listened on. `pages` are the JSON documents by path."""
        handler = _handler(registry, pages)
        try:
            self._server = _Quiet(address, handler)
        except (OSError, OverflowError) as error:
            why = getattr(error, "strerror", None) or error
            raise UsageError(
                f"cannot listen on {address[0]}:{address[1]}: {why}", hint="choose another one with --listen HOST:PORT"
            ) from None
        self.port: int = self._server.server_address[1]
        shown = f"[{address[0]}]" if ":" in address[0] else address[0]
        self.url = f"http://{shown}:{self.port}"
        self._thread = Thread(target=self._server.serve_forever, name="metrics", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stop serving."""
        self._server.shutdown()
        self._server.server_close()


class _Quiet(ThreadingHTTPServer):
    """With an end to every connection: neither many clients nor slow ones hold more than a few threads."""

    daemon_threads = True
    allow_reuse_address = True
    request_queue_size = 128  # connections that wait while a round computes

    def __init__(self, address: tuple[str, int], handler: type[BaseHTTPRequestHandler]) -> None:
        found = socket.getaddrinfo(*address, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        self.address_family = found[0][0]
        self._open: dict[Any, float] = {}  # connection -> when it began
        self._guard = Lock()
        super().__init__(address, handler)

    def server_bind(self) -> None:
        """Without the look-up of a name that nobody needs, which can take as long as DNS does."""
        TCPServer.server_bind(self)

    def process_request(self, request: Any, client_address: Any) -> None:
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
            old = [s for s, begun in self._open.items() if time.monotonic() - begun > PATIENCE]
        for connection in old:
            self._end(connection)

    def _end(self, connection: Any) -> None:
        """Its thread notices, and lets go of it."""
        with self._guard:
            self._open.pop(connection, None)
        with suppress(OSError):
            connection.shutdown(socket.SHUT_RDWR)

    def shutdown_request(self, request: Any) -> None:
        with self._guard:
            self._open.pop(request, None)
        super().shutdown_request(request)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that goes away in the middle is no news."""


def _handler(registry: CollectorRegistry, pages: Mapping[str, Callable[[], Answer]]) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        timeout = 10  # seconds: a client that says nothing does not hold a thread
        server_version = "gpudiag"
        sys_version = ""

        def do_GET(self) -> None:
            path = urlsplit(self.path).path
            if path == "/metrics":
                encode, kind = choose_encoder(self.headers.get("Accept", ""))
                self._send(200, encode(registry), kind)
            elif path in pages:
                status, document = pages[path]()
                self._send(status, (json.dumps(document, indent=1) + "\n").encode(), "application/json")
            elif path == "/":
                self._send(200, "".join(f"{p}\n" for p in ("/metrics", *pages)).encode(), "text/plain")
            else:
                self._send(404, b"there is no such page\n", "text/plain")

        do_HEAD = do_GET

        def _send(self, status: int, body: bytes, kind: str) -> None:
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:
            """Scrapes are not logged."""

    return Handler
