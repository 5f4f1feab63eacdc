"""``perfquery`` and ``ibqueryerrors``, and the counters that the kernel keeps in files (``grep -H . /sys/class/infiniband/*/ports/*/counters/*``,
a loop over them): what InfiniBand ports have counted since they were last cleared.

The tools print the counters of the InfiniBand specification by the names of infiniband-diags. ibqueryerrors shows the ports that
have counted more than a threshold; those of its file ``error_thresholds`` stand here, for perfquery and the files too.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace

from knowledge.language import Text
from knowledge.observation import Observation, Scope, Status, Subject, node
from knowledge.text import clean, excerpt
from probes.base import Context, DocumentFormat, Line, lines_of
from probes.parse._logtime import Stamp, parse_iso
from probes.parse._rdma_counters import HARDWARE, STANDARD

NAME, REVISION = "ib-errors", 4
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
PROVIDES = (OVER, *(f"port.counters.{fact}" for fact, _ in _COUNTERS.values()), *HARDWARE.values())
_FACTS = {f"port.counters.{fact}": name for name, (fact, _) in _COUNTERS.items()}
_FILES = {file: _FACTS[fact] for file, fact in STANDARD.items() if fact in _FACTS}  # symbol_error -> SymbolErrorCounter
UNNAMED = "unknown:?"  # the port of counters that were shown without the place that they come from
# /sys/class/infiniband/mlx5_0/ports/1/counters/link_downed:14        mlx5_0/ports/1/hw_counters/out_of_sequence 120000
_PLACE = re.compile(r"(?:\S{0,120}/)?(?P<device>[\w.-]{1,64})/ports/(?P<port>\d{1,3})/(?:hw_)?counters/?")
# link_downed:14      symbol_error 0      port_rcv_errors = 0        ahead of the value its place, where that is shown
_FILE = re.compile(
    rf"(?:{_PLACE.pattern}|(?:\./)?(?:(?:hw_)?counters/)?)(?P<name>[a-zA-Z0-9_]{{5,40}})(?:\s{{0,4}}[:=]\s{{0,8}}|\s{{1,40}})(?P<value>\d{{1,20}})\s{{0,20}}"
)
# 2026-11-03T03:00:01 /sys/class/...      2026-11-03 03:00:01+00:00 mlx5_0/ports/...      [2026-11-03 03:00:01] link_downed:3
_TIME = re.compile(
    r"(?m)^\[?(\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d{1,9})?(?:Z|[+-]\d\d:?\d\d)?)\]?:?\s{1,8}(?=\S)"
)
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
    """94 for the heading of either; without one 88 for lines of counters, 89 for those that begin with a time."""
    lines = [_split(line.text[:400])[1] for line in lines_of(head)]
    if any(_QUERIED.fullmatch(line) or _ERRORS.fullmatch(line) or _SUMMARY.match(line) for line in lines):
        return 94
    written = [line for line in lines if line.strip()][:200]
    known = [line for line in written if _known(_FILE.fullmatch(line)) or _dotted(line)]
    if not known or len(known) < _MOST * len(written):
        return 0
    return 89 if _TIME.search(head) else 88  # surer with its times than without


def _timed_lines(head: str) -> bool:
    return sniff(head) == 89


def _split(text: str) -> tuple[Stamp | None, str]:
    """The time ahead of a line, where somebody wrote one with each reading; and the line."""
    if found := _TIME.match(text):
        return parse_iso(found[1]), text[found.end() :]
    return None, text


_MOST = 0.8  # of the lines: between those of a loop may stand other files, and the last may be cut


_TRAFFIC = re.compile(
    r"(?:port|unicast|multicast)_(?:xmit|rcv)_(?:data|packets)"
)  # beside the others; none of them is a fault


def _known(found: re.Match[str] | None) -> bool:
    if found is None:
        return False
    name = found["name"]
    return name in STANDARD or name in HARDWARE or bool(found["device"]) or _TRAFFIC.fullmatch(name) is not None


def _dotted(line: str) -> bool:
    found = _DOTTED.fullmatch(line)
    return found is not None and found[1] in _COUNTERS


def parse(text: str, context: Context) -> list[Observation]:
    """Counters of each port that is shown, and which of them are many; none seen where no port has errors."""
    out: list[Observation] = []
    counted: dict[Subject, dict[str, tuple[int, Line]]] = {}
    device: tuple[str, str] | None = None  # name and host
    port: Subject | None = None
    times: dict[int, Stamp] = {}  # of lines

    headed: dict[Subject, set[str]] = {}

    def begin(port: Subject, heading: str = "") -> dict[str, tuple[int, Line]]:
        """The counters of a port below a heading; where it had that heading before, what stood there is told as it was then."""
        if heading in headed.setdefault(port, set()):
            out.extend(_facts(port, counted.pop(port), context))
            headed[port] = set()
        headed[port].add(heading)
        return counted.setdefault(port, {})

    for line in lines_of(text):
        stamp, told = _split(clean(line.text[:2200]))
        if stamp is not None:
            times[line.number] = stamp
        if found := _QUERIED.fullmatch(told):
            where = re.sub(r"\W+", "", found[1]).lower()
            port = Subject(Scope.PORT, f"{where}/{found[2]}", node(context.host))
            begin(port, told[: found.start(1)].lower())
        elif found := _ERRORS.fullmatch(told):
            device = named(found[2] or found[1] or "", context)
        elif device and (found := _PORT.fullmatch(told)):
            here = begin(Subject(Scope.PORT, f"{device[0]}/{found[1]}", node(device[1])))
            here |= {name: (int(value), line) for name, value in _VALUE.findall(found[2])}
        elif found := _DOTTED.fullmatch(told):
            port = port or Subject(Scope.PORT, UNNAMED, node(context.host))
            counted.setdefault(port, {})[found[1]] = int(found[2]), line
        elif _known(found := _FILE.fullmatch(told)) and found:
            where = f"{found['device']}/{found['port']}" if found["device"] else UNNAMED
            here = counted.setdefault(Subject(Scope.PORT, where, node(context.host)), {})
            name = _FILES.get(found["name"], found["name"])
            if name in here and here[name][1].number in times:  # an earlier reading, which a later line follows
                out += _facts(Subject(Scope.PORT, where, node(context.host)), {name: here[name]}, context, judge=False)
            here[name] = int(found["value"]), line
    for subject, values in counted.items():
        out += _facts(subject, values, context)
    if not counted and _SUMMARY.search(text):
        out.append(Observation(OVER, node(context.host), None, Status.NONE_SEEN, context.at(NAME, REVISION)))
    return [_timed(o, times) for o in out] if times else out


def _timed(o: Observation, times: Mapping[int, Stamp]) -> Observation:
    stamp = times.get(o.source.line or 0)
    return replace(o, at=stamp.value, clock=stamp.clock) if stamp else o


# Lost packets, of which the rule rdma-packets-lost takes so many within minutes for trouble; since when one reading counts, it does not say.
_LOST = ("packet_seq_err", "local_ack_timeout_err")
_LOST_MANY = 10


def unread(text: str) -> list[tuple[int, Text]]:
    """Losses that were counted since the driver was loaded: one reading cannot tell whether they go on."""
    out = []
    for line in lines_of(text):
        found = _FILE.fullmatch(_split(line.text[:400])[1])
        if found is None or found["name"] not in _LOST or int(found["value"]) < _LOST_MANY:
            continue
        said = f"{found['name']} {found['value']}"
        en = f"{said} counts lost packets since the driver was loaded; whether it grows, a second reading under load tells (`rdma statistic`, ten minutes later)"
        zh = f"{said} 为驱动加载以来的丢包计数；是否仍在增长需在有负载时再读一次（十分钟后 `rdma statistic`）"
        out.append((line.number, Text(en, zh)))
    return out[:4]


def named(description: str, context: Context) -> tuple[str, str]:
    """The device that a node's description in the fabric names, and the host that it is in: ``gpu07 mlx5_3``, ``MF0;leaf-3:MQM9700/U1``."""
    if hca := _HCA.match(description):
        return hca[2], hca[1]
    switch = _SWITCH.match(description)
    return (switch[1] if switch else re.sub(r"[^\w.-]+", "-", description).strip("-") or "unnamed"), context.host


