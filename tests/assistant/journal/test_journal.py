"""The journal: whatever is appended verifies, whatever is changed is found at its record, and nothing acknowledged is lost."""

from __future__ import annotations

import io
import os
import random
import sqlite3
import tempfile
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlalchemy import text
from sqlalchemy.exc import DBAPIError

from assistant.incidents.events import Hand
from assistant.journal import Entry, Journal, reading
from assistant.journal.chain import COLUMNS, GENESIS, SCHEMA, Head, Row, canonical, digest
from assistant.journal.cleaning import cleaned
from assistant.journal.verify import Checked, Fault, Wrong
from assistant.store import migrate
from assistant.store.file import create_file
from assistant.store.location import StoreError, parse
from assistant.store.server import file_engine, server_engine
from assistant.store.write import Writer
from knowledge.errors import InputError, UsageError
from knowledge.facts import vocabulary
from tests.command_server import Command, CommandServer

ROOT = Path(__file__).parent.parent.parent.parent
ALICE, BOB = Hand("alice", "cli"), Hand("bob", "slack")
LEAVES = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20)
DATA = st.dictionaries(
    st.text(max_size=8), st.recursive(LEAVES, lambda v: st.lists(v, max_size=3), max_leaves=6), max_size=4
)


def entry(n: int) -> Entry:
    return Entry("note", {"n": n, "text": f"记录 {n}"})


def verified(journal: Journal, *kept: Head) -> Checked:
    reader = journal.opened()
    assert reader is not None
    with reader:
        return reading.checked(reader.ask, kept)


def export(journal: Journal) -> bytes:
    out, reader = io.BytesIO(), journal.opened()
    assert reader is not None
    with reader:
        reading.exported(reader.ask, out)
    return out.getvalue()


def offline(data: bytes, *kept: Head) -> Checked:
    return reading.checked_file(io.BytesIO(data), "journal.jsonl", kept)


def unguarded(url: str) -> sqlite3.Connection:
    """The file of somebody who has taken the triggers away first."""
    connection = sqlite3.connect(url.removeprefix("sqlite:///"))
    for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
        connection.execute(f"DROP TRIGGER {name}")
    return connection


def test_what_is_appended_comes_back_and_verifies(url: str) -> None:
    journal = Journal(url, lambda: 1_790_000_000 * 10**9)
    assert (journal.of("a"), journal.records(), journal.head()) == ((), (), Head(0, GENESIS))
    first, second = journal.append("a", ALICE, Entry("intent", {"argv": ["nvidia-smi", "-r"], "node": "n1"}), entry(2))
    assert (first.seq, first.previous, second.seq, second.previous) == (1, GENESIS, 2, first.hash)
    (third,) = journal.change("a", BOB, lambda so_far: [Entry("result", {"intent": so_far[0].seq, "of": len(so_far)})])
    assert (third.data, third.who, third.surface) == ({"intent": 1, "of": 2}, "bob", "slack")
    journal.append("b", BOB, entry(4))
    assert journal.of("a") == (first, second, third)
    assert [r.seq for r in journal.records(after=1, limit=2)] == [2, 3]
    assert [r.seq for r in journal.newest(2)] == [3, 4]
    assert [r.seq for r in journal.records(node="n1")] == [r.seq for r in journal.records(kind="intent")] == [1]
    assert [r.seq for r in journal.newest(who="bob", subject="b", surface="slack")] == [4]
    assert journal.records(since=first.at + 1) == ()
    found = verified(journal)
    assert (found.fault, found.head) == (None, journal.head())
    assert offline(export(journal)).head == found.head


def test_what_decide_raises_leaves_it_as_it_is(url: str) -> None:
    journal = Journal(url)
    journal.append("a", ALICE, entry(1))

    def refuse(_: object) -> list[Entry]:
        raise OSError("mine, and no trouble of the file")

    with pytest.raises(OSError, match="mine"):
        journal.change("a", BOB, refuse)
    assert journal.change("a", BOB, lambda _: []) == ()
    journal.append("a", ALICE, entry(2))
    assert [r.seq for r in journal.of("a")] == [1, 2]


