"""From stacks to facts: planted faults of real jobs come out with their functions, and what is missing has its reason."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from knowledge.facts import vocabulary
from knowledge.observation import Observation, Scope, Status, Subject, node
from probes.capture.inject import interpreter
from probes.capture.model import Process, Target
from probes.capture.provides import STACKS
from probes.capture.readings import samples
from probes.capture.stacks import chrometrace, pyspy, sources, stack_facts, stacks
from probes.capture.stacks.stack_document import StackDoc, empty
from probes.capture.whom import identity
from probes.live_host import LiveHost
from tests.components import cannot
from tests.live_jobs import Job, torch_python
from tests.probes.capture.stack_samples import document, readings

SUBJECT = Subject(Scope.PROCESS, "7", node("n1"))
TARGET = Target(Process(7, 1, "python3"))
RECORDED = Path(__file__).parents[3] / "captures" / "stacks"


def told(documents: Mapping[str, Any], target: Target = TARGET, **more: Any) -> dict[str, Observation]:
    found = stack_facts.observations(documents, target, SUBJECT, **more)
    names = [o.fact for o in found]
    assert len(set(names)) == len(names)
    assert set(names) == set(STACKS)
    for o in found:
        spec = vocabulary()[o.fact]
        assert spec.scope is Scope.PROCESS
        if o.status is Status.OK:
            assert spec.accepts(o.value), o
        else:
            assert o.value is None
            assert o.detail
    return {o.fact: o for o in found}


def captured(job: Job) -> dict[str, Observation]:
    """A short window; where the machine let py-spy look too seldom for shares, longer ones."""
    for seconds in (0.7, 4.0, 8.0, 16.0):
        found = over(job, seconds)
        if found["stack.hot.share"].status is Status.OK:
            break
    return found


def over(job: Job, seconds: float) -> dict[str, Observation]:
    """Stacks and thread states of a job over one window, as a capture takes them."""
    process = identity.read(job.pid)
    target = Target(process, helpers=identity.helpers(job.pid))
    pids = [job.pid, *(h.pid for h in target.helpers)]
    runtime = interpreter.runtime_range(job.pid)
    host = LiveHost()
    try:
        readings_ = samples.Recording(host, pids, runtimes={job.pid: runtime} if runtime else {}, longest=30.0)
        readings_.start()
        with stacks.Recording(pids, 50, seconds) as recording:
            time.sleep(seconds)
        threads = readings_.stop().threads
    finally:
        host.close()
    lines = sources.of_documents(job.pid, list(recording.documents.values()))
    documents = {str(k): v for k, v in recording.documents.items()}
    assert stack_facts.driving(documents, job.pid, lines) == job.pid
    return told(json.loads(json.dumps(documents)), target, sources=lines, threads=json.loads(json.dumps(threads)))


# The other planted faults: `assistant/capture/test_profile_jobs`, from the job to the answer.
@pytest.mark.machine
@pytest.mark.parametrize(
    ("fault", "activity", "function", "least"),
    [("data-workers", "data_wait", "train.py", 10), ("sync", "sync", "read_every_value", 3)],
)
def test_a_planted_fault_is_found_with_its_function(fault: str, activity: str, function: str, least: int) -> None:
    if pyspy.program() is None:
        cannot("py-spy", "py-spy is not installed")
    with Job("train.py", "--fault", fault, "--reads", "2000", "--slow", "0.03", interpreter=torch_python()) as job:
        found = captured(job)
    share, where = found[f"stack.{activity}.share"], found[f"stack.{activity}.function"]
    assert isinstance(share.value, float)
    assert share.value > least, {f: o.value for f, o in found.items()}
    assert function in str(where.value)
    assert "samples" in share.excerpt
    shares = [o.value for f, o in found.items() if f.endswith(".share") and f.count(".") == 2 and "hot" not in f]
    assert sum(s for s in shares if isinstance(s, float)) <= 100.5
    if fault == "sync":
        assert ".item()" in where.excerpt
    if fault == "data-workers":
        assert found["stack.workers"].value == 2
        assert "decode_slowly" in str(found["stack.workers.function"].value)
        busy = found["stack.workers.busy.share"].value
        assert isinstance(busy, float)
        assert busy > 20
    else:
        assert found["stack.workers"].value == 0


@pytest.mark.machine
def test_other_threads_that_hold_the_lock_are_named() -> None:
    if pyspy.program() is None:
        cannot("py-spy", "py-spy is not installed")
    with Job("train.py", "--fault", "gil", interpreter=torch_python()) as job:
        found = captured(job)
    assert float(str(found["stack.gil_wait.share"].value)) > 5
    assert "score_in_background" in str(found["stack.gil.holder"].value)


@pytest.mark.process
def test_sleep_and_work_of_a_program_without_torch() -> None:
    if pyspy.program() is None:
        cannot("py-spy", "py-spy is not installed")
    with Job("two_functions.py") as job:
        found = captured(job)
    assert float(str(found["stack.sleep.share"].value)) > 15
    assert str(found["stack.sleep.function"].value).startswith("rest (two_functions.py:")
    assert "time.sleep" in found["stack.sleep.function"].excerpt
    assert float(str(found["stack.python.share"].value)) > 15
    assert str(found["stack.python.function"].value).startswith("spin (two_functions.py:")


@pytest.mark.machine
def test_a_job_without_a_fault_is_in_its_operators() -> None:
    if pyspy.program() is None:
        cannot("py-spy", "py-spy is not installed")
    with Job("train.py", interpreter=torch_python()) as job:
        found = captured(job)
    work = sum(float(str(found[f"stack.{a}.share"].value)) for a in ("operator", "backward", "optimizer"))
    assert work > 75
    for activity in ("data_wait", "collective", "checkpoint", "logging", "sleep", "io", "compile", "import", "gc"):
        assert float(str(found[f"stack.{activity}.share"].value)) < 10, activity


def test_without_thread_states_the_lock_is_not_told() -> None:
    found = told({"7": document([(2000, 1)])})
    assert found["stack.gil_wait.share"].status is Status.UNSUPPORTED
    assert found["stack.gil.holder"].status is Status.UNSUPPORTED
    states = readings(["S"] * 100)
    states["rows"]["7"]["7"]["gil"] = [None] * 100  # of a Python whose lock could not be found
    assert told({"7": document([(2000, 1)])}, threads=states)["stack.gil_wait.share"].status is Status.UNSUPPORTED
    with_states = told({"7": document([(2000, 1)])}, threads=readings(["S"] * 100))
    assert with_states["stack.gil_wait.share"].value == 50.0


def test_few_samples_give_functions_and_no_shares() -> None:
    found = told({"7": document([(300, 4)])})  # 15 at 50 Hz
    assert found["stack.data_work.share"].status is Status.FAILED
    assert "only 15 samples" in found["stack.data_work.share"].detail
    assert found["stack.hot.share"].status is Status.FAILED
    assert found["stack.data_work.function"].value == "decode_slowly (data.py:8)"
    assert told({"7": document([(400, 4)])})["stack.data_work.share"].value == 100.0


@pytest.mark.parametrize(
    ("code", "status"),
    [
        ("no-permission", Status.DENIED),
        ("not-python", Status.UNSUPPORTED),
        ("ended", Status.FAILED),
        ("timeout", Status.TIMEOUT),
    ],
)
def test_a_recording_that_failed_gives_every_fact_its_reason(code: str, status: Status) -> None:
    found = told({"7": dict(empty(code))})
    assert {o.status for f, o in found.items() if not f.startswith("stack.workers")} == {status}
    assert pyspy.why(code).why.en in found["stack.hot.share"].detail
    assert found["stack.workers"].status is Status.NOT_ASKED


def test_samples_are_those_that_pyspy_came_to_take() -> None:
    slow = document([(2000, 4)]) | {"real_rate": 7.0}
    found = told({"7": slow})
    assert "only 14 samples" in found["stack.data_work.share"].detail
    assert stack_facts.samples({"7": slow}, 7) == 14


def test_a_process_that_was_not_sampled_is_not_asked() -> None:
    assert {o.status for o in told({}).values()} == {Status.NOT_ASKED}


def test_helpers_whose_stacks_are_missing_are_not_no_workers() -> None:
    target = Target(TARGET.process, helpers=(Process(8, 1, "pt_data_worker"),))
    assert told({"7": document([(2000, 1)])}, target)["stack.workers"].status is Status.NOT_ASKED
    assert told({"7": document([(2000, 1)])})["stack.workers"].value == 0


def test_only_the_window_counts() -> None:
    documents = {"7": document([(1000, 4), (1000, 8)])}
    found = told(documents, window=(1000 * 10**6, 2000 * 10**6))
    assert found["stack.collective.share"].value == 100.0
    assert found["stack.collective.function"].value == "all_reduce (train.py:43)"
    assert stack_facts.samples(documents, 7) == 100
    assert stack_facts.samples(documents, 7, (0, 10**9)) == 50


def test_a_recorded_job_is_data_bound() -> None:
    trace = chrometrace.read((RECORDED / "train_data_bound.json").read_bytes())
    tid, main = next((t, v) for t, v in trace.threads.items() if v.name == "MainThread")
    doc: StackDoc = {
        "tool": "py-spy", "rate": 50, "began": 0, "ended": trace.last * 1000, "error": "",
        "frames": [list(f) for f in trace.frames], "stacks": [list(s) for s in trace.stacks],
        "threads": {tid: {"name": "MainThread", "samples": [[a * 1000, n * 1000, s] for a, n, s in main.spans]}},
    }  # fmt: skip
    found = told({"7": doc})
    assert float(str(found["stack.data_work.share"].value)) > 40
    assert "decode_slowly (train.py:" in str(found["stack.data_work.function"].value)


@given(st.recursive(st.none() | st.integers() | st.text(max_size=4), lambda i: st.lists(i, max_size=4) | st.dictionaries(st.sampled_from(["7", "threads", "samples", "frames", "stacks", "error", "code", "name"]), i, max_size=6), max_leaves=20))  # fmt: skip
def test_any_document_is_told(value: Any) -> None:
    stack_facts.observations(value, TARGET, SUBJECT, threads=value, sources=value)
    stack_facts.driving(value, 7)
