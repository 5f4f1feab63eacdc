"""Recordings of machines as frames, and frames as observations."""

from __future__ import annotations

from functools import cache

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assistant import machine
from assistant.commands.demo import FOLDER
from assistant.live.facts import REASONS, observations_of
from assistant.live.frames import LOST, SECOND, SILENT, Frame, Gpu, from_observations
from knowledge.catalog.clock_events import all_events
from knowledge.facts import vocabulary
from knowledge.observation import Observation, Status
from tests.assistant.live.live_lab import ADDRESSES, runs


@cache
def seen(demo: str) -> Frame:
    """The machine of a demo, as one frame."""
    _, look = machine.bundle(str(FOLDER / demo / "bundle"))
    frame = from_observations(look.observations, look.host, look.as_of)
    assert frame is not None
    return frame


def test_a_machine_as_its_probes_found_it() -> None:
    frame = seen("overheating")
    assert [g.index for g in frame.gpus] == list(range(8))
    hot = frame.gpus[1]
    assert hot.reasons == ("hw_slowdown", "hw_thermal_slowdown")
    # MiB become bytes, GB/s bytes a second; what is not there has its reason
    assert hot.values["memory_used"] == 40960 << 20
    assert hot.values["pcie_rx"] == 2.5e9
    assert (hot.values["temperature"], hot.values["temperature_limit"], hot.values["power"]) == (91, 89, 212)
    assert hot.missing["fan"] == "unsupported: NVML_ERROR_NOT_SUPPORTED: Not Supported"
    assert not hot.values.keys() & hot.missing.keys()
    rank = next(p for p in frame.processes if hot.pci in p.gpus)
    assert (rank.name, rank.user, rank.job, rank.rank) == ("python3", "root", "61240", "1")
    assert rank.gpus == {hot.pci: (39936 << 20, 85.0)}
    assert not frame.trouble


def test_a_gpu_that_is_lost_and_one_that_hangs() -> None:
    lost = seen("off-the-bus").gpus[5]
    assert (lost.state, dict(lost.values)) == (LOST, {})
    frame = seen("driver-hangs")
    assert frame.gpus[3].state == SILENT
    assert frame.trouble.en == "driver unresponsive: nvmlDeviceGetMemoryInfo_v2 of GPU 3 has not returned for 25 s"
    assert frame.trouble.zh == "驱动无响应：GPU 3 的 nvmlDeviceGetMemoryInfo_v2 已 25 秒未返回"
    assert frame.gpus[3].missing["memory_used"].startswith("timeout: ")


def test_nothing_of_gpus_is_no_frame_and_a_driver_that_does_not_load_is_one() -> None:
    assert from_observations([], "n1", 5) is None
    _, look = machine.bundle(str(FOLDER / "overheating" / "bundle"))
    rest = [o for o in look.observations if not o.fact.startswith(("gpu.", "node.driver."))]
    assert from_observations(rest, look.host, look.as_of) is None
    state = [o for o in look.observations if o.fact == "node.driver.state"]
    bad = Observation("node.driver.state", state[0].subject, "not_loaded")
    frame = from_observations([bad], look.host, 7)
    assert frame is not None
    assert (frame.at, frame.gpus, frame.trouble.en) == (7, (), "NVIDIA driver: not loaded")


@pytest.mark.parametrize("demo", ["overheating", "healthy", "mig", "off-the-bus", "half-width"])
def test_what_a_frame_tells_is_the_frame_again(demo: str) -> None:
    frame = seen(demo)
    again = from_observations(observations_of(frame), frame.host, frame.at)
    assert again is not None
    assert list(map(_told, again.gpus)) == list(map(_told, frame.gpus))


def _told(g: Gpu) -> object:
    return g.pci, g.index, g.uuid, g.reasons, g.state, {} if g.state else g.values, g.instances


def test_mig_instances_and_who_is_on_them() -> None:
    frame = seen("mig")
    first, second = frame.gpus[0].instances
    assert (first.id, first.index, first.profile, first.memory_used, first.memory_total) == (
        "1", 0, "3g.40gb", 20 << 30, 40 << 30,
    )  # fmt: skip
    assert second.uuid.startswith("MIG-")
    assert not any(g.instances for g in frame.gpus[1:])
    assert [p.pid for p in frame.processes if p.instances.get(frame.gpus[0].pci) == "1"] == [4200]


@given(runs())
def test_what_a_frame_tells_is_of_the_vocabulary(frames: list[Frame]) -> None:
    for frame in frames:
        for o in observations_of(frame):
            spec = vocabulary()[o.fact]
            assert o.subject.scope is spec.scope
            assert o.at == frame.at
            assert spec.accepts(o.value) if o.status is Status.OK else (o.value is None and o.status)


@given(st.integers(0, 100))
def test_a_driver_hangs_once_a_gpu_has_been_silent_for_long(seconds: int) -> None:
    at = 1000 * SECOND
    silent = Gpu(ADDRESSES[0], 0, state=SILENT, at=at - seconds * SECOND)
    told = {o.fact: o for o in observations_of(Frame(at, "n1", (silent,)))}
    assert ("node.driver.state" in told) == (seconds >= 2)
    assert "gpu.nvml.reachable" not in told
    assert told["gpu.power.draw"].status is Status.TIMEOUT


def test_every_reason_of_the_catalogue_but_idleness_has_its_fact() -> None:
    assert set(REASONS.values()) == {e.id for e in all_events()} - {"gpu_idle"}
    assert all(fact in vocabulary() for fact in REASONS)
