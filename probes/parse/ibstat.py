"""``ibstat``: adapters and their ports. A listing that ends at an error is read up to there, and says so.

Also the list of adapters that SuperBench's topology-aware traffic test keeps (``VM_hostname`` and a GUID).
"""

from __future__ import annotations

import re
from dataclasses import replace

from knowledge.observation import Observation, Scope, Subject, node
from probes.base import Context, DocumentFormat
from probes.parse._app_emit import Emitter, clean_lines, number, whole
from probes.parse._app_ib import FACTS, LAYERS, PHYS_STATES, STATES, Port, emit_node, emit_port

NAME = "ibstat"
REVISION = 1

_CA = re.compile(r"\s{0,8}CA '([^']{1,80})'")
_PORT = re.compile(r"\s{1,40}Port (\d{1,4}):\s*$")
_FIELD = re.compile(r"\s{1,40}([A-Z][A-Za-z ]{1,40}):(?:\s+(\S.{0,200}?))?\s*$")
# ibpanic: [4242] main: stat of IB device 'mlx5_4' failed: Invalid argument
_ERROR = re.compile(
    r"(?:ibpanic|ibwarn|ibstat): ?(?:\[\d{1,9}\] )?\S{0,40}.{1,300}|.{0,200}(?:Input/output error|[Ss]egmentation fault|Killed|timed out|Broken pipe).{0,200}"
)
_VM = re.compile(r"VM_hostname (\S{1,100})\s*$")
_GUID = re.compile(r"([0-9a-fA-F]{16})\s*$")


def sniff(head: str) -> int:
    """95 when an adapter headline of ibstat stands at a line start."""
    if re.search(r"^\s{0,8}CA '[^']{1,80}'\s*$", head, re.MULTILINE):
        return 95
    return 60 if re.match(r"VM_hostname \S+\r?\n[0-9a-fA-F]{16}\s", head) else 0


def parse(text: str, context: Context) -> list[Observation]:
    """Port facts, and counts of ports and compute rails on the node."""
    emit = Emitter(NAME, REVISION, context)
    ports: list[Port] = []
    unknown: list[tuple[str, str]] = []
    device, adapter, firmware, cut, cut_line = "", "", "", "", 0
    current: Port | None = None
    expected: dict[str, int] = {}

    def close() -> None:
        nonlocal current
        if current is not None:
            emit_port(emit, current, unknown)
            ports.append(current)
        current = None
        unknown.clear()

    for line in clean_lines(text):
        if found := _CA.match(line.text):
            close()
            device, adapter, firmware = found[1], "", ""
        elif (found := _PORT.match(line.text)) and device:
            close()
            current = Port(
                device,
                found[1],
                line.number,
                adapter=adapter,
                firmware=firmware,
                excerpt=f"CA '{device}' port {found[1]}",
            )
        elif (found := _FIELD.match(line.text)) and device:
            name, value = found[1], found[2] or ""
            if current is not None:
                current = _read(current, name, value, unknown)
            elif name == "CA type":
                adapter = value
            elif name == "Firmware version":
                firmware = value
            elif name == "Number of ports":
                expected[device] = whole(value) or 0
        elif _ERROR.match(line.text) and line.text.strip():
            cut, cut_line = line.text.strip(), line.number
    close()
    if not cut:
        cut = _short(expected, ports, device)
    if ports or cut:
        emit_node(emit, ports, cut, cut_line or None)
    _traffic(emit, text)
    return emit.out


def _short(expected: dict[str, int], ports: list[Port], last: str) -> str:
    """Why a listing must have ended early though no error is printed; empty when it is whole."""
    for device, count in expected.items():
        seen = [port for port in ports if port.device == device]
        if len(seen) < count:
            return f"CA '{device}' has {count} ports, {len(seen)} are printed"
    if last and not any(port.device == last for port in ports) and last not in expected:
        return f"CA '{last}' has no ports printed"
    if not ports:
        return ""
    end = ports[-1]
    if end.state is None or end.rate is None or (end.layer is None and any(port.layer for port in ports)):
        return f"{end.name} is not printed in full"
    return ""


def _read(port: Port, name: str, value: str, unknown: list[tuple[str, str]]) -> Port:
    shown = (
        f"{port.excerpt}, {name}: {value}"
        if name in ("State", "Physical state", "Rate", "Link layer")
        else port.excerpt
    )
    port = replace(port, excerpt=shown)
    lowered = value.lower()
    read: object
    match name:
        case "State":
            fact, read = "port.state", STATES.get(lowered)
            port = replace(port, state=STATES.get(lowered))
        case "Physical state":
            fact, read = "port.phys_state", PHYS_STATES.get(lowered)
            port = replace(port, phys_state=PHYS_STATES.get(lowered))
        case "Rate":
            fact, read = "port.rate", number(value)
            port = replace(port, rate=number(value))
        case "Link layer":
            fact, read = "port.link_layer", LAYERS.get(lowered)
            port = replace(port, layer=LAYERS.get(lowered))
        case "Base lid":
            return replace(port, lid=whole(value))
        case "Port GUID":
            return replace(port, guid=lowered)
        case _:
            return port
    if read is None:
        unknown.append((fact, value or "(empty)"))
    return port


def _traffic(emit: Emitter, text: str) -> None:
    host = ""
    for line in clean_lines(text):
        if found := _VM.match(line.text):
            host = found[1]
        elif host and (found := _GUID.match(line.text)):
            guid = found[1].lower()
            subject = Subject(Scope.PORT, f"guid:{guid}", node(host))
            emit.fact("port.guid", subject, f"0x{guid}", line.number, line.text)


FORMAT = DocumentFormat(name=NAME, title="ibstat", revision=REVISION, provides=FACTS, sniff=sniff, parse=parse)
