"""What NVML says of the driver and of every GPU: the calls that were made and what each returned, raw.

Run as ``python -I -B nvml.py --deadline SECONDS [--root DIR] [--quick] [--window SECONDS]``; needs pynvml
(nvidia-ml-py). Prints one JSON document of schema ``gpudiag/nvml/1``: `init`, `system`, and `devices`, each with
`calls` (the NVML function, with what tells two calls of it apart in brackets), `links` by number, `fields` (all field
values, from one batched call), `gpm` (two samples `window` seconds apart), `mig` instances and processes by pid.
A call that fails is ``{"error": "NVML_ERROR_...: words", "code": N}`` and costs nothing else. NVML tells of no last
XID. Nothing of a process but its pid, its memory and its share of the GPU is read.

A sick driver hangs. Every device is asked in a thread of its own; at the deadline what is there is printed, `hung`
names the call in which each thread waits, and the process leaves without joining any of them. `--quick` asks only
what changes from one moment to the next.
"""

# pathlib would cost this short-lived process its import
# ruff: noqa: PTH110, PTH123, PTH208
from __future__ import annotations

import argparse
import contextlib
import errno
import json
import os
import threading
import time
from typing import Any

SCHEMA = "gpudiag/nvml/1"
MARGIN = 0.15  # seconds kept for printing
GLANCE = 0.1  # seconds for which threads that do not come back are looked at
WINDOW = 0.3  # seconds between the two samples of a rate
LOST = 15  # NVML_ERROR_GPU_IS_LOST: whatever is asked next answers the same, or not at all

# Where libnvidia-ml.so.1 lies when the loader does not know it: drivers installed by a container (gpu-operator, GKE), WSL, NixOS.
LIBRARIES = (
    "/run/nvidia/driver/usr/lib/x86_64-linux-gnu", "/run/nvidia/driver/usr/lib/aarch64-linux-gnu",
    "/run/nvidia/driver/usr/lib64", "/usr/local/nvidia/lib64", "/home/kubernetes/bin/nvidia/lib64",
    "/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/lib64", "/usr/lib/wsl/lib",
    "/run/opengl-driver/lib",
)  # fmt: skip

# (asked by --quick too, function, what tells two calls apart, arguments behind the device)
_CLOCKS = (("GRAPHICS", 0), ("SM", 1), ("MEM", 2), ("VIDEO", 3))
_ECC = [(f"{kind}, {window}", (k, w)) for k, kind in enumerate(("CORRECTED", "UNCORRECTED"))
        for w, window in enumerate(("VOLATILE", "AGGREGATE"))]  # fmt: skip
