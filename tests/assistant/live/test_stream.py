"""GPUs of this machine, frame by frame: the real collector against machines of the GPU lab."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path

import pytest

from assistant.config import Settings, load
from assistant.live.frames import LOST, SILENT, Frame
from assistant.live.gather import gathered
from assistant.live.recording import frames_of
from assistant.live.stream import Stream
from probes._children import Stuck, start_time
from probes.hang_memory import HangMemory
from probes.host import CallKind
from probes.live_host import boot_id
from tests import nvml_lab
from tests.conftest import Gpudiag
from tests.probes.collectors.process_tree import Tree

pytestmark = pytest.mark.process


PATIENCE = 30.0  # seconds: the machine may be busy with other work
Opened = Callable[..., tuple[Stream, list[Frame]]]


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the library is compiled, once."""
    return tmp_path_factory.mktemp("lab")


@pytest.fixture
def opened(lab: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Opened]:
    """``opened(scenario)`` is a stream that runs, and its frames as they come."""
    streams: list[Stream] = []

    def open_(scenario: str, every: float = 0.1, root: Path | None = None) -> tuple[Stream, list[Frame]]:
        monkeypatch.setenv("LD_LIBRARY_PATH", str(nvml_lab.folder(lab, scenario)))
        frames: list[Frame] = []
        streams.append(Stream(settings(tmp_path, root), frames.append, every=every))
        streams[-1].start()
        return streams[-1], frames

    yield open_
    for stream in streams:
        stream.close()
        assert stream.join(PATIENCE)
        assert not stream.running


def settings(tmp_path: Path, root: Path | None = None) -> Settings:
    """Nobody's settings, but for where things lie."""
    environ = {"GPUDIAG_STATE_DIR": str(tmp_path / "state"), "GPUDIAG_HOST_NAME": "n1"}
    return load(environ=environ | ({"GPUDIAG_HOST_ROOT": str(root)} if root else {}), files=())


def until(frames: list[Frame], wanted: Callable[[Frame], object]) -> Frame:
    """The first frame that is `wanted`."""
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        if found := next((f for f in list(frames) if wanted(f)), None):
            return found
        time.sleep(0.02)
    raise AssertionError(f"no such frame among {len(frames)}: {[f.trouble.en for f in frames[-3:]]}")


def test_gpus_that_are_slowed_down(opened: Opened) -> None:
    _, frames = opened("throttled")
    frame = until(frames, lambda f: len(f.gpus) == 8 and all("sm_activity" in g.values for g in f.gpus))
    assert frame.host == "n1"
    assert not frame.trouble
    hot, brake = frame.gpus[1], frame.gpus[6]
    assert "hw_thermal_slowdown" in hot.reasons
    assert "hw_power_brake_slowdown" in brake.reasons
    assert hot.values["temperature"] > hot.values["temperature_limit"] == 89
    assert hot.values["nvlink_tx"] > 1e9
    assert abs(frame.at - time.time_ns()) < 60e9
    assert all(g.at <= frame.at for g in frame.gpus)
    assert {p.pid for p in frame.processes} == set(range(4200, 4208))


def test_a_call_that_hangs_costs_one_gpu_only(opened: Opened) -> None:
    _, frames = opened("hung_call")
    frame = until(frames, lambda f: f.trouble)
    assert [g.state for g in frame.gpus].count(SILENT) == 1
    assert frame.gpus[3].state == SILENT
    assert "nvmlDeviceGetMemoryInfo of GPU 3" in frame.trouble.en
    assert frame.gpus[4].values["power"] > 0


@pytest.mark.parametrize("scenario", ["mig", "mig_user"])
def test_mig_instances_with_their_memory_and_processes(opened: Opened, scenario: str) -> None:
    _, frames = opened(scenario)
    frame = until(frames, lambda f: len(f.gpus) == 8 and f.gpus[0].instances and f.gpus[0].instances[0].memory_used)
    whole = frame.gpus[0]
    assert [(i.id, i.index, i.profile) for i in whole.instances] == [("1", 0, "3g.40gb"), ("9", 2, "1g.10gb")]
    assert [i.memory_total for i in whole.instances] == [40 << 30, 10 << 30]
    assert len({i.uuid for i in whole.instances}) == 2
    assert not frame.gpus[1].instances
    on = until(frames, lambda f: any(p.instances for p in f.processes))
    assert [(p.pid, dict(p.instances)) for p in on.processes if p.instances] == [(4200, {whole.pci: "1"})]


def test_a_lost_gpu(opened: Opened) -> None:
    _, frames = opened("lost")
    frame = until(frames, lambda f: len(f.gpus) == 8 and f.gpus[5].state)
    assert frame.gpus[5].state == LOST
    assert "NVML_ERROR_GPU_IS_LOST" in frame.gpus[5].missing["power"]


def test_no_driver_is_one_frame_and_no_other_for_a_while(opened: Opened) -> None:
    _, frames = opened("driver_not_loaded")
    frame = until(frames, lambda f: f.trouble)
    assert frame.trouble.en.startswith("no NVIDIA driver: NVML_ERROR_DRIVER_NOT_LOADED")
    time.sleep(0.5)
    assert len(frames) == 1


def test_a_collector_that_dies_is_started_again(opened: Opened) -> None:
    _, frames = opened("crash")
    until(frames, lambda f: "is started again in 1 s" in f.trouble.en)
    until(frames, lambda f: "is started again in 2 s" in f.trouble.en)
    assert "was ended by signal 6" in frames[0].trouble.en


