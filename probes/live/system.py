"""The node itself: processors, memory, pressure, limits, disks and network, from /proc and /sys."""

from __future__ import annotations

from knowledge.language import Text
from knowledge.observation import Observation
from probes.host import Host
from probes.live import Cost, Needs, ProbeRequest, ProbeSpec
from probes.live._fetch import document
from probes.parse import system_snapshot

NAME = "system"
MAIN = system_snapshot.MAIN


def collect(request: ProbeRequest, host: Host) -> list[Observation]:
    """Observations of two readings half a second apart."""
    return document(host.snapshot(NAME, deadline=request.deadline), host, system_snapshot.FORMAT, MAIN)


PROBE = ProbeSpec(
    name="system",
    title=Text("processors, memory, pressure, limits, disks and network", "处理器、内存、压力、限额、磁盘与网络"),
    provides=system_snapshot.FORMAT.provides,
    main=MAIN,
    collect=collect,
    needs=Needs(files=("/proc/stat",)),
    cost=Cost.CHEAP,
    deadline=10.0,
)
