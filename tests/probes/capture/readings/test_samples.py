"""The samplers together: started, ended early, with a driver that hangs, and with nothing to look at."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from probes.capture.readings.samples import GPUS, THREADS, Recording
from probes.live_host import LiveHost
from tests import nvml_lab as lab
from tests.probes.capture import loads
from tests.probes.collectors.test_gpu_samples import ADDRESSES

pytestmark = pytest.mark.process


@pytest.fixture(scope="module")
def tmp(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the library is compiled, once."""
    return tmp_path_factory.mktemp("lab")


def test_threads_and_gpus_in_one_time_base(tmp: Path) -> None:
    env = lab.environment(lab.folder(tmp, "healthy8"))
    with loads.python(loads.SLEEP) as pid, LiveHost(environ=env) as host:
        begun = time.monotonic_ns()
        recording = Recording(host, [pid], longest=60)
        recording.start()
        assert recording.ready(60)
        time.sleep(0.5)
        found = recording.stop()
        ended = time.monotonic_ns()
    assert found.threads["schema"] == THREADS
    assert found.gpus["schema"] == GPUS
    for document in (found.threads, found.gpus):
        assert begun <= document["at"][0] <= document["at"][-1] <= ended
    assert found.threads["rows"][str(pid)]
    assert ADDRESSES[0] in found.gpus["devices"]


def test_ended_as_soon_as_begun() -> None:
    with LiveHost() as host:
        recording = Recording(host, [os.getpid()], gpus=False)
        recording.start()
        found = recording.stop()
    assert found.threads["rows"]
    assert found.gpus["status"] == "unsupported"


def test_ended_without_being_begun() -> None:
    with LiveHost() as host:
        found = Recording(host, [os.getpid()]).stop()
    assert found.threads["status"] == found.gpus["status"] == "failed"


def test_a_driver_that_hangs_costs_its_own_values(tmp: Path) -> None:
    with LiveHost(environ=lab.environment(lab.folder(tmp, "hung_init"))) as host:
        recording = Recording(host, [os.getpid()], longest=60)
        recording.start()
        assert not recording.ready(1.0)
        found = recording.stop()
    assert found.threads["rows"]
    assert found.gpus["status"] == "failed"
    assert "nvmlInit" in found.gpus["detail"]


def test_a_library_that_ends_the_process(tmp: Path) -> None:
    with (
        LiveHost(environ=lab.environment(lab.folder(tmp, "crash"))) as host,
        Recording(host, [os.getpid()]) as recording,
    ):
        assert recording.ready(60)
        found = recording.stop()
    assert found.gpus["status"] == "failed"
    assert "signal" in found.gpus["detail"]


def test_the_samplers_end_by_themselves() -> None:
    with LiveHost() as host:
        recording = Recording(host, [os.getpid()], gpus=False, longest=0.5)
        recording.start()
        time.sleep(1.5)
        found = recording.stop()
    assert found.threads["at"][-1] - found.threads["at"][0] < 10**9
