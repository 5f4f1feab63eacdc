"""``rocm-smi``, with ``--json`` or without: AMD's older tool, one object ``cardN`` for each GPU and one ``system``.

Source of the keys: rocm_smi.py of ROCm/rocm_smi_lib, as printed by ROCm 5 to 7 (``--showallinfo``, ``-a``): values are
texts, the keys carry the unit. ``cardN`` is a number of the kernel's graphics cards, not that of amd-smi. Without ``--json`` the
same keys stand behind ``GPU[N]``; the short table has a row for each GPU, ``--showrasinfo`` and ``--showpagesinfo`` one for
each block and page. The log has an end mark.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from knowledge.identity import normalise_pci
from knowledge.observation import Observation, Status, Subject, gpu
from knowledge.text import clean
from probes.base import Context, DocumentFormat, lines_of
from probes.parse._smi_values import Reading
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
    text_of,
    words,
)

NAME, REVISION, VENDOR = "rocm-smi", 5, "amd"
PROVIDES = (
    "node.gpus.amd", "gpu.vendor", "gpu.vendor_index", "gpu.name", "gpu.serial", "gpu.vbios", "gpu.driver.version",
    "gpu.utilization.core", "gpu.utilization.memory", "gpu.power.draw", "gpu.power.limit", "gpu.temperature.core", "gpu.temperature.hotspot",
    "gpu.temperature.memory", "gpu.memory.total", "gpu.memory.used", "gpu.memory.share", "gpu.pcie.replay",
    "gpu.clock.graphics", "gpu.readings.absent", "gpu.ras.corrected", "gpu.ras.uncorrected", "gpu.ras.uncorrected.blocks",
    "gpu.xgmi.state", "gpu.bad_pages.retired", "gpu.bad_pages.pending", "gpu.bad_pages.failed", REFUSED,
)  # fmt: skip
# ERROR:root:Driver not initialized (amdgpu not found in modules)
_NONE = re.compile(
    r"No AMD GPUs? specified|No AMD GPUs? (?:found|detected)|(?m:^(?:ERROR:root:|ERROR:\s{1,8})?Driver not initialized[^\n]{0,120})"
)
_CARD = re.compile(r"card(\d{1,3})")
_NUMBERS: tuple[tuple[str, str, Mapping[str, float], bool, str], ...] = (
    ("GPU use (%)", "gpu.utilization.core", PERCENT, True, ""),
    ("GPU Memory Read/Write Activity (%)", "gpu.utilization.memory", PERCENT, True, ""),  # ROCm 6
    ("GPU memory use (%)", "gpu.utilization.memory", PERCENT, True, ""),  # before: the same reading under another name
    ("Average Graphics Package Power (W)", "gpu.power.draw", WATTS, False, ""),
    ("Current Socket Graphics Package Power (W)", "gpu.power.draw", WATTS, False, ""),
    ("Max Graphics Package Power (W)", "gpu.power.limit", WATTS, False, ""),
    ("Temperature (Sensor edge) (C)", "gpu.temperature.core", CELSIUS, True, ""),
    ("Temperature (Sensor junction) (C)", "gpu.temperature.hotspot", CELSIUS, True, ""),
    ("Temperature (Sensor memory) (C)", "gpu.temperature.memory", CELSIUS, True, ""),
    ("VRAM Total Memory (B)", "gpu.memory.total", MIB, True, "B"),
    ("VRAM Total Used Memory (B)", "gpu.memory.used", MIB, True, "B"),
    ("PCIe Replay Count", "gpu.pcie.replay", PLAIN, True, ""),
)
_TEXTS = (
    ("Card Series", "gpu.name"), ("Card series", "gpu.name"), ("Serial Number", "gpu.serial"), ("VBIOS version", "gpu.vbios"),
)  # fmt: skip
_SIGNS = (
    "GPU use (%)",
    "(Sensor ",
    "VRAM Total",
    '"PCI Bus"',
    '"Card Series"',
    '"Card series"',
    "Graphics Package Power",
)
_BANNER = re.compile(r"(?m)^=+ ROCm System Management Interface =+\s{0,8}$")
_END = re.compile(r"(?m)^=+ End of ROCm SMI Log =+")
# Values are not to be had while a card sleeps: WARNING: AMD GPU device(s) is/are in a low-power state. Check power control/runtime_status
_ASLEEP = re.compile(r"in a low-power state")
# GPU[0]          : Temperature (Sensor junction) (C): 41.0
_LINE = re.compile(r"GPU\[(\d{1,3})\]\s{0,20}:(?:\s{1,20}(\S.{0,100}?): (\S.{0,200}))?(.{0,300})")
# Device  Node  IDs              Temp        Power     Partitions          SCLK    MCLK    Fan  Perf  PwrCap  VRAM%  GPU%
_SHORT = re.compile(r"(?:Device|GPU)\s{1,20}(?=.{0,200}\bTemp\b)(?=.{0,200}\bSCLK\b).{10,300}\bGPU%\s{0,20}")
#            UMC     ENABLED                   12                    3       corrected ahead of uncorrected, in every version
_BLOCK = re.compile(
    r"(?:GPU\[\d{1,3}\]\s{0,20}:)?\s{1,40}([A-Z][A-Z0-9_]{1,20})\s{1,40}(?:ENABLED|SINGLE_CORRECTABLE|MULTI_UNCORRECTABLE|POISON)\s{1,40}(\d{1,12})\s{1,40}(\d{1,12})\s{0,20}"
)
#     0x0000000012345000      0x1000      reserved
_PAGE = re.compile(
    r"(?:GPU\[\d{1,3}\]\s{0,20}:)?\s{1,40}0x[0-9a-fA-F]{1,16}\s{1,40}0x[0-9a-fA-F]{1,16}\s{1,40}(reserved|pending|unreservable)\s{0,20}"
)
_PAGES = {
    "reserved": "gpu.bad_pages.retired",
    "pending": "gpu.bad_pages.pending",
    "unreservable": "gpu.bad_pages.failed",
}
_TABLE: tuple[tuple[str, str, Mapping[str, float], bool], ...] = (
    ("Power", "gpu.power.draw", WATTS, False),
    ("AvgPwr", "gpu.power.draw", WATTS, False),
    ("SCLK", "gpu.clock.graphics", MHZ, True),
    ("PwrCap", "gpu.power.limit", WATTS, False),
    ("GPU%", "gpu.utilization.core", PERCENT, True),
    ("VRAM%", "gpu.memory.share", PERCENT, True),
)
_XGMI = {"0": "ok", "1": "error", "2": "multiple_errors"}
_NO_VALUE = frozenset({"n/a", "none", "unsupported", "unknown"})


def sniff(head: str) -> int:
    """95 for the banner of the text, an object with ``cardN`` and a key of the tool, or for its word that there is none."""
    if _NONE.search(head):
        return 95
    if _BANNER.search(head):
        return 95
    if opens(head) != "{" or not re.search(r'"card\d{1,3}":', head):
        return 0
    return 95 if any(sign in head for sign in _SIGNS) else 0


def parse(text: str, context: Context) -> list[Observation]:
    """Observations of one document."""
    emit = VendorEmitter(NAME, REVISION, context, VENDOR)
    if none := _NONE.search(text):
        return emit.failed(none[0])
    if opens(text) != "{":
        return _text(emit, text)
    document = table(load(text))
    cards = [(found[1], table(value)) for name, value in document.items() if (found := _CARD.fullmatch(str(name)))]
    if not cards:
        return emit.failed(NONE_LISTED)
    emit.count(len(cards))
    driver = text_of(table(document.get("system")).get("Driver version"))
    for index, card in cards:
        subject = emit.device(f"card{index}", words(card.get("PCI Bus")))
        if driver.ok:
            emit.put("gpu.driver.version", subject, driver, shown=f"Driver version: {driver.value}")
        _card(emit, subject, card)
    return emit.out


def _text(emit: VendorEmitter, text: str) -> list[Observation]:
    """Observations of what is printed without ``--json``."""
    cards: dict[str, dict[str, Any]] = {}
    rows: dict[str, tuple[list[str], str]] = {}
    blocks: dict[str, dict[str, tuple[int, int]]] = {}
    pages: dict[str, list[str]] = {}
    sensor, columns, current = "", list[str](), ""
    ended = _END.search(text) is not None
    for line in lines_of(text)[: None if ended else -1]:  # what stands behind the last line end may be half a line
        told = clean(line.text[:800]).expandtabs(8).rstrip()
        if found := _LINE.fullmatch(told):
            current = found[1]
            card = cards.setdefault(current, {})
            if found[2]:
                card.setdefault(found[2], found[3])
        if block := _BLOCK.fullmatch(told):
            blocks.setdefault(current, {})[block[1]] = int(block[2]), int(block[3])
        elif page := _PAGE.fullmatch(told):
            pages.setdefault(current, []).append(page[1])
        elif _SHORT.fullmatch(told):
            columns, sensor = re.sub(r" \([^)]{0,40}\)", "", told).split(), told
        elif columns and "(Junction)" in told:
            sensor = told
        elif columns and (row := re.match(r"(\d{1,3})\s{2,}", told)):
            rows[row[1]] = told.split(), told
            cards.setdefault(row[1], {})
    if not cards or not ended:
        emit.failed("the listing ends early: its end mark is missing" if cards else NONE_LISTED)
    else:
        emit.count(len(cards))
    blind = {index for index, (found, _) in rows.items() if not any(_celsius(cell).ok for cell in found)}
    for index, card in cards.items():
        subject = emit.device(f"card{index}")  # under its number: the address stands far below, and may be cut off
        if address := words(card.get("PCI Bus")):
            shown = f"PCI Bus: {address}"
            emit.fact("gpu.vendor_index", gpu(normalise_pci(address), emit.context.host), subject.id, excerpt=shown)
        _card(emit, subject, card)
        if index in rows:
            _row(emit, subject, columns, *rows[index], sensor)
            if len(blind) < len(rows) and not _ASLEEP.search(text):
                emit.fact("gpu.readings.absent", subject, index in blind, excerpt=rows[index][1])
        if not ended and index == current:  # more of its blocks and pages may have stood behind
            continue
        if counted := blocks.get(index):
            bad = tuple(sorted(name.lower() for name, (_, lost) in counted.items() if lost))
            shown = ", ".join(
                f"{name} {fixed} corrected, {lost} uncorrected"
                for name, (fixed, lost) in counted.items()
                if fixed or lost
            )
            shown = shown or f"{len(counted)} blocks without errors"
            emit.fact("gpu.ras.corrected", subject, sum(fixed for fixed, _ in counted.values()), excerpt=shown)
            emit.fact("gpu.ras.uncorrected", subject, sum(lost for _, lost in counted.values()), excerpt=shown)
            emit.fact("gpu.ras.uncorrected.blocks", subject, bad, excerpt=shown)
        for word, fact in _PAGES.items():
            if index in pages:
                emit.fact(fact, subject, pages[index].count(word), excerpt=f"{pages[index].count(word)} pages {word}")
    return emit.out


def _celsius(cell: str) -> Reading:
    """A temperature; why not, for every other cell."""
    if not re.fullmatch(r"\d{1,3}(?:\.\d{1,2})?\s?\u00b0?[cC]", cell):
        return Reading(None, Status.UNSUPPORTED, "not told")
    return number(cell.replace("\u00b0", ""), CELSIUS, whole=True)


def _row(emit: VendorEmitter, subject: Subject, columns: list[str], found: list[str], shown: str, sensor: str) -> None:
    """One row of the short table. Words are counted from the right, up to the column whose cells hold blanks; ahead of that
    temperature and power are known by their units."""
    behind = columns[columns.index("Partitions") + 1 :] if "Partitions" in columns else columns[1:]
    row = dict(zip(reversed(behind), reversed(found), strict=False))
    ahead = found[: -len(behind)] if "Partitions" in columns else []
    for word in ahead:
        if _celsius(word).ok:
            row["Temp"] = word
        elif re.fullmatch(r"\d{1,5}(?:\.\d{1,3})?W", word):
            row["Power"] = word
    fact = "gpu.temperature.hotspot" if "(Junction)" in sensor else "gpu.temperature.core"
    if (degrees := _celsius(row.get("Temp", ""))).ok:
        emit.put(fact, subject, degrees, shown=shown)
    for column, name, units, whole in _TABLE:
        if column in row and row[column].lower() not in _NO_VALUE:
            emit.put(name, subject, number(row[column], units, whole=whole), shown=shown)


def _card(emit: VendorEmitter, subject: Subject, card: Mapping[str, Any]) -> None:
    done: set[str] = set()
    for key, fact, units, whole, unit in _NUMBERS:
        if key in card and fact not in done:
            done.add(fact)
            said = {"value": card[key], "unit": unit} if unit else card[key]
            emit.put(fact, subject, number(said, units, whole=whole), shown=f"{key}: {card[key]}")
    for key, fact in _TEXTS:
        if key in card and fact not in done:
            done.add(fact)
            emit.put(fact, subject, text_of(card[key]), shown=f"{key}: {card[key]}")
    if state := _XGMI.get(words(str(card.get("XGMI Error count", "")))[:1]):
        emit.fact("gpu.xgmi.state", subject, state, excerpt=f"XGMI Error count: {card['XGMI Error count']}")


FORMAT = DocumentFormat(NAME, "rocm-smi", REVISION, PROVIDES, sniff, parse)
