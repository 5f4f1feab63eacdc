"""Counters of an `rdma` snapshot: two readings a moment apart, and the rates between them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from knowledge.observation import Status, Subject
from knowledge.record import dataclass
from probes.parse._sysfs import Sheet, stamp, table, whole, why_not, words

# File below counters/ -> fact. Names of the InfiniBand specification, volume 1, 16.1.3.5 (PortCounters)
STANDARD = {
    "symbol_error": "port.counters.symbol_error",
    "link_error_recovery": "port.counters.link_error_recovery",
    "link_downed": "port.counters.link_downed",
    "port_rcv_errors": "port.counters.rcv_errors",
    "port_rcv_remote_physical_errors": "port.counters.rcv_remote_physical_errors",
    "port_rcv_switch_relay_errors": "port.counters.rcv_switch_relay_errors",
    "port_rcv_constraint_errors": "port.counters.rcv_constraint_errors",
    "port_xmit_constraint_errors": "port.counters.xmit_constraint_errors",
    "port_xmit_discards": "port.counters.xmit_discards",
    "port_xmit_wait": "port.counters.xmit_wait",
    "local_link_integrity_errors": "port.counters.local_link_integrity",
    "excessive_buffer_overrun_errors": "port.counters.excessive_buffer_overrun",
    "VL15_dropped": "port.counters.vl15_dropped",
}
# File below hw_counters/ -> fact. Names of the mlx5 driver
HARDWARE = {
    "out_of_sequence": "port.counters.out_of_sequence",
    "packet_seq_err": "port.counters.packet_seq_err",
    "local_ack_timeout_err": "port.counters.local_ack_timeout",
    "rnr_nak_retry_err": "port.counters.rnr_nak_retry",
    "out_of_buffer": "port.counters.out_of_buffer",
    "duplicate_request": "port.counters.duplicate_request",
    "implied_nak_seq_err": "port.counters.implied_nak_seq_err",
    "rx_icrc_encapsulated": "port.counters.rx_icrc_encapsulated",
    "np_cnp_sent": "port.counters.np_cnp_sent",
    "np_ecn_marked_roce_packets": "port.counters.np_ecn_marked",
    "rp_cnp_handled": "port.counters.rp_cnp_handled",
    "rp_cnp_ignored": "port.counters.rp_cnp_ignored",
    "roce_adp_retrans": "port.counters.roce_adp_retrans",
    "roce_slow_restart": "port.counters.roce_slow_restart",
}
# File of `HARDWARE` -> names of the same count in other drivers: bnxt_re, irdma, ionic (drivers/infiniband/hw/*/hw_counters.c
# and verbs.c of the kernel)
SYNONYMS = {
    "out_of_sequence": ("oos_drop_count", "Rcvd Out of order packets"),
    "packet_seq_err": ("seq_err_naks_rcvd", "Nak Sequence Error", "req_rx_pkt_seq_err"),
    "local_ack_timeout_err": ("to_retransmits", "RTO", "tx_rdma_ack_timeout"),
    "rnr_nak_retry_err": ("rnr_naks_rcvd", "RNR received"),
    "duplicate_request": ("dup_req",),
    "implied_nak_seq_err": ("Nak Sequence Error Implied", "req_rx_impl_nak_seq_err"),
    "np_cnp_sent": ("tx_cnp_pkts", "cnpSent", "tx_rdma_cnp_pkts"),
    "np_ecn_marked_roce_packets": ("rx_ecn_marked_pkts", "RxECNMrkd", "rx_rdma_ecn_pkts"),
    "rp_cnp_handled": ("rx_cnp_pkts", "cnpHandled", "rx_rdma_cnp_pkts"),
    "rp_cnp_ignored": ("cnpIgnored",),
}
INTERFACE = {
    "carrier_changes": "nic.carrier_changes",
    "carrier_down_count": "nic.carrier_down_count",
    "rx_errors": "nic.rx.errors",
    "rx_dropped": "nic.rx.dropped",
    "rx_crc_errors": "nic.rx.crc_errors",
    "rx_missed_errors": "nic.rx.missed",
    "tx_errors": "nic.tx.errors",
    "tx_dropped": "nic.tx.dropped",
    "tx_carrier_errors": "nic.tx.carrier_errors",
}
TRAFFIC = {"port.traffic.rx": "port_rcv_data", "port.traffic.tx": "port_xmit_data"}
FACTS = (*STANDARD.values(), *HARDWARE.values(), *INTERFACE.values(), *TRAFFIC)
_OCTETS = 4  # PortXmitData and PortRcvData count octets divided by 4


@dataclass(frozen=True, slots=True)
class Reading:
    """All counters of one adapter at one moment."""

    at: int | None  # ns since 1970
    monotonic: int | None
    raw: Mapping[str, Any]
    hung: str = ""  # the file that this reading ended at; empty when it came to its end

    def of(self, kind: str, name: str) -> dict[str, Any]:
        """Counters of a port or of an interface."""
        return table(table(self.raw.get(kind)).get(name))


def readings_of(adapter: Mapping[str, Any], document: Mapping[str, Any]) -> list[Reading]:
    """The readings in order of time, placed on the document's wall clock by the monotonic one."""
    at, begun = stamp(document.get("at_ns")), stamp(document.get("monotonic_ns"))
    out = []
    given = adapter.get("readings")
    for raw in given if isinstance(given, list) else ():
        if isinstance(raw, dict):
            now = stamp(raw.get("monotonic_ns"))
            placed = at + now - begun if at and begun and now else stamp(raw.get("at_ns"))
            out.append(
                Reading(placed, now, raw, "" if "until_ns" in raw else words(adapter.get("hung")) or "a counter")
            )
    return out


