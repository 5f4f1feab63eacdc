"""The one table of nvidia-smi fields: where each fact stands in a report, and how it is read.

A row serves ``-q`` text and ``-q -x`` XML (`paths`, in the spelling of `_smi_tree.key`) and
``--query-gpu`` CSV (`csv`). Several paths are the spellings of driver generations 340 to 590
or, where a value was split, alternatives: the first that has a value wins.
Path names: nvidia-smi(1) and the DTDs nvsmi_device_v10 to v13.
"""

from __future__ import annotations

from knowledge.record import dataclass
from probes.parse._smi_values import (
    Convert,
    Reading,
    absent,
    boolean,
    enumeration,
    not_understood,
    outcome,
    parse_number,
    pci_value,
    pstate,
    quantity,
    slug_value,
    text_value,
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Field:
    """One fact: its places in a report and its reading. `unit` is what CSV leaves out."""

    fact: str
    convert: Convert
    paths: tuple[str, ...] = ()
    csv: tuple[str, ...] = ()
    unit: str = ""
    dynamic: bool = False  # read from the device now; a lost GPU cannot answer it


celsius = quantity({"C": 1}, whole=True)
watts = quantity({"W": 1, "mW": 1e-3})
megahertz = quantity({"MHz": 1}, whole=True)
mebibytes = quantity({"MiB": 1, "MB": 1, "GiB": 1024, "KiB": 1 / 1024}, whole=True)  # "MB" of old drivers is 2^20
percent = quantity({"%": 1}, whole=True)
microseconds = quantity({"us": 1}, whole=True)
gigabytes_per_second = quantity({"KB/s": 1e-6, "MB/s": 1e-3, "GB/s": 1})
count = quantity({"": 1, "bank(s)": 1}, whole=True)
lanes = quantity({"": 1, "x": 1}, whole=True)

recovery_action = enumeration({
    "none": "none", "reset": "gpu_reset", "gpu_reset": "gpu_reset", "gpu_reset_required": "gpu_reset",
    "reboot": "node_reboot", "node_reboot": "node_reboot", "node_reboot_required": "node_reboot",
    "os_reboot": "node_reboot", "drain_p2p": "drain_p2p", "drain_and_reset": "drain_and_reset",
    "drain_reset": "drain_and_reset", "recover_imex": "recover_imex", "recover_imex_domain": "recover_imex",
    "bus_reset": "bus_reset", "system_reboot": "system_reboot",
})  # fmt: skip
compute_mode = enumeration({
    "default": "default", "exclusive_thread": "exclusive_thread", "e_thread": "exclusive_thread",
    "exclusive_process": "exclusive_process", "e_process": "exclusive_process", "prohibited": "prohibited",
})  # fmt: skip
addressing_mode = enumeration({"none": "none", "hmm": "hmm", "ats": "ats"})
virtualization = enumeration({
    "none": "none", "pass_through": "pass_through", "passthrough": "pass_through", "vgpu": "vgpu",
    "host_vgpu": "host_vgpu", "host_vsga": "host_vsga", "vsga": "host_vsga",
})  # fmt: skip
fabric_state = enumeration({
    "not_supported": "not_supported", "not_started": "not_started", "in_progress": "in_progress",
    "completed": "completed",
})  # fmt: skip
fabric_summary = enumeration({
    "healthy": "healthy", "unhealthy": "unhealthy", "limited_capacity": "limited_capacity",
})  # fmt: skip
fabric_bandwidth = enumeration({"full": "full", "degraded": "degraded", "true": "degraded", "false": "full"})
fabric_configuration = enumeration({
    "none": "none", "false": "none", "incorrect_sysguid": "incorrect_sysguid",
    "incorrect_chassis_serial_number": "incorrect_chassis_serial", "incorrect_chassis_s_n": "incorrect_chassis_serial",
    "no_partition": "no_partition", "insufficient_nvlinks": "insufficient_nvlinks",
    "incompatible_gpu_fw": "incompatible_firmware", "incompatible_gpu_firmware": "incompatible_firmware",
    "invalid_location": "invalid_location",
})  # fmt: skip


def yes_or_count(text: str) -> Reading:
    """``Yes``/``No``, or the number of pending pages that some drivers print."""
    parsed = parse_number(text)
    return Reading(parsed[0] > 0) if parsed is not None and not parsed[1] and parsed[0] > 1 else boolean(text)


def event_reason(text: str) -> Reading:
    """``Active``, ``Not Active``; old drivers print ``Unknown`` when the reason cannot be told."""
    return absent(text) or boolean(text)


def licensed(text: str) -> Reading:
    """``Licensed (Expiry: ...)`` or ``Unlicensed (...)``."""
    if reading := absent(text):
        return reading
    word = text.strip().lower()
    if word.startswith(("licensed", "unlicensed")):
        return Reading(word.startswith("licensed"))
    return not_understood(text, "licensed or unlicensed")


def _ecc(window: str, kind: str, old: str) -> list[Field]:
    """ECC counters; drivers before Turing's layout print ``Single Bit``/``Double Bit`` by location."""
    severity = "correctable" if kind == "corrected" else "uncorrectable"
    where, name = f"ecc_errors/{window}", f"gpu.ecc.{window}.{kind}"
    query = f"ecc.errors.{kind}.{window}"
    return [
        Field(f"{name}.dram", count, (f"{where}/dram_{severity}", f"{where}/{old}/device_memory"),
              (f"{query}.dram", f"{query}.device_memory"), dynamic=True),
        Field(f"{name}.sram", count, (f"{where}/sram_{severity}",), (f"{query}.sram",), dynamic=True),
        Field(f"{name}.total", count, (f"{where}/{old}/total",), (f"{query}.total",), dynamic=True),
    ]  # fmt: skip


def _power(fact: str, sections: tuple[str, ...], prefix: str = "", queries: tuple[str, ...] = ()) -> list[Field]:
    """Draw and limits. ``Power Limit`` of old drivers is the requested one; the enforced one is what counts."""

    def at(*names: str) -> tuple[str, ...]:
        return tuple(f"{section}/{name}" for section in sections for name in names)

    return [
        Field(f"{fact}.draw", watts, at("power_draw", "average_power_draw", "instantaneous_power_draw",
              "instant_power_draw"), (*queries, f"{prefix}power.draw.average", f"{prefix}power.draw.instant"),
              "W", dynamic=True),
        Field(f"{fact}.limit", watts, at("current_power_limit", "enforced_power_limit"),
              (f"{prefix}enforced.power.limit", f"{prefix}power.current_limit"), "W"),
        Field(f"{fact}.limit.default", watts, at("default_power_limit"), (f"{prefix}power.default_limit",), "W"),
        Field(f"{fact}.limit.max", watts, at("max_power_limit"), (f"{prefix}power.max_limit",), "W"),
    ]  # fmt: skip


_REASONS = (
    ("idle", ("idle", "gpu_idle"), "gpu_idle"),
    ("app_clocks", ("applications_clocks_setting",), "applications_clocks_setting"),
    ("sw_power_cap", ("sw_power_cap",), "sw_power_cap"),
    ("hw_slowdown", ("hw_slowdown",), "hw_slowdown"),
    ("hw_thermal", ("hw_slowdown/hw_thermal_slowdown", "hw_thermal_slowdown"), "hw_thermal_slowdown"),
    ("hw_power_brake", ("hw_slowdown/hw_power_brake_slowdown", "hw_power_brake_slowdown"), "hw_power_brake_slowdown"),
    ("sync_boost", ("sync_boost",), "sync_boost"),
    ("sw_thermal", ("sw_thermal_slowdown",), "sw_thermal_slowdown"),
    ("display", ("display_clock_setting", "display_clocks_setting"), "display_clocks_setting"),
)
# The same reasons as bits of the one word that --query-gpu prints (NVML, nvmlClocksEventReasons).
MASKS = ("clocks_event_reasons.active", "clocks_throttle_reasons.active")
MASK_BITS = {
    "idle": 0x1, "app_clocks": 0x2, "sw_power_cap": 0x4, "hw_slowdown": 0x8, "sync_boost": 0x10, "sw_thermal": 0x20,
    "hw_thermal": 0x40, "hw_power_brake": 0x80, "display": 0x100,
}  # fmt: skip
_REASON_TIMES = (
    ("sw_power_cap", ("sw_power_capping", "sw_power_cap"), "sw_power_cap"),
    ("sync_boost", ("sync_boost",), "sync_boost"),
    ("sw_thermal", ("sw_thermal_slowdown", "sw_therm_slowdown"), "sw_thermal_slowdown"),
    ("hw_thermal", ("hw_thermal_slowdown", "hw_therm_slowdown"), "hw_thermal_slowdown"),
    ("hw_power_brake", ("hw_power_braking", "hw_power_brake"), "hw_power_brake_slowdown"),
)


def _reasons() -> list[Field]:
    section, query = "clocks_event_reasons", ("clocks_event_reasons", "clocks_throttle_reasons")
    out = [
        Field(f"gpu.clock.event.{name}", event_reason, tuple(f"{section}/{p}" for p in paths),
              tuple(f"{q}.{csv}" for q in query), dynamic=True)
        for name, paths, csv in _REASONS
    ]  # fmt: skip
    return out + [
        Field(f"gpu.clock.event_time.{name}", microseconds, tuple(f"{section}_counters/{p}" for p in paths),
              tuple(f"{q}_counters.{csv}" for q in query), "us")
        for name, paths, csv in _REASON_TIMES
    ]  # fmt: skip


def _clocks() -> list[Field]:
    out = []
    for fact, text, xml, short in (
        ("graphics", "graphics", "graphics_clock", "gr"), ("sm", "sm", "sm_clock", "sm"),
        ("memory", "memory", "mem_clock", "mem"), ("video", "video", "video_clock", "video"),
    ):  # fmt: skip
        out.append(Field(f"gpu.clock.{fact}", megahertz, (f"clocks/{text}", f"clocks/{xml}"),
                         (f"clocks.current.{fact}", f"clocks.{short}"), "MHz", dynamic=True))  # fmt: skip
        out.append(Field(f"gpu.clock.{fact}.max", megahertz, (f"max_clocks/{text}", f"max_clocks/{xml}"),
                         (f"clocks.max.{fact}", f"clocks.max.{short}"), "MHz"))  # fmt: skip
        if fact in ("graphics", "memory"):
            out.append(Field(f"gpu.clock.application.{fact}", megahertz,
                             (f"applications_clocks/{text}", f"applications_clocks/{xml}"),
                             (f"clocks.applications.{fact}", f"clocks.applications.{short}"), "MHz"))  # fmt: skip
        if fact == "graphics":
            out.append(Field("gpu.clock.application.graphics.default", megahertz,
                             (f"default_applications_clocks/{text}", f"default_applications_clocks/{xml}"),
                             (f"clocks.default_applications.{fact}", f"clocks.default_applications.{short}"),
                             "MHz"))  # fmt: skip
    return out


def _row_remap() -> list[Field]:
    section, query = "remapped_rows", "remapped_rows"
    old, new = f"{section}/bank_remap_availability_histogram", f"{section}/row_remapper_histogram"
    return [
        Field("gpu.row_remap.correctable", count, (f"{section}/correctable_error", f"{section}/remapped_row_corr"),
              (f"{query}.correctable", f"{query}.sbe")),
        Field("gpu.row_remap.uncorrectable", count, (f"{section}/uncorrectable_error", f"{section}/remapped_row_unc"),
              (f"{query}.uncorrectable", f"{query}.dbe")),
        Field("gpu.row_remap.pending", boolean, (f"{section}/pending", f"{section}/remapped_row_pending"),
              (f"{query}.pending",)),
        Field("gpu.row_remap.failure", boolean,
              (f"{section}/remapping_failure_occurred", f"{section}/remapped_row_failure"), (f"{query}.failure",)),
        *(Field(f"gpu.row_remap.banks.{level}", count,
                (f"{old}/{level}", f"{new}/row_remapper_histogram_{level}"), (f"{query}.histogram.{level}",))
          for level in ("max", "high", "partial", "low", "none")),
    ]  # fmt: skip


def _memory() -> list[Field]:
    return [
        *(Field(f"gpu.memory.{part}", mebibytes, (f"fb_memory_usage/{part}", f"memory_usage/{part}"),
                (f"memory.{part}",), "MiB", dynamic=part != "total")
          for part in ("total", "used", "free", "reserved")),
        *(Field(f"gpu.bar1.{part}", mebibytes, (f"bar1_memory_usage/{part}",), unit="MiB")
          for part in ("total", "used", "free")),
    ]  # fmt: skip


_TEMPERATURES = (
    ("core", ("gpu_current_temp", "gpu_temp", "gpu"), ("temperature.gpu",)),
    ("memory", ("memory_current_temp", "memory_temp"), ("temperature.memory",)),
    ("shutdown", ("gpu_shutdown_temp", "gpu_temp_max_threshold"), ()),
    ("slowdown", ("gpu_slowdown_temp", "gpu_temp_slow_threshold"), ()),
    ("max_operating", ("gpu_max_operating_temp", "gpu_temp_max_gpu_threshold"), ()),
    ("memory_max_operating", ("memory_max_operating_temp", "gpu_temp_max_mem_threshold"), ()),
    ("tlimit", ("gpu_t_limit_temp", "gpu_temp_tlimit"), ("temperature.gpu.tlimit",)),
    ("tlimit_shutdown", ("gpu_shutdown_t_limit_temp", "gpu_temp_max_tlimit_threshold"), ()),
    ("tlimit_slowdown", ("gpu_slowdown_t_limit_temp", "gpu_temp_slow_tlimit_threshold"), ()),
    ("tlimit_max_operating", ("gpu_max_operating_t_limit_temp", "gpu_temp_max_gpu_tlimit_threshold"), ()),
    ("target", ("gpu_target_temperature",), ()),
)
_UTILIZATION = (
    ("core", "gpu"), ("memory", "memory"), ("encoder", "encoder"), ("decoder", "decoder"), ("jpeg", "jpeg"),
    ("ofa", "ofa"),
)  # fmt: skip

_IDENTITY = (
    Field("gpu.name", text_value, ("product_name",), ("name", "gpu_name")),
    Field("gpu.brand", slug_value, ("product_brand",)),
    Field("gpu.architecture", slug_value, ("product_architecture",)),
    Field("gpu.uuid", text_value, ("gpu_uuid", "uuid"), ("uuid", "gpu_uuid")),
    Field("gpu.serial", text_value, ("serial_number", "serial"), ("serial", "gpu_serial")),
    Field("gpu.pci", pci_value, ("pci/bus_id", "pci/pci_bus_id"), ("pci.bus_id", "gpu_bus_id")),
    Field("gpu.index", count, (), ("index",)),
    Field("gpu.minor", count, ("minor_number",)),
    Field("gpu.vbios", text_value, ("vbios_version",), ("vbios_version",)),
    Field("gpu.part_number", text_value, ("gpu_part_number",)),
    Field("gpu.module", count, ("platform_info/module_id", "platforminfo/module_id", "module_id", "gpu_module_id"),
          ("platform.module_id",)),
    Field("gpu.inforom.image", text_value, ("inforom_version/image_version", "inforom_version/img_version"),
          ("inforom.img", "inforom.image")),
    Field("gpu.inforom.ecc", text_value, ("inforom_version/ecc_object",), ("inforom.ecc",)),
    Field("gpu.inforom.valid", boolean, (), ("inforom.checksum_validation",)),
    Field("gpu.gsp.firmware", text_value, ("gsp_firmware_version", "gsp_firmware")),
    Field("gpu.compute_capability", text_value, (), ("compute_cap",)),
)  # fmt: skip
_MODES = (
    Field("gpu.persistence_mode", boolean, ("persistence_mode",), ("persistence_mode",)),
    Field("gpu.compute_mode", compute_mode, ("compute_mode",), ("compute_mode",)),
    Field("gpu.addressing_mode", addressing_mode, ("addressing_mode",), ("addressing_mode",)),
    Field("gpu.accounting_mode", boolean, ("accounting_mode",), ("accounting.mode",)),
    Field("gpu.c2c_mode", boolean, ("gpu_c2c_mode", "c2c_mode"), ("c2c.mode",)),
    Field("gpu.display.active", boolean, ("display_active",), ("display_active",)),
    Field("gpu.display.attached", boolean, ("display_attached",), ("display_attached",)),
    Field("gpu.ecc.mode", boolean, ("ecc_mode/current", "ecc_mode/current_ecc"), ("ecc.mode.current",)),
    Field("gpu.ecc.mode.pending", boolean, ("ecc_mode/pending", "ecc_mode/pending_ecc"), ("ecc.mode.pending",)),
    Field("gpu.mig.mode", boolean, ("mig_mode/current", "mig_mode/current_mig"), ("mig.mode.current",)),
    Field("gpu.mig.mode.pending", boolean, ("mig_mode/pending", "mig_mode/pending_mig"), ("mig.mode.pending",)),
    Field("gpu.virtualization", virtualization, ("gpu_virtualization_mode/virtualization_mode",)),
    Field("gpu.vgpu.licensed", licensed, ("vgpu_software_licensed_product/license_status",)),
    Field("gpu.performance_state", pstate, ("performance_state",), ("pstate",), dynamic=True),
    Field("gpu.fan.speed", percent, ("fan_speed",), ("fan.speed",), "%"),
    Field("gpu.recovery_action", recovery_action, ("gpu_recovery_action",), ("gpu_recovery_action",)),
    Field("gpu.reset_required", boolean, ("gpu_reset_status/reset_required",), ("reset_status.reset_required",)),
    Field("gpu.drain_and_reset_recommended", boolean, ("gpu_reset_status/drain_and_reset_recommended",),
          ("reset_status.drain_and_reset_recommended",)),
)  # fmt: skip
_GEN = "pci/gpu_link_info/pcie_generation"
_XGEN = "pci/pci_gpu_link_info/pcie_gen"
_PCIE = (
    Field("gpu.pcie.gen", count, (f"{_GEN}/device_current", f"{_XGEN}/device_current_link_gen", f"{_GEN}/current",
          f"{_XGEN}/current_link_gen"), ("pcie.link.gen.gpucurrent", "pcie.link.gen.current")),
    Field("gpu.pcie.gen.max", count, (f"{_GEN}/max", f"{_XGEN}/max_link_gen"), ("pcie.link.gen.max",)),
    Field("gpu.pcie.gen.device_max", count, (f"{_GEN}/device_max", f"{_XGEN}/max_device_link_gen"),
          ("pcie.link.gen.gpumax",)),
    Field("gpu.pcie.gen.host_max", count, (f"{_GEN}/host_max", f"{_XGEN}/max_host_link_gen"),
          ("pcie.link.gen.hostmax",)),
    Field("gpu.pcie.width", lanes, ("pci/gpu_link_info/link_width/current",
          "pci/pci_gpu_link_info/link_widths/current_link_width"), ("pcie.link.width.current",)),
    Field("gpu.pcie.width.max", lanes, ("pci/gpu_link_info/link_width/max",
          "pci/pci_gpu_link_info/link_widths/max_link_width"), ("pcie.link.width.max",)),
    Field("gpu.pcie.replay", count, ("pci/replays_since_reset", "pci/replay_counter")),
    Field("gpu.pcie.replay_rollover", count, ("pci/replay_number_rollovers", "pci/replay_rollover_counter")),
    Field("gpu.pcie.tx", gigabytes_per_second, ("pci/tx_throughput", "pci/tx_util")),
    Field("gpu.pcie.rx", gigabytes_per_second, ("pci/rx_throughput", "pci/rx_util")),
)  # fmt: skip
_REPAIR = (
    Field("gpu.ecc.sram_threshold_exceeded", boolean, ("ecc_errors/aggregate/sram_threshold_exceeded",),
          ("ecc.errors.uncorrected.aggregate.sram.thresholdexceeded",)),
    *(Field(f"gpu.ecc.{window}.uncorrected.sram_{fact}", count, (f"ecc_errors/{window}/sram_uncorrectable_{path}",
            f"ecc_errors/{window}/sram_uncorrectable_{fact}"), (f"ecc.errors.uncorrected.{window}.sram.{fact}",))
      for window in ("volatile", "aggregate") for fact, path in (("parity", "parity"), ("secded", "sec_ded"))),
    *(Field(f"gpu.ecc.aggregate.uncorrected.sram_source.{fact}", count,
            (f"ecc_errors/aggregate_uncorrectable_sram_sources/sram_{path}",),
            (f"ecc.errors.uncorrected.aggregate.sram.{fact}",))
      for fact, path in (("l2", "l2"), ("sm", "sm"), ("mcu", "microcontroller"), ("pcie", "pcie"),
                         ("other", "other"))),
    Field("gpu.repair.channel_pending", boolean, ("ecc_errors/channel_repair_pending", "channel_repair_pending")),
    Field("gpu.repair.tpc_pending", boolean, ("ecc_errors/tpc_repair_pending", "tpc_repair_pending")),
    Field("gpu.memory.unrepairable", boolean, ("ecc_errors/unrepairable_memory", "unrepairable_memory")),
    Field("gpu.retired_pages.single_bit", count, ("retired_pages/single_bit_ecc",
          "retired_pages/multiple_single_bit_retirement/retired_count"),
          ("retired_pages.single_bit_ecc.count", "retired_pages.sbe")),
    Field("gpu.retired_pages.double_bit", count, ("retired_pages/double_bit_ecc",
          "retired_pages/double_bit_retirement/retired_count"),
          ("retired_pages.double_bit.count", "retired_pages.dbe")),
    Field("gpu.retired_pages.pending", yes_or_count, ("retired_pages/pending_page_blacklist", "retired_pages/pending",
          "retired_pages/pending_blacklist", "retired_pages/pending_retirement"), ("retired_pages.pending",)),
)  # fmt: skip
_FABRIC = (
    Field("gpu.fabric.state", fabric_state, ("fabric/state",), ("fabric.state",)),
    Field("gpu.fabric.status", outcome, ("fabric/status",), ("fabric.status",)),
    Field("gpu.fabric.clique", count, ("fabric/cliqueid",), ("fabric.cliqueid",)),
    Field("gpu.fabric.cluster", text_value, ("fabric/clusteruuid",), ("fabric.clusteruuid",)),
    Field("gpu.fabric.health.summary", fabric_summary, ("fabric/health/summary",), ("fabric.health.summary",)),
    Field("gpu.fabric.health.bandwidth", fabric_bandwidth, ("fabric/health/bandwidth",), ("fabric.health.bandwidth",)),
    Field("gpu.fabric.health.route_recovery", boolean, ("fabric/health/route_recovery_in_progress",),
          ("fabric.health.route_recovery_in_progress",)),
    Field("gpu.fabric.health.route_unhealthy", boolean, ("fabric/health/route_unhealthy",),
          ("fabric.health.route_unhealthy",)),
    Field("gpu.fabric.health.access_timeout", boolean, ("fabric/health/access_timeout_recovery",),
          ("fabric.health.access_timeout_recovery",)),
    Field("gpu.fabric.health.configuration", fabric_configuration, ("fabric/health/incorrect_configuration",),
          ("fabric.health.incorrect_configuration",)),
)  # fmt: skip

GPU: tuple[Field, ...] = (
    *_IDENTITY, *_MODES, *_PCIE, *_memory(),
    *(Field(f"gpu.utilization.{fact}", percent, (f"utilization/{name}", f"utilization/{name}_util"),
            (f"utilization.{name}",), "%", dynamic=True) for fact, name in _UTILIZATION),
    *(Field(f"gpu.temperature.{fact}", celsius, tuple(f"temperature/{p}" for p in paths), csv, "C",
            dynamic=fact in ("core", "memory")) for fact, paths, csv in _TEMPERATURES),
    *_power("gpu.power", ("gpu_power_readings", "power_readings"), queries=("power.draw",)),
    Field("gpu.power.limit.requested", watts, ("gpu_power_readings/requested_power_limit",
          "power_readings/requested_power_limit", "power_readings/power_limit"), ("power.limit",), "W"),
    Field("gpu.power.limit.min", watts, ("gpu_power_readings/min_power_limit", "power_readings/min_power_limit"),
          ("power.min_limit",), "W"),
    Field("gpu.power.draw.instant", watts, ("gpu_power_readings/instantaneous_power_draw",
          "gpu_power_readings/instant_power_draw"), ("power.draw.instant",), "W", dynamic=True),
    Field("gpu.power.memory.draw", watts, ("gpu_memory_power_readings/average_power_draw",
          "gpu_memory_power_readings/power_draw")),
    *_power("gpu.power.module", ("module_power_readings",), "module."),
    *_clocks(), *_reasons(),
    *(row for window in ("volatile", "aggregate")
      for kind, old in (("corrected", "single_bit"), ("uncorrected", "double_bit")) for row in _ecc(window, kind, old)),
    *_REPAIR, *_row_remap(), *_FABRIC,
)  # fmt: skip

MIG: tuple[Field, ...] = (
    Field("mig.index", count, ("index",)),
    Field("mig.sm_count", count, ("device_attributes/shared/multiprocessor_count",)),
    Field("mig.ecc.volatile.uncorrected.sram", count, ("ecc_errors/volatile/sram_uncorrectable",
          "ecc_error_count/volatile_count/sram_uncorrectable")),
    *(Field(f"mig.memory.{part}", mebibytes,
            (f"shared_fb_memory_usage/{part}", f"fb_memory_usage/{part}")) for part in ("total", "used", "free")),
)  # fmt: skip

HEAD: tuple[Field, ...] = (
    Field("node.driver.version", text_value, ("driver_version",), ("driver_version",)),
    Field("node.cuda.version", text_value, ("cuda_version",)),
    Field("node.gpu.count", count, ("attached_gpus",), ("count",)),
)  # fmt: skip

BY_CSV: dict[str, Field] = {name: row for row in (*HEAD, *GPU) for name in row.csv}
