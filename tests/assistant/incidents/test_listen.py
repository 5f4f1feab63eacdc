"""The listener over real HTTP: Alertmanager's messages, and everything else that reaches a port."""

from __future__ import annotations

import http.client
import json
import os
import signal
import socket
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from assistant.door import loopback
from assistant.incidents.alert_check import Checker
from assistant.incidents.alert_desk import Desk, Outcome
from assistant.incidents.book import Book
from assistant.incidents.events import Hand, closed
from assistant.incidents.listen import PATH, WAITING, Intake, Listener, Manner
from knowledge.errors import UsageError
from knowledge.language import Text
from tests.assistant.incidents.alert_lab import KNOWS, LOST, alert, message
from tests.command_server import Command, CommandServer
from tests.conftest import ROOT, Gpudiag

TOKEN = "5f2c6a1b9d3e4f70"
BUNDLE = str(ROOT / "assistant" / "demos" / "off-the-bus" / "bundle")
JSON = {"Content-Type": "application/json"}
Serve = Callable[..., "Served"]


class Served:
    """A listener in this process, what it said, and a way to post to it."""

    def __init__(self, url: str, manner: Manner) -> None:
        self.book, self.said, self.taken = Book(url), list[Text](), list[Outcome]()
        intake = Intake(Desk(self.book, KNOWS), self.said.append, self.taken.append)
        self.listener = Listener(("127.0.0.1", 0), intake, manner)
        self.port = self.listener.port

    def post(self, body: object, path: str = PATH, method: str = "POST", **headers: str) -> tuple[int, dict[str, Any]]:
        return request(self.port, body, path, method, **headers)


def request(
    port: int, body: object, path: str = PATH, method: str = "POST", **headers: str
) -> tuple[int, dict[str, Any]]:
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    line = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    try:
        line.request(method, path, raw, {**JSON, **{k.replace("_", "-"): v for k, v in headers.items()}})
        answer = line.getresponse()
        return answer.status, json.loads(answer.read())
    finally:
        line.close()


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[Serve]:
    made: list[Served] = []

    def start(url: str = f"sqlite:///{tmp_path}/history.db", **manner: Any) -> Served:
        made.append(Served(url, Manner(**manner)))
        return made[-1]

    yield start
    for served in made:
        served.listener.close()


@pytest.mark.process
def test_from_the_first_message_to_a_new_incident(serve: Serve) -> None:
    s = serve()
    assert s.post(message([alert("a", **LOST)])) == (200, {"incident": 1, "new": True, "added": 3})
    assert s.post(message([alert("a", **LOST)])) == (200, {"incident": 1, "new": False, "added": 0})
    assert s.post(message([alert("a", "resolved", **LOST)]))[1]["added"] == 2
    assert str(s.book.incident(1).status) == "mitigated"
    assert s.post(message([alert("a", "firing", 9, **LOST)]))[1]["incident"] == 1
    assert str(s.book.incident(1).status) == "open"
    s.book.add(1, Hand("alice", "cli"), closed("board replaced"))
    assert s.post(message([alert("a", "firing", 9, **LOST)])) == (200, {"incident": 1, "new": False, "added": 0})
    assert s.post(message([alert("a", "resolved", 9, **LOST)]))[1] == {"incident": 1, "new": False, "added": 1}
    assert not s.book.incident(1).is_open
    assert s.post(message([alert("a", "firing", 30, **LOST)]))[1] == {"incident": 2, "new": True, "added": 3}
    assert s.post(message([alert("a")], key="another"))[1]["incident"] == 3
    assert [o.incident.number for o in s.taken] == [1, 1, 1, 1, 1, 1, 2, 3]


@pytest.mark.process
def test_a_listener_that_begins_anew_knows_its_groups(serve: Serve) -> None:
    first = serve()
    first.post(message([alert("a")]))
    first.post(message([alert("b")], key="another"))
    first.listener.close()
    second = serve()
    assert second.post(message([alert("a")]))[1] == {"incident": 1, "new": False, "added": 0}
    assert second.post(message([alert("b", "resolved")], key="another"))[1] == {"incident": 2, "new": False, "added": 2}


