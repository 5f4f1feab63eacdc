"""``ethtool -m``: what the module or cable in an interface tells of itself (SFF-8472, SFF-8636, CMIS).

Names of the lines: ethtool's sfpdiag.c, qsfp.c, cmis.c and sff-common.c. Lanes are numbered from 1::

    Identifier                                : 0x11 (QSFP28)
    Rcvr signal avg optical power(Channel 1)  : 0.9240 mW / -0.34 dBm
    Laser rx power low alarm threshold        : 0.0457 mW / -13.40 dBm
    Laser rx power low alarm    (Channel 2)   : Off

Serial numbers are not kept.
"""

from __future__ import annotations

import re

from knowledge.observation import Observation, Scope, Status, Subject
from probes.base import Context, DocumentFormat
from probes.parse import _optics
from probes.parse._app_emit import Emitter, clean_lines
from probes.parse._optics import Module, emit_module
from probes.parse._whose import interface

NAME, REVISION = "ethtool-module", 1
_HEAD = re.compile(r"^\s{0,12}Identifier\s{1,60}: 0x[0-9a-f]{2} \(", re.MULTILINE)
_LINE = re.compile(r"\s{0,12}(\S.{0,60}?)\s{0,60}: (.{0,120})")
_CELSIUS = re.compile(r"(-?\d{1,4}(?:\.\d{1,4})?) degrees C")
_DBM = re.compile(r"(-inf|-?\d{1,3}(?:\.\d{1,4})?) dBm")
_IN_BRACKETS = re.compile(r"0x[0-9a-f]{2} \((.{1,80})\)")
_RX = re.compile(
    r"(?:rcvr signal avg optical power|receiver signal (?:average optical power|oma)|rx power)\s?(?:\(channel \d{1,2}\))?"
)
_TX = re.compile(r"(?:laser output power|transmit avg optical power|tx power)\s?(?:\(channel \d{1,2}\))?")
_ALARM = re.compile(r"(.{1,50}? (?:high|low) alarm)\s{0,8}(\((?:channel|chan) \d{1,2}\))?")
# netlink error: Operation not supported | Cannot get module EEPROM information: Operation not permitted
_ERROR = re.compile(r"(?:netlink error|Cannot get [Mm]odule EEPROM (?:information|data)): (.{1,120})")


def sniff(head: str) -> int:
    """90 when the identifier of a module stands at a line start."""
    return 90 if _HEAD.search(head[:8000]) else 0


def parse(text: str, context: Context) -> list[Observation]:
    """Facts of one module."""
    emit = Emitter(NAME, REVISION, context)
    name = interface(text, context)
    of = Subject(Scope.NIC, name, emit.node)
    if not _HEAD.search(text):
        found = _ERROR.search(text)
        why = found[1] if found else "the output shows no module"
        denied = "permitted" in why or "permission" in why.lower()
        emit.missing("optics.alarms", Subject(Scope.OBJECT, f"module of {name}", emit.node),
                     Status.DENIED if denied else Status.UNSUPPORTED if found else Status.FAILED, why)  # fmt: skip
        return emit.out
    module = Module()
    for line in clean_lines(text):
        if found := _LINE.fullmatch(line.text.rstrip()):
            _take(module, " ".join(found[1].split()), found[2].strip())
    emit_module(emit, name, module, of)
    return emit.out


def _take(module: Module, key: str, value: str) -> None:
    low = key.lower()
    if low == "identifier":
        named = _IN_BRACKETS.fullmatch(value)
        module.type = named[1] if named else value
    elif low == "vendor name":
        module.vendor = value
    elif low == "vendor pn":
        module.part = value
    elif low in ("transmitter technology", "connector", "transceiver type"):
        _medium(module, value.lower())
    elif low == "module temperature" and (found := _CELSIUS.search(value)):
        module.temperature = float(found[1])
    elif low == "module temperature high alarm threshold" and (found := _CELSIUS.search(value)):
        module.hot = float(found[1]) if float(found[1]) > 0 else None  # a module that names none prints zero
    elif "threshold" in low:
        if found := _DBM.search(value):
            _limit(module, low, _power(found[1]))
    elif value in ("On", "Off") and (alarm := _ALARM.fullmatch(low)):
        module.alarms_told = True
        if value == "On":
            module.alarms.append(" ".join(f"{alarm[1]} {alarm[2] or ''}".split()))
    elif found := _DBM.search(value):
        if _RX.fullmatch(low):
            module.rx.append(_power(found[1]))
        elif _TX.fullmatch(low):
            module.tx.append(_power(found[1]))


def _medium(module: Module, value: str) -> None:
    if "copper" in value or "passive cu" in value:
        module.medium = "copper"
    elif not module.medium and any(word in value for word in ("vcsel", "laser", " lc)", "mpo", "optic", "dfb", "eml")):
        module.medium = "optical"


def _limit(module: Module, low: str, power: float) -> None:
    if low == "laser rx power low alarm threshold":
        module.rx_low = power
    elif low in ("laser output power low alarm threshold", "laser tx power low alarm threshold"):
        module.tx_low = power


def _power(text: str) -> float:
    return -40.0 if text == "-inf" else float(text)


FORMAT = DocumentFormat(NAME, "ethtool -m", REVISION, _optics.FACTS, sniff, parse)
