"""``ibstatus``: ports of RDMA devices, as sysfs numbers and names their states."""

from __future__ import annotations

import re
from dataclasses import replace

from knowledge.observation import Observation
from probes.base import Context, DocumentFormat
from probes.parse._app_emit import Emitter, clean_lines, number
from probes.parse._app_ib import FACTS, LAYERS, PHYS_STATES, STATES, Port, emit_node, emit_port, lanes

NAME = "ibstatus"
REVISION = 2

# Infiniband device 'mlx5_0' port 1 status:
_HEAD = re.compile(r"\s{0,8}Infiniband device '([^']{1,80})' port (\d{1,4}) status:")
#        state:           4: ACTIVE        rate:            200 Gb/sec (4X HDR)
_FIELD = re.compile(r"\s{1,40}([a-z_ ]{2,20}):\s+(?:(\d{1,2}): )?(\S.{0,120}?)\s*$")
_ERROR = re.compile(r"(?:ibstatus|cat): .{1,300}|Fatal error: .{1,300}|.{0,200}(?:Input/output error|Killed|timed out)")
_NUMBERS = {"1": "down", "2": "init", "3": "armed", "4": "active", "5": "active"}
_PHYS_NUMBERS = {
    "1": "sleep",
    "2": "polling",
    "3": "disabled",
    "4": "training",
    "5": "linkup",
    "6": "recovery",
    "7": "phytest",
}


def sniff(head: str) -> int:
    """95 when a headline of ibstatus stands at a line start."""
    return 95 if re.search(r"^\s{0,8}Infiniband device '[^']{1,80}' port \d{1,4} status:", head, re.MULTILINE) else 0


def parse(text: str, context: Context) -> list[Observation]:
    """Port facts, and counts of ports and compute rails on the node."""
    emit = Emitter(NAME, REVISION, context)
    ports: list[Port] = []
    current: Port | None = None
    unknown: list[tuple[str, str]] = []
    cut, cut_line = "", 0

    def close() -> None:
        if current is not None:
            emit_port(emit, current, unknown)
            ports.append(current)
        unknown.clear()

    for line in clean_lines(text):
        if found := _HEAD.match(line.text):
            close()
            current = Port(found[1], found[2], line.number, excerpt=f"{found[1]} port {found[2]}")
        elif current is not None and (found := _FIELD.match(line.text)):
            current = _read(current, found[1].strip(), found[2] or "", found[3], unknown)
        elif _ERROR.match(line.text):
            cut, cut_line = line.text.strip(), line.number
    close()
    if not cut and ports and ports[-1].state is None and not any(p[0] == "port.state" for p in unknown):
        cut, cut_line = f"{ports[-1].name} has no state printed", ports[-1].line
    if ports or cut:
        emit_node(emit, ports, cut, cut_line or None)
    return emit.out


def _read(port: Port, name: str, code: str, value: str, unknown: list[tuple[str, str]]) -> Port:
    lowered = value.lower()
    if name not in ("state", "phys state", "rate", "link_layer", "base lid"):
        return port
    if name == "base lid":
        digits = lowered.removeprefix("0x")
        good = 0 < len(digits) <= 8 and not set(digits) - set("0123456789abcdef")
        return replace(port, lid=int(digits, 16)) if good else port
    port = replace(port, excerpt=f"{port.excerpt}, {name}: {value}")
    read: object
    match name:
        case "state":
            state = STATES.get(lowered) or _NUMBERS.get(code)
            fact, read, port = "port.state", state, replace(port, state=state)
        case "phys state":
            phys = PHYS_STATES.get(lowered) or _PHYS_NUMBERS.get(code)
            fact, read, port = "port.phys_state", phys, replace(port, phys_state=phys)
        case "rate":
            fact, read, port = "port.rate", number(value), replace(port, rate=number(value), lanes=lanes(value))
        case _:
            fact, read, port = "port.link_layer", LAYERS.get(lowered), replace(port, layer=LAYERS.get(lowered))
    if read is None:
        unknown.append((fact, value))
    return port


FORMAT = DocumentFormat(name=NAME, title="ibstatus", revision=REVISION, provides=FACTS, sniff=sniff, parse=parse)
