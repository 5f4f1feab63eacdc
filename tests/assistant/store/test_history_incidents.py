"""Incidents in the history: nothing that was acknowledged is lost, whoever else writes; and why they are not kept is said."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from sqlalchemy import text

from assistant.incidents import events as make
from assistant.incidents import opening
from assistant.incidents.book import Book
from assistant.incidents.events import Entry, Event, Hand, Kind
from assistant.incidents.fold import Incident, fold
from assistant.store import migrate
from assistant.store.location import StoreError, parse
from assistant.store.server import file_engine, server_engine
from knowledge.errors import UnknownNameError, UsageError
from tests.assistant.store.history_lab import HOST, T0, Machine, check, plain, reader, xid
from tests.command_server import CommandServer

ROOT = Path(__file__).parent.parent.parent.parent
ALICE, BOB = Hand("alice", "cli"), Hand("bob", "tui")


def book(url: str) -> Book:
    times = iter(range(T0, T0 + 10**6))
    return Book(url, lambda: next(times))


def bus() -> list[Entry]:
    """What a GPU that fell off the bus opens."""
    return opening.from_diagnosis(plain(Machine(more=[xid(79, T0)]).observations(T0), T0), HOST)


def test_what_is_written_comes_back(url: str) -> None:
    kept = book(url)
    assert kept.incidents() == []
    made, new = kept.open(ALICE, bus(), opening.same_as(bus()))
    assert new
    assert (made.number, made.severity, made.hosts, made.runbooks) == (1, "critical", (HOST,), ("gpu-off-bus",))
    assert made.title.en == "GPU 0000:3b:00.0 has fallen off the bus"
    assert [f.rule for f in made.findings if f.role == "root"] == ["gpu-fell-off-bus"]
    (evidence,) = made.findings[0].data["evidence"]
    assert "Xid (PCI:0000:3b:00): 79" in evidence["line"]
    kept.add(1, BOB, make.step("gpu-off-bus", "evidence", "done", "日志已保存"), make.owner("bob"))
    now = kept.add(1, ALICE, make.note("a line\0 with \ud800 and\nanother"))
    assert kept.incident(1) == now == kept.incidents()[0]
    assert [e.seq for e in now.events] == list(range(1, len(now.events) + 1))
    assert [e.who for e in now.events][-3:] == ["bob", "bob", "alice"]
    assert now.steps["gpu-off-bus", "evidence"].text == "日志已保存"
    assert now.notes[0].text() == "a line with  and\nanother"
    assert (now.opened_at, now.people) == (T0, ("alice", "bob"))


def test_an_incident_is_about_what_is_grave() -> None:
    """Errors leave warnings out; warnings alone are enough; nothing is not."""
    both = plain([*Machine(more=[xid(79, T0)]).observations(T0), xid(13, T0, 2)], T0)
    assert {str(f.severity) for f in both.roots} >= {"critical"}
    told = [e.data for e in opening.from_diagnosis(both, HOST) if e.kind == Kind.FINDING and e.data["role"] == "root"]
    assert [d["rule"] for d in told] == ["gpu-fell-off-bus"]
    less = next(f for f in both.findings if f.rule.id != "gpu-fell-off-bus")
    chosen = opening.from_diagnosis(both, HOST, [less.id])
    assert chosen[1].data["key"] == less.id
    with pytest.raises(UsageError, match="nothing was found"):
        opening.from_diagnosis(plain(Machine().observations(T0), T0), HOST)
    with pytest.raises(UnknownNameError):
        opening.from_diagnosis(both, HOST, ["no-such"])


def test_open_ones_come_first_and_closed_ones_when_asked_for(url: str) -> None:
    kept = book(url)
    for n in range(1, 6):
        kept.open(ALICE, opening.by_hand(f"number {n}", "warning"))
    for n in (2, 5):
        kept.add(n, ALICE, make.closed("over"))
    assert [i.number for i in kept.incidents()] == [4, 3, 1, 5, 2]
    assert [i.number for i in kept.incidents(closed=False)] == [4, 3, 1]
    assert [i.number for i in kept.incidents(limit=2)] == [4, 3]
    kept.add(5, BOB, make.status("open", "it is back"))
    assert [i.number for i in kept.incidents(closed=False)] == [5, 4, 3, 1]
    with pytest.raises(UnknownNameError):
        kept.incident(9)
    with pytest.raises(UnknownNameError):
        kept.add(9, ALICE, make.note("x"))


def test_one_incident_for_one_finding_while_it_is_open(url: str) -> None:
    kept, entries = book(url), bus()
    first, _ = kept.open(ALICE, entries, opening.same_as(entries))
    again, new = kept.open(BOB, entries, opening.same_as(entries))
    assert (again, new) == (first, False), "nothing is said twice"
    elsewhere = [Entry(e.kind, {**e.data, "host": "n2"}) for e in entries]
    assert kept.open(BOB, elsewhere, opening.same_as(elsewhere))[1]
    kept.add(first.number, ALICE, make.closed())
    assert kept.open(BOB, entries, opening.same_as(entries))[1], "what comes back is another incident"


def test_what_is_decided_rests_on_how_it_stands_and_a_refusal_leaves_it(url: str) -> None:
    kept = book(url)
    kept.open(ALICE, opening.by_hand("it hangs"))

    def close(incident: Incident) -> list[Entry]:
        if not incident.is_open:
            raise UsageError("closed already")
        return [make.note("before"), make.closed("restarted")]

    closed = kept.change(1, ALICE, close)
    with pytest.raises(UsageError, match="closed already"):
        kept.change(1, BOB, close)
    assert kept.incident(1) == closed


WRITER = """
import sys
from assistant.incidents import events, opening
from assistant.incidents.book import Book
from assistant.incidents.events import Entry, Hand
url, who = sys.argv[1:]
book, hand = Book(url), Hand(who, "cli")
finding = Entry("finding", {"key": "k", "rule": "r", "host": "n1", "role": "root"})
entries = [*opening.by_hand("same"), finding]
print("ready", flush=True)
sys.stdin.readline()
incident, _ = book.open(hand, entries, opening.same_as(entries))
for n in range(12):
    book.add(incident.number, hand, events.note(f"{who} {n}"), events.step("gpu-reset", "reset", "doing"))
    print(f"kept {n}", flush=True)
