"""The hang path on real processes: ranks over gloo, stand-ins, deadlocks, prompts, stopped and dead processes."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from probes.capture.hang import hang
from probes.capture.hang.standing import POLLS, SERVES, SHORT, Standing, members, standing
from probes.capture.hang.standing_frames import Cause, Kind
from probes.capture.hang.standing_job import JobStanding, Pattern, jobs
from probes.capture.model import Process, Target
from tests.live_jobs import Job, Ranks, pythons
from tests.probes.capture.hang_jobs import SCRIPTS, program, programs, ranks, settled
from tests.probes.capture.real_processes import in_state

pytestmark = pytest.mark.process
WAITS = "all_reduce(end)"


def looked(targets: Sequence[Target]) -> dict[str, Any]:
    """A look, as the document keeps it."""
    found: dict[str, Any] = json.loads(json.dumps(hang.look(targets)))
    return found


def verdict(targets: Sequence[Target]) -> JobStanding:
    part = looked(targets)
    (found,) = jobs(part, members(part["targets"]))
    return found


def alone(target: Target) -> Standing:
    part = looked([target])
    return standing(part, members(part["targets"])[0])


def of_gloo(job: Ranks) -> list[Target]:
    return [Target(Process(j.pid, 0, "python"), i, i, len(job.jobs), "job") for i, j in enumerate(job.jobs)]


@pytest.mark.machine
def test_a_rank_over_gloo_that_never_enters_all_reduce_is_named() -> None:
    with Ranks("--hang", "1") as job:
        job.jobs[1].wait("hung")
        settled(*(j.pid for j in job.jobs), seconds=20)
        found = verdict(of_gloo(job))
        assert found.hung is True
        assert found.pattern is Pattern.LATE
        assert found.guilty is not None
        assert found.guilty.member.rank == 1
        assert found.guilty.function.startswith("stuck_in_data_loader (ranks.py:")
        assert found.guilty.kind is Kind.LOCK
        assert found.collective == "all_reduce"
        assert "all_reduce, called by average_gradients (ranks.py:" in found.waiting[0].function
        assert "[1]" in found.tree
        assert job.jobs[0].alive
        assert job.jobs[1].alive


@pytest.mark.machine
@pytest.mark.parametrize("options", [(), ("--slow-rank", "1", "--slow", "0.4"), ("--slow-rank", "0", "--slow", "1.5")])
def test_a_job_that_moves_is_not_hung(options: tuple[str, ...]) -> None:
    with Ranks(*options, pause=0.05) as job:
        before = [j.iterations for j in job.jobs]
        found = verdict(of_gloo(job))
        for j, n in zip(job.jobs, before, strict=True):
            j.advance(max(n + 1 - j.iterations, 0))
        assert found.hung is not True


GROUPS = {
    "late": [WAITS] * 5 + ["stuck_in_tokenizer()"] + [WAITS] * 2,
    "together": [WAITS, WAITS],
    "different": [WAITS, WAITS, "all_gather(end)"],
    "ended": [WAITS, WAITS, WAITS],
    "partly": [WAITS, WAITS, WAITS],
}


@pytest.fixture(scope="module")
def groups(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, list[Target]]]:
    """Jobs of stand-ins, each for one test: what has stood for long is told at once."""
    with ExitStack() as stack:
        yield {
            name: stack.enter_context(ranks(tmp_path_factory.mktemp(name), *bodies)) for name, bodies in GROUPS.items()
        }


def test_one_of_eight_ranks_stands_elsewhere(groups: dict[str, list[Target]]) -> None:
    found = verdict(groups["late"])
    assert (found.hung, found.pattern, found.collective) == (True, Pattern.LATE, "all_reduce")
    assert [s.member.rank for s in found.late] == [5]
    assert found.late[0].kind is Kind.SLEEP
    assert found.late[0].function.startswith("stuck_in_tokenizer (train5.py:")
    assert [g.members for g in found.groups][-1:] != [(5,)] or len(found.groups) > 1
    assert found.absent == ()


def test_all_in_the_same_collective_is_nobodys_fault_here(groups: dict[str, list[Target]]) -> None:
    found = verdict(groups["together"])
    assert (found.hung, found.pattern, found.guilty, found.desync) == (True, Pattern.TOGETHER, None, False)


def test_ranks_in_different_collectives(groups: dict[str, list[Target]]) -> None:
    found = verdict(groups["different"])
    assert (found.hung, found.pattern, found.desync) == (True, Pattern.DESYNC, True)
    assert [s.member.rank for s in found.late] == [2]


def test_a_rank_that_ended_is_absent(groups: dict[str, list[Target]]) -> None:
    targets = groups["ended"]
    os.kill(targets[2].process.pid, signal.SIGKILL)
    in_state(targets[2].process.pid, "Z")
    found = verdict(targets)
    assert (found.hung, found.pattern, found.absent) == (True, Pattern.ABSENT, (2,))
    assert len(found.waiting) == 2


def test_a_rank_without_a_process_is_told_from_one_that_was_not_captured(groups: dict[str, list[Target]]) -> None:
    targets = groups["partly"]
    before = verdict(targets[:2])
    assert (before.absent, before.elsewhere) == ((), 1)
    os.kill(targets[2].process.pid, signal.SIGKILL)
    in_state(targets[2].process.pid, "Z")
    assert verdict(targets[:2]).absent == (2,)


def test_a_stopped_rank_is_named_before_others_that_are_late(tmp_path: Path) -> None:
    with ranks(tmp_path, WAITS, "stuck_in_tokenizer()", "burn()") as targets:
        os.kill(targets[2].process.pid, signal.SIGSTOP)
        in_state(targets[2].process.pid, "T")
        found = verdict(targets)
        assert found.guilty is not None
        assert (found.hung, found.guilty.member.rank, found.guilty.cause) == (True, 2, Cause.STOPPED)
        assert "burn" in found.guilty.function


def test_a_rank_that_computes_is_late_and_not_hung(tmp_path: Path) -> None:
    with ranks(tmp_path, WAITS, "burn()") as targets:
        found = verdict(targets)
        assert found.hung is False
        assert found.guilty is not None
        assert found.guilty.member.rank == 1


@pytest.fixture(scope="module")
def standing_still(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Target]]:
    """One program for each reason."""
    with programs(tmp_path_factory.mktemp("programs"), "deadlock", "prompt", "stdin", "sleep", "disk") as found:
        yield found


@pytest.mark.parametrize(
    ("name", "kind", "cause", "function"),
    [
        ("deadlock", Kind.LOCK, Cause.DEADLOCK, "write_checkpoint"),
        ("prompt", Kind.IO, Cause.DEBUGGER, "look_closer"),
        ("stdin", Kind.IO, Cause.STDIN, "ask"),
        ("sleep", Kind.SLEEP, Cause.NONE, "nap"),
        ("disk", Kind.IO, Cause.STORAGE, ""),
    ],
)
def test_one_process_that_stands_still(
    standing_still: dict[str, Target], name: str, kind: Kind, cause: Cause, function: str
) -> None:
    found = alone(standing_still[name])
    assert (found.still, found.kind, found.cause) == (True, kind, cause), found
    assert function in found.function
    if name == "deadlock":
        assert "train (" in found.function


def test_what_is_slow_or_serves_or_works_does_not_stand_still(tmp_path: Path) -> None:
    with program("slow", tmp_path) as slow, program("server", tmp_path) as server:
        part = looked([slow, server])
        polls, serves = (standing(part, member) for member in members(part["targets"]))
        assert polls.still is not True
        assert polls.why in (POLLS, SHORT)
        assert (serves.still, serves.why, serves.cause) == (None, SERVES, Cause.IDLE)
    with program("busy", tmp_path) as busy:
        assert alone(busy).still is False


def test_without_python_stacks_proc_still_tells(standing_still: dict[str, Target]) -> None:
    part = looked([standing_still["sleep"]])
    for dump in part["dumps"]:
        dump.update(threads=[], error="py-spy does not know this version of Python")
    found = standing(part, members(part["targets"])[0])
    assert (found.still, found.kind, found.function) == (True, Kind.SLEEP, "")


@pytest.mark.machine
def test_each_interpreter_is_told_by_its_stack_or_by_proc(tmp_path: Path) -> None:
    script = tmp_path / "nap.py"
    script.write_text(SCRIPTS["sleep"])
    (tmp_path / "counters.py").touch()  # what a job needs beside it in a root of its own
    with ExitStack() as stack:
        jobs = [stack.enter_context(Job(str(script), interpreter=path)) for _, path in pythons()]
        targets = [Target(Process(j.pid, 0, "python")) for j in jobs]
        settled(*(j.pid for j in jobs))
        part = looked(targets)
    for (version, _), member in zip(pythons(), members(part["targets"]), strict=True):
        found = standing(part, member)
        assert (found.still, found.kind) == (True, Kind.SLEEP), (version, found)
        assert found.function.startswith("nap (nap.py:") or "py-spy" in found.evidence, (version, found)


def test_a_process_that_is_gone_and_one_that_never_was() -> None:
    part = looked([Target(Process(2**22 + 1, 0, "ghost"), 0, 0, 2, "job")])
    (found,) = jobs(part, members(part["targets"]))
    assert found.absent == (0,)
    assert part["dumps"][0]["error"]
