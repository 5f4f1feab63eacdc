"""``gpudiag incident run`` as people walk it: on a real terminal, from two processes, and without one."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from assistant.incidents import claims, events
from assistant.incidents.book import Book
from assistant.incidents.deeds import deeds, journal_only
from assistant.incidents.events import Hand, Kind, StepState
from assistant.incidents.fold import Incident
from assistant.incidents.opening import by_hand
from assistant.journal import Entry, Journal
from assistant.render.sheet import Part
from knowledge.language import Text
from tests.assistant.session.terminal_lab import Terminal
from tests.command_server import CommandServer
from tests.conftest import Gpudiag

ALICE, BOB = Hand("alice", "cli"), Hand("bob", "tui")
TITLE = "{en: Look, zh: 看}"
PAGE = """\
---
id: walked
title: {en: A walk, zh: 流程}
applies: [thermal]
summary: {en: Walk., zh: 执行。}
steps:
  - {id: look, title: TITLE, do: TITLE, command: "/bin/echo looked at {node}", risk: safe, consent: none,
     verify_if: {fact: node.boot_id, op: is_not, value: none}, verify_with: [system]}
  - {id: elsewhere, title: TITLE, do: TITLE, command: /bin/echo never, risk: safe, consent: none,
     if: {fact: node.boot_id, op: is, value: none}}
  - {id: slow, title: TITLE, do: TITLE, command: "/bin/sh -c 'echo begun; sleep 60'", risk: safe, consent: none, verify: TITLE}
  - {id: change, title: TITLE, do: TITLE, command: "/bin/echo changed {node}", risk: disruptive, consent: operator, verify: TITLE,
     verify_command: /bin/echo it is changed}
  - {id: lose, title: TITLE, do: TITLE, command: "/usr/bin/touch {file}", risk: destructive, consent: owner}