_OLD_SRAM = (
    ("L1_CACHE", 0),
    ("L2_CACHE", 1),
    ("REGISTER_FILE", 3),
    ("TEXTURE_MEMORY", 4),
    ("TEXTURE_SHM", 5),
    ("CBU", 6),
)
IDENTITY = (
    (True, "nvmlDeviceGetPciInfo_v3", "", ()),
    (True, "nvmlDeviceGetUUID", "", ()),
    (True, "nvmlDeviceGetName", "", ()),
    (True, "nvmlDeviceGetMinorNumber", "", ()),
    (True, "nvmlDeviceGetArchitecture", "", ()),
    (True, "nvmlDeviceGetMigMode", "", ()),
    (False, "nvmlDeviceGetSerial", "", ()),
    (False, "nvmlDeviceGetBrand", "", ()),
    (False, "nvmlDeviceGetCudaComputeCapability", "", ()),
    (False, "nvmlDeviceGetBoardPartNumber", "", ()),
    (False, "nvmlDeviceGetBoardId", "", ()),
    (False, "nvmlDeviceGetVbiosVersion", "", ()),
    (False, "nvmlDeviceGetInforomImageVersion", "", ()),
    (False, "nvmlDeviceGetInforomVersion", "OEM", (0,)),
    (False, "nvmlDeviceGetInforomVersion", "ECC", (1,)),
    (False, "nvmlDeviceGetInforomVersion", "POWER", (2,)),
    (False, "nvmlDeviceGetGspFirmwareVersion", "", ()),
    (False, "nvmlDeviceGetNumaNodeId", "", ()),
)
STATE = (
    (True, "nvmlDeviceGetPerformanceState", "", ()),
    (True, "nvmlDeviceGetCurrentClocksEventReasons", "", ()),
    (False, "nvmlDeviceGetSupportedClocksEventReasons", "", ()),
    *((True, "nvmlDeviceGetClockInfo", name, (n,)) for name, n in _CLOCKS),
    *((True, "nvmlDeviceGetMaxClockInfo", name, (n,)) for name, n in _CLOCKS),
    *((False, "nvmlDeviceGetApplicationsClock", name, (n,)) for name, n in (("GRAPHICS", 0), ("MEM", 2))),
    *((False, "nvmlDeviceGetDefaultApplicationsClock", name, (n,)) for name, n in (("GRAPHICS", 0), ("MEM", 2))),
    (True, "nvmlDeviceGetTemperature", "GPU", (0,)),
    (True, "nvmlDeviceGetMarginTemperature", "", ()),
    *((name in ("SHUTDOWN", "SLOWDOWN", "MEM_MAX", "GPU_MAX"), "nvmlDeviceGetTemperatureThreshold", name, (n,))
      for name, n in (("SHUTDOWN", 0), ("SLOWDOWN", 1), ("MEM_MAX", 2), ("GPU_MAX", 3), ("ACOUSTIC_CURR", 5))),
    (True, "nvmlDeviceGetPowerUsage", "", ()),
    (True, "nvmlDeviceGetEnforcedPowerLimit", "", ()),
    (False, "nvmlDeviceGetPowerManagementLimit", "", ()),
    (False, "nvmlDeviceGetPowerManagementDefaultLimit", "", ()),
    (False, "nvmlDeviceGetPowerManagementLimitConstraints", "", ()),
    (True, "nvmlDeviceGetTotalEnergyConsumption", "", ()),
    (True, "nvmlDeviceGetFanSpeed", "", ()),
    (True, "nvmlDeviceGetUtilizationRates", "", ()),
    (True, "nvmlDeviceGetEncoderUtilization", "", ()),
    (True, "nvmlDeviceGetDecoderUtilization", "", ()),
    (False, "nvmlDeviceGetJpgUtilization", "", ()),
    (False, "nvmlDeviceGetOfaUtilization", "", ()),
    (True, "nvmlDeviceGetBAR1MemoryInfo", "", ()),
    (True, "nvmlDeviceGetEccMode", "", ()),
    *((True, "nvmlDeviceGetTotalEccErrors", label, args) for label, args in _ECC),
    *((True, "nvmlDeviceGetMemoryErrorCounter", f"{label}, {place}", (*args, n))
      for label, args in _ECC for place, n in (("DRAM", 2), ("SRAM", 7))),
    (True, "nvmlDeviceGetRemappedRows", "", ()),
    (False, "nvmlDeviceGetRowRemapperHistogram", "", ()),
    (False, "nvmlDeviceGetRepairStatus", "", ()),
    (False, "nvmlDeviceGetUnrepairableMemoryFlag_v1", "", ()),
    (False, "nvmlDeviceGetRetiredPages", "MULTIPLE_SINGLE_BIT_ECC_ERRORS", (0,)),
    (False, "nvmlDeviceGetRetiredPages", "DOUBLE_BIT_ECC_ERROR", (1,)),
    (False, "nvmlDeviceGetRetiredPagesPendingStatus", "", ()),
    (True, "nvmlDeviceGetCurrPcieLinkGeneration", "", ()),
    (True, "nvmlDeviceGetMaxPcieLinkGeneration", "", ()),
    (False, "nvmlDeviceGetGpuMaxPcieLinkGeneration", "", ()),
    (True, "nvmlDeviceGetCurrPcieLinkWidth", "", ()),
    (True, "nvmlDeviceGetMaxPcieLinkWidth", "", ()),
    (True, "nvmlDeviceGetPcieReplayCounter", "", ()),
    (True, "nvmlDeviceGetPersistenceMode", "", ()),
    (False, "nvmlDeviceGetComputeMode", "", ()),
    (False, "nvmlDeviceGetAccountingMode", "", ()),
    (False, "nvmlDeviceGetAddressingMode", "", ()),
    (True, "nvmlDeviceGetVirtualizationMode", "", ()),
    (False, "nvmlDeviceGetC2cModeInfoV", "", ()),
    (False, "nvmlDeviceGetDisplayActive", "", ()),
    (False, "nvmlDeviceGetDisplayMode", "", ()),
    *((False, "nvmlDeviceGetViolationStatus", name, (n,)) for n, name in
      enumerate(("POWER", "THERMAL", "SYNC_BOOST", "BOARD_LIMIT", "LOW_UTILIZATION", "RELIABILITY"))),
    (True, "nvmlDeviceGetComputeRunningProcesses_v3", "", ()),
    (True, "nvmlDeviceGetGraphicsRunningProcesses_v3", "", ()),
    (True, "nvmlDeviceGetMPSComputeRunningProcesses_v3", "", ()),
    (True, "nvmlDeviceGetPcieThroughput", "TX", (0,)),  # each of the two samples for 20 ms
    (True, "nvmlDeviceGetPcieThroughput", "RX", (1,)),
    (False, "nvmlDeviceValidateInforom", "", ()),
)  # fmt: skip

