"""The `rdma` collector's document: ports and compute rails as `ibstat` shows them, counters, rates, interfaces."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from knowledge.identity import normalise_pci
from knowledge.observation import Clock, Observation, Scope, Status, Subject
from probes.base import Context, DocumentFormat
from probes.parse._app_emit import Emitter, number
from probes.parse._app_ib import FACTS as PORT_FACTS
from probes.parse._app_ib import LAYERS, PHYS_STATES, STATES, Port, emit_node, emit_port
from probes.parse._rdma_counters import FACTS as COUNTER_FACTS
from probes.parse._rdma_counters import emit_interface_counters, emit_port_counters, readings_of
from probes.parse._sysfs import Sheet, load, recognises, table, whole, why_not, words
from probes.parse.ip_link import OPERSTATES

NAME = "rdma"
REVISION = 2
SCHEMA = "gpudiag/rdma/1"
BASE = "/sys/class/infiniband"

_LINK_TYPES = {"1": "ether", "32": "infiniband"}  # ARPHRD_ETHER, ARPHRD_INFINIBAND
_FILES = {"port.state": "ports/{}/state", "port.phys_state": "ports/{}/phys_state", "port.rate": "ports/{}/rate",
          "port.link_layer": "ports/{}/link_layer", "port.lid": "ports/{}/lid", "port.guid": "ports/{}/gids/0",
          "port.adapter": "hca_type", "port.firmware": "fw_ver"}  # fmt: skip
_INTERFACE_COUNTS = ("node.ib.interfaces.total", "node.ib.interfaces.up", "node.ib.interfaces.down_names")
_NODE = tuple(fact for fact in PORT_FACTS if fact.startswith("node."))


def sniff(head: str) -> int:
    """100 for the collector's document; 0 otherwise."""
    return recognises(head, SCHEMA)


def parse(text: str, context: Context) -> list[Observation]:
    """Facts of ports, of the interfaces behind them, and of the node."""
    document = load(text)
    if document.get("schema") != SCHEMA:
        return []
    sheet = Sheet.of(NAME, REVISION, context, document)
    adapters = {name: raw for name, raw in sorted(table(document.get("adapters")).items()) if isinstance(raw, dict)}
    if not adapters:
        _none(sheet, table(document.get("listing")))
        return sheet.out
    ports: list[tuple[Port, Mapping[str, Any]]] = []
    interfaces: list[tuple[str, str, bool]] = []
    for name, raw in adapters.items():
        readings = readings_of(raw, document)
        for index, record in sorted(table(raw.get("ports")).items(), key=lambda item: (len(item[0]), item[0])):
            port = _port(sheet, name, raw, index, table(record))
            subject = Subject(Scope.PORT, port.name, sheet.node)
            emit_port_counters(sheet, subject, f"{BASE}/{name}/ports/{index}", index, readings)
            ports.append((port, raw))
        for nic, record in sorted(table(raw.get("interfaces")).items()):
            interfaces.append(_interface(sheet, name, nic, table(record)))
            if len(ports_of := table(raw.get("ports"))) == 1:  # of several nothing here tells whose interface it is
                shown = f"{nic}: the interface of {name}"
                port_of = f"{Scope.PORT}:{name}/{min(ports_of)}"
                sheet.fact("nic.port", Subject(Scope.NIC, nic, sheet.node), port_of, f"{BASE}/{name}/device/net", shown)
            emit_interface_counters(sheet, Subject(Scope.NIC, nic, sheet.node), nic, readings)
    # ports of virtual functions are shares of others: whether they are up says nothing of the node's rails
    _node(sheet, adapters, [port for port, raw in ports if not raw.get("physfn")])
    _interfaces(sheet, interfaces)
    _far(sheet, ports, table(document.get("gpus")))
    return sheet.out


def _none(sheet: Sheet, listing: Mapping[str, Any]) -> None:
    """No adapter: the kernel shows none, or it could not be asked."""
    if listing.get("hung") or listing.get("error"):
        hung = f"{words(listing.get('hung')) or BASE} did not come back"
        status, why = (Status.TIMEOUT, hung) if listing.get("hung") else why_not(dict(listing))
        for name in (*_NODE, "node.ib.silent"):
            sheet.missing(name, sheet.node, status, why, BASE)
        return
    shown = words(listing.get("absent")) or f"{BASE} is empty"
    for name in ("node.ib.ports.total", "node.ib.ports.active"):
        sheet.fact(name, sheet.node, 0, BASE, shown)
    sheet.fact("node.ib.silent", sheet.node, (), BASE, shown)
    for name in _NODE:
        if not name.startswith("node.ib.ports."):
            sheet.missing(name, sheet.node, Status.NOT_APPLICABLE, "this node shows no RDMA adapter", BASE, shown)


