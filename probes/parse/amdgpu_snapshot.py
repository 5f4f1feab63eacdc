"""Output of the collector `amdgpu`: what the driver of AMD's GPUs shows in sysfs.

Source: the amdgpu chapter of the kernel's documentation (Documentation/gpu/amdgpu: thermal, ras, misc) and
drivers/gpu/drm/amd. Sensors are in thousandths of a degree, millionths of a watt and Hz; sizes in bytes. ``crit`` of a
temperature is where the GPU slows down, ``emergency`` where it switches off. A counter file of RAS holds ``ue: N`` and
``ce: N``, newer ones also ``de: N``, since the driver was loaded; a list of bad pages holds ``pfn : size : flag``, where R
is retired, P waits for a reset and F could not be retired. A GPU without the folder ``ras`` counts no errors.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from knowledge.identity import is_pci, normalise_pci
from knowledge.observation import Observation, Status, Subject, gpu
from probes.base import Context, DocumentFormat
from probes.parse._sysfs import Sheet, load, recognises, table, whole, why_not, words
from probes.parse.amd_smi import all_ones

NAME, REVISION, SCHEMA = "amdgpu-snapshot", 1, "gpudiag/amdgpu/1"
RAS = ("gpu.ras.corrected", "gpu.ras.uncorrected", "gpu.ras.deferred")
PROVIDES = (
    "node.gpus.amd", "gpu.vendor", "gpu.driver.name", "gpu.name", "gpu.serial", "gpu.vbios", "gpu.numa", "gpu.runtime_status",
    "gpu.utilization.core", "gpu.memory.total", "gpu.memory.used", "gpu.pcie.replay", "gpu.power.draw", "gpu.power.limit",
    "gpu.clock.graphics", "gpu.temperature.core", "gpu.temperature.slowdown", "gpu.temperature.shutdown",
    "gpu.temperature.hotspot", "gpu.temperature.hotspot_slowdown", "gpu.temperature.hotspot_shutdown",
    "gpu.temperature.memory", "gpu.temperature.memory_slowdown", *RAS, "gpu.ras.uncorrected.blocks",
    "gpu.bad_pages.retired", "gpu.bad_pages.pending", "gpu.bad_pages.failed",
)  # fmt: skip
_SENSORS = {
    ("edge", "input"): "gpu.temperature.core", ("edge", "crit"): "gpu.temperature.slowdown",
    ("edge", "emergency"): "gpu.temperature.shutdown", ("junction", "input"): "gpu.temperature.hotspot",
    ("junction", "crit"): "gpu.temperature.hotspot_slowdown", ("junction", "emergency"): "gpu.temperature.hotspot_shutdown",
    ("mem", "input"): "gpu.temperature.memory", ("mem", "crit"): "gpu.temperature.memory_slowdown",
}  # fmt: skip
_TEXTS = (("product_name", "gpu.name"), ("serial_number", "gpu.serial"), ("vbios_version", "gpu.vbios"))
_NUMBERS = (
    ("gpu_busy_percent", "gpu.utilization.core", 1), ("mem_info_vram_total", "gpu.memory.total", 1 << 20),
    ("mem_info_vram_used", "gpu.memory.used", 1 << 20), ("pcie_replay_count", "gpu.pcie.replay", 1),
)  # fmt: skip
# ue: 2
_COUNT = re.compile(r"(ue|ce|de):?\s{1,4}(\d{1,15})")
# 0x00000001 : 0x00001000 : R
_PAGE = re.compile(
    r"^\s{0,4}0x[0-9a-fA-F]{1,16}\s{0,4}:\s{0,4}0x[0-9a-fA-F]{1,16}\s{0,4}:\s{0,4}([RPF])\s{0,4}$", re.MULTILINE
)
_PAGES = (("gpu.bad_pages.retired", "R"), ("gpu.bad_pages.pending", "P"), ("gpu.bad_pages.failed", "F"))
_ASLEEP = "the GPU sleeps: asking it would wake it, and its counters read as ones meanwhile"


def sniff(head: str) -> int:
    """100 for the collector's document."""
    return recognises(head, SCHEMA)


def parse(text: str, context: Context) -> list[Observation]:
    """Facts of each GPU, and how many there are."""
    document = load(text)
    if document.get("schema") != SCHEMA:
        return []
    sheet = Sheet.of(NAME, REVISION, context, document)
    call = "/sys/bus/pci/drivers/amdgpu"
    if "error" in document:
        sheet.missing("node.gpus.amd", sheet.node, *why_not({"error": document["error"]}), call)
        return sheet.out
    devices = {normalise_pci(name): table(raw) for name, raw in table(document.get("devices")).items()}
    devices = {pci: raw for pci, raw in devices.items() if is_pci(pci)}
    sheet.fact("node.gpus.amd", sheet.node, len(devices), call, ", ".join(list(devices)[:16]) or "no device is bound")
    for pci, raw in sorted(devices.items()):
        _device(sheet, pci, raw)
    return sheet.out


