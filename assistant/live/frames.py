"""GPUs and the processes on them at one moment, and the newest of many moments.

A frame is what a screen draws. A value that could not be had is absent from `Gpu.values` and has its reason in `Gpu.missing`;
a GPU that has fallen silent keeps its last good values, and `Gpu.at` tells how old they are.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import field
from typing import TYPE_CHECKING, TypeAlias

from knowledge.language import NO_TEXT, Text
from knowledge.record import dataclass

if TYPE_CHECKING:
    from knowledge.observation import Observation

SECOND = 10**9  # ns
LOST, SILENT = "lost", "silent"  # states of a GPU; "" is one that answers


@dataclass(frozen=True, slots=True)
class Metric:
    """One reading of a GPU."""

    key: str
    title: Text
    unit: str  # "%", "W", "°C", "MHz", "B", "B/s"; empty for counts
    fact: str  # its name in the vocabulary; the units may differ (see `assistant.live.facts`)
    limit: str = ""  # the metric that is its own limit


def _metrics(*rows: tuple[str, str, str, str, str, str]) -> Mapping[str, Metric]:
    return {key: Metric(key, Text(en, zh), unit, fact, limit) for key, en, zh, unit, fact, limit in rows}


METRICS: Mapping[str, Metric] = _metrics(
    ("utilization", "utilisation", "利用率", "%", "gpu.utilization.core", ""),
    ("sm_activity", "SM activity", "SM 活跃度", "%", "gpu.activity.sm", ""),
    ("tensor_activity", "tensor core activity", "Tensor Core 活跃度", "%", "gpu.activity.tensor", ""),
    ("memory_bandwidth", "memory bandwidth", "显存带宽", "%", "gpu.activity.dram", ""),
    ("memory_used", "memory", "显存", "B", "gpu.memory.used", "memory_total"),
    ("memory_total", "memory size", "显存总量", "B", "gpu.memory.total", ""),
    ("power", "power", "功耗", "W", "gpu.power.draw", "power_limit"),
    ("power_limit", "power limit", "功耗上限", "W", "gpu.power.limit", ""),
    ("temperature", "temperature", "温度", "°C", "gpu.temperature.core", "temperature_limit"),
    ("temperature_limit", "slowdown temperature", "降频温度", "°C", "gpu.temperature.slowdown", ""),
    ("memory_temperature", "memory temperature", "显存温度", "°C", "gpu.temperature.memory", ""),
    ("sm_clock", "SM clock", "SM 时钟", "MHz", "gpu.clock.sm", "sm_clock_max"),
    ("sm_clock_max", "highest SM clock", "SM 最高时钟", "MHz", "gpu.clock.sm.max", ""),
    ("memory_clock", "memory clock", "显存时钟", "MHz", "gpu.clock.memory", ""),
    ("pcie_tx", "PCIe sent", "PCIe 发送", "B/s", "gpu.pcie.tx", ""),
    ("pcie_rx", "PCIe received", "PCIe 接收", "B/s", "gpu.pcie.rx", ""),
    ("nvlink_tx", "NVLink sent", "NVLink 发送", "B/s", "gpu.nvlink.tx", ""),
    ("nvlink_rx", "NVLink received", "NVLink 接收", "B/s", "gpu.nvlink.rx", ""),
    ("pcie_width", "PCIe lanes", "PCIe 通道数", "", "gpu.pcie.width", "pcie_width_max"),
    ("pcie_width_max", "most PCIe lanes", "PCIe 最大通道数", "", "gpu.pcie.width.max", ""),
    ("pcie_generation", "PCIe generation", "PCIe 代", "", "gpu.pcie.gen", ""),
    ("ecc_uncorrected", "uncorrected ECC errors", "不可纠正 ECC 错误", "", "gpu.ecc.volatile.uncorrected.total", ""),
    ("ecc_corrected", "corrected ECC errors", "可纠正 ECC 错误", "", "gpu.ecc.volatile.corrected.total", ""),
    ("fan", "fan", "风扇", "%", "gpu.fan.speed", ""),
)


@dataclass(frozen=True, slots=True)
class Instance:
    """A MIG instance: a part of a GPU with SMs and memory of its own."""

    id: str  # of its GPU instance; with ``/2`` of the compute instance in it, where that is not 0
    index: int | None = None  # among the instances of the GPU
    profile: str = ""  # 3g.40gb
    uuid: str = ""
    memory_used: float | None = None  # B
    memory_total: float | None = None  # B


@dataclass(frozen=True, slots=True)
class Gpu:
    """One GPU at a moment."""

    pci: str  # canonical, 0000:3b:00.0
    index: int | None = None
    uuid: str = ""
    name: str = ""
    values: Mapping[str, float] = field(default_factory=dict)  # metric -> value in the metric's unit
    missing: Mapping[str, str] = field(default_factory=dict)  # metric -> why not, status first: "unsupported: ..."
    reasons: tuple[str, ...] = ()  # ids of `knowledge.catalog.clock_events` that hold the clocks down; idleness is none
    state: str = (
        ""  # LOST: the driver says it is gone; SILENT: it does not answer, and the values are the last good ones
    )
    at: int = 0  # ns UTC when it last answered with values; of one that never did, when it was first asked
    instances: tuple[Instance, ...] = ()  # of a GPU in MIG mode

    def value(self, metric: str) -> float | None:
        """The value; None without one."""
        return self.values.get(metric)

    @property
    def label(self) -> str:
        """``GPU 3``, as people call it; its address where its number is not known."""
        return f"GPU {self.index}" if self.index is not None else self.pci


Use: TypeAlias = tuple[int | None, float | None]  # of a GPU by a process: memory in B, share of the SMs in %


@dataclass(frozen=True, slots=True)
class Proc:
    """One process on GPUs."""

    pid: int
    name: str = ""
    command: str = ""
    user: str = ""
    gpus: Mapping[str, Use] = field(default_factory=dict)  # by PCI address
    pod: str = ""  # namespace/name
    job: str = ""  # of Slurm, or of torchrun
    rank: str = ""
    container: str = ""
    instances: Mapping[str, str] = field(default_factory=dict)  # MIG instances by PCI address of their GPU


@dataclass(frozen=True, slots=True)
class Frame:
    """A machine's GPUs at one moment."""

    at: int  # ns UTC
    host: str
    gpus: tuple[Gpu, ...] = ()
    processes: tuple[Proc, ...] = ()
    trouble: Text = NO_TEXT  # what keeps it from being the whole truth: a driver that hangs, or that there is none

    def gpu(self, pci: str) -> Gpu | None:
        """The GPU at that address."""
        return next((g for g in self.gpus if g.pci == pci), None)