@pytest.mark.process
@pytest.mark.parametrize(
    ("body", "headers", "status", "why"),
    [
        (b"{", {}, 400, "no JSON"),
        (b"\xff\xfe", {}, 400, "no JSON"),
        (b"[" * 60_000, {}, 400, "no JSON"),
        (b"9" * 10_000, {}, 400, "no JSON"),
        (b"", {}, 400, "no JSON"),
        ({"version": "3"}, {}, 400, "version is '3'"),
        (message([{**alert("a"), "startsAt": ""}]), {}, 400, "alerts[0].startsAt"),
        (message([alert("a")]), {"Content_Type": "text/plain"}, 415, "application/json"),
        (message([alert("a")]), {"Origin": "https://evil.example"}, 403, "browsers"),
        (message([alert("a")]), {"path": "/api/v2/alerts"}, 404, "messages go to"),
        (message([alert("a")]), {"Content_Length": "x"}, 411, "Content-Length"),
        (message([alert("a")]), {"Transfer_Encoding": "chunked"}, 411, "Content-Length"),
        (message([alert("a", x="y" * 70_000)]), {}, 413, "max_alerts"),
        (message([alert("a")]), {"method": "GET"}, 405, "posts here"),
        (message([alert("a")]), {"method": "GET", "path": "/"}, 404, "/-/healthy"),
    ],
    ids=["cut", "no-text", "deep", "long-number", "empty", "version", "no-time", "kind", "browser", "path", "length", "chunked",
         "huge", "get", "root"],
)  # fmt: skip
def test_what_is_none_of_alertmanagers_messages_is_refused_for_good(
    serve: Serve, body: object, headers: dict[str, str], status: int, why: str
) -> None:
    s = serve(largest=65_536)
    found, answer = s.post(body, **headers)
    assert (found, why in answer["error"]) == (status, True), answer
    assert s.book.incidents() == []
    assert s.post(message([alert("a")]))[0] == 200


@pytest.mark.process
def test_only_who_has_the_token_may_post(serve: Serve) -> None:
    s = serve(token=TOKEN)
    body = message([alert("a")])
    for headers in (
        {},
        {"Authorization": "Bearer 5f2c6a1b9d3e4f71"},
        {"Authorization": f"Basic {TOKEN}"},
        {"Authorization": "\xff"},
    ):
        assert s.post(body, **headers)[0] == 401
    assert s.book.incidents() == []
    assert s.post(body, Authorization=f"Bearer {TOKEN}")[0] == 200
    assert s.post(None, "/-/healthy", "GET") == (200, {"status": "ok"})


@pytest.mark.process
def test_slow_and_silent_senders_hold_up_nobody(serve: Serve) -> None:
    s = serve(read=0.3, patience=2.0)
    lines = [socket.create_connection(("127.0.0.1", s.port)) for _ in range(60)]  # more than there may be at a time
    for line in lines[:30]:
        line.sendall(b"POST /alertmanager HTTP/1.1\r\nContent-Type: application/json\r\nContent-Length: 500\r\n\r\n{")
    assert s.post(message([alert("a")]))[0] == 200
    drip = socket.create_connection(("127.0.0.1", s.port))
    drip.sendall(b"POST /alertmanager HTTP/1.1\r\nContent-Type: application/json\r\nContent-Length: 500\r\n\r\n")
    drip.settimeout(0.1)
    ended, until = False, time.monotonic() + 60
    while not ended and time.monotonic() < until:
        try:
            drip.sendall(b" ")
            ended = drip.recv(100) == b"" or True
        except TimeoutError:
            continue
        except OSError:
            ended = True
    assert ended, "a byte now and then is no way to stay"
    for line in (*lines, drip):
        line.close()


