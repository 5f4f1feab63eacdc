"""What the bot must know after it was killed."""

from __future__ import annotations

import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from assistant.slack import heard as told
from assistant.slack.heard import Heard, Kind, Place
from assistant.slack.ledger import Ledger, LedgerError, Ticket, Turn
from tests import slack_payloads as sent

PLACE = Place("T1", "C1", "1.2")


class Clock:
    def __init__(self) -> None:
        self.now = 1_700_000_000 * 10**9

    def __call__(self) -> int:
        return self.now


def test_of_many_at_once_one_is_the_first_also_after_a_restart(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path)
    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(lambda _: ledger.hear(Turn("press 1", PLACE, "U1")), range(40))) == 1
    other = Ledger(tmp_path)  # another process; the first one was killed
    assert not other.hear(Turn("press 1", PLACE, "U1"))
    assert [t.id for t in other.cut_off()] == ["press 1"]
    other.put(Turn("press 1", PLACE, "U1", "9.9", {"tries": 2}))
    assert other.cut_off() == (Turn("press 1", PLACE, "U1", "9.9", {"tries": 2}),)
    other.end("press 1")
    assert other.cut_off() == ()
    assert not other.hear(Turn("press 1", PLACE, "U1"))


def test_a_ticket_tells_nothing_is_spent_once_and_ends(tmp_path: Path) -> None:
    clock = Clock()
    ledger = Ledger(tmp_path, clock)
    ticket = Ticket("agree", PLACE, "U1", {"probes": ["job-stacks"]}, clock.now + 10)
    numbers = {ledger.issue(ticket) for _ in range(50)}
    assert len(numbers) == 50
    assert not any("agree" in n or "stacks" in n or len(n) < 20 for n in numbers)
    first, second, *_ = sorted(numbers)
    assert ledger.ticket(first) == ticket
    with ThreadPoolExecutor(8) as pool:
        assert [t for t in pool.map(lambda _: ledger.spend(first), range(20)) if t] == [ticket]
    assert ledger.ticket(first) is None
    clock.now += 10
    assert ledger.ticket(second) is None
    assert ledger.spend(second) is None
    assert ledger.ticket("made up") is None


def test_threads_in_which_it_answers(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path)
    assert ledger.last(PLACE) == ""
    ledger.join(PLACE, "U1")
    ledger.join(PLACE, "U2")
    assert Ledger(tmp_path).last(PLACE) == "U2"
    assert ledger.last(PLACE._replace(thread="3.4")) == ""


def test_what_is_old_is_forgotten(tmp_path: Path) -> None:
    clock = Clock()
    ledger = Ledger(tmp_path, clock)
    assert ledger.hear(Turn("x", PLACE, "U1"))
    clock.now += 4 * 86_400 * 10**9
    ledger.prune()
    assert ledger.hear(Turn("y", PLACE, "U1"))
    assert ledger._db.execute("SELECT count(*) FROM heard").fetchone() == (1,)


def test_the_file_is_its_owners_alone_and_a_damaged_one_is_named(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "state")
    assert stat.S_IMODE(ledger.path.stat().st_mode) == 0o600
    assert stat.S_IMODE(ledger.path.parent.stat().st_mode) == 0o700
    ledger.close()
    ledger.path.write_bytes(b"no database" * 100)
    with pytest.raises(LedgerError, match=r"slack\.db"):
        Ledger(tmp_path / "state")


# --- what is heard ------------------------------------------------------------------------


def test_what_is_heard_survives_a_restart() -> None:
    file = {"id": "F1", "name": "kern.log", "size": 10, "url_private_download": "https://files/x", "mode": "hosted"}
    one = told.sentence(sent.message("look", thread_ts="1.0", files=[file]), "U0BOT")
    assert one is not None
    assert one.files[0].name == "kern.log"
    assert told.restored(told.plain(one)) == one
    command = told.command(sent.slash_command("/gpudiag", "check gpu-12"))
    assert told.restored(told.plain(command)) == Heard(Kind.COMMAND, command.once, command.place, "U1", "check gpu-12")


@pytest.mark.parametrize("event", [
    {"type": "message", "user": "U0BOT", "text": "x", "ts": "1.0", "channel": "C1"},
    {"type": "message", "bot_id": "B1", "text": "x", "ts": "1.0", "channel": "C1"},
    {"type": "message", "subtype": "message_changed", "user": "U1", "ts": "1.0", "channel": "C1"},
    {"type": "message", "subtype": "channel_join", "user": "U1", "ts": "1.0", "channel": "C1", "text": "x"},
    {"type": "message", "user": "U1", "text": "x", "channel": "C1"},
    {},
], ids=["ours", "a bot", "an edit", "a join", "no time", "nothing"])  # fmt: skip
def test_what_no_person_said_to_us_is_not_heard(event: dict[str, str]) -> None:
    assert told.sentence(sent.event_callback(event), "U0BOT") is None


def test_copies_have_one_name_and_other_events_another() -> None:
    mention = sent.app_mention("check", ts="5.5", event_id="Ev1")
    message = sent.message("<@U0BOT> check", ts="5.5", event_id="Ev2")
    one, two = told.sentence(mention, "U0BOT"), told.sentence(message, "U0BOT")
    assert one is not None
    assert two is not None
    assert one.once == two.once
    assert one.mentioned
    assert two.mentioned
    first = sent.block_actions("gpudiag.agree", "T", message_ts="5.5")
    again = sent.block_actions("gpudiag.agree", "T", message_ts="5.5")
    a, b, c = told.press(first), told.press(dict(first)), told.press(again)
    assert a is not None
    assert b is not None
    assert c is not None
    assert a.once == b.once != c.once
    assert told.press(sent.block_actions("other.agree", "T")) is None
    assert told.press(sent.block_actions("gpudiag.answer.2", "T")).action == "answer"  # type: ignore[union-attr]