def test_the_database_refuses_to_change_it(url: str) -> None:
    Journal(url).append("a", ALICE, entry(1), entry(2))
    location = parse(url)
    assert location is not None
    engine = file_engine(location.path) if location.path else server_engine(location)
    statements = ["UPDATE journal SET who = 'eve'", "DELETE FROM journal", "DELETE FROM journal WHERE seq = 2",
                  "UPDATE journal_head SET seq = 1", "DELETE FROM journal_head"]  # fmt: skip
    statements += ["INSERT OR REPLACE INTO journal SELECT * FROM journal"] if location.path else ["TRUNCATE journal"]
    for statement in statements:
        with pytest.raises(DBAPIError, match="only ever added to"), engine.begin() as c:
            c.execute(text(statement))
    Writer(location, 1, vocabulary()).prune()
    found = verified(Journal(url))
    assert (found.fault, found.head.seq) == (None, 2)


def test_a_server_that_flushes_later_does_so_now(database: str) -> None:
    """What a transaction of the journal is told about the disk, whatever the session's setting."""
    from assistant.store.server import opened_server

    location = parse(f"{database}%20-csynchronous_commit%3Doff")
    assert location is not None
    store = opened_server(location)
    with store.transaction() as c:
        assert c.rows("SHOW synchronous_commit", {}) == [("off",)]
    with store.transaction(durable=True) as c:
        assert c.rows("SHOW synchronous_commit", {}) == [("on",)]
    store.close()


def test_an_older_history_gets_a_journal(empty_url: str) -> None:
    location = parse(empty_url)
    assert location is not None
    if location.path:
        create_file(location.path)
    engine = file_engine(location.path) if location.path else server_engine(location)
    with engine.begin() as c:
        migrate.upgrade(c, "0004")
        c.execute(text("INSERT INTO incident (uid, is_open, opened_at) VALUES ('u', true, 5)"))
    assert Journal(empty_url).records() == ()
    Journal(empty_url).append("a", ALICE, entry(1))
    assert verified(Journal(empty_url)).head.seq == 1
    with engine.connect() as c:
        assert c.execute(text("SELECT uid FROM incident")).scalar_one() == "u"


def test_off_and_unreachable_say_so(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="off"):
        Journal("off").append("a", ALICE, entry(1))
    (tmp_path / "history.db").write_bytes(b"no database at all, and long enough to be read as one" * 30)
    with pytest.raises(StoreError, match="the journal cannot be written"):
        Journal(f"sqlite:///{tmp_path}/history.db").append("a", ALICE, entry(1))


# --- laws ---------------------------------------------------------------------------------


@pytest.mark.slow
@settings(max_examples=25, deadline=None)
@given(st.lists(st.tuples(st.text(max_size=5), st.text(max_size=5), st.lists(DATA, max_size=3)), max_size=5))
def test_any_sequence_verifies(calls: list[tuple[str, str, list[dict[str, object]]]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        journal, count = Journal(f"sqlite:///{folder}/h.db"), 0
        for subject, who, data in calls:
            made = journal.append(subject, Hand(who, "cli"), *[Entry("note", d) for d in data])
            assert [r.seq for r in made] == list(range(count + 1, count + 1 + len(data)))
            assert list(made) == list(journal.records(after=count))
            count += len(data)
        if calls:
            found, lines = verified(journal), export(journal)
            assert (found.fault, found.head.seq) == (None, count)
            assert offline(lines, found.head) == found
            assert lines.count(b"\n") == count + 1


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, bytes]:
    """A file with eight records, and its export."""
    path = tmp_path_factory.mktemp("journal") / "history.db"
    journal = Journal(f"sqlite:///{path}", iter(range(10**18, 10**19, 10**9)).__next__)
    for n in range(1, 9):
        journal.append(f"s{n % 3}", ALICE, entry(n))
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA journal_mode = delete")  # one file that can be copied
    connection.close()
    return path, export(journal)


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(st.integers(1, 8), st.sampled_from(COLUMNS), st.integers(0, 500), st.integers(1, 255))
def test_a_changed_byte_of_a_column_is_found(
    written: tuple[Path, bytes], seq: int, column: str, at: int, flip: int
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        url = f"sqlite:///{folder}/h.db"
        (Path(folder) / "h.db").write_bytes(written[0].read_bytes())
        connection = unguarded(url)
        ((value,),) = connection.execute(f"SELECT {column} FROM journal WHERE seq = ?", (seq,)).fetchall()
        if isinstance(value, int):
            new: object = value ^ (flip << (at % 7 * 8))
        else:
            raw = bytearray(value.encode())
            raw[at % len(raw)] ^= flip
            new = bytes(raw)
        change = f"UPDATE OR IGNORE journal SET {column} = " + ("?" if isinstance(new, int) else "CAST(? AS TEXT)")
        touched = connection.execute(f"{change} WHERE seq = ?", (new, seq)).rowcount
        connection.commit()
        connection.close()
        fault = verified(Journal(url)).fault
        if touched:  # a number that another record has cannot be taken
            assert fault is not None
            assert fault.seq == seq


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 8), st.integers(1, 8), st.sampled_from(["delete", "swap", "double"]))
def test_what_is_moved_is_found(written: tuple[Path, bytes], one: int, other: int, how: str) -> None:
    """In an export, where lines can stand in any order and twice."""
    lines = written[1].splitlines(keepends=True)
    assert offline(b"".join(lines)).fault is None
    first = min(one, other)
    if how == "delete":
        del lines[one - 1]
        expected = Fault(one, Wrong.MISSING, one) if one < 8 else Fault(8, Wrong.CUT)
    elif how == "double":
        lines.insert(other, lines[one - 1])  # behind record `other`
        early = one > other + 1
        expected = Fault(one, Wrong.DUPLICATED, other + 1)
        if early:
            expected = Fault(other + 1, Wrong.OUT_OF_ORDER, other + 1)
        elif one == other + 1:  # it stands before itself: the second one is the double
            expected = Fault(one, Wrong.DUPLICATED, one + 1)
    elif one == other:
        return
    else:
        lines[one - 1], lines[other - 1] = lines[other - 1], lines[one - 1]
        expected = Fault(first, Wrong.OUT_OF_ORDER, first)
    assert offline(b"".join(lines)).fault == expected


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_a_changed_byte_of_an_export_is_found(written: tuple[Path, bytes], data: st.DataObject) -> None:
    raw = bytearray(written[1])
    at = data.draw(st.integers(0, len(raw) - 1))
    raw[at] ^= data.draw(st.integers(1, 255))
    record = written[1][:at].count(b"\n") + 1
    fault = offline(bytes(raw)).fault
    assert fault is not None
    assert record in (9, fault.seq)  # the ninth line is the head: what it says of the records is wrong then


