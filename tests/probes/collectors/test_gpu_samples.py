"""The collector `gpu_samples` as a child process: the real pynvml against machines of the GPU lab."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from tests import nvml_lab as lab
from tests.probes.capture.real_processes import catches
from tests.probes.collectors.collecting import FOLDER

pytestmark = pytest.mark.process

ADDRESSES = [f"0000:{bus:02x}:00.0" for bus in (0x1A, 0x3B, 0x4C, 0x5D, 0x9A, 0xBA, 0xCA, 0xDA)]
ARGV = [sys.executable, "-I", "-B", str(FOLDER / "gpu_samples.py")]


@pytest.fixture(scope="module")
def tmp(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the library is compiled, once."""
    return tmp_path_factory.mktemp("lab")


def looked(tmp: Path, scenario: str, *more: str, deadline: float = 20.0) -> dict[str, Any]:
    """The collector's document on a machine of the lab."""
    argv = [*ARGV, "--deadline", str(deadline), *(more or ("--seconds", "0.6"))]
    done = subprocess.run(
        argv, env=lab.environment(lab.folder(tmp, scenario)), capture_output=True, timeout=deadline + 60, check=False
    )
    assert (done.returncode, done.stderr) == (0, b"")
    found = json.loads(done.stdout)
    assert isinstance(found, dict)
    for device in found["devices"].values():
        for name, series in device["series"].items():
            assert isinstance(series, dict) or len(series) == len(found["at"]), name
            if isinstance(series, dict):
                assert series["status"] in ("unsupported", "denied", "failed"), name
                assert series["detail"], name
    return found


def values(found: dict[str, Any], gpu: int, name: str) -> list[float]:
    """What was read of a series."""
    series = found["devices"][ADDRESSES[gpu]]["series"][name]
    assert isinstance(series, list), series
    return [v for v in series if v is not None]


def test_eight_gpus_over_a_window(tmp: Path) -> None:
    found = looked(tmp, "healthy8", "--seconds", "1.0", "--hz", "20")
    assert list(found["devices"]) == ADDRESSES
    assert found["at"] == sorted(found["at"])
    assert found["clocks"][0]["monotonic"] <= found["at"][-1]
    for gpu in range(8):
        assert set(values(found, gpu, "utilization")) == {87}
        assert set(values(found, gpu, "sm_activity")) == {88.25}
        assert set(values(found, gpu, "tensor_activity")) == {62.125}
        assert set(values(found, gpu, "memory_bandwidth")) == {35.5}
        assert set(values(found, gpu, "sm_clock")) == {1755}
        assert set(values(found, gpu, "reasons")) == {0}
        assert set(values(found, gpu, "nvlink_tx")) == {20480 * 1048576}
        assert values(found, gpu, "power_limit_mw")[0] == 700_000
        assert values(found, gpu, "sm_clock_max")[0] == 1980
        device = found["devices"][ADDRESSES[gpu]]
        assert device["uuid"].startswith("GPU-")
        assert device["memory"][str(4200 + gpu)]["last"] > 1 << 30
        assert device["counters_ns"]["sw_thermal"]
        assert len(device["buffers"]["power_mw"]) >= 1
    assert found["hung"] == []


def test_without_gpm_pcie_and_nvlink_are_counted_otherwise(tmp: Path) -> None:
    found = looked(tmp, "no_gpm", "--seconds", "1.3")
    series = found["devices"][ADDRESSES[0]]["series"]
    for name in ("sm_activity", "tensor_activity", "memory_bandwidth"):
        assert series[name]["status"] == "unsupported"
        assert "Hopper" in series[name]["detail"]
    assert values(found, 0, "pcie_tx_kbs")[0] == 1_200_000
    for value in values(found, 0, "nvlink_tx"):
        assert value == pytest.approx(2 << 30, rel=0.05)


@pytest.mark.parametrize(
    ("scenario", "status", "word"),
    [
        ("gpm_off", "unsupported", "GPM"),
        ("restricted", "denied", "PERMISSION"),
        ("unsupported", "unsupported", "Hopper"),
    ],
)
def test_why_there_is_no_gpm(tmp: Path, scenario: str, status: str, word: str) -> None:
    series = looked(tmp, scenario)["devices"][ADDRESSES[0]]["series"]
    assert series["sm_activity"]["status"] == status
    assert word in series["sm_activity"]["detail"]
    assert isinstance(series["utilization"], list)


