"""The `platform` collector's document: memory errors, sensors, idle states, microcode, NUMA, huge pages, drives, arrays.

Values are the kernel's own; sources of their formats stand in the collector. Temperatures of hwmon are in
thousandths of a degree, sizes of EDAC in MiB.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from knowledge.observation import Observation, Scope, Status, Subject
from knowledge.record import dataclass
from probes.base import Context, DocumentFormat
from probes.parse._sensor_parts import part_of
from probes.parse._sysfs import Sheet, load, recognises, table, whole, why_not, words

NAME, REVISION, SCHEMA = "platform", 2, "gpudiag/platform/1"
CPU, NUMA, HUGE = "/sys/devices/system/cpu", "/sys/devices/system/node", "/sys/kernel/mm/hugepages"
EDAC, HWMON, ASPM = "/sys/devices/system/edac/mc", "/sys/class/hwmon", "/sys/module/pcie_aspm/parameters/policy"
MAIN = ("node.memory.errors.controllers", "node.numa.with_cpus")
PROVIDES = (
    *MAIN, "node.memory.errors.corrected", "node.memory.errors.uncorrected", "dimm.errors.corrected",
    "dimm.errors.uncorrected", "dimm.size", "sensor.kind", "sensor.part", "sensor.temperature", "sensor.temperature.margin",
    "sensor.fan.speed", "sensor.state", "node.cpu.microcode", "node.cpu.microcode.versions", "node.cpu.smt",
    "node.cpu.idle.driver", "node.cpu.idle.deepest", "node.cpu.idle.latency", "node.numa.per_socket",
    "node.numa.without_memory", "node.hugepages.reserved", "node.hugepages.unused", "node.hugepages.unused.share",
    "node.pcie.aspm", "node.crash.records", "drive.count", "drive.model", "drive.firmware", "drive.state", "raid.level",
    "raid.state", "raid.members.missing", "raid.action",
)  # fmt: skip
_KIB = re.compile(r"MemTotal:\s{1,40}(\d{1,15}) kB")
_DRIVE_STATES = {"live", "new", "resetting", "connecting", "deleting", "dead", "running", "offline", "blocked"}
# Drivers print a limit that is none where they have none: 0, 65261 C of nvme, or the 20.8 C of some boards' ACPI tables.
_LIMITS = (50.0, 200.0)
# Super I/O chips of boards: some of their inputs are not connected and read nonsense, 127 C, beside limits that are real.
_WILD = re.compile(r"(?:nct|it8|w83|f71|asus|lm\d|smsc|dme1737|adt)")


@dataclass(slots=True)
class _Files:
    """What the collector read, by path."""

    all: Mapping[str, object]

    def text(self, path: str) -> str:
        """The file's text; empty when it could not be read."""
        return words(self.all.get(path))

    def below(self, top: str, depth: int = 1) -> list[str]:
        """Names of the folders `depth` levels below `top`, in the order in which they were read."""
        start = top.count("/") + 1
        found = (path.split("/") for path in self.all if path.startswith(top + "/"))
        return list(dict.fromkeys("/".join(p[start : start + depth]) for p in found if len(p) > start + depth))


def sniff(head: str) -> int:
    """100 for the collector's document; 0 otherwise."""
    return recognises(head, SCHEMA)


def parse(text: str, context: Context) -> list[Observation]:
    """Facts of the node and of its memory modules, sensors, drives and arrays."""
    document = load(text)
    if document.get("schema") != SCHEMA:
        return []
    sheet, files = Sheet.of(NAME, REVISION, context, document), _Files(table(document.get("files")))
    hung = words(document.get("hung"))
    if hung:
        for fact in MAIN:
            sheet.missing(fact, sheet.node, Status.TIMEOUT, f"{hung} did not answer", hung)
    whole_ = not hung
    _errors(sheet, files, whole_)
    _numa(sheet, files, whole_)
    _processors(sheet, files)
    _huge_pages(sheet, files)
    _drives(sheet, files, whole_)
    _arrays(sheet, files)
    _sensors(sheet, files)
    _others(sheet, files)
    return sheet.out


def _thing(sheet: Sheet, name: str) -> Subject:
    return Subject(Scope.OBJECT, words(name)[:120] or "-", sheet.node)


