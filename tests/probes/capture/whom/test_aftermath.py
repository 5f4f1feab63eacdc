"""Whether a target was left as it was found: real processes that were harmed on purpose, and laws of the comparison."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import threading
import time
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from probes.capture.model import Aftermath, Vital
from probes.capture.whom import aftermath, identity
from probes.capture.whom.aftermath import compare, cores, settle, vital
from tests.live_jobs import Job
from tests.probes.capture import real_processes as real

pytestmark = pytest.mark.process

CALM = Vital(at=10**9, state="S", tracer=0, threads=8, descriptors=20, cpu_ticks=100, switches=50, resident=1 << 30,
             thread_names=("python",) * 8)  # fmt: skip
LATER = replace(CALM, at=3 * 10**9, cpu_ticks=300)


def said(found: Aftermath) -> str:
    """All worries; each in both languages."""
    assert all(text.en and text.zh for text in (*found.worries, *found.left))
    return " ".join(text.en for text in found.worries)


# --- looks ------------------------------------------------------------------------------------------


def test_how_a_process_stands() -> None:
    with Job("threads.py", "150") as job:
        process = identity.read(job.pid)
        first = vital(process)
        until = time.monotonic() + 30
        while (second := vital(process)).switches == first.switches and time.monotonic() < until:
            job.advance(5)
        files = len(list(Path(f"/proc/{job.pid}/fd").iterdir()))
    assert (first.alive, first.tracer, first.threads, first.descriptors) == (True, 0, 151, files)
    assert len(first.thread_names) == 151
    assert first.resident > 1 << 20
    assert second.at > first.at
    assert second.cpu_ticks >= first.cpu_ticks
    assert second.switches > first.switches
    used = cores(first, second)
    assert used is not None
    seconds = (second.at - first.at) / 1e9
    assert 0 <= used <= (os.cpu_count() or 1) + 151 * 0.01 / seconds, "each thread's time is counted in ticks of 10 ms"
    assert compare(first, second).clean


def test_one_that_has_ended_and_one_with_its_pid() -> None:
    with real.sleeping() as pid:
        process = identity.read(pid)
        assert vital(process).alive
        assert not vital(replace(process, start=process.start + 1)).alive
    gone = vital(process)
    assert (gone.alive, gone.descriptors) == (False, -1)
    assert cores(CALM, gone) is None


def test_a_zombie_is_not_alive() -> None:
    with real.zombie() as pid:
        assert not vital(identity.read(pid)).alive


VITAL = """
import json, sys
from dataclasses import asdict
from probes.capture.whom import aftermath, identity
print(json.dumps(asdict(aftermath.vital(identity.read(int(sys.argv[1]))))))
"""


@pytest.mark.machine
def test_what_nobody_may_not_count_is_not_nought() -> None:
    with real.sleeping() as pid:
        found = real.as_nobody(VITAL, str(pid))
    assert (found["alive"], found["descriptors"], found["threads"]) == (True, -1, 1)


# --- real harm --------------------------------------------------------------------------------------


def test_nothing_happened() -> None:
    with real.sleeping() as pid:
        process = identity.read(pid)
        found = settle(process, vital(process))
    assert (found.clean, found.left, found.worries) == (True, (), ())


def test_one_that_was_killed() -> None:
    with real.sleeping() as pid:
        process = identity.read(pid)
        before = vital(process)
        os.kill(pid, signal.SIGKILL)
        real.in_state(pid, "Z", "")
        assert "dmesg" in said(settle(process, before))


def test_one_that_was_left_stopped() -> None:
    with real.sleeping() as pid:
        process = identity.read(pid)
        before = vital(process)
        os.kill(pid, signal.SIGSTOP)
        real.in_state(pid, "T")
        assert "kill -CONT" in said(settle(process, before, patience=0.2))


def test_a_stop_that_passes_is_no_worry() -> None:
    with real.sleeping() as pid:
        process = identity.read(pid)
        before = vital(process)
        os.kill(pid, signal.SIGSTOP)
        real.in_state(pid, "T")
        timer = threading.Timer(0.2, os.kill, (pid, signal.SIGCONT))
        timer.start()
        assert settle(process, before, patience=30).clean
        timer.join()


def test_one_that_was_stopped_before_is_no_worry() -> None:
    with real.sleeping() as pid:
        os.kill(pid, signal.SIGSTOP)
        real.in_state(pid, "T")
        process = identity.read(pid)
        assert settle(process, vital(process)).clean


def test_one_that_is_still_traced() -> None:
    path = shutil.which("strace")
    if path is None:
        pytest.skip("strace is not installed")
    with real.sleeping() as pid:
        process = identity.read(pid)
        before = vital(process)
        child = subprocess.Popen(
            [path, "-o", "/dev/null", "-p", str(pid)], stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL
        )
        try:
            real.until(lambda: vital(process).tracer == child.pid, "strace does not trace")
            assert f"process {child.pid} traces it" in said(settle(process, before, patience=0.2))
        finally:
            child.terminate()
            child.wait()
        assert settle(process, before, patience=30).clean


CHANGES = """
import mmap, os, signal, sys, threading, time
def change(*_):
    global kept
    kept = [open(sys.argv[1]) for _ in range(int(sys.argv[2]))]
    for _ in range(int(sys.argv[3])): threading.Thread(target=time.sleep, args=(120,), daemon=True).start()
    kept.append(bytearray(b"1") * (int(sys.argv[4]) << 20))
    os.write(1, b"done\\n")
