"""The outbox: in order, at least once, patient where it is asked to be; and what a receiver is sent."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assistant.watch.alerts import SECOND, Alert, Change, Phase, Sighting, What
from assistant.watch.sender import opener, send
from assistant.watch.webhook import GIVE_UP, LONGEST_WAIT, QUEUE, Outbox, slack, target, waiting
from rules.model import Severity

NOW = 1_780_000_000 * SECOND
ONE, TWO = target("https://one.example/a"), target("slack+https://two.example/b")


def change(n: int = 0, text: str = "a line") -> Change:
    seen = Sighting(
        f"rule-{n}", "gpu 0000:3b:00.0", "n1", Severity.ERROR, title={"en": "T"}, evidence=(text,), bucket="RESET_GPU"
    )
    return Change(What.FIRED, Alert(seen, Phase.FIRING, Severity.ERROR, NOW, NOW, fired=NOW), NOW + n)


@given(st.lists(st.sampled_from([200, 204, 0, 302, 400, 408, 429, 500, 503]), max_size=40))
def test_each_receiver_gets_every_message_in_order_until_it_takes_or_refuses_it(answers: list[int]) -> None:
    box = Outbox([ONE])
    box.add([change(n) for n in range(5)], "n1")
    now, got = NOW + SECOND, []
    for status in [*answers, *[200] * 5]:
        message = box.next(ONE.id, now)
        if message is None:
            break
        outcome, _ = box.settle(message, status, None, now)
        assert outcome == (
            "sent" if status < 300 and status else "retried" if status in (0, 408, 429, 500, 503) else "dropped"
        )
        if outcome == "retried":
            assert box.next(ONE.id, now) is None, "it has a pause"
            now += 700 * SECOND
        else:
            got.append(json.loads(message.body)["rule"])
    if now - NOW <= GIVE_UP * SECOND:
        assert got == [f"rule-{n}" for n in range(5)]
    assert not box.waiting


def test_a_receiver_that_is_down_holds_up_its_own_messages_alone() -> None:
    box = Outbox([ONE, TWO])
    box.add([change(0), change(1)], "n1")
    first = box.next(ONE.id, NOW)
    assert first is not None
    box.settle(first, 0, None, NOW)
    assert box.next(ONE.id, NOW) is None
    assert box.next(TWO.id, NOW) is not None


def test_patience_is_kept_to_and_has_an_end() -> None:
    box = Outbox([ONE])
    box.add([change()], "n1")
    message = box.next(ONE.id, NOW)
    assert message is not None
    box.settle(message, 429, 90.0, NOW)
    assert box.next(ONE.id, NOW + 89 * SECOND) is None
    message = box.next(ONE.id, NOW + 90 * SECOND)
    assert message is not None
    box.settle(message, 429, 10**8, NOW)
    assert box.next(ONE.id, NOW + int(LONGEST_WAIT + 1) * SECOND) is not None
    late = NOW + int(GIVE_UP + 1) * SECOND
    message = box.next(ONE.id, late)
    assert message is not None
    assert box.settle(message, 503, None, late) == ("dropped", "not taken for a day")


def test_a_clock_that_was_wrong_keeps_no_message_back() -> None:
    box = Outbox([ONE])
    box.add([change()], "n1")
    box.waiting = [replace(m, due=NOW + 40 * 365 * 86_400 * SECOND) for m in box.waiting]
    assert box.next(ONE.id, NOW) is not None


def test_a_change_is_one_message_and_the_oldest_give_way() -> None:
    box = Outbox([ONE])
    assert box.add([change(0), change(0)], "n1") == 0
    assert len(box.waiting) == 1
    assert box.add([change(n) for n in range(1, QUEUE + 3)], "n1") == 3
    assert len(box.waiting) == QUEUE
    gone = replace(box.waiting[0], id="gave way meanwhile")
    assert box.settle(gone, 200, None, NOW) == ("sent", "")
    assert len(box.waiting) == QUEUE


def test_what_waits_outlives_a_restart_and_a_receiver_that_is_gone_does_not() -> None:
    box = Outbox([ONE, TWO])
    box.add([change()], "n1")
    kept = json.loads(json.dumps(box.dump()))
    assert Outbox([ONE, TWO], waiting(kept)).waiting == box.waiting
    assert [m.target for m in Outbox([TWO], waiting(kept)).waiting] == [TWO.id]
    assert "example" not in json.dumps(kept), "an address is a secret"


def test_slack_is_told_nothing_that_it_would_act_on() -> None:
    body = json.dumps(slack(change(text="<!channel> & ``` <http://x|y>"), "n1"))
    assert "<!channel>" not in body
    assert "<http" not in body


def test_slack_says_it_as_a_check_does() -> None:
    fired = change()
    lost = replace(fired.alert.last, title={"en": "GPU has fallen off the bus"})
    told = slack(replace(fired, alert=replace(fired.alert, last=lost)), "n1")
    assert told["text"] == "error: GPU 0000:3b:00.0 has fallen off the bus (n1)"
    head = told["attachments"][0]["blocks"][0]["text"]["text"]
    assert head == ":large_orange_circle: *GPU 0000:3b:00.0 has fallen off the bus* · node *n1*"
    node = replace(fired.alert.last, subject="node n1", title={"en": "Compute rails are down"})
    assert (
        slack(replace(fired, alert=replace(fired.alert, last=node)), "n1")["text"]
        == "error: Node n1: Compute rails are down (n1)"
    )


@contextmanager
def serving(answer: bytes, asked: list[bytes]) -> Iterator[str]:
    """A receiver that answers everybody with the same bytes, and goes on for ever when they end with a dot."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def run() -> None:
            while True:
                try:
                    line, _ = server.accept()
                except OSError:
                    return
                with line:
                    asked.append(line.recv(65536))
                    try:
                        line.sendall(answer)
                        while answer.endswith(b"."):
                            line.sendall(b"." * 65536)
                    except OSError:
                        pass

        threading.Thread(target=run, daemon=True).start()
        yield f"http://127.0.0.1:{server.getsockname()[1]}/secret"
        server.shutdown(socket.SHUT_RDWR)


@pytest.mark.process
@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (b"HTTP/1.1 204 No Content\r\n\r\n", (204, None)),
        (b"HTTP/1.1 200 OK\r\n\r\nendless.", (200, None)),
        (b"HTTP/1.1 429 Slow down\r\nRetry-After: 7\r\nContent-Length: 0\r\n\r\n", (429, 7.0)),
        (b"HTTP/1.1 429 Slow down\r\nRetry-After: Wed, 21 Oct 2026 07:28:00 GMT\r\n\r\n", (429, None)),
        (b"HTTP/1.1 302 Found\r\nLocation: file:///etc/passwd\r\nContent-Length: 0\r\n\r\n", (302, None)),
        (b"HTTP/1.1 503 Down\r\nRetry-After: -1\r\n\r\n", (503, None)),
        (b"SSH-2.0-OpenSSH_9\r\n", (0, None)),
        (b"", (0, None)),
    ],
)
def test_what_receivers_answer(
    answer: bytes, expected: tuple[int, float | None], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    asked: list[bytes] = []
    with serving(answer, asked) as url:
        assert send(opener(), url, b'{"a": 1}', {"Idempotency-Key": "k"}) == expected
    assert len(asked) == 1, "nobody is followed"
    assert asked[0].startswith(b"POST /secret ")
    assert b"Idempotency-Key: k" in asked[0] or b"Idempotency-key: k" in asked[0]


def test_nobody_listens() -> None:
    assert send(opener(), "http://127.0.0.1:1/", b"{}", {}) == (0, None)