def test_none_is_started_beside_one_that_hangs_in_the_driver(opened: Opened, tmp_path: Path) -> None:
    stuck = Stuck(os.getpid(), start_time(os.getpid()), "state D in nvidia_ioctl")
    call = (CallKind.SNAPSHOT, ("gpu_samples", "--stream", "--every", "0.1"))
    HangMemory(tmp_path / "state" / "hangs.json", boot_id()).end(call, "2026-07-08T13:05:44Z", stuck)
    _, frames = opened("healthy8")
    frame = until(frames, lambda f: f.trouble)
    assert frame.trouble.en.startswith(f"driver unresponsive: process {os.getpid()} of an earlier run still hangs")


def test_one_that_is_killed_leaves_its_last_good_values(opened: Opened) -> None:
    stream, frames = opened("healthy8")
    until(frames, lambda f: f.gpus and f.gpus[7].values)
    os.kill(_pid(stream), signal.SIGKILL)
    broken = until(frames, lambda f: f.trouble)
    assert "was ended by signal 9" in broken.trouble.en
    assert [g.state for g in broken.gpus] == [SILENT] * 8
    assert broken.gpus[0].values["power"] == 521.25
    assert 0 < broken.gpus[0].at <= broken.at
    until(frames, lambda f: f.at > broken.at and not f.trouble)


def test_one_that_stops_saying_anything(opened: Opened) -> None:
    stream, frames = opened("healthy8")
    until(frames, lambda f: f.gpus and f.gpus[0].values)
    pid = _pid(stream)
    os.kill(pid, signal.SIGSTOP)
    try:
        silent = until(frames, lambda f: f.trouble)
        assert silent.trouble.en.startswith("driver unresponsive: no reading of the GPUs for")
        assert {g.state for g in silent.gpus} == {SILENT}
        later = until(frames, lambda f: f.at > silent.at)
        assert later.gpus[0].at == silent.gpus[0].at
    finally:
        os.kill(pid, signal.SIGCONT)
    until(frames, lambda f: f.at > silent.at and not f.trouble)


def _pid(stream: Stream) -> int:
    child = stream._child
    assert child is not None
    return child.pid


def test_closing_ends_the_child_and_starting_begins_anew(opened: Opened) -> None:
    stream, frames = opened("healthy8", every=5.0)
    until(frames, lambda f: f.gpus)
    child = stream._child
    assert child is not None
    stream.close()
    assert stream.join(PATIENCE)
    with pytest.raises(ProcessLookupError):
        os.kill(child.pid, 0)
    last = frames[-1]
    stream.start()
    until(frames, lambda f: f.at > last.at and f.gpus)


def test_who_the_processes_are(opened: Opened, tmp_path: Path) -> None:
    tree = Tree(tmp_path / "root")
    container = "4c2f" * 16
    pod = "0a6f1c2e-7c1b-4b0e-9f42-0c5f0e1f2a3b"
    tree.process(
        4201, "python3", argv=["python3", "train.py", "--api-key", "hunter2"], opens=["/dev/nvidia1", "/dev/nvidia-uvm"],
        cgroup=f"0::/kubepods.slice/kubepods-pod{pod.replace('-', '_')}.slice/cri-containerd-{container}.scope",
        env={"RANK": "1", "LOCAL_RANK": "1", "WORLD_SIZE": "2", "LOCAL_WORLD_SIZE": "2", "MASTER_ADDR": "n1", "MASTER_PORT": "29500"},
    )  # fmt: skip
    _, frames = opened("healthy8", root=tree.root)
    frame = until(frames, lambda f: any(p.name for p in f.processes))
    known = next(p for p in frame.processes if p.pid == 4201)
    assert (known.name, known.container, known.rank) == ("python3", container[:12], "1")
    assert known.user
    assert "train.py" in known.command
    assert "hunter2" not in known.command
    assert pod in known.pod
    assert known.gpus[frame.gpus[1].pci][0] == 41875931136
    assert not next(p for p in frame.processes if p.pid == 4202).name


def test_frames_over_a_time(lab: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LD_LIBRARY_PATH", str(nvml_lab.folder(lab, "healthy8")))
    told: list[float] = []
    frames = gathered(settings(tmp_path), 1.0, every=0.2, told=told.append)
    assert len(frames) >= 2
    assert all(a.at < b.at for a, b in pairwise(frames))
    assert told
    monkeypatch.setenv("LD_LIBRARY_PATH", str(nvml_lab.folder(lab, "no_devices")))
    (only,) = gathered(settings(tmp_path), 60.0)
    assert only.trouble.en == "the NVIDIA driver knows of no GPU"


def test_a_bundle_with_the_readings_of_a_while(
    lab: Path, tmp_path: Path, gpudiag: Gpudiag, clean_environment: dict[str, str]
) -> None:
    env = clean_environment | {"LD_LIBRARY_PATH": str(nvml_lab.folder(lab, "throttled"))}
    for name, more in (("plain.tar.gz", ()), ("hidden", ("--redact",))):
        path = str(tmp_path / name)
        words = ("collect", "-o", path, "--for", "1s", "--every", "200ms", "--probe", "nvml", *more)
        answer = gpudiag(*words, env=env)
        assert answer.code == 0, answer.err
        assert "the GPUs over" in answer.err
        frames = frames_of(path)
        assert len(frames) >= 2
        assert "hw_thermal_slowdown" in frames[-1].gpus[1].reasons
        assert frames[0].gpus[1].uuid.startswith("GPU-5e1f0000") != bool(more)
    wrong = gpudiag("collect", "-o", "x", "--for", "3 weeks", env=env)
    assert wrong.code == 2
    assert "60s, 5m" in wrong.err