"""


def test_writers_at_the_same_time_lose_nothing(command_server: CommandServer, url: str) -> None:
    """They open the same incident at once, and add to it at once; who is killed loses nothing that was acknowledged."""
    names = ["a", "b", "c"]
    writers = [command_server.start([url, n], env=os.environ, program=WRITER) for n in names]
    for w in writers:
        assert w.stdout.readline() == "ready\n"
    for w in writers:
        w.stdin.write("\n")
        w.stdin.flush()
    kept: dict[str, int] = {}
    last = writers[-1]
    assert last.stdout.readline() == "kept 0\n"
    last.kill()
    for name, w in zip(names, writers, strict=True):
        kept[name] = (w.communicate(timeout=60)[0]).count("kept") + (w is last)
    assert [kept[n] for n in names[:2]] == [12, 12]
    (incident,) = Book(url).incidents()
    assert [e.seq for e in incident.events] == list(range(1, len(incident.events) + 1))
    for name in names:
        own = [e for e in incident.events if e.who == name]
        notes = [e.text() for e in own if e.kind == Kind.NOTE]
        assert notes == [f"{name} {n}" for n in range(len(notes))], "in the order in which they were said"
        assert len(notes) >= kept[name]
        assert sum(e.kind == Kind.STEP for e in own) == len(notes), "what belongs together is there together"


class Kept(RuleBasedStateMachine):
    """Whatever is done, the file tells what the events come to, and which incidents are open."""

    @initialize()
    def begin(self) -> None:
        import tempfile

        self.folder = tempfile.TemporaryDirectory()
        self.path = Path(self.folder.name) / "history.db"
        self.book = book(f"sqlite:///{self.path}")
        self.logs: dict[int, list[Event]] = {}

    @rule(title=st.text("ab", min_size=1, max_size=3), severity=st.sampled_from(["", *make.SEVERITIES]))
    def opens(self, title: str, severity: str) -> None:
        made, new = self.book.open(ALICE, opening.by_hand(title, severity))
        assert new
        assert made.number not in self.logs
        self.logs[made.number] = list(made.events)

    @rule(which=st.integers(1, 5), status=st.sampled_from(["open", "working", "closed"]), many=st.integers(0, 2))
    def adds(self, which: int, status: str, many: int) -> None:
        entries = [make.note("x")] * many + [make.status(status)]
        if which not in self.logs:
            with pytest.raises(UnknownNameError):
                self.book.add(which, BOB, *entries)
            return
        now = self.book.add(which, BOB, *entries)
        assert now.events[: len(self.logs[which])] == tuple(self.logs[which]), "what was written is never changed"
        assert len(now.events) == len(self.logs[which]) + len(entries)
        self.logs[which] = list(now.events)

    @invariant()
    def tells(self) -> None:
        found = {i.number: i for i in self.book.incidents()}
        assert set(found) == set(self.logs)
        for number, log in self.logs.items():
            assert found[number] == fold(log, number, found[number].uid)
        assert {i.number for i in self.book.incidents(closed=False)} == {n for n, i in found.items() if i.is_open}

    def teardown(self) -> None:
        if hasattr(self, "folder"):
            self.folder.cleanup()


Kept.TestCase.settings = settings(max_examples=12, stateful_step_count=12, deadline=None)
TestKept = Kept.TestCase


@pytest.mark.process
def test_a_file_is_read_and_added_to_without_sqlalchemy(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/history.db"
    book(url).open(ALICE, bus())
    program = (
        "import sys\nfrom assistant.incidents.book import Book\nfrom assistant.incidents.events import Hand, note\n"
        "b = Book(sys.argv[1]); b.add(1, Hand('a', 'cli'), note('x')); print(len(b.incidents()), len(b.incident(1).notes))\n"
        "print(*{m.split('.')[0] for m in sys.modules}, file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, url], capture_output=True, text=True, check=True, cwd=ROOT, timeout=60
    )
    assert done.stdout == "1 1\n"
    assert not set(done.stderr.split()) & {
        "sqlalchemy",
        "sqlmodel",
        "alembic",
        "pydantic",
        "psycopg",
        "numpy",
        "textual",
    }


# --- when the history is of no use --------------------------------------------------------


def said(call: object) -> str:
    with pytest.raises(StoreError) as caught:
        call()  # type: ignore[operator]
    assert caught.value.said.zh
    return caught.value.said.en


def test_without_a_history_it_is_said() -> None:
    for call in (lambda: Book("off").incidents(), lambda: Book("off").open(ALICE, opening.by_hand("x"))):
        assert "incidents are kept in the history, and it is off (history_url)" in said(call)


def test_a_file_of_others_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "history.db"
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE theirs (a)")
    connection.commit()
    connection.close()
    before = path.read_bytes()
    kept = Book(f"sqlite:///{path}")
    assert "no gpudiag history" in said(kept.incidents)
    assert "the incident is not kept" in said(lambda: kept.open(ALICE, opening.by_hand("x")))
    assert path.read_bytes() == before


def test_a_file_that_is_no_database_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "history.db"
    path.write_bytes(b"no database at all" * 400)
    assert "cannot be read" in said(Book(f"sqlite:///{path}").incidents)
    assert "the incident is not kept" in said(lambda: Book(f"sqlite:///{path}").open(ALICE, opening.by_hand("x")))
    assert path.read_bytes().startswith(b"no database")


def test_a_server_that_is_not_there_is_told() -> None:
    url = "postgresql://gpudiag@127.0.0.1:1/none"
    assert "cannot be read" in said(Book(url).incidents)
    assert "the incident is not kept" in said(lambda: Book(url).open(ALICE, opening.by_hand("x")))


def test_a_history_of_before_goes_on(url: str) -> None:
    """Tables that know no incidents get them, and what was in them stays."""
    location = parse(url)
    assert location is not None
    check(url, Machine(), T0)
    engine = file_engine(location.path) if location.path is not None else server_engine(location)
    with engine.begin() as c:
        for table in ("journal", "journal_head", "incident_event", "incident"):  # all that came since
            c.execute(text(f"DROP TABLE {table}"))
        if location.path is None:
            c.execute(text("DROP FUNCTION journal_refuses"))
        c.execute(text("UPDATE gpudiag_version SET version_num = '0003'"))
    with engine.connect() as c:
        assert migrate.version(c) == "0003"
    engine.dispose()
    assert book(url).open(ALICE, bus())[1]
    assert len(book(url).incidents()) == 1
    with reader(url) as r:
        assert len(r.runs(HOST)) == 1
