"""Ports of RDMA devices as ``ibv_devinfo``, ``rdma link`` and ``ibdev2netdev`` list them: state, and what each of them adds.

``ibdev2netdev`` tells the state of the network interface over the port, in two words; the others that of the port.
"""

from __future__ import annotations

import re
from dataclasses import replace

from knowledge.observation import Observation
from probes.base import Context, DocumentFormat, Line
from probes.parse._app_emit import Emitter, clean_lines, whole
from probes.parse._app_ib import FACTS, LAYERS, PHYS_STATES, STATES, Port, emit_node, emit_port

NAME, REVISION = "rdma-ports", 1
# hca_id: mlx5_2
_HCA = re.compile(r"hca_id:\s{1,20}([\w.-]{1,60})\s{0,20}")
#                 port:   1
_PORT = re.compile(r"\s{1,20}port:\s{1,20}(\d{1,4})\s{0,20}")
#                         state:                  PORT_DOWN (1)         link_layer:             InfiniBand
_FIELD = re.compile(r"\s{1,30}(state|port_lid|link_layer|fw_ver|board_id|phys_state):\s{1,40}(\S[^\n]{0,80}?)\s{0,20}")
# link mlx5_1/1 subnet_prefix fe80:0000:0000:0000 lid 65535 sm_lid 0 lmc 0 state DOWN physical_state POLLING
# link mlx5_bond_0/1 state ACTIVE physical_state LINK_UP netdev bond0
_LINK = re.compile(
    r"(?:\d{1,4}: )?link ([\w.-]{1,60})/(\d{1,4}):? (.{0,200}?)state (\w{1,20}) physical_state (\w{1,40})\b(.{0,100})"
)
_LID = re.compile(r"\blid (\d{1,6})\b")
# mlx5_2 port 1 ==> ibp58s0 (Down)
_NETDEV = re.compile(r"([\w.-]{1,60}) port (\d{1,4}) ==> ([\w.-]{1,20}) \((Up|Down)\)\s{0,20}")
_PHYS = {
    "link_up": "linkup",
    "link_error_recovery": "recovery",
    "port_configuration_training": "training",
    "phy_test": "phytest",
}


def sniff(head: str) -> int:
    """94 for a line of one of the three that names a port and its state."""
    lines = [line.text[:400] for line in clean_lines(head)][:400]
    listed = any(_HCA.fullmatch(line) for line in lines) and any(_PORT.fullmatch(line) for line in lines)
    return 94 if listed or any(_LINK.fullmatch(line) or _NETDEV.fullmatch(line) for line in lines) else 0


def parse(text: str, context: Context) -> list[Observation]:
    """Port facts, and counts of ports and compute rails on the node."""
    emit = Emitter(NAME, REVISION, context)
    ports: list[Port] = []
    device = firmware = ""
    for line in clean_lines(text):
        told = line.text[:400]
        if found := _HCA.fullmatch(told):
            device, firmware = found[1], ""
        elif device and (found := _PORT.fullmatch(told)):
            ports.append(Port(device, found[1], line.number, firmware=firmware, excerpt=f"{device} port {found[1]}"))
        elif device and (found := _FIELD.fullmatch(told)):
            if found[1] == "fw_ver":
                firmware = found[2]
            elif ports and ports[-1].device == device:
                ports[-1] = _field(ports[-1], found[1], found[2])
        elif one := _of_one_line(told, line):
            ports.append(one)
    for port in ports:
        unread = [("port.state", port.excerpt)] if port.state is None else []
        emit_port(emit, port, unread)
    if ports:
        cut = f"{ports[-1].name} is not printed in full" if ports[-1].state is None else ""
        emit_node(emit, ports, cut, ports[-1].line if cut else None)
    return emit.out


def _field(port: Port, name: str, value: str) -> Port:
    """A port with one more line of ibv_devinfo."""
    word = value.partition(" (")[0].lower()
    shown = f"{port.excerpt}, {name}: {value}"
    match name:
        case "state":
            return replace(port, state=STATES.get(word.removeprefix("port_")), excerpt=shown)
        case "phys_state":
            return replace(port, phys_state=_phys(word), excerpt=shown)
        case "link_layer":
            return replace(port, layer=LAYERS.get(word), excerpt=shown)
        case "port_lid":
            return replace(port, lid=whole(value))
    return port


def _of_one_line(told: str, line: Line) -> Port | None:
    """A port as ``rdma link`` and ``ibdev2netdev`` print it."""
    if found := _LINK.fullmatch(told):
        lid = _LID.search(found[3])
        return Port(
            found[1],
            found[2],
            line.number,
            STATES.get(found[4].lower()),
            _phys(found[5].lower()),
            layer="infiniband" if lid else "ethernet" if " netdev " in found[6] else None,
            lid=int(lid[1]) if lid else None,
            excerpt=told.strip(),
        )
    if found := _NETDEV.fullmatch(told):
        return Port(found[1], found[2], line.number, "active" if found[4] == "Up" else "down", excerpt=told.strip())
    return None


def _phys(word: str) -> str | None:
    return PHYS_STATES.get(_PHYS.get(word, word))


FORMAT = DocumentFormat(NAME, "ibv_devinfo, rdma link and ibdev2netdev", REVISION, FACTS, sniff, parse)
