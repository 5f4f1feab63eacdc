"""The folder that is shared with a target, which may be hostile; and what is made of what it wrote."""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from probes.capture.agent.budget import ALWAYS, Budget
from probes.capture.guest import guest as guest_module
from probes.capture.guest._guest_folder import PREFIX, STALE, Folder
from probes.capture.guest._guest_result import Result, marked
from probes.capture.guest._guest_words import refusal
from probes.capture.guest.guest import Guest, source
from probes.capture.model import Item, Outcome, Process, Target, Window
from probes.capture.whom import identity

pytestmark = pytest.mark.process


@pytest.fixture
def sleeper() -> Iterator[Process]:
    """A process of our own, with nothing in it."""
    child = subprocess.Popen(
        [sys.executable, "-c", "import time; print(1, flush=True); time.sleep(600)"], stdout=subprocess.PIPE
    )
    try:
        assert child.stdout is not None
        child.stdout.readline()
        yield identity.read(child.pid)
    finally:
        child.kill()
        child.wait()


@pytest.fixture
def made(sleeper: Process) -> Iterator[Guest]:
    one = Guest(Target(sleeper), [Item.TORCH], Window())
    one.prepare()
    yield one
    one.clean()


def done(one: Guest, result: object = None) -> Path:
    """As an agent leaves it."""
    folder = Path(one.inside)
    status = {"phase": "done", "code": "", "words": "", "events": 1, "iterations": 1, "pid": 1, "at": 1}
    (folder / "status.json").write_text(json.dumps(status))
    if result is not None:
        (folder / "result.json").write_text(json.dumps(result))
    return folder


RESULT = {
    "notes": [], "window": {"began": 1000, "ended": 9000, "wish": 1, "captured": 5}, "clock": {"realtime": 10**18, "monotonic": 0},
    "trace": {"began": 1000, "ended": 9000, "budget": {"allowed": 9}},
    "iterations": {"anchor": "a", "thread": 7, "ends": [1000, 2000, 3000], "others": {}, "batches": None, "loss": ["nan", 1.0, None], "gradnorm": None},
    "torch": {"version": "2"},
}  # fmt: skip
TRACE = b'{"schemaVersion": 1, "baseTimeNanoseconds": 1000000000000000000, "traceEvents": [\n{"ph": "X", "cat": "cpu_op", "name": "a", "pid": 5, "tid": 7, "ts": 1.0, "dur": 2}\n], "x": 1}'  # fmt: skip


def test_private_and_gone_when_cleaned(made: Guest) -> None:
    folder = Path(made.inside)
    assert folder.stat().st_mode & 0o777 == 0o700
    assert made.poll().phase == ""
    made.clean()
    assert not folder.exists()
    made.clean()


def test_a_trace_is_taken_with_its_marks(made: Guest, tmp_path: Path) -> None:
    folder = done(made, RESULT)
    (folder / "trace.json").write_bytes(TRACE)
    parts, iterations, torch = made.collect(tmp_path)
    assert parts[0].outcome is Outcome.OK
    assert iterations is not None
    assert torch is not None
    assert iterations["loss"][0] != iterations["loss"][0]
    assert (tmp_path / parts[0].file).is_file()


def test_marks_are_in_the_time_of_the_trace() -> None:
    trace = json.loads(marked(TRACE, Result(RESULT, {"iterations": 0})))
    marks = [e for e in trace["traceEvents"] if e["name"].startswith("ProfilerStep#")]
    assert [(m["ts"], m["dur"], m["pid"], m["tid"]) for m in marks] == [(1.0, 1.0, 5, 7), (2.0, 1.0, 5, 7)]
    assert len(trace["traceEvents"]) == 3


@pytest.mark.parametrize("kind", ["link", "hard link", "fifo", "folder", "absent"])
def test_what_is_no_plain_file_of_the_target_is_not_taken(kind: str, made: Guest, tmp_path: Path) -> None:
    folder = done(made, RESULT)
    secret = tmp_path / "secret"
    secret.write_bytes(TRACE)
    trace = folder / "trace.json"
    if kind == "link":
        trace.symlink_to(secret)
    elif kind == "hard link":
        (folder / "pilot.json").write_bytes(TRACE)
        trace.hardlink_to(folder / "pilot.json")
    elif kind == "fifo":
        os.mkfifo(trace)
    elif kind == "folder":
        trace.mkdir()
    parts, _, _ = made.collect(tmp_path)
    assert parts[0].outcome is Outcome.FAILED
    assert parts[0].why.en
    assert not list(tmp_path.glob("trace-*"))
    if kind == "folder":
        trace.rmdir()


