"""``rocm-smi ... --json``: AMD's older tool, one object ``cardN`` for each GPU and one ``system``.

Source of the keys: rocm_smi.py of ROCm/rocm_smi_lib, as printed by ROCm 5 to 7 (``--showallinfo``, ``-a``): values are
texts, the keys carry the unit. ``cardN`` is a number of the kernel's graphics cards, not that of amd-smi.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from knowledge.observation import Observation, Subject
from probes.base import Context, DocumentFormat
from probes.parse._vendor_emit import (
    CELSIUS,
    MIB,
    NONE_LISTED,
    PERCENT,
    PLAIN,
    WATTS,
    VendorEmitter,
    load,
    number,
    opens,
    table,
    text_of,
    words,
)

NAME, REVISION, VENDOR = "rocm-smi", 1, "amd"
PROVIDES = (
    "node.gpus.amd", "gpu.vendor", "gpu.vendor_index", "gpu.name", "gpu.serial", "gpu.vbios", "gpu.driver.version",
    "gpu.utilization.core", "gpu.power.draw", "gpu.power.limit", "gpu.temperature.core", "gpu.temperature.hotspot",
    "gpu.temperature.memory", "gpu.memory.total", "gpu.memory.used", "gpu.pcie.replay",
)  # fmt: skip
_NONE = re.compile(r"No AMD GPUs? specified|No AMD GPUs? (?:found|detected)")
_CARD = re.compile(r"card(\d{1,3})")
_NUMBERS: tuple[tuple[str, str, Mapping[str, float], bool, str], ...] = (
    ("GPU use (%)", "gpu.utilization.core", PERCENT, True, ""),
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


def sniff(head: str) -> int:
    """95 for an object with ``cardN`` and a key of the tool, or for its word that there is none."""
    if _NONE.search(head):
        return 95
    if opens(head) != "{" or not re.search(r'"card\d{1,3}":', head):
        return 0
    return 95 if any(sign in head for sign in _SIGNS) else 0


def parse(text: str, context: Context) -> list[Observation]:
    """Observations of one document."""
    emit = VendorEmitter(NAME, REVISION, context, VENDOR)
    if none := _NONE.search(text):
        return emit.failed(none[0])
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


FORMAT = DocumentFormat(NAME, "rocm-smi --json", REVISION, PROVIDES, sniff, parse)