@pytest.mark.process
def test_many_at_once_lose_and_double_nothing(serve: Serve) -> None:
    s = serve()
    bodies = [message([alert(f"f{n}", "firing", n) for n in range(i % 8 + 1)], key=f"group {i % 6}") for i in range(48)]
    with ThreadPoolExecutor(24) as pool:
        answers = list(pool.map(s.post, bodies))
    assert {status for status, _ in answers} <= {200, 503}
    for body, (status, _) in zip(bodies, answers, strict=True):
        assert status == 200 or s.post(body)[0] == 200  # as Alertmanager does
    found = s.book.incidents()
    assert len(found) == 6
    for incident in found:
        told = [e for e in incident.events if e.kind == "alert"]
        assert len(told) == len({(e.data["fingerprint"], e.data["starts"]) for e in told}) > 0


@pytest.mark.process
def test_no_more_wait_than_there_are_places_for(serve: Serve, tmp_path: Path) -> None:
    s = serve()
    s.post(message([alert("a")]))
    other = sqlite3.connect(tmp_path / "history.db", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")  # somebody holds the history
    with ThreadPoolExecutor(WAITING + 6) as pool:
        waiting = [pool.submit(s.post, message([alert("a")], key=f"group {n}")) for n in range(WAITING + 6)]
        until = time.monotonic() + 20
        while sum(w.done() for w in waiting) < 6 and time.monotonic() < until:
            time.sleep(0.05)
        assert {w.result()[0] for w in waiting if w.done()} == {503}
        other.execute("ROLLBACK")
        other.close()
        assert sum(w.result()[0] == 200 for w in waiting) >= WAITING // 2


@pytest.mark.process
def test_it_comes_again_while_the_history_cannot_be_used(serve: Serve, tmp_path: Path) -> None:
    place = tmp_path / "data"
    place.write_text("a file, where a folder is wanted")
    s = serve(f"sqlite:///{place}/history.db")
    status, answer = s.post(message([alert("a")]))
    assert (status, "not kept" in answer["error"] or "cannot" in answer["error"]) == (503, True), answer
    place.unlink()
    assert s.post(message([alert("a")])) == (200, {"incident": 1, "new": True, "added": 2})
    assert any("503" in text.en for text in s.said)


def test_two_listeners_make_one_incident_of_a_group(tmp_path: Path) -> None:
    desks = [Desk(Book(f"sqlite:///{tmp_path}/history.db"), KNOWS) for _ in range(2)]
    from assistant.incidents.alert_message import read

    def both(n: int) -> None:
        line = threading.Barrier(2)

        def take(desk: Desk) -> None:
            line.wait()
            desk.take(read(message([alert("a")], key=f"group {n}")))

        with ThreadPoolExecutor(2) as pool:
            list(pool.map(take, desks))

    for n in range(5):
        both(n)
    assert len(Book(f"sqlite:///{tmp_path}/history.db").incidents()) == 5


# --- a check ------------------------------------------------------------------------------


@pytest.mark.process
def test_a_check_gives_the_incident_its_cause_once(tmp_path: Path, clean_environment: dict[str, str]) -> None:
    url = f"sqlite:///{tmp_path}/history.db"
    book, said = Book(url), list[Text]()
    desk = Desk(book, KNOWS)
    from assistant.incidents.alert_message import read

    for key in ("one", "two"):
        desk.take(read(message([alert("a", severity="warning")], key=key)))
    checker = Checker(book, said.append, ["--bundle", BUNDLE], environ=clean_environment | {"GPUDIAG_HISTORY_URL": url})
    try:
        assert checker.ask(1, "gpu-12", far=False)
        assert not checker.ask(2, "gpu-12", far=False), "it was looked at a moment ago"
        until = time.monotonic() + 60
        while not said and time.monotonic() < until:
            time.sleep(0.05)
    finally:
        checker.close(5)
    assert [text.en for text in said] == ["incident 1: gpu-12 was checked"]
    incident = book.incident(1)
    assert "gpu-fell-off-bus" in {f.rule for f in incident.findings}
    assert incident.severity == "critical"
    assert incident.runbooks[0] == "gpu-off-bus"
    (probe,) = (e for e in incident.events if e.kind == "probe")
    assert probe.data["verdict"]["usable"] != "yes"
    assert book.incident(2).events[-1].data == {"name": "check", "host": "gpu-12", "see": 1}


@pytest.mark.process
def test_a_check_that_fails_is_told_in_the_incident(tmp_path: Path, clean_environment: dict[str, str]) -> None:
    book, said = Book(f"sqlite:///{tmp_path}/history.db"), list[Text]()
    from assistant.incidents.alert_message import read

    Desk(book, KNOWS).take(read(message([alert("a")])))
    checker = Checker(book, said.append, environ=clean_environment)
    try:
        checker.ask(1, "no-such-node", far=True)
        until = time.monotonic() + 60
        while len(book.incident(1).events) < 3 and time.monotonic() < until:
            time.sleep(0.05)
    finally:
        checker.close(5)
    last = book.incident(1).events[-1]
    assert (last.kind, last.data["host"]) == ("probe", "no-such-node")
    assert "no-such-node" in last.text()


# --- the command --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "env", "said"),
    [
        (["--address", "0.0.0.0:0"], {}, "there is no token"),
        (["--address", "nothing"], {}, "address such as 127.0.0.1:9196"),
        (["--token-file", "/nonexistent"], {}, "No such file"),
        (["--token-file", "/dev/null"], {}, "holds no token"),
        ([], {"GPUDIAG_HISTORY_URL": "off"}, "it is off"),
    ],
    ids=["everywhere", "no-address", "no-file", "no-token", "no-history"],
)
def test_how_it_does_not_listen(gpudiag: Gpudiag, words: list[str], env: dict[str, str], said: str) -> None:
    answer = gpudiag("incident", "listen", *words, env=env)
    assert (answer.code, answer.out) == (2, "")
    assert said in answer.err