signal.signal(signal.SIGUSR1, change)
print("ready", flush=True)
while True: time.sleep(120)
"""


def changed(folder: Path, files: int, threads: int, megabytes: int, **known: object) -> Aftermath:
    """What is said of a process that opened files, started threads and took memory meanwhile."""
    (folder / "guest-1234").touch()
    with real.started(
        [*real.PYTHON, "-c", CHANGES, str(folder / "guest-1234"), str(files), str(threads), str(megabytes)]
    ) as pid:
        process = identity.read(pid)
        before = vital(process)
        os.kill(pid, signal.SIGUSR1)
        real.until(lambda: vital(process).threads == before.threads + threads and vital(process).descriptors == before.descriptors + files
                   and vital(process).resident >= before.resident + (megabytes << 20), "nothing changed")  # fmt: skip
        return settle(process, before, patience=0.1, **known)  # type: ignore[arg-type]


def test_a_few_of_everything_is_told_and_no_worry(tmp_path: Path) -> None:
    found = changed(tmp_path, 2, 2, 64)
    assert found.clean
    told = " ".join(text.en for text in found.left)
    assert "2 threads more" in told
    assert "2 descriptors more" in told
    assert "MiB more memory" in told


def test_many_of_them_are(tmp_path: Path) -> None:
    worry = said(changed(tmp_path, 40, 20, 0))
    assert "20 threads more" in worry
    assert "40 descriptors more" in worry
    assert "ls -l /proc/PID/fd" in worry


def test_one_thread_of_the_profiler_is_known(tmp_path: Path) -> None:
    found = changed(tmp_path, 0, 1, 0, injected=True)
    assert found.clean
    assert "kineto" in found.left[0].en


def test_what_is_ours_is_a_worry_however_little(tmp_path: Path) -> None:
    found = changed(tmp_path, 1, 0, 0, marks=[str(tmp_path / "guest-")])
    assert "descriptor" in said(found)
    assert str(tmp_path / "guest-1234") in said(found)


def test_one_that_stopped_working() -> None:
    code = "import signal, time\nsignal.signal(signal.SIGUSR1, lambda *_: time.sleep(120))\nprint('ready', flush=True)\nwhile True: pass"
    with real.started([*real.PYTHON, "-c", code]) as pid:
        process = identity.read(pid)
        earlier = vital(process)
        time.sleep(0.6)
        before = vital(process)
        os.kill(pid, signal.SIGUSR1)
        real.in_state(pid, "S")
        found = settle(process, before, earlier=earlier)
        rate = cores(earlier, before)
    if rate is not None and rate > aftermath.BUSY:  # else others hold the machine
        assert "cores" in said(found)


# --- laws ---------------------------------------------------------------------------------------------

VITALS = st.builds(
    Vital, at=st.integers(0, 1 << 50), state=st.sampled_from("RSDTtZ"), tracer=st.integers(0, 99), threads=st.integers(1, 300),
    descriptors=st.integers(-1, 500), cpu_ticks=st.integers(0, 10**6), switches=st.integers(0, 10**6), resident=st.integers(0, 1 << 40),
    alive=st.booleans(), thread_names=st.lists(st.sampled_from(["python", "pt_autograd_0", "x"]), max_size=5).map(tuple),
)  # fmt: skip


@given(VITALS)
def test_what_did_not_change_is_no_worry(same: Vital) -> None:
    assert compare(same, same).clean


@given(VITALS, VITALS, st.booleans())
def test_every_pair_gets_an_answer_in_both_languages(before: Vital, after: Vital, injected: bool) -> None:
    found = compare(before, after, injected=injected)
    said(found)
    if before.alive and not after.alive:
        assert not found.clean
    if before.alive and after.alive and after.state in "Tt" and before.state not in "Tt":
        assert not found.clean


@given(VITALS.filter(lambda v: v.alive), st.integers(0, 100), st.integers(0, 100))
def test_more_left_behind_is_never_less_worry(before: Vital, few: int, more: int) -> None:
    few, more = sorted((few, more))
    worry = [len(compare(before, replace(before, threads=before.threads + n)).worries) for n in (few, more)]
    assert worry[0] <= worry[1]
    worry = [len(compare(before, replace(before, descriptors=before.descriptors + n)).worries) for n in (few, more)]
    assert worry[0] <= worry[1]


@pytest.mark.parametrize(
    ("old", "new", "worries"), [(10, 11, 0), (10, 20, 1), (20, 10, 0), (0.1, 0.9, 0), (None, 50, 0), (50, None, 0)]
)
def test_iterations_before_and_after(old: float | None, new: float | None, worries: int) -> None:
    ns = [None if v is None else int(v * 1e6) for v in (old, new)]
    found = compare(CALM, LATER, iteration_before_ns=ns[0], iteration_after_ns=ns[1], longest_ns=7)
    assert len(found.worries) == worries
    assert (found.iteration_before_ns, found.iteration_after_ns, found.longest_ns) == (*ns, 7)


@pytest.mark.parametrize(
    ("old", "new", "worries"), [(1.0, 0.9, 0), (1.0, 0.2, 1), (0.1, 0.0, 0), (None, 0.0, 0), (1.0, None, 0)]
)
def test_the_rate_before_and_after(old: float | None, new: float | None, worries: int) -> None:
    assert len(compare(CALM, LATER, rates=(old, new)).worries) == worries
    assert compare(CALM, LATER, rates=(old, new), iteration_before_ns=5, iteration_after_ns=5).clean


def test_cores_of_two_looks() -> None:
    ticks = os.sysconf("SC_CLK_TCK")
    assert cores(CALM, replace(CALM, at=CALM.at + 10**9, cpu_ticks=CALM.cpu_ticks + 2 * ticks)) == pytest.approx(2.0)
    assert cores(CALM, CALM) is None
    assert cores(None, CALM) is None
