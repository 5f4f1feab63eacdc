"""The app in a browser: who gets in, what is run, and what is left when they go."""

from __future__ import annotations

import asyncio
import re
import shlex
import socket
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp
import psutil
import pytest
from hypothesis import given
from hypothesis import strategies as st

from knowledge.errors import UsageError
from tests.tui.lab import BUS, PATIENCE, arguments
from tests.tui.tmux_lab import ended, family
from tui.serve import Address, address, command


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
async def served(folder: Path, environ: dict[str, str]) -> AsyncIterator[tuple[str, str, psutil.Process]]:
    """A server on a free port: its address, its token, its process."""
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
        for _ in range(int(PATIENCE / 0.1)):
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    break
            await asyncio.sleep(0.1)
        yield found[1], found[2], psutil.Process(child.pid)
    finally:
        if child.returncode is None:
            child.terminate()
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
        async with visitor.ws_connect(f"{url}/ws?width=120&height=40;touch%20{tmp_path}/x", origin=url) as socket_:
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
        assert not (tmp_path / "x").exists()


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
