"""``mdadm --detail``: level, state and members of a software array (mdadm, Detail.c).

/dev/md0:
        Raid Level : raid1
      Raid Devices : 2
             State : clean, degraded, recovering
    Active Devices : 1
"""

from __future__ import annotations

import re

from knowledge.observation import Observation, Scope, Status, Subject, Value, node
from knowledge.text import clean, digits, excerpt
from probes.base import Context, DocumentFormat, Line, lines_of

NAME, REVISION = "mdadm-detail", 1
PROVIDES = ("raid.action", "raid.level", "raid.members.missing", "raid.state")
_HEAD = re.compile(r"/dev/(md[\w/-]{1,60}):\s{0,8}")
_FIELD = re.compile(r"\s{1,24}(Raid Level|Raid Devices|State|Active Devices) : (.{1,120}?)\s{0,8}")
_LEVEL = re.compile(r"raid\d{1,2}|linear|multipath|faulty")
# State : clean, degraded, recovering -> as sync_action of sysfs calls it
_ACTIONS = {"recovering": "recover", "resyncing": "resync", "reshaping": "reshape", "checking": "check"}


def sniff(head: str) -> int:
    """95 for an array with its level below it."""
    lines = [line.text[:200] for line in lines_of(head)[:400]]
    named = any(map(_HEAD.fullmatch, lines))
    return 95 if named and any("Raid Level : " in line for line in lines) else 0


def parse(text: str, context: Context) -> list[Observation]:
    """Facts of each array."""
    out: list[Observation] = []
    here: Subject | None = None
    devices: int | None = None

    def add(fact: str, subject: Subject, value: Value, line: Line) -> None:
        source = context.at(NAME, REVISION, line.number)
        out.append(Observation(fact, subject, value, Status.OK, source, excerpt=excerpt(clean(line.text.strip()), 300)))

    for line in lines_of(text):
        if head := _HEAD.fullmatch(line.text[:200]):
            here, devices = Subject(Scope.OBJECT, head[1].rpartition("/")[2], node(context.host)), None
        elif here is None or (field := _FIELD.fullmatch(line.text[:200])) is None:
            continue
        elif field[1] == "Raid Level" and _LEVEL.fullmatch(field[2]):
            add("raid.level", here, field[2], line)
        elif field[1] == "Raid Devices":
            devices = digits(field[2])
        elif field[1] == "State":
            words = field[2].split(", ")
            add("raid.state", here, "inactive" if "inactive" in words else "active", line)
            for action in (_ACTIONS[word] for word in words if word in _ACTIONS):
                add("raid.action", here, action, line)
        elif field[1] == "Active Devices" and devices is not None and (active := digits(field[2])) is not None:
            add("raid.members.missing", here, max(0, devices - active), line)
    return out


FORMAT = DocumentFormat(NAME, "mdadm --detail", REVISION, PROVIDES, sniff, parse)
