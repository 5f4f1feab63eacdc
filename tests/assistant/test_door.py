"""One door in front of every listener: who gets what, and that nothing which reaches a port is more than a status."""

from __future__ import annotations

import asyncio
import gzip
import json
import socket
import time
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path

import pytest
from aiohttp import ClientSession, web
from hypothesis import example, given, settings
from hypothesis import strategies as st
from prometheus_client.registry import CollectorRegistry
from slack_sdk.signature import SignatureVerifier

from assistant.bounded import bounded
from assistant.door import Door, Refused
from assistant.incidents.alert_desk import Desk, Outcome
from assistant.incidents.alert_message import PayloadError, read
from assistant.incidents.book import Book
from assistant.incidents.listen import Intake, Listener, Manner
from assistant.slack.serve import admit
from assistant.watch.server import Server
from tests.assistant.incidents.alert_lab import KNOWS
from tests.slack_bot import lab
from tests.slack_lab import Slack

TOKEN = "5f2c6a1b9d3e4f70"
GOOD = {"Authorization": f"Bearer {TOKEN}"}
EVIL = {"Host": "evil.example"}
PACKED = gzip.compress(bytes(32 << 20), 1)


def status(door: Door, headers: dict[str, str], *, secret: bool = True) -> int:
    try:
        door.admit(headers, secret=secret)
    except Refused as no:
        return no.status
    return 200


@pytest.mark.parametrize(
    ("listened", "token", "headers", "wanted"),
    [
        ("127.0.0.1", "", {"Host": "127.0.0.1:9836"}, 200),
        ("127.0.0.1", "", {"Host": "localhost:9836"}, 200),
        ("::1", "", {"Host": "[::1]:9836"}, 200),
        ("127.0.0.1", "", EVIL, 403),
        ("127.0.0.1", "", {"Host": "127.0.0.1.evil.example"}, 403),
        ("127.0.0.1", "", {"Host": "[::"}, 403),
        ("127.0.0.1", "", {"Host": "localhost", "Origin": "http://localhost"}, 403),
        ("127.0.0.1", TOKEN, {"Host": "localhost"}, 401),
        ("127.0.0.1", TOKEN, GOOD | EVIL, 200),  # who knows the token is no page of somebody else's
        ("0.0.0.0", "", {"Host": "10.0.0.1"}, 403),
        ("0.0.0.0", TOKEN, {"Host": "10.0.0.1"}, 401),
        ("0.0.0.0", TOKEN, {"Authorization": "Bearer é"}, 401),
        ("0.0.0.0", TOKEN, GOOD, 200),
        ("0.0.0.0", TOKEN, GOOD | {"Origin": "http://evil.example"}, 403),
    ],
)
def test_who_is_admitted(listened: str, token: str, headers: dict[str, str], wanted: int) -> None:
    assert status(Door(listened, token), headers) == wanted
    assert status(Door(listened, token), headers, secret=False) == (403 if "Origin" in headers else 200)


@pytest.fixture(scope="module")
def served() -> Iterator[int]:
    """The port of `watch` on loopback, without a token."""
    server = Server(("127.0.0.1", 0), CollectorRegistry(), {"/diagnosis": lambda: (200, {"secret": "job"})})
    yield server.port
    server.close()


def raw(port: int, data: bytes) -> bytes:
    """All that comes back for these bytes."""
    with closing(socket.create_connection(("127.0.0.1", port), 30)) as line:
        line.sendall(data)
        with suppress(OSError):
            line.shutdown(socket.SHUT_WR)
        parts = []
        with suppress(ConnectionError):
            while part := line.recv(1 << 16):
                parts.append(part)
        return b"".join(parts)


