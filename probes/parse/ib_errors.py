"""``perfquery`` and ``ibqueryerrors``: what InfiniBand ports have counted since they were last cleared.

Both print the counters of the InfiniBand specification by the names of infiniband-diags. ibqueryerrors shows the ports that
have counted more than a threshold; those of its file ``error_thresholds`` stand here, for perfquery too.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from knowledge.observation import Observation, Scope, Status, Subject, node
from knowledge.text import clean, excerpt
from probes.base import Context, DocumentFormat, Line, lines_of

NAME, REVISION = "ib-errors", 1
# Name of a counter -> its fact, and how many are many; None where no number of them is a fault by itself.
_COUNTERS: Mapping[str, tuple[str, int | None]] = {
    "SymbolErrorCounter": ("symbol_error", 10),
    "LinkErrorRecoveryCounter": ("link_error_recovery", 10),
    "LinkDownedCounter": ("link_downed", 10),
    "PortRcvErrors": ("rcv_errors", 10),
    "PortRcvRemotePhysicalErrors": ("rcv_remote_physical_errors", 100),
    "PortRcvSwitchRelayErrors": ("rcv_switch_relay_errors", None),  # counts multicast that went nowhere
    "PortXmitDiscards": ("xmit_discards", 100),
    "PortXmitConstraintErrors": ("xmit_constraint_errors", 100),
    "PortRcvConstraintErrors": ("rcv_constraint_errors", 100),
    "LocalLinkIntegrityErrors": ("local_link_integrity", 10),
    "ExcessiveBufferOverrunErrors": ("excessive_buffer_overrun", 10),
    "VL15Dropped": ("vl15_dropped", 100),
    "PortXmitWait": ("xmit_wait", None),
}
OVER = "port.counters.over"
PROVIDES = (OVER, *(f"port.counters.{fact}" for fact, _ in _COUNTERS.values()))
# # Port counters: Lid 113 port 1 (CapMask: 0x5A00)        # Port extended counters: Lid 113 port 1 (CapMask: 0x5A00)
_QUERIED = re.compile(r"# Port (?:extended )?counters: (.{1,80}?) port (\d{1,3}|ALL)\b.{0,80}", re.IGNORECASE)
# SymbolErrorCounter:..............0
_DOTTED = re.compile(r"(\w{4,40}):\.{1,60}(\d{1,20})\s{0,20}")
# Errors for "gpu07 mlx5_3"        Errors for 0xfc6a1c0300aa1100 "MF0;sw-leaf-3:MQM9700/U1"
_ERRORS = re.compile(r'Errors for (?:(0x[0-9a-f]{1,16}) )?"([^"]{0,100})"\s{0,20}')
#    GUID 0xa088c20300f1a2c8 port 1: [SymbolErrorCounter == 1233] [LinkDownedCounter == 4]
_PORT = re.compile(r"\s{1,12}GUID 0x[0-9a-f]{1,16} port (\d{1,3}):(.{1,2000})")
_VALUE = re.compile(r"\[(\w{4,40}) == (\d{1,20})(?: \([^)\]]{0,40}\))?\]")
# ## Summary: 41 nodes checked, 2 bad nodes found
_SUMMARY = re.compile(r"## Summary: \d{1,7} nodes checked, \d{1,7} bad nodes found")
_HCA = re.compile(r"([\w.-]{1,64}) ((?:mlx|hfi|qib|irdma|bnxt)\w{1,20}|HCA-\d{1,3})")
_SWITCH = re.compile(r"MF\d;([\w.-]{1,64}):\S{1,40}")


def sniff(head: str) -> int:
    """94 for the heading of either."""
    lines = [line.text[:400] for line in lines_of(head)]
    return (
        94 if any(_QUERIED.fullmatch(line) or _ERRORS.fullmatch(line) or _SUMMARY.match(line) for line in lines) else 0
    )


def parse(text: str, context: Context) -> list[Observation]:
    """Counters of each port that is shown, and which of them are many; none seen where no port has errors."""
    out: list[Observation] = []
    counted: dict[Subject, dict[str, tuple[int, Line]]] = {}
    device: tuple[str, str] | None = None  # name and host
    port: Subject | None = None
    for line in lines_of(text):
        told = clean(line.text[:2200])
        if found := _QUERIED.fullmatch(told):
            where = re.sub(r"\W+", "", found[1]).lower()
            port = Subject(Scope.PORT, f"{where}/{found[2]}", node(context.host))
            counted.setdefault(port, {})
        elif found := _ERRORS.fullmatch(told):
            device = named(found[2] or found[1] or "", context)
        elif device and (found := _PORT.fullmatch(told)):
            here = counted.setdefault(Subject(Scope.PORT, f"{device[0]}/{found[1]}", node(device[1])), {})
            here |= {name: (int(value), line) for name, value in _VALUE.findall(found[2])}
        elif port and (found := _DOTTED.fullmatch(told)):
            counted[port][found[1]] = int(found[2]), line
    for subject, values in counted.items():
        out += _facts(subject, values, context)
    if not counted and _SUMMARY.search(text):
        out.append(Observation(OVER, node(context.host), None, Status.NONE_SEEN, context.at(NAME, REVISION)))
    return out


def named(description: str, context: Context) -> tuple[str, str]:
    """The device that a node's description in the fabric names, and the host that it is in: ``gpu07 mlx5_3``, ``MF0;leaf-3:MQM9700/U1``."""
    if hca := _HCA.match(description):
        return hca[2], hca[1]
    switch = _SWITCH.match(description)
    return (switch[1] if switch else re.sub(r"[^\w.-]+", "-", description).strip("-") or "unnamed"), context.host


def _facts(subject: Subject, values: Mapping[str, tuple[int, Line]], context: Context) -> list[Observation]:
    def one(fact: str, value: int | tuple[str, ...], line: Line, shown: str) -> Observation:
        return Observation(
            fact, subject, value, Status.OK, context.at(NAME, REVISION, line.number), excerpt=excerpt(shown, 300)
        )

    known = [(name, *_COUNTERS[name], *values[name]) for name in values if name in _COUNTERS]
    out = [one(f"port.counters.{fact}", value, line, f"{name}: {value}") for name, fact, _, value, line in known]
    judged = [(name, value, line, limit is not None and value >= limit) for name, _, limit, value, line in known]
    many = [(name, value, line) for name, value, line, over in judged if over]
    if judged:
        shown = ", ".join(f"{name} {value}" for name, value, _ in many) or f"{len(judged)} counters, none of them many"
        words = tuple(sorted(f"{name} {value}" for name, value, _ in many))
        out.append(one(OVER, words, (many[0] if many else judged[0])[2], shown))
    return out


FORMAT = DocumentFormat(NAME, "perfquery and ibqueryerrors", REVISION, PROVIDES, sniff, parse)
