"""Which fact each NVML call answers, and in what unit. The facts are those of nvidia-smi's report."""

from __future__ import annotations

from knowledge.record import dataclass
from probes.parse._nvml_values import (
    MIB,
    Take,
    ber,
    flag,
    length,
    member,
    number,
    pci,
    pstate,
    result,
    text,
    told,
    two_bits,
    uuid,
    version2,
    words,
)
from probes.parse._smi_fields import MASK_BITS


@dataclass(frozen=True, slots=True)
class Row:
    """One fact: the calls that can tell it (the first that has a value wins), and how the value is read."""

    fact: str
    calls: tuple[str, ...]
    take: Take
    live: bool = False  # read from the device now: a GPU that is gone cannot answer it


def _row(fact: str, call: str, take: Take, *, live: bool = False) -> Row:
    return Row(fact, (call,), take, live)


BRANDS = {
    1: "quadro", 2: "tesla", 3: "nvs", 4: "grid", 5: "geforce", 6: "titan", 7: "nvidia_virtual_applications",
    8: "nvidia_virtual_pc", 9: "nvidia_virtual_compute_server", 10: "nvidia_rtx_virtual_workstation",
    11: "nvidia_cloud_gaming", 12: "quadro_rtx", 13: "nvidia_rtx", 14: "nvidia", 15: "geforce_rtx", 16: "titan_rtx",
}  # fmt: skip
ARCHITECTURES = {
    2: "kepler", 3: "maxwell", 4: "pascal", 5: "volta", 6: "turing", 7: "ampere", 8: "ada_lovelace", 9: "hopper",
    10: "blackwell", 13: "rubin",
}  # fmt: skip
COMPUTE_MODES = {0: "default", 1: "exclusive_thread", 2: "prohibited", 3: "exclusive_process"}
VIRTUALIZATION = {0: "none", 1: "pass_through", 2: "vgpu", 3: "host_vgpu", 4: "host_vsga"}
RECOVERY = {
    0: "none", 1: "gpu_reset", 2: "node_reboot", 3: "drain_p2p", 4: "drain_and_reset", 5: "recover_imex",
    6: "bus_reset", 7: "system_reboot",
}  # fmt: skip
_CONFIGURATION: dict[int, str | bool] = {
    1: "none", 2: "incorrect_sysguid", 3: "incorrect_chassis_serial", 4: "no_partition", 5: "insufficient_nvlinks",
    6: "incompatible_firmware", 7: "invalid_location",
}  # fmt: skip
_IS: dict[int, str | bool] = {1: True, 2: False}

