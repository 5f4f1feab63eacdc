"""Mounted file systems: how they answer, how full they are, and how their servers are reached."""

from __future__ import annotations

from knowledge.language import Text
from knowledge.observation import Observation
from probes.host import Host
from probes.live import Cost, Needs, ProbeRequest, ProbeSpec
from probes.live._fetch import document
from probes.parse import filesystems_snapshot

MAIN = ("fs.state", "fs.used.share", "fs.turned_read_only")


def collect(request: ProbeRequest, host: Host) -> list[Observation]:
    """Observations of the snapshot. What hangs in a dead server is a child of the collector, never this process."""
    reply = host.snapshot("filesystems", deadline=request.deadline)
    return document(reply, host, filesystems_snapshot.FORMAT, MAIN)


PROBE = ProbeSpec(
    name="filesystems",
    title=Text(
        "mounted file systems: space, inodes, read-only, NFS and Lustre",
        "已挂载文件系统：空间、inode、只读状态、NFS 与 Lustre",
    ),
    provides=filesystems_snapshot.FORMAT.provides,
    main=MAIN,
    collect=collect,
    needs=Needs(files=("/proc/self/mountinfo",), privileges=("root for the import states of newer Lustre clients",)),
    cost=Cost.CHEAP,
    deadline=5.0,  # a dead server costs one second, several cost it at the same time
)
