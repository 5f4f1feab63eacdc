"""Running the bot: over Socket Mode, which needs no open port, or as a server that Slack posts signed requests to."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import re
import signal
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING
from urllib.parse import parse_qs

from aiohttp import ClientSession
from slack_sdk.web.async_client import AsyncWebClient

from assistant.bounded import serving
from assistant.door import Refused
from assistant.ending import within
from assistant.journal import Journal
from assistant.rights import source
from assistant.rights.approvals import Approvals
from assistant.slack.app import app
from assistant.slack.bot import Bot
from assistant.slack.ledger import Ledger
from assistant.slack.people import People
from assistant.slack.post import SILENCE, Poster, called
from assistant.slack.uploads import Uploads
from assistant.watch.notify import Notify
from knowledge.record import dataclass

if TYPE_CHECKING:
    from aiohttp import web
    from slack_bolt.async_app import AsyncApp
    from slack_sdk.signature import SignatureVerifier

    from assistant.config import Settings
    from assistant.rights.policy import Policy
    from assistant.slack.tokens import Tokens
    from rules.loader import RuleSet

PATH = "/slack/events"
STAMP, SIGNATURE = re.compile(r"[0-9]{1,12}"), re.compile(r"v0=[0-9a-f]{64}")
DAILY = 86_400.0  # seconds between two rounds of forgetting
log = logging.getLogger("gpudiag.slack")


@dataclass(frozen=True, slots=True)
class Ready:
    """A bot that is listening."""

    bot: Bot
    where: str  # for people


@asynccontextmanager
async def running(
    settings: Settings, ruleset: RuleSet, tokens: Tokens, *, http: tuple[str, int] | None = None, pace: float = 1.0
) -> AsyncIterator[Ready]:  # fmt: skip
    """The bot, while the body runs. SlackError when Slack does not take its tokens, GpudiagError when a file is no good.

    `http`: where to listen instead of Socket Mode; port 0 takes a free one. `pace`: seconds between two edits of a message.
    """
    async with ClientSession() as session:  # one line for all calls, rather than one for each
        client = AsyncWebClient(token=tokens.bot, base_url=settings.slack.api, timeout=SILENCE, session=session)
        async with _listening(client, settings, ruleset, tokens, http, pace) as ready:
            yield ready


@asynccontextmanager
async def _listening(
    client: AsyncWebClient, settings: Settings, ruleset: RuleSet, tokens: Tokens, http: tuple[str, int] | None, pace: float
) -> AsyncIterator[Ready]:  # fmt: skip
    from assistant.config import state_folder

    folder = state_folder(settings)
    policy: Callable[[], Policy] = source(settings)
    for doubt in policy().doubts:  # its faults are raised here
        log.warning("%s", doubt)
    journal = Journal(settings.history.url)
    await asyncio.to_thread(journal.head)  # without it nothing may be run
    own = await called("auth.test", client.auth_test())
    people = People(client, policy)
    bot = Bot(
        client, settings, ruleset, policy, Ledger(folder), journal, Approvals(journal, policy, people=people.now), people,
        Poster(client, pace), Uploads(client, folder / "slack"), str(own["user_id"]),
    )  # fmt: skip
    listening = app(client, tokens.signing, lambda: bot)
    try:
        way = (
            _http(listening, tokens.signing, *http)
            if http is not None
            else _socket(listening, tokens.app, settings.slack.api)
        )
        async with way as where:
            forgetting = asyncio.create_task(_forgetting(bot))
            await bot.recover()
            yield Ready(bot, where)
            forgetting.cancel()
    finally:
        await bot.close()


async def _forgetting(bot: Bot) -> None:
    while True:
        await asyncio.sleep(DAILY)
        await asyncio.to_thread(bot.ledger.prune)
        await asyncio.to_thread(bot.uploads.prune)


@asynccontextmanager
async def _socket(listening: AsyncApp, token: str, api: str) -> AsyncIterator[str]:
    from assistant.slack.line import line

    made = line(listening, token, AsyncWebClient(token=token, base_url=api, timeout=SILENCE))
    try:
        await made.connect()
        yield "Socket Mode"
    finally:
        with suppress(Exception):
            await made.close()  # type: ignore[no-untyped-call]  # slack_sdk's


@asynccontextmanager
async def _http(listening: AsyncApp, secret: str, host: str, port: int) -> AsyncIterator[str]:
    from aiohttp import web
    from slack_bolt.adapter.aiohttp import to_aiohttp_response, to_bolt_request
    from slack_sdk.signature import SignatureVerifier

    verifier = SignatureVerifier(secret)

    async def take(request: web.Request) -> web.Response:
        try:
            admit(verifier, request.headers, await _body(request), request.content_type)
        except Refused as no:
            return web.json_response({"error": no.why}, status=no.status)
        return await to_aiohttp_response(await listening.async_dispatch(await to_bolt_request(request)))

    server = web.Application(client_max_size=1 << 20)
    server.router.add_post(PATH, take)
    async with serving(server, host, port) as at:
        yield f"http://{at[0]}:{at[1]}{PATH}"


async def _body(request: web.Request) -> bytes:
    """All that was sent. Refused when it cannot be unpacked, or ends in the middle."""
    from aiohttp import web

    try:
        return await request.read()
    except (web.RequestPayloadError, ConnectionError):
        raise Refused(400, "no whole request") from None


def admit(verifier: SignatureVerifier, headers: Mapping[str, str], body: bytes, kind: str) -> None:
    """Refused for what Slack did not sign just now, before anything is read of it, and for what holds nothing of Slack's."""
    if "Origin" in headers:
        raise Refused(403, "pages of browsers are not served")
    stamp, signature = headers.get("X-Slack-Request-Timestamp", ""), headers.get("X-Slack-Signature", "")
    formed = STAMP.fullmatch(stamp) and SIGNATURE.fullmatch(signature)
    try:
        text = body.decode()
    except UnicodeDecodeError:
        raise Refused(400, "no UTF-8") from None
    if not formed or not verifier.is_valid(text, stamp, signature):
        raise Refused(401, "not signed by Slack, or not just now")
    try:
        held = json.loads(text if kind == "application/json" else parse_qs(text).get("payload", ["{}"])[0])
    except (ValueError, RecursionError):
        held = None
    if not isinstance(held, dict):
        raise Refused(400, "none of Slack's requests")


