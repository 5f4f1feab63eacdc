"""GPUs over a window through NVML, some times a second: what each call returned, raw.

Run as ``python -I -B gpu_samples.py --deadline SECONDS [--hz 20] [--seconds 2 | --until-mono NS] [--root DIR]``; needs
pynvml (nvidia-ml-py). Prints one JSON document of schema ``gpudiag/gpu-samples/1`` at the end of the window, before its
deadline, or on SIGTERM.

`at` is a grid of times (CLOCK_MONOTONIC ns); each series of a device has one value per time, null where it was not asked:
limits once a second, GPM ten times a second, PCIe (20 ms a call) once a second and only without GPM. `read` says when a
device was really asked. A series that cannot be had is ``{"status": "unsupported|denied|failed", "detail": ...}``.
Of processes only pid, memory and share are read. GPM needs Hopper or newer.

``--stream [--every SECONDS]`` prints one JSON document a line instead, without an end: a header of schema
``gpudiag/gpu-stream/1``, then a look at all GPUs every second; `now` names the call that a device is in, and for how long.
`i` holds a row for each MIG instance (index, ids of GPU and compute instance, UUID, name, memory used and in all in B); a
process has the ids of its instances behind memory and share.
It leaves when nobody reads its output, on SIGTERM, and when there is no driver: then the header has the reason.

A sick driver hangs. Every device is asked in a thread of its own; at the end what is there is printed, `hung` names the
call in which a thread waits, and the process leaves without joining it.
"""

# pathlib would cost this short-lived process its import; zip() takes no `strict` in Python 3.9
# ruff: noqa: PTH110, PTH123, B905
from __future__ import annotations

import argparse
import contextlib
import json
import os
import select
import signal
import sys
import threading
import time
from typing import Any, NoReturn

SCHEMA, STREAM = "gpudiag/gpu-samples/1", "gpudiag/gpu-stream/1"
MARGIN = 0.4  # seconds kept of the deadline for the last look and for printing
LEAVE = 0.3  # seconds that the last look may take: the ring buffers of the driver are read then
BUDGET, STREAM_BUDGET = 0.03, 0.01  # of a core, for all devices
GPM_EVERY, PROCESSES_EVERY, SLOW_EVERY = 0.1, 0.5, 1.0  # seconds
MAX_TICKS = 30_000  # ten minutes at 50 Hz
MAX_ROWS = 4000  # process samples of one device, values of one ring buffer
HOPPER, UNKNOWN_ARCH = 9, 0xFFFFFFFF  # NVML_DEVICE_ARCH_HOPPER: the first with GPM
NO_USE = (
    2,
    3,
    4,
    13,
    25,
)  # INVALID_ARGUMENT, NOT_SUPPORTED, NO_PERMISSION, FUNCTION_NOT_FOUND, ARGUMENT_VERSION_MISMATCH: stays so
NOT_FOUND, LOST = 6, 15
NO_DRIVER = (9, 12)  # DRIVER_NOT_LOADED, LIBRARY_NOT_FOUND: there is nothing to ask
ALL_ONES = 0xFFFFFFFF
NO_INSTANCE = 0xFFFFFFFF  # NVML_DEVICE_MIG has no such instance: the process is not in one
MAX_INSTANCES = 64  # of one GPU: seven today
UNITS = {
    "utilization": "percent", "memory_utilization": "percent", "sm_activity": "percent", "sm_occupancy": "percent",
    "tensor_activity": "percent", "memory_bandwidth": "percent", "graphics_activity": "percent", "fp64_activity": "percent",
    "fp32_activity": "percent", "fp16_activity": "percent", "power_mw": "mW", "power_instant_mw": "mW", "power_limit_mw": "mW",
    "sm_clock": "MHz", "sm_clock_max": "MHz", "memory_clock": "MHz", "memory_clock_max": "MHz", "temperature": "C",
    "reasons": "bit mask", "pcie_tx_kbs": "kB/s", "pcie_rx_kbs": "kB/s", "nvlink_tx": "B/s", "nvlink_rx": "B/s",
    "memory_used": "B", "memory_total": "B",
}  # fmt: skip
# metric -> series, factor
GPM = {
    "GRAPHICS_UTIL": ("graphics_activity", 1.0), "SM_UTIL": ("sm_activity", 1.0), "SM_OCCUPANCY": ("sm_occupancy", 1.0),
    "ANY_TENSOR_UTIL": ("tensor_activity", 1.0), "DRAM_BW_UTIL": ("memory_bandwidth", 1.0), "FP64_UTIL": ("fp64_activity", 1.0),
    "FP32_UTIL": ("fp32_activity", 1.0), "FP16_UTIL": ("fp16_activity", 1.0), "PCIE_TX_PER_SEC": ("pcie_tx_kbs", 1048.576),
    "PCIE_RX_PER_SEC": ("pcie_rx_kbs", 1048.576), "NVLINK_TOTAL_RX_PER_SEC": ("nvlink_rx", 1048576.0),
    "NVLINK_TOTAL_TX_PER_SEC": ("nvlink_tx", 1048576.0),
}  # fmt: skip
# The driver's counters of time, ns: field values behind NVML_FI_DEV_
COUNTERS = {
    "sw_power_cap": "PERF_POLICY_POWER", "sync_boost": "PERF_POLICY_SYNC_BOOST",
    "sw_thermal": "CLOCKS_EVENT_REASON_SW_THERM_SLOWDOWN", "hw_thermal": "CLOCKS_EVENT_REASON_HW_THERM_SLOWDOWN",
    "hw_power_brake": "CLOCKS_EVENT_REASON_HW_POWER_BRAKE_SLOWDOWN",
}  # fmt: skip
BUFFERS = {"power_mw": "NVML_TOTAL_POWER_SAMPLES", "utilization": "NVML_GPU_UTILIZATION_SAMPLES",
           "sm_clock": "NVML_PROCESSOR_CLK_SAMPLES", "memory_clock": "NVML_MEMORY_CLK_SAMPLES"}  # fmt: skip
