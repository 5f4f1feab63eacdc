"""The app in a browser: who gets in, what is run, and what is left when they go."""

from __future__ import annotations

import asyncio
import json
import re
import shlex
import signal
import socket
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import aiohttp
import psutil
import pytest
from hypothesis import given
from hypothesis import strategies as st

from knowledge.errors import UsageError
from tests.assistant.test_door import answered
from tests.tui.lab import BUS, PATIENCE, arguments
from tests.tui.tmux_lab import ended, family
from tui.serve import MOST, Address, address, command, spoken


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("", Address("127.0.0.1", 8000)), ("9000", Address("127.0.0.1", 9000)), ("0.0.0.0:80", Address("0.0.0.0", 80)),
        ("localhost", Address("localhost", 8000)), ("[::1]:9000", Address("::1", 9000)), ("::1", Address("::1", 8000)),
        (":9000", Address("127.0.0.1", 9000)),
    ],
)  # fmt: skip
def test_addresses(text: str, wanted: Address) -> None:
    assert address(text) == wanted


@pytest.mark.parametrize("text", ["localhost:http", "localhost:0", "localhost:65536", "[::1]:x"])
def test_what_is_no_address(text: str) -> None:
    with pytest.raises(UsageError):
        address(text)


@given(st.text(st.characters(exclude_characters="\0", codec="utf-8"), min_size=1))
def test_a_name_stays_a_name_through_the_shell(name: str) -> None:
    args = arguments(Path("/tmp"), f"--bundle={name}", "--serve")
    words = command(args)
    assert shlex.split(shlex.join(words)) == words
    assert f"--bundle={name}" in words
    assert "--serve" not in words