class Book:
    """The newest frames, oldest first. Not for several threads at once. `assistant.live.track` keeps more of them in less room."""

    def __init__(self, capacity: int = 900) -> None:
        self._capacity = max(capacity, 1)
        self._frames: list[Frame] = []

    def append(self, frame: Frame) -> None:
        """One more. Those that are not older than it are let go: a clock was set back."""
        while self._frames and self._frames[-1].at >= frame.at:
            self._frames.pop()
        self._frames.append(frame)
        del self._frames[: -self._capacity]

    @property
    def latest(self) -> Frame | None:
        """The newest frame."""
        return self._frames[-1] if self._frames else None

    @property
    def frames(self) -> tuple[Frame, ...]:
        """All of them, oldest first."""
        return tuple(self._frames)

    def series(
        self, pci: str, metric: str, seconds: float = 300, until: int | None = None
    ) -> list[tuple[int, float | None]]:
        """Times and values of the last `seconds` up to `until` (the newest frame), oldest first; None where it was not told
        then: the last good values of a silent GPU are none."""
        last = until if until is not None else self._frames[-1].at if self._frames else 0
        since = last - round(seconds * SECOND)
        return [(f.at, told(f, pci, metric)) for f in self._frames if since <= f.at <= last]

    def last_good(self, pci: str, metric: str) -> tuple[int, float] | None:
        """When the metric was last told, and its value."""
        found = ((f.at, value) for f in reversed(self._frames) if (value := told(f, pci, metric)) is not None)
        return next(found, None)


def told(frame: Frame, pci: str, metric: str) -> float | None:
    """What the GPU told in this very frame; None for the last good values of one that is silent."""
    gpu = frame.gpu(pci)
    return gpu.values.get(metric) if gpu is not None and gpu.state != SILENT else None


def unresponsive(call: str, who: str, seconds: float) -> Text:
    """What is said of a driver in which a call hangs. `who`: ``GPU 3``; empty for the driver as a whole."""
    waited = f"{seconds:.0f}"
    return Text(
        f"driver unresponsive: {call}{who and f' of {who}'} has not returned for {waited} s",
        f"驱动无响应：{who and f'{who} 的 '}{call} 已 {waited} 秒未返回",
    )


def from_observations(observations: Iterable[Observation], host: str, at: int | None) -> Frame | None:
    """The node of a recording as one frame, units converted; None when nothing was told of any GPU."""
    from assistant.live.facts import frame_of

    return frame_of(observations, host, at)