# Where libnvidia-ml.so.1 lies when the loader does not know it, as in nvml.py.
LIBRARIES = (
    "/run/nvidia/driver/usr/lib/x86_64-linux-gnu", "/run/nvidia/driver/usr/lib/aarch64-linux-gnu",
    "/run/nvidia/driver/usr/lib64", "/usr/local/nvidia/lib64", "/home/kubernetes/bin/nvidia/lib64",
    "/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/lib64", "/usr/lib/wsl/lib",
    "/run/opengl-driver/lib",
)  # fmt: skip


class Lost(Exception):
    """The GPU is lost: there is no use in asking it more."""


def clocks() -> dict[str, int]:
    """The clocks at one moment; `error` ns is half of what the tightest of some tries took."""
    best: dict[str, int] = {}
    for _ in range(5):
        before = time.monotonic_ns()
        real, boot = time.time_ns(), time.clock_gettime_ns(time.CLOCK_BOOTTIME)
        after = time.monotonic_ns()
        if not best or (after - before) // 2 < best["error"]:
            best = {
                "realtime": real,
                "monotonic": (before + after) // 2,
                "boottime": boot,
                "error": (after - before) // 2,
            }
    return best


NAMES: dict[int, str] = {}


def failure(nvml: Any, number: int) -> dict[str, Any]:
    """An NVML error as the reason for a missing series."""
    if not NAMES:
        NAMES.update({getattr(nvml, n): n for n in dir(nvml) if n.startswith("NVML_ERROR_")})
    words = nvml.NVMLError._errcode_to_string.get(number, "")
    name = NAMES.get(number, "NVML_ERROR_" + str(number))
    status = "denied" if number == 4 else "unsupported" if number in NO_USE + NO_DRIVER else "failed"
    return {"status": status, "detail": name + ": " + words if words else name}


def text(value: Any) -> str:
    """What pynvml returned for a name."""
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)


