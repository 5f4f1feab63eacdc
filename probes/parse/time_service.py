"""``chronyc tracking``, ``timedatectl``, its ``timesync-status`` and ``pmc ... 'GET TIME_STATUS_NP'``: what is followed, how far off.

Lines as chrony 4 (client.c), systemd 250 (timedatectl.c) and linuxptp 3 (pmc.c) print them. ``System time`` of chrony is
what is left to be corrected; ``Offset`` of timesyncd is what the last answer said; ``master_offset`` of PTP is in ns, of
the adapter's clock. A machine that is the grandmaster itself follows nobody: that is not told as a lack.
"""

from __future__ import annotations

import re

from knowledge.observation import Observation, Status, Value, node
from knowledge.text import clean, digits, excerpt
from probes.base import Context, DocumentFormat

NAME, REVISION = "time-service", 3
PROVIDES = ("node.time.offset", "node.time.distance", "node.time.stratum", "node.time.source", "node.time.followed",
            "node.clock.synchronised", "node.service.time_sync.state")  # fmt: skip
MAIN = ("node.time.followed", "node.time.offset")
# Reference ID    : CB00710F (foo.example.net)          Leap status     : Not synchronised
_FIELD = re.compile(r"\s{0,24}([A-Z][A-Za-z ()]{2,30}?)\s{0,12}:\s(.{1,200})")
_SECONDS = re.compile(r"(-?\d{1,12}\.\d{1,12}) seconds")
#         master_offset              -12               gmPresent                  true
_PTP = re.compile(r"\s{1,24}(master_offset|gmPresent|gmIdentity)\s{1,40}(\S{1,60})")
_SPAN = re.compile(r"([+-]?\d{1,9}(?:\.\d{1,9})?)(us|ms|s|min|h)\b")
_UNIT = {"us": 0.001, "ms": 1.0, "s": 1000.0, "min": 60000.0, "h": 3600000.0}


# System clock synchronized: no                      NTP service: inactive         (before systemd 239: NTP synchronized: no)
_KERNEL = ("System clock synchronized", "NTP synchronized")
_SERVICE = {"active": "running", "inactive": "stopped", "n/a": "not_installed"}


def sniff(head: str) -> int:
    """90 for the fields of either tool."""
    fields = {m[1] for line in head.splitlines()[:20] if (m := _FIELD.fullmatch(clean(line)))}
    chrony, timesync = {"Reference ID", "Stratum", "Leap status"}, {"Server", "Poll interval", "Packet count"}
    ptp = "TIME_STATUS_NP" in head[:2000] and "master_offset" in head[:4000]
    clock = "Universal time" in fields and not fields.isdisjoint(_KERNEL)
    return 90 if fields >= chrony or fields >= timesync or ptp or clock else 0


def parse(text: str, context: Context) -> list[Observation]:
    """Facts of the node's clock."""
    fields: dict[str, str] = {}
    for line in text.splitlines()[:40]:
        if found := _FIELD.fullmatch(clean(line)):
            fields.setdefault(found[1], found[2].strip())
    here, source = node(context.host), context.at(NAME, REVISION)
    out: list[Observation] = []

    def add(fact: str, value: Value, shown: str, status: Status = Status.OK, detail: str = "") -> None:
        out.append(Observation(fact, here, value, status, source, excerpt=excerpt(shown, 300), detail=detail))

    if "Reference ID" in fields and "Leap status" in fields:
        _chrony(fields, add)
    elif "Server" in fields and "Packet count" in fields:
        _timesync(fields, add)
    elif kernel := next((name for name in _KERNEL if fields.get(name) in ("yes", "no")), ""):
        add("node.clock.synchronised", fields[kernel] == "yes", f"{kernel}: {fields[kernel]}")
        if service := _SERVICE.get(fields.get("NTP service", "")):
            add("node.service.time_sync.state", service, f"NTP service: {fields['NTP service']}")
    elif "TIME_STATUS_NP" in text[:2000]:
        _ptp(text, add)
    elif found := re.search(r"506 Cannot talk to daemon|Failed to (?:query|connect|get)[^\n]{0,80}", clean(text)):
        add(MAIN[0], None, found[0], Status.FAILED, found[0])
    return out