# --- memory --------------------------------------------------------------------------------


def _errors(sheet: Sheet, files: _Files, whole_: bool) -> None:
    """Counters of the memory controllers, and of each module below them."""
    named = [name for name in files.below(EDAC) if f"{EDAC}/{name}/mc_name" in files.all]
    if EDAC in files.all:
        sheet.missing(MAIN[0], sheet.node, *why_not(files.all[EDAC]), EDAC)
        return
    if whole_:
        sheet.fact(MAIN[0], sheet.node, len(named), EDAC, ", ".join(named))
    totals = {"corrected": "ce_count", "uncorrected": "ue_count"}
    for kind, leaf in totals.items():
        each = [whole(files.all.get(f"{EDAC}/{name}/{leaf}")) for name in named]
        fact, known = f"node.memory.errors.{kind}", [n for n in each if n is not None]
        if known and len(known) == len(each):
            sheet.fact(fact, sheet.node, sum(known), f"{EDAC}/mc*/{leaf}", " ".join(map(str, known)))
        elif whole_:
            why = "a counter could not be read" if named else "no driver counts memory errors here (EDAC)"
            sheet.missing(fact, sheet.node, Status.FAILED if named else Status.UNSUPPORTED, why, EDAC)
    for name in named:
        for module in files.below(f"{EDAC}/{name}"):
            _module(sheet, files, f"{EDAC}/{name}/{module}", f"{name} {module}")


def _module(sheet: Sheet, files: _Files, folder: str, place: str) -> None:
    label = files.text(f"{folder}/dimm_label")
    subject = _thing(sheet, f"{label} ({place})" if label and label != place else place)
    size = whole(files.all.get(f"{folder}/size"))
    if size:
        sheet.fact("dimm.size", subject, size, f"{folder}/size", f"{size} MiB")
    for kind, leaf in (("corrected", "dimm_ce_count"), ("uncorrected", "dimm_ue_count")):
        path = f"{folder}/{leaf}"
        count = whole(files.all.get(path))
        if count is not None:
            sheet.fact(f"dimm.errors.{kind}", subject, count, path, f"{leaf}: {count}")
        elif path in files.all:
            sheet.missing(f"dimm.errors.{kind}", subject, *why_not(files.all[path]), path)


def _kib(text: str) -> int | None:
    found = _KIB.search(text)
    return int(found[1]) if found else None


def _numa(sheet: Sheet, files: _Files, whole_: bool) -> None:
    """Nodes with processors: how many for each package, and which of them have no memory."""
    cpus = {name: files.text(f"{NUMA}/{name}/cpulist") for name in files.below(NUMA)}
    own = [name for name, listed in cpus.items() if listed]
    if not own:
        if whole_:
            why = "the kernel shows no NUMA nodes with processors"
            sheet.missing(MAIN[1], sheet.node, Status.UNSUPPORTED, why, f"{NUMA}/node*/cpulist")
        return
    if not whole_:
        return
    sheet.fact(MAIN[1], sheet.node, len(own), f"{NUMA}/node*/cpulist", ", ".join(own))
    sizes = {name: _kib(files.text(f"{NUMA}/{name}/meminfo")) for name in own}
    if all(size is not None for size in sizes.values()):
        empty = tuple(name for name, size in sizes.items() if size == 0)
        shown = ", ".join(f"{name}: {size} kB" for name, size in sizes.items())
        sheet.fact("node.numa.without_memory", sheet.node, empty, f"{NUMA}/node*/meminfo", shown)
    packages = {files.text(f"{CPU}/{name}/topology/physical_package_id") for name in files.below(CPU)} - {""}
    if packages:
        shown = f"{len(own)} nodes, {len(packages)} packages"
        sheet.fact("node.numa.per_socket", sheet.node, round(len(own) / len(packages), 2), f"{NUMA}/node*", shown)