# Field values of the device, by name behind NVML_FI_DEV_; a number in brackets is the scope.
FIELDS = (
    "MEMORY_TEMP", "RETIRED_PENDING", "REMAPPED_COR", "REMAPPED_UNC", "REMAPPED_PENDING", "REMAPPED_FAILURE",
    "PERF_POLICY_POWER", "PERF_POLICY_SYNC_BOOST", "CLOCKS_EVENT_REASON_SW_THERM_SLOWDOWN",
    "CLOCKS_EVENT_REASON_HW_THERM_SLOWDOWN", "CLOCKS_EVENT_REASON_HW_POWER_BRAKE_SLOWDOWN", "NVLINK_LINK_COUNT",
    "NVLINK_SPEED_MBPS_COMMON", "NVSWITCH_CONNECTED_LINK_COUNT", "PCIE_REPLAY_COUNTER",
    "PCIE_REPLAY_ROLLOVER_COUNTER", "PCIE_L0_TO_RECOVERY_COUNTER", "PCIE_COUNT_CORRECTABLE_ERRORS",
    "PCIE_COUNT_NAKS_RECEIVED", "PCIE_COUNT_NAKS_SENT", "PCIE_COUNT_RECEIVER_ERROR", "PCIE_COUNT_BAD_TLP",
    "PCIE_COUNT_BAD_DLLP", "PCIE_COUNT_NON_FATAL_ERROR", "PCIE_COUNT_FATAL_ERROR", "PCIE_COUNT_UNSUPPORTED_REQ",
    "PCIE_COUNT_LCRC_ERROR", "PCIE_COUNT_LANE_ERROR", "TEMPERATURE_SHUTDOWN_TLIMIT", "TEMPERATURE_SLOWDOWN_TLIMIT",
    "TEMPERATURE_MEM_MAX_TLIMIT", "TEMPERATURE_GPU_MAX_TLIMIT", "RESET_STATUS", "DRAIN_AND_RESET_STATUS",
    "GET_GPU_RECOVERY_ACTION", "C2C_LINK_COUNT", "POWER_AVERAGE[0]", "POWER_INSTANT[0]", "POWER_AVERAGE[1]",
    "POWER_INSTANT[1]", "POWER_CURRENT_LIMIT[1]", "POWER_DEFAULT_LIMIT[1]", "POWER_MAX_LIMIT[1]", "POWER_AVERAGE[2]",
)  # fmt: skip
LINK_FIELDS = ("NVLINK_GET_SPEED", "NVLINK_ERROR_DL_REPLAY", "NVLINK_ERROR_DL_RECOVERY", "NVLINK_ERROR_DL_CRC")
LINK5_FIELDS = (
    "NVLINK_GET_SPEED", "NVLINK_COUNT_MALFORMED_PACKET_ERRORS", "NVLINK_COUNT_BUFFER_OVERRUN_ERRORS",
    "NVLINK_COUNT_RCV_ERRORS", "NVLINK_COUNT_RCV_REMOTE_ERRORS", "NVLINK_COUNT_RCV_GENERAL_ERRORS",
    "NVLINK_COUNT_LOCAL_LINK_INTEGRITY_ERRORS", "NVLINK_COUNT_XMIT_DISCARDS",
    "NVLINK_COUNT_LINK_RECOVERY_SUCCESSFUL_EVENTS", "NVLINK_COUNT_LINK_RECOVERY_FAILED_EVENTS",
    "NVLINK_COUNT_EFFECTIVE_ERRORS", "NVLINK_COUNT_EFFECTIVE_BER", "NVLINK_COUNT_SYMBOL_ERRORS",
    "NVLINK_COUNT_SYMBOL_BER",
)  # fmt: skip
NVLINK5 = 7  # NVML_NVLINK_VERSION_5_0: from here on, links count packets instead of flits
LINK_CALLS = (
    (True, "nvmlDeviceGetNvLinkVersion", "", ()),
    (False, "nvmlDeviceGetNvLinkCapability", "P2P_SUPPORTED", (0,)),
    (False, "nvmlDeviceGetNvLinkCapability", "VALID", (5,)),
    (False, "nvmlDeviceGetNvLinkRemotePciInfo", "", ()),
    (False, "nvmlDeviceGetNvLinkRemoteDeviceType", "", ()),
)
LINK_COUNTERS = (("REPLAY", 0), ("RECOVERY", 1), ("CRC_FLIT", 2), ("CRC_DATA", 3))
GPM = (
    "GRAPHICS_UTIL", "SM_UTIL", "SM_OCCUPANCY", "ANY_TENSOR_UTIL", "DRAM_BW_UTIL", "FP64_UTIL", "FP32_UTIL",
    "FP16_UTIL", "PCIE_TX_PER_SEC", "PCIE_RX_PER_SEC", "NVLINK_TOTAL_RX_PER_SEC", "NVLINK_TOTAL_TX_PER_SEC",
)  # fmt: skip
HOPPER = 9  # NVML_DEVICE_ARCH_HOPPER: the first with GPM
UNKNOWN_ARCH = 0xFFFFFFFF


class Lost(Exception):
    """The GPU is lost: there is no use in asking it more."""


