"""The HTTP endpoints of `watch`: metrics, liveness, readiness, and the newest answer as JSON."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from http.server import BaseHTTPRequestHandler
from threading import Thread
from typing import Any
from urllib.parse import urlsplit

from prometheus_client.exposition import choose_encoder
from prometheus_client.registry import CollectorRegistry

from assistant.bounded import Bounded
from assistant.door import Door, Refused
from knowledge.errors import UsageError

Answer = tuple[int, Any]  # HTTP status, JSON document
OPEN = ("/", "/metrics", "/healthz", "/readyz")  # numbers and health: whoever reaches it may know them


class Server:
    """Serves in a thread of its own until `close`."""

    def __init__(
        self,
        address: tuple[str, int],
        registry: CollectorRegistry,
        pages: Mapping[str, Callable[[], Answer]],
        token: str = "",
    ) -> None:
        """UsageError when the address cannot be listened on. `pages` are the JSON documents by path; `token` opens those not `OPEN`."""
        handler = _handler(registry, pages, Door(address[0], token))
        try:
            self._server = Bounded(address, handler)
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


def _handler(
    registry: CollectorRegistry, pages: Mapping[str, Callable[[], Answer]], door: Door
) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        timeout = 10  # seconds: a client that says nothing does not hold a thread
        server_version = "gpudiag"
        sys_version = ""

        def do_GET(self) -> None:
            try:
                path = urlsplit(self.path).path
                door.admit(self.headers, secret=path not in OPEN)
            except ValueError:
                self._send(400, b"this is no address of a page\n", "text/plain")
                return
            except Refused as no:
                self._send(no.status, f"{no.why}\n".encode(), "text/plain")
                return
            if path == "/metrics":
                try:
                    encode, kind = choose_encoder(self.headers.get("Accept", ""))
                    body = encode(registry)
                except (ValueError, IndexError, TypeError):  # the version is no number
                    self._send(400, b"this Accept cannot be read\n", "text/plain")
                    return
                self._send(200, body, kind)
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
            if status == 401:
                self.send_header("WWW-Authenticate", "Bearer")
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:
            """Scrapes are not logged."""

    return Handler