_MEMORY = ("nvmlDeviceGetMemoryInfo_v2", "nvmlDeviceGetMemoryInfo")
_mib = number(1 / MIB)
_watts = number(1e-3, whole=False)
_us = number(1e-3)  # NVML counts nanoseconds
_IDENTITY = (
    _row("gpu.name", "nvmlDeviceGetName", text),
    _row("gpu.brand", "nvmlDeviceGetBrand", words(BRANDS)),
    _row("gpu.architecture", "nvmlDeviceGetArchitecture", words(ARCHITECTURES)),
    _row("gpu.uuid", "nvmlDeviceGetUUID", text),
    _row("gpu.serial", "nvmlDeviceGetSerial", text),
    _row("gpu.pci", "nvmlDeviceGetPciInfo_v3", pci),
    _row("gpu.minor", "nvmlDeviceGetMinorNumber", number()),
    _row("gpu.module", "nvmlDeviceGetModuleId", number()),
    _row("gpu.vbios", "nvmlDeviceGetVbiosVersion", text),
    _row("gpu.board_part_number", "nvmlDeviceGetBoardPartNumber", text),
    _row("gpu.inforom.image", "nvmlDeviceGetInforomImageVersion", text),
    _row("gpu.inforom.ecc", "nvmlDeviceGetInforomVersion(ECC)", text),
    _row("gpu.gsp.firmware", "nvmlDeviceGetGspFirmwareVersion", text),
    _row("gpu.gsp.enabled", "nvmlDeviceGetGspFirmwareMode", member(0, flag)),
    _row("gpu.compute_capability", "nvmlDeviceGetCudaComputeCapability", version2),
)
_MODES = (
    _row("gpu.persistence_mode", "nvmlDeviceGetPersistenceMode", flag),
    _row("gpu.compute_mode", "nvmlDeviceGetComputeMode", words(COMPUTE_MODES)),
    _row("gpu.addressing_mode", "nvmlDeviceGetAddressingMode", words({0: "none", 1: "hmm", 2: "ats"})),
    _row("gpu.accounting_mode", "nvmlDeviceGetAccountingMode", flag),
    _row("gpu.c2c_mode", "nvmlDeviceGetC2cModeInfoV", member("isC2cEnabled", flag)),
    _row("gpu.display.active", "nvmlDeviceGetDisplayActive", flag),
    _row("gpu.display.attached", "nvmlDeviceGetDisplayMode", flag),
    _row("gpu.ecc.mode", "nvmlDeviceGetEccMode", member(0, flag)),
    _row("gpu.ecc.mode.pending", "nvmlDeviceGetEccMode", member(1, flag)),
    _row("gpu.mig.mode", "nvmlDeviceGetMigMode", member(0, flag)),
    _row("gpu.mig.mode.pending", "nvmlDeviceGetMigMode", member(1, flag)),
    _row("gpu.virtualization", "nvmlDeviceGetVirtualizationMode", words(VIRTUALIZATION)),
    _row("gpu.draining", "nvmlDeviceQueryDrainState", flag),
    _row("gpu.performance_state", "nvmlDeviceGetPerformanceState", pstate, live=True),
    _row("gpu.fan.speed", "nvmlDeviceGetFanSpeed", number()),
    _row("gpu.recovery_action", "NVML_FI_DEV_GET_GPU_RECOVERY_ACTION", words(RECOVERY, "unknown")),
    _row("gpu.reset_required", "NVML_FI_DEV_RESET_STATUS", flag),
    _row("gpu.drain_and_reset_recommended", "NVML_FI_DEV_DRAIN_AND_RESET_STATUS", flag),
)
_PCIE = (
    _row("gpu.pcie.gen", "nvmlDeviceGetCurrPcieLinkGeneration", number()),
    _row("gpu.pcie.gen.max", "nvmlDeviceGetMaxPcieLinkGeneration", number()),
    _row("gpu.pcie.gen.device_max", "nvmlDeviceGetGpuMaxPcieLinkGeneration", number()),
    _row("gpu.pcie.width", "nvmlDeviceGetCurrPcieLinkWidth", number()),
    _row("gpu.pcie.width.max", "nvmlDeviceGetMaxPcieLinkWidth", number()),
    Row("gpu.pcie.replay", ("nvmlDeviceGetPcieReplayCounter", "NVML_FI_DEV_PCIE_REPLAY_COUNTER"), number()),
    _row("gpu.pcie.replay_rollover", "NVML_FI_DEV_PCIE_REPLAY_ROLLOVER_COUNTER", number()),
    _row("gpu.pcie.recoveries", "NVML_FI_DEV_PCIE_L0_TO_RECOVERY_COUNTER", number()),
    *(_row(f"gpu.pcie.errors.{fact}", f"NVML_FI_DEV_PCIE_COUNT_{name}", number()) for fact, name in (
        ("correctable", "CORRECTABLE_ERRORS"), ("nonfatal", "NON_FATAL_ERROR"), ("fatal", "FATAL_ERROR"),
        ("unsupported_request", "UNSUPPORTED_REQ"), ("bad_tlp", "BAD_TLP"), ("bad_dllp", "BAD_DLLP"),
        ("receiver", "RECEIVER_ERROR"), ("lcrc", "LCRC_ERROR"), ("lane", "LANE_ERROR"),
        ("naks_received", "NAKS_RECEIVED"), ("naks_sent", "NAKS_SENT"))),
)  # fmt: skip
_USE = (
    *(Row(f"gpu.memory.{part}", _MEMORY if part != "reserved" else _MEMORY[:1], member(part, _mib), part != "total")
      for part in ("total", "used", "free", "reserved")),
    *(_row(f"gpu.bar1.{part}", "nvmlDeviceGetBAR1MemoryInfo", member(f"bar1{part.capitalize()}", _mib))
      for part in ("total", "used", "free")),
    _row("gpu.utilization.core", "nvmlDeviceGetUtilizationRates", member("gpu", number()), live=True),
    _row("gpu.utilization.memory", "nvmlDeviceGetUtilizationRates", member("memory", number()), live=True),
    *(_row(f"gpu.utilization.{fact}", f"nvmlDeviceGet{name}Utilization", member(0, number()), live=True)
      for fact, name in (("encoder", "Encoder"), ("decoder", "Decoder"), ("jpeg", "Jpg"), ("ofa", "Ofa"))),
)  # fmt: skip
_TEMPERATURE = (
    _row("gpu.temperature.core", "nvmlDeviceGetTemperature(GPU)", number(), live=True),
    _row("gpu.temperature.memory", "NVML_FI_DEV_MEMORY_TEMP", number(), live=True),
    *(_row(f"gpu.temperature.{fact}", f"nvmlDeviceGetTemperatureThreshold({name})", number()) for fact, name in (
        ("shutdown", "SHUTDOWN"), ("slowdown", "SLOWDOWN"), ("max_operating", "GPU_MAX"),
        ("memory_max_operating", "MEM_MAX"), ("target", "ACOUSTIC_CURR"))),
    _row("gpu.temperature.tlimit", "nvmlDeviceGetMarginTemperature", number()),
    *(_row(f"gpu.temperature.tlimit_{fact}", f"NVML_FI_DEV_TEMPERATURE_{name}_TLIMIT", number())
      for fact, name in (("shutdown", "SHUTDOWN"), ("slowdown", "SLOWDOWN"), ("max_operating", "GPU_MAX"))),
)  # fmt: skip
_POWER = (
    _row("gpu.power.draw", "nvmlDeviceGetPowerUsage", _watts, live=True),
    _row("gpu.power.draw.instant", "NVML_FI_DEV_POWER_INSTANT[0]", _watts, live=True),
    _row("gpu.power.limit", "nvmlDeviceGetEnforcedPowerLimit", _watts),
    _row("gpu.power.limit.requested", "nvmlDeviceGetPowerManagementLimit", _watts),
    _row("gpu.power.limit.default", "nvmlDeviceGetPowerManagementDefaultLimit", _watts),
    _row("gpu.power.limit.min", "nvmlDeviceGetPowerManagementLimitConstraints", member(0, _watts)),
    _row("gpu.power.limit.max", "nvmlDeviceGetPowerManagementLimitConstraints", member(1, _watts)),
    Row("gpu.power.module.draw", ("NVML_FI_DEV_POWER_AVERAGE[1]", "NVML_FI_DEV_POWER_INSTANT[1]"), _watts, live=True),
    _row("gpu.power.module.limit", "NVML_FI_DEV_POWER_CURRENT_LIMIT[1]", _watts),
    _row("gpu.power.module.limit.default", "NVML_FI_DEV_POWER_DEFAULT_LIMIT[1]", _watts),
    _row("gpu.power.module.limit.max", "NVML_FI_DEV_POWER_MAX_LIMIT[1]", _watts),
    _row("gpu.power.memory.draw", "NVML_FI_DEV_POWER_AVERAGE[2]", _watts, live=True),
    _row("gpu.energy", "nvmlDeviceGetTotalEnergyConsumption", number(1e-3, whole=False)),
)
_CLOCKS = (
    *(row for fact, name in (("graphics", "GRAPHICS"), ("sm", "SM"), ("memory", "MEM"), ("video", "VIDEO")) for row in (
        _row(f"gpu.clock.{fact}", f"nvmlDeviceGetClockInfo({name})", number(), live=True),
        _row(f"gpu.clock.{fact}.max", f"nvmlDeviceGetMaxClockInfo({name})", number()))),
    _row("gpu.clock.application.graphics", "nvmlDeviceGetApplicationsClock(GRAPHICS)", number()),
    _row("gpu.clock.application.memory", "nvmlDeviceGetApplicationsClock(MEM)", number()),
    _row("gpu.clock.application.graphics.default", "nvmlDeviceGetDefaultApplicationsClock(GRAPHICS)", number()),
    *(_row(f"gpu.clock.event_time.{fact}", f"NVML_FI_DEV_{name}", _us) for fact, name in (
        ("sw_power_cap", "PERF_POLICY_POWER"), ("sync_boost", "PERF_POLICY_SYNC_BOOST"),
        ("sw_thermal", "CLOCKS_EVENT_REASON_SW_THERM_SLOWDOWN"),
        ("hw_thermal", "CLOCKS_EVENT_REASON_HW_THERM_SLOWDOWN"),
        ("hw_power_brake", "CLOCKS_EVENT_REASON_HW_POWER_BRAKE_SLOWDOWN"))),
    *(_row(f"gpu.violation.{name.lower()}", f"nvmlDeviceGetViolationStatus({name})", member("violationTime", _us))
      for name in ("POWER", "THERMAL", "SYNC_BOOST", "BOARD_LIMIT", "LOW_UTILIZATION", "RELIABILITY")),
)  # fmt: skip
_SRAM = "nvmlDeviceGetSramEccErrorStatus"
_HEALTH = (
    *(_row(f"gpu.ecc.{window}.{kind}.total", f"nvmlDeviceGetTotalEccErrors({kind.upper()}, {window.upper()})", number())
      for window in ("volatile", "aggregate") for kind in ("corrected", "uncorrected")),
    *(_row(f"gpu.ecc.{window}.{kind}.{place}",
           f"nvmlDeviceGetMemoryErrorCounter({kind.upper()}, {window.upper()}, {place.upper()})", number())
      for window in ("volatile", "aggregate") for kind in ("corrected", "uncorrected") for place in ("dram", "sram")),
    *(_row(f"gpu.ecc.{window}.uncorrected.sram_{fact}", _SRAM, member(f"{window}Unc{name}", number()))
      for window in ("volatile", "aggregate") for fact, name in (("parity", "Parity"), ("secded", "SecDed"))),
    *(_row(f"gpu.ecc.aggregate.uncorrected.sram_source.{name.lower()}", _SRAM,
           member(f"aggregateUncBucket{name}", number())) for name in ("L2", "Sm", "Mcu", "Pcie", "Other")),
    _row("gpu.ecc.sram_threshold_exceeded", _SRAM, member("bThresholdExceeded", flag)),
    _row("gpu.repair.channel_pending", "nvmlDeviceGetRepairStatus", member(0, flag)),
    _row("gpu.repair.tpc_pending", "nvmlDeviceGetRepairStatus", member(1, flag)),
    _row("gpu.memory.unrepairable", "nvmlDeviceGetUnrepairableMemoryFlag_v1", flag),
    _row("gpu.retired_pages.single_bit", "nvmlDeviceGetRetiredPages(MULTIPLE_SINGLE_BIT_ECC_ERRORS)", length),
    _row("gpu.retired_pages.double_bit", "nvmlDeviceGetRetiredPages(DOUBLE_BIT_ECC_ERROR)", length),
    _row("gpu.retired_pages.pending", "nvmlDeviceGetRetiredPagesPendingStatus", flag),
    _row("gpu.row_remap.correctable", "nvmlDeviceGetRemappedRows", member(0, number())),
    _row("gpu.row_remap.uncorrectable", "nvmlDeviceGetRemappedRows", member(1, number())),
    _row("gpu.row_remap.pending", "nvmlDeviceGetRemappedRows", member(2, flag)),
    _row("gpu.row_remap.failure", "nvmlDeviceGetRemappedRows", member(3, flag)),
    *(_row(f"gpu.row_remap.banks.{level}", "nvmlDeviceGetRowRemapperHistogram", member(level, number()))
      for level in ("max", "high", "partial", "low", "none")),
)  # fmt: skip
FABRIC_CALLS = ("nvmlDeviceGetGpuFabricInfoV(v3)", "nvmlDeviceGetGpuFabricInfoV(v2)", "nvmlDeviceGetGpuFabricInfo")