# No request of anybody's, and requests with an end that never comes.
JUNK = {
    "no text": b"\xff\xfe\x00\r\n\r\n",
    "TLS": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(64),
    "a version of tomorrow": b"GET / HTTP/9.9\r\n\r\n",
    "no address": b"GET //[ HTTP/1.1\r\nHost: [\r\nOrigin: http://[\r\n\r\n",
    "a path that is no text": b"POST /%ff%00\xff HTTP/1.1\r\nHost: x\r\n\r\n",
    "a long path": b"GET /" + b"a" * 100_000 + b" HTTP/1.1\r\n\r\n",
    "many headers": b"GET / HTTP/1.1\r\n" + b"".join(b"X-%d: y\r\n" % n for n in range(5_000)) + b"\r\n",
    "less than nothing": b"POST /slack/events HTTP/1.1\r\nContent-Length: -1\r\n\r\n",
    "two lengths": b"POST /alertmanager HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab",
    "more than there is": b"POST /slack/events HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999999\r\n\r\n{}",
    "a part that is none": b"POST /slack/events HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nZZ\r\n",
    "cut off in a part": b"POST /slack/events HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nff\r\nab",
    "packed, and is not": b"POST /slack/events HTTP/1.1\r\nHost: x\r\nContent-Encoding: gzip\r\nContent-Length: 4\r\n\r\nabcd",
    "packed a thousandfold": b"POST /slack/events HTTP/1.1\r\nHost: x\r\nContent-Encoding: gzip\r\nContent-Length: %d\r\n\r\n"
    % len(PACKED)
    + PACKED,
    "cookies": b"GET /ws HTTP/1.1\r\nHost: x\r\nCookie: =;\xff=\xfe; gpudiag-1=\r\nUpgrade: websocket\r\n\r\n",
}


def answered(port: int) -> dict[str, bytes]:
    """What each of them gets, to the first blank."""
    return {name: raw(port, data)[9:12] for name, data in JUNK.items()}


def ask(port: int, path: str, *headers: str) -> tuple[int, bytes]:
    got = raw(port, "\r\n".join((f"GET {path} HTTP/1.1", "Connection: close", *headers, "", "")).encode("latin-1"))
    return int(got.split()[1]), got


@pytest.mark.process
def test_what_watch_tells_a_page(served: int) -> None:
    assert ask(served, "/diagnosis", "Host: 127.0.0.1")[0] == 200
    for headers in (("Host: evil.example",), ("Host: 127.0.0.1", "Origin: http://evil.example")):
        code, got = ask(served, "/diagnosis", *headers)
        assert code == 403
        assert b"job" not in got
    assert ask(served, "/metrics", "Host: evil.example")[0] == 200
    with closing(Server(("0.0.0.0", 0), CollectorRegistry(), {"/diagnosis": lambda: (200, "job")}, TOKEN)) as far:
        assert [ask(far.port, "/diagnosis", *h)[0] for h in ((), ("Authorization: Bearer no",), (f"Authorization: Bearer {TOKEN}",))] == [
            401, 401, 200
        ]  # fmt: skip


