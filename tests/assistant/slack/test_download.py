"""A server that answers for Slack and does it wrong: redirects, login pages, pauses, lines that break. The token stays with Slack."""

from __future__ import annotations

import asyncio
import gzip
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("slack_sdk")
pytest.importorskip("aiohttp")

from aiohttp import web
from aiohttp.test_utils import TestServer
from slack_sdk.web.async_client import AsyncWebClient

from assistant.slack.heard import File, Place
from assistant.slack.uploads import Uploads
from tests.assistant.dialogue.talk import OFF_BUS

PLACE = Place("T0LAB", "C1", "100.1")
LOG = OFF_BUS.encode()


def notes(given: Any) -> str:
    return "\n".join(note.en for note in given.notes)


class Faulty:
    """A server that answers for Slack, and writes down which tokens came."""

    def __init__(self) -> None:
        self.tokens: list[tuple[str, str]] = []
        self.times = 0
        self.answer: Any = None

    async def serve(self, request: web.Request) -> web.StreamResponse:
        self.tokens.append((request.path, request.headers.get("Authorization", "")))
        self.times += 1
        found = self.answer(request)
        said: web.StreamResponse = await found if asyncio.iscoroutine(found) else found
        return said


@pytest.fixture
async def faulty() -> AsyncIterator[tuple[Faulty, TestServer, Faulty, TestServer]]:
    one, other = Faulty(), Faulty()
    servers = []
    for each in (one, other):
        app = web.Application()
        app.router.add_route("*", "/{rest:.*}", each.serve)
        servers.append(TestServer(app))
        await servers[-1].start_server()
    yield one, servers[0], other, servers[1]
    for server in servers:
        await server.close()


Both = tuple[Faulty, TestServer, Faulty, TestServer]


async def fetched(faulty: Both, folder: Path, url: str = "", size: int = len(LOG), name: str = "k.log") -> Any:
    client = AsyncWebClient(token="xoxb-lab", base_url=str(faulty[1].make_url("/api/")))
    file = File("F1", name, size, url or str(faulty[1].make_url("/files-pri/k.log")))
    return await Uploads(client, folder / "files").fetch(PLACE, [file])


def page(_: web.Request) -> web.Response:
    return web.Response(text="<!DOCTYPE html><html><title>Sign in</title></html>", content_type="text/html")


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
async def test_the_token_goes_to_no_other_host(faulty: Both, tmp_path: Path, status: int) -> None:
    one, _, other, there = faulty
    other.answer = lambda _: web.Response(body=LOG)
    one.answer = lambda _: web.Response(status=status, headers={"Location": str(there.make_url("/steal"))})
    given = await fetched(faulty, tmp_path)
    assert given.paths == ()
    assert "k.log: it is not kept by Slack" in notes(given)
    assert other.tokens == []


@pytest.mark.parametrize(
    "url",
    ["http://127.0.0.1:1/x", "https://files.slack.com.evil.example/x", "https://evil.example/files.slack.com", "http://files.slack.com/x",
     "https://files.slack.com@evil.example/x", "https://evil.example\\@files.slack.com/x", "https://evilslack.com/x", "file:///etc/passwd",
     "ftp://files.slack.com/x", "https:///x", "https://[::1/x", "//x", "x"],
)  # fmt: skip
async def test_no_other_address_is_asked(faulty: Both, tmp_path: Path, url: str) -> None:
    given = await fetched(faulty, tmp_path, url)
    assert "k.log: it is not kept by Slack, and the bot's token goes nowhere else" in notes(given)
    assert faulty[0].tokens == []


async def test_redirects_on_the_same_host_are_followed_but_not_for_ever(faulty: Both, tmp_path: Path) -> None:
    faulty[0].answer = lambda r: web.Response(body=LOG) if r.path == "/there" else web.Response(
        status=302, headers={"Location": "/there"})  # fmt: skip
    given = await fetched(faulty, tmp_path)
    assert given.paths[0].read_bytes() == LOG
    assert faulty[0].tokens == [("/files-pri/k.log", "Bearer xoxb-lab"), ("/there", "Bearer xoxb-lab")]
    faulty[0].answer = lambda r: web.Response(status=302, headers={"Location": r.path + "x"})
    assert "login page" in notes(await fetched(faulty, tmp_path / "b"))
    assert faulty[0].times == 2 + 4


async def test_a_page_instead_of_the_file(faulty: Both, tmp_path: Path) -> None:
    faulty[0].answer = page  # status 200, no redirect: a token without files:read
    assert "login page" in notes(await fetched(faulty, tmp_path))
    assert "login page" in notes(await fetched(faulty, tmp_path, size=0))
    whole = len(page(None).body)  # type: ignore[arg-type]
    given = await fetched(faulty, tmp_path, size=whole, name="report.html")  # that is what was shared
    assert [path.name for path in given.paths] == ["report.html"]


async def test_slack_asks_for_a_pause_and_fails_for_a_moment(faulty: Both, tmp_path: Path) -> None:
    answers = [web.Response(status=429, headers={"Retry-After": "1"}), web.Response(status=503)]
    faulty[0].answer = lambda _: answers.pop(0) if answers else web.Response(body=LOG)
    begun = time.monotonic()
    given = await fetched(faulty, tmp_path)
    assert given.paths[0].read_bytes() == LOG
    assert time.monotonic() - begun >= 1.0
    faulty[0].answer = lambda _: web.Response(status=500)
    lost = await fetched(faulty, tmp_path / "b")
    assert "k.log: Slack did not send it: HTTP 500" in notes(lost)
    assert faulty[0].times == 6


async def test_a_line_that_breaks_leaves_nothing_half(faulty: Both, tmp_path: Path) -> None:
    async def broken(request: web.Request) -> web.StreamResponse:
        answer = web.StreamResponse(headers={"Content-Length": "1000"})
        await answer.prepare(request)
        await answer.write(b"x" * 500)
        assert request.transport is not None
        request.transport.abort()
        return answer

    faulty[0].answer = broken
    lost = await fetched(faulty, tmp_path, size=1000)
    assert "k.log: Slack did not send it" in notes(lost)
    assert faulty[0].times == 3
    assert [p for p in (tmp_path / "files").rglob("*") if p.is_file()] == []
    faulty[0].answer = lambda r: web.Response(body=LOG) if faulty[0].times > 4 else broken(r)
    assert (await fetched(faulty, tmp_path)).paths[0].read_bytes() == LOG  # nothing of the first half stands before it


async def test_what_is_packed_stays_packed(faulty: Both, tmp_path: Path) -> None:
    bomb = gzip.compress(b"0" * (4 << 20))
    faulty[0].answer = lambda _: web.Response(body=bomb, headers={"Content-Encoding": "gzip"})
    assert (await fetched(faulty, tmp_path, size=len(bomb))).paths[0].read_bytes() == bomb