def _facts(
    subject: Subject, values: Mapping[str, tuple[int, Line]], context: Context, *, judge: bool = True
) -> list[Observation]:
    """The counters of a port; `judge`: and which of them are many."""

    def one(fact: str, value: int | tuple[str, ...], line: Line, shown: str) -> Observation:
        return Observation(
            fact, subject, value, Status.OK, context.at(NAME, REVISION, line.number), excerpt=excerpt(shown, 300)
        )

    known = [(name, *_COUNTERS[name], *values[name]) for name in values if name in _COUNTERS]
    out = [one(f"port.counters.{fact}", value, line, f"{name}: {value}") for name, fact, _, value, line in known]
    out += [
        one(HARDWARE[name], value, line, f"{name}: {value}")
        for name, (value, line) in values.items()
        if name in HARDWARE
    ]
    judged = [(name, value, line, limit is not None and value >= limit) for name, _, limit, value, line in known]
    many = [(name, value, line) for name, value, line, over in judged if over]
    if judged and judge:
        shown = ", ".join(f"{name} {value}" for name, value, _ in many) or f"{len(judged)} counters, none of them many"
        words = tuple(sorted(f"{name} {value}" for name, value, _ in many))
        out.append(one(OVER, words, (many[0] if many else judged[0])[2], shown))
    return out


FORMAT = DocumentFormat(
    NAME,
    "perfquery, ibqueryerrors and counters of ports in /sys",
    REVISION,
    PROVIDES,
    sniff,
    parse,
    unread=unread,
    timed=_timed_lines,
)
