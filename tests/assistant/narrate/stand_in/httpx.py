"""In httpx's place, below the stand-in for litellm: a client that posts, by the standard library."""

from __future__ import annotations

from dataclasses import dataclass
from http.client import HTTPConnection
from urllib.parse import urlsplit


class ReadTimeout(Exception):
    """No answer in time."""


@dataclass(slots=True)
class Request:
    """A POST."""

    url: str
    headers: dict[str, str]
    content: bytes
    timeout: float


@dataclass(slots=True)
class Response:
    """What came back, whole."""

    status_code: int
    content: bytes


class Client:
    """A connection for each request; child.py puts its own `send` around this one."""

    def __init__(self, *, follow_redirects: bool, trust_env: bool) -> None:
        assert not follow_redirects
        assert not trust_env

    def send(self, request: Request, *, follow_redirects: bool = True) -> Response:
        """Ask, and read all of the answer."""
        assert not follow_redirects
        url = urlsplit(request.url)
        connection = HTTPConnection(url.hostname or "", url.port, timeout=request.timeout)
        try:
            connection.request("POST", url.path, request.content, request.headers)
            answer = connection.getresponse()
            return Response(answer.status, answer.read())
        except TimeoutError as error:
            raise ReadTimeout(str(error)) from error
        finally:
            connection.close()