def _device(sheet: Sheet, pci: str, raw: Mapping[str, Any]) -> None:
    subject, folder = gpu(pci, sheet.host), f"/sys/bus/pci/devices/{pci}"
    sheet.fact("gpu.vendor", subject, "amd", f"{folder}/driver", "driver: amdgpu")
    sheet.fact("gpu.driver.name", subject, "amdgpu", f"{folder}/driver", "driver: amdgpu")
    if raw.get("asleep"):
        sheet.fact("gpu.runtime_status", subject, "suspended", f"{folder}/power/runtime_status", "suspended")
        for fact in RAS:
            sheet.missing(fact, subject, Status.NOT_ASKED, _ASLEEP, f"{folder}/ras")
        return
    files = table(raw.get("files"))
    for key, fact in _TEXTS:
        said = files.get(key)
        if words(said):
            sheet.fact(fact, subject, words(said), f"{folder}/{key}", words(said))
    for key, fact, unit in _NUMBERS:
        if key in files:
            number = whole(files[key])
            if number is None:
                sheet.missing(fact, subject, *why_not(files[key]), f"{folder}/{key}")
            else:
                sheet.fact(fact, subject, number // unit, f"{folder}/{key}", words(files[key]))
    numa = whole(files.get("numa_node"))
    if numa is not None:
        sheet.fact("gpu.numa", subject, numa, f"{folder}/numa_node", str(numa))
    _sensors(sheet, subject, folder, table(raw.get("hwmon")))
    _errors(sheet, subject, folder, raw)
    _pages(sheet, subject, folder, raw)


def _sensors(sheet: Sheet, subject: Subject, folder: str, files: Mapping[str, Any]) -> None:
    for number in range(1, 10):
        label = words(files.get(f"temp{number}_label")) or ("edge" if number == 1 else "")
        for what in ("input", "crit", "emergency"):
            name = f"temp{number}_{what}"
            fact = _SENSORS.get((label, what))
            if fact is None or name not in files:
                continue
            value = whole(files[name])
            if value is None:
                sheet.missing(fact, subject, *why_not(files[name]), f"{folder}/hwmon/*/{name}")
            elif value or what == "input":  # a limit of 0 is none
                sheet.fact(fact, subject, round(value / 1000), f"{folder}/hwmon/*/{name}", f"{label}: {value}")
    for names, fact in ((("power1_average", "power1_input"), "gpu.power.draw"), (("power1_cap",), "gpu.power.limit")):
        found = next(((name, value) for name in names if (value := whole(files.get(name))) is not None), None)
        if found:
            sheet.fact(fact, subject, found[1] / 1e6, f"{folder}/hwmon/*/{found[0]}", str(found[1]))
    clock = whole(files.get("freq1_input")) if words(files.get("freq1_label")) in ("sclk", "") else None
    if clock is not None:
        sheet.fact("gpu.clock.graphics", subject, clock // 1_000_000, f"{folder}/hwmon/*/freq1_input", str(clock))


def _errors(sheet: Sheet, subject: Subject, folder: str, raw: Mapping[str, Any]) -> None:
    """Sums over the blocks; none when one of them could not be read: it may hold what matters."""
    call, counters = f"{folder}/ras/*_err_count", table(raw.get("ras"))
    hung = words(raw.get("hung"))
    if not counters or hung:
        if hung:
            status, why = Status.TIMEOUT, f"{hung} did not come back"
        elif "ras_folder" in raw and not raw["ras_folder"]:
            status, why = Status.NOT_APPLICABLE, "this GPU counts no errors (it has no RAS)"
        else:
            status, why = Status.UNSUPPORTED, "the driver shows no counter of errors"
        for fact in RAS:
            sheet.missing(fact, subject, status, why, call)
        return
    sums, bad, blocks = {"ce": 0, "ue": 0, "de": 0}, "", []
    status = Status.FAILED
    for name, said in sorted(counters.items()):
        block = name.removesuffix("_err_count")
        found = {m[1]: int(m[2]) for m in _COUNT.finditer(words(said))}
        asleep = all_ones(found.get("ce"), found.get("ue"))
        if not found or asleep:
            status, why = why_not(said) if not found else (asleep.status, asleep.detail) if asleep else (status, "")
            bad = f"{block}: {why}"
            continue
        for kind, count in found.items():
            sums[kind] += count
        if found.get("ue"):
            blocks.append(block)
    shown = f"{len(counters)} blocks: ue {sums['ue']}, ce {sums['ce']}, de {sums['de']}"
    for kind, fact in zip(("ce", "ue", "de"), RAS, strict=True):
        if bad and not sums[kind]:  # errors that were read are errors, whatever else was not
            sheet.missing(fact, subject, status, bad, call, shown)
        else:
            sheet.fact(fact, subject, sums[kind], call, shown)
    if blocks or not bad:
        sheet.fact("gpu.ras.uncorrected.blocks", subject, tuple(blocks), call, shown)


def _pages(sheet: Sheet, subject: Subject, folder: str, raw: Mapping[str, Any]) -> None:
    said = table(raw.get("pages")).get("gpu_vram_bad_pages")
    call = f"{folder}/ras/gpu_vram_bad_pages"
    if said is None:
        return
    if not isinstance(said, str):
        for fact, _ in _PAGES:
            sheet.missing(fact, subject, *why_not(said), call)
        return
    flags = [found[1] for found in _PAGE.finditer(said)]
    first = next((line for line in said.splitlines() if line.strip()), "the list is empty")
    for fact, flag in _PAGES:
        sheet.fact(fact, subject, flags.count(flag), call, first)


FORMAT = DocumentFormat(NAME, "gpudiag amdgpu snapshot", REVISION, PROVIDES, sniff, parse)