class Asker:
    """Makes calls one after the other and keeps what each came to. One thread asks, another may look."""

    def __init__(self, nvml: Any) -> None:
        self.nvml = nvml
        self.now: tuple[str, float] | None = None  # the call that is being made and when it began
        self.slowest = ("", 0.0)

    def ask(self, into: dict[str, Any], name: str, label: str = "", function: Any = None, args: Any = ()) -> Any:
        """Make a call of pynvml (of the same name, unless `function` is given) and keep its result under its name."""
        key = name + "(" + label + ")" if label else name
        begun = time.monotonic()
        self.now = (key, begun)
        try:
            into[key] = plain((function or getattr(self.nvml, name))(*args))
        except self.nvml.NVMLError as error:
            into[key] = failure(self.nvml, error.value)
        except Exception as error:  # noqa: BLE001 - an older pynvml, a name that is no UTF-8: one call, not the rest
            into[key] = {"error": type(error).__name__ + ": " + str(error)[:200]}
        took = time.monotonic() - begun
        if took > self.slowest[1]:
            self.slowest = (key, took)
        self.now = None
        if code(into[key]) == LOST:
            raise Lost(key)
        return into[key]


def code(result: Any) -> int | None:
    """NVML's error number of a result; None when it is none."""
    return result.get("code") if isinstance(result, dict) else None


def good(result: Any) -> bool:
    """True when a call gave a value."""
    return not (isinstance(result, dict) and "error" in result)


def failure(nvml: Any, number: int) -> dict[str, Any]:
    """An NVML error as it is kept."""
    names = _names(nvml)
    name = names.get(number, "NVML_ERROR_" + str(number))
    words = nvml.NVMLError._errcode_to_string.get(number, "")
    return {"error": name + ": " + words if words else name, "code": number}


_NAMES: dict[int, str] = {}


def _names(nvml: Any) -> dict[int, str]:
    if not _NAMES:
        _NAMES.update({getattr(nvml, n): n for n in dir(nvml) if n.startswith("NVML_ERROR_")})
    return _NAMES


def plain(value: Any) -> Any:
    """What pynvml returned, as JSON can hold it."""
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    if isinstance(value, (list, tuple)):
        return [plain(v) for v in value]
    fields = getattr(value, "_fields_", None)
    if fields is not None:
        return {f[0]: plain(getattr(value, f[0])) for f in fields if f[0] != "version"}
    if hasattr(value, "_length_"):
        return bytes(value).hex() if value._type_.__name__ == "c_ubyte" else [plain(v) for v in value]
    return {name: plain(part) for name, part in vars(value).items()}


# --- one device ---------------------------------------------------------------------------