async def _served(
    settings: Settings, ruleset: RuleSet, tokens: Tokens, http: tuple[str, int] | None, tell: Callable[[str], None],
    ended: asyncio.Event,
) -> None:  # fmt: skip
    """The bot: what it waits for before it listens is cut short by who cancels this."""
    async with running(settings, ruleset, tokens, http=http) as ready:
        tell(ready.where)
        systemd = Notify(os.environ)
        systemd("READY=1")
        while not ended.is_set():
            systemd.alive()
            with suppress(TimeoutError):
                await asyncio.wait_for(ended.wait(), systemd.every)
        systemd("STOPPING=1")


async def serve(
    settings: Settings, ruleset: RuleSet, tokens: Tokens, http: tuple[str, int] | None, tell: Callable[[str], None]
) -> None:  # fmt: skip
    """Until SIGTERM or SIGINT, and at most a few seconds longer, also where it waits for Slack."""
    ended = asyncio.Event()
    listening: list[str] = []

    def told(where: str) -> None:
        listening.append(where)
        tell(where)

    loop = asyncio.get_running_loop()

    def end() -> None:
        within()
        ended.set()

    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, end)
    serving = asyncio.create_task(_served(settings, ruleset, tokens, http, told, ended))
    waiting = asyncio.create_task(ended.wait())
    await asyncio.wait((serving, waiting), return_when=asyncio.FIRST_COMPLETED)
    waiting.cancel()
    if not serving.done() and not listening:
        serving.cancel()
    with suppress(asyncio.CancelledError):
        await serving
