"""The newest checks of every node, from a real history."""

from __future__ import annotations

from pathlib import Path

from assistant.nodes.past import Past, checks_of, mark, read
from assistant.store.location import parse
from assistant.store.read import open_reader
from tests.assistant.store.history_lab import HOST, MINUTE, T0, Machine, check, xid


def test_the_newest_check_counts_and_the_last_that_told_stays(url: str) -> None:
    assert read(url).looks == {}
    check(url, Machine(more=[xid(79, T0 - MINUTE)]), T0)
    (first,) = read(url).looks[HOST]
    assert first.state == "unhealthy"
    assert first.at == T0
    assert [f.severity for f in first.findings] == ["critical"]
    before = mark(url)
    blind = Machine(log_read=False, nvml_read=False)
    check(url, blind, T0 + MINUTE)
    assert mark(url) != before or "postgres" in url, "a server is asked each time"
    newest, told = read(url).looks[HOST]
    assert newest.at == T0 + MINUTE
    assert newest.state == "unknown"
    assert (told.state, told.at) == ("unhealthy", T0)
    assert newest.findings, "a finding that nobody could look for stays open"
    assert [r.state for r in checks_of(url, HOST)] == ["unknown", "unhealthy"]


def test_a_late_recording_changes_nothing(url: str) -> None:
    check(url, Machine(), T0)
    check(url, Machine(more=[xid(79, T0 - 9 * MINUTE)]), T0 - 5 * MINUTE, origin="bundle")
    (look,) = read(url).looks[HOST]
    assert look.at == T0


def test_a_history_that_is_off_or_damaged(tmp_path: Path) -> None:
    assert read("off") == read(f"sqlite:///{tmp_path}/none.db") == Past()
    (tmp_path / "bad.db").write_bytes(b"no database" * 100)
    past = read(f"sqlite:///{tmp_path}/bad.db")
    assert past.looks == {}
    assert past.trouble
    assert checks_of(f"sqlite:///{tmp_path}/bad.db", HOST) == []


def test_each_statement_finds_the_newest_run_through_the_index(tmp_path: Path) -> None:
    """Of a history of a month each node's newest run must be found without reading the others."""
    from assistant.nodes.past import SQL

    url = f"sqlite:///{tmp_path}/h.db"
    check(url, Machine(), T0)
    location = parse(url)
    assert location is not None
    reader = open_reader(location)
    assert reader is not None
    with reader:
        for name in ("newest", "told"):
            plan = " ".join(str(row[-1]) for row in reader.ask(f"EXPLAIN QUERY PLAN {SQL[name]}", {}))
            assert "run_by_time" in plan
            assert "TEMP B-TREE" not in plan