class Device(Asker):
    """One GPU, asked in a thread of its own."""

    def __init__(self, nvml: Any, index: int, quick: bool, window: float) -> None:
        super().__init__(nvml)
        self.index, self.quick, self.window = index, quick, window
        self.done = False
        self.seconds = 0.0
        self.out: dict[str, Any] = {"index": index, "calls": {}}

    def run(self) -> None:
        """Ask everything. Whatever breaks is said in the document."""
        begun = time.monotonic()
        try:
            self._everything()
        except Lost as lost:
            self.out["stopped"] = "the GPU is lost: " + str(lost)
        except Exception as error:  # noqa: BLE001 - a fault of ours must not lose the other devices
            self.out["stopped"] = type(error).__name__ + ": " + str(error)[:200]
        self.seconds = time.monotonic() - begun
        self.done = True

    def _everything(self) -> None:
        n, calls = self.nvml, self.out["calls"]
        self.now = ("nvmlDeviceGetHandleByIndex_v2", time.monotonic())
        try:
            device = n.nvmlDeviceGetHandleByIndex(self.index)
        except n.NVMLError as error:
            calls["nvmlDeviceGetHandleByIndex_v2"] = failure(n, error.value)
            return
        self._list(calls, device, IDENTITY)
        if not self.quick:
            pci = n.nvmlPciInfo_t()
            self.ask(calls, "nvmlDeviceGetModuleId", "", n.nvmlDeviceGetModuleId, (device, n.c_uint()))
            self.ask(
                calls,
                "nvmlDeviceGetGspFirmwareMode",
                "",
                n.nvmlDeviceGetGspFirmwareMode,
                (device, n.c_uint(), n.c_uint()),
            )
            if good(calls["nvmlDeviceGetPciInfo_v3"]):
                for name in ("domain", "bus", "device", "busId", "pciDeviceId", "pciSubSystemId"):
                    setattr(pci, name, calls["nvmlDeviceGetPciInfo_v3"][name])
                self.ask(calls, "nvmlDeviceQueryDrainState", "", n.nvmlDeviceQueryDrainState, (pci,))
        mode = calls["nvmlDeviceGetMigMode"]
        mig = isinstance(mode, list) and mode[0] == 1
        instances = self._instances(device) if mig else []
        sampler = Sampler(self, device, instances)
        sampler.first()
        self._list(calls, device, STATE)
        self._special(calls, device)
        self._links(calls, device)
        self._fields(device)
        sampler.second()

    def _list(self, calls: dict[str, Any], device: Any, table: Any) -> None:
        for quick, name, label, args in table:
            if quick or not self.quick:
                self.ask(calls, name, label, None, (device, *args))

    def _special(self, calls: dict[str, Any], device: Any) -> None:
        self._memory(calls, device)
        since = int((time.time() - 10) * 1e6)
        self.ask(calls, "nvmlDeviceGetProcessUtilization", "", None, (device, since))
        if not good(calls.get("nvmlDeviceGetMemoryErrorCounter(UNCORRECTED, VOLATILE, SRAM)")):
            for label, args in _ECC:  # Volta and older count each memory of the chip on its own
                for place, number in _OLD_SRAM:
                    self.ask(
                        calls, "nvmlDeviceGetMemoryErrorCounter", label + ", " + place, None, (device, *args, number)
                    )
        self.ask(calls, "nvmlDeviceGetSramEccErrorStatus", "", self._sram, (device,))
        self._fabric(calls, device)
        if calls.get("nvmlDeviceGetAccountingMode") == 1:
            self._accounts(calls, device)

    def _memory(self, calls: dict[str, Any], device: Any) -> None:
        n = self.nvml
        got = self.ask(calls, "nvmlDeviceGetMemoryInfo_v2", "", n.nvmlDeviceGetMemoryInfo, (device, n.nvmlMemory_v2))
        if not good(got):
            self.ask(calls, "nvmlDeviceGetMemoryInfo", "", None, (device,))

    def _sram(self, device: Any) -> Any:
        status = self.nvml.c_nvmlEccSramErrorStatus_v1_t()
        self.nvml.nvmlDeviceGetSramEccErrorStatus(device, self.nvml.byref(status))
        return status

    def _fabric(self, calls: dict[str, Any], device: Any) -> None:
        n = self.nvml

        def info(kind: str, get: Any) -> Any:
            def call() -> Any:
                out = getattr(n, kind)()
                get(device, n.byref(out))
                return out

            return call

        for label, kind in (("v3", "c_nvmlGpuFabricInfo_v3_t"), ("v2", "c_nvmlGpuFabricInfo_v2_t")):
            if hasattr(n, kind) and good(
                self.ask(calls, "nvmlDeviceGetGpuFabricInfoV", label, info(kind, n.nvmlDeviceGetGpuFabricInfoV))
            ):
                return
        self.ask(calls, "nvmlDeviceGetGpuFabricInfo", "", info("c_nvmlGpuFabricInfo_t", n.nvmlDeviceGetGpuFabricInfo))

    def _accounts(self, calls: dict[str, Any], device: Any) -> None:
        pids = self.ask(calls, "nvmlDeviceGetAccountingPids", "", None, (device,))
        for pid in pids[-64:] if isinstance(pids, list) else ():
            self.ask(
                calls, "nvmlDeviceGetAccountingStats", str(pid), self.nvml.nvmlDeviceGetAccountingStats, (device, pid)
            )

    # -- links and field values ------------------------------------------------------------

    def _links(self, calls: dict[str, Any], device: Any) -> None:
        n = self.nvml
        links: dict[str, dict[str, Any]] = {}
        for link in range(n.NVML_NVLINK_MAX_LINKS):
            one: dict[str, Any] = {}
            state = self.ask(one, "nvmlDeviceGetNvLinkState", "", None, (device, link))
            if code(state) in (n.NVML_ERROR_INVALID_ARGUMENT, n.NVML_ERROR_NOT_SUPPORTED) or (
                code(state) is None and not good(state)
            ):
                if link == 0:  # no links at all; else: no more of them
                    calls["nvmlDeviceGetNvLinkState(0)"] = state
                break
            links[str(link)] = one
            if not good(state):
                continue
            for quick, name, label, args in LINK_CALLS:
                if quick or not self.quick:
                    self.ask(one, name, label, None, (device, link, *args))
            version = one["nvmlDeviceGetNvLinkVersion"]
            if state == 1 and not (good(version) and version >= NVLINK5):
                for label, number in LINK_COUNTERS:
                    self.ask(one, "nvmlDeviceGetNvLinkErrorCounter", label, None, (device, link, number))
        if links:
            self.out["links"] = links

    def _fields(self, device: Any) -> None:
        n = self.nvml
        names = list(FIELDS)
        for number, link in self.out.get("links", {}).items():
            if link["nvmlDeviceGetNvLinkState"] == 1:
                version = link["nvmlDeviceGetNvLinkVersion"]
                wanted = LINK5_FIELDS if good(version) and version >= NVLINK5 else LINK_FIELDS
                names += [name + "[" + number + "]" for name in wanted]
        asked = []
        errors: dict[str, dict[str, Any]] = {}
        self.out["field_errors"] = errors
        for name in names:
            bare, _, scope = name.partition("[")
            number = getattr(n, "NVML_FI_DEV_" + bare, None)
            if number is None:
                errors.setdefault("unknown to this pynvml", {"code": None, "fields": []})["fields"].append(name)
            else:
                asked.append((name, (number, int(scope[:-1] or 0) if scope else 0)))
        values: dict[str, Any] = {}
        self.out["fields"] = values

        def call() -> int:
            got_all = n.nvmlDeviceGetFieldValues(device, [pair for _, pair in asked])
            for i, (name, _) in enumerate(asked):
                got = got_all[i]
                if got.nvmlReturn:
                    kept = {"code": got.nvmlReturn, "fields": []}
                    errors.setdefault(failure(n, got.nvmlReturn)["error"], kept)["fields"].append(name)
                else:
                    values[name] = _value(got)
            return len(asked)

        self.ask(self.out["calls"], "nvmlDeviceGetFieldValues", "", call)

    # -- MIG -------------------------------------------------------------------------------

    def _instances(self, device: Any) -> list[tuple[dict[str, Any], Any]]:
        n = self.nvml
        many = self.ask(self.out["calls"], "nvmlDeviceGetMaxMigDeviceCount", "", None, (device,))
        found: list[dict[str, Any]] = []
        self.out["mig"] = found
        handles = []
        for index in range(many if isinstance(many, int) else 0):
            self.now = ("nvmlDeviceGetMigDeviceHandleByIndex(" + str(index) + ")", time.monotonic())
            try:
                handle = n.nvmlDeviceGetMigDeviceHandleByIndex(device, index)
            except n.NVMLError as error:
                if error.value not in (n.NVML_ERROR_NOT_FOUND, n.NVML_ERROR_INVALID_ARGUMENT):
                    found.append(
                        {"index": index, "calls": {"nvmlDeviceGetMigDeviceHandleByIndex": failure(n, error.value)}}
                    )
                continue
            calls: dict[str, Any] = {}
            found.append({"index": index, "calls": calls})
            for name in ("UUID", "Name", "GpuInstanceId", "ComputeInstanceId", "Attributes_v2"):
                self.ask(calls, "nvmlDeviceGet" + name, "", None, (handle,))
            self._memory(calls, handle)
            self.ask(calls, "nvmlDeviceGetMemoryErrorCounter", "UNCORRECTED, VOLATILE, SRAM", None, (handle, 1, 0, 7))
            handles.append((found[-1], calls["nvmlDeviceGetGpuInstanceId"]))
        return handles


