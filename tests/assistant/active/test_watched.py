"""The collector of active tests as `gpudiag test` watches it: told line by line, broken off, ended with all it started."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import Any

import pytest

from assistant.active.watched import Watched
from knowledge.observation import Status
from probes.host import ReplayHost
from tests.active_lab import Lab

CALL = ("--test", "nvbandwidth", "--every", "0.1", "--", "nvbandwidth")


@pytest.fixture
def lab(tmp_path: Path) -> Lab:
    return Lab(tmp_path)


@pytest.mark.process
def test_lines_are_told_as_they_come_and_time_as_it_goes(lab: Lab) -> None:
    lab.prints("nvbandwidth", "nvbandwidth.two.txt", before="echo 'Running device_to_host_memcpy_ce.'; sleep 0.8")
    told: list[dict[str, Any]] = []
    reply = Watched(ReplayHost("n1"), told.append, threading.Event(), lab.environ).snapshot(
        "active", *CALL, deadline=30.0
    )
    assert (reply.status, reply.exit_code) == (Status.OK, 0)
    assert {"started": ["nvbandwidth"]} in told
    assert ["Running device_to_host_memcpy_ce."] in [said.get("lines") for said in told]
    assert {} in told


@pytest.mark.process
def test_broken_off_it_gives_what_there_is(lab: Lab) -> None:
    lab.prints("nvbandwidth", "nvbandwidth.two.txt", before=f"echo $$ > {lab.state}/pid; sleep 60")
    cancel = threading.Event()

    def told(said: dict[str, Any]) -> None:
        if "started" in said:
            cancel.set()

    reply = Watched(ReplayHost("n1"), told, cancel, lab.environ).snapshot("active", *CALL, deadline=60.0)
    assert reply.status is Status.OK
    assert '"outcome": "cancelled"' in reply.text
    pid = lab.state / "pid"
    assert not pid.exists() or not Path(f"/proc/{pid.read_text().strip()}").exists()


def test_other_collectors_and_files_are_those_of_the_machine() -> None:
    host = Watched(ReplayHost("n1", as_of=5), lambda _: None, threading.Event())
    assert (host.name, host.as_of) == ("n1", 5)
    assert host.snapshot("system", deadline=1.0).status is Status.NOT_ASKED
    assert host.read("/x").status is Status.NOT_ASKED
    assert host.files("/x*") == []
    before = time.time_ns()
    host.now()
    assert host.as_of is not None
    assert before <= host.as_of <= time.time_ns()


@pytest.mark.process
def test_a_collector_that_is_killed_is_a_failure_that_is_told(lab: Lab) -> None:
    lab.prints("nvbandwidth", "nvbandwidth.two.txt", before=f"echo $$ > {lab.state}/pid; kill -9 $PPID; sleep 60")
    reply = Watched(ReplayHost("n1"), lambda _: None, threading.Event(), lab.environ).snapshot(
        "active", *CALL, deadline=30.0
    )
    assert (reply.status, bool(reply.detail)) == (Status.FAILED, True)
    pid, end = (lab.state / "pid").read_text().strip(), time.monotonic() + 10
    while _lives(pid):  # the kernel does it: the test is bound to its collector
        assert time.monotonic() < end
        time.sleep(0.02)


def _lives(pid: str) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False