@pytest.mark.process
@given(st.one_of(
    st.binary(max_size=300),
    st.builds(lambda path, accept, host: b"GET " + path + b" HTTP/1.1\r\nAccept: " + accept + b"\r\nHost: " + host + b"\r\n\r\n",
              *[st.binary(max_size=40).map(lambda b: b.replace(b"\n", b"").replace(b"\r", b""))] * 3),
))  # fmt: skip
@example(b"GET //[ HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
@example(b"GET /metrics HTTP/1.1\r\nAccept: application/openmetrics-text;version=x;q=z\r\n\r\n")
@settings(max_examples=25, deadline=None)
def test_any_bytes_get_a_status_or_an_end(served: int, data: bytes) -> None:
    """A whole request is answered, whatever its path and headers hold; then the next one."""
    got = raw(served, data)
    assert got or not (data.startswith(b"GET ") and data.endswith(b"\r\n\r\n"))
    assert ask(served, "/healthz", "Host: 127.0.0.1")[0] == 404


@pytest.mark.process
async def test_junk_is_a_refusal_and_no_line_of_a_log(
    served: int, tmp_path: Path, capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    """At every door (that of the app in a browser is in its own process, in `tests/tui/test_serve.py`)."""
    taken: list[Outcome] = []
    desk = Desk(Book(f"sqlite:///{tmp_path}/history.db"), KNOWS)
    with (
        closing(Listener(("127.0.0.1", 0), Intake(desk, lambda _: None, taken.append), Manner())) as listener,
        Slack() as there,
    ):
        async with lab(tmp_path, there, http=True) as bot:
            bots = int(bot.where.split(":")[2].partition("/")[0])
            for port in (served, listener.port, bots):
                got = await asyncio.to_thread(answered, port)
                assert b"500" not in got.values(), got
    assert not taken
    assert not [r for r in caplog.records if r.name != "asyncio"]
    assert "Traceback" not in capfd.readouterr().err


VERIFIER = SignatureVerifier("0123456789abcdef")


def signed(body: bytes, **other: str) -> dict[str, str]:
    stamp = str(int(time.time()))
    signature = VERIFIER.generate_signature(timestamp=stamp, body=body)
    return {"X-Slack-Request-Timestamp": stamp, "X-Slack-Signature": str(signature)} | {
        k.replace("_", "-"): v for k, v in other.items()
    }


def slack(headers: dict[str, str], body: bytes, kind: str = "application/json") -> int:
    try:
        admit(VERIFIER, headers, body, kind)
    except Refused as no:
        return no.status
    return 200


@given(st.binary(max_size=60) | st.recursive(st.none() | st.integers() | st.text(max_size=5), st.lists, max_leaves=5).map(
    lambda v: json.dumps(v).encode()), st.sampled_from(["application/json", "application/x-www-form-urlencoded", ""]))  # fmt: skip
@example(b"{", "application/json")
@example(b"[]", "application/json")
@example(b"\xff", "application/json")
@example(b"payload=[]", "application/x-www-form-urlencoded")
def test_what_slack_did_not_sign_or_never_sends(body: bytes, kind: str) -> None:
    """A status, before anything else looks at it."""
    assert slack({}, body, kind) in (400, 401)
    text = body.decode("utf-8", "replace").encode()
    good = signed(text)
    assert slack(good, text, kind) in (200, 400)
    for wrong in (
        {"X-Slack-Request-Timestamp": "abc"},
        {"X-Slack-Signature": "v0=é"},
        {"X-Slack-Request-Timestamp": "١"},
    ):
        assert slack(good | wrong, text, kind) == 401
    assert slack(good | {"Origin": "http://evil.example"}, text, kind) == 403


@pytest.mark.process
async def test_connections_that_say_nothing_keep_nobody_out() -> None:
    async def fine(_: web.Request) -> web.Response:
        return web.Response(text="fine")

    app = web.Application()
    app.router.add_get("/", fine)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    port = runner.addresses[0][1]
    bounding = asyncio.create_task(bounded(runner, 4, 0.01))
    silent = [await asyncio.open_connection("127.0.0.1", port) for _ in range(12)]
    ended = [asyncio.create_task(reader.read()) for reader, _ in silent]
    while sum(task.done() for task in ended) < 8:
        await asyncio.sleep(0.01)
    assert runner.server is not None
    assert len(runner.server.connections) <= 4
    async with ClientSession() as session, session.get(f"http://127.0.0.1:{port}/") as got:
        assert await got.text() == "fine"
    bounding.cancel()
    for task in ended:
        task.cancel()
    for _, writer in silent:
        writer.close()
    await runner.cleanup()


def test_what_slack_sends_is_admitted() -> None:
    for body, kind in ((b'{"type": "event_callback"}', "application/json"), (b"command=%2Fgpudiag&text=hi", "application/x-www-form-urlencoded"),
                       (b"payload=%7B%7D", "application/x-www-form-urlencoded")):  # fmt: skip
        assert slack(signed(body), body, kind) == 200
    assert slack(signed(b"[]"), b"[]") == 400


@given(st.recursive(st.none() | st.booleans() | st.floats() | st.text(max_size=5), lambda inner: st.lists(inner, max_size=3) | st.dictionaries(
    st.sampled_from(["alerts", "status", "labels", "annotations", "startsAt", "endsAt", "groupKey", "version", "receiver", "commonLabels", "x"]),
    inner, max_size=6), max_leaves=12))  # fmt: skip
def test_any_document_is_a_message_or_refused(document: object) -> None:
    """The listener for alerts: PayloadError and nothing else, which it answers with 400."""
    with suppress(PayloadError):
        read(document)
