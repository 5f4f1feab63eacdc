"""The PCI bus from sysfs, and what the NVIDIA driver says of its GPUs in /proc and /dev."""

from __future__ import annotations

from knowledge.language import Text
from knowledge.observation import Observation
from probes.host import Host
from probes.live import Cost, Needs, ProbeRequest, ProbeSpec
from probes.live._fetch import document
from probes.parse import pci_snapshot

MAIN = ("node.pci.gpu_count", "node.pci.gone", "node.driver.module_loaded")


def collect(request: ProbeRequest, host: Host) -> list[Observation]:
    """Observations of the functions that were read, and of those that did not answer."""
    reply = host.snapshot("pci", deadline=request.deadline)
    return document(reply, host, pci_snapshot.FORMAT, MAIN)


PROBE = ProbeSpec(
    name="pci",
    title=Text("PCI devices, links, errors and drivers (sysfs)", "PCI 设备、链路、错误与驱动（sysfs）"),
    provides=pci_snapshot.FORMAT.provides,
    main=MAIN,
    collect=collect,
    # the registers behind the first 64 bytes of a configuration space (AER status, ACS) are for CAP_SYS_ADMIN only
    needs=Needs(files=("/sys/bus/pci/devices",), privileges=("root",)),
    cost=Cost.FREE,
    deadline=10.0,
)