def test_loopback_is_what_only_this_machine_reaches() -> None:
    assert [loopback(h) for h in ("127.0.0.1", "127.3.2.1", "::1", "0.0.0.0", "::")] == [True, True, True, False, False]
    with pytest.raises(UsageError, match="cannot listen"):
        loopback("no..host")


@contextmanager
def listening(server: CommandServer, environment: dict[str, str], *words: str) -> Iterator[tuple[Command, int]]:
    """The command as a process of its own, and the port that it says it listens on."""
    with server.start(["incident", "listen", "--address", "127.0.0.1:0", *words], env=environment) as child:
        try:
            line = child.stderr.readline()
            yield child, int(line.rpartition(":")[2].partition("/")[0])
        finally:
            child.kill()


@pytest.mark.process
def test_what_was_answered_survives_being_killed(
    tmp_path: Path, clean_environment: dict[str, str], command_server: CommandServer
) -> None:
    environment = clean_environment | {"GPUDIAG_HISTORY_URL": f"sqlite:///{tmp_path}/history.db"}
    with listening(command_server, environment) as (child, port):
        assert request(port, message([alert("a")]))[0] == 200
        child.send_signal(signal.SIGKILL)
    with listening(command_server, environment) as (child, port):
        assert request(port, message([alert("a", "resolved")]))[1] == {"incident": 1, "new": False, "added": 2}
        child.send_signal(signal.SIGTERM)
        assert child.wait(60) == 0
        assert child.stderr.read() == "gpudiag: incident 1: 2 more events\n"
    with listening(command_server, environment, "--lang", "zh") as (child, port):
        os.kill(child.pid, signal.SIGINT)
        assert child.wait(60) == 0
    assert str(Book(environment["GPUDIAG_HISTORY_URL"]).incident(1).status) == "mitigated"
