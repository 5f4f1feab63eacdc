"""The agent in real training jobs: exact iterations, the event budget, giving way, refusals, and nothing left behind."""

from __future__ import annotations

import gzip
import json
import os
import re
import signal
import time
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from probes.capture.guest.guest import BEAT, Guest
from probes.capture.inject import inject
from probes.capture.model import Item, Outcome, Target, Window
from probes.capture.whom import identity
from tests.command_server import Command, CommandServer
from tests.live_jobs import ROOT, Job, Ranks, torch_python
from tests.probes.capture.guests import capture, descriptors, folders, guest, threads, wait

pytestmark = pytest.mark.machine
TOGETHER = 1_000_000_000  # ns after the time given, within which each rank has begun
SMALL = ("--depth", "2")  # about 600 events an iteration: five are never cut
AFTER = "(sorted(k for k in [*vars(sys), *sys.modules, *map(str, __import__('threading').enumerate())] if 'gpudiag' in k), sys.modules['torch.optim.optimizer']._global_optimizer_post_hooks, torch.autograd.profiler._is_profiler_enabled, torch.autograd.profiler._prepare_profiler is torch.autograd._prepare_profiler)"  # fmt: skip


def events(folder: Path, job: Job) -> list[dict[str, Any]]:
    """Of the trace that was taken."""
    with gzip.open(folder / f"trace-{job.pid}.json.gz") as file:
        found: list[dict[str, Any]] = json.load(file)["traceEvents"]
    return found


def clean(job: Job) -> None:
    """Nothing of a capture is in the process or its file system."""
    until = time.monotonic() + 20
    while True:  # the agent's thread ends a moment after its last word
        said = job.said(f"import sys; print('after', {AFTER}, flush=True)", "after")
        if "Thread(gpudiag" not in said or time.monotonic() > until:
            break
    assert said == "after ([], OrderedDict(), False, True)", said
    job.advance(5)
    assert not folders(job)
    assert "Traceback" not in job.output


def test_five_iterations_are_five_and_marks_lie_on_the_loop_of_the_trace(tmp_path: Path) -> None:
    with Job("train.py", *SMALL, interpreter=torch_python(), pause=0.02) as job:
        items = [Item.TORCH, Item.SHAPES, Item.LOSS, Item.GRADNORM]
        got = capture(job, items, Window(iterations=5, skip=3), tmp_path)
        assert got.state.phase == "done", got.state
        assert got.phases[-1] == "done"
        assert {p.outcome for p in got.parts.values()} == {Outcome.OK}, got.parts
        found = events(tmp_path, job)
        names = [e.get("name", "") for e in found]
        steps = [e for e in found if e.get("name", "").startswith("ProfilerStep#")]
        optimizer = [e for e in found if e.get("name", "").startswith("Optimizer.step#")]
        assert 4 <= len(optimizer) <= 5  # the last has not ended when it is counted
        assert len(steps) == 5
        assert sum(n == "Optimizer.zero_grad#AdamW.zero_grad" for n in names) == 5
        assert got.iterations is not None
        inside = [e for e in got.iterations["ends"] if got.iterations["began"] < e <= got.iterations["ended"]]
        assert len(inside) == 5
        assert got.iterations["anchor"] == "AdamW.step"
        assert all(n > 0 for n in got.iterations["loss"])
        assert all(n > 0 for n in got.iterations["gradnorm"])
        assert set(got.iterations["batches"][1:]) == {1}
        assert (
            {(e["pid"], e["tid"]) for e in steps} == {(e["pid"], e["tid"]) for e in optimizer} == {(job.pid, job.pid)}
        )
        ends = [s["ts"] + s["dur"] for s in steps]
        for one in optimizer:  # an iteration ends within the optimizer's step, in us
            assert any(one["ts"] - 1000 < end < one["ts"] + one["dur"] + 1000 for end in ends), (one, ends)
        assert any("Input Dims" in e.get("args", {}) for e in found)
        clean(job)


def test_a_duration_holds_the_backward_threads_too_and_cuda_is_never_begun_for_a_capture(tmp_path: Path) -> None:
    with Job("train.py", *SMALL, interpreter=torch_python(), pause=0.02) as job:
        items = [Item.TORCH, Item.KERNELS, Item.MEMORY]
        got = capture(job, items, Window(duration_ns=300_000_000), tmp_path)
        assert got.parts[Item.TORCH].outcome in (Outcome.OK, Outcome.PARTIAL)
        for item in (Item.KERNELS, Item.MEMORY):
            assert got.parts[item].outcome is Outcome.REFUSED
            assert "CUDA" in got.parts[item].why.en
            assert "CUDA" in got.parts[item].why.zh
        names = {e.get("name", "") for e in events(tmp_path, job)}
        assert "aten::linear" in names
        assert any("AddmmBackward0" in n for n in names)
        assert got.iterations is not None
        assert got.iterations["ended"] - got.iterations["began"] > 0
        clean(job)