def _fabric(fact: str, name: str, take: Take) -> Row:
    return Row(f"gpu.fabric.{fact}", FABRIC_CALLS, member(name, take))


FABRIC = (
    _fabric("state", "state", words({0: "not_supported", 1: "not_started", 2: "in_progress", 3: "completed"})),
    _fabric("status", "status", result),
    _fabric("clique", "cliqueId", number()),
    _fabric("cluster", "clusterUuid", uuid),
    _fabric("health.summary", "healthSummary", told({1: "healthy", 2: "unhealthy", 3: "limited_capacity"})),
    _fabric("health.bandwidth", "healthMask", two_bits(0, {1: "degraded", 2: "full"})),
    _fabric("health.route_recovery", "healthMask", two_bits(2, _IS)),
    _fabric("health.route_unhealthy", "healthMask", two_bits(4, _IS)),
    _fabric("health.access_timeout", "healthMask", two_bits(6, _IS)),
    _fabric("health.configuration", "healthMask", two_bits(8, _CONFIGURATION)),
    _fabric("health.partition_assigned", "healthMask", two_bits(12, _IS)),
    _fabric("health.manager_connected", "healthMask", two_bits(14, _IS)),
)

GPU: tuple[Row, ...] = (*_IDENTITY, *_MODES, *_PCIE, *_USE, *_TEMPERATURE, *_POWER, *_CLOCKS, *_HEALTH)

