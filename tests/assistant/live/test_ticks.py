"""From the collector's lines to frames."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assistant.live.frames import LOST, METRICS, SECOND, SILENT, Proc
from assistant.live.ticks import Ticks, broke_off, no_driver, nothing_said, reasons

AT = 1_783_515_944 * SECOND
HEADER = {"schema": "gpudiag/gpu-stream/1", "host": "n1", "at": AT, "driver": "575.57.08", "count": 2}
PCI = "0000:3b:00.0"


def row(seconds: int = 0, **more: Any) -> dict[str, Any]:
    """What the collector prints of one GPU."""
    told = {
        "utilization": 87, "memory_used": 42949672960, "memory_total": 85899345920, "power_mw": 521250, "power_limit_mw": 700000,
        "temperature": 58, "temperature_slowdown": 89, "sm_clock": 1755, "sm_activity": 88.25, "pcie_tx_kbs": 1200000, "ecc_corrected": 0,
    }  # fmt: skip
    return {
        "index": 3, "pci": "00000000:3B:00.0", "uuid": "GPU-1", "name": "H100", "mig": False, "at": AT + seconds * SECOND, "v": told,
        "r": 0, "p": [[4200, 41875931136, 85]], "m": {"fan": {"status": "unsupported", "detail": "Not Supported"}}, **more,
    }  # fmt: skip


def line(*rows: dict[str, Any], seconds: int = 0) -> dict[str, Any]:
    """A look at all GPUs."""
    return {"at": AT + seconds * SECOND, "gpus": list(rows)}


def test_units_names_and_reasons() -> None:
    ticks = Ticks()
    assert ticks.frame(HEADER) is None
    frame = ticks.frame(line(row(r=0x48 | 0x1)))
    assert frame is not None
    (gpu,) = frame.gpus
    assert (frame.host, gpu.pci, gpu.label, gpu.state, gpu.at) == ("n1", PCI, "GPU 3", "", AT)
    assert gpu.values["power"] == 521.25
    assert gpu.values["memory_used"] == 40 << 30
    assert gpu.values["pcie_tx"] == 1.2e9
    assert gpu.values["temperature_limit"] == 89
    assert gpu.reasons == ("hw_slowdown", "hw_thermal_slowdown")
    assert gpu.missing["fan"] == "unsupported: Not Supported"
    assert gpu.missing["nvlink_tx"] == "not_asked: it was not told yet"
    assert gpu.values.keys() | gpu.missing.keys() == METRICS.keys()
    assert frame.processes == (Proc(4200, gpus={PCI: (41875931136, 85)}),)
    assert ticks.pids == {4200}


def test_what_is_known_of_a_process_goes_with_it() -> None:
    ticks = Ticks("n1")
    ticks.know({4200: Proc(4200, "python3", "python3 train.py", "alice", rank="3", job="61240")})
    frame = ticks.frame(line(row(), row(index=4, pci="0000:4c:00.0", p=[[4200, None, None], [7, 1024, 0]])))
    assert frame is not None
    assert frame.processes == (
        Proc(7, gpus={"0000:4c:00.0": (1024, 0)}),
        Proc(4200, "python3", "python3 train.py", "alice", {PCI: (41875931136, 85), "0000:4c:00.0": (None, None)}, job="61240",
             rank="3"),
    )  # fmt: skip


def test_a_gpu_that_hangs_keeps_its_last_good_values_and_their_age() -> None:
    ticks = Ticks("n1")
    good = ticks.frame(line(row()))
    brief = ticks.frame(line(row(now=["nvmlDeviceGetMemoryInfo", 2.0]), seconds=2))
    hung = ticks.frame(line(row(now=["nvmlDeviceGetMemoryInfo", 12.4]), seconds=12))
    assert good is not None
    assert brief is not None
    assert hung is not None
    assert (brief.gpus[0].state, brief.trouble.en) == ("", "")
    gpu = hung.gpus[0]
    assert (gpu.state, gpu.values, gpu.at, hung.at - gpu.at) == (SILENT, good.gpus[0].values, AT, 12 * SECOND)
    assert gpu.missing["fan"] == "timeout: nvmlDeviceGetMemoryInfo has not returned"
    assert hung.trouble.en == "driver unresponsive: nvmlDeviceGetMemoryInfo of GPU 3 has not returned for 12 s"
    assert hung.processes == good.processes
    again = ticks.frame(line(row(13), seconds=13))
    assert again is not None
    assert (again.gpus[0].state, again.gpus[0].at, again.trouble.en) == ("", AT + 13 * SECOND, "")


def test_one_that_hangs_in_its_first_call_has_no_value_and_never_answered() -> None:
    ticks = Ticks("n1")
    bare = {"index": 3, "now": ["nvmlDeviceGetHandleByIndex", 1.0]}
    waiting = ticks.frame(line(bare))
    rows = {**bare, "now": ["nvmlDeviceGetHandleByIndex", 5.0]}, {**bare, "index": 4, "now": ["x", 4.0]}
    hung = ticks.frame(line(*rows, seconds=4))
    assert waiting is not None
    assert hung is not None
    assert (waiting.gpus[0].pci, waiting.gpus[0].state, waiting.gpus[0].at) == ("index:3", "", AT)
    assert set(waiting.gpus[0].missing.values()) == {"not_asked: it has not answered yet"}
    assert [(g.state, g.at) for g in hung.gpus] == [(SILENT, AT), (SILENT, AT + 4 * SECOND)]
    assert hung.trouble.en.endswith("nvmlDeviceGetHandleByIndex has not returned for 5 s (2 GPUs do not answer)")


def test_a_lost_gpu_says_so() -> None:
    ticks = Ticks("n1")
    ticks.frame(line(row()))
    why = {"status": "failed", "detail": "NVML_ERROR_GPU_IS_LOST: GPU is lost"}
    frame = ticks.frame(
        line({"index": 3, "pci": PCI, "at": AT + SECOND, "state": "lost", "m": {"power_mw": why}}, seconds=1)
    )
    assert frame is not None
    gpu = frame.gpus[0]
    assert (gpu.state, gpu.values, gpu.reasons, gpu.at) == (LOST, {}, (), AT)
    assert gpu.missing["fan"] == "failed: NVML_ERROR_GPU_IS_LOST: GPU is lost"
    assert frame.processes == ()


def test_a_gpu_without_gpm_and_one_that_tells_only_its_margin() -> None:
    ticks = Ticks("n1")
    told = {"temperature": 61, "temperature_margin": 26, "slowdown_margin": -2, "margin_at": 60}
    why = {
        "gpm": {"status": "unsupported", "detail": "needs Hopper"},
        "memory_used": {"status": "denied", "detail": "no"},
    }
    frame = ticks.frame(line(row(v=told, m=why)))
    assert frame is not None
    gpu = frame.gpus[0]
    assert gpu.values["temperature_limit"] == 60 + 26 + 2
    assert gpu.missing["sm_activity"] == gpu.missing["tensor_activity"] == "unsupported: needs Hopper"
    assert gpu.missing["memory_total"] == "denied: no"


def test_no_driver_one_that_does_not_start_and_one_that_says_nothing() -> None:
    ticks = Ticks()
    gone = ticks.frame({**HEADER, "status": "unsupported", "detail": "NVML_ERROR_DRIVER_NOT_LOADED: Driver Not Loaded"})
    assert gone is not None
    assert (gone.gpus, gone.trouble.en) == ((), "no NVIDIA driver: NVML_ERROR_DRIVER_NOT_LOADED: Driver Not Loaded")
    assert no_driver("pynvml is not installed").zh == "无法读取 GPU：pynvml is not installed"
    assert ticks.frame({"at": AT, "now": ["nvmlInitWithFlags", 1.0]}) is None
    hung = ticks.frame({"at": AT, "now": ["nvmlInitWithFlags", 31.0]})
    assert hung is not None
    assert hung.trouble.en == "driver unresponsive: nvmlInitWithFlags has not returned for 31 s"
    ticks.frame(line(row()))
    silent = ticks.silent(AT + 9 * SECOND, nothing_said(9))
    assert [(g.state, g.at) for g in silent.gpus] == [(SILENT, AT)]
    assert silent.processes
    assert "9 秒" in silent.trouble.zh
    assert broke_off("was ended by signal 6", 4.0).en.endswith(
        "the collector was ended by signal 6; it is started again in 4 s"
    )


@given(st.integers(0, 0x1FF))
def test_idleness_is_no_reason(mask: int) -> None:
    assert reasons(mask) == reasons(mask | 1)
    assert len(reasons(mask)) == bin(mask & ~1).count("1")


@pytest.mark.parametrize(
    "broken", [{"at": AT, "gpus": [1]}, {"at": None, "gpus": []}, {"at": AT, "gpus": [{"v": {"power_mw": "x"}}]}]
)
def test_what_is_no_line_is_an_error_of_the_kinds_that_are_caught(broken: dict[str, Any]) -> None:
    with pytest.raises((ValueError, TypeError, KeyError, AttributeError)):
        Ticks().frame(broken)