def _common(fields: dict[str, str], source: str, followed: bool, add: object) -> None:
    assert callable(add)
    add("node.time.followed", followed, f"Leap: {fields.get('Leap status') or fields.get('Leap', '-')}")
    if source:
        add("node.time.source", source, source)
    stratum = digits(fields.get("Stratum", ""))
    if stratum is not None and stratum <= 16:
        add("node.time.stratum", stratum, f"Stratum: {stratum}")


def _chrony(fields: dict[str, str], add: object) -> None:
    assert callable(add)
    followed = fields["Leap status"] != "Not synchronised"
    named = re.search(r"\(([^)]{1,120})\)", fields["Reference ID"])
    source = named[1] if named else ""
    _common(fields, source if followed else "", followed, add)
    offset = _SECONDS.match(fields.get("System time", ""))
    if not followed and not (offset and float(offset[1])):  # what was left to correct when the last source went
        add("node.time.offset", None, fields["Reference ID"], Status.UNSUPPORTED, "no time source is followed")
        return
    if offset:
        add("node.time.offset", round(abs(float(offset[1])) * 1000, 6), f"System time: {fields['System time']}")
    delay, spread = (_SECONDS.match(fields.get(key, "")) for key in ("Root delay", "Root dispersion"))
    if followed and delay and spread:
        distance = round((float(delay[1]) / 2 + float(spread[1])) * 1000, 6)
        add("node.time.distance", distance, f"Root delay {delay[1]} s, root dispersion {spread[1]} s")


def _span(text: str) -> float | None:
    """Milliseconds of ``1min 2.5s`` or ``-1.213ms``."""
    head = text.partition("(")[0]
    parts = [float(number) * _UNIT[unit] for number, unit in _SPAN.findall(head)]
    if not parts:
        return 0.0 if re.match(r"[+-]?0\b", head.strip()) else None
    return round(abs(parts[0]) + sum(map(abs, parts[1:])), 6)


def _timesync(fields: dict[str, str], add: object) -> None:
    assert callable(add)
    count = fields["Packet count"]
    followed = bool(digits(count)) and "Offset" in fields
    _common(fields, fields["Server"] if followed else "", followed, add)
    offset = _span(fields.get("Offset", ""))
    if followed and offset is not None:
        add("node.time.offset", offset, f"Offset: {fields['Offset']}")
    elif not followed:
        add("node.time.offset", None, f"Packet count: {count}", Status.UNSUPPORTED, "no time source has answered")
    distance = _span(fields.get("Root distance", ""))
    if followed and distance is not None:
        add("node.time.distance", distance, f"Root distance: {fields['Root distance']}")


def _ptp(text: str, add: object) -> None:
    """The answer of the machine's own port; others that answer stand behind it."""
    assert callable(add)
    fields: dict[str, str] = {}
    for line in text.splitlines()[:200]:
        if found := _PTP.fullmatch(clean(line)):
            fields.setdefault(found[1], found[2])
    if fields.get("gmPresent") != "true":
        return
    add("node.time.followed", True, "gmPresent: true")
    if "gmIdentity" in fields:
        add("node.time.source", fields["gmIdentity"], f"gmIdentity: {fields['gmIdentity']}")
    if re.fullmatch(r"-?\d{1,18}", fields.get("master_offset", "")):
        offset = round(abs(int(fields["master_offset"])) / 1e6, 6)
        add("node.time.offset", offset, f"master_offset: {fields['master_offset']} ns")


FORMAT = DocumentFormat(NAME, "chronyc tracking", REVISION, PROVIDES, sniff, parse)
