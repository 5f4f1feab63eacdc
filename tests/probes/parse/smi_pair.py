"""One machine, printed twice: the same values as ``nvidia-smi -q`` text and as ``-q -x`` XML.

`LAYOUT` lists the fields of driver 590 (depth, text label, XML tag, value); tests vary the
values. A value of None opens a section. What is a child in one output and a sibling in the
other (slowdown reasons, retired pages) is written with its own depths.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import NamedTuple


class Row(NamedTuple):
    """One field or section in both outputs."""

    depth: int
    label: str
    tag: str
    value: str | None = None
    xml_depth: int | None = None  # where the XML nests differently


DEPRECATED = "Requested functionality has been deprecated"
LAYOUT: tuple[Row, ...] = (
    Row(1, "Product Name", "product_name", "NVIDIA H900 96GB"),
    Row(1, "Product Brand", "product_brand", "NVIDIA"),
    Row(1, "Product Architecture", "product_architecture", "Hopper"),
    Row(1, "Display Mode", "display_mode", DEPRECATED),
    Row(1, "Display Attached", "display_attached", "No"),
    Row(1, "Display Active", "display_active", "Disabled"),
    Row(1, "Persistence Mode", "persistence_mode", "Enabled"),
    Row(1, "Addressing Mode", "addressing_mode", "None"),
    Row(1, "MIG Mode", "mig_mode"),
    Row(2, "Current", "current_mig", "Disabled"),
    Row(2, "Pending", "pending_mig", "Disabled"),
    Row(1, "Accounting Mode", "accounting_mode", "Disabled"),
    Row(1, "Serial Number", "serial", "1650000000042"),
    Row(1, "GPU UUID", "uuid", "GPU-11111111-2222-3333-4444-555555555555"),
    Row(1, "Minor Number", "minor_number", "0"),
    Row(1, "VBIOS Version", "vbios_version", "96.00.AA.00.01"),
    Row(1, "GPU Part Number", "gpu_part_number", "2330-000-A1"),
    Row(1, "Platform Info", "platformInfo"),
    Row(2, "Module Id", "module_id", "3"),
    Row(1, "Inforom Version", "inforom_version"),
    Row(2, "Image Version", "img_version", "G520.0200.00.05"),
    Row(2, "ECC Object", "ecc_object", "7.16"),
    Row(1, "GPU C2C Mode", "c2c_mode", "Disabled"),
    Row(1, "GPU Virtualization Mode", "gpu_virtualization_mode"),
    Row(2, "Virtualization Mode", "virtualization_mode", "Pass-Through"),
    Row(1, "GPU Recovery Action", "gpu_recovery_action", "None"),
    Row(1, "GSP Firmware Version", "gsp_firmware_version", "590.10.01"),
    Row(1, "PCI", "pci"),
    Row(2, "Bus Id", "pci_bus_id", "00000000:3B:00.0"),
    Row(2, "GPU Link Info", "pci_gpu_link_info"),
    Row(3, "PCIe Generation", "pcie_gen"),
    Row(4, "Max", "max_link_gen", "5"),
    Row(4, "Current", "current_link_gen", "5"),
    Row(4, "Device Current", "device_current_link_gen", "5"),
    Row(4, "Device Max", "max_device_link_gen", "5"),
    Row(4, "Host Max", "max_host_link_gen", "N/A"),
    Row(3, "Link Width", "link_widths"),
    Row(4, "Max", "max_link_width", "16x"),
    Row(4, "Current", "current_link_width", "8x"),
    Row(2, "Replays Since Reset", "replay_counter", "120"),
    Row(2, "Replay Number Rollovers", "replay_rollover_counter", "1"),
    Row(2, "Tx Throughput", "tx_util", "352 KB/s"),
    Row(2, "Rx Throughput", "rx_util", "329 KB/s"),
    Row(1, "Fan Speed", "fan_speed", "N/A"),
    Row(1, "Performance State", "performance_state", "P0"),
    Row(1, "Clocks Event Reasons", "clocks_event_reasons"),
    Row(2, "Idle", "clocks_event_reason_gpu_idle", "Not Active"),
    Row(2, "Applications Clocks Setting", "clocks_event_reason_applications_clocks_setting", "Not Active"),
    Row(2, "SW Power Cap", "clocks_event_reason_sw_power_cap", "Not Active"),
    Row(2, "HW Slowdown", "clocks_event_reason_hw_slowdown", "Active"),
    Row(3, "HW Thermal Slowdown", "clocks_event_reason_hw_thermal_slowdown", "Active", 2),
    Row(3, "HW Power Brake Slowdown", "clocks_event_reason_hw_power_brake_slowdown", "Not Active", 2),
    Row(2, "Sync Boost", "clocks_event_reason_sync_boost", "Not Active"),
    Row(2, "SW Thermal Slowdown", "clocks_event_reason_sw_thermal_slowdown", "Active"),
    Row(2, "Display Clock Setting", "clocks_event_reason_display_clocks_setting", "Not Active"),
    Row(1, "Clocks Event Reasons Counters", "clocks_event_reasons_counters"),
    Row(2, "SW Power Capping", "clocks_event_reasons_counters_sw_power_cap", "31637354094 us"),
    Row(2, "Sync Boost", "clocks_event_reasons_counters_sync_boost", "0 us"),
    Row(2, "SW Thermal Slowdown", "clocks_event_reasons_counters_sw_therm_slowdown", "17 us"),
    Row(2, "HW Thermal Slowdown", "clocks_event_reasons_counters_hw_therm_slowdown", "4000 us"),
    Row(2, "HW Power Braking", "clocks_event_reasons_counters_hw_power_brake", "0 us"),
    Row(1, "FB Memory Usage", "fb_memory_usage"),
    Row(2, "Total", "total", "97887 MiB"),
    Row(2, "Reserved", "reserved", "479 MiB"),
    Row(2, "Used", "used", "1 MiB"),
    Row(2, "Free", "free", "97407 MiB"),
    Row(1, "BAR1 Memory Usage", "bar1_memory_usage"),
    Row(2, "Total", "total", "131072 MiB"),
    Row(2, "Used", "used", "1 MiB"),
    Row(2, "Free", "free", "131071 MiB"),
    Row(1, "Compute Mode", "compute_mode", "Default"),
    Row(1, "Utilization", "utilization"),
    Row(2, "GPU", "gpu_util", "100 %"),
    Row(2, "Memory", "memory_util", "11 %"),
    Row(2, "Encoder", "encoder_util", "0 %"),
    Row(2, "Decoder", "decoder_util", "0 %"),
    Row(2, "JPEG", "jpeg_util", "0 %"),
    Row(2, "OFA", "ofa_util", "N/A"),
    Row(1, "ECC Mode", "ecc_mode"),
    Row(2, "Current", "current_ecc", "Enabled"),
    Row(2, "Pending", "pending_ecc", "Disabled"),
    Row(1, "ECC Errors", "ecc_errors"),
    Row(2, "Volatile", "volatile"),
    Row(3, "SRAM Correctable", "sram_correctable", "3"),
    Row(3, "SRAM Uncorrectable Parity", "sram_uncorrectable_parity", "1"),
    Row(3, "SRAM Uncorrectable SEC-DED", "sram_uncorrectable_secded", "2"),
    Row(3, "DRAM Correctable", "dram_correctable", "40"),
    Row(3, "DRAM Uncorrectable", "dram_uncorrectable", "5"),
    Row(2, "Aggregate", "aggregate"),
    Row(3, "SRAM Correctable", "sram_correctable", "6"),
    Row(3, "SRAM Uncorrectable Parity", "sram_uncorrectable_parity", "7"),
    Row(3, "SRAM Uncorrectable SEC-DED", "sram_uncorrectable_secded", "8"),
    Row(3, "DRAM Correctable", "dram_correctable", "900"),
    Row(3, "DRAM Uncorrectable", "dram_uncorrectable", "10"),
    Row(3, "SRAM Threshold Exceeded", "sram_threshold_exceeded", "Yes"),
    Row(2, "Aggregate Uncorrectable SRAM Sources", "aggregate_uncorrectable_sram_sources"),
    Row(3, "SRAM L2", "sram_l2", "11"),
    Row(3, "SRAM SM", "sram_sm", "12"),
    Row(3, "SRAM Microcontroller", "sram_microcontroller", "13"),
    Row(3, "SRAM PCIE", "sram_pcie", "14"),
    Row(3, "SRAM Other", "sram_other", "15"),
    Row(2, "Channel Repair Pending", "channel_repair_pending", "Yes"),
    Row(2, "TPC Repair Pending", "tpc_repair_pending", "No"),
    Row(2, "Unrepairable Memory", "unrepairable_memory", "No"),
    Row(1, "Remapped Rows", "remapped_rows"),
    Row(2, "Correctable Error", "remapped_row_corr", "2"),
    Row(2, "Uncorrectable Error", "remapped_row_unc", "9"),
    Row(2, "Pending", "remapped_row_pending", "Yes"),
    Row(2, "Remapping Failure Occurred", "remapped_row_failure", "Yes"),
    Row(2, "Bank Remap Availability Histogram", "row_remapper_histogram"),
    Row(3, "Max", "row_remapper_histogram_max", "2550 bank(s)"),
    Row(3, "High", "row_remapper_histogram_high", "8 bank(s)"),
    Row(3, "Partial", "row_remapper_histogram_partial", "1 bank(s)"),
    Row(3, "Low", "row_remapper_histogram_low", "0 bank(s)"),
    Row(3, "None", "row_remapper_histogram_none", "1 bank(s)"),
    Row(1, "Temperature", "temperature"),
    Row(2, "GPU Current Temp", "gpu_temp", "88 C"),
    Row(2, "GPU T.Limit Temp", "gpu_temp_tlimit", "-3 C"),
    Row(2, "GPU Target Temperature", "gpu_target_temperature", "N/A"),
    Row(2, "Memory Current Temp", "memory_temp", "95 C"),
    Row(1, "GPU Power Readings", "gpu_power_readings"),
    Row(2, "Average Power Draw", "average_power_draw", "N/A"),
    Row(2, "Instantaneous Power Draw", "instant_power_draw", "625.68 W"),
    Row(2, "Current Power Limit", "current_power_limit", "500.00 W"),
    Row(2, "Requested Power Limit", "requested_power_limit", "700.00 W"),
    Row(2, "Default Power Limit", "default_power_limit", "700.00 W"),
    Row(2, "Min Power Limit", "min_power_limit", "200.00 W"),
    Row(2, "Max Power Limit", "max_power_limit", "700.00 W"),
    Row(1, "Module Power Readings", "module_power_readings"),
    Row(2, "Average Power Draw", "average_power_draw", "N/A"),
    Row(2, "Instantaneous Power Draw", "instant_power_draw", "N/A"),
    Row(1, "Clocks", "clocks"),
    Row(2, "Graphics", "graphics_clock", "345 MHz"),
    Row(2, "SM", "sm_clock", "345 MHz"),
    Row(2, "Memory", "mem_clock", "2619 MHz"),
    Row(2, "Video", "video_clock", "765 MHz"),
    Row(1, "Applications Clocks", "applications_clocks"),
    Row(2, "Graphics", "graphics_clock", DEPRECATED),
    Row(2, "Memory", "mem_clock", DEPRECATED),
    Row(1, "Max Clocks", "max_clocks"),
    Row(2, "Graphics", "graphics_clock", "1980 MHz"),
    Row(2, "SM", "sm_clock", "1980 MHz"),
    Row(2, "Memory", "mem_clock", "2619 MHz"),
    Row(2, "Video", "video_clock", "1545 MHz"),
    Row(1, "Fabric", "fabric"),
    Row(2, "State", "state", "In Progress"),
    Row(2, "Status", "status", "Success"),
    Row(2, "CliqueId", "cliqueId", "32766"),
    Row(2, "ClusterUUID", "clusterUuid", "aaaaaaaa-0000-0000-0000-000000000001"),
    Row(2, "Health", "health"),
    Row(3, "Summary", "summary", "Limited Capacity"),
    Row(3, "Bandwidth", "bandwidth", "Degraded"),
    Row(3, "Route Recovery in progress", "route_recovery_in_progress", "False"),
    Row(3, "Route Unhealthy", "route_unhealthy", "True"),
    Row(3, "Access Timeout Recovery", "access_timeout_recovery", "False"),
    Row(3, "Incorrect Configuration", "incorrect_configuration", "No Partition"),
)
_Processes = Sequence[tuple[int, str, str, str]]
PROCESSES: _Processes = ((4242, "C", "python train.py --name a : b", "700 MiB"), (77, "G", "/usr/lib/xorg/Xorg", "N/A"))


def text(values: Mapping[int, str] | None = None, processes: _Processes = PROCESSES) -> str:
    """The report as text; `values` replaces the value of rows by their position in `LAYOUT`."""
    out = [
        "", "==============NVSMI LOG==============", "",
        "Timestamp                                              : Tue Mar  3 04:05:06 2026",
        "Driver Version                                         : 590.10.01",
        "CUDA Version                                           : 13.1", "",
        "Attached GPUs                                          : 1", "GPU 00000000:3B:00.0",
    ]  # fmt: skip
    for position, row in enumerate(LAYOUT):
        value = (values or {}).get(position, row.value)
        indent = "    " * row.depth + row.label
        out.append(indent if row.value is None else f"{indent:<55}: {value}")
    out += ["    Retired Pages", f"{'        Single Bit ECC':<55}: N/A", f"{'        Double Bit ECC':<55}: 4",
            f"{'        Pending Page Blacklist':<55}: Yes"]  # fmt: skip
    out.append("    Processes" if processes else f"{'    Processes':<55}: None")
    for pid, kind, name, memory in processes:
        out += [f"{'        GPU instance ID':<42}: N/A", f"{'        Compute instance ID':<42}: N/A",
                f"{'        Process ID':<42}: {pid}", f"{'            Type':<42}: {kind}",
                f"{'            Name':<42}: {name}", f"{'            Used GPU Memory':<42}: {memory}"]  # fmt: skip
    return "\n".join(out) + "\n"


def xml(values: Mapping[int, str] | None = None, processes: _Processes = PROCESSES) -> str:
    """The same report as XML."""
    out = [
        '<?xml version="1.0" ?>', '<!DOCTYPE nvidia_smi_log SYSTEM "nvsmi_device_v13.dtd">', "<nvidia_smi_log>",
        "<timestamp>Tue Mar  3 04:05:06 2026</timestamp>", "<driver_version>590.10.01</driver_version>",
        "<cuda_version>13.1</cuda_version>", "<attached_gpus>1</attached_gpus>", '<gpu id="00000000:3B:00.0">',
    ]  # fmt: skip
    opened: list[str] = []
    for position, row in enumerate(LAYOUT):
        depth = row.depth if row.xml_depth is None else row.xml_depth
        while len(opened) >= depth:
            out.append(f"</{opened.pop()}>")
        if row.value is None:
            out.append(f"<{row.tag}>")
            opened.append(row.tag)
        else:
            out.append(f"<{row.tag}>{escape((values or {}).get(position, row.value))}</{row.tag}>")
    out += [f"</{tag}>" for tag in reversed(opened)]
    out.append("<retired_pages><multiple_single_bit_retirement><retired_count>N/A</retired_count>"
               "<retired_pagelist>N/A</retired_pagelist></multiple_single_bit_retirement><double_bit_retirement>"
               "<retired_count>4</retired_count></double_bit_retirement><pending_blacklist>Yes</pending_blacklist>"
               "<pending_retirement>Yes</pending_retirement></retired_pages>")  # fmt: skip
    out.append("<processes>")
    for pid, kind, name, memory in processes:
        out.append(
            f"<process_info><gpu_instance_id>N/A</gpu_instance_id><compute_instance_id>N/A</compute_instance_id>"
            f"<pid>{pid}</pid><type>{kind}</type><process_name>{escape(name)}</process_name>"
            f"<used_memory>{memory}</used_memory></process_info>"
        )
    out += ["</processes>", "</gpu>", "</nvidia_smi_log>"]
    return "\n".join(out) + "\n"