EVENT_REASONS = {f"gpu.clock.event.{name}": bit for name, bit in MASK_BITS.items()}

MIG: tuple[Row, ...] = (
    _row("mig.uuid", "nvmlDeviceGetUUID", text),
    _row("mig.sm_count", "nvmlDeviceGetAttributes_v2", member("multiprocessorCount", number())),
    _row("mig.ecc.volatile.uncorrected.sram", "nvmlDeviceGetMemoryErrorCounter(UNCORRECTED, VOLATILE, SRAM)", number()),
    *(Row(f"mig.memory.{part}", _MEMORY, member(part, _mib)) for part in ("total", "used", "free")),
)

# GPM metric -> the end of the fact's name, and how it is read.
ACTIVITY: tuple[tuple[str, str], ...] = (
    ("GRAPHICS_UTIL", "graphics"), ("SM_UTIL", "sm"), ("SM_OCCUPANCY", "sm_occupancy"), ("ANY_TENSOR_UTIL", "tensor"),
    ("DRAM_BW_UTIL", "dram"), ("FP64_UTIL", "fp64"), ("FP32_UTIL", "fp32"), ("FP16_UTIL", "fp16"),
)  # fmt: skip
# Fact, the call that counts it where there is one, the GPM metric.
RATES: tuple[tuple[str, str, str], ...] = (
    ("gpu.nvlink.tx", "", "NVLINK_TOTAL_TX_PER_SEC"), ("gpu.nvlink.rx", "", "NVLINK_TOTAL_RX_PER_SEC"),
    ("gpu.pcie.tx", "nvmlDeviceGetPcieThroughput(TX)", "PCIE_TX_PER_SEC"),
    ("gpu.pcie.rx", "nvmlDeviceGetPcieThroughput(RX)", "PCIE_RX_PER_SEC"),
)  # fmt: skip
percent = number(whole=False)
gigabytes = number(MIB / 1e9, whole=False)  # GPM counts MiB a second
kilobytes = number(1e-6, whole=False)  # nvmlDeviceGetPcieThroughput: KB/s -> GB/s

