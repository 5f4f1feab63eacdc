"""Counters that drivers of network interfaces print under names of their own (``ethtool -S``), as facts.

Names and meanings: mlx5 from docs.kernel.org/networking/device_drivers/ethernet/mellanox/mlx5/counters.html (durations of
pauses in microseconds, stalls in percent of the last second); bnxt_en, ice, i40e and ixgbe from the tables of names in the
kernel's drivers.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from knowledge.observation import Status, Subject
from knowledge.record import dataclass
from probes.parse._sysfs import Sheet, stamp, table, why_not

# fact -> names of which the first that is there counts; a pattern stands for the sum of all that match.
# rx_pause_ctrl_phy: 12 | rx_pause_frames: 0, rx_pfc_frames: 12 | rx_priority_3_xoff.nic: 12 | rx_flow_control_xoff: 12
_SUMS = {
    "nic.pause.rx": (
        r"rx_pause_ctrl_phy", r"rx_(?:global|prio[0-7])_pause", r"rx_(?:pause|pfc)_frames",
        r"(?:port\.)?(?:rx_priority_[0-7]_xoff|link_xoff_rx)(?:\.nic)?", r"rx_flow_control_xoff",
    ),
    "nic.pause.tx": (
        r"tx_pause_ctrl_phy", r"tx_(?:global|prio[0-7])_pause", r"tx_(?:pause|pfc)_frames",
        r"(?:port\.)?(?:tx_priority_[0-7]_xoff|link_xoff_tx)(?:\.nic)?", r"tx_flow_control_xoff",
    ),
    "nic.pause.storm.warnings": (r"tx_pause_storm_warning_events",),
    "nic.pause.storm.errors": (r"tx_pause_storm_error_events",),
    "nic.rx.buffer_discards": (r"rx_discards_phy", r"rx_prio[0-7]_discards", r"rx_stat_discard"),
    "nic.rx.out_of_buffer": (r"rx_out_of_buffer",),
    "nic.tx.discards": (r"tx_discards_phy", r"tx_stat_discard"),
    "nic.pcie.overflow": (r"outbound_pci_buffer_overflow",),
    "nic.rx.symbol_errors": (r"rx_pcs_symbol_err_phy", r"rx_symbol_err_phy"),
    "nic.rx.corrected_bits": (r"rx_corrected_bits_phy",),
    "nic.rx.oversize": (r"rx_oversize_pkts_phy", r"rx_ovrsz_frames", r"rx_oversize(?:\.nic)?"),
    "nic.link.downs": (r"link_down_events_phy", r"link_down_events"),
    "nic.module.too_hot": (r"module_high_temp",),
    "nic.module.shorted": (r"module_bad_shorted",),
    "nic.module.bus_stuck": (r"module_bus_stuck",),
    "nic.module.unplugged": (r"module_unplug",),
}  # fmt: skip
_PATTERNS = {fact: tuple(re.compile(p) for p in patterns) for fact, patterns in _SUMS.items()}
# fact -> counters of microseconds, of which the busiest priority counts
_TIMES = {
    "nic.pause.rx.share": re.compile(r"rx_(?:global|prio[0-7])_pause_duration"),
    "nic.pause.tx.share": re.compile(r"tx_(?:global|prio[0-7])_pause_duration"),
}
_PERCENT = {"nic.pcie.stalled.read": "outbound_pci_stalled_rd", "nic.pcie.stalled.write": "outbound_pci_stalled_wr"}
FACTS = (*_SUMS, *_TIMES, *_PERCENT)


@dataclass(frozen=True, slots=True)
class Reading:
    """The counters of one interface at one moment."""

    at: int | None  # ns since 1970
    monotonic: int | None
    values: Mapping[str, int]


def readings_of(record: Mapping[str, Any], document: Mapping[str, Any]) -> list[Reading]:
    """The readings that hold counters, on the document's wall clock."""
    at, begun, out = stamp(document.get("at_ns")), stamp(document.get("monotonic_ns")), []
    given = record.get("readings")
    for raw in given if isinstance(given, list) else ():
        counters = table(table(raw).get("counters"))
        if "error" in counters:
            continue
        now = stamp(table(raw).get("monotonic_ns"))
        placed = at + now - begun if at and begun and now else stamp(table(raw).get("at_ns"))
        values = {
            n: v for n, v in counters.items() if isinstance(v, int) and not isinstance(v, bool) and 0 <= v < 1 << 64
        }
        out.append(Reading(placed, now, values))
    return out


