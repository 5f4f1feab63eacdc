"""``ipmitool chassis status`` and ``chassis power status``: whether the server is switched on, and the faults that its controller stands by.

Lines as the tool prints them (lib/ipmi_chassis.c); their meaning is that of "Get Chassis Status" of IPMI 2.0, table 28-3.
"""

from __future__ import annotations

import re

from knowledge.observation import Observation, Status, Value, node
from knowledge.text import clean, excerpt
from probes.base import Context, DocumentFormat, Line, lines_of

NAME, REVISION = "ipmi-chassis", 1
PROVIDES = ("node.powered", "node.chassis.faults")
# System Power         : off        Main Power Fault     : false        Cooling/Fan Fault    : false
_FIELD = re.compile(
    r"(System Power|Power Overload|Main Power Fault|Power Control Fault|Drive Fault|Cooling/Fan Fault)\s{1,20}: (on|off|true|false)\s{0,8}"
)
_FAULTS = {
    "Power Overload": "power overload", "Main Power Fault": "main power", "Power Control Fault": "power control",
    "Drive Fault": "drive", "Cooling/Fan Fault": "cooling or fan",
}  # fmt: skip
# Chassis Power is off
_POWER = re.compile(r"Chassis Power is (on|off)\s{0,8}")


def sniff(head: str) -> int:
    """95 for two fields of the status, or the sentence of the power alone."""
    lines = [line.text[:200] for line in lines_of(head)[:200]]
    return 95 if sum(1 for line in lines if _FIELD.fullmatch(line)) > 1 or any(map(_POWER.fullmatch, lines)) else 0


def parse(text: str, context: Context) -> list[Observation]:
    """Power, and the faults that stand; of several captures the last."""
    here, last = node(context.host), dict[str, tuple[bool, Line]]()
    for line in lines_of(text):
        if (field := _FIELD.fullmatch(line.text[:200])) or (field := _POWER.fullmatch(line.text[:200])):
            last[field[1] if field.re is _FIELD else "System Power"] = field[field.re.groups] in ("on", "true"), line
    out: list[Observation] = []

    def add(fact: str, value: Value, line: Line) -> None:
        shown = excerpt(clean(line.text.strip()), 300)
        out.append(Observation(fact, here, value, Status.OK, context.at(NAME, REVISION, line.number), excerpt=shown))

    if power := last.pop("System Power", None):
        add("node.powered", *power)
    if last:
        faults = [(_FAULTS[name], line) for name, (stands, line) in last.items() if stands]
        add(
            "node.chassis.faults",
            tuple(sorted(name for name, _ in faults)),
            faults[0][1] if faults else next(iter(last.values()))[1],
        )
    return out


FORMAT = DocumentFormat(NAME, "ipmitool chassis status", REVISION, PROVIDES, sniff, parse)
