"""A history that cannot be used costs a line, not the answer and not the time of a check."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from threading import Event

import pytest

from assistant import store
from assistant.store import patience
from assistant.store.location import StoreError, parse
from assistant.store.patience import Hurry
from assistant.store.read import open_reader
from knowledge.language import Text
from tests.assistant.store.history_lab import HOST, MINUTE, T0, Machine, plain, remember, rules
from tests.conftest import Gpudiag

DIAGNOSIS = plain(Machine().observations(T0), T0)
CHECK = ("check", "--probe", "system")


@pytest.fixture
def listening() -> Iterator[socket.socket]:
    """A socket that lets everybody in and never says a word."""
    with socket.create_server(("127.0.0.1", 0), backlog=64) as listening:
        listening.setblocking(False)
        yield listening


@pytest.fixture
def silent(listening: socket.socket) -> Iterator[str]:
    """Its address as that of a server."""
    url = f"postgresql://gpudiag:hunter2@127.0.0.1:{listening.getsockname()[1]}/x"
    yield url
    forgotten(url)


def arrived(listening: socket.socket) -> int:
    """How many have connected since this was asked last."""
    count = 0
    with suppress(BlockingIOError):
        while True:
            listening.accept()[0].close()
            count += 1
    return count


def forgotten(url: str) -> None:
    """It may be asked again: in a process that lives as long as the tests do, an address may come again."""
    location = parse(url)
    assert location is not None
    patience.answered(location.url)


def test_a_silent_server_is_waited_for_once_and_briefly(silent: str, listening: socket.socket) -> None:
    found, why = store.earlier(silent, HOST, Machine().observations(T0), rules().rules, as_of=T0)
    assert found == []
    assert why is not None
    assert "does not answer within 1 s" in why.en
    assert arrived(listening)
    again = store.since_last(silent, DIAGNOSIS, HOST)
    assert isinstance(again, Text)
    assert again.en == why.en
    assert "does not answer" in (store.remember(silent, HOST, DIAGNOSIS, rules=rules().rules) or "")
    assert not arrived(listening), "it is not asked again"


def test_writing_to_a_silent_server_takes_a_few_seconds_at_most(silent: str) -> None:
    said = store.remember(silent, HOST, DIAGNOSIS, rules=rules().rules)
    assert said is not None
    assert "this check is not in the history" in said
    assert "hunter2" not in said


def test_a_check_with_a_silent_server_answers_and_complains_once(gpudiag: Gpudiag, silent: str) -> None:
    answer = gpudiag(*CHECK, "--since-last", env={"GPUDIAG_HISTORY_URL": silent})
    assert answer.out
    assert answer.code in (0, 1, 3)
    assert answer.err.count("history") == 1, answer.err


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://u:pw@h:port/x", "postgresql://h:99999999/x", "postgresql://[::1/x", "postgresql://h/x?connect_timeout=abc",
        "postgresql://127.0.0.1:9/x?nonsense=1", "mysql://x", "sqlite://relative.db",
    ],
)  # fmt: skip
def test_a_bad_address_costs_one_line(gpudiag: Gpudiag, url: str) -> None:
    answer = gpudiag(*CHECK, "--since-last", env={"GPUDIAG_HISTORY_URL": url})
    assert answer.out
    assert answer.code in (0, 1, 3)
    assert len([line for line in answer.err.splitlines() if "history" in line]) == 1, answer.err
    assert "pw" not in answer.err


def test_an_address_that_is_none_names_one_that_is(gpudiag: Gpudiag) -> None:
    for command in (CHECK, ("history",)):
        said = gpudiag(*command, env={"GPUDIAG_HISTORY_URL": "mysql://x"}).err
        assert "postgresql://user@host:5432/name" in said


def test_a_file_that_cannot_be_read_is_complained_of_once(gpudiag: Gpudiag, tmp_path: Path) -> None:
    (tmp_path / "history.db").mkdir()
    answer = gpudiag(*CHECK, "--since-last", env={"GPUDIAG_HISTORY_URL": f"sqlite:///{tmp_path}/history.db"})
    assert answer.out
    assert len([line for line in answer.err.splitlines() if "history" in line]) == 1, answer.err


def test_reading_a_locked_server_is_bounded_too(database: str) -> None:
    import psycopg

    assert remember(database, DIAGNOSIS) is None
    with psycopg.connect(database.replace("+psycopg", "")) as connection:
        connection.execute("LOCK TABLE node IN ACCESS EXCLUSIVE MODE")
        later = T0 + MINUTE
        said = store.since_last(database, plain(Machine().observations(later), later), HOST)
    assert isinstance(said, Text)
    assert "does not answer within 1 s" in said.en
    forgotten(database)
    assert not isinstance(store.since_last(database, plain(Machine().observations(later), later), HOST), Text)


def test_a_failure_is_forgotten_after_a_while() -> None:
    patience.failed("postgresql://n1/x", Text("x"))
    assert patience.failure("postgresql://n1/x") == Text("x")
    assert patience.failure("postgresql://n2/x") is None
    assert patience.failure("postgresql://n1/x", rest=0.0) is None
    patience.answered("postgresql://n1/x")
    assert patience.failure("postgresql://n1/x") is None


def test_a_busy_machine_is_no_silent_server() -> None:
    """What waits for a CPU among many is waited for; what does not come on a free machine is not."""
    came = Event()
    busy, free = Hurry(0.02, crowd=lambda: 1e6), Hurry(0.02, crowd=lambda: 1.0)
    assert busy(lambda: came.wait(0.2)) is False
    with pytest.raises(StoreError, match=r"within 0\.02 s"):
        free(lambda: came.wait(60))
    came.set()
    busy.close()
    free.close()


def test_how_busy_this_machine_is() -> None:
    assert patience.crowd() >= 1.0


def test_what_a_call_raises_is_raised_where_it_is_waited_for() -> None:
    hurry = Hurry(5)
    held: dict[str, int] = {"y": 1}
    with pytest.raises(KeyError):
        hurry(lambda: held["x"])
    assert hurry(lambda: 1) == 1
    hurry.close()


def test_a_command_waits_longer_than_a_check(database: str) -> None:
    location = parse(database)
    assert location is not None
    assert open_reader(location) is None, "there, and empty"
