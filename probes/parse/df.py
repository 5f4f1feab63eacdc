"""``df``, ``df -h``, ``df -T`` and ``df -i``: how full file systems are, or how many of their inodes are taken.

Images that are mounted for reading only are full by nature: loop devices, and the types that hold images.
"""

from __future__ import annotations

import re

from knowledge.observation import Observation, Scope, Status, Subject, Value, node
from knowledge.text import clean, excerpt
from probes.base import Context, DocumentFormat, lines_of
from probes.parse._columns import cells

NAME, REVISION = "df", 3
PROVIDES = (
    "fs.mount_point",
    "fs.source",
    "fs.type",
    "fs.size",
    "fs.available",
    "fs.used.share",
    "fs.inodes.used.share",
    "fs.read_only",
    "node.shm.mounted",
    "node.shm.size",
    "node.shm.share",
)
# Filesystem      Size  Used Avail Use% Mounted on        Filesystem     1K-blocks      Used Available Use% Mounted on
# Filesystem      Inodes  IUsed   IFree IUse% Mounted on
_HEAD = re.compile(
    r"Filesystem\s{1,200}(?:Type\s{1,40})?(Size|Inodes|1K-blocks|1M-blocks|1G-blocks|1024-blocks)\s.{4,80}(?:Use%|Capacity) Mounted on\s{0,8}"
)
_UNITS = {"": 1 / 1024, "K": 1 / 1024, "M": 1.0, "G": 1024.0, "T": 1024.0**2, "P": 1024.0**3}
_BLOCK = {"1M-blocks": 1.0, "1G-blocks": 1024.0}
_SIZE = re.compile(r"(\d{1,15}(?:\.\d{1,3})?)([KMGTP]?)")
# Nobody writes there, or no more than a cache or the firmware: media and images, CernVM-FS, the variables of EFI.
_IMAGES = frozenset({"squashfs", "iso9660", "udf", "erofs", "cramfs", "romfs", "efivarfs", "fuse.cvmfs2"})
_IMAGE_SOURCE = re.compile(r"/dev/(?:loop|sr|cdrom|scd)[\dp]*|cvmfs2?|efivarfs")


def sniff(head: str) -> int:
    """93 for its heading."""
    return 93 if any(_HEAD.fullmatch(line.text[:500]) for line in lines_of(head)[:40]) else 0


def parse(text: str, context: Context) -> list[Observation]:
    """Facts of each mount."""
    out: list[Observation] = []
    columns: list[str] = []
    kind = ""
    for line in lines_of(text):
        if head := _HEAD.fullmatch(line.text[:500]):
            columns, kind = line.text.replace("Mounted on", "Mounted").split(), head[1]
            continue
        row = cells(line.text, columns, "Mounted") if columns else {}
        used = re.fullmatch(
            r"(\d{1,3})%", row.get(next((c for c in columns if c[-1] == "%" or c == "Capacity"), ""), "")
        )
        mount = row.get("Mounted", "")
        if used is None or not mount.startswith("/"):
            continue
        subject = Subject(Scope.OBJECT, mount[:200], node(context.host))
        values: dict[str, Value] = {"fs.mount_point": mount, "fs.source": row["Filesystem"]}
        if kind == "Inodes":
            values["fs.inodes.used.share"] = float(used[1])
        else:
            values["fs.used.share"] = float(used[1])
            factor = _BLOCK.get(kind, 1 / 1024)
            for fact, column in (
                ("fs.size", columns[columns.index(kind)]),
                ("fs.available", columns[columns.index(kind) + 2]),
            ):
                if found := _SIZE.fullmatch(row[column]):
                    values[fact] = round(float(found[1]) * (_UNITS[found[2]] if kind == "Size" else factor))
        if "Type" in row:
            values["fs.type"] = row["Type"]
        if _IMAGE_SOURCE.fullmatch(row["Filesystem"]) or row.get("Type") in _IMAGES:
            values["fs.read_only"] = True
        source, shown = context.at(NAME, REVISION, line.number), excerpt(clean(line.text.strip()), 300)
        out += [Observation(fact, subject, value, Status.OK, source, excerpt=shown) for fact, value in values.items()]
        if mount == "/dev/shm" and "fs.size" in values:
            shm = {
                "node.shm.mounted": True,
                "node.shm.size": values["fs.size"],
                "node.shm.share": values["fs.used.share"],
            }
            out += [
                Observation(fact, node(context.host), value, Status.OK, source, excerpt=shown)
                for fact, value in shm.items()
            ]
    return out


FORMAT = DocumentFormat(NAME, "df", REVISION, PROVIDES, sniff, parse)
