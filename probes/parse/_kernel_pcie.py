"""PCI Express in the kernel log: AER records, containment, hot-plug slots, narrow links."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import field

from knowledge.identity import normalise_pci
from knowledge.observation import Scalar
from knowledge.record import dataclass
from probes.parse._kernel_common import PCI, Reading, body, from_kernel, rx, severity_of, slot, within
from probes.parse._kernel_shape import Entry
from probes.parse._logtime import SECOND

_FULL = r"[0-9a-fA-F]{4,8}:[0-9a-fA-F]{2}:[0-9a-fA-F]{2}\.[0-9a-fA-F]"
# pcieport 0000:00:03.1: AER: Correctable error message received from 0000:00:00.0
# pcieport 0000:00:03.0: AER: Multiple Uncorrected (Fatal) error received: 0000:00:03.0
_RECEIVED = (
    rf"(?:(\S{{1,40}}) )?({_FULL}): AER: (Multiple )?((?:Un)?[Cc]orrect(?:ed|able)(?: \((?:Non-)?Fatal\))?) error "
    rf"(?:message )?received(?:: | from )?({PCI})?"
)
# aer_ratelimit: 4211 callbacks suppressed         as many more that were not printed
_SUPPRESSED = r"\baer_\w{1,40}: (\d{1,9}) callbacks suppressed"
# pcieport 0000:00:03.1: PCIe Bus Error: severity=Correctable, type=Data Link Layer, (Transmitter ID)
_ERROR = (
    rf"(?:(\S{{1,40}}) )?({_FULL}): (?:AER: )?PCIe Bus Error: severity=([^,]{{1,40}}), type=([^,]{{1,40}}?)(?: Layer)?, "
    r"(?:\(([^)]{1,40})\)|id=\S+\(([^)]{1,40})\))"
)
# pcieport 0000:00:03.0:   device [8086:6f08] error status/mask=00004020/00000000
_STATUS = (
    rf"(?:({_FULL}): +(?:AER: +)?)?device \[[0-9a-fA-F:]{{9}}\] error status/mask=([0-9a-fA-F]{{8}})/([0-9a-fA-F]{{8}})"
)
# pcieport 0000:00:03.0:    [14] CmpltTO                (First)
_BIT = rf"(?:({_FULL}): +(?:AER: +)?)\[ ?(\d{{1,2}})\] +(\w{{1,30}})"
# nvidia 0000:03:00.0: AER: can't recover (no error_detected callback)
_STUCK = rf"(\S{{1,40}}) ({_FULL}): AER: [Cc]an't recover"
# pcieport 0000:00:03.0: AER: device recovery failed
_RECOVERY = rf"({_FULL}): AER: [Dd]evice recovery (failed|successful)"
# pcieport 0000:b0:02.0: DPC: containment event, status:0x1f01 source:0x0000
_DPC = rf"({_FULL}): DPC: containment event,? ?(.{{0,120}})"
# pcieport 0000:16:01.0: pciehp: Slot(8): Link Down          pciehp 0000:16:01.0:pcie004: Slot(8): Card not present
_HOTPLUG = rf"({_FULL})\S{{0,12}}: (?:pciehp: )?Slot\(([^)]{{1,16}})\): (Link Down|Card not present)"
# mlx5_core 0000:86:00.0: 63.008 Gb/s available PCIe bandwidth, limited by 8.0 GT/s PCIe x8 link at 0000:80:02.0
#   (capable of 126.024 Gb/s with 16.0 GT/s PCIe x8 link)
_LIMITED = (
    rf"({_FULL}): (\d{{1,5}}\.\d{{1,4}}) Gb/s available PCIe bandwidth, limited by (\d{{1,3}}(?:\.\d)?) GT/s PCIe x(\d{{1,2}})"
    rf" link at ({_FULL})(?: \(capable of (\d{{1,5}}\.\d{{1,4}}) Gb/s with (\d{{1,3}}(?:\.\d)?) GT/s PCIe x(\d{{1,2}}))?"
)
# Bits of the AER status registers, PCI Express Base Specification, section 7.8.4; the kernel's short names.
_CORRECTABLE = {
    0: "RxErr", 6: "BadTLP", 7: "BadDLLP", 8: "Rollover", 12: "Timeout", 13: "NonFatalErr", 14: "CorrIntErr",
    15: "HeaderOF",
}  # fmt: skip
_UNCORRECTABLE = {
    0: "Undefined", 4: "DLP", 5: "SDES", 12: "TLP", 13: "FCP", 14: "CmpltTO", 15: "CmpltAbrt", 16: "UnxCmplt",
    17: "RxOF", 18: "MalfTLP", 19: "ECRC", 20: "UnsupReq", 21: "ACSViol", 22: "UncorrIntErr", 23: "BlockedTLP",
    24: "AtomicOpBlocked", 25: "TLPBlockedErr", 26: "PoisonTLPBlocked",
}  # fmt: skip


@dataclass(slots=True)
class _Record:
    """One AER report while its lines are gathered."""

    entry: Entry
    host: str
    port: str  # the reporting device
    severity: str | None = None
    origin: str = ""  # the device that detected the error
    layer: str = ""
    agent: str = ""
    bits: list[str] = field(default_factory=list)
    stuck: str = ""  # a GPU that could not be recovered
    recovered: bool | None = None
    count: int = 1  # errors that it stands for, as far as the log tells
    lines: list[Entry] = field(default_factory=list)


def read(reading: Reading) -> None:
    """AER, DPC, hot-plug and bandwidth messages."""
    records: list[_Record] = []
    orphans: list[tuple[Entry, str]] = []  # "can't recover" whose record is not in the log
    behind: dict[tuple[str, str], str] = {}  # (host, port) -> GPU that the log shows behind it
    for entry in reading.entries:
        message = entry.message
        if (
            "AER" in message
            or "aer_" in message
            or "PCIe Bus Error" in message
            or "error status/mask" in message
            or "] " in message
        ):
            _aer_line(reading, entry, records, orphans, behind)
        if "DPC" in message and (found := rx(_DPC).search(message)) and from_kernel(entry):
            fields: dict[str, Scalar] = {"status": found[2], "text": body(message)}
            reading.event("pcie_containment", reading.device(entry, found[1]), entry, fields)
        elif "Slot(" in message and (found := rx(_HOTPLUG).search(message)) and from_kernel(entry):
            what = "link_down" if "Down" in found[3] else "card_not_present"
            fields = {"what": what, "slot": found[2], "text": body(message)}
            reading.event("pcie_link_down", reading.device(entry, found[1]), entry, fields)
        elif "available PCIe bandwidth" in message and (found := rx(_LIMITED).search(message)) and from_kernel(entry):
            _limited(reading, entry, found)
    for record in records:
        _emit(reading, record, behind)
    _emit_orphans(reading, records, orphans)


def _aer_line(
    reading: Reading, entry: Entry, records: list[_Record],
    orphans: list[tuple[Entry, str]], behind: dict[tuple[str, str], str],
) -> None:  # fmt: skip
    message, host = entry.message, reading.host(entry)
    if not from_kernel(entry):
        return
    if found := rx(_RECEIVED).search(message):
        record = _Record(entry, host, normalise_pci(found[2]), severity_of(found[4]), lines=[entry])
        record.origin = normalise_pci(found[5]) if found[5] else ""
        record.count = 2 if found[3] else 1
        records.append(record)
    elif "suppressed" in message and (found := rx(_SUPPRESSED).search(message)):
        if records and records[-1].host == host and within(records[-1].entry, entry, 60 * SECOND):
            records[-1].count += int(found[1])
    elif found := rx(_ERROR).search(message):
        address = normalise_pci(found[2])
        record_ = _open(records, host, entry, lambda r: not r.layer and address in (r.port, r.origin))
        record_ = record_ or _open(records, host, entry, lambda r: not r.layer and entry.number - r.entry.number <= 2)
        if record_ is None:
            record_ = _Record(entry, host, address)
            records.append(record_)
        record_.severity = severity_of(found[3]) or record_.severity
        record_.origin = address
        record_.layer, record_.agent = found[4].strip(), (found[5] or found[6] or "").strip()
        record_.lines.append(entry)
    elif found := rx(_STATUS).search(message):
        _status(records, host, entry, found)
    elif found := rx(_STUCK).search(message):
        _stuck(reading, entry, found, records, orphans)
    elif found := rx(_RECOVERY).search(message):
        port = normalise_pci(found[1])
        if record_ := _open(records, host, entry, lambda r: r.port == port and r.recovered is None):
            record_.recovered = found[2] == "successful"
        if orphans and entry.number - orphans[-1][0].number <= 6 and reading.host(orphans[-1][0]) == host:
            behind[host, port] = orphans[-1][1]
    elif (found := rx(_BIT).search(message)) and found[1]:
        address = normalise_pci(found[1])
        names = {**_UNCORRECTABLE, **_CORRECTABLE}.values()
        record_ = _open(records, host, entry, lambda r: address in (r.port, r.origin))
        if record_ and found[3] in names and found[3] not in record_.bits:
            record_.bits.append(found[3])


def _open(records: list[_Record], host: str, entry: Entry, fits: Callable[[_Record], bool]) -> _Record | None:
    """The latest record of that host, at most 12 lines and 5 s back, that `fits`."""
    for record in reversed(records[-16:]):
        near = entry.number - record.lines[-1].number <= 12 and within(record.entry, entry, 5 * SECOND)
        if record.host == host and near and fits(record):
            return record
    return None


def _status(records: list[_Record], host: str, entry: Entry, found: re.Match[str]) -> None:
    address = normalise_pci(found[1]) if found[1] else ""
    record = _open(records, host, entry, lambda r: not address or address in (r.port, r.origin))
    if record is None:
        return
    raised = int(found[2], 16) & ~int(found[3], 16)
    names = _CORRECTABLE if record.severity == "corrected" else _UNCORRECTABLE
    record.bits += [name for bit, name in names.items() if raised >> bit & 1 and name not in record.bits]
    record.lines.append(entry)


def _stuck(
    reading: Reading, entry: Entry, found: re.Match[str], records: list[_Record], orphans: list[tuple[Entry, str]]
) -> None:
    address, host = normalise_pci(found[2]), reading.host(entry)
    if not reading.is_gpu(entry, address):
        return
    gpu = f"{slot(address)}.0"
    record = _open(records, host, entry, lambda r: r.recovered is None)
    if record is None:
        orphans.append((entry, gpu))
    elif not record.stuck:
        record.stuck = gpu
        record.lines.append(entry)


def _emit(reading: Reading, record: _Record, behind: dict[tuple[str, str], str]) -> None:
    # 0000:00:00.0 as the source of a message is a root port's way to say that it does not know.
    named = record.origin if record.origin and record.origin != "0000:00:00.0" else record.port
    subject = reading.device(record.entry, named)
    beyond = record.stuck or behind.get((record.host, record.port), "")
    fields: dict[str, Scalar] = {
        "severity": record.severity,
        "layer": record.layer,
        "agent": record.agent,
        "device": record.port,
        "port": record.port if record.port != named else "",
        "bits": ",".join(record.bits),
        "gpu": beyond or (subject.id if reading.is_gpu(record.entry, named) else ""),
        "recovered": record.recovered,
        "count": record.count,
        "text": body(" | ".join(e.message for e in record.lines)),
    }
    # Of some five lines the one that names severity, layer and device is the one to show; `text` holds them all.
    telling = next((e for e in record.lines if "PCIe Bus Error" in e.message), record.entry)
    reading.event("aer", subject, telling, fields, times=record.count if record.severity == "corrected" else 1)


def _emit_orphans(reading: Reading, records: list[_Record], orphans: list[tuple[Entry, str]]) -> None:
    """A GPU that could not be recovered although no record of its port follows: the log starts amid one."""
    told: set[tuple[str, str]] = set()
    starts = {(r.host, r.entry.number) for r in records}
    for entry, gpu in orphans:
        host = reading.host(entry)
        follows = any((host, entry.number + n) in starts for n in range(1, 13))
        if follows or (host, gpu) in told:
            continue
        told.add((host, gpu))
        fields: dict[str, Scalar] = {"gpu": gpu, "recovered": False, "text": body(entry.message)}
        reading.event("aer", reading.device(entry, gpu), entry, fields)


def _limited(reading: Reading, entry: Entry, found: re.Match[str]) -> None:
    fields: dict[str, Scalar] = {
        "available": float(found[2]),
        "speed": float(found[3]),
        "width": int(found[4]),
        "limited_by": normalise_pci(found[5]),
        "capable": float(found[6]) if found[6] else None,
        "max_speed": float(found[7]) if found[7] else None,
        "max_width": int(found[8]) if found[8] else None,
        "text": body(entry.message),
    }
    reading.event("pcie_bandwidth_limited", reading.device(entry, found[1]), entry, fields)
