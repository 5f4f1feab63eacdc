"""``lfs df`` and ``lfs check``: how full the targets of a Lustre file system are, and which of them this client does not reach.

Source of the lines: lustre/utils/lfs.c (``mntdf``, ``lfs_check``) and the Lustre manual, chapters 40 and 41:

    UUID                   1K-blocks        Used   Available Use% Mounted on
    scratch-OST0003_UUID        1.8T        1.7T       91.2G  95% /scratch[OST:3]
    OST0004             : inactive device

One target that is full ends writes to the files on it while the file system as a whole has space.
"""

from __future__ import annotations

import re

from knowledge.observation import Observation, Scope, Status, Subject, Value, node
from knowledge.text import clean, excerpt
from probes.base import Context, DocumentFormat, Line, lines_of

NAME, REVISION = "lfs", 1
PROVIDES = ("fs.target.size", "fs.target.available", "fs.target.used.share", "fs.target.active", "fs.target.state")
_HEAD = re.compile(
    r"UUID\s{1,80}(?:1K-blocks|bytes|Inodes)\s{1,40}I?Used\s{1,40}(?:Available|IFree)\s{1,20}I?Use% Mounted on\s{0,20}"
)
_ROW = re.compile(
    r"([\w.-]{1,80})_UUID\s{1,80}(\d{1,18}(?:\.\d)?[KMGTPE]?)\s{1,40}(\d{1,18}(?:\.\d)?[KMGTPE]?)\s{1,40}(\d{1,18}(?:\.\d)?[KMGTPE]?)\s{1,20}"
    r"(\d{1,3})%\s{1,20}(/.{0,200}?)\[(?:OST|MDT):\d{1,6}\].{0,20}"
)
# OST0004             : inactive device        MDT0001             : Resource temporarily unavailable
_AWAY = re.compile(r"((?:OST|MDT)[0-9a-f]{4})\s{1,40}: ([A-Za-z][\w /]{2,80}?)\s{0,20}")
# scratch-OST0003-osc-ffff9a1c81234000 active.        scratch-OST0004-osc-ffff9a1c81234000: check error: Resource temporarily unavailable
# error: check: 'scratch-OST0004-osc-ffff9a1c81234000': Resource temporarily unavailable (11)
_CHECKED = re.compile(
    r"(?:error: check: )?'?([\w.-]{1,60}-(?:OST|MDT)[0-9a-f]{4})-(?:osc|mdc)-[\w-]{4,40}'?:? (active\.?|(?:check error: |: ?)?[A-Z][\w ()]{2,80}?)\s{0,8}"
)
_UNITS = {"K": 2.0**-10, "M": 1.0, "G": 2.0**10, "T": 2.0**20, "P": 2.0**30, "E": 2.0**40}


def sniff(head: str) -> int:
    """94 for the heading of `lfs df`, 92 for two lines of `lfs check`, or one that is not well."""
    lines = [line.text[:500] for line in lines_of(head)[:400]]
    if any(map(_HEAD.fullmatch, lines)):
        return 94
    checked = [found for line in lines if (found := _CHECKED.fullmatch(line))]
    return 92 if len(checked) > 1 or any(not found[2].startswith("active") for found in checked) else 0


def parse(text: str, context: Context) -> list[Observation]:
    """Space of each target, whether it is in use, and how the client stands with it."""
    out: list[Observation] = []
    space, system = True, ""

    def add(fact: str, target: str, value: Value, line: Line) -> None:
        subject = Subject(Scope.OBJECT, target, node(context.host))
        shown = excerpt(clean(line.text.strip()), 300)
        out.append(Observation(fact, subject, value, Status.OK, context.at(NAME, REVISION, line.number), excerpt=shown))

    for line in lines_of(text):
        told = line.text[:500]
        if _HEAD.fullmatch(told):
            space, system = "Inodes" not in told, ""
        elif row := _ROW.fullmatch(told):
            system = row[1].rpartition("-")[0]
            if space and "-OST" in row[1]:  # metadata targets run out of inodes first
                add("fs.target.size", row[1], _mib(row[2]), line)
                add("fs.target.available", row[1], _mib(row[4]), line)
                add("fs.target.used.share", row[1], float(row[5]), line)
        elif away := _AWAY.fullmatch(told):
            target = f"{system}-{away[1]}" if system else away[1]
            if away[2] == "inactive device":
                add("fs.target.active", target, False, line)
            else:
                add("fs.target.state", target, "disconnected", line)
        elif checked := _CHECKED.fullmatch(told):
            add("fs.target.state", checked[1], "connected" if checked[2].startswith("active") else "disconnected", line)
    return out


def _mib(printed: str) -> int:
    """Of `lfs df` KiB, of `lfs df -h` with a unit."""
    unit = printed[-1]
    return round(float(printed[:-1]) * _UNITS[unit]) if unit in _UNITS else round(float(printed) / 1024)


FORMAT = DocumentFormat(NAME, "lfs df and lfs check", REVISION, PROVIDES, sniff, parse)
