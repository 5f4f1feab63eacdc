"""The two probes that capture from a job: nobody named, a real process from outside, one that is gone, a bundle of it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from knowledge.observation import Observation, Scope, Status
from probes.capture.model import SCHEMA
from probes.host import CallKind, RecordingHost, ReplayHost, Reply
from probes.live import Cost, ProbeRequest, ProbeSpec, job_stacks, job_trace
from probes.live_host import LiveHost

BUSY = """
import time
def spin_for_ever():
    while True:
        sum(range(200000))
        time.sleep(0.005)
print("ready", flush=True)
spin_for_ever()
"""


@pytest.fixture
def busy(tmp_path: Path) -> Iterator[int]:
    """A process that computes."""
    script = tmp_path / "busy.py"
    script.write_text(BUSY)
    child = subprocess.Popen([sys.executable, str(script)], stdout=subprocess.PIPE)
    try:
        assert child.stdout is not None
        assert child.stdout.readline() == b"ready\n"
        yield child.pid
    finally:
        child.kill()
        child.wait()
        assert child.stdout is not None
        child.stdout.close()


def asked(pids: str, deadline: float = 25.0) -> ProbeRequest:
    """A request about processes."""
    return ProbeRequest(deadline, {"pids": pids})


def of(found: list[Observation], fact: str) -> list[Observation]:
    """The observations of a fact."""
    return [o for o in found if o.fact == fact]


@pytest.mark.parametrize("probe", [job_stacks.PROBE, job_trace.PROBE], ids=lambda p: p.name)
def test_nobody_named_is_nothing_asked(probe: ProbeSpec) -> None:
    found = probe.collect(ProbeRequest(5.0), ReplayHost("gpu-12"))
    assert {o.status for o in found} == {Status.NOT_ASKED}
    assert {o.fact for o in found} == set(probe.main)
    assert not probe.default
    assert probe.wants <= probe.takes
    assert probe.side_effects
    assert set(probe.main) <= set(probe.provides)


def test_what_runs_in_the_job_is_dearer() -> None:
    assert job_stacks.PROBE.cost is Cost.SECONDS
    assert job_trace.PROBE.cost is Cost.HEAVY


@pytest.mark.process
def test_a_busy_process_is_seen_from_outside_and_again_from_the_recording(busy: int) -> None:
    with LiveHost() as live:
        host = RecordingHost(live)
        found = job_stacks.PROBE.collect(asked(str(busy)), host)
        (hot,) = of(found, "stack.hot.function")
        assert hot.status is Status.OK, hot.detail
        assert "spin_for_ever" in str(hot.value)
        assert hot.subject.scope is Scope.PROCESS
        assert hot.subject.id == str(busy)
        again = job_stacks.PROBE.collect(asked(str(busy)), ReplayHost(host.name, host.replies, host.as_of))
    assert again == found
    assert Path(f"/proc/{busy}").exists()


@pytest.mark.process
def test_a_process_that_is_gone_is_a_reason(busy: int) -> None:
    os.kill(busy, 9)
    time.sleep(0.2)
    with LiveHost() as live:
        found = job_stacks.PROBE.collect(asked("999999999"), live)
    assert found
    assert all(o.status is not Status.OK for o in found)
    assert all("999999999" in o.detail for o in found)


@pytest.mark.parametrize(
    "data",
    [b"", b"{", b"[]", json.dumps({"schema": SCHEMA, "targets": []}).encode()],
    ids=["none", "cut", "list", "empty"],
)
def test_what_is_no_capture_is_a_reason(data: bytes) -> None:
    reply = Reply(CallKind.SNAPSHOT, ("capture", "--pid", "42"), data=data)
    found = job_stacks.PROBE.collect(asked("42"), ReplayHost("gpu-12", [reply]))
    assert {o.fact for o in found} == set(job_stacks.MAIN)
    assert all(o.status is Status.FAILED and o.detail for o in found)
