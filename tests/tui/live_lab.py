"""A recording over time: a shipped bundle, with readings of its eight GPUs for ten minutes, one a second."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path

from assistant.live.frames import LOST, SILENT, Frame, Gpu, Proc
from assistant.live.recording import NAME, Recorder
from knowledge.language import Text
from tests.tui.lab import DEMOS, thinned

SECOND = 10**9
END = 1783515944 * SECOND  # 2026-07-08T13:05:44Z: when the bundle was read
GIB = 1 << 30
SLOTS = tuple(f"0000:{slot}:00.0" for slot in ("1a", "3b", "4c", "5d", "9a", "ba", "ca", "da"))


def frames(seconds: int = 600, end: int = END, every: int = 1) -> Iterator[Frame]:
    """GPU 2 grows too hot after half of the time, is held down, meets an ECC error, and cools."""
    for second in range(0, seconds, every):
        at = end - (seconds - second) * SECOND
        gpus = tuple(_gpu(i, pci, second / seconds, second, at) for i, pci in enumerate(SLOTS))
        processes = tuple(
            Proc(
                41000 + i,
                "python",
                f"python -u train.py --rank {i}",
                "alice",
                {pci: (61 * GIB, 90.0)},
                "ml/llama-7b-0",
                "61240",
                str(i),
            )
            for i, pci in enumerate(SLOTS)
        )
        yield Frame(at, "elm-h100-030", gpus, processes)


def _gpu(i: int, pci: str, share: float, second: int, at: int) -> Gpu:
    hot = i == 2 and 0.5 < share < 0.85
    wave = math.sin(second / 23 + i)
    values = {
        "utilization": 94 + 4 * wave - 30 * hot, "sm_activity": 63 + 8 * wave, "tensor_activity": 41 + 6 * wave,
        "memory_bandwidth": 52 + 5 * wave, "memory_used": (61 + wave) * GIB, "memory_total": 80 * GIB,
        "power": 640 + 45 * wave - 260 * hot, "power_limit": 700, "temperature": 66 + 4 * wave + (24 if hot else 0),
        "temperature_limit": 87, "sm_clock": 1980 - 1100 * hot, "sm_clock_max": 1980, "memory_clock": 2619,
        "pcie_rx": 2.1e9 + 1e9 * wave, "pcie_tx": 1.2e9, "nvlink_rx": 190e9 + 40e9 * wave, "nvlink_tx": 188e9,
        "pcie_width": 16, "pcie_width_max": 16, "pcie_generation": 5, "ecc_uncorrected": float(i == 2 and share > 0.6),
        "ecc_corrected": 0, "memory_temperature": 78 + 3 * wave,
    }  # fmt: skip
    missing = {"fan": "unsupported: this board has no fan of its own"}
    return Gpu(
        pci, i, f"GPU-{i}", "NVIDIA H100 80GB HBM3", values, missing, ("hw_thermal_slowdown",) if hot else (), "", at
    )


def in_trouble(frame: Frame, seconds: int) -> Frame:
    """The same machine with a driver that has not answered for `seconds`: the last good values stay."""
    gpus = tuple(
        Gpu(g.pci, g.index, g.uuid, g.name, g.values, g.missing, g.reasons, SILENT, frame.at) for g in frame.gpus
    )
    said = f"driver unresponsive: nvmlDeviceGetMemoryInfo of GPU 3 has not returned for {seconds} s"
    return Frame(frame.at + seconds * SECOND, frame.host, gpus, frame.processes, Text(said, said))


def lost(frame: Frame, number: int) -> Frame:
    """The same machine without one of its GPUs."""
    gpus = tuple(
        Gpu(g.pci, g.index, g.uuid, g.name, {}, dict.fromkeys(g.values, "failed: GPU is lost"), (), LOST, 0)
        if g.index == number
        else g
        for g in frame.gpus
    )
    return Frame(frame.at + SECOND, frame.host, gpus, frame.processes)


def recording(folder: Path, seconds: int = 600, every: int = 1) -> str:
    """A bundle with these readings; its path."""
    target = thinned(DEMOS / "overheating" / "bundle", folder / "bundle", (0, 2))
    recorder = Recorder()
    for frame in frames(seconds, every=every):
        recorder.add(frame)
    (target / NAME).write_bytes(recorder.data())
    return str(target)
