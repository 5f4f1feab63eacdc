"""The `interfaces` collector's document: flow control, error correction and counters of interfaces, and bonds.

RoCE interfaces of one model and speed are compared with each other: an odd one out is told for the node.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from knowledge.observation import Observation, Scope, Status, Subject, Value
from probes.base import Context, DocumentFormat
from probes.parse import _bonds, _interface_counters
from probes.parse._interface_counters import emit_counters, readings_of
from probes.parse._sysfs import Sheet, load, recognises, table, whole, why_not, words

NAME, REVISION, SCHEMA = "interfaces", 1, "gpudiag/interfaces/1"
PAUSE = ("nic.flow_control.rx", "nic.flow_control.tx")
DIFFER = {"mtu": "node.roce.mtu.differing", "pfc": "node.roce.pfc.differing", "trust": "node.roce.trust.differing"}
ECN = "nic.ecn.priorities"
PROVIDES = (
    "nic.driver", "nic.mtu", "nic.rdma", "nic.roce", *PAUSE, "nic.fec", "nic.pfc.priorities", "nic.trust", ECN,
    "nic.traffic_class", "nic.roce.priority", "nic.roce.protected", "node.roce.interfaces", *DIFFER.values(), *_interface_counters.FACTS, *_bonds.FACTS,
)  # fmt: skip
_ETHER = "1"  # ARPHRD_ETHER
_DSCP = 5  # IEEE_8021QAZ_APP_SEL_DSCP
_PCP = 255  # DCB_APP_SEL_PCP
# Bits of linux/ethtool.h, best first; NONE (bit 0) is a driver without any setting, AUTO (bit 1) says nothing of the link.
_FEC = ((3, "rs"), (5, "llrs"), (4, "baser"), (2, "off"))
_FEWEST = 4  # interfaces of a kind of which one can be the odd one out


def sniff(head: str) -> int:
    """100 for the collector's document; 0 otherwise."""
    return recognises(head, SCHEMA)


def parse(text: str, context: Context) -> list[Observation]:
    """Facts of interfaces, bonds and the node."""
    document = load(text)
    if document.get("schema") != SCHEMA:
        return []
    sheet = Sheet.of(NAME, REVISION, context, document)
    listing = table(document.get("listing"))
    if listing.get("error"):
        for fact in ("node.roce.interfaces", *DIFFER.values()):
            sheet.missing(fact, sheet.node, *why_not(dict(listing)), "/sys/class/net")
        return sheet.out
    settings: dict[str, dict[str, Any]] = {}
    for name, record in sorted(table(document.get("interfaces")).items()):
        subject = Subject(Scope.NIC, words(name) or "-", sheet.node)
        settings[subject.id] = _interface(sheet, subject, table(record))
        emit_counters(sheet, subject, table(record), readings_of(table(record), document))
    _emit_roce(sheet, settings)
    bonds = table(document.get("bonds"))
    if isinstance(bonds.get("error"), str):
        why = why_not({"error": bonds["error"]})
        sheet.missing("bond.members", Subject(Scope.NIC, "bonds", sheet.node), *why, "/proc/net/bonding")
    else:
        _bonds.emit_bonds(sheet, bonds)
    return sheet.out


def _interface(sheet: Sheet, subject: Subject, record: Mapping[str, Any]) -> dict[str, Any]:
    """Emit the settings of one interface; those that its siblings should share."""
    folder = f"/sys/class/net/{subject.id}"
    out: dict[str, Any] = {"record": record}
    if driver := words(record.get("driver")):
        sheet.fact("nic.driver", subject, driver, f"{folder}/device/driver", driver)
    if (mtu := whole(record.get("mtu"))) is not None:
        out["mtu"] = mtu
        sheet.fact("nic.mtu", subject, mtu, f"{folder}/mtu", words(record["mtu"]))
    rdma = record.get("rdma")
    devices = [words(d) for d in rdma if isinstance(d, str)] if isinstance(rdma, list) else []
    if devices:
        sheet.fact("nic.rdma", subject, devices[0], f"{folder}/device/infiniband", ", ".join(devices[:8]))
    kind = words(record.get("type"))
    if kind:
        shown = ", ".join(devices[:8]) or "no RDMA device"
        roce = kind == _ETHER and bool(devices)
        sheet.fact("nic.roce", subject, roce, f"{folder}/type", shown if kind == _ETHER else "no Ethernet")
    if kind and kind != _ETHER:
        for fact in (*PAUSE, "nic.fec", "nic.pfc.priorities", "nic.trust", ECN):
            sheet.missing(fact, subject, Status.NOT_APPLICABLE, "this is no Ethernet interface", f"{folder}/type")
        return out
    _flow_control(sheet, subject, record)
    out["pfc"] = _bridging(sheet, subject, record)
    out["trust"] = _trust(sheet, subject, record)
    _congestion(sheet, subject, record)
    _forced(sheet, subject, record, out, devices)
    return out