def _port(sheet: Sheet, device: str, adapter: Mapping[str, Any], index: str, record: Mapping[str, Any]) -> Port:
    """Emit one port; the port as the rails are counted by."""
    unknown: list[tuple[str, str]] = []
    broken: list[tuple[str, object]] = []

    def read(name: str, fact: str, values: Mapping[str, str]) -> str | None:
        text = words(record.get(name))
        value = values.get(text.partition(": ")[2].lower() or text.lower())
        if value is None and text:
            unknown.append((fact, text))
        elif value is None:
            broken.append((fact, record.get(name)))
        return value

    rate = words(record.get("rate"))
    layer = read("link_layer", "port.link_layer", LAYERS)
    port = Port(
        device, words(index), 0, read("state", "port.state", STATES), read("phys_state", "port.phys_state", PHYS_STATES),
        number(rate), layer, words(adapter.get("hca_type")), words(adapter.get("fw_ver")), _lid(record.get("lid")),
        _guid(record.get("gid0")), ", ".join(words(record.get(k)) for k in ("state", "phys_state", "rate") if words(record.get(k))),
    )  # fmt: skip
    if port.rate is None:
        broken.append(("port.rate", record.get("rate")))
    subject = Subject(Scope.PORT, port.name, sheet.node)
    emit = _emitter(sheet)
    emit_port(emit, port, unknown)
    hung = words(adapter.get("hung"))
    for o in emit.out:
        file = _FILES[o.fact].format(port.number)
        raw = {"port.guid": record.get("gid0"), "port.adapter": port.adapter, "port.firmware": port.firmware}
        shown = words(raw.get(o.fact, record.get(file.rsplit("/", 1)[-1])))
        _take(sheet, o, f"{BASE}/{device}/{file}", shown or o.excerpt)
    for fact, value in broken:
        status, why = (Status.TIMEOUT, f"{hung} did not come back") if hung and value is None else why_not(value)
        sheet.missing(fact, subject, status, why, f"{BASE}/{device}/{_FILES[fact].format(port.number)}")
    _more(sheet, subject, device, adapter, record, port)
    return port


def _more(
    sheet: Sheet, subject: Subject, device: str, adapter: Mapping[str, Any], record: Mapping[str, Any], port: Port
) -> None:  # fmt: skip
    """What ibstat does not print."""
    folder = f"{BASE}/{device}"
    if (lid := _lid(record.get("sm_lid"))) is not None:
        sheet.fact("port.sm_lid", subject, lid, f"{folder}/ports/{port.number}/sm_lid", words(record["sm_lid"]))
    if board := words(adapter.get("board_id")):
        sheet.fact("port.board", subject, board, f"{folder}/board_id", board)
    if pci := words(adapter.get("pci")):
        sheet.fact("port.pci", subject, normalise_pci(pci), f"{folder}/device", pci)
    gids = record.get("gids")
    if isinstance(gids, list):
        shown = ", ".join(words(g) for g in gids[:16]) or "none of the first 16 is set"
        sheet.fact("port.gids", subject, len(gids), f"{folder}/ports/{port.number}/gids", shown)
    numa = words(adapter.get("numa_node"))
    if (node := whole(numa)) is not None:
        sheet.fact("port.numa", subject, node, f"{folder}/device/numa_node", numa)
    elif numa == "-1":
        why = "the firmware does not tell which NUMA node the adapter belongs to"
        sheet.missing("port.numa", subject, Status.UNSUPPORTED, why, f"{folder}/device/numa_node", numa)


def _lid(value: object) -> int | None:
    """``0x12`` as a number."""
    text = words(value)
    digits = text.removeprefix("0x")
    return (
        int(digits, 16)
        if text.startswith("0x") and 0 < len(digits) <= 8 and digits.isalnum() and _is_hex(digits)
        else None
    )


def _guid(value: object) -> str:
    """The lower half of the first GID is the port's GUID; empty when it is not told."""
    groups = words(value).lower().split(":")
    digits = "".join(groups[4:])
    return f"0x{digits}" if len(groups) == 8 and len(digits) == 16 and _is_hex(digits) else ""


def _is_hex(text: str) -> bool:
    return set(text) <= set("0123456789abcdefABCDEF")


def _emitter(sheet: Sheet) -> Emitter:
    return Emitter(NAME, REVISION, Context(BASE, sheet.host))


def _take(sheet: Sheet, o: Observation, call: str, excerpt: str) -> None:
    """An observation of the helpers that all RDMA tools share, with this document's time and the file it stands in."""
    clock = Clock.NONE if sheet.at is None else Clock.REALTIME
    source = replace(o.source, call=call, line=None)
    sheet.out.append(replace(o, at=sheet.at, clock=clock, source=source, excerpt=excerpt))


def _node(sheet: Sheet, adapters: Mapping[str, Mapping[str, Any]], ports: list[Port]) -> None:
    silent = [name for name, raw in adapters.items() if raw.get("hung") or raw.get("unread")]
    # what hung after the ports were read took only counters away
    lost = [n for n in silent if "readings" not in adapters[n]]
    cut = ", ".join(f"{n} did not answer ({words(adapters[n].get('hung')) or 'out of time'})" for n in lost[:4])
    emit = _emitter(sheet)
    emit_node(emit, ports, cut)
    for o in emit.out:
        _take(sheet, o, f"{BASE}/*/ports/*/state", o.excerpt)
    shown = ", ".join(f"{n}: {words(adapters[n].get('hung')) or 'out of time'}" for n in silent[:8])
    sheet.fact("node.ib.silent", sheet.node, tuple(silent), BASE, shown or f"all {len(adapters)} adapters answered")


