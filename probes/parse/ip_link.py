"""``ip -j link`` and ``ip link``: network interfaces, their operational state and carrier, and their error counters."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

from knowledge.observation import Observation, Scope, Status, Subject
from probes.base import Context, DocumentFormat, Line
from probes.parse._app_emit import Emitter, clean_lines, whole
from probes.parse._json import loaded

NAME = "ip-link"
REVISION = 2

OPERSTATES = ("up", "down", "unknown", "dormant", "lowerlayerdown", "notpresent", "testing")
_COUNTERS = {
    ("rx", "errors"): "nic.rx.errors",
    ("rx", "dropped"): "nic.rx.dropped",
    ("tx", "errors"): "nic.tx.errors",
    ("tx", "dropped"): "nic.tx.dropped",
    ("tx", "carrier_errors"): "nic.tx.carrier_errors",
}

# 7: ibp12s0: <BROADCAST,MULTICAST,UP,LOWER_UP> mtu 2044 qdisc mq state UP mode DEFAULT group default qlen 256
_HEAD = re.compile(r"(\d{1,6}): ([^\s:@]{1,60})(?:@\S{1,60})?: <([A-Z0-9_,-]{0,300})> (.{1,300})")
_LINK = re.compile(r"\s{1,8}link/(\w{1,20})")
_MTU = re.compile(r"\bmtu (\d{1,6})")
_STATE = re.compile(r"\bstate (\w{1,20})")


#     RX: bytes  packets  errors  dropped missed  mcast        the values stand on the next line
_STATS = re.compile(r"\s{1,8}(RX|TX):\s{1,4}((?:[a-z_]{2,20}\s{1,20}){3,12})\s{0,8}")
_PHYSICAL = re.compile(r"(?:en|eth|ib)[a-z0-9]{1,20}")
_FIELDS = {"errors": "errors", "dropped": "dropped", "carrier": "carrier_errors"}


def sniff(head: str) -> int:
    """95 for a JSON list of interfaces, 90 for the text of ``ip link``; 0 otherwise."""
    start = head.lstrip()
    if start.startswith("[") and '"ifname"' in start[:4000] and '"operstate"' in start[:8000]:
        return 95
    first = start.split("\n", 1)[0]
    return 90 if _HEAD.match(first) and _MTU.search(first) else 0


def parse(text: str, context: Context) -> list[Observation]:
    """Facts of each interface; how many InfiniBand interfaces there are and are up."""
    emit = Emitter(NAME, REVISION, context)
    found = _json(emit, text) if text.lstrip().startswith("[") else _text(emit, text)
    if (
        len(found) == 1 and _PHYSICAL.fullmatch(found[0][0]) and found[0][1] != "infiniband"
    ):  # it was asked about: whether it has a link is the question
        asked = [o for o in emit.out if o.fact == "nic.carrier" and o.status is Status.OK]
        emit.out += [replace(o, fact="nic.link.detected") for o in asked]
    infiniband = [(name, up) for name, link, up in found if link == "infiniband"]
    if infiniband:
        down = [name for name, up in infiniband if not up]
        shown = f"{len(infiniband) - len(down)} of {len(infiniband)} up: {', '.join(name for name, _ in infiniband)}"
        emit.fact("node.ib.interfaces.total", emit.node, len(infiniband), None, shown)
        emit.fact("node.ib.interfaces.up", emit.node, len(infiniband) - len(down), None, shown)
        emit.fact("node.ib.interfaces.down_names", emit.node, tuple(sorted(down)), None, shown)
    return emit.out


def _json(emit: Emitter, text: str) -> list[tuple[str, str, bool]]:
    try:
        data = loaded(text)
    except (ValueError, RecursionError) as error:
        detail = f"not JSON: {error.__class__.__name__}"
        emit.missing("node.ib.interfaces.total", emit.node, Status.FAILED, detail, line=1, excerpt=text.strip()[:200])
        return []
    out = []
    for item in data if isinstance(data, list) else []:
        if isinstance(item, dict) and isinstance(item.get("ifname"), str) and item["ifname"]:
            line = text.count("\n", 0, max(0, text.find(f'"{item["ifname"]}"'))) + 1
            out.append(_interface(emit, item, line))
    return out


def _text(emit: Emitter, text: str) -> list[tuple[str, str, bool]]:
    out = []
    lines = clean_lines(text)
    for index, line in enumerate(lines):
        if not (found := _HEAD.match(line.text)):
            continue
        link = _LINK.match(lines[index + 1].text) if index + 1 < len(lines) else None
        state, mtu = _STATE.search(found[4]), _MTU.search(found[4])
        item: dict[str, Any] = {"ifname": found[2], "flags": found[3].split(",")}
        if state:
            item["operstate"] = state[1]
        if mtu:
            item["mtu"] = int(mtu[1])
        if link:
            item["link_type"] = link[1]
        item["stats64"] = _stats(lines[index + 1 : index + 16])
        out.append(_interface(emit, item, line.number))
    return out


def _stats(lines: Sequence[Line]) -> dict[str, dict[str, str]]:
    """The counters of ``ip -s link`` by the keys of its JSON, up to the next interface."""
    found: dict[str, dict[str, str]] = {}
    for line, below in pairwise(lines):
        if _HEAD.match(line.text):
            break
        if title := _STATS.fullmatch(f"{line.text[:200].rstrip()} "):
            row = dict(zip(title[2].split(), below.text.split(), strict=False))
            found.setdefault(title[1].lower(), {_FIELDS[name]: value for name, value in row.items() if name in _FIELDS})
    return found


def _interface(emit: Emitter, item: Mapping[str, Any], line: int) -> tuple[str, str, bool]:
    """Emit one interface; its name, its link type, and whether it is up with a carrier."""
    name = str(item["ifname"])
    subject = Subject(Scope.NIC, name, emit.node)
    flags = [flag for flag in item.get("flags", ()) if isinstance(flag, str)] if _is_list(item.get("flags")) else []
    state = item.get("operstate")
    operstate = state.lower() if isinstance(state, str) else ""
    link = item.get("link_type") if isinstance(item.get("link_type"), str) else ""
    shown = f"{name}: <{','.join(flags)}> state {state if isinstance(state, str) else '-'}"
    if operstate in OPERSTATES:
        emit.fact("nic.operstate", subject, operstate, line, shown)
    elif state is not None:
        emit.missing(
            "nic.operstate", subject, Status.FAILED, f"not understood: {state!r:.60}", line=line, excerpt=shown
        )
    carrier = _carrier(flags, operstate)
    if carrier is not None:
        emit.fact("nic.carrier", subject, carrier, line, shown)
    if link:
        emit.fact("nic.link_type", subject, str(link), line, shown)
    mtu = item.get("mtu")
    if isinstance(mtu, int) and not isinstance(mtu, bool):
        emit.fact("nic.mtu", subject, mtu, line, shown)
    _counters(emit, subject, item, line, shown)
    return name, str(link), carrier is True and operstate in ("up", "unknown")


def _carrier(flags: Sequence[str], operstate: str) -> bool | None:
    """Whether the interface has a link; None when it is switched off, because then nothing is known."""
    if "LOWER_UP" in flags:
        return True
    if "NO-CARRIER" in flags or operstate in ("lowerlayerdown", "notpresent"):
        return False
    return False if "UP" in flags else None


def _counters(emit: Emitter, subject: Subject, item: Mapping[str, Any], line: int, shown: str) -> None:
    stats = item.get("stats64", item.get("stats"))
    if not isinstance(stats, dict):
        return
    for (direction, field), name in _COUNTERS.items():
        part = stats.get(direction)
        value = part.get(field) if isinstance(part, dict) else None
        if isinstance(value, str):
            value = whole(value)
        if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
            emit.fact(name, subject, value, line, f"{shown}, {direction} {field} {value}")


def _is_list(value: object) -> bool:
    return isinstance(value, list)


FORMAT = DocumentFormat(
    name=NAME,
    title="ip link",
    revision=REVISION,
    provides=(
        "nic.operstate",
        "nic.carrier",
        "nic.link_type",
        "nic.mtu",
        "nic.link.detected",
        *_COUNTERS.values(),
        "node.ib.interfaces.total",
        "node.ib.interfaces.up",
        "node.ib.interfaces.down_names",
    ),
    sniff=sniff,
    parse=parse,
)
