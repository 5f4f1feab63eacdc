"""``mount`` and ``/proc/mounts``: what is mounted where, and what nothing can be written to.

Both print the options of the mount and of the file system behind it as one list. So ``ro`` beside ``errors=remount-ro`` is taken
for what the kernel did after an error: who mounts read-only on purpose needs no such option.
"""

from __future__ import annotations

import re

from knowledge.observation import Observation, Scope, Status, Subject, Value, node
from knowledge.text import clean, excerpt
from probes.around import bare
from probes.base import Context, DocumentFormat, lines_of

NAME, REVISION = "mounts", 1
PROVIDES = ("fs.mount_point", "fs.source", "fs.type", "fs.read_only", "fs.turned_read_only")
# /dev/nvme0n1p2 on / type ext4 (ro,relatime,errors=remount-ro)
_MOUNT = re.compile(r"(\S{1,300}) on (/.{0,300}?) type ([\w.+-]{1,40}) \((\S{2,2000})\)(?: \[[^\]]{0,80}\])?\s{0,8}")
# /dev/nvme0n1p2 / ext4 ro,relatime,errors=remount-ro 0 0
_TABLE = re.compile(r"(\S{1,300}) (/\S{0,300}) ([\w.+-]{1,40}) ((?:rw|ro)(?:,\S{1,2000})?) 0 0\s{0,8}")
_STOPPED = frozenset({"emergency_ro", "shutdown"})  # what newer kernels print of a file system that they stopped
_WIDEST = 3000


def _line(text: str) -> re.Match[str] | None:
    return _MOUNT.fullmatch(text) or _TABLE.fullmatch(text)


def sniff(head: str) -> int:
    """91 when most of the first lines are mounts."""
    lines = [line.text for line in lines_of(head)[:40] if line.text.strip()][:20]
    return 91 if lines and sum(_line(line[:_WIDEST]) is not None for line in lines) > len(lines) / 2 else 0


def parse(text: str, context: Context) -> list[Observation]:
    """Facts of each mount, named by its mount point; failed for one whose line is cut at the end."""
    text = bare(text).text  # the line of a shell behind it is no half line of the table
    out: list[Observation] = []
    lines = lines_of(text)
    for line in lines:
        found = _line(clean(line.text[:_WIDEST]))
        if found is None:
            if line is lines[-1] and out and line.text.strip():
                subject, at = (
                    Subject(Scope.OBJECT, "file systems", node(context.host)),
                    context.at(NAME, REVISION, line.number),
                )
                why = f"the listing ends early: {line.text[:40]!r}"
                out.append(Observation("fs.read_only", subject, None, Status.FAILED, at, detail=why))
            continue
        options = frozenset(found[4].split(","))
        stopped = bool(options & _STOPPED) or {"ro", "errors=remount-ro"} <= options
        values: dict[str, Value] = {
            "fs.mount_point": found[2],
            "fs.source": found[1],
            "fs.type": found[3],
            "fs.read_only": "ro" in options or stopped,
            "fs.turned_read_only": stopped,
        }
        subject, source = (
            Subject(Scope.OBJECT, found[2][:200], node(context.host)),
            context.at(NAME, REVISION, line.number),
        )
        shown = excerpt(clean(line.text.strip()), 300)
        out += [Observation(fact, subject, value, Status.OK, source, excerpt=shown) for fact, value in values.items()]
    return out


FORMAT = DocumentFormat(NAME, "mount, /proc/mounts", REVISION, PROVIDES, sniff, parse)