@pytest.mark.parametrize("seq", range(1, 9))
def test_a_removed_record_and_a_cut_end_are_found(written: tuple[Path, bytes], tmp_path: Path, seq: int) -> None:
    url = f"sqlite:///{tmp_path}/h.db"
    (tmp_path / "h.db").write_bytes(written[0].read_bytes())
    connection = unguarded(url)
    connection.execute("DELETE FROM journal WHERE seq = ?", (seq,))
    connection.commit()
    assert verified(Journal(url)).fault == Fault(seq, Wrong.MISSING if seq < 8 else Wrong.CUT)
    connection.execute("DELETE FROM journal WHERE seq > ?", (seq,))
    connection.commit()
    assert verified(Journal(url)).fault == Fault(seq, Wrong.CUT)
    connection.close()


def test_a_chain_that_was_written_anew_is_found_by_a_head_that_was_kept(written: tuple[Path, bytes]) -> None:
    """Whoever can write the database can make a chain that is sound; not one with the same head."""
    import json

    kept = offline(written[1]).head
    forged, head = [], Head(0, GENESIS)
    for line in written[1].splitlines()[:-1]:
        row = Row(**json.loads(line))
        data = row.data.replace("记录 5", "记录 6") if row.seq == 5 else row.data
        row = row._replace(data=data, previous=head.hash)
        row = row._replace(hash=digest(row))
        head = Head(row.seq, row.hash)
        forged.append(reading.line_of(row))
    whole = "".join([*forged, reading.head_line(head)]).encode()
    assert offline(whole).fault is None
    assert offline(whole, kept).fault == Fault(8, Wrong.REPLACED, 8)
    shorter = "".join([*forged[:3], reading.head_line(Head(3, json.loads(forged[2])["hash"]))]).encode()
    assert offline(shorter, kept).fault == Fault(4, Wrong.CUT)
    one_anew = b"".join(
        [*written[1].splitlines(keepends=True)[:4], forged[4].encode(), *written[1].splitlines(keepends=True)[5:]]
    )
    assert offline(one_anew).fault == Fault(6, Wrong.UNLINKED, 6), (
        "record 5 has a hash of its own, which 6 does not know"
    )