def _interface(sheet: Sheet, device: str, name: str, raw: Mapping[str, Any]) -> tuple[str, str, bool]:
    """Emit one interface; its name, its link type, and whether it is up with a carrier."""
    subject, folder = Subject(Scope.NIC, words(name), sheet.node), f"/sys/class/net/{words(name)}"
    state, carrier = words(raw.get("operstate")).lower(), words(raw.get("carrier"))
    sheet.fact("nic.rdma", subject, device, f"{BASE}/{device}/device/net", words(name))
    if state in OPERSTATES:
        sheet.fact("nic.operstate", subject, state, f"{folder}/operstate", state)
    else:
        sheet.missing("nic.operstate", subject, *why_not(raw.get("operstate")), f"{folder}/operstate")
    if carrier in ("0", "1"):
        sheet.fact("nic.carrier", subject, carrier == "1", f"{folder}/carrier", carrier)
    else:  # the kernel answers EINVAL while an interface is switched off
        sheet.missing("nic.carrier", subject, *why_not(raw.get("carrier")), f"{folder}/carrier")
    link = _LINK_TYPES.get(words(raw.get("type")), "")
    if link:
        sheet.fact("nic.link_type", subject, link, f"{folder}/type", words(raw["type"]))
    if (mtu := whole(raw.get("mtu"))) is not None:
        sheet.fact("nic.mtu", subject, mtu, f"{folder}/mtu", words(raw["mtu"]))
    speed = whole(raw.get("speed"))
    if speed is not None and speed < 2**31:  # 4294967295 and -1 are "unknown"
        sheet.fact("nic.speed", subject, speed / 1000, f"{folder}/speed", f"{speed} Mb/s")
    elif "speed" in raw:
        unknown = (Status.UNSUPPORTED, "the interface has no link")
        status, why = unknown if words(raw["speed"]) in ("-1", "4294967295") else why_not(raw["speed"])
        sheet.missing("nic.speed", subject, status, why, f"{folder}/speed")
    return words(name), link, carrier == "1" and state in ("up", "unknown")


def _interfaces(sheet: Sheet, found: list[tuple[str, str, bool]]) -> None:
    infiniband = [(name, up) for name, link, up in found if link == "infiniband"]
    if not infiniband:
        return
    down = tuple(sorted(name for name, up in infiniband if not up))
    shown = f"{len(infiniband) - len(down)} of {len(infiniband)} up" + (f"; not up: {', '.join(down)}" if down else "")
    values: tuple[int | tuple[str, ...], ...] = (len(infiniband), len(infiniband) - len(down), down)
    for name, value in zip(_INTERFACE_COUNTS, values, strict=True):
        sheet.fact(name, sheet.node, value, "/sys/class/net", shown)


def _far(sheet: Sheet, ports: list[tuple[Port, Mapping[str, Any]]], gpus: Mapping[str, Any]) -> None:
    """Active ports whose adapter has no GPU on its NUMA node."""
    name, call = "node.ib.ports.far_from_gpus", "/sys/bus/pci/devices/*/numa_node"
    placed = {pci: words(value) for pci, value in gpus.items() if pci not in ("hung", "unread")}
    if gpus.get("hung") or gpus.get("unread"):
        why = f"{words(gpus.get('hung')) or call} did not come back"
        sheet.missing(name, sheet.node, Status.TIMEOUT, why, call)
        return
    if not placed:
        sheet.missing(name, sheet.node, Status.NOT_APPLICABLE, "the PCI bus shows no NVIDIA GPU", call)
        return
    nodes = {whole(value) for value in placed.values()}
    active = [(port, whole(raw.get("numa_node"))) for port, raw in ports if port.active]
    if None in nodes or any(numa is None for _, numa in active):
        why = "the firmware does not tell the NUMA node of every GPU and adapter"
        sheet.missing(name, sheet.node, Status.UNSUPPORTED, why, call)
        return
    far = [(port.name, numa) for port, numa in active if numa not in nodes]
    near = ", ".join(str(n) for n in sorted(n for n in nodes if n is not None))
    shown = f"GPUs on NUMA nodes {near}" + "".join(f"; {port} on {numa}" for port, numa in far[:8])
    sheet.fact(name, sheet.node, tuple(port for port, _ in far), call, shown)


FORMAT = DocumentFormat(
    name=NAME,
    title="RDMA snapshot",
    revision=REVISION,
    provides=(
        *PORT_FACTS, *COUNTER_FACTS, *_INTERFACE_COUNTS, "port.sm_lid", "port.board", "port.pci", "port.gids", "port.numa",
        "nic.operstate", "nic.carrier", "nic.link_type", "nic.mtu", "nic.speed", "nic.rdma", "nic.port",
        "node.ib.ports.far_from_gpus", "node.ib.silent",
    ),
    sniff=sniff,
    parse=parse,
)  # fmt: skip