def _flow_control(sheet: Sheet, subject: Subject, record: Mapping[str, Any]) -> None:
    """Pauses of the whole link, and error correction."""
    paused, call = record.get("pause"), f"ethtool -a {subject.id}"
    for fact, key in zip(PAUSE, ("rx", "tx"), strict=True):
        value = table(paused).get(key)
        if isinstance(value, bool):
            sheet.fact(fact, subject, value, call, f"{key.upper()}: {'on' if value else 'off'}")
        else:
            sheet.missing(fact, subject, *_lacking(record, "pause"), call)
    active, call = table(record.get("fec")).get("active"), f"ethtool --show-fec {subject.id}"
    named = next((w for bit, w in _FEC if isinstance(active, int) and active >> bit & 1), None)
    if named:
        sheet.fact("nic.fec", subject, named, call, f"Active FEC encoding: {named.upper()}")
    elif isinstance(active, int):
        sheet.missing("nic.fec", subject, Status.UNSUPPORTED, "the driver names no error correction", call)
    else:
        sheet.missing("nic.fec", subject, *_lacking(record, "fec"), call)


def _lacking(record: Mapping[str, Any], key: str) -> tuple[Status, str]:
    """Why one answer of the kernel is not there."""
    if record.get(key) is None and record.get("hung"):
        return Status.TIMEOUT, f"{words(record['hung'])} did not come back"
    if record.get(key) is None and isinstance(record.get("kernel"), dict):
        return why_not(record["kernel"])
    return why_not(record.get(key))


def _bridging(sheet: Sheet, subject: Subject, record: Mapping[str, Any]) -> Value:
    """Priorities with flow control."""
    bits, call = table(record.get("dcb")).get("pfc"), f"dcb pfc show dev {subject.id}"
    if not isinstance(bits, int) or isinstance(bits, bool):
        sheet.missing("nic.pfc.priorities", subject, *_lacking(record, "dcb"), call)
        return None
    on = tuple(str(p) for p in range(8) if bits >> p & 1)
    sheet.fact("nic.pfc.priorities", subject, on, call, f"pfc on priorities {', '.join(on) or 'none'}")
    return on


def _trust(sheet: Sheet, subject: Subject, record: Mapping[str, Any]) -> Value:
    """By which mark packets are sorted into priorities."""
    said, dcb = words(record.get("trust")).lower(), table(record.get("dcb"))
    call = f"/sys/class/net/{subject.id}/qos/trust"
    if said not in ("pcp", "dscp", "both"):
        call = f"dcb app show dev {subject.id}"
        said = _trusted(dcb, words(record.get("driver")))
    if said:
        sheet.fact("nic.trust", subject, said, call, f"trusts {said}")
        return said
    status, why = _lacking(record, "dcb")
    if dcb and "error" not in dcb:
        status, why = Status.UNSUPPORTED, "the driver does not tell which mark it trusts"
    sheet.missing("nic.trust", subject, status, why, call)
    return None


def _trusted(dcb: Mapping[str, Any], driver: str) -> str:
    """The trust table where the driver has one; mlx5 trusts DSCP from the first DSCP entry on (en_dcbnl.c)."""
    table_ = dcb.get("trusted")
    if isinstance(table_, list) and table_:
        known = [w for code, w in ((_DSCP, "dscp"), (_PCP, "pcp")) if code in table_]
        return "both" if len(known) == 2 else known[0] if known else ""
    if driver != "mlx5_core" or "pfc" not in dcb:
        return ""
    apps = dcb.get("apps")
    entries = [e for e in apps if isinstance(e, list) and e] if isinstance(apps, list) else []
    return "dscp" if any(entry[0] == _DSCP for entry in entries) else "pcp"


def _forced(
    sheet: Sheet, subject: Subject, record: Mapping[str, Any], found: Mapping[str, Any], devices: list[str]
) -> None:
    """The traffic class that the RDMA device puts on every packet (MLNX_OFED): ``Global tclass=106``; 0 is none."""
    text = words(record.get("traffic_class"))
    value = whole(text.rpartition("=")[2]) if "tclass=" in text else None
    where = f"/sys/class/infiniband/{devices[0] if devices else '*'}/tc/1/traffic_class"
    if value:
        sheet.fact("nic.traffic_class", subject, value, where, text)
        _protected(sheet, subject, record, found, value, where)
    elif devices:
        why = "the RDMA device forces no traffic class: each program chooses its own"
        sheet.missing("nic.roce.protected", subject, Status.NOT_APPLICABLE, why, where)