class Device:
    """One GPU, asked in a thread of its own."""

    def __init__(self, nvml: Any, index: int, grid: Grid) -> None:
        self.nvml, self.index, self.grid = nvml, index, grid
        self.now: tuple[str, float] | None = None  # the call that is being made and when it began
        self.values: dict[str, dict[int, float]] = {}  # series -> tick -> value
        self.why: dict[str, dict[str, Any]] = {}
        self.given_up: set[str] = set()
        self.read: list[list[int]] = []  # tick, when
        self.processes: list[list[int]] = []
        self.memory: dict[str, dict[str, Any]] = {}
        self.counters: dict[str, list[list[int]]] = {}
        self.buffers: dict[str, Any] = {}
        self.about: dict[str, Any] = {"index": index}
        self.problem: dict[str, Any] = {}
        self.done = False
        self.links: dict[str, tuple[int, int]] = {}
        self.since = int((time.time() - 0.05) * 1e6)
        self.begun_us = self.since
        self.cost = 0.0

    def run(self, stop: threading.Event) -> None:
        """Until `stop`. Whatever breaks is said in the document."""
        try:
            self._everything(stop)
        except Lost as lost:
            self.problem["stopped"] = "the GPU is lost: " + str(lost)
        except Exception as error:  # noqa: BLE001 - a fault of ours must not lose the other devices
            self.problem["stopped"] = type(error).__name__ + ": " + str(error)[:200]
        self.now = None
        self.done = True

    def ask(self, series: str, name: str, *args: Any, function: Any = None) -> Any:
        """What a call of pynvml returns; None, with the reason kept, where it does not. What cannot be had is not asked again."""
        if series in self.given_up:
            return None
        self.now = (name, time.monotonic())
        try:
            return (function or getattr(self.nvml, name))(*args)
        except self.nvml.NVMLError as error:
            self.why[series] = failure(self.nvml, error.value)
            if error.value in NO_USE:
                self.given_up.add(series)
            if error.value == LOST:
                raise Lost(name) from None
        except Exception as error:  # noqa: BLE001 - an older pynvml: one call, not the rest
            self.why[series] = {"status": "failed", "detail": type(error).__name__ + ": " + str(error)[:200]}
            self.given_up.add(series)
        return None

    def keep(self, tick: int, series: str, value: Any) -> None:
        """A value of a series; all ones of 32 bits are what a dead sensor says."""
        if value is None:
            return
        if value == ALL_ONES and series != "memory_used":
            self.why[series] = {"status": "failed", "detail": "it reads all ones"}
            return
        self.values.setdefault(series, {})[tick] = value

    def opened(self) -> Any:
        """The handle, when there is one; what names the device is asked on the way."""
        device = self.ask("device", "nvmlDeviceGetHandleByIndex", self.index)
        if device is None:
            self.problem.update(self.why.get("device", {}))
            return None
        pci = self.ask("pci", "nvmlDeviceGetPciInfo", device)
        if pci is not None:
            self.about["pci"] = f"{pci.domain:04x}:{pci.bus:02x}:{pci.device:02x}.0"
        for key, name in (("uuid", "nvmlDeviceGetUUID"), ("name", "nvmlDeviceGetName")):
            got = self.ask(key, name, device)
            self.about[key] = text(got) if got is not None else ""
        mig = self.ask("mig", "nvmlDeviceGetMigMode", device)
        self.about["mig"] = bool(mig and mig[0] == 1)
        return device

    def _everything(self, stop: threading.Event) -> None:
        n = self.nvml
        device = self.opened()
        if device is None:
            return
        gpm = Gpm(self, device)
        gpm.open()
        self._slow(device, 0, gpm)
        due = {"gpm": 0.0, "processes": 0.0, "slow": time.monotonic() + SLOW_EVERY}
        while not stop.is_set():
            tick = self.grid.tick()
            if tick >= MAX_TICKS:
                break
            cpu = time.thread_time()
            self._fast(device, tick)
            now = time.monotonic()
            if now >= due["gpm"]:
                due["gpm"] = now + GPM_EVERY * 0.95
                gpm.sample(tick)
                self._instant(device, tick)
            if now >= due["processes"]:
                due["processes"] = now + PROCESSES_EVERY
                self._processes(device)
                if not gpm.works:
                    self._nvlink(device, tick)
            if now >= due["slow"]:
                due["slow"] = now + SLOW_EVERY
                self._slow(device, tick, gpm)
            self.cost = 0.9 * self.cost + 0.1 * (time.thread_time() - cpu)
            self.now = None
            stop.wait(self.grid.rest(tick, self.cost))
        self._last(n, device)
        gpm.close()

    def _fast(self, device: Any, tick: int) -> None:
        self.read.append([tick, time.monotonic_ns()])
        got = self.ask("utilization", "nvmlDeviceGetUtilizationRates", device)
        if got is not None:
            self.keep(tick, "utilization", got.gpu)
            self.keep(tick, "memory_utilization", got.memory)
        got = self._memory(device)
        if got is not None:
            self.keep(tick, "memory_used", got.used)
            self.about["memory_total"] = got.total
        self.keep(tick, "power_mw", self.ask("power_mw", "nvmlDeviceGetPowerUsage", device))
        self.keep(tick, "sm_clock", self.ask("sm_clock", "nvmlDeviceGetClockInfo", device, 1))
        self.keep(tick, "memory_clock", self.ask("memory_clock", "nvmlDeviceGetClockInfo", device, 2))
        self.keep(tick, "temperature", self.ask("temperature", "nvmlDeviceGetTemperature", device, 0))
        self.keep(tick, "reasons", self.ask("reasons", "nvmlDeviceGetCurrentClocksEventReasons", device))

    def _memory(self, device: Any) -> Any:
        """Version 2 tells what is used from what the driver keeps for itself; older drivers have version 1."""
        kind = getattr(self.nvml, "nvmlMemory_v2", None)
        got = self.ask("memory.v2", "nvmlDeviceGetMemoryInfo", device, kind) if kind is not None else None
        return got if got is not None else self.ask("memory_used", "nvmlDeviceGetMemoryInfo", device)

    def _slow(self, device: Any, tick: int, gpm: Gpm) -> None:
        self.keep(tick, "power_limit_mw", self.ask("power_limit_mw", "nvmlDeviceGetEnforcedPowerLimit", device))
        self.keep(tick, "sm_clock_max", self.ask("sm_clock_max", "nvmlDeviceGetMaxClockInfo", device, 1))
        self.keep(tick, "memory_clock_max", self.ask("memory_clock_max", "nvmlDeviceGetMaxClockInfo", device, 2))
        self._counters(device)
        self._running(device)
        if not gpm.works:  # each of the two samples for 20 ms
            self.keep(tick, "pcie_tx_kbs", self.ask("pcie_tx_kbs", "nvmlDeviceGetPcieThroughput", device, 0))
            self.keep(tick, "pcie_rx_kbs", self.ask("pcie_rx_kbs", "nvmlDeviceGetPcieThroughput", device, 1))

    def fields(self, device: Any, series: str, wanted: list[tuple[str, int]]) -> list[Any]:
        """Field values by name and scope, in one call; None for each that there is not."""
        n = self.nvml
        numbers = [(getattr(n, "NVML_FI_DEV_" + name, None), scope) for name, scope in wanted]
        known = [pair for pair in numbers if pair[0] is not None]
        got = self.ask(series, "nvmlDeviceGetFieldValues", device, known) if known else None
        if got is None:
            return [None] * len(wanted)
        values = dict(zip(known, got))
        out: list[Any] = []
        for pair in numbers:
            one = values.get(pair)
            if one is None or one.nvmlReturn:
                if one is not None:
                    self.why.setdefault(series, failure(n, one.nvmlReturn))
                out.append(None)
                continue
            kinds = ("dVal", "uiVal", "ulVal", "ullVal", "sllVal", "siVal", "usVal")
            out.append(getattr(one.value, kinds[one.valueType]) if one.valueType < len(kinds) else None)
        return out

    def _instant(self, device: Any, tick: int) -> None:
        self.keep(tick, "power_instant_mw", self.fields(device, "power_instant_mw", [("POWER_INSTANT", 0)])[0])

    def _counters(self, device: Any) -> None:
        at = time.monotonic_ns()
        values = self.fields(device, "counters", [(name, 0) for name in COUNTERS.values()])
        for name, value in zip(COUNTERS, values):
            if value is not None and len(self.counters.setdefault(name, [])) < MAX_ROWS:
                self.counters[name].append([at, value])

    def _nvlink(self, device: Any, tick: int) -> None:
        wanted = (("nvlink_tx", "NVLINK_THROUGHPUT_DATA_TX"), ("nvlink_rx", "NVLINK_THROUGHPUT_DATA_RX"))
        now = time.monotonic_ns()
        for series, name in wanted:
            value = self.fields(device, series, [(name, ALL_ONES)])[0]  # all links together, KiB
            if value is None:
                self.given_up.add(series)
                continue
            before = self.links.get(series)
            self.links[series] = (now, value)
            if before and value >= before[1] and now > before[0]:
                self.keep(tick, series, round((value - before[1]) * 1024 * 1e9 / (now - before[0])))

    def _processes(self, device: Any) -> None:
        if "processes" in self.given_up:
            return
        self.now = ("nvmlDeviceGetProcessUtilization", time.monotonic())
        try:
            got = self.nvml.nvmlDeviceGetProcessUtilization(device, self.since)
        except self.nvml.NVMLError as error:
            if error.value == NOT_FOUND:  # nobody has used it since
                self.why.pop("processes", None)
                self.about["processes_asked"] = True
                return
            self.why["processes"] = failure(self.nvml, error.value)
            if error.value in NO_USE:
                self.given_up.add("processes")
            return
        self.about["processes_asked"] = True
        for one in got:
            if one.timeStamp > self.since and len(self.processes) < MAX_ROWS:
                self.processes.append([one.timeStamp, one.pid, one.smUtil, one.memUtil, one.encUtil, one.decUtil])
        self.since = max([self.since, *(one.timeStamp for one in got)])

    def _running(self, device: Any) -> None:
        got = self.ask("running", "nvmlDeviceGetComputeRunningProcesses", device)
        more = self.ask("graphics", "nvmlDeviceGetGraphicsRunningProcesses", device)
        for one in [*(got or ()), *(more or ())][:512]:
            entry = self.memory.setdefault(str(one.pid), {"first": one.usedGpuMemory, "most": one.usedGpuMemory})
            entry["last"] = one.usedGpuMemory
            if one.usedGpuMemory is not None:
                entry["most"] = max(entry["most"] or 0, one.usedGpuMemory)

    def _last(self, n: Any, device: Any) -> None:
        self._processes(device)
        self._counters(device)
        for series, name in BUFFERS.items():
            got = self.ask("buffer." + series, "nvmlDeviceGetSamples", device, getattr(n, name, 0), self.begun_us)
            if got is None:
                self.buffers[series] = self.why.get("buffer." + series, {"status": "failed", "detail": "no answer"})
                continue
            kind, samples = got
            member = ("dVal", "uiVal", "ulVal", "ullVal", "sllVal", "siVal", "usVal")[kind if kind < 7 else 1]
            values = [[s.timeStamp, getattr(s.sampleValue, member)] for s in samples if s.timeStamp >= self.begun_us]
            self.buffers[series] = values[-MAX_ROWS:]

    def told(self, ticks: int, offset_ns: int) -> dict[str, Any]:
        """As JSON; `offset_ns` is what to add to a realtime for a monotonic time."""
        series: dict[str, Any] = {}
        for name in UNITS:
            values = dict(self.values.get(name, {}))
            if values:
                series[name] = [values.get(i) for i in range(ticks)]
            elif name != "memory_total":
                gone = self.problem if "status" in self.problem else {"status": "failed", "detail": "not asked in time"}
                source = "utilization" if name == "memory_utilization" else name
                series[name] = self.why.get(source) or self.why.get("gpm") or gone
        processes: Any = [[row[0] * 1000 + offset_ns, *row[1:]] for row in list(self.processes)]
        if not processes and not self.about.get("processes_asked"):
            processes = self.why.get("processes") or {"status": "failed", "detail": "not asked in time"}
        memory: Any = {k: dict(v) for k, v in list(self.memory.items())}
        if not memory and "running" in self.why:
            memory = self.why["running"]
        buffers = {
            name: [[row[0] * 1000 + offset_ns, row[1]] for row in rows] if isinstance(rows, list) else rows
            for name, rows in list(self.buffers.items())
        }
        about = {k: v for k, v in self.about.items() if k not in ("pci", "processes_asked")}
        return {**about, **self.problem, "series": series, "read": list(self.read), "processes": processes, "memory": memory,
                "counters_ns": {k: list(v) for k, v in list(self.counters.items())}, "buffers": buffers}  # fmt: skip


