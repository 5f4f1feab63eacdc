"""How firmware and kernel set the machine up, and what the kernel counts of its hardware: errors, sensors, drives, arrays."""

from __future__ import annotations

from knowledge.language import Text
from knowledge.observation import Observation
from probes.host import Host
from probes.live import Cost, Needs, ProbeRequest, ProbeSpec
from probes.live._fetch import document
from probes.parse import platform_snapshot

NAME = "platform"
MAIN = platform_snapshot.MAIN


def collect(request: ProbeRequest, host: Host) -> list[Observation]:
    """Observations of the snapshot. A sensor that does not answer hangs the collector, never this process."""
    return document(host.snapshot(NAME, deadline=request.deadline), host, platform_snapshot.FORMAT, MAIN)


PROBE = ProbeSpec(
    name=NAME,
    title=Text(
        "firmware settings, memory errors, board sensors, drives and arrays",
        "固件设置、内存错误、主板传感器、硬盘与阵列",
    ),
    provides=platform_snapshot.FORMAT.provides,
    main=MAIN,
    collect=collect,
    needs=Needs(files=("/sys/devices/system/cpu",)),
    cost=Cost.CHEAP,
    deadline=4.0,
)