def _value(got: Any) -> Any:
    """The member of the union that the value's type names."""
    kinds = ("dVal", "uiVal", "ulVal", "ullVal", "sllVal", "siVal", "usVal")
    return (
        getattr(got.value, kinds[got.valueType])
        if got.valueType < len(kinds)
        else {"error": "value type " + str(got.valueType)}
    )


class Sampler:
    """GPM: metrics of the time between two samples, of the device or of each of its MIG instances."""

    def __init__(self, device: Device, handle: Any, instances: list[tuple[dict[str, Any], Any]]) -> None:
        self.device, self.handle = device, handle
        self.begun = 0.0
        targets: list[tuple[dict[str, Any], Any]] = (
            [(out, number) for out, number in instances if good(number)] if instances else [(device.out, None)]
        )
        if "mig" in device.out and not instances:
            targets = []
        self.targets: list[list[Any]] = [[out, number, None] for out, number in targets]

    def first(self) -> None:
        """The first sample, where there is GPM at all."""
        device = self.device
        arch = device.out["calls"]["nvmlDeviceGetArchitecture"]
        if device.window <= 0 or not good(arch) or arch < HOPPER or arch == UNKNOWN_ARCH:
            self.targets = []
            return
        calls = device.out["calls"]
        support = device.ask(calls, "nvmlGpmQueryDeviceSupport", "", None, (self.handle,))
        if not good(support) or not support.get("isSupportedDevice"):
            self.targets = []
            return
        for target in self.targets:
            target[2] = self._sample(target[0], target[1])
        self.begun = time.monotonic()

    def _sample(self, out: dict[str, Any], number: int | None) -> Any:
        n, device = self.device.nvml, self.device
        kept: list[Any] = []

        def call() -> None:
            sample = n.nvmlGpmSampleAlloc()
            if number is None:
                n.nvmlGpmSampleGet(self.handle, sample)
            else:
                n.nvmlGpmMigSampleGet(self.handle, number, sample)
            kept.append(sample)

        gpm = out.setdefault("gpm", {})
        result = device.ask({}, "nvmlGpmSampleGet" if number is None else "nvmlGpmMigSampleGet", "", call)
        if not good(result):
            gpm.update(result)
        return kept[0] if kept else None

    def second(self) -> None:
        """The second sample, and what happened between them."""
        device = self.device
        if not any(target[2] is not None for target in self.targets):
            return
        time.sleep(max(device.window - (time.monotonic() - self.begun), 0))
        for out, number, first in self.targets:
            if first is None:
                continue
            window = time.monotonic() - self.begun
            last = self._sample(out, number)
            if last is not None:
                out["gpm"]["window_s"] = round(window, 4)
                out["gpm"].update(self._metrics(first, last))

    def _metrics(self, first: Any, last: Any) -> dict[str, Any]:
        n = self.device.nvml
        values: dict[str, Any] = {}

        def call() -> None:
            ask = n.c_nvmlGpmMetricsGet_t()
            ask.version, ask.sample1, ask.sample2 = n.NVML_GPM_METRICS_GET_VERSION, first, last
            ask.numMetrics = len(GPM)
            for i, name in enumerate(GPM):
                ask.metrics[i].metricId = getattr(n, "NVML_GPM_METRIC_" + name)
            n.nvmlGpmMetricsGet(ask)
            for i, name in enumerate(GPM):
                got = ask.metrics[i]
                values[name] = failure(n, got.nvmlReturn) if got.nvmlReturn else round(got.value, 4)

        result = self.device.ask({}, "nvmlGpmMetricsGet", "", call)
        for sample in (first, last):
            self.device.ask({}, "nvmlGpmSampleFree", "", None, (sample,))
        return values if good(result) else result


