"""Limits hold over processes and restarts, whatever the file holds; the hosts list and the settings of the model."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assistant.config import Llm
from assistant.narrate.hosts import loopback, place
from assistant.narrate.limits import NAME, TOKENS_IN, TOKENS_OUT, Bounds, Limits, estimate
from assistant.narrate.reasons import NarrationError, Reason
from assistant.narrate.setup import setup
from tests.llm_lab import ROOT

NOON = 1_790_000_000.0  # 2026-09-21, in the middle of the day
DAY = 86_400.0


class Clock:
    def __init__(self) -> None:
        self.now = NOON

    def __call__(self) -> float:
        return self.now


def limits(folder: Path, clock: Clock | None = None, **bounds: float) -> Limits:
    return Limits(folder, Bounds(**bounds), clock or Clock())  # type: ignore[arg-type]  # numbers as they come


def reached(one: Limits, tokens_in: int = 10, tokens_out: int = 10, price: tuple[float, float] | None = None) -> str:
    with pytest.raises(NarrationError) as caught:
        one.book(tokens_in, tokens_out, price)
    assert caught.value.reason is Reason.LIMIT
    return caught.value.detail


def test_requests_a_minute_over_restarts(tmp_path: Path) -> None:
    clock = Clock()
    for _ in range(3):
        limits(tmp_path, clock, requests_per_minute=3).book(10, 10, None)  # a new object each time: a new process
        clock.now += 5
    assert "requests in a minute: 3 of 3" in reached(limits(tmp_path, clock, requests_per_minute=3))
    clock.now = NOON + 61
    limits(tmp_path, clock, requests_per_minute=3).book(10, 10, None)


def test_tokens_of_a_day_are_booked_before_and_corrected_after(tmp_path: Path) -> None:
    clock = Clock()
    one = limits(tmp_path, clock, tokens_per_day=1000)
    booked = one.book(500, 400, None)
    assert "tokens of the day: 900 of 1000" in reached(one, 50, 60)
    one.settle(booked, 300, 0.0)
    assert one.used().tokens == 300
    one.book(300, 400, None)
    reached(one)
    clock.now += DAY
    assert one.book(500, 400, None).tokens == 900
    assert one.used().tokens == 900


def test_a_booking_of_yesterday_changes_nothing_today(tmp_path: Path) -> None:
    clock = Clock()
    one = limits(tmp_path, clock)
    old = one.book(100, 100, None)
    clock.now += DAY
    one.book(50, 50, None)
    one.settle(old, 0, 0.0)
    assert one.used().tokens == 100


def test_dollars_of_a_day_where_a_price_is_known(tmp_path: Path) -> None:
    one = limits(tmp_path, dollars_per_day=0.10)
    price = (1e-5, 5e-5)  # 10 and 50 dollars a million
    booked = one.book(1000, 1000, price)  # 0.06
    assert "US dollars of the day: 0.0600 of 0.10" in reached(one, 1000, 1000, price)
    one.settle(booked, 1100, 0.011)
    assert one.used().dollars == pytest.approx(0.011)
    one.book(1000, 1000, price)
    one.book(1000, 1000, None)  # of no known price: counted in tokens alone


def test_one_request_is_bounded(tmp_path: Path) -> None:
    assert "tokens of a request" in reached(limits(tmp_path), TOKENS_IN + 1, 1)
    assert "tokens of a request" in reached(limits(tmp_path), 1, TOKENS_OUT + 1)


@given(st.text(max_size=300))
def test_an_estimate_is_rather_too_high(text: str) -> None:
    """A token is at least one character of a word and rarely less than a Chinese one."""
    guess = estimate([{"role": "user", "content": text}])
    assert guess >= len(text.split())
    assert guess >= sum("\u4e00" <= c <= "\u9fff" for c in text)


@pytest.mark.parametrize(
    "content",
    [
        b"", b"\xff\xfe", b"[]", b"null", b"{}", b'{"schema": "gpudiag/llm-usage/1"', b"[" * 100_000,
        b'{"schema":"gpudiag/llm-usage/1","day":"2026-09-21","requests":-1,"tokens":0,"micros":0,"recent":[]}',
        b'{"schema":"gpudiag/llm-usage/1","day":"2026-09-21","requests":0,"tokens":1e400,"micros":0,"recent":[]}',
        b'{"schema":"gpudiag/llm-usage/1","day":"2026-09-21","requests":0,"tokens":0,"micros":0,"recent":[NaN]}',
        b'{"schema":"gpudiag/llm-usage/1","day":7,"requests":true,"tokens":0,"micros":0,"recent":"x"}',
    ],
    ids=range(11),
)  # fmt: skip
def test_a_file_that_is_not_ours_is_set_aside_and_said(tmp_path: Path, content: bytes) -> None:
    (tmp_path / NAME).write_bytes(content)
    booked = limits(tmp_path).book(10, 10, None)
    assert booked.note is not None
    (kept,) = tmp_path.glob(f"{NAME}.corrupt-*")
    assert kept.read_bytes() == content
    assert str(kept) in booked.note.en
    assert str(kept) in booked.note.zh
    assert limits(tmp_path).book(10, 10, None).note is None
    assert limits(tmp_path).used().requests == 2


def test_where_nothing_can_be_counted_nothing_is_sent(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    assert "Not a directory" in reached(limits(tmp_path / "file")) or "File exists" in reached(
        limits(tmp_path / "file")
    )


@pytest.mark.process
def test_processes_at_once_never_go_over_together(tmp_path: Path) -> None:
    program = (
        "import sys\nfrom pathlib import Path\nfrom assistant.narrate.limits import Bounds, Limits\n"
        "from assistant.narrate.reasons import NarrationError\n"
        "one, done = Limits(Path(sys.argv[1]), Bounds(1000, 400, 1.0)), 0\n"
        "for _ in range(10):\n    try:\n        one.book(10, 10, None); done += 1\n    except NarrationError: pass\nprint(done)"
    )
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    argv = [sys.executable, "-c", program, str(tmp_path)]
    running = [subprocess.Popen(argv, env=environment, stdout=subprocess.PIPE, text=True) for _ in range(4)]
    booked = sum(int(p.communicate()[0]) for p in running)
    assert booked == 20  # of 40 that were tried: 400 tokens
    assert json.loads((tmp_path / NAME).read_bytes())["tokens"] == 400


# --- hosts and settings ---------------------------------------------------------------------


def wrong(base: str, hosts: str = "") -> Reason:
    with pytest.raises(NarrationError) as caught:
        place(base, hosts)
    assert caught.value.said.zh != ""
    return caught.value.reason


@pytest.mark.parametrize(
    ("base", "host", "port"),
    [
        ("http://127.0.0.1:8000/v1", "127.0.0.1", 8000), ("http://localhost:11434", "localhost", 11434), ("https://[::1]/v1", "::1", 443),
        ("http://127.9.8.7/v1", "127.9.8.7", 80), ("HTTP://LOCALHOST./v1", "localhost", 80),
    ],
)  # fmt: skip
def test_this_machine_needs_no_entry(base: str, host: str, port: int) -> None:
    found = place(base, "")
    assert (found.host, found.port, found.here) == (host, port, True)


@pytest.mark.parametrize(
    "base",
    [
        "https://api.openai.com/v1", "http://10.0.0.7:8000/v1", "http://0.0.0.0:8000", "http://127.1:8000", "http://2130706433/v1",
        "http://localhost.example.org/v1", "http://127.0.0.1.example.org/v1", "http://[::ffff:10.0.0.1]/v1", "http://[::]/v1",
    ],
)  # fmt: skip
def test_every_other_host_must_be_on_the_list(base: str) -> None:
    assert wrong(base) is Reason.HOST
    assert wrong(base, "elsewhere.example.org") is Reason.HOST


def test_a_host_on_the_list() -> None:
    for hosts in ("api.openai.com", "a.example.org, API.openai.com.", "a b\tapi.openai.com"):
        assert place("https://api.openai.com/v1", hosts).host == "api.openai.com"
    assert wrong("https://evil-api.openai.com/v1", "api.openai.com") is Reason.HOST
    assert wrong("https://openai.com/v1", "api.openai.com") is Reason.HOST


@pytest.mark.parametrize(
    "base",
    ["", " ", "127.0.0.1:8000", "ftp://127.0.0.1/", "http://", "http://user:pw@127.0.0.1/v1", "http://127.0.0.1:99999/", "http://[::1/v1",
     "http://127.0.0.1/v1?x=1", "http://127.0.0.1@evil.example.org/", "http://127.0.0.1\\@evil.example.org/", "file:///etc/passwd",
     "unix:///run/x.sock"],
)  # fmt: skip
def test_what_is_no_address(base: str) -> None:
    assert wrong(base, "evil.example.org") is Reason.NOT_CONFIGURED


@given(st.from_regex(r"[0-9]{1,3}(\.[0-9]{1,3}){3}", fullmatch=True))
def test_only_127_is_this_machine(text: str) -> None:
    first, *_ = parts = text.split(".")
    plain = all(p == str(int(p)) and int(p) < 256 for p in parts)
    assert loopback(text) == (plain and first == "127")


GOOD = Llm(model="openai/m", base="http://127.0.0.1:8000/v1")


def unset(llm: Llm) -> NarrationError:
    with pytest.raises(NarrationError) as caught:
        setup(llm)
    return caught.value


def test_the_settings_of_a_model(tmp_path: Path) -> None:
    key = tmp_path / "key"
    key.write_text("sk-of-a-file\n")
    found = setup(GOOD._replace(key_file=key, price="0.15/0.60", deadline=5))
    assert (found.model.key, found.model.python, found.deadline) == ("sk-of-a-file", sys.executable, 5.0)
    assert found.price == pytest.approx((0.15e-6, 0.6e-6))
    assert setup(GOOD._replace(key_file=key, key="sk-of-the-environment")).model.key == "sk-of-the-environment"
    assert setup(GOOD).model.key == ""


def test_settings_that_are_wrong_name_themselves(tmp_path: Path) -> None:
    assert unset(Llm()).reason is Reason.OFF
    (tmp_path / "empty").write_text("\n")
    (tmp_path / "two").write_text("a b\n")
    for llm, word in (
        (GOOD._replace(model="gpt"), "llm_model"),
        (GOOD._replace(base=""), "llm_base"),
        (GOOD._replace(price="1"), "llm_price"),
        (GOOD._replace(price="x/1"), "llm_price"),
        (GOOD._replace(dollars_per_day="-1"), "llm_dollars_per_day"),
        (GOOD._replace(dollars_per_day="nan"), "llm_dollars_per_day"),
        (GOOD._replace(key_file=tmp_path / "none"), "llm_key_file"),
        (GOOD._replace(key_file=tmp_path / "empty"), "llm_key_file"),
        (GOOD._replace(key_file=tmp_path / "two"), str(tmp_path / "two")),
    ):
        error = unset(llm)
        assert error.reason is Reason.NOT_CONFIGURED
        assert word in error.said.en
        assert word in error.said.zh
