"""Sends what waits in the outbox: one thread a receiver, so that one which never answers delays nobody else.

With the standard library alone: a client of its own would be a quarter of what `watch` may weigh.
"""

from __future__ import annotations

import http.client
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from threading import Event, Lock, Thread
from typing import Any

from assistant import __version__
from assistant.watch.webhook import TIMEOUT, Outbox, Target

STEP = 1.0  # seconds between two looks into the outbox


class Senders:
    """`lock` guards the outbox. `told` hears the outcome of each try: sent, retried or dropped, receiver, reason."""

    def __init__(self, outbox: Outbox, lock: Lock, told: Callable[[str, Target, str], None]) -> None:
        self._outbox, self._lock, self._told = outbox, lock, told
        self._stop = Event()
        self._threads = [
            Thread(target=self._run, args=(t,), name="webhook", daemon=True) for t in outbox.targets.values()
        ]

    def start(self) -> None:
        """Begin to send."""
        for thread in self._threads:
            thread.start()

    def close(self, seconds: float) -> None:
        """Send what is due, as far as receivers take it within `seconds`; the rest waits on disk."""
        self._stop.set()
        until = time.monotonic() + seconds
        for thread in self._threads:
            if thread.is_alive():
                thread.join(max(until - time.monotonic(), 0.0))

    def _run(self, target: Target) -> None:
        post = opener()
        while not self._stop.wait(STEP):
            self._send(target, post)
        self._send(target, post)  # what the last round had to say

    def _send(self, target: Target, post: urllib.request.OpenerDirector) -> None:
        while True:
            with self._lock:
                message = self._outbox.next(target.id, time.time_ns())
            if message is None:
                return
            headers = {"Content-Type": "application/json", "Idempotency-Key": message.id}
            status, pause = send(post, target.url, message.body.encode(), headers)
            with self._lock:
                outcome, why = self._outbox.settle(message, status, pause, time.time_ns())
            self._told(outcome, target, why)


class _Stay(urllib.request.HTTPRedirectHandler):
    """A receiver that moved is a fault to be told: an alert does not follow to where somebody points."""

    def redirect_request(self, *_: Any) -> None:
        return None


def opener() -> urllib.request.OpenerDirector:
    """Knows HTTP, HTTPS with the system's authorities, and the proxies of the environment."""
    return urllib.request.build_opener(_Stay())


def send(
    post: urllib.request.OpenerDirector, url: str, body: bytes, headers: Mapping[str, str]
) -> tuple[int, float | None]:
    """HTTP status, 0 when there was no answer; and the pause that the receiver asked for, seconds. The answer is not read."""
    named = dict(headers) | {"User-Agent": f"gpudiag/{__version__}"}
    try:
        with post.open(urllib.request.Request(url, data=body, headers=named, method="POST"), timeout=TIMEOUT) as answer:
            return int(answer.status), None
    except urllib.error.HTTPError as error:
        pause = (error.headers.get("Retry-After") or "").strip()
        error.close()
        return error.code, float(pause) if pause.isdecimal() and len(pause) < 9 else None
    except (OSError, http.client.HTTPException, ValueError):
        return 0, None