references: [https://example.org]
---

## English

Quiet.

## 中文

静。
""".replace("TITLE", TITLE)


@pytest.fixture
def env(tmp_path: Path) -> dict[str, str]:
    site = tmp_path / "site"
    site.mkdir()
    (site / "walked.md").write_text(PAGE, encoding="utf-8")
    return {
        "GPUDIAG_HISTORY_URL": f"sqlite:///{tmp_path}/history.db",
        "GPUDIAG_RUNBOOK_DIRS": str(site),
        "GPUDIAG_HOST_NAME": "n1",
    }


def opened(env: dict[str, str], host: str = "n1") -> Book:
    """Incident 1, which follows the runbook of the site."""
    book = Book(env["GPUDIAG_HISTORY_URL"])
    follows = events.Entry(Kind.RUNBOOK, {"runbook": "walked"})
    book.open(ALICE, [*by_hand("it is hot", host=host), follows])
    return book


def states(incident: Incident) -> dict[str, str]:
    return {step: str(mark.state) for (_, step), mark in incident.steps.items()}


def test_a_walk_with_a_pause_and_another_person(
    clean_environment: dict[str, str], command_server: CommandServer, env: dict[str, str], tmp_path: Path
) -> None:
    book, environ = opened(env), clean_environment | env
    with Terminal(command_server, ["incident", "run", "1", "--by", "alice"], environ) as one:
        one.until("[q]uit")
        one.type("y\r")
        one.until("walked/look: done")
        one.until("walked/elsewhere: skipped")
        begin = len(one.seen)
        one.until("[q]uit", begin)
        one.type("y\r")
        one.until("Run this command?", begin)
        event = None
        while event is None:  # the command runs: the step is in her hand, which the other sees
            event = claims.last(book.incident(1), "walked", "slow")
        with Terminal(command_server, ["incident", "run", "1", "--by", "bob"], environ) as other:
            other.until("alice does step slow since")
            assert other.end() == 3
        one.interrupt("stopped, with all that it started")
        one.until("Left.", begin)
        assert one.end() in (3, 130)
    incident = book.incident(1)
    assert states(incident) == {"look": "done", "elsewhere": "skipped", "slow": "doing"}
    assert claims.holder(claims.last(incident, "walked", "slow"), "bob") is claims.Holder.LEFT
    with Terminal(
        command_server, ["incident", "run", "1", "--by", "bob", "--show-only", "--from", "slow"], environ
    ) as other:
        other.until("[q]uit")
        other.type("y\r")
        other.until("Shown only.")
        other.type("\r")
        other.until("Did it work?")
        other.type("y\r")
        other.until("walked/slow: done")
        other.until("walked/change")
        other.type("\x03")
        other.until("Left.")
    with Terminal(command_server, ["incident", "run", "1", "--by", "bob"], environ) as other:
        other.until("[q]uit")
        other.type("y\r")
        other.until("Type the node's name (n1)")
        other.type("n1\r")
        other.until("changed n1")
        other.until("Run this check?")
        other.type("y\r")
        other.until("it is changed")
        other.until("Did it work?")
        other.type("y\r")
        begin = len(other.seen)
        other.until("walked/lose", begin)
        other.until("[q]uit", begin)
        other.type("y\r")
        other.until("gpudiag never runs it")
        other.type("\r")
        other.until("No step is left.")
        assert other.end() == 0
    incident = book.incident(1)
    assert set(states(incident).values()) == {"done", "skipped"}
    ran = [e.data["step"] for e in deeds(incident.events) if e.kind == Kind.ACTION]
    assert ran == ["look", "slow", "change", "change"]
    assert {e.who for e in incident.events if e.kind == Kind.STEP} == {"alice", "bob"}
    kinds = [(r.kind, r.who) for r in Journal(env["GPUDIAG_HISTORY_URL"]).of(incident.uid)]
    assert kinds == [(k, w) for w in ("alice", "alice", "bob", "bob") for k in ("intent", "result")]


def test_away_from_a_terminal_nothing_runs_without_a_word(gpudiag: Gpudiag, env: dict[str, str]) -> None:
    book = opened(env)
    shown = gpudiag("incident", "run", "1", env=env)
    assert shown.code == 0
    assert "$ /bin/echo looked at n1" in shown.out
    assert "Nothing was run" in shown.out
    assert states(book.incident(1)) == {}
    ran = gpudiag("incident", "run", "1", "--yes-safe", "--step", "look", "--by", "cron", env=env)
    assert (ran.code, states(book.incident(1))) == (0, {"look": "done"})
    assert "looked at n1" in ran.out
    probe = next(e for e in book.incident(1).events if e.kind == Kind.PROBE)
    assert (probe.text("name"), probe.text("truth")) == ("system", "true")


def test_a_command_of_another_machine_is_shown(gpudiag: Gpudiag, env: dict[str, str]) -> None:
    book = opened(env, host="n7")
    ran = gpudiag("incident", "run", "1", "--yes-safe", env=env)
    assert ran.code == 3
    assert "it belongs on n7, and this is another machine" in ran.out
    assert not [e for e in book.incident(1).events if e.kind == Kind.ACTION]
    assert Journal(env["GPUDIAG_HISTORY_URL"]).of(book.incident(1).uid) == ()


def test_what_cannot_be_walked_is_told(gpudiag: Gpudiag, env: dict[str, str]) -> None:
    book = opened(env)
    assert "no incident named '7'" in gpudiag("incident", "run", "7", env=env).err
    wrong = gpudiag("incident", "run", "1", "--step", "lok", env=env)
    assert (wrong.code, "look" in wrong.err) == (2, True)
    book.add(1, ALICE, events.closed("over"))
    assert "incident 1 is closed" in gpudiag("incident", "run", "1", env=env).err


def test_of_two_who_begin_a_step_one_gets_it(env: dict[str, str]) -> None:
    book = opened(env)

    def begin(hand: Hand, seen: int) -> Incident:
        entry = claims.step_entry("walked", "look", StepState.DOING)
        return book.change(1, hand, lambda i: claims.if_unmoved(i, "walked", "look", seen, [entry]))

    mine = claims.last(begin(ALICE, 0), "walked", "look")
    assert mine is not None
    with pytest.raises(claims.MovedError, match="alice"):
        begin(BOB, 0)
    assert claims.holder(mine, "alice") is claims.Holder.SAME
    assert claims.holder(mine, "bob") is claims.Holder.OTHER
    assert claims.last(begin(BOB, mine.seq), "walked", "look") is not None  # taken over, knowingly


def test_rounds_count_over_a_pause_and_begin_anew_after_an_end(env: dict[str, str]) -> None:
    book = opened(env)
    ran = events.Entry(Kind.ACTION, {"runbook": "walked", "step": "look", "round": 1})
    doing, left = (claims.step_entry("walked", "look", StepState.DOING, left=x) for x in (False, True))
    now = book.add(1, ALICE, doing, ran, ran, left, doing, ran)
    assert len(claims.runs(now, "walked", "look")) == 3
    now = book.add(1, ALICE, claims.step_entry("walked", "look", StepState.FAILED))
    assert claims.runs(now, "walked", "look") == ()


KILLS = """\
---
id: walked
title: {en: A walk, zh: 流程}
applies: [thermal]
summary: {en: Walk., zh: 执行。}
steps:
  - {id: once, title: TITLE, do: TITLE, command: "/bin/sh -c 'echo ran >> FILE; kill -9 $PPID'", risk: safe, consent: none, verify: TITLE}
references: [https://example.org]
---

## English

Quiet.

## 中文

静。
"""


@pytest.mark.process
def test_killed_in_a_command_it_is_told_and_not_run_again_unasked(
    gpudiag: Gpudiag, env: dict[str, str], tmp_path: Path
) -> None:
    """The command ends gpudiag itself. The report and the journal have it, and only a person can have it run once more."""
    ran = tmp_path / "ran"
    page = KILLS.replace("TITLE", TITLE).replace("FILE", str(ran))
    (tmp_path / "site/walked.md").write_text(page, encoding="utf-8")
    book = opened(env)
    line = ("incident", "run", "1", "--yes-safe", "--by", "alice")
    assert gpudiag(*line, env=env).code not in (0, 1, 2, 3)
    for _ in range(2):
        again = gpudiag(*line, env=env)
        assert again.code == 3
    again = gpudiag(*line[:-1], "bob", "--take-over", env=env)
    assert "It may have run already: begun at" in again.out
    assert ran.read_text() == "ran\n"
    report = json.loads(gpudiag("incident", "report", "1", "--format", "json", env=env).out)["report"]
    done = [a for a in report["actions"] if a["kind"] == "action"]
    assert [(a["who"], a["result"]) for a in done] == [("alice", "begun; how it ended is not known")]
    records = Journal(env["GPUDIAG_HISTORY_URL"]).of(book.incident(1).uid)
    assert [r.kind for r in records] == ["intent"]


def test_what_only_the_journal_has_stands_in_the_report(gpudiag: Gpudiag, env: dict[str, str]) -> None:
    """Ended between the intent and the event: nothing ran, or nobody knows."""
    book = opened(env)
    uid, journal = book.incident(1).uid, Journal(env["GPUDIAG_HISTORY_URL"])
    (intent,) = journal.append(
        uid, BOB, Entry("intent", {"what": "step:walked/look", "argv": ["/bin/echo", "x"], "node": "n1"})
    )
    report = json.loads(gpudiag("incident", "report", "1", "--format", "json", env=env).out)["report"]
    assert [(a["what"], a["result"]) for a in report["actions"]] == [
        ("walked/look: /bin/echo x", "begun; how it ended is not known")
    ]
    journal.append(uid, BOB, Entry("result", {"intent": intent.seq, "end": "exited", "exit_code": 4}))
    (event,) = journal_only(book.incident(1), journal.of(uid))
    assert event.data["exit_code"] == 4
    now = book.add(1, BOB, events.Entry(Kind.ACTION, {"journal": intent.seq, "end": "begun"}))
    assert journal_only(now, journal.of(uid)) == ()


def test_every_question_stands_in_both_languages() -> None:
    from assistant.actions.acting import Acted
    from assistant.actions.running import End, Result
    from assistant.incidents.walk_parts import Way
    from assistant.incidents.walking import Commands

    said: list[Text] = []

    class Note:
        def say(self, text: Text) -> None:
            said.append(text)

        def show(self, title: str, parts: list[Part]) -> None:
            raise AssertionError(title)

        def ask(self, question: Text) -> str:
            said.append(question)
            return ""

    commands = Commands(Journal("off"), ALICE, Note(), Way())
    for end in End:
        commands._tell(Acted(Result(end, 0, 1.0, "out", "", 3), 1))
    assert len(said) == len(End)
    assert all(t.en and t.in_("zh") != t.en for t in said)