def emit_counters(sheet: Sheet, subject: Subject, record: Mapping[str, Any], readings: Sequence[Reading]) -> None:
    """Every counter at every reading, the shares between the two, and why one is not told.

    Of an interface without RDMA only what its driver counts is told, and once that it does not count: most have no such counters.
    """
    call = f"ethtool -S {subject.id}"
    if not readings:
        why = _without(record)
        for fact in FACTS if record.get("rdma") else FACTS[:1]:
            sheet.missing(fact, subject, *why, call)
        return
    begun = len(sheet.out)
    _counters(sheet, subject, readings, call)
    if not record.get("rdma"):
        told = [o for o in sheet.out[begun:] if o.status is Status.OK or o.fact == FACTS[0]]
        del sheet.out[begun:]
        sheet.out += told


def _counters(sheet: Sheet, subject: Subject, readings: Sequence[Reading], call: str) -> None:
    for fact in _SUMS:
        told = [(r, _sum(fact, r.values)) for r in readings]
        for reading, (value, shown) in ((r, found) for r, found in told if found is not None):
            sheet.fact(fact, subject, value, call, shown, at=reading.at)
        if all(found is None for _, found in told):
            sheet.missing(fact, subject, Status.UNSUPPORTED, "the driver of this interface does not count it", call)
    last = readings[-1]
    for fact, name in _PERCENT.items():
        if (share := last.values.get(name)) is not None and share <= 100:
            sheet.fact(fact, subject, float(share), call, f"{name}: {share}", at=last.at)
        else:
            sheet.missing(fact, subject, Status.UNSUPPORTED, "the driver of this interface does not measure it", call)
    for fact, pattern in _TIMES.items():
        _share(sheet, subject, fact, pattern, readings, call)


def _without(record: Mapping[str, Any]) -> tuple[Status, str]:
    """Why there are no counters at all."""
    given = record.get("readings")
    if hung := record.get("hung"):
        return Status.TIMEOUT, f"{hung} did not come back"
    if isinstance(kernel := record.get("kernel"), dict):
        return why_not(kernel)
    if isinstance(given, dict):
        return why_not(given)
    if isinstance(given, list) and given:
        return why_not(table(given[0]).get("counters"))
    return Status.UNSUPPORTED, "the driver of this interface has no counters of its own"


def _sum(fact: str, values: Mapping[str, int]) -> tuple[int, str] | None:
    for pattern in _PATTERNS[fact]:
        found = {n: v for n, v in values.items() if pattern.fullmatch(n)}
        if found:
            shown = ", ".join(f"{n}: {v}" for n, v in found.items() if v or len(found) == 1)
            return sum(found.values()), shown or f"{len(found)} counters, all zero"
    return None


def _share(
    sheet: Sheet, subject: Subject, fact: str, pattern: re.Pattern[str], readings: Sequence[Reading], call: str
) -> None:  # fmt: skip
    """Percent of the time between the readings in which the most paused priority stood still."""
    first, last = readings[0], readings[-1]
    names = [n for n in last.values if pattern.fullmatch(n)]
    span = last.monotonic - first.monotonic if last.monotonic and first.monotonic else 0
    if not names:
        why = "the driver of this interface does not measure how long it is paused"
        sheet.missing(fact, subject, Status.UNSUPPORTED, why, call)
        return
    if span <= 0:
        sheet.missing(fact, subject, Status.TIMEOUT, "there was no second reading in time", call)
        return
    grown = {n: last.values[n] - first.values.get(n, last.values[n]) for n in names}
    if min(grown.values()) < 0:
        sheet.missing(fact, subject, Status.FAILED, "a counter began again between the two readings", call)
        return
    busiest = max(grown, key=lambda n: (grown[n], n))
    share = min(100.0, round(100.0 * grown[busiest] * 1000 / span, 2))
    sheet.fact(fact, subject, share, call, f"{busiest}: +{grown[busiest]} us in {span / 1e9:.3f} s", at=last.at)
