"""A file of Slack's, downloaded with the bot's token, which goes to Slack and to nobody else.

Slack answers a token that may not see a file with its login page and status 200, so what comes back is looked at before it is
taken for the file.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, BinaryIO

from aiohttp import ClientError, ClientSession, ClientTimeout
from yarl import URL

from assistant.slack.heard import File
from knowledge.language import Text
from knowledge.text import excerpt

if TYPE_CHECKING:
    from aiohttp import ClientResponse
    from slack_sdk.web.async_client import AsyncWebClient

PART = 256 << 10  # bytes written at once
TIMES = ClientTimeout(total=300, connect=20, sock_read=30)  # seconds
TRIES = 3  # of a line that breaks, a server at fault, a server that asks for a pause
PAUSE = 30.0  # seconds: the longest that is waited when Slack asks for it
_HOPS = 3  # redirects on one host
_REDIRECTS = (301, 302, 303, 307, 308)
_AGAIN = (429, 500, 502, 503, 504)
# Where Slack keeps files: docs.slack.dev/reference/objects/file-object; slack-gov.com is GovSlack.
_SLACK = ("slack.com", "slack-files.com", "slack-edge.com", "slack-gov.com")
_LOGIN = Text(
    "Slack shows its login page instead of it: the bot may not read it. It needs the scope files:read and has to be in the channel",
    "Slack 返回登录页而不是文件：机器人无权读取。它需要 files:read 权限，并且必须在该频道中",
)
_ELSEWHERE = Text(
    "it is not kept by Slack, and the bot's token goes nowhere else: upload the file itself",
    "该文件不在 Slack 上，机器人的令牌不会发往别处：请直接上传文件本身",
)


class LostError(Exception):
    """The file did not come. `why` is for people."""

    def __init__(self, why: Text) -> None:
        super().__init__(why.en)
        self.why = why


def larger(limit: int) -> Text:
    """It is larger than `limit` bytes."""
    room = f"{limit >> 20} MiB" if limit >= 1 << 20 else f"{limit >> 10} KiB"
    return Text(
        f"it is larger than the {room} that are left for files of this thread: read it where it is with gpudiag",
        f"它超出了本话题剩余的文件空间（{room}）：请在文件所在处运行 gpudiag",
    )


async def download(client: AsyncWebClient, session: ClientSession, file: File, into: BinaryIO, limit: int) -> int:
    """The file's bytes, at most `limit` of them, into an empty stream; how many there are. LostError."""
    for left in reversed(range(TRIES)):
        try:
            async with asyncio.timeout(TIMES.total):
                return await _once(client, session, file, into, limit)
        except (ClientError, TimeoutError, _Busy) as error:
            if not left:
                why = excerpt(str(error), 120) or type(error).__name__
                raise LostError(Text(f"Slack did not send it: {why}", f"Slack 未能发送：{why}")) from error
            await asyncio.sleep(min(getattr(error, "pause", 0.5), PAUSE))
        except OSError as error:
            why = error.strerror or type(error).__name__
            raise LostError(Text(f"it cannot be kept here: {why}", f"无法保存：{why}")) from error
        into.seek(0)
        into.truncate()
    raise AssertionError


class _Busy(Exception):
    """Slack asks to come again; after so many seconds, where it says."""

    def __init__(self, status: int, after: str | None) -> None:
        super().__init__(f"HTTP {status}")
        self.pause = float(after) if after is not None and after.isdigit() else 0.5


async def _once(client: AsyncWebClient, session: ClientSession, file: File, into: BinaryIO, limit: int) -> int:
    url, turned = _address(file.url), False
    if url is None or not ours(client, url):
        raise LostError(_ELSEWHERE)
    for _ in range(_HOPS + 1):
        # What is packed stays packed: nothing may unpack to more than was announced.
        headers = {"Authorization": f"Bearer {client.token}", "Accept-Encoding": "identity"}
        async with session.get(
            url, headers=headers, allow_redirects=False, proxy=client.proxy, ssl=client.ssl or True, timeout=TIMES
        ) as answer:  # fmt: skip
            if answer.status not in _REDIRECTS:
                return await _taken(answer, file, into, limit, turned)
            to = _address(answer.headers.get("Location", ""), url)
        if to is None or to.origin() != url.origin():
            raise LostError(_LOGIN if to is not None and ours(client, to) else _ELSEWHERE)
        url, turned = to, True
    raise LostError(_LOGIN)


async def _taken(answer: ClientResponse, file: File, into: BinaryIO, limit: int, turned: bool) -> int:
    if answer.status in _AGAIN:
        raise _Busy(answer.status, answer.headers.get("Retry-After"))
    if answer.status in (401, 403):
        raise LostError(_LOGIN)
    if answer.status != 200:
        raise LostError(Text(f"Slack does not have it any more (HTTP {answer.status})",
                             f"Slack 上已没有该文件（HTTP {answer.status}）"))  # fmt: skip
    length = answer.content_length
    if length is not None and length > limit:
        raise LostError(larger(limit))
    if answer.content_type == "text/html" and (turned or length != file.size):
        raise LostError(_LOGIN)
    got = 0
    async for part in answer.content.iter_chunked(PART):
        got += len(part)
        if got > limit:
            raise LostError(larger(limit))
        await asyncio.to_thread(into.write, part)
    return got


def ours(client: AsyncWebClient, url: URL) -> bool:
    """Whether the token may go there: to Slack over TLS, or to the server whose API the bot uses."""
    if url.origin() == URL(client.base_url).origin():
        return True
    host = (url.host or "").rstrip(".")
    return url.scheme == "https" and any(host == name or host.endswith(f".{name}") for name in _SLACK)


def _address(text: str, base: URL | None = None) -> URL | None:
    """An address of a web server, read as aiohttp will read it; None for anything else."""
    try:
        url = URL(text) if base is None else base.join(URL(text))
        return url if url.scheme in ("http", "https") and url.host else None
    except ValueError:
        return None