class Gpm:
    """Rates between two samples of the device's own counters, without a profiler's privileges."""

    def __init__(self, device: Device, handle: Any) -> None:
        self.device, self.handle = device, handle
        self.works = False
        self.old: Any = None
        self.new: Any = None
        self.filled = False

    def open(self) -> None:
        """Whether there is GPM; two samples that are used in turn."""
        n, device = self.device.nvml, self.device
        arch = device.ask("gpm", "nvmlDeviceGetArchitecture", self.handle)
        if arch is None:
            return
        if arch < HOPPER or arch == UNKNOWN_ARCH:
            device.why["gpm"] = {"status": "unsupported", "detail": "GPM needs a GPU of the Hopper generation or newer"}
            return
        if device.about.get("mig"):
            device.why["gpm"] = {"status": "unsupported", "detail": "GPM of the whole GPU is not there in MIG mode"}
            return
        support = device.ask("gpm", "nvmlGpmQueryDeviceSupport", self.handle)
        if support is None or not support.isSupportedDevice:
            device.why.setdefault("gpm", {"status": "unsupported", "detail": "this GPU or driver has no GPM"})
            return
        self.old = device.ask("gpm", "nvmlGpmSampleAlloc")
        self.new = device.ask("gpm", "nvmlGpmSampleAlloc")
        self.works = self.old is not None and self.new is not None and hasattr(n, "c_nvmlGpmMetricsGet_t")

    def sample(self, tick: int) -> None:
        """One more sample, and the rates since the one before."""
        if not self.works:
            return
        device = self.device
        self.old, self.new = self.new, self.old
        if device.ask("gpm", "nvmlGpmSampleGet", self.handle, self.new, function=self._get) is None:
            self.works, self.filled = "gpm" not in device.given_up, False
            return
        if self.filled:
            device.ask("gpm", "nvmlGpmMetricsGet", tick, function=self._metrics)
        self.filled = True

    def _get(self, handle: Any, sample: Any) -> bool:
        self.device.nvml.nvmlGpmSampleGet(handle, sample)
        return True

    def _metrics(self, tick: int) -> None:
        n, device = self.device.nvml, self.device
        ask = n.c_nvmlGpmMetricsGet_t()
        ask.version, ask.sample1, ask.sample2 = n.NVML_GPM_METRICS_GET_VERSION, self.old, self.new
        names = [name for name in GPM if hasattr(n, "NVML_GPM_METRIC_" + name)]
        ask.numMetrics = len(names)
        for i, name in enumerate(names):
            ask.metrics[i].metricId = getattr(n, "NVML_GPM_METRIC_" + name)
        n.nvmlGpmMetricsGet(ask)
        for i, name in enumerate(names):
            series, factor = GPM[name]
            if ask.metrics[i].nvmlReturn:
                device.why.setdefault(series, failure(n, ask.metrics[i].nvmlReturn))
            elif ask.metrics[i].value == ask.metrics[i].value:  # no NaN
                device.keep(tick, series, round(ask.metrics[i].value * factor, 3))

    def close(self) -> None:
        """Free the samples."""
        for sample in (self.old, self.new):
            if sample is not None:
                self.device.ask("gpm.free", "nvmlGpmSampleFree", sample)