def test_mig_has_no_utilization_of_the_whole(tmp: Path) -> None:
    device = looked(tmp, "mig")["devices"][ADDRESSES[0]]
    assert device["mig"]
    assert device["series"]["utilization"]["status"] == "unsupported"
    assert "MIG" in device["series"]["sm_activity"]["detail"]
    assert isinstance(device["series"]["power_mw"], list)


def test_a_neighbour_on_the_gpu(tmp: Path) -> None:
    found = looked(tmp, "neighbour", "--seconds", "1.2")
    device = found["devices"][ADDRESSES[3]]
    use = {row[1]: row[2] for row in device["processes"]}
    assert use == {4203: 55, 7777: 40}
    begun, ended = found["clocks"][0]["monotonic"] - 10**9, found["clocks"][1]["monotonic"]
    assert all(begun <= row[0] <= ended for row in device["processes"])
    assert device["memory"]["7777"]["last"] == 8 << 30


def test_a_clock_that_swings(tmp: Path) -> None:
    found = looked(tmp, "swinging", "--seconds", "1.0", "--hz", "50")
    assert set(values(found, 0, "sm_clock")) == {900, 1755}
    assert set(values(found, 1, "sm_clock")) == {1755}


@pytest.mark.parametrize(
    ("scenario", "call"), [("hung_gpm", "nvmlGpmSampleGet"), ("hung_call", "nvmlDeviceGetMemoryInfo")]
)
def test_one_gpu_that_hangs_does_not_cost_the_others(tmp: Path, scenario: str, call: str) -> None:
    for seconds in ("0.6", "3", "9"):  # on a busy machine a look takes long
        found = looked(tmp, scenario, "--seconds", seconds)
        if len(values(found, 0, "utilization")) > 5:
            break
    assert [(h["device"], h["call"]) for h in found["hung"]] == [(3, call)]
    assert len(values(found, 0, "utilization")) > 5
    assert call in found["devices"][ADDRESSES[3]]["stopped"]


def test_a_driver_that_hangs_altogether(tmp: Path) -> None:
    found = looked(tmp, "hung_init", deadline=2.0)
    assert found["status"] == "failed"
    assert found["hung"][0]["call"] == "nvmlInitWithFlags"
    found = looked(tmp, "hung_all", deadline=2.0)
    assert len(found["hung"]) == 8


@pytest.mark.parametrize(
    ("scenario", "status"),
    [("driver_not_loaded", "unsupported"), ("no_permission", "denied"), ("library_mismatch", "failed")],
)
def test_no_driver_to_ask(tmp: Path, scenario: str, status: str) -> None:
    found = looked(tmp, scenario)
    assert found["status"] == status
    assert found["detail"].startswith("NVML_ERROR")
    assert found["devices"] == {}


def test_a_lost_gpu_and_a_dead_sensor(tmp: Path) -> None:
    found = looked(tmp, "lost")
    assert "lost" in found["devices"][ADDRESSES[5]]["stopped"]
    assert found["devices"][ADDRESSES[5]]["series"]["utilization"]["status"] == "failed"
    found = looked(tmp, "all_ones")
    assert "all ones" in found["devices"][ADDRESSES[2]]["series"]["power_mw"]["detail"]


def test_no_devices(tmp: Path) -> None:
    found = looked(tmp, "no_devices")
    assert found["devices"] == {}
    assert found["at"] == []


def test_sigterm_ends_it_early(tmp: Path) -> None:
    argv = [*ARGV, "--deadline", "300", "--seconds", "300"]
    with subprocess.Popen(argv, env=lab.environment(lab.folder(tmp, "healthy8")), stdout=subprocess.PIPE) as child:
        try:
            catches(child.pid, signal.SIGTERM)
            time.sleep(0.5)
            child.send_signal(signal.SIGTERM)
            out, _ = child.communicate(timeout=30)
        finally:
            child.kill()
    assert child.returncode == 0
    assert json.loads(out)["devices"]


