"""A collector that goes on, read line by line."""

from __future__ import annotations

import json
import os
import signal
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from probes._children import Stuck, start_time
from probes.follow import Ended, Follower
from probes.hang_memory import HangMemory
from probes.host import CallKind
from tests import nvml_lab

pytestmark = pytest.mark.process

WORDS = ("--stream", "--every", "0.1")


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the library is compiled, once."""
    return tmp_path_factory.mktemp("lab")


@pytest.fixture
def child(lab: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Follower]:
    """A collector of eight healthy GPUs."""
    monkeypatch.setenv("LD_LIBRARY_PATH", str(nvml_lab.folder(lab, "healthy8")))
    follower = Follower("gpu_samples", *WORDS)
    yield follower
    follower.close()


def read_to_the_end(follower: Follower) -> None:
    """Until it ends: Ended."""
    while True:
        follower.line(20)


def test_lines_come_one_by_one(child: Follower) -> None:
    lines = [child.line(20) for _ in range(4)]
    assert all(line is not None for line in lines)
    header, *looks = (json.loads(line or b"") for line in lines)
    assert header["schema"] == "gpudiag/gpu-stream/1"
    assert [len(look["gpus"]) for look in looks] == [8, 8, 8]


def test_nobody_waits_longer_than_he_wants(child: Follower) -> None:
    while child.line(20) is None:
        continue
    os.kill(child.pid, signal.SIGSTOP)
    try:
        while child.line(0.3) is not None:  # what it had printed by then
            continue
        assert child.line(0.0) is None
        threading.Timer(0.1, child.wake).start()
        assert child.line(3600) is None
    finally:
        os.kill(child.pid, signal.SIGCONT)


def test_one_that_ends_says_how(child: Follower) -> None:
    child.line(20)
    os.kill(child.pid, signal.SIGKILL)
    with pytest.raises(Ended, match="was ended by signal 9"):
        read_to_the_end(child)


def test_its_last_words_are_told() -> None:
    follower = Follower("gpu_samples", "--no-such-option")
    try:
        with pytest.raises(Ended, match=r"ended with 2: .*--no-such-option"):
            read_to_the_end(follower)
    finally:
        follower.close()


def test_closing_ends_it_even_when_it_stands_still(child: Follower) -> None:
    child.line(20)
    os.kill(child.pid, signal.SIGSTOP)
    assert child.close() == ""
    with pytest.raises(ProcessLookupError):
        os.kill(child.pid, 0)
    child.wake()  # nobody hears it, and no other file gets it


def test_none_is_started_beside_one_that_cannot_be_killed(tmp_path: Path) -> None:
    memory = HangMemory(tmp_path / "hangs.json", "boot-1")
    mine = Stuck(os.getpid(), start_time(os.getpid()), "state D in nvidia_ioctl")
    memory.end((CallKind.SNAPSHOT, ("gpu_samples", *WORDS)), "2026-07-08T13:05:44Z", mine)
    with pytest.raises(Ended, match="still hangs"):
        Follower("gpu_samples", *WORDS, memory=memory)


def test_there_is_no_collector_of_another_name() -> None:
    with pytest.raises(ValueError, match="no collector"):
        Follower("../nvml")
