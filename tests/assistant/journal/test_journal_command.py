"""``gpudiag journal`` as a person runs it, and what stands in it after an active test."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from assistant.config import load
from assistant.incidents.events import Hand
from assistant.journal import Entry, Journal
from assistant.journal.noting import Noting
from tests.conftest import Answer, Gpudiag

Run = Callable[..., Answer]


@pytest.fixture
def url(tmp_path: Path) -> str:
    address = f"sqlite:///{tmp_path}/history.db"
    journal, hand = Journal(address), Hand("alice", "slack")
    journal.append(
        "req1", hand, Entry("intent", {"what": "test:nvbandwidth", "argv": ["nvbandwidth", "-t", "0"], "node": "n1"})
    )
    journal.append("req1", hand, Entry("result", {"intent": 1, "exit": 0, "seconds": 12.5, "node": "n1"}))
    journal.append(
        "req2", Hand("bob", "cli"), Entry("refused", {"what": "step:reset", "why": "nobody agreed", "node": "n2"})
    )
    return address


@pytest.fixture
def run(gpudiag: Gpudiag, url: str) -> Run:
    return lambda *words, **env: gpudiag("journal", *words, env={"GPUDIAG_HISTORY_URL": url} | env)


def test_shown_verified_exported(run: Run, tmp_path: Path) -> None:
    listed = run()
    assert (listed.code, listed.err) == (0, "")
    for words in ("nvbandwidth -t 0", "exit 0; 12.5 s", "alice (slack)", "refused", "nobody agreed"):
        assert words in listed.out, words
    one = json.loads(run("show", "--subject", "req1", "--since", "2h", "--format", "json").out)["records"]
    assert [(r["seq"], r["kind"], r["data"]["node"]) for r in one] == [(1, "intent", "n1"), (2, "result", "n1")]
    assert "req1" not in run("show", "--node", "n2", "--limit", "5").out
    exported = run("export", "-o", str(tmp_path / "j.jsonl"))
    assert exported.code == 0
    head = next(line.split()[1] for line in exported.out.splitlines() if line.split()[:1] == ["head"])
    again = run("verify", "--from-file", str(tmp_path / "j.jsonl"), "--head", head, "--lang", "zh")
    assert again.code == 0
    assert "与写入时一致" in again.out


def test_a_changed_one_is_a_finding(run: Run, url: str) -> None:
    import sqlite3

    connection = sqlite3.connect(url.removeprefix("sqlite:///"))
    connection.execute("DROP TRIGGER journal_stays")
    connection.execute("UPDATE journal SET who = 'mallory' WHERE seq = 2")
    connection.commit()
    connection.close()
    found = run("verify", "--format", "json")
    assert found.code == 1
    said = json.loads(found.out)
    assert (said["sound"], said["fault"]["seq"], said["fault"]["wrong"]) == (False, 2, "changed")
    assert "record 2 was changed" in run("verify").out


def test_asked_wrongly(run: Run, tmp_path: Path) -> None:
    for words in (
        ["verify", "--head", "5"],
        ["show", "--since", "soon"],
        ["verify", "--from-file", str(tmp_path / "none")],
    ):
        assert run(*words).code == 2, words
    assert run("show", GPUDIAG_HISTORY_URL="off").code == 2
    (tmp_path / "broken.db").write_bytes(b"no database" * 500)
    assert run("verify", GPUDIAG_HISTORY_URL=f"sqlite:///{tmp_path}/broken.db").code == 3


def test_without_a_journal_it_is_said_once(capsys: pytest.CaptureFixture[str], url: str) -> None:
    def noting(address: str) -> Noting:
        return Noting(load(environ={"GPUDIAG_HISTORY_URL": address}, files=()), "n1")

    off = noting("off")
    off.intent("test:x", {})
    off.result({})
    off.intent("test:y", {})
    assert capsys.readouterr().err.count("not in the journal") == 1
    on = noting(url)
    on.intent("test:x", {"risk": "disruptive"})
    on.result({"outcome": "ended"})
    intent, result = Journal(url).newest(2)
    assert (intent.kind, result.kind, result.subject, result.data["intent"]) == (
        "intent",
        "result",
        intent.subject,
        intent.seq,
    )
    assert capsys.readouterr().err == ""