# --- the machine --------------------------------------------------------------------------


def load(nvml: Any, root: str, out: dict[str, Any]) -> None:
    """Load the library: as the loader finds it, else where drivers put it. NVMLError when there is none."""
    try:
        nvml._LoadNvmlLibrary()
        out["library"] = "libnvidia-ml.so.1"
        return
    except nvml.NVMLError:
        for folder in LIBRARIES:
            path = root + folder + "/libnvidia-ml.so.1"
            if os.path.exists(path):
                try:
                    nvml.nvmlLib = nvml.CDLL(path)
                except OSError as error:
                    out["library"] = {"error": str(error)[:200]}
                    continue
                out["library"] = path
                return
        raise


def start(asker: Asker, root: str, out: dict[str, Any]) -> int | None:
    """nvmlInit and the facts about the driver. The number of devices; None when there is no driver to ask."""
    nvml = asker.nvml

    def init() -> str:
        load(nvml, root, out)
        nvml.nvmlInitWithFlags(0)
        return "NVML_SUCCESS"

    begun = time.monotonic()
    try:
        result = asker.ask(out["calls"], "nvmlInitWithFlags", "", init)
    except Lost:
        result = out["calls"]["nvmlInitWithFlags"]
    out["init_seconds"] = round(time.monotonic() - begun, 4)
    if not good(result):
        out["pci"] = display_devices(root)
        return None
    system = out["calls"]
    for name in ("nvmlSystemGetDriverVersion", "nvmlSystemGetNVMLVersion", "nvmlSystemGetCudaDriverVersion_v2"):
        asker.ask(system, name)
    count = asker.ask(system, "nvmlDeviceGetCount_v2", "", nvml.nvmlDeviceGetCount)
    return count if isinstance(count, int) else None


def display_devices(root: str) -> Any:
    """NVIDIA's GPUs on the PCI bus (vendor 10de, class 03): whether a missing driver is missed."""
    base = root + "/sys/bus/pci/devices"
    listed = names(base)
    if not good(listed):
        return listed
    nvidia = [name for name in listed if read(base + "/" + name + "/vendor") == "0x10de"]
    return [name for name in nvidia if str(read(base + "/" + name + "/class")).startswith("0x03")]


def read(path: str) -> Any:
    """A small file; its error, when it cannot be read."""
    try:
        with open(path, encoding="utf-8", errors="replace") as handle:
            return handle.read(4096).strip()
    except OSError as error:
        return said(error)


def host_name(root: str) -> str:
    """The machine's own name: in a container that sees it below `root` another one than ours."""
    name = read(root + "/proc/sys/kernel/hostname")
    return name if isinstance(name, str) and name else os.uname().nodename


def said(error: OSError) -> dict[str, str]:
    """An operating system error as it is kept."""
    return {"error": errno.errorcode.get(error.errno or errno.EIO, "EIO") + ": " + (error.strerror or str(error))}


def names(path: str) -> Any:
    """A listing of names only: reading the files below would take the driver's locks."""
    try:
        return sorted(os.listdir(path))
    except OSError as error:
        return said(error)


def spread(value: Any, depth: int = 0, limit: int = 4) -> str:
    """JSON that a person can read: one call a line."""
    pad = " " * (depth + 1)
    if isinstance(value, dict) and value and depth < limit and "error" not in value:
        rows = [pad + json.dumps(str(k)) + ": " + spread(v, depth + 1, limit) for k, v in value.items()]
        return "{\n" + ",\n".join(rows) + "\n" + " " * depth + "}"
    if isinstance(value, list) and depth < limit - 1 and any(isinstance(v, dict) for v in value):
        return "[\n" + ",\n".join(pad + spread(v, depth + 1, limit) for v in value) + "\n" + " " * depth + "]"
    return json.dumps(value)


