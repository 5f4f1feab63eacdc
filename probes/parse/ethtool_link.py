"""``ethtool INTERFACE``: whether the interface that a person asked about has a link, and at which speed it runs."""

from __future__ import annotations

import re

from knowledge.observation import Observation, Scope, Subject
from probes.base import Context, DocumentFormat
from probes.parse._app_emit import Emitter, clean_lines

NAME, REVISION = "ethtool-link", 1
PROVIDES = ("nic.link.detected", "nic.link.why", "nic.speed", "nic.speed.best")
_HEAD = re.compile(r"Settings for ([\w.:@-]{1,40}):\s{0,8}")
#         Speed: 25000Mb/s                Speed: Unknown!
_SPEED = re.compile(r"\s{1,20}Speed: (\d{1,8})Mb/s\s{0,8}")
#         Link detected: no (No cable)
_LINK = re.compile(r"\s{1,20}Link detected: (yes|no)(?: \((.{1,120})\))?\s{0,8}")
#         Advertised link modes:  25000baseCR/Full        Link partner advertised link modes:  100000baseCR4/Full
_MODES = re.compile(r"\s{1,20}(Advertised|Link partner advertised) link modes:(.{0,200})")
_MODE = re.compile(r"\b(\d{2,7})base\w{0,20}/(?:Full|Half)\b")


def sniff(head: str) -> int:
    """92 for its heading."""
    return 92 if any(_HEAD.fullmatch(line.text[:80]) for line in clean_lines(head)[:400]) else 0


def parse(text: str, context: Context) -> list[Observation]:
    """Facts of each interface that was asked about."""
    emit = Emitter(NAME, REVISION, context)
    subject: Subject | None = None
    modes: dict[str, set[int]] = {}
    side = ""
    for line in clean_lines(text):
        told = line.text[:300]
        if head := _HEAD.fullmatch(told):
            subject, modes, side = Subject(Scope.NIC, head[1], emit.node), {}, ""
        elif subject is None:
            continue
        elif found := _SPEED.fullmatch(told):
            emit.fact("nic.speed", subject, int(found[1]) / 1000, line.number, told.strip())
        elif found := _LINK.fullmatch(told):
            emit.fact("nic.link.detected", subject, found[1] == "yes", line.number, told.strip())
            if found[2]:
                emit.fact("nic.link.why", subject, found[2], line.number, told.strip())
        else:
            listed = _MODES.fullmatch(told)
            side = listed[1] if listed else "" if ":" in told else side
            if side:
                modes.setdefault(side, set()).update(int(mode) for mode in _MODE.findall(told))
        if subject and side == "Link partner advertised" and (both := modes.get("Advertised", set()) & modes[side]):
            best = max(both) / 1000
            emit.out = [o for o in emit.out if o.subject != subject or o.fact != "nic.speed.best"]
            emit.fact("nic.speed.best", subject, best, line.number, f"both ends offer {best:g} Gb/s")
    return emit.out


FORMAT = DocumentFormat(NAME, "ethtool", REVISION, PROVIDES, sniff, parse)