def test_micro_batches_and_two_optimizers(tmp_path: Path) -> None:
    with Job(
        "train.py", "--fault", "accumulate", "--optimizers", "2", *SMALL, interpreter=torch_python(), pause=0.02
    ) as job:
        got = capture(job, [Item.TORCH], Window(iterations=5), tmp_path)
        assert got.iterations is not None
        assert set(got.iterations["batches"][1:]) == {4}
        names = [e.get("name", "") for e in events(tmp_path, job)]
        assert sum(n == "Optimizer.zero_grad#AdamW.zero_grad" for n in names) == 10
        assert got.iterations["others"]["AdamW.step"] >= 4
        clean(job)


def test_the_window_is_cut_to_the_budget(tmp_path: Path) -> None:
    with Job("train.py", *SMALL, interpreter=torch_python(), pause=0.02) as job:
        got = capture(job, [Item.TORCH], Window(duration_ns=3_000_000_000), tmp_path, events=5000)
        part = got.parts[Item.TORCH]
        assert part.outcome is Outcome.PARTIAL
        assert re.search(r"\d+ of 3000 ms", part.why.en), part.why
        assert "3000 ms" in part.why.zh
        assert len(events(tmp_path, job)) < 3 * 5000
        assert got.torch is not None
        assert got.torch["profiler"]["budget"]["allowed"] <= 5000


def test_ten_in_a_row_leave_nothing(tmp_path: Path) -> None:
    with Job("train.py", *SMALL, interpreter=torch_python(), pause=0.02) as job:
        capture(job, [Item.TORCH], Window(iterations=3), tmp_path)
        clean(job)
        running, opened = len(threads(job)), descriptors(job)
        for _ in range(9):
            got = capture(job, [Item.TORCH], Window(iterations=3), tmp_path)
            assert got.state.phase == "done", got.state
        clean(job)
        assert len(threads(job)) == running
        assert descriptors(job) == opened


def test_without_a_profiler_of_all_threads(tmp_path: Path) -> None:
    """As with torch before 2.6: begun and ended by the loop's own thread."""
    with Job("train.py", *SMALL, interpreter=torch_python(), pause=0.02) as job:
        for window in (Window(iterations=5, skip=1), Window(duration_ns=200_000_000)):
            got = capture(job, [Item.TORCH], window, tmp_path, everywhere=False)
            assert got.state.phase == "done", got.state
            assert got.torch is not None
            assert got.torch["profiler"]["everywhere"] is False
            assert "aten::linear" in {e.get("name", "") for e in events(tmp_path, job)}
        clean(job)


USER = """
import os, sys, time
sys.path.insert(0, {jobs!r})
import torch
from torch.profiler import profile, schedule, ProfilerActivity
from counters import Counters, ready
torch.set_num_threads(1)
model = torch.nn.Sequential(*[torch.nn.Linear(64, 64) for _ in range(4)])
optimizer, counters, n, mode = torch.optim.SGD(model.parameters(), lr=.001), Counters(), 0, sys.argv[1]
def step():
    model(torch.randn(8, 64)).sum().backward(); optimizer.step(); optimizer.zero_grad()
if mode in ("active", "over"):
    p = profile(activities=[ProfilerActivity.CPU]); p.start()
if mode == "over":
    p.stop()
if mode == "warming":
    p = profile(activities=[ProfilerActivity.CPU], schedule=schedule(wait=1, warmup=1 << 30, active=2)); p.start(); p.step()
if mode == "waiting":
    p = profile(activities=[ProfilerActivity.CPU], schedule=schedule(wait=1 << 30, warmup=1, active=2)); p.start(); p.step()
go = os.environ["TMPDIR"] + "/go"
while True:
    step(); counters.tick(); n += 1
    if n == 5: ready()
    if mode == "starts" and os.path.exists(go):
        os.unlink(go)
        with profile(activities=[ProfilerActivity.CPU]) as p:
            for _ in range(3): step()
        print("own", len(p.events()) > 50, flush=True)
"""


def user(tmp_path: Path) -> str:
    path = tmp_path / "user.py"
    path.write_text(USER.format(jobs=str(ROOT / "tests/jobs")))
    return str(path)


@pytest.mark.parametrize(("mode", "code"), [("active", "profiler-active"), ("warming", "profiler-active"), ("waiting", ""), ("over", "")])  # fmt: skip
def test_the_jobs_own_profiler(mode: str, code: str, tmp_path: Path) -> None:
    with Job(user(tmp_path), mode, interpreter=torch_python(), pause=0.02) as job:
        got = capture(job, [Item.TORCH], Window(duration_ns=100_000_000), tmp_path)
        assert got.state.code == code, got.state
        job.advance(5)


@pytest.mark.parametrize("everywhere", [True, False])
def test_gives_way_when_the_job_begins_to_profile(tmp_path: Path, everywhere: bool) -> None:
    with Job(user(tmp_path), "starts", interpreter=torch_python(), pause=0.02) as job:
        one = guest(
            job, [Item.TORCH], Window(duration_ns=60_000_000_000), events=10**9, everywhere=everywhere, stall_ms=10**6
        )
        try:
            wait(one, lambda s: s.phase == "capturing")
            time.sleep(0.1)
            (job.folder / "go").touch()
            job.wait("own True")
            one.stop()
            state, _ = wait(one)
            assert state.code == "profiler-active", state
        finally:
            one.clean()
        clean(job)


