"""What a capture of a running job is asked by name: the same names as of traces, answered from stacks and samples."""

from __future__ import annotations

from typing import Any

import pytest

from assistant.diagnosis import Diagnosis, diagnose
from assistant.dialogue._traced import bottleneck, only_traces
from assistant.intent.query import Intent
from assistant.reply import Reply
from knowledge.observation import Observation, Scope, Source, Subject, node
from tests.assistant.dialogue.talk import query, rules, turn

HERE = node("n1")
PROCESS = Subject(Scope.PROCESS, "4242", HERE)
JOB = Subject(Scope.JOB, "7", HERE)


def captured(facts: dict[str, Any], job: dict[str, Any] | None = None) -> Diagnosis:
    """The diagnosis of one captured process, and of its job."""
    window = {"capture.window.seconds": 2.0, "capture.samples": 100}
    told = [(f, v, PROCESS) for f, v in (window | facts).items()] + [(f, v, JOB) for f, v in (job or {}).items()]
    return diagnose([Observation(f, on, v, source=Source("capture", "capture.json")) for f, v, on in told], rules())


def asked(text: str, diagnosis: Diagnosis, lang: str = "en") -> Reply:
    """The answer to a question that names a bottleneck."""
    reply = bottleneck(turn(diagnosis, query(Intent.DIAGNOSE, text, lang)))
    assert reply is not None
    return reply


GIL = {"stack.gil_wait.share": 41.0, "stack.gil.holder": "metrics_loop (metrics.py:9)"}


def test_is_it_the_gil() -> None:
    reply = asked("is it the GIL?", captured(GIL))
    assert reply.headline.startswith("Yes. ")
    assert "metrics_loop (metrics.py:9)" in reply.headline
    assert "41.0 % of the captured window" in reply.headline
    assert asked("is it the GIL?", captured(GIL, {}), "zh").headline.startswith("是：")


def test_it_is_not_the_gil() -> None:
    reply = asked("is it the GIL?", captured({"stack.gil_wait.share": 0.2, "thread.gil_wait.share": 0.1}))
    assert reply.headline.startswith("No: ")
    assert "0.2 %" in reply.headline


LOADER = {
    "stack.data_wait.share": 48.0, "stack.data_wait.function": "main (train.py:31)", "stack.workers.busy.share": 96.0,
    "stack.workers.cpu.share": 92.0, "stack.workers.read.share": 1.0, "stack.workers.function": "decode (data.py:12)",
}  # fmt: skip


def test_is_it_the_data_loader() -> None:
    reply = asked("is it the data loader?", captured(LOADER))
    assert reply.headline.startswith("Yes. ")
    assert "decode (data.py:12)" in reply.headline


def test_would_more_workers_help() -> None:
    assert "at most 48 % of the captured window" in asked("would more workers help?", captured(LOADER)).headline


SLOW = {"job.slow_rank": "3", "job.slow_rank.wait.share": 38.0, "job.slow_rank.function": "forward (model.py:88)"}


def test_who_is_the_slow_rank() -> None:
    reply = asked("who is the slow rank?", captured({}, SLOW))
    assert "rank 3" in reply.headline
    assert any(f["rule"] == "job-waits-for-slow-rank" for a in reply.data["asked"] for f in a["findings"])


def test_what_was_not_captured_is_not_denied() -> None:
    reply = asked("is it the GIL or the data loader?", captured(LOADER))
    assert reply.headline.startswith("The data loader")
    assert {a["id"]: a["holds"] for a in reply.data["asked"]} == {"interpreter-lock": "unknown", "data-loader": "yes"}


def test_a_capture_says_nothing_of_the_health_of_the_machine() -> None:
    diagnosis = captured(LOADER)
    assert only_traces(diagnosis)
    assert "captured window" in diagnosis.verdict.text.en
    assert "can be used" not in diagnosis.verdict.text.en


@pytest.mark.parametrize("text", ["which function takes the time?", "what is the hot function"])
def test_the_hot_function(text: str) -> None:
    reply = asked(text, captured({"stack.hot.function": "tokenise (text.py:7)", "stack.hot.share": 61.0}))
    assert "tokenise (text.py:7)" in reply.headline