def test_too_large_is_not_taken(made: Guest, tmp_path: Path) -> None:
    folder = done(made, RESULT)
    with (folder / "trace.json").open("wb") as file:
        file.truncate(guest_module.MOST_TRACE + 1)
    parts, _, _ = made.collect(tmp_path)
    assert parts[0].outcome is Outcome.FAILED


def test_a_folder_that_was_put_elsewhere(made: Guest) -> None:
    folder = Path(made.inside)
    other = folder.with_name(folder.name + "-moved")
    folder.rename(other)
    try:
        assert made.poll().phase == "gone"
    finally:
        other.rename(folder)


_JSON = st.recursive(st.none() | st.booleans() | st.integers() | st.floats() | st.text(), lambda c: st.lists(c, max_size=3) | st.dictionaries(st.text(), c, max_size=3), max_leaves=8)  # fmt: skip


@given(st.fixed_dictionaries({}, optional=dict.fromkeys(RESULT, _JSON)))
def test_no_result_is_believed(told: dict[str, Any]) -> None:
    try:
        result = Result({**RESULT, **told}, {"iterations": 0})
        for item in Item:
            result.part(item, "x", "")
        _ = result.iterations, result.torch
        marked(TRACE, result)
    except (ValueError, TypeError, KeyError, AttributeError, OverflowError):
        pass  # refused as a whole by `collect`


@given(_JSON)
def test_no_status_is_believed(told: Any) -> None:
    with suppress(ValueError, TypeError):
        guest_module._state(told)


def test_folders_of_killed_captures_are_swept(sleeper: Process) -> None:
    old = Path("/tmp") / f"{PREFIX}1-{os.getpid()}"
    young = Path("/tmp") / f"{PREFIX}2-{os.getpid()}"
    for path in (old, young):
        path.mkdir()
        (path / "beat").touch()
    then = time.time() - 2 * STALE
    os.utime(old / "beat", (then, then))
    os.utime(old, (then, then))
    try:
        Folder(sleeper).remove()
        assert not old.exists()
        assert young.exists()
    finally:
        for path in (old, young):
            if path.exists():
                (path / "beat").unlink()
                path.rmdir()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can capture another user's process")
def test_another_users_process_owns_its_folder() -> None:
    child = subprocess.Popen(["sleep", "600"], user=65534, group=65534)
    try:
        process = identity.read(child.pid)
        one = Guest(Target(process), [Item.TORCH], Window())
        one.prepare()
        told = Path(one.inside).stat()
        assert (told.st_uid, told.st_gid, told.st_mode & 0o777) == (65534, 65534, 0o700)
        assert {p.stat().st_uid for p in Path(one.inside).iterdir()} == {65534}
        one.clean()
    finally:
        child.kill()
        child.wait()


def test_the_source_is_python_3_8_and_defines_no_name_twice() -> None:
    tree = ast.parse(source(), feature_version=(3, 8))
    names = [n.name for n in tree.body if isinstance(n, (ast.FunctionDef, ast.ClassDef))]
    names += [t.id for n in tree.body if isinstance(n, ast.Assign) for t in n.targets if isinstance(t, ast.Name)]
    assert len(names) == len(set(names)), sorted(n for n in names if names.count(n) > 1)
    imported = {a.name.split(".")[0] for n in ast.walk(tree) if isinstance(n, ast.Import) for a in n.names}
    imported |= {str(n.module).split(".")[0] for n in ast.walk(tree) if isinstance(n, ast.ImportFrom)}
    assert imported <= set(sys.stdlib_module_names)


def test_every_code_has_words_in_both_languages() -> None:
    tree = ast.parse(source())
    codes = {n.args[0].value for n in ast.walk(tree) if isinstance(n, ast.Call) and isinstance(n.func, ast.Name) and n.func.id == "Refused"
             and isinstance(n.args[0], ast.Constant)}  # fmt: skip
    assert len(codes) > 8
    for code in codes - {"internal"}:
        assert isinstance(code, str)
        assert refusal(code).why.zh
        assert refusal(code).why != refusal("internal").why, code


@given(st.lists(st.tuples(st.integers(0, 10**6), st.integers(1, 10**9), st.integers(0, 10**10), st.integers(0, 10**10)), max_size=4), st.integers(1, 10**6))  # fmt: skip
def test_a_budget_is_never_more_than_asked_for(pilots: list[tuple[int, int, int, int]], most: int) -> None:
    budget = Budget({"events": most, "stall_ns": 90_000_000, "shapes": False})
    for events, window, stop, save in pilots:
        budget.add(events, window, stop, save, window, 2)
    assert budget.document()["pilots"] == len(pilots)
    assert budget.allowed <= max(most, ALWAYS)
    assert budget.longest > 0
    assert 1 <= budget.iterations(10) <= 10
