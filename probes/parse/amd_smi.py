"""``amd-smi``, ``amd-smi list|static|metric|bad-pages``, with ``--json``, ``--csv`` or neither, and ``amd-smi monitor``: AMD's GPUs as AMD's own tool sees them.

Source of the fields: the CLI of ROCm/amdsmi (amdsmi_cli, ROCm 6.0 to 7.2) and its documentation at
rocm.docs.amd.com/projects/amdsmi. Up to ROCm 6 the output is a list of GPUs, from ROCm 7 an object with ``gpu_data``;
a quantity is ``{"value": 41, "unit": "W"}``, what the GPU does not tell is ``"N/A"``. ``metric`` names a GPU by its number
only; ``static`` and ``list`` tie the number to the PCI address.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from knowledge.observation import Clock, Observation, Status, Subject, gpu
from knowledge.text import clean
from probes.base import Context, DocumentFormat, lines_of
from probes.parse import _amd_box
from probes.parse._columns import cells
from probes.parse._smi_values import Reading, not_understood
from probes.parse._vendor_emit import (
    CELSIUS,
    MHZ,
    MIB,
    NONE_LISTED,
    PERCENT,
    PLAIN,
    REFUSED,
    WATTS,
    VendorEmitter,
    load,
    number,
    opens,
    table,
    tables,
    text_of,
    words,
)

NAME, REVISION, VENDOR = "amd-smi", 8, "amd"
PROVIDES = (
    "node.gpus.amd", "gpu.vendor", "gpu.vendor_index", "gpu.name", "gpu.serial", "gpu.vbios", "gpu.driver.name",
    "gpu.driver.version", "gpu.numa", "gpu.utilization.core", "gpu.utilization.memory", "gpu.power.draw", "gpu.power.limit", "gpu.clock.graphics",
    "gpu.temperature.core", "gpu.temperature.slowdown", "gpu.temperature.shutdown", "gpu.temperature.hotspot",
    "gpu.temperature.hotspot_slowdown", "gpu.temperature.hotspot_shutdown", "gpu.temperature.memory",
    "gpu.temperature.memory_slowdown", "gpu.memory.total", "gpu.memory.used", "gpu.pcie.replay", "gpu.ras.corrected",
    "gpu.ras.uncorrected", "gpu.ras.deferred", "gpu.ras.uncorrected.blocks", "gpu.xgmi.state", "gpu.throttle.reasons",
    "gpu.readings.absent", "gpu.bad_pages.retired", "gpu.bad_pages.pending", "gpu.bad_pages.failed", REFUSED,
)  # fmt: skip
# Unable to detect any GPU devices, check amdgpu version and module status (sudo modprobe amdgpu)
_ERROR = re.compile(r"(?:Unable to detect any GPU devices|Unable to get devices, driver not initialized)[^\n]{0,200}")
# (section, key) -> fact, units, whole number
_METRICS: tuple[tuple[str, str, str, Mapping[str, float], bool], ...] = (
    ("usage", "gfx_activity", "gpu.utilization.core", PERCENT, True),
    ("usage", "umc_activity", "gpu.utilization.memory", PERCENT, True),
    ("power", "socket_power", "gpu.power.draw", WATTS, False),
    ("temperature", "edge", "gpu.temperature.core", CELSIUS, True),
    ("temperature", "hotspot", "gpu.temperature.hotspot", CELSIUS, True),
    ("temperature", "mem", "gpu.temperature.memory", CELSIUS, True),
    ("mem_usage", "total_vram", "gpu.memory.total", MIB, True),
    ("mem_usage", "used_vram", "gpu.memory.used", MIB, True),
    ("pcie", "replay_count", "gpu.pcie.replay", PLAIN, True),
    ("limit", "socket_power", "gpu.power.limit", WATTS, False),
    ("limit", "slowdown_edge_temperature", "gpu.temperature.slowdown", CELSIUS, True),
    ("limit", "shutdown_edge_temperature", "gpu.temperature.shutdown", CELSIUS, True),
    ("limit", "slowdown_hotspot_temperature", "gpu.temperature.hotspot_slowdown", CELSIUS, True),
    ("limit", "shutdown_hotspot_temperature", "gpu.temperature.hotspot_shutdown", CELSIUS, True),
    ("limit", "slowdown_vram_temperature", "gpu.temperature.memory_slowdown", CELSIUS, True),
)
_TEXTS = (
    ("asic", "market_name", "gpu.name"), ("asic", "asic_serial", "gpu.serial"), ("vbios", "version", "gpu.vbios"),
    ("driver", "name", "gpu.driver.name"), ("driver", "version", "gpu.driver.version"),
)  # fmt: skip
_ECC = (
    ("total_correctable_count", "gpu.ras.corrected"), ("total_uncorrectable_count", "gpu.ras.uncorrected"),
    ("total_deferred_count", "gpu.ras.deferred"),
)  # fmt: skip
# RETIRED: No bad pages found.       PAGE_ADDRESS: 0x7f01a2c000       STATUS: RESERVED
_PAGES = {
    "retired": "reserved",
    "pending": "pending",
    "un_res": "unreservable",
}  # section -> what its pages are, when none says
_PAGE_FACTS = {"reserved": "gpu.bad_pages.retired", "pending": "gpu.bad_pages.pending", "unreservable": "gpu.bad_pages.failed"}  # fmt: skip
_NO_PAGES = "no bad pages found"
_XGMI = {"no_errors": "ok", "error": "error", "multiple_errors": "multiple_errors"}
# ppt is the limit of package power, prochot a line of the board that asks for less
_REASONS = {"ppt": "power", "socket_thermal": "thermal", "hbm_thermal": "hbm_thermal", "vr_thermal": "vr_thermal",
            "prochot": "prochot"}  # fmt: skip
_ACTIVE = {"active": True, "true": True, "not active": False, "false": False}
_ALL_ONES = 0xFFFF  # what a channel's 16-bit counter reads as while the GPU sleeps


# GPU  POWER  GPU_TEMP  MEM_TEMP  GFX_UTIL  GFX_CLOCK  ...      GPU  XCP  POWER  GPU_T  MEM_T  GFX_CLK  GFX%  MEM%  ...
# with -w the time of each round ahead of it, in seconds since 1970: TIMESTAMP  GPU  POWER ...
_MONITOR = re.compile(r"\s{0,8}(?:TIMESTAMP {2,20})?GPU(?: {2,20}[A-Z][A-Z0-9_%]{1,24}){2,40}\s{0,8}")
_ROW, _TIMED_ROW = (re.compile(rf"\s{{0,8}}{ahead}(?P<gpu>\d{{1,4}})\s") for ahead in ("", r"(?P<at>\d{9,11})\s{1,20}"))
#   3    0 1348 W    1400 W 108 °C 101 °C   780 MHz        a value as wide as its column stands one blank from the next
_CLOSE = re.compile(r"(?:(?<=\d )(?:[mk]?W|C|[MG]Hz|%|[MG]B|Mb/s)|\d|N/A) (?=\d|N/A)")
_COLUMNS = {
    "POWER": ("power", "socket_power"),
    "POWER_USAGE": ("power", "socket_power"),
    "GPU_TEMP": ("temperature", "hotspot"),
    "GPU_T": ("temperature", "hotspot"),
    "HOTSPOT_TEMPERATURE": ("temperature", "hotspot"),
    "MEM_TEMP": ("temperature", "mem"),
    "MEM_T": ("temperature", "mem"),
    "MEMORY_TEMPERATURE": ("temperature", "mem"),
    "GFX_UTIL": ("usage", "gfx_activity"),
    "GFX%": ("usage", "gfx_activity"),
    "MEM_UTIL": ("usage", "umc_activity"),
    "MEM%": ("usage", "umc_activity"),
    "GFX_CLOCK": ("clock", "gfx_0"),
    "GFX_CLK": ("clock", "gfx_0"),
    "SINGLE_ECC": ("ecc", "total_correctable_count"),
    "ECC_CORR": ("ecc", "total_correctable_count"),
    "DOUBLE_ECC": ("ecc", "total_uncorrectable_count"),
    "ECC_UNCORR": ("ecc", "total_uncorrectable_count"),
    "PCIE_REPLAY": ("pcie", "replay_count"),
    "VRAM_USED": ("mem_usage", "used_vram"),
    "VRAM_TOTAL": ("mem_usage", "total_vram"),
}
# gpu,gfx_activity,umc_activity,mm_activity,socket_power,...      --csv: the keys of the JSON, its sections left out, values without units
_CSV = re.compile(r"(?:timestamp,)?gpu(?:,[a-z0-9_ ]{1,48}){1,200}")
_CSV_COLUMNS = {
    **{key: (section, key) for section, key, *_ in _METRICS if section not in ("limit", "temperature")},
    "edge": ("temperature", "edge"), "edge_temperature": ("temperature", "edge"),
    "hotspot": ("temperature", "hotspot"), "hotspot_temperature": ("temperature", "hotspot"),
    "memory_temperature": ("temperature", "mem"),
    "power_usage": ("power", "socket_power"), "power": ("power", "socket_power"),
    "gfx": ("usage", "gfx_activity"), "gfx_util": ("usage", "gfx_activity"),
    "mem_util": ("usage", "umc_activity"), "vram_used": ("mem_usage", "used_vram"), "vram_total": ("mem_usage", "total_vram"),
    "gfx_clk": ("clock", "gfx_0"), "gfx_clock": ("clock", "gfx_0"), "gfx_0_clk": ("clock", "gfx_0"), "clk": ("clock", "gfx_0"),
    "total_correctable_count": ("ecc", "total_correctable_count"), "single_bit_ecc": ("ecc", "total_correctable_count"),
    "total_uncorrectable_count": ("ecc", "total_uncorrectable_count"), "double_bit_ecc": ("ecc", "total_uncorrectable_count"),
    "pcie_replay": ("pcie", "replay_count"), "market_name": ("asic", "market_name"), "bdf": ("bus", "bdf"), "gpu_bdf": ("bus", "bdf"),
}  # fmt: skip
_OF_A_GPU = frozenset(_CSV_COLUMNS) - {"power", "clk", "bdf", "gfx", "edge"}  # words of which any table may have one
# 171.4/192.0 GB      under VRAM_USAGE
_HELD = re.compile(r"(\d{1,5}(?:\.\d{1,3})?)/(\d{1,5}(?:\.\d{1,3})?) ([KMGT]i?B)")
# GPU: 0                             HOTSPOT: 41 °C
_GPU = re.compile(r"(?m)^GPU: \d{1,4}\s{0,8}$")
_PAIR = re.compile(r"( {0,60})([A-Z][A-Z0-9_]{1,60}):\s{0,20}(.{0,300}?)\s{0,20}")
_SECTIONS = re.compile(
    r"(?m)^ {4}(?:USAGE|POWER|CLOCK|TEMPERATURE|PCIE|ECC|ECC_BLOCKS|MEM_USAGE|ASIC|BUS|VBIOS|DRIVER|KFD_ID|BDF|RETIRED|PENDING|UN_RES):"
)


def sniff(head: str) -> int:
    """95 for a document of the tool, 90 for the sentence that it prints instead."""
    if (_GPU.search(head) and _SECTIONS.search(head)) or _amd_box.heads(head):
        return 95
    if heading := next((line.text for line in lines_of(head)[:20] if _MONITOR.fullmatch(line.text[:600])), ""):
        return 95 if any(name in _COLUMNS for name in heading.split()) else 0
    if _headed(head):
        return 95
    if opens(head) in ("[", "{") and '"gpu":' in head:
        signs = ('"gfx_activity"', '"total_uncorrectable_count"', '"market_name"', '"kfd_id"', '"socket_power"', '"total_vram"',
                 '"ppt_violation_status"', '"un_res"')  # fmt: skip
        sensors = '"hotspot"' in head and '"edge"' in head  # one of these words alone may be of anybody
        return 95 if sensors or any(sign in head for sign in signs) else 0
    return 90 if _ERROR.search(head) else 0


def parse(text: str, context: Context) -> list[Observation]:
    """Observations of one document."""
    emit = VendorEmitter(NAME, REVISION, context, VENDOR)
    rounds = _monitored(text)
    document = load(text) or [*_indented(text), *rounds, *_separated(text), *_amd_box.records(text)]
    records = tables(table(document).get("gpu_data", document))
    records = [r for r in records if isinstance(r.get("gpu"), int) and not isinstance(r["gpu"], bool)]
    if not records:
        said = _ERROR.search(text)
        return emit.failed(said[0] if said else NONE_LISTED)
    emit.count(len({r["gpu"] for r in records}))
    seen = any(not _blind(record) for record in rounds)
    for record in records:
        first = len(emit.out)
        _gpu(emit, record)
        if seen and record in rounds:
            emit.fact(
                "gpu.readings.absent",
                gpu(f"{VENDOR}:{record['gpu']}", context.host),
                _blind(record),
                excerpt="amd-smi monitor",
            )
        if isinstance(at := record.get("timestamp"), int) and 0 < at < _YEAR_3000:
            emit.out[first:] = [replace(o, at=at * 10**9, clock=Clock.REALTIME) for o in emit.out[first:]]
    return emit.out


_YEAR_3000 = 32_503_680_000  # seconds
_MOST = 20_000  # rows


def _blind(record: Mapping[str, Any]) -> bool:
    """Whether a row tells neither temperature nor power nor clock."""
    told = (value for key in ("temperature", "power", "clock") for value in table(record.get(key)).values())
    clocks = (inner for value in told for inner in (table(value).values() or [value]))
    return not any(re.match(r"\d", str(value)) for value in clocks)


def _indented(text: str) -> list[Mapping[str, Any]]:
    """The records of ``GPU: 0`` with its sections below it, by the keys of the JSON."""
    records: list[Mapping[str, Any]] = []
    stack: list[tuple[int, dict[str, Any]]] = []
    for raw in text.splitlines():
        found = _PAIR.fullmatch(clean(raw[:400]).rstrip())
        if found is None:
            continue
        indent, key, value = len(found[1]), found[2].lower(), found[3].replace("\u00b0", "")
        if key == "gpu" and not indent and value.isascii() and value.isdigit():
            record: dict[str, Any] = {"gpu": int(value[:4])}
            records.append(record)
            stack = [(0, record)]
            continue
        while len(stack) > 1 and stack[-1][0] >= indent:
            stack.pop()
        if stack and indent and len(stack) < 16:
            inner: dict[str, Any] = {}
            if key in ("page_address", "address") and value:
                stack[-1][1].setdefault("pages", []).append({key: value})
            elif key == "status" and (pages := stack[-1][1].get("pages")):
                pages[-1][key] = value
            stack[-1][1][key] = value or inner
            if not value:
                stack.append((indent, inner))
    return records


def _monitored(text: str) -> list[Mapping[str, Any]]:
    """The records of ``amd-smi monitor``; of several rounds of it the last, of those that tell their time (``-w``) all."""
    records: dict[tuple[int, int], Mapping[str, Any]] = {}
    columns: list[str] = []
    for line in lines_of(text):
        if _MONITOR.fullmatch(line.text[:600]):
            columns = line.text.split()
            continue
        row = (
            cells(_CLOSE.sub(r"\g<0> ", line.text[:2000].replace("\u00b0", "")), columns, columns[-1], gap=True)
            if columns
            else {}
        )
        timed = columns[:1] == ["TIMESTAMP"]
        begins = (_TIMED_ROW if timed else _ROW).match(line.text) if columns else None
        if begins is None or len(records) >= _MOST:
            continue
        record: dict[str, Any] = {"gpu": int(begins["gpu"])}
        if timed:
            record["timestamp"] = int(begins["at"])
        if row.get("GPU") != str(record["gpu"]):  # its cells stand elsewhere than the heading says
            record["temperature"] = {"hotspot": line.text.strip()[:80]}
        for name, (section, key) in _COLUMNS.items():
            if name in row:
                value: object = {"clk": row[name]} if section == "clock" else row[name]
                record.setdefault(section, {})[key] = value
        if held := _HELD.fullmatch(row.get("VRAM_USAGE", "")):
            record["mem_usage"] = {"used_vram": f"{held[1]} {held[3]}", "total_vram": f"{held[2]} {held[3]}"}
        records[record.get("timestamp", 0), record["gpu"]] = record
    return list(records.values())


def _headed(head: str) -> list[str]:
    """The columns of ``--csv``, by the first line that is a heading of it; none where none is."""
    lines = (line.text.strip().lower() for line in lines_of(head)[:20])
    heading = next((line for line in lines if _CSV.fullmatch(line[:4000])), "")
    return heading.split(",") if _OF_A_GPU.intersection(heading.split(",")) else []


def _separated(text: str) -> list[Mapping[str, Any]]:
    """The records of ``--csv``; of several rounds of ``monitor`` the last, of those that tell their time (``-w``) all."""
    columns = _headed(text[:20_000])
    records: dict[tuple[int, int], Mapping[str, Any]] = {}
    for line in lines_of(text) if columns else ():
        row = dict(zip(columns, (cell.strip() for cell in line.text[:4000].split(",")), strict=False))
        if len(row) < len(columns) or not re.fullmatch(r"[0-9]{1,4}", row["gpu"]) or len(records) >= _MOST:
            continue
        record: dict[str, Any] = {"gpu": int(row["gpu"])}
        if re.fullmatch(r"[0-9]{9,11}", row.get("timestamp", "")):
            record["timestamp"] = int(row["timestamp"])
        for name, (section, key) in _CSV_COLUMNS.items():
            if name in row:
                record.setdefault(section, {}).setdefault(key, _valued(section, row[name]))
        if "gfx" in row and "mem" in row:  # in `monitor` a share, in `metric` a temperature
            record.setdefault("usage", {}).setdefault("umc_activity", row["mem"])
        elif "mem" in row:
            record.setdefault("temperature", {}).setdefault("mem", row["mem"])
        records[record.get("timestamp", 0), record["gpu"]] = record
    return list(records.values())


def _valued(section: str, cell: str) -> object:
    if section == "clock":
        return {"clk": cell}
    return f"{cell} MB" if section == "mem_usage" and re.fullmatch(r"[0-9.]{1,12}", cell) else cell


def _gpu(emit: VendorEmitter, record: Mapping[str, Any]) -> None:
    bdf = words(table(record.get("bus")).get("bdf")) or words(record.get("bdf"))
    subject = emit.device(str(record["gpu"]), bdf)
    for section, key, fact, units, whole in _METRICS:
        part = table(record.get(section))
        if key in part:
            reading = number(part[key], units, whole=whole)
            if section == "limit" and reading.value == 0:
                reading = Reading(None, Status.UNSUPPORTED, "a limit of 0 is none")
            emit.put(fact, subject, reading, shown=_shown(section, key, part[key]))
    for section, key, fact in _TEXTS:
        part = table(record.get(section))
        if key in part:
            emit.put(fact, subject, text_of(part[key]), shown=_shown(section, key, part[key]))
    clock = table(table(record.get("clock")).get("gfx_0"))
    if "clk" in clock:
        reading = number(clock["clk"], MHZ, whole=True)
        emit.put("gpu.clock.graphics", subject, reading, shown=_shown("clock", "gfx_0", clock["clk"]))
    numa = table(record.get("numa")).get("node")
    if isinstance(numa, int) and not isinstance(numa, bool) and numa >= 0:
        emit.fact("gpu.numa", subject, numa, excerpt=f"numa: node {numa}")
    _errors(emit, subject, record)
    _bad_pages(emit, subject, record)
    if "xgmi_err" in record:
        emit.put("gpu.xgmi.state", subject, _xgmi(words(record["xgmi_err"])), shown=f"xgmi_err: {record['xgmi_err']}")
    if isinstance(record.get("throttle"), dict):
        _throttle(emit, subject, record["throttle"])


def _shown(section: str, key: str, value: object) -> str:
    if isinstance(value, dict):
        value = f"{value.get('value')} {value.get('unit', '')}".strip()
    return f"{section}.{key}: {value}"


def _errors(emit: VendorEmitter, subject: Subject, record: Mapping[str, Any]) -> None:
    """The counters of RAS. Sleeping GPUs answer with all ones in every channel: those are no errors."""
    if "ecc" not in record:
        return
    ecc = table(record["ecc"])
    asleep = all_ones(ecc.get("total_correctable_count"), ecc.get("total_uncorrectable_count"))
    for key, fact in _ECC:
        if key not in ecc and len(ecc) == 1:  # a table with a single column for errors says nothing of the other kinds
            continue
        reading = asleep or number(ecc.get(key), PLAIN, whole=True)
        emit.put(fact, subject, reading, shown=_shown("ecc", key, ecc.get(key)))
    blocks = record.get("ecc_blocks")
    if isinstance(blocks, dict) and asleep is None:
        counted = {
            name.lower(): found.value
            for name, block in blocks.items()
            if (found := number(table(block).get("uncorrectable_count"), PLAIN, whole=True)).ok
        }
        if counted:
            bad = tuple(sorted(name for name, count in counted.items() if isinstance(count, int) and count > 0))
            emit.fact(
                "gpu.ras.uncorrected.blocks",
                subject,
                bad,
                excerpt=f"{len(counted)} blocks told, {len(bad)} with errors",
            )


def _bad_pages(emit: VendorEmitter, subject: Subject, record: Mapping[str, Any]) -> None:
    """How many pages are retired, wait for it, or could not be; each page may say which, whatever section it stands in."""
    said = {section: record[section] for section in _PAGES if section in record}
    counts = {_PAGES[section]: 0 for section, value in said.items() if not _untold(value)}
    for section, value in said.items():
        for page in _listed_pages(value):
            state = words(page.get("status")).lower().rpartition("_")[2]
            state = state if state in _PAGE_FACTS else _PAGES[section]
            counts[state] = counts.get(state, 0) + 1
    for state, count in counts.items():
        emit.fact(_PAGE_FACTS[state], subject, count, excerpt=f"{count} bad pages: {state}")
    for section, value in said.items():
        if _PAGES[section] not in counts:
            emit.put(_PAGE_FACTS[_PAGES[section]], subject, _untold_pages(value), shown=f"{section}: {words(value)}")


def _listed_pages(value: object) -> list[Mapping[str, Any]]:
    """The pages of a section: a list of JSON, one page alone, or what stands indented below it, at whatever depth."""
    if isinstance(value, dict) and "page_address" not in value and "address" not in value and "pages" not in value:
        return [page for inner in value.values() for page in _listed_pages(inner)]
    return tables(value["pages"] if isinstance(value, dict) and "pages" in value else value)


def _untold(value: object) -> bool:
    """Whether a section tells neither pages nor that there are none."""
    return isinstance(value, str) and words(value).rstrip(".").lower() != _NO_PAGES


def _untold_pages(value: object) -> Reading:
    told = text_of(value)
    return not_understood(words(value), "a list of bad pages") if told.ok else told


def all_ones(corrected: object, uncorrected: object) -> Reading | None:
    """Why two counters are none: both the same whole number of channels that read as ones. None when they may be real."""
    if isinstance(corrected, int) and corrected == uncorrected and corrected > 0 and corrected % _ALL_ONES == 0:
        why = f"{corrected} corrected and as many uncorrected errors are channels that read as ones: the GPU was asleep"
        return Reading(None, Status.FAILED, why)
    return None


def _xgmi(said: str) -> Reading:
    word = said.lower().removeprefix("amdsmi_xgmi_status_")
    if word in _XGMI:
        return Reading(_XGMI[word])
    return text_of(said) if not text_of(said).ok else not_understood(said, "a state of xGMI links")


def _throttle(emit: VendorEmitter, subject: Subject, part: Mapping[str, Any]) -> None:
    """What is active now; a partitioned GPU tells the rest for each partition, which is not looked at."""
    told = {}
    for key, reason in _REASONS.items():
        said = part.get(f"{key}_violation_status")
        state = said if isinstance(said, bool) else _ACTIVE.get(words(said).lower())
        if state is not None:
            told[reason] = state
    if told:
        active = tuple(sorted(reason for reason, on in told.items() if on))
        emit.fact(
            "gpu.throttle.reasons", subject, active, excerpt=f"violation status active: {', '.join(active) or 'none'}"
        )
    else:
        emit.missing("gpu.throttle.reasons", subject, Status.UNSUPPORTED, "the GPU tells no violation status")


FORMAT = DocumentFormat(NAME, "amd-smi", REVISION, PROVIDES, sniff, parse)