def test_what_nobody_appended_is_found(written: tuple[Path, bytes], tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/h.db"
    (tmp_path / "h.db").write_bytes(written[0].read_bytes())
    connection = unguarded(url)
    connection.execute(
        "INSERT INTO journal SELECT 9, at, kind, subject, who, surface, data, previous, hash FROM journal WHERE seq = 8"
    )
    connection.commit()
    connection.close()
    assert verified(Journal(url)).fault == Fault(9, Wrong.BEYOND)


def test_the_hash_can_be_made_by_others() -> None:
    """The encoding as the documentation tells it, written out by hand."""
    from hashlib import sha256

    row = Row(1, 5, "note", "s", "alice", "cli", canonical({"b": 1.5, "a": '密"'}), GENESIS, "")
    said = f'["gpudiag/journal/1",1,5,"note","s","alice","cli","{{\\"a\\":\\"密\\\\\\"\\",\\"b\\":1.5}}","{GENESIS}"]'
    assert digest(row) == sha256(said.encode()).hexdigest()
    assert sha256(SCHEMA.encode()).hexdigest() == GENESIS


@pytest.mark.parametrize("text_", ["", "5", "x:y", "5:" + "g" * 64, "-1:" + "a" * 64, "٥:" + "a" * 64])
def test_what_is_no_head_is_refused(text_: str) -> None:
    with pytest.raises(UsageError, match="no head"):
        reading.head_of_text(text_)


@pytest.mark.parametrize("data", [b"", b"hello\n", b"{}\n" * 5, b"\xff\x00" * 100])
def test_what_is_no_export_is_refused(data: bytes) -> None:
    with pytest.raises(InputError, match="no export"):
        offline(data)


def test_secrets_and_escapes_stay_out() -> None:
    data = {
        "argv": ["curl", "--token", "hunter2", "https://bob:hunter2@host/"], "text": "password=hunter2 and the key is worn\x1b[31m",
        "excerpt": "Authorization: Bearer hunter2hunter2", "token": "hunter2", "key": "gpu-off-bus@n1", "steps": [["mysql", "-phunter2"]],
        "odd": float("nan"), "big": 2**70, "nul": "a\0b\ud800",
    }  # fmt: skip
    kept = canonical(cleaned(data))
    assert "hunter2" not in kept
    assert "\x1b" not in kept
    found = cleaned(data)
    assert found["text"] == "password=*** and the key is worn"
    assert (found["key"], found["odd"], found["nul"]) == ("gpu-off-bus@n1", "nan", "ab")


# --- processes ----------------------------------------------------------------------------

WRITER = """
import sys
from assistant.incidents.events import Hand
from assistant.journal import Entry, Journal
journal, name, count = Journal(sys.argv[1]), sys.argv[2], int(sys.argv[3])
print("ready", flush=True); sys.stdin.readline()
for n in range(count):
    (made,) = journal.append(name, Hand(name, "cli"), Entry("note", {"n": n}))
    print(made.seq, made.hash, flush=True)
"""


def writer(server: CommandServer, url: str, name: str, count: int) -> Command:
    child = server.start([url, name, str(count)], env=os.environ, program=WRITER)
    assert child.stdout.readline() == "ready\n"
    return child


def go(children: list[Command]) -> None:
    for child in children:
        child.stdin.write("\n")
        child.stdin.flush()


def test_two_processes_at_once_keep_one_chain(command_server: CommandServer, empty_url: str) -> None:
    children = [writer(command_server, empty_url, name, 25) for name in ("a", "b")]
    go(children)
    told = [child.communicate(timeout=60)[0].split() for child in children]
    numbers = sorted(int(seq) for words in told for seq in words[::2])
    assert numbers == list(range(1, 51))
    found = verified(Journal(empty_url))
    assert (found.fault, found.head.seq) == (None, 50)


def test_no_acknowledged_record_is_lost_by_a_kill(command_server: CommandServer, url: str) -> None:
    rng, acknowledged = random.Random(5), {}
    for _ in range(3):
        children = [writer(command_server, url, name, 100_000) for name in ("a", "b")]
        go(children)
        heads = [child.stdout.readline() for child in children]  # both are at it
        time.sleep(rng.uniform(0.0, 0.2))
        for child in children:
            child.kill()
        for child, begun in zip(children, heads, strict=True):
            out = begun + child.communicate(timeout=30)[0]
            for line in out.splitlines() if out.endswith("\n") else out.splitlines()[:-1]:
                seq, hashed = line.split()
                acknowledged[int(seq)] = hashed
    journal = Journal(url)
    assert len(acknowledged) > 5
    kept = {r.seq: r.hash for r in journal.records(limit=10**6)}
    assert acknowledged.items() <= kept.items()
    assert verified(journal, *(Head(s, h) for s, h in acknowledged.items())).fault is None
