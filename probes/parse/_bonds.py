"""Bonds as /proc/net/bonding shows them: members that are down, slow, or left out of the aggregate.

Format: docs.kernel.org/networking/bonding.html; the lines are printed by drivers/net/bonding/bond_procfs.c::

    Bonding Mode: IEEE 802.3ad Dynamic link aggregation
    Active Aggregator Info:
            Aggregator ID: 7
            Partner Mac Address: set
    Slave Interface: eno1
    MII Status: up
    Speed: 100000 Mbps
    Aggregator ID: 7
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Any

from knowledge.observation import Scope, Status, Subject
from knowledge.record import dataclass
from probes.parse._sysfs import Sheet, why_not, words

FACTS = (
    "bond.mode",
    "bond.members",
    "bond.members.down",
    "bond.members.outside",
    "bond.members.slow",
    "bond.partner",
    "nic.member_of",
)
_SPEED = re.compile(r"(\d{1,7}) Mbps")


@dataclass(slots=True)
class _Member:
    name: str
    up: bool | None = None
    speed: int | None = None  # Mb/s
    aggregator: str = ""


@dataclass(slots=True)
class _Bond:
    mode: str = ""
    aggregator: str = ""  # the active one; empty without LACP
    partner: str = ""  # set, unset; empty when it is not shown
    members: list[_Member] = field(default_factory=list)


def emit_bonds(sheet: Sheet, bonds: Mapping[str, Any]) -> None:
    """Facts of every bond of the document."""
    for name, lines in sorted(bonds.items()):
        subject = Subject(Scope.NIC, words(name) or "bond", sheet.node)
        call = f"/proc/net/bonding/{words(name)}"
        if isinstance(lines, list):
            _emit(sheet, subject, _read([line for line in lines if isinstance(line, str)]), call)
        else:
            sheet.missing("bond.members", subject, *why_not(lines), call)


def _read(lines: Sequence[str]) -> _Bond:
    bond = _Bond()
    for line in lines:
        key, colon, value = (part.strip() for part in line.partition(":"))
        if not colon:
            continue
        member = bond.members[-1] if bond.members else None
        if key == "Bonding Mode":
            bond.mode = words(value)
        elif key == "Slave Interface":
            bond.members.append(_Member(words(value)))
        elif key == "Aggregator ID" and member is None:
            bond.aggregator = value
        elif key == "Partner Mac Address":
            bond.partner = value
        elif member is not None:
            _member(member, key, value)
    return bond


def _member(member: _Member, key: str, value: str) -> None:
    if key == "MII Status":
        member.up = value == "up" if value in ("up", "down", "going down", "going back") else None
    elif key == "Speed" and (found := _SPEED.fullmatch(value)):
        member.speed = int(found[1])
    elif key == "Aggregator ID":
        member.aggregator = value


def _emit(sheet: Sheet, subject: Subject, bond: _Bond, call: str) -> None:
    if not bond.mode and not bond.members:
        sheet.missing("bond.members", subject, Status.FAILED, "the file is not understood", call)
        return
    sheet.fact("bond.mode", subject, bond.mode or "-", call, f"Bonding Mode: {bond.mode}")
    shown = ", ".join(f"{m.name} {'up' if m.up else 'down'}" for m in bond.members[:8]) or "no member"
    sheet.fact("bond.members", subject, len(bond.members), call, shown)
    for member in bond.members:
        member_of = Subject(Scope.NIC, member.name, sheet.node)
        sheet.fact("nic.member_of", member_of, f"{Scope.NIC}:{subject.id}", call, f"Slave Interface: {member.name}")
    sheet.fact("bond.members.down", subject, tuple(m.name for m in bond.members if m.up is False), call, shown)
    speeds = [m.speed for m in bond.members if m.up and m.speed]
    shown = ", ".join(f"{m.name} {m.speed or '?'} Mbps" for m in bond.members[:8])
    slow = tuple(m.name for m in bond.members if m.up and m.speed and m.speed < max(speeds))
    sheet.fact("bond.members.slow", subject, slow, call, shown)
    if not bond.aggregator:
        for fact in ("bond.members.outside", "bond.partner"):
            sheet.missing(
                fact, subject, Status.NOT_APPLICABLE, "this bond does not use LACP, or its state needs root", call
            )
        return
    outside = tuple(m.name for m in bond.members if m.up and m.aggregator and m.aggregator != bond.aggregator)
    shown = f"active aggregator {bond.aggregator}; " + ", ".join(
        f"{m.name} {m.aggregator or '?'}" for m in bond.members[:8]
    )
    sheet.fact("bond.members.outside", subject, outside, call, shown)
    if bond.partner in ("set", "unset"):
        sheet.fact("bond.partner", subject, bond.partner == "set", call, f"Partner Mac Address: {bond.partner}")
    else:
        sheet.missing("bond.partner", subject, Status.UNSUPPORTED, "the partner is not shown", call)
