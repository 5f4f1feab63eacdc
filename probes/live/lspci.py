"""``lspci -vvv``: GPUs, NVSwitches and adapters on the bus, and the state of their links."""

from __future__ import annotations

from knowledge.language import Text
from knowledge.observation import Observation
from probes.host import Host
from probes.live import Cost, Needs, ProbeRequest, ProbeSpec
from probes.live._fetch import document
from probes.parse import lspci

ARGV = ("lspci", "-vvv")
MAIN = ("node.pci.gpu_count", "node.pci.gone")


def collect(request: ProbeRequest, host: Host) -> list[Observation]:
    """Observations of the devices that were printed; counts only when all of them were."""
    sums = tuple(fact for fact in lspci.FORMAT.provides if fact.startswith("node.pci."))
    return document(host.run(ARGV, deadline=request.deadline), host, lspci.FORMAT, MAIN, sums=sums)


PROBE = ProbeSpec(
    name="lspci",
    title=Text("PCI devices and links (lspci -vvv)", "PCI 设备与链路（lspci -vvv）"),
    provides=lspci.FORMAT.provides,
    main=MAIN,
    collect=collect,
    needs=Needs(binaries=("lspci",), privileges=("root",)),  # capabilities are hidden from other users
    cost=Cost.CHEAP,
    # sysfs tells the same and more: error counters, power, drivers and links to every user, and to root the ACS and
    # AER registers from the same configuration space that lspci reads. What lspci has besides is names of models.
    instead_of="pci",
)