VERSIONS = {1: "1.0", 2: "2.0", 3: "2.2", 4: "3.0", 5: "3.1", 6: "4.0", 7: "5.0", 8: "6.0"}
LINK: tuple[Row, ...] = (
    _row("link.version", "nvmlDeviceGetNvLinkVersion", words(VERSIONS)),
    _row("link.p2p", "nvmlDeviceGetNvLinkCapability(P2P_SUPPORTED)", flag),
    _row("link.remote", "nvmlDeviceGetNvLinkRemotePciInfo", pci),
    _row("link.remote.kind", "nvmlDeviceGetNvLinkRemoteDeviceType", words({0: "gpu", 1: "cpu", 2: "switch"})),
)
# Of a link that is up; "[n]" is put behind the name of a field. Which of them are asked for depends on the generation.
LINK_UP: tuple[Row, ...] = (
    _row("link.speed", "NVML_FI_DEV_NVLINK_GET_SPEED", number(1e-3, whole=False)),
    *(Row(f"link.errors.{fact}", (f"nvmlDeviceGetNvLinkErrorCounter({call})", *more), number()) for fact, call, more in (
        ("replay", "REPLAY", ("NVML_FI_DEV_NVLINK_ERROR_DL_REPLAY",)),
        ("recovery", "RECOVERY", ("NVML_FI_DEV_NVLINK_ERROR_DL_RECOVERY",)),
        ("crc_flit", "CRC_FLIT", ("NVML_FI_DEV_NVLINK_ERROR_DL_CRC",)), ("crc_data", "CRC_DATA", ()))),
    *(_row(f"link.{fact}", f"NVML_FI_DEV_NVLINK_COUNT_{name}", number()) for fact, name in (
        ("errors.malformed_packet", "MALFORMED_PACKET_ERRORS"), ("errors.buffer_overrun", "BUFFER_OVERRUN_ERRORS"),
        ("errors.rx", "RCV_ERRORS"), ("errors.rx_remote", "RCV_REMOTE_ERRORS"),
        ("errors.rx_general", "RCV_GENERAL_ERRORS"), ("errors.integrity", "LOCAL_LINK_INTEGRITY_ERRORS"),
        ("errors.tx_discards", "XMIT_DISCARDS"), ("errors.effective", "EFFECTIVE_ERRORS"),
        ("errors.symbol", "SYMBOL_ERRORS"), ("recovery.successful", "LINK_RECOVERY_SUCCESSFUL_EVENTS"),
        ("recovery.failed", "LINK_RECOVERY_FAILED_EVENTS"))),
    _row("link.ber.effective", "NVML_FI_DEV_NVLINK_COUNT_EFFECTIVE_BER", ber),
    _row("link.ber.symbol", "NVML_FI_DEV_NVLINK_COUNT_SYMBOL_BER", ber),
)  # fmt: skip
