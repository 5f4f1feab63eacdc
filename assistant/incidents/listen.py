"""``gpudiag incident listen``: a small HTTP server that Alertmanager posts to.

Alertmanager repeats what is answered with 5xx or not at all, and drops what is answered with 4xx. So 200 is said only once
the incident is on the disk, 503 while the history cannot be used, and 400 to what would be no better the next time.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from contextlib import suppress
from http.server import BaseHTTPRequestHandler
from threading import BoundedSemaphore, Lock, Thread
from typing import TYPE_CHECKING, Any, NamedTuple

from assistant.bounded import Bounded
from assistant.door import Door, Refused
from assistant.incidents.alert_message import PayloadError, read
from assistant.store.location import StoreError
from knowledge.errors import UsageError
from knowledge.language import Text
from knowledge.record import dataclass
from knowledge.text import excerpt

if TYPE_CHECKING:
    from assistant.incidents.alert_desk import Desk, Outcome

PATH, HEALTHY = "/alertmanager", "/-/healthy"
LARGEST = 8 << 20  # bytes of a message: a thousand alerts with long annotations are a third of that
READ = 10.0  # seconds without a byte
TURN = 10.0  # seconds that a message waits for those before it
WAITING = 16  # messages at a time: one is written, the others wait; more are told to come again
LEAVE = 2.0  # seconds for the message that is being written when the end comes
QUIET = 1.0  # seconds between two lines about messages that were refused


class Reply(NamedTuple):
    """What a request is answered with."""

    status: int
    body: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Manner:
    """How it listens. Times in seconds, sizes in bytes."""

    token: str = ""  # empty: whoever reaches it may post
    largest: int = LARGEST
    read: float = READ
    patience: float = 20.0  # for a whole request


class Intake:
    """What a request becomes: one message after the other is written down."""

    def __init__(self, desk: Desk, told: Callable[[Text], None], taken: Callable[[Outcome], None]) -> None:
        """`told` hears what is refused, `taken` what was written, both one at a time."""
        self._desk, self._told, self._taken = desk, told, taken
        self._turn, self._places = Lock(), BoundedSemaphore(WAITING)
        self._guard, self._quiet = Lock(), float("-inf")

    def __call__(self, body: bytes) -> Reply:
        """The answer to a message. Refused when there is none to give."""
        if not self._places.acquire(blocking=False):
            raise Refused(503, "too many messages wait")
        try:
            return self._answer(body)
        finally:
            self._places.release()

    def _answer(self, body: bytes) -> Reply:
        try:
            message = read(json.loads(body))
        except PayloadError as error:
            raise Refused(400, f"none of Alertmanager's messages: {error.message}") from None
        except (ValueError, RecursionError) as error:  # UnicodeDecodeError is a ValueError
            raise Refused(400, f"no JSON: {excerpt(str(error), 200)}") from None
        if not self._turn.acquire(timeout=TURN):
            raise Refused(503, "too many messages wait")
        try:
            outcome = self._desk.take(message)
            self._taken(outcome)
        except StoreError as error:
            raise Refused(503, excerpt(error.said.en, 300)) from None
        finally:
            self._turn.release()
        return Reply(200, {"incident": outcome.incident.number, "new": outcome.new, "added": outcome.added})

    def refused(self, status: int, why: str, whence: str) -> None:
        """Say so, at most once a second: what floods the port does not flood the log."""
        with self._guard:
            now = time.monotonic()
            if now - self._quiet < QUIET:
                return
            self._quiet = now
        self._told(
            Text(f"a message from {whence} was refused: {status} {why}", f"拒绝了来自 {whence} 的消息：{status} {why}")
        )

    def settle(self, seconds: float) -> None:
        """Wait for the message that is being written."""
        if self._turn.acquire(timeout=seconds):
            self._turn.release()


class Listener:
    """Serves in a thread of its own until `close`."""

    def __init__(self, address: tuple[str, int], intake: Intake, manner: Manner) -> None:
        """UsageError when the address cannot be listened on, or must not be without a token."""
        door = Door(address[0], manner.token)
        if not door.token and not door.here:
            raise UsageError(
                f"{address[0]} can be reached from other machines, and there is no token",
                hint="give one with --token-file FILE, or listen on 127.0.0.1",
            )
        try:
            self._server = Bounded(address, _handler(intake, manner, door), manner.patience)
        except (OSError, OverflowError) as error:
            why = getattr(error, "strerror", None) or error
            raise UsageError(
                f"cannot listen on {address[0]}:{address[1]}: {why}", hint="choose another one with --address HOST:PORT"
            ) from None
        self._intake = intake
        self.port: int = self._server.server_address[1]
        shown = f"[{address[0]}]" if ":" in address[0] else address[0]
        self.url = f"http://{shown}:{self.port}{PATH}"
        self._thread = Thread(target=self._server.serve_forever, name="alerts", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Take no more; what is being written is written."""
        self._server.shutdown()
        self._server.server_close()
        self._intake.settle(LEAVE)


def _handler(intake: Intake, manner: Manner, door: Door) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        timeout = manner.read
        server_version = "gpudiag"
        sys_version = ""

        def do_POST(self) -> None:
            try:
                body = self._body()
                self._send(*intake(body))
            except Refused as no:
                intake.refused(no.status, no.why, self.client_address[0])
                self._send(no.status, {"error": no.why})

        def do_GET(self) -> None:
            if self.path == HEALTHY:
                self._send(200, {"status": "ok"})
            elif self.path == PATH:
                self._send(405, {"error": "Alertmanager posts here"})
            else:
                self._send(404, {"error": f"there is {PATH} and {HEALTHY}"})

        def _body(self) -> bytes:
            """What was sent, read only from whom it may come."""
            length = self._length()
            why = self._unwanted()
            if why is None and length <= manner.largest:
                return self._taken(length)
            self._pass(min(length, manner.largest))  # an answer before the end would be lost with the connection
            raise why or Refused(
                413, f"a message of {length} bytes: at most {manner.largest} are taken; see max_alerts"
            )

        def _length(self) -> int:
            text = self.headers.get("Content-Length", "")
            if "Transfer-Encoding" in self.headers or not (text.isascii() and text.isdecimal() and len(text) < 16):
                raise Refused(411, "a Content-Length is wanted")
            return int(text)

        def _unwanted(self) -> Refused | None:
            if self.path != PATH:
                return Refused(404, f"messages go to {PATH}")
            try:
                door.admit(self.headers)  # Alertmanager has no origin
            except Refused as no:
                return no
            kind = self.headers.get("Content-Type", "").partition(";")[0].strip().lower()
            return None if kind == "application/json" else Refused(415, "application/json is wanted")

        def _taken(self, length: int) -> bytes:
            try:
                body = self.rfile.read(length)
            except TimeoutError:
                raise Refused(408, "the message stopped in the middle") from None
            if len(body) < length:
                raise Refused(400, "the message ended in the middle")
            return body

        def _pass(self, length: int) -> None:
            with suppress(OSError):
                while length > 0 and (part := self.rfile.read(min(length, 1 << 16))):
                    length -= len(part)

        def _send(self, status: int, document: dict[str, Any]) -> None:
            body = (json.dumps(document) + "\n").encode()
            with suppress(OSError):  # it has gone
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body)))
                if status == 401:
                    self.send_header("WWW-Authenticate", "Bearer")
                if status == 503:
                    self.send_header("Retry-After", "5")
                self.end_headers()
                self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:
            """What matters is told elsewhere."""

    return Handler