def _protected(
    sheet: Sheet, subject: Subject, record: Mapping[str, Any], found: Mapping[str, Any], class_: int, where: str
) -> None:
    """Whether the priority that a forced traffic class falls into has flow control; told where DSCP decides."""
    apps = table(record.get("dcb")).get("apps")
    entries = [e for e in apps if isinstance(e, list) and len(e) == 3] if isinstance(apps, list) else []
    mapped = {dscp: priority for selector, priority, dscp in entries if selector == _DSCP}
    dscp = class_ >> 2
    if found["trust"] not in ("dscp", "both") or found["pfc"] is None:
        return
    if dscp not in mapped and words(record.get("driver")) != "mlx5_core":  # mlx5 begins with eight values a priority
        return
    priority = mapped.get(dscp, dscp >> 3)
    if isinstance(priority, int) and 0 <= priority <= 7:
        shown = f"traffic class {class_} is DSCP {dscp}, priority {priority}; PFC on {_shown(found['pfc'])}"
        sheet.fact("nic.roce.priority", subject, priority, where, shown)
        sheet.fact("nic.roce.protected", subject, str(priority) in found["pfc"], where, shown)


def _congestion(sheet: Sheet, subject: Subject, record: Mapping[str, Any]) -> None:
    """Priorities on which both halves of RoCE's congestion control are on; told by MLNX_OFED alone."""
    notify, react = table(record.get("ecn_np")), table(record.get("ecn_rp"))
    call = f"/sys/class/net/{subject.id}/ecn/roce_*/enable"
    if not notify or not react:
        why = "the driver in the kernel does not show it; MLNX_OFED does"
        sheet.missing(ECN, subject, Status.UNSUPPORTED, why, call)
        return
    on = tuple(sorted(p for p in notify if words(notify[p]) == "1" == words(react.get(p)) and p in "01234567"))
    sheet.fact(ECN, subject, on, call, f"ECN on priorities {', '.join(on) or 'none'}")


def _emit_roce(sheet: Sheet, settings: Mapping[str, Mapping[str, Any]]) -> None:
    """Which interfaces speak RoCE, and those that are set otherwise than their siblings."""
    kinds: dict[tuple[str, str], list[str]] = {}
    for name, found in settings.items():
        record = found["record"]
        up = words(record.get("type")) == _ETHER and words(record.get("operstate")) == "up"
        if up and record.get("rdma") and not record.get("physfn"):  # virtual functions are shares of others
            kinds.setdefault((words(record.get("model")), words(record.get("speed"))), []).append(name)
    roce = sorted(name for names in kinds.values() for name in names)
    shown = ", ".join(roce[:16]) or "no interface that is up has an RDMA device behind it"
    sheet.fact("node.roce.interfaces", sheet.node, tuple(roce), "/sys/class/net/*/device/infiniband", shown)
    for key, fact in DIFFER.items():
        groups = [
            {n: settings[n].get(key) for n in names if settings[n].get(key) is not None} for names in kinds.values()
        ]
        groups = [group for group in groups if len(group) >= _FEWEST]
        call = f"{key} of RoCE interfaces"
        if not groups:
            why = f"fewer than {_FEWEST} RoCE interfaces of one model and speed tell it"
            sheet.missing(fact, sheet.node, Status.NOT_APPLICABLE, why, call)
            continue
        odd = {name: value for group in groups for name, value in _odd(group).items()}
        shown = ", ".join(f"{n}: {_shown(v)}" for n, v in list(odd.items())[:8]) or "all alike"
        sheet.fact(fact, sheet.node, tuple(sorted(odd)), call, shown)


def _odd(group: Mapping[str, Any]) -> dict[str, Any]:
    """Those that differ from what at least three in four of the group have; none when there is no such value."""
    value, count = Counter(group.values()).most_common(1)[0]
    return {n: v for n, v in group.items() if v != value} if 4 * count >= 3 * len(group) else {}


def _shown(value: Any) -> str:
    return (",".join(value) or "none") if isinstance(value, tuple) else str(value)


FORMAT = DocumentFormat(NAME, "gpudiag interfaces snapshot", REVISION, PROVIDES, sniff, parse)