def _huge_pages(sheet: Sheet, files: _Files) -> None:
    """All sizes together, in MiB; the unused ones also as a share of the machine's memory."""
    reserved = unused = 0.0
    names = files.below(HUGE)
    for name in names:
        size = re.fullmatch(r"hugepages-(\d{1,12})kB", name)
        total, free = (whole(files.all.get(f"{HUGE}/{name}/{leaf}")) for leaf in ("nr_hugepages", "free_hugepages"))
        if size is None or total is None or free is None:
            sheet.missing(
                "node.hugepages.reserved", sheet.node, Status.FAILED, f"{name} could not be read", f"{HUGE}/{name}"
            )
            return
        reserved, unused = reserved + total * int(size[1]) / 1024, unused + free * int(size[1]) / 1024
    if not names:
        return
    sheet.fact("node.hugepages.reserved", sheet.node, reserved, f"{HUGE}/hugepages-*/nr_hugepages", f"{reserved:g} MiB")
    sheet.fact("node.hugepages.unused", sheet.node, unused, f"{HUGE}/hugepages-*/free_hugepages", f"{unused:g} MiB")
    memory = _kib(files.text("/proc/meminfo"))
    if memory:
        share = round(100 * unused * 1024 / memory, 2)
        sheet.fact(
            "node.hugepages.unused.share", sheet.node, share, f"{HUGE}/hugepages-*/free_hugepages", f"{unused:g} MiB"
        )


# --- processors ----------------------------------------------------------------------------


def _processors(sheet: Sheet, files: _Files) -> None:
    path = f"{CPU}/cpu*/microcode/version"
    versions = {files.text(f"{CPU}/{name}/microcode/version") for name in files.below(CPU)} - {""}
    if versions:
        shown = ", ".join(sorted(versions))
        sheet.fact("node.cpu.microcode", sheet.node, tuple(sorted(versions)), path, shown)
        sheet.fact("node.cpu.microcode.versions", sheet.node, len(versions), path, shown)
    smt = files.text(f"{CPU}/smt/control")
    if smt in ("on", "off", "forceoff", "notsupported", "notimplemented"):
        sheet.fact("node.cpu.smt", sheet.node, smt, f"{CPU}/smt/control", smt)
    driver = files.text(f"{CPU}/cpuidle/current_driver")
    if driver:
        sheet.fact("node.cpu.idle.driver", sheet.node, driver, f"{CPU}/cpuidle/current_driver", driver)
    top = f"{CPU}/cpu0/cpuidle"
    states = [(whole(files.all.get(f"{top}/{s}/latency")), files.text(f"{top}/{s}/name"), f"{top}/{s}")
              for s in files.below(top) if files.text(f"{top}/{s}/disable") == "0"]  # fmt: skip
    known = [(latency, name, place) for latency, name, place in states if latency is not None]
    if known:
        latency, name, place = max(known)
        sheet.fact("node.cpu.idle.deepest", sheet.node, name or "-", f"{place}/name", f"{name}: {latency} us")
        sheet.fact("node.cpu.idle.latency", sheet.node, float(latency), f"{place}/latency", f"{name}: {latency} us")


def _others(sheet: Sheet, files: _Files) -> None:
    chosen = re.search(r"\[([a-z]{1,20})\]", files.text(ASPM))
    if chosen and chosen[1] in ("default", "performance", "powersave", "powersupersave"):
        sheet.fact("node.pcie.aspm", sheet.node, chosen[1], ASPM, files.text(ASPM))
    records = files.all.get("/sys/fs/pstore")
    if isinstance(records, str):
        names = records.split()
        # one crash is kept in parts: dmesg-efi_pstore-170000000001001, or dmesg-erst-7000000000000000001
        sheet.fact("node.crash.records", sheet.node, len(names), "/sys/fs/pstore", " ".join(names[:4]))
    elif records is not None:
        sheet.missing("node.crash.records", sheet.node, *why_not(records), "/sys/fs/pstore")


# --- drives --------------------------------------------------------------------------------


def _drives(sheet: Sheet, files: _Files, whole_: bool) -> None:
    found = [(name, f"/sys/class/nvme/{name}") for name in files.below("/sys/class/nvme")]
    found += [(name, f"/sys/block/{name}/device") for name in files.below("/sys/block") if name.startswith("sd")]
    if whole_:
        shown = ", ".join(name for name, _ in found[:40])
        sheet.fact("drive.count", sheet.node, len(found), "/sys/class/nvme, /sys/block", shown)
    for name, folder in found:
        subject = _thing(sheet, name)
        if name.startswith("nvme"):  # names of SCSI disks are cut after 16 letters: smartctl tells the whole one
            for fact, leaf in (("drive.model", "model"), ("drive.firmware", "firmware_rev")):
                if text := files.text(f"{folder}/{leaf}"):
                    sheet.fact(fact, subject, text, f"{folder}/{leaf}", text)
        if text := files.text(f"{folder}/state"):
            word = text if text in _DRIVE_STATES else "other"
            sheet.fact("drive.state", subject, word, f"{folder}/state", text)