KILLED = """
import sys, time
from probes.capture.inject import inject
from probes.capture.whom import identity
from probes.capture.guest.guest import Guest
from probes.capture.model import Item, Target, Window
pid, stand = int(sys.argv[1]), sys.argv[2]
target = Target(identity.read(pid))
start = time.monotonic_ns() + 1_500_000_000 if stand == "waiting" else None
one = Guest(target, [Item.TORCH], Window(duration_ns=400_000_000), start_at=start, linger=3.0)
one.prepare()
inject.run(target.process, one.code)
while True:
    phase = one.poll().phase
    if phase == stand or (phase and stand == "starting"):
        print("there", flush=True)
        time.sleep(3600)
    if one.poll().over:  # on a busy machine a phase can pass between two looks
        print("missed", flush=True)
        one.clean()
        break
    time.sleep(0.005)
"""
PHASES = ("starting", "pilot", "waiting", "capturing", "stopping", "writing")


def kill_our_side(job: Job, phase: str, start: Callable[..., Command]) -> None:
    """When the agent has reached this phase."""
    for _ in range(9):
        ours = start([str(job.pid), phase], program=KILLED)
        try:
            seen = ours.stdout.readline()
        finally:
            ours.kill()
            ours.communicate()
        if seen != "missed\n":
            break
    assert seen == "there\n", (phase, seen)


def test_our_side_is_killed_in_each_phase(command_server: CommandServer, clean_environment: dict[str, str]) -> None:
    """Agents whose other side is gone end by themselves, after the same time for all: so all wait together."""
    start = partial(command_server.start, env=clean_environment)
    with ExitStack() as stack:
        made = {p: Job("train.py", *SMALL, interpreter=torch_python(), pause=0.1) for p in PHASES}
        jobs = {p: stack.enter_context(job) for p, job in made.items()}
        for phase, job in jobs.items():
            kill_our_side(job, phase, start)
        until = time.monotonic() + 20 * BEAT
        for job in jobs.values():
            while folders(job) and time.monotonic() < until:
                time.sleep(0.1)
            clean(job)


def test_cancelled(tmp_path: Path) -> None:
    with Job("train.py", *SMALL, interpreter=torch_python(), pause=0.02) as job:
        for abandon in (False, True):
            one = guest(job, [Item.TORCH], Window(duration_ns=60_000_000_000), events=10**9, stall_ms=10**6)
            try:
                wait(one, lambda s: s.phase == "capturing")
                time.sleep(0.1)
                one.stop(abandon=abandon)
                state, _ = wait(one)
                assert (state.phase, state.code) == (("failed", "stopped") if abandon else ("done", ""))
                if not abandon:
                    parts, _, _ = one.collect(tmp_path)
                    assert parts[0].outcome is Outcome.PARTIAL
                    assert events(tmp_path, job)
            finally:
                one.clean()
            clean(job)


def test_ranks_begin_together(tmp_path: Path) -> None:
    with Ranks(pause=0.05) as ranks:
        for seconds in (2, 8, 30):  # ahead: where a guest says that it came too late, again with more
            start = time.monotonic_ns() + seconds * 1_000_000_000
            guests = [guest(j, [Item.TORCH], Window(duration_ns=300_000_000), start_at=start) for j in ranks.jobs]
            try:
                for one in guests:
                    assert wait(one)[0].phase == "done"
                found = [one.collect(tmp_path) for one in guests]
            finally:
                for one in guests:
                    one.clean()
            if all(
                torch and "late" not in torch["notes"] and i and i["began"] - start < TOGETHER for _, i, torch in found
            ):
                break
        for _, iterations, torch in found:
            assert iterations is not None
            assert torch is not None
            assert "late" not in torch["notes"]
            assert 0 <= iterations["began"] - start < TOGETHER


def test_through_the_injector(tmp_path: Path) -> None:
    with Job("train.py", *SMALL, interpreter=torch_python(), pause=0.02) as job:
        target = Target(identity.read(job.pid))
        one = Guest(target, [Item.TORCH], Window(iterations=3))
        one.prepare()
        try:
            inject.run(target.process, one.code)
            assert wait(one)[0].phase == "done"
            parts, _, _ = one.collect(tmp_path)
        finally:
            one.clean()
        assert parts[0].outcome is Outcome.OK
        clean(job)


def test_the_job_ends_within_the_window(tmp_path: Path) -> None:
    with Job("train.py", *SMALL, interpreter=torch_python(), pause=0.02) as job:
        one = guest(job, [Item.TORCH], Window(duration_ns=60_000_000_000), events=10**9, stall_ms=10**6)
        try:
            wait(one, lambda s: s.phase == "capturing")
            os.kill(job.pid, signal.SIGINT)
            state, _ = wait(one)
            assert state.over
        finally:
            one.clean()
        until = time.monotonic() + 60
        while job.alive:
            assert time.monotonic() < until
            time.sleep(0.05)
        assert job.status not in (-signal.SIGSEGV, -signal.SIGABRT), job.output
