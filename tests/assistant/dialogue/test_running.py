"""What is answered about a process that was looked into: from recorded captures, in both languages, without a machine."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

from assistant.diagnosis import Diagnosis, State, diagnose
from assistant.dialogue import _running, rerun
from assistant.dialogue import diagnose as answers
from assistant.dialogue import probe as values
from assistant.intent.parse import understand
from assistant.intent.query import Intent, Query
from assistant.render.sheet import Code, Heading, Items, Paragraph, Table
from assistant.reply import Reply
from assistant.session.naming import known, mates, meant, options, whom
from assistant.sources import read
from knowledge.observation import Observation, Scope, Source, Subject, node
from tests.assistant.dialogue.talk import rules, turn
from tests.cases import each
from tests.conftest import ROOT

HERE = node("gpu-12")
CAPTURES = ROOT / "tests" / "captures" / "jobs"


@cache
def captured(name: str) -> Diagnosis:
    """The diagnosis of a recorded capture."""
    return diagnose(read((), (str(CAPTURES / f"{name}.json"),), "", None).observations, rules())


def asked(text: str, lang: str = "en") -> Query:
    """A sentence as it is understood."""
    return understand(text, lang=lang, pending=False, hosts=("gpu-12",))


def answer(text: str, d: Diagnosis, lang: str = "en") -> Reply:
    """The answer to a diagnosing question."""
    return answers.answer(turn(d, asked(text, lang)))


def seen(*told: tuple[str, str, object], relations: tuple[tuple[str, Subject, str], ...] = ()) -> Diagnosis:
    """Of processes by pid: facts with their values."""
    source = Source("processes", "snapshot")
    rows = [Observation("node.processes", HERE, 200, source=source)]
    rows += [Observation(fact, Subject(Scope.PROCESS, pid, HERE), value, source=source) for pid, fact, value in told]  # type: ignore[arg-type]
    rows += [Observation(fact, a, b, source=source) for fact, a, b in relations]
    return diagnose(rows, rules())


def python(pid: str, script: str, parent: int = 1) -> tuple[tuple[str, str, object], ...]:
    """A Python process."""
    return (
        (pid, "process.state", "running"), (pid, "process.comm", "python"), (pid, "process.parent", parent),
        (pid, "process.command", f"/opt/venv/bin/python -u {script}"),
    )  # fmt: skip


def job_of(*pids: str) -> tuple[tuple[str, Subject, str], ...]:
    """Ranks of one job."""
    job = Subject(Scope.JOB, "7", HERE)
    ranks = [(Subject(Scope.RANK, str(i), job), Subject(Scope.PROCESS, pid, HERE)) for i, pid in enumerate(pids)]
    return tuple(
        row
        for rank, process in ranks
        for row in (("rank.is_process", rank, f"process:{process.id}"), ("process.in_job", process, "job:7"))
    )


@each(
    ("name", "rule", "function"),
    [("python", "python-bound-loop", "tokenize_slowly"), ("data", "batches-made-in-training-process", "decode_slowly")],
)
@each(("text", "lang"), [("why is pid 4242 slow?", "en"), ("pid 4242 为什么慢？", "zh")])
def test_the_answer_leads_with_the_cause_its_function_its_share_and_the_change(
    name: str, rule: str, function: str, text: str, lang: str
) -> None:
    reply = answer(text, captured(name), lang)
    assert reply.shown is not None
    assert reply.shown.roots[0].rule.id == rule
    assert reply.focus == reply.shown.roots[0].id
    lead = reply.shown.verdict.text.in_(lang)
    assert function in lead
    assert "%" in lead
    assert reply.shown.roots[0].advice.bucket
    assert all(f.subject.scope is not Scope.NODE for f in reply.shown.findings[:1])


def test_each_hypothesis_has_what_was_seen_and_those_that_nobody_looked_at_are_only_named() -> None:
    reply = answer("why is pid 4242 slow?", captured("data"))
    (table,) = [p for p in reply.parts if isinstance(p, Table)]
    stands = {row[0]: row[1:] for row in table.rows}
    assert stands["The loop waits for its data"][0] == "supported"
    assert stands["Python code in the loop takes the time"][0] == "ruled out"
    assert stands["Other threads hold the interpreter's lock (GIL)"][0] == "ruled out"
    assert all(row[2] for row in table.rows), "each with its value"
    assert len(table.rows) <= 12
    rest = [p.text for p in reply.parts if isinstance(p, Paragraph) and p.text.startswith("Not told by this look")]
    assert len(rest) == 1
    assert "The GPU is held back" in rest[0]


def test_where_the_time_went_stands_with_the_functions() -> None:
    reply = answer("what is pid 4242 doing?", captured("data"))
    assert any(isinstance(p, Heading) and p.text.startswith("Where the time went") for p in reply.parts)
    assert "decode_slowly" in str([getattr(p, "rows", ()) for p in reply.parts])


def test_before_it_is_looked_into_nothing_is_claimed() -> None:
    d = seen(*python("4242", "train.py"))
    reply = answer("why is pid 4242 slow?", d)
    assert reply.shown is not None
    assert reply.shown.verdict.state is State.UNKNOWN
    assert "was not looked into" in reply.shown.verdict.text.en
    assert not any(isinstance(p, Table) for p in reply.parts)
    assert not reply.settled


def test_who_is_not_there_is_said_with_who_is() -> None:
    reply = answer("why is pid 4243 slow?", seen(*python("4242", "train.py")))
    assert reply.headline == "No process 4243 was seen."
    assert "4242 (train.py)" in str([p.text for p in reply.parts if isinstance(p, Paragraph)])
    assert reply.suggestions == ("why is pid 4242 slow?",)


def test_a_crash_of_the_process_is_another_question() -> None:
    d = seen(*python("4242", "train.py"))
    assert _running.about(turn(d, asked("why did pid 4242 crash?"))) is None


def test_the_stack_is_shown_as_it_is_and_a_profile_is_offered_with_its_command() -> None:
    shown = values.answer(turn(captured("python"), asked("show me the stack of pid 4242")))
    assert shown.data["answer"] == "running"
    assert not any(isinstance(p, Table) for p in shown.parts)
    offered = answer("profile pid 4242", captured("python"))
    assert [p.lines for p in offered.parts if isinstance(p, Code)] == [("gpudiag profile --pid 4242",)]


def test_again_compares_findings_and_shares() -> None:
    q = replace(asked("why is pid 4242 slow?"), intent=Intent.RERUN)
    reply = rerun.answer(replace(turn(captured("python"), q), before=captured("data")))
    lines = [line for p in reply.parts if isinstance(p, Items) for line in p.items]
    assert any(line.startswith("no longer: Data-bound") for line in lines)
    assert any(line.startswith("new: CPU-bound") for line in lines)
    header = [p.header for p in reply.parts if isinstance(p, Table)]
    assert ("activity", "before", "now") in header


# --- names ----------------------------------------------------------------------------------


def test_a_script_names_its_process_without_workers_and_launchers() -> None:
    rows = (*python("10", "train.py"), *python("11", "train.py", 10), *python("12", "serve.py"))
    found = meant(asked("why is train.py slow?"), seen(*rows).facts)
    assert found.pids == (10,)
    assert not found.which


def test_two_jobs_of_one_name_are_asked_apart_and_ranks_of_one_job_are_not() -> None:
    rows = (*python("10", "train.py"), *python("20", "train.py"))
    q = asked("why is train.py slow?")
    assert [s.id for s in meant(q, seen(*rows).facts).which] == ["10", "20"]
    one = seen(*rows, relations=job_of("10", "20")).facts
    assert meant(q, one).pids == (10, 20)
    assert not meant(q, one).which


def test_a_rank_stands_for_all_ranks_of_its_job_here() -> None:
    facts = seen(
        *python("10", "t.py"), *python("20", "t.py"), *python("30", "t.py"), relations=job_of("10", "20")
    ).facts
    q = asked("why is pid 10 slow?")
    assert meant(q, facts).pids == (10, 20)
    assert [m.id for m in mates(Subject(Scope.PROCESS, "10", HERE), facts)] == ["20"]
    assert options(q, facts)["pids"] == "10,20"
    assert whom(q, facts).en == "ranks 0, 1 of job 7 (pids 10, 20)"
    assert known(q, facts)


def test_before_anything_is_known_the_pids_and_names_that_were_said_are_told() -> None:
    assert options(asked("why is pid 4242 slow?")) == {"pids": "4242"}
    assert options(asked("why is train.py slow?")) == {"names": "train.py"}
    assert not known(asked("why is pid 4242 slow?"), seen().facts)