def leave(document: dict[str, Any]) -> None:
    """Print, and go without waiting for any thread. Standard output is closed first: a thread that sleeps in
    the driver keeps the process, but must not keep whoever reads from it."""
    data = (spread(copied(document)) + "\n").encode("utf-8", "surrogateescape")
    with contextlib.suppress(OSError):
        while data:
            data = data[os.write(1, data) :]
    for handle in (1, 2):
        with contextlib.suppress(OSError):
            os.close(handle)
    os._exit(0)


def collect(options: argparse.Namespace, until: float) -> dict[str, Any]:
    """The document."""
    root = options.root.rstrip("/")
    out: dict[str, Any] = {
        "schema": SCHEMA,
        "host": host_name(root),
        "at_ns": time.time_ns(),
        "boot_id": read(root + "/proc/sys/kernel/random/boot_id"),
        "quick": options.quick,
        "proc_gpus": names(root + "/proc/driver/nvidia/gpus"),
        "kernel_module": read(root + "/sys/module/nvidia/version"),
        "calls": {},
    }
    try:
        import pynvml as nvml  # type: ignore[import-untyped]
    except ImportError as error:
        out["pynvml"] = {"error": "ImportError: " + str(error)[:200]}
        out["pci"] = display_devices(root)
        return out
    first = Asker(nvml)
    counted: list[int | None] = []
    opening = threading.Thread(target=lambda: counted.append(start(first, root, out)), daemon=True)
    opening.start()
    opening.join(max(until - time.monotonic(), 0))
    hung: list[dict[str, Any]] = []
    out["hung"] = hung
    if not counted:
        call, since = first.now or ("nvmlInitWithFlags", time.monotonic())
        hung.append(
            {"device": None, "call": call, "seconds": round(time.monotonic() - since, 2), **waits([opening])[0]}
        )
        return out
    devices = [Device(nvml, i, options.quick, options.window) for i in range(counted[0] or 0)]
    threads = [threading.Thread(target=d.run, daemon=True) for d in devices]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(max(until - time.monotonic(), 0))
    out["devices"] = []
    late = [(d, t) for d, t in zip(devices, threads) if not d.done]  # noqa: B905  # Python 3.8
    seen_of = dict(zip((d.index for d, _ in late), waits([t for _, t in late])))  # noqa: B905
    for device in devices:
        now, seen = device.now, copied(device.out)
        if not device.done:
            call, since = now or ("(between two calls)", time.monotonic())
            hung.append(
                {
                    "device": device.index,
                    "call": call,
                    "seconds": round(time.monotonic() - since, 2),
                    **seen_of.get(device.index, {}),
                }
            )
        else:
            seen["seconds"] = round(device.seconds, 4)
            seen["slowest"] = {"call": device.slowest[0], "seconds": round(device.slowest[1], 4)}
        out["devices"].append(seen)
    return out


def waits(threads: list[threading.Thread]) -> list[dict[str, Any]]:
    """What each thread that does not come back does: its state, the kernel function in which it sleeps, and for what share of
    a moment it was awake. One that runs, or waits for a CPU, hangs nowhere."""
    folders = ["/proc/self/task/" + str(t.native_id) for t in threads]
    began, before = time.monotonic(), [awake(f) for f in folders]
    if threads:
        time.sleep(GLANCE)
    out = []
    for folder, earlier in zip(folders, before):  # noqa: B905  # Python 3.8
        now, took, state, where = (
            awake(folder),
            time.monotonic() - began,
            read(folder + "/stat"),
            read(folder + "/wchan"),
        )
        one: dict[str, Any] = {}
        if isinstance(state, str):
            one["state"] = state.rpartition(")")[2].strip()[:1]
        if isinstance(where, str) and where not in ("", "0"):
            one["where"] = where
        if earlier is not None and now is not None and took > 0:
            one["awake"] = round((now - earlier) / took, 3)
        out.append(one)
    return out


def awake(folder: str) -> float | None:
    """Seconds that a thread has been on a CPU or waited for one; None where the kernel does not say."""
    try:
        with open(folder + "/schedstat") as file:
            fields = file.read().split()
        return (int(fields[0]) + int(fields[1])) / 1e9
    except (OSError, ValueError, IndexError):
        return None


def copied(value: Any) -> Any:
    """A copy that the device's thread does not go on writing to."""
    if isinstance(value, dict):
        return {k: copied(v) for k, v in list(value.items())}
    return [copied(v) for v in list(value)] if isinstance(value, list) else value


def main() -> None:
    """Collect, print, leave."""
    begun = time.monotonic()
    parser = argparse.ArgumentParser()
    parser.add_argument("--deadline", type=float, default=20.0)
    parser.add_argument("--root", default="")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--window", type=float, default=WINDOW)
    options = parser.parse_args()
    leave(collect(options, begun + max(options.deadline - MARGIN, 0.05)))


if __name__ == "__main__":
    main()
