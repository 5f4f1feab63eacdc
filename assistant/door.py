"""Who may speak to a listener of ours: one rule for `watch`, `incident listen`, the app in a browser and Slack's requests.

* Beyond loopback everything needs the token, but what tells no more than numbers and health (`/metrics`, `/healthz`, `/readyz`).
* Without a token the Host must be an address or a name of this machine: a page in somebody's browser whose name was pointed at
  127.0.0.1 after it was loaded (DNS rebinding) sends its own.
* A request with an Origin comes from a page. None is served but our own.
"""

from __future__ import annotations

import hmac
import ipaddress
import platform
import socket
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from knowledge.errors import InputError, UsageError
from knowledge.record import dataclass

if TYPE_CHECKING:
    from email.message import Message

SHORTEST = 16  # characters of a token: a shorter one can be guessed


class Refused(Exception):
    """A request that is not served: the HTTP status, and why."""

    def __init__(self, status: int, why: str) -> None:
        super().__init__(why)
        self.status, self.why = status, why


@dataclass(frozen=True, slots=True)
class Door:
    """In front of a listener at `host`. `token` is empty where there is none."""

    host: str
    token: str = ""

    @property
    def here(self) -> bool:
        """Whether only this machine reaches it."""
        return loopback(self.host)

    def admit(self, headers: Mapping[str, str] | Message, *, secret: bool = True) -> None:
        """Refused for a request that may not be served. Not `secret`: what everybody may know."""
        if "Origin" in headers:
            raise Refused(403, "pages of browsers are not served")
        if not secret:
            return
        if not self.token and not self.here:
            raise Refused(403, "beyond loopback this needs a token, and none is set: --token-file FILE")
        given = headers.get("Authorization", "")
        if self.token and not same(given, f"Bearer {self.token}"):
            raise Refused(401, "the token is another one" if given else "a token is wanted")
        if not self.token and not ours(headers.get("Host", ""), self.host):
            raise Refused(403, "the Host of this request is no name of this machine")


def ours(host: str, listened: str) -> bool:
    """Whether a Host header names an address, this machine, or what is listened on. HTTP/1.0 sends none."""
    try:
        name = (urlsplit(f"//{host}").hostname or "").rstrip(".")
    except ValueError:
        return False
    if not host or name in {"localhost", listened.lower(), platform.node().lower()}:
        return True
    try:
        ipaddress.ip_address(name.partition("%")[0])
    except ValueError:
        return False
    return True


def same(given: str, wanted: str) -> bool:
    """Compared in the same time wherever they differ; a header may hold any byte."""
    return hmac.compare_digest(given.encode("utf-8", "replace"), wanted.encode())


def loopback(host: str) -> bool:
    """Whether only this machine reaches an address. UsageError for a name that means none."""
    try:
        found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except (OSError, UnicodeError) as error:
        raise UsageError(f"cannot listen on {host}: {getattr(error, 'strerror', None) or error}") from None
    return all(ipaddress.ip_address(str(row[4][0]).partition("%")[0]).is_loopback for row in found)


def token_of(path: str) -> str:
    """The token that a file holds, in one line. InputError when it cannot be read, UsageError when it is none."""
    if not path:
        return ""
    try:
        text = Path(path).read_text(encoding="ascii").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: {getattr(error, 'strerror', None) or 'no text of letters and digits'}") from None
    if len(text) < SHORTEST or not text.isprintable() or " " in text:
        raise UsageError(
            f"{path} holds no token: one word of at least {SHORTEST} characters is wanted",
            hint=f"openssl rand -hex 32 > {path}",
        )
    return text