def test_where_there_is_no_library(tmp_path: Path) -> None:
    env = {k: v for k, v in os.environ.items() if k != "LD_LIBRARY_PATH"}
    done = subprocess.run(
        [*ARGV, "--root", str(tmp_path), "--seconds", "0.2"], env=env, capture_output=True, timeout=30, check=True
    )
    found = json.loads(done.stdout)
    assert found["devices"] or found["status"] == "unsupported"


# --- as a stream --------------------------------------------------------------------------


def streaming(tmp: Path, scenario: str, every: str = "0.1") -> subprocess.Popen[bytes]:
    """The collector that goes on, on a machine of the lab."""
    argv = [*ARGV, "--stream", "--every", every]
    return subprocess.Popen(argv, env=lab.environment(lab.folder(tmp, scenario)), stdout=subprocess.PIPE)


def lines(child: subprocess.Popen[bytes], many: int) -> list[dict[str, Any]]:
    """The next lines of it."""
    assert child.stdout is not None
    return [json.loads(child.stdout.readline()) for _ in range(many)]


def test_a_stream_is_a_header_and_a_look_at_all_gpus_again_and_again(tmp: Path) -> None:
    with streaming(tmp, "throttled") as child:
        header, *looks = lines(child, 12)
        assert (header["schema"], header["driver"], header["count"]) == ("gpudiag/gpu-stream/1", "575.57.08", 8)
        assert all(a["at"] < b["at"] for a, b in pairwise(looks))
        last = looks[-1]["gpus"]
        assert [g["pci"] for g in last] == ADDRESSES
        hot = last[1]
        assert hot["r"] & 0x48 == 0x48
        assert {"temperature", "temperature_slowdown", "power_mw", "sm_activity", "memory_total", "pcie_width"} <= hot[
            "v"
        ].keys()
        assert hot["p"] == [[4201, 41875931136, None]]
        assert hot["m"] == {"fan": {"status": "unsupported", "detail": "NVML_ERROR_NOT_SUPPORTED: Not Supported"}}
        child.terminate()
        assert child.wait(60) == 0


def test_a_stream_that_nobody_reads_ends(tmp: Path) -> None:
    child = streaming(tmp, "healthy8")
    lines(child, 2)
    assert child.stdout is not None
    child.stdout.close()
    assert child.wait(60) == 0


def test_a_stream_goes_on_beside_a_call_that_hangs(tmp: Path) -> None:
    with streaming(tmp, "hung_call") as child:
        look = lines(child, 12)[-1]
        call, seconds = look["gpus"][3]["now"]
        assert call == "nvmlDeviceGetMemoryInfo"
        assert seconds > 0.5
        assert all("v" in g for g in look["gpus"] if g["index"] != 3)
        child.terminate()
        assert child.wait(60) == 0


def test_a_stream_of_a_driver_that_does_not_start(tmp: Path) -> None:
    with streaming(tmp, "hung_init") as child:
        looks = lines(child, 3)
        assert [look["now"][0] for look in looks] == ["nvmlInitWithFlags"] * 3
        assert looks[-1]["now"][1] > looks[0]["now"][1]
        child.terminate()
        assert child.wait(60) == 0
    with streaming(tmp, "driver_not_loaded") as child:
        (header,) = lines(child, 1)
        assert header["detail"].startswith("NVML_ERROR_DRIVER_NOT_LOADED")
        assert child.wait(60) == 0


@pytest.mark.parametrize("scenario", ["lost", "lost_handle"])
def test_a_stream_with_a_lost_gpu(tmp: Path, scenario: str) -> None:
    with streaming(tmp, scenario) as child:
        look = lines(child, 6)[-1]["gpus"]
        why = look[5]["m"]
        assert any("GPU_IS_LOST" in reason["detail"] for reason in why.values())
        assert look[5]["state"] == "lost"
        assert "v" in look[4]
        child.terminate()


def test_a_share_of_a_process_stands_until_the_next_is_told(tmp: Path) -> None:
    with streaming(tmp, "neighbour") as child:
        told = [look["gpus"][3]["p"] for look in lines(child, 10)[1:]]
        assert [[pid, share] for pid, _, share in told[-1]] == [[4203, 55], [7777, 40]]
        child.terminate()