def _arrays(sheet: Sheet, files: _Files) -> None:
    for name in files.below("/sys/block"):
        folder = f"/sys/block/{name}/md"
        if not name.startswith("md") or not files.text(f"{folder}/level"):
            continue
        subject = _thing(sheet, name)
        for fact, leaf in (("raid.level", "level"), ("raid.state", "array_state"), ("raid.action", "sync_action")):
            if text := files.text(f"{folder}/{leaf}"):
                sheet.fact(fact, subject, text, f"{folder}/{leaf}", text)
        missing = whole(files.all.get(f"{folder}/degraded"))
        if missing is not None:
            shown = f"{missing} of {files.text(f'{folder}/raid_disks') or '?'}"
            sheet.fact("raid.members.missing", subject, missing, f"{folder}/degraded", shown)


# --- sensors -------------------------------------------------------------------------------


def _sensors(sheet: Sheet, files: _Files) -> None:
    """Temperatures and fans. A chip is named by its device where there is one: several drives are all called nvme."""
    taken: dict[str, int] = {}
    for chip in files.below(HWMON):
        folder = f"{HWMON}/{chip}"
        device, name = files.text(f"{folder}/device"), files.text(f"{folder}/name")
        for path, what, number in _channels(files, folder):
            label = files.text(f"{folder}/{what}{number}_label") or f"{what}{number}"
            title = f"{name} {label}" if not device or device == name else f"{name} {device} {label}"
            taken[title] = taken.get(title, 0) + 1
            subject = _thing(sheet, title if taken[title] == 1 else f"{title} ({chip})")
            if what == "temp":
                limit = "" if _WILD.match(name) else f"{folder}/temp{number}_crit"
                _temperature(sheet, files, subject, path, limit)
            else:
                _fan(sheet, files, subject, path)


def _channels(files: _Files, folder: str) -> Iterator[tuple[str, str, str]]:
    for path in files.all:
        found = re.fullmatch(re.escape(folder) + r"/(temp|fan)(\d{1,3})_input", path)
        if found:
            yield path, found[1], found[2]


def _degrees(value: object) -> float | None:
    text = words(value)
    return int(text) / 1000 if re.fullmatch(r"-?\d{1,9}", text) else None


def _temperature(sheet: Sheet, files: _Files, subject: Subject, path: str, limit: str) -> None:
    value = _degrees(files.all.get(path))
    sheet.fact("sensor.kind", subject, "temperature", path, words(files.all.get(path)))
    sheet.fact("sensor.part", subject, part_of(subject.id, "temperature"), path, subject.id)
    if value is None:
        sheet.missing("sensor.temperature", subject, *why_not(files.all.get(path)), path)
        return
    sheet.fact("sensor.temperature", subject, value, path, f"{value:g} °C")
    critical = _degrees(files.all.get(limit))
    if critical is not None and _LIMITS[0] <= critical <= _LIMITS[1]:
        shown = f"{value:g} of {critical:g} °C"
        sheet.fact("sensor.temperature.margin", subject, round(critical - value, 3), limit, shown)
        sheet.fact("sensor.state", subject, "critical" if value >= critical else "ok", limit, shown)


def _fan(sheet: Sheet, files: _Files, subject: Subject, path: str) -> None:
    speed = whole(files.all.get(path))
    sheet.fact("sensor.kind", subject, "fan", path, words(files.all.get(path)))
    if speed is not None:
        sheet.fact("sensor.fan.speed", subject, float(speed), path, f"{speed} RPM")
    else:
        sheet.missing("sensor.fan.speed", subject, *why_not(files.all.get(path)), path)


FORMAT = DocumentFormat(NAME, "gpudiag platform snapshot", REVISION, PROVIDES, sniff, parse)