@asynccontextmanager
async def served(
    folder: Path, environ: dict[str, str], *, ends: bool = False
) -> AsyncIterator[tuple[str, str, psutil.Process]]:
    """A server on a free port: its address, its token, its process. `ends`: the body tells it to."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    argv = [sys.executable, "-P", "-m", "assistant", "tui", *BUS, "--screen", "findings", "--serve", str(port)]
    kept = {"GPUDIAG_STATE_DIR": str(folder / "state"), "GPUDIAG_HISTORY_URL": "off"}
    child = await asyncio.create_subprocess_exec(*argv, env={**environ, **kept}, stderr=asyncio.subprocess.PIPE)
    assert child.stderr is not None
    try:
        line = (await asyncio.wait_for(child.stderr.readline(), PATIENCE)).decode()
        found = re.search(r"(http://127\.0\.0\.1:\d+)/\?token=(\S+)", line)
        assert found is not None, line
        yield found[1], found[2], psutil.Process(child.pid)
        if not ends:
            child.terminate()
        assert await asyncio.wait_for(child.wait(), PATIENCE) in (
            0,
            130,
        )  # 130: its five seconds were over, on a busy machine
        assert await child.stderr.read() == b""
    finally:
        with suppress(ProcessLookupError):
            child.kill()
        await child.wait()


@pytest.mark.process
async def test_a_visitor_with_the_token_works_in_the_app(tmp_path: Path, clean_environment: dict[str, str]) -> None:
    async with (
        served(tmp_path, clean_environment) as (url, token, server),
        aiohttp.ClientSession(cookie_jar=aiohttp.CookieJar(unsafe=True)) as visitor,
    ):
        async with visitor.get(f"{url}/", params={"token": token}) as page:
            assert page.status == 200
            assert "token" not in str(page.url)
            assert f"ws://{url.removeprefix('http://')}/ws" in await page.text()
        async with visitor.ws_connect(f"{url}/ws?width=120&height=40", origin=url) as socket_:
            seen = b""

            async def until(wanted: bytes) -> None:
                nonlocal seen
                while wanted not in seen:
                    message = await asyncio.wait_for(socket_.receive(), PATIENCE)
                    assert message.type in (aiohttp.WSMsgType.BINARY, aiohttp.WSMsgType.TEXT), message
                    seen += message.data if isinstance(message.data, bytes) else message.data.encode()

            await until(b"fallen off the bus")
            apps = family(server)[1:]
            assert apps
            await socket_.send_json(["stdin", "?"])
            await until(b"Ctrl-P finds")
        assert await asyncio.to_thread(ended, apps)


@pytest.mark.process
async def test_nobody_else_gets_in(tmp_path: Path, clean_environment: dict[str, str]) -> None:
    async with (
        served(tmp_path, clean_environment) as (url, token, server),
        aiohttp.ClientSession(cookie_jar=aiohttp.CookieJar(unsafe=True)) as stranger,
    ):
        for path in ("/", "/?token=x", "/ws", "/static/js/textual.js", "/download/x"):
            async with stranger.get(url + path) as refused:
                assert refused.status == 403
        async with stranger.get(f"{url}/", params={"token": token}):
            pass  # the browser of somebody who is let in ...
        with pytest.raises(aiohttp.WSServerHandshakeError):  # ... is used by a page of another site
            await stranger.ws_connect(f"{url}/ws", origin="http://elsewhere.example")
        assert not family(server)[1:]


@pytest.mark.process
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_junk_and_crowds_at_the_door_and_the_end(
    number: signal.Signals, tmp_path: Path, clean_environment: dict[str, str]
) -> None:
    """A visitor is not put out by them, finds the app, and is told when it ends; nothing stays."""
    async with (
        served(tmp_path, clean_environment, ends=True) as (url, token, server),
        aiohttp.ClientSession(cookie_jar=aiohttp.CookieJar(unsafe=True)) as visitor,
    ):
        port = int(url.rpartition(":")[2])
        async with visitor.get(f"{url}/", params={"token": token}):
            pass
        async with visitor.ws_connect(f"{url}/ws", origin=url) as page:
            await asyncio.wait_for(page.receive(), PATIENCE)
            crowd = [await asyncio.open_connection("127.0.0.1", port) for _ in range(100)]
            ended_first = asyncio.gather(*(reader.read() for reader, _ in crowd[:36]))
            await asyncio.wait_for(ended_first, PATIENCE)
            assert b"500" not in (await asyncio.to_thread(answered, port)).values()
            for query in ("?width=99999999&height=24", "?width=-3", "?width=x", f"?height=40;touch%20{tmp_path}/x"):
                with pytest.raises(aiohttp.WSServerHandshakeError, match="400"):
                    await visitor.ws_connect(f"{url}/ws{query}", origin=url)
            async with visitor.get(f"{url}/ws") as no_socket:
                assert no_socket.status == 400
            for junk in ("x", "[]", '["stdin", 5]', '["resize", {}]', "[" * 50_000, '["stdin", "\\ud800"]'):
                await page.send_str(junk)
            await page.send_json(["ping", "still there?"])
            while (message := await asyncio.wait_for(page.receive(), PATIENCE)).type is not aiohttp.WSMsgType.TEXT:
                assert message.type is aiohttp.WSMsgType.BINARY
            assert message.json() == ["pong", "still there?"]
            apps = family(server)[1:]
            server.send_signal(number)
            while (message := await asyncio.wait_for(page.receive(), PATIENCE)).type is not aiohttp.WSMsgType.CLOSED:
                pass
        assert await asyncio.to_thread(ended, apps)
        assert not (tmp_path / "x").exists()
        for _, writer in crowd:
            writer.close()


def test_a_page_says_nothing_else() -> None:
    assert all(
        map(
            spoken,
            ('["stdin", "q"]', '["resize", {"width": 80, "height": 24}]', '["ping", "1"]', '["blur"]', '["focus"]'),
        )
    )
    for size in (0, -1, MOST + 1, 1.5, "80", None, True):
        assert not spoken(json.dumps(["resize", {"width": 80, "height": size}]))


@given(
    st.text(max_size=40)
    | st.recursive(
        st.none() | st.integers() | st.text(max_size=8),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["width", "height"]), inner),
        max_leaves=6,
    ).map(json.dumps)
)
def test_whatever_a_page_says_is_heard_or_not(data: str) -> None:
    assert spoken(data) in (True, False)