class Grid:
    """The times at which devices are asked, the same for all."""

    def __init__(self, hz: float, budget: float = BUDGET) -> None:
        self.step, self.budget = 1.0 / hz, budget
        self.begun_ns = time.monotonic_ns()
        self.devices = 1

    def tick(self) -> int:
        """The number of the grid's time that is nearest to now."""
        return round((time.monotonic_ns() - self.begun_ns) / 1e9 / self.step)

    def rest(self, tick: int, cost: float) -> float:
        """Seconds to the next look; fewer looks where they cost too much CPU."""
        wanted = max(self.step, cost * self.devices / self.budget)
        ahead = max(-(-wanted // self.step), 1.0)
        return max((tick + ahead) * self.step - (time.monotonic_ns() - self.begun_ns) / 1e9, 0.001)


class Live(Device):
    """One GPU of a stream: what it told at the last look."""

    SLOW = 5.0  # seconds between two looks at what seldom changes, and at a GPU that is lost
    FORGET = 3.0  # seconds that a process's share stands: the driver's samples come when they come

    def __init__(self, nvml: Any, index: int, grid: Grid) -> None:
        super().__init__(nvml, index, grid)
        self.fresh: dict[str, float] = {}
        self.seldom: dict[str, float] = {}
        self.into = self.fresh
        self.shares: dict[int, tuple[float, int]] = {}  # pid -> when, percent of the SMs
        self.slices: list[tuple[list[Any], Any]] = []  # MIG instances: what names them, and their handles
        self.running: dict[int, int | None] = {}  # contexts of the kinds that are looked at seldom
        self.latest: dict[str, Any] = {}
        self.due = 0.0

    def keep(self, tick: int, series: str, value: Any) -> None:  # noqa: ARG002 - as of a device that is sampled
        """The newest value only."""
        if value is None:
            return
        if value == ALL_ONES and series != "memory_used":
            self.why[series] = {"status": "failed", "detail": "it reads all ones"}
            return
        self.into[series] = value

    def run(self, stop: threading.Event) -> None:
        """Until `stop`. A GPU that is lost, or that gave no handle, is asked again now and then."""
        while not stop.is_set():
            try:
                self._everything(stop)
            except Lost:
                self.latest = {"at": time.time_ns(), "state": "lost", "m": dict(self.why)}
            except Exception as error:  # noqa: BLE001 - a fault of ours must not lose the other devices
                why = {"status": "failed", "detail": type(error).__name__ + ": " + str(error)[:200]}
                self.latest = {"at": time.time_ns(), "m": {"device": why}}
            self.now = None
            stop.wait(self.SLOW)
        self.done = True

    def _everything(self, stop: threading.Event) -> None:
        self.why.clear()
        device = self.opened()
        if device is None:
            self.latest = {"at": time.time_ns(), "m": {"device": self.problem}}
            return
        gpm = Gpm(self, device)
        gpm.open()
        self.due = 0.0
        try:
            while not stop.is_set():
                cpu, tick = time.thread_time(), self.grid.tick()
                self._look(device, tick, gpm)
                self.cost = 0.9 * self.cost + 0.1 * (time.thread_time() - cpu)
                self.now = None
                stop.wait(self.grid.rest(tick, self.cost))
        finally:
            gpm.close()  # a GPU that stays lost is opened again and again

    def _look(self, device: Any, tick: int, gpm: Gpm) -> None:
        self.into = self.fresh = {}
        self._fast(device, tick)
        self.read.clear()
        gpm.sample(tick)
        if not gpm.works:
            self._nvlink(device, tick)
        self._memory_temperature(device)
        mask = self.fresh.pop("reasons", None)
        slices = [[*about, *self._room(handle)] for about, handle in self.slices]
        processes = self._who(device)
        now = time.monotonic()
        if now >= self.due:
            self.due = now + self.SLOW
            self.into = self.seldom = {}
            self._seldom(device, tick, gpm)
            self.into = self.fresh
        values = {**self.seldom, **self.fresh}
        self.latest = {
            "at": time.time_ns(), "v": values, "r": mask, "p": processes,
            "m": {name: why for name, why in self.why.items() if name not in values and name != "memory.v2"},
        }  # fmt: skip
        if slices:
            self.latest["i"] = slices

    def _memory_temperature(self, device: Any) -> None:
        value = self.fields(device, "memory_temperature", [("MEMORY_TEMP", 0)])[0]
        if value is None and self.why.get("memory_temperature", {}).get("status") == "unsupported":
            self.given_up.add("memory_temperature")
        self.keep(0, "memory_temperature", value)

    def _seldom(self, device: Any, tick: int, gpm: Gpm) -> None:
        asked: tuple[tuple[str, str, tuple[int, ...]], ...] = (
            ("power_limit_mw", "nvmlDeviceGetEnforcedPowerLimit", ()),
            ("sm_clock_max", "nvmlDeviceGetMaxClockInfo", (1,)),
            ("memory_clock_max", "nvmlDeviceGetMaxClockInfo", (2,)),
            ("temperature_slowdown", "nvmlDeviceGetTemperatureThreshold", (1,)),
            ("pcie_width", "nvmlDeviceGetCurrPcieLinkWidth", ()),
            ("pcie_width_max", "nvmlDeviceGetMaxPcieLinkWidth", ()),
            ("pcie_generation", "nvmlDeviceGetCurrPcieLinkGeneration", ()),
            ("ecc_corrected", "nvmlDeviceGetTotalEccErrors", (0, 0)),
            ("ecc_uncorrected", "nvmlDeviceGetTotalEccErrors", (1, 0)),
            ("fan", "nvmlDeviceGetFanSpeed", ()),
        )
        for series, name, args in asked:
            self.keep(tick, series, self.ask(series, name, device, *args))
        if "temperature_slowdown" not in self.seldom:  # only the distance from it is told
            margin = self.ask("temperature_margin", "nvmlDeviceGetMarginTemperature", device)
            self.keep(tick, "temperature_margin", margin)
            field = [("TEMPERATURE_SLOWDOWN_TLIMIT", 0)]
            self.keep(tick, "slowdown_margin", self.fields(device, "slowdown_margin", field)[0])
            self.keep(tick, "margin_at", self.fresh.get("temperature"))
        if not gpm.works:  # each of the two samples for 20 ms
            self.keep(tick, "pcie_tx_kbs", self.ask("pcie_tx_kbs", "nvmlDeviceGetPcieThroughput", device, 0))
            self.keep(tick, "pcie_rx_kbs", self.ask("pcie_rx_kbs", "nvmlDeviceGetPcieThroughput", device, 1))
        if "memory_total" in self.about:
            self.seldom["memory_total"] = self.about["memory_total"]
        self._instances(device)
        self.running = {}
        for kind in ("Graphics", "MPSCompute"):
            for one in self.ask(kind, "nvmlDeviceGet" + kind + "RunningProcesses", device) or ():
                self.running[one.pid] = one.usedGpuMemory

    def _who(self, device: Any) -> list[list[Any]]:
        """Processes: pid, memory in bytes, share of the SMs in percent."""
        self._processes(device)
        now = time.monotonic()
        for row in self.processes:
            self.shares[row[1]] = (now, row[2])
        self.processes.clear()
        self.shares = {pid: told for pid, told in self.shares.items() if now - told[0] <= self.FORGET}
        found = dict(self.running)
        where: dict[int, list[int]] = {}
        for one in self.ask("running", "nvmlDeviceGetComputeRunningProcesses", device) or ():
            found[one.pid] = one.usedGpuMemory
            ids = [getattr(one, name, NO_INSTANCE) for name in ("gpuInstanceId", "computeInstanceId")]
            if NO_INSTANCE not in ids:
                where[one.pid] = ids
        for about, handle in () if where else self.slices:  # without privileges only the instances tell theirs
            for one in self.ask("mig.running", "nvmlDeviceGetComputeRunningProcesses", handle) or ():
                found[one.pid], where[one.pid] = one.usedGpuMemory, about[1:3]
        shares = {pid: told[1] for pid, told in self.shares.items()}
        return [[pid, memory, shares.get(pid), *where.get(pid, ())] for pid, memory in sorted(found.items())]

    def _instances(self, device: Any) -> None:
        """The MIG instances there are now: they come and go while the GPU stays."""
        n, self.slices = self.nvml, []
        mode = self.ask("mig", "nvmlDeviceGetMigMode", device)
        self.about["mig"] = bool(mode and mode[0] == 1)
        many = self.ask("mig.count", "nvmlDeviceGetMaxMigDeviceCount", device) if self.about["mig"] else 0
        for index in range(min(many or 0, MAX_INSTANCES)):
            self.now = ("nvmlDeviceGetMigDeviceHandleByIndex", time.monotonic())
            try:
                handle = n.nvmlDeviceGetMigDeviceHandleByIndex(device, index)
            except n.NVMLError as error:
                if error.value == LOST:
                    raise Lost("nvmlDeviceGetMigDeviceHandleByIndex") from None
                continue  # there are gaps
            gi = self.ask("mig.gi", "nvmlDeviceGetGpuInstanceId", handle)
            ci = self.ask("mig.ci", "nvmlDeviceGetComputeInstanceId", handle)
            names = [self.ask("mig." + name, "nvmlDeviceGet" + name, handle) for name in ("UUID", "Name")]
            if gi is not None and ci is not None:
                told = [text(name) if name is not None else "" for name in names]
                self.slices.append(([index, gi, ci, *told], handle))

    def _room(self, handle: Any) -> list[int | None]:
        """Memory of an instance, used and in all; None for both where it is not told."""
        kind = getattr(self.nvml, "nvmlMemory_v2", None)
        got = self.ask("mig.memory.v2", "nvmlDeviceGetMemoryInfo", handle, kind) if kind is not None else None
        if got is None:
            got = self.ask("mig.memory", "nvmlDeviceGetMemoryInfo", handle)
        return [None, None] if got is None else [got.used, got.total]

    def line(self) -> dict[str, Any]:
        """What it told last, and what it is doing."""
        out = {**self.about, **self.latest}
        now = self.now
        if now is not None:
            out["now"] = [now[0], round(time.monotonic() - now[1], 2)]
        return out


def load(nvml: Any, root: str) -> None:
    """Load the library: as the loader finds it, else where drivers put it. NVMLError when there is none."""
    try:
        nvml._LoadNvmlLibrary()
        return
    except nvml.NVMLError:
        for folder in LIBRARIES:
            path = root + folder + "/libnvidia-ml.so.1"
            if os.path.exists(path):
                with contextlib.suppress(OSError):
                    nvml.nvmlLib = nvml.CDLL(path)
                    return
        raise


class Asked:
    """Waits for the end of the window or for SIGTERM. A pipe: an Event must not be set where a signal has interrupted its wait."""

    def __init__(self) -> None:
        self.reader, writer = os.pipe()
        os.set_blocking(writer, False)
        signal.signal(signal.SIGTERM, lambda *_: os.write(writer, b"."))

    def wait(self, until: float) -> bool:
        """Whether SIGTERM came before `until` (monotonic seconds), or nobody reads our output any more: whoever asked was killed."""
        poll = select.poll()
        poll.register(self.reader, select.POLLIN)
        poll.register(sys.stdout.fileno(), 0)  # the end of a pipe's reader is always told
        return bool(poll.poll(max(until - time.monotonic(), 0) * 1000))


def ending(options: argparse.Namespace, latest: float) -> float:
    """When a window that begins now ends, monotonic seconds: before the deadline in any case."""
    return min(
        float(options.until_mono) / 1e9 if options.until_mono else time.monotonic() + float(options.seconds), latest
    )


def collect(options: argparse.Namespace, asked: Asked, latest: float) -> dict[str, Any]:
    """The document."""
    first = clocks()
    out: dict[str, Any] = {
        "schema": SCHEMA, "host": read(options.root + "/proc/sys/kernel/hostname"),
        "boot_id": read(options.root + "/proc/sys/kernel/random/boot_id"), "at_ns": first["realtime"], "hz": options.hz, "at": [],
        "units": UNITS, "devices": {}, "hung": [], "cost": {"cpu_s": 0.0},
    }  # fmt: skip
    try:
        import pynvml as nvml  # type: ignore[import-untyped]
    except ImportError as error:
        return {**out, "status": "unsupported", "detail": "pynvml is not installed: " + str(error)[:200]}
    started: dict[str, Any] = {}
    opening = threading.Thread(target=_start, args=(nvml, options.root, started), daemon=True)
    opening.start()
    while opening.is_alive() and time.monotonic() < latest and not asked.wait(time.monotonic() + 0.01):
        pass
    if "count" not in started:
        late = started.get("now", "nvmlInitWithFlags") + " had not answered when the window ended"
        why = started.get("why") or {"status": "failed", "detail": late}
        out["hung"] = [] if "why" in started else [{"device": None, "call": started.get("now", "nvmlInitWithFlags")}]
        return {**out, **why}
    out["driver"] = started["driver"]
    grid, stop = Grid(options.hz), threading.Event()
    devices = [Device(nvml, i, grid) for i in range(started["count"])]
    grid.devices = max(len(devices), 1)
    threads = [threading.Thread(target=d.run, args=(stop,), daemon=True) for d in devices]
    for thread in threads:
        thread.start()
    announce()
    asked.wait(ending(options, latest))
    stop.set()
    leave_at = time.monotonic() + LEAVE
    for thread in threads:
        thread.join(max(leave_at - time.monotonic(), 0))
    return _document(out, devices, grid, first)


def _document(out: dict[str, Any], devices: list[Device], grid: Grid, first: dict[str, int]) -> dict[str, Any]:
    last = clocks()
    offset = (first["monotonic"] - first["realtime"] + last["monotonic"] - last["realtime"]) // 2
    ticks = min(max([rows[-1][0] + 1 for rows in (list(d.read) for d in devices) if rows] or [0]), MAX_TICKS)
    step = round(grid.step * 1e9)
    out["at"] = [grid.begun_ns + i * step for i in range(ticks)]
    out["clocks"] = [first, last]
    looks = [len(d.read) for d in devices if d.read]
    out["hz_got"] = round((min(looks) - 1) / max((ticks - 1) * grid.step, grid.step), 3) if looks else 0.0
    for device in devices:
        now = device.now
        if not device.done:
            call, since = now or ("(between two calls)", time.monotonic())
            out["hung"].append({"device": device.index, "call": call, "seconds": round(time.monotonic() - since, 2)})
            device.problem.setdefault("stopped", call + " does not answer")
        out["devices"][device.about.get("pci") or f"index:{device.index}"] = device.told(ticks, offset)
    out["cost"] = {"cpu_s": round(time.process_time(), 4)}
    return out


def _start(nvml: Any, root: str, out: dict[str, Any]) -> None:
    """nvmlInit, the driver's version, the number of devices; or why not."""
    try:
        out["now"] = "nvmlInitWithFlags"
        load(nvml, root)
        nvml.nvmlInitWithFlags(0)
        out["now"] = "nvmlSystemGetDriverVersion"
        out["driver"] = text(nvml.nvmlSystemGetDriverVersion())
        out["now"] = "nvmlDeviceGetCount_v2"
        out["count"] = nvml.nvmlDeviceGetCount()
    except nvml.NVMLError as error:
        out["why"] = failure(nvml, error.value)
    except Exception as error:  # noqa: BLE001 - a broken library: said, not raised
        out["why"] = {"status": "failed", "detail": type(error).__name__ + ": " + str(error)[:200]}


def read(path: str) -> str:
    """A small file; empty when it cannot be read."""
    try:
        with open(path, encoding="utf-8", errors="replace") as handle:
            return handle.read(4096).strip()
    except OSError:
        return ""


def announce() -> None:
    """Take a name of our own: whoever started us sees that we look."""
    try:
        with open("/proc/self/comm", "w", encoding="ascii") as handle:
            handle.write("gpu_samples")
    except OSError:
        return


def stream(options: argparse.Namespace, asked: Asked) -> None:
    """Print a look at all GPUs again and again, until SIGTERM or until nobody reads."""
    header = {
        "schema": STREAM, "host": read(options.root + "/proc/sys/kernel/hostname"),
        "boot_id": read(options.root + "/proc/sys/kernel/random/boot_id"), "at": time.time_ns(), "every": options.every, "units": UNITS,
    }  # fmt: skip
    try:
        import pynvml as nvml
    except ImportError as error:
        leave({**header, "status": "unsupported", "detail": "pynvml is not installed: " + str(error)[:200]})
    started: dict[str, Any] = {}
    begun = time.monotonic()
    opening = threading.Thread(target=_start, args=(nvml, options.root, started), daemon=True)
    opening.start()
    said = begun
    while opening.is_alive():
        if asked.wait(time.monotonic() + (0.01 if time.monotonic() < begun + 1 else 0.1)):
            leave(None)
        if time.monotonic() - said >= options.every:
            said = time.monotonic()
            call = started.get("now", "nvmlInitWithFlags")
            out({"at": time.time_ns(), "now": [call, round(said - begun, 2)]})
    if "count" not in started:
        why = {"status": "failed", "detail": "nvmlInitWithFlags ended without an answer"}
        leave({**header, **started.get("why", why)})
    out({**header, "driver": started["driver"], "count": started["count"]})
    grid, stop = Grid(1.0 / options.every, STREAM_BUDGET), threading.Event()
    devices = [Live(nvml, i, grid) for i in range(started["count"])]
    grid.devices = max(len(devices), 1)
    for device in devices:
        threading.Thread(target=device.run, args=(stop,), daemon=True).start()
    announce()
    late = min(0.25 * options.every, 0.15)  # seconds that the devices have for their answers
    pause = late
    while not asked.wait(time.monotonic() + pause):
        out({"at": time.time_ns(), "gpus": [device.line() for device in devices]})
        pause = grid.rest(grid.tick(), 0.0) + late
    leave(None)


def out(document: dict[str, Any]) -> None:
    """One line. Without a reader there is no use in going on."""
    data = (json.dumps(document, separators=(",", ":")) + "\n").encode("utf-8", "replace")
    try:
        while data:
            data = data[os.write(1, data) :]
    except OSError:
        os._exit(0)


def leave(document: dict[str, Any] | None) -> NoReturn:
    """Print what there is to print, and go without waiting for any thread."""
    if document is not None:
        out(document)
    for handle in (1, 2):
        with contextlib.suppress(OSError):
            os.close(handle)
    os._exit(0)


def main() -> None:
    """Collect, print, leave."""
    asked, begun = Asked(), time.monotonic()
    parser = argparse.ArgumentParser()
    parser.add_argument("--deadline", type=float, default=20.0)
    parser.add_argument("--root", default="")
    parser.add_argument("--hz", type=float, default=20.0)
    parser.add_argument("--seconds", type=float, default=2.0)
    parser.add_argument("--until-mono", type=int, default=0)
    parser.add_argument("--stream", action="store_true")
    parser.add_argument("--every", type=float, default=1.0)
    options = parser.parse_args()
    options.root = options.root.rstrip("/")
    options.hz = min(max(options.hz, 1.0), 50.0)
    options.every = min(max(options.every, 0.1), 60.0)
    if options.stream:
        stream(options, asked)
    leave(collect(options, asked, begun + max(options.deadline - MARGIN - LEAVE, options.deadline / 2)))


if __name__ == "__main__":
    main()