def emit_port_counters(sheet: Sheet, subject: Subject, folder: str, number: str, readings: Sequence[Reading]) -> None:
    """Every counter of one port at every reading."""
    if not readings:
        return
    for kind, names in (("counters", STANDARD), ("hw_counters", HARDWARE)):
        samples = [(r, table(r.of("ports", number).get(kind))) for r in readings]
        _emit(sheet, subject, f"{folder}/{kind}", names, samples)
    _traffic(sheet, subject, folder, number, readings)


def emit_interface_counters(sheet: Sheet, subject: Subject, name: str, readings: Sequence[Reading]) -> None:
    """Every counter of one interface at every reading."""
    samples = [(r, r.of("interfaces", name)) for r in readings]
    folder = f"/sys/class/net/{name}"
    for file, fact in INTERFACE.items():
        where = folder if file.startswith("carrier") else f"{folder}/statistics"
        _emit(sheet, subject, where, {file: fact}, samples)


def _emit(
    sheet: Sheet, subject: Subject, folder: str, names: Mapping[str, str], samples: Sequence[tuple[Reading, Mapping[str, Any]]]
) -> None:  # fmt: skip
    for listed, fact in names.items():
        here = {name for _, raw in samples for name in raw}
        file = next((name for name in (listed, *SYNONYMS.get(listed, ())) if name in here), listed)
        call, told = f"{folder}/{file}", False
        for reading, raw in samples:
            if (value := whole(raw.get(file))) is not None:
                sheet.fact(fact, subject, value, call, f"{file} {value}", at=reading.at)
                told = True
        if not told and samples:
            reading, raw = samples[0]
            sheet.missing(fact, subject, *_lacking(raw.get(file), reading), call)


def _lacking(value: object, reading: Reading) -> tuple[Status, str]:
    """Why a counter has no value: what stands behind a read that hung was not asked for."""
    if value is None and reading.hung:
        return Status.TIMEOUT, f"{reading.hung} did not come back"
    return why_not(value, "this adapter does not count it")


def _traffic(sheet: Sheet, subject: Subject, folder: str, number: str, readings: Sequence[Reading]) -> None:
    first, last = readings[0], readings[-1]
    for fact, file in TRAFFIC.items():
        call = f"{folder}/counters/{file}"
        texts = [table(r.of("ports", number).get("counters")).get(file) for r in (first, last)]
        values = [whole(text) for text in texts]
        span = last.monotonic - first.monotonic if last.monotonic and first.monotonic else 0
        if values[0] is None or values[1] is None:
            late = len(readings) > 1 and values[0] is not None
            why = (Status.TIMEOUT, "the second reading did not come back") if late else _lacking(texts[0], first)
            sheet.missing(fact, subject, *why, call)
        elif span <= 0:
            sheet.missing(
                fact, subject, Status.TIMEOUT, "there was no second reading in time", call, f"{file} {values[0]}"
            )
        elif values[1] < values[0]:
            detail = "the counter began again between the two readings"
            sheet.missing(fact, subject, Status.FAILED, detail, call, f"{values[0]}, then {values[1]}")
        else:
            rate = (values[1] - values[0]) * _OCTETS / span  # octets in a ns are GB/s
            shown = f"{file} +{values[1] - values[0]} in {span / 1e9:.3f} s"
            sheet.fact(fact, subject, rate, call, shown, at=last.at)
