"""``hl-smi``: Gaudi accelerators, their uncorrected errors, load and memory."""

from __future__ import annotations

from knowledge.language import Text
from knowledge.observation import Observation
from probes.host import Host
from probes.live import Cost, Needs, ProbeRequest, ProbeSpec
from probes.live._absent import absent
from probes.live._fetch import document
from probes.parse import hl_smi

THERE = "/sys/bus/pci/drivers/habanalabs/0*"
MODULE = "/sys/module/habanalabs/refcnt"
ARGV = ("hl-smi",)
MAIN = ("node.gpus.habana",)


def collect(request: ProbeRequest, host: Host) -> list[Observation]:
    """Observations of the table; without a device of the driver the tool is not started."""
    if not host.files(THERE):
        return absent(MAIN, host, MODULE, hl_smi.FORMAT, "no device is bound to the driver habanalabs")
    return document(host.run(ARGV, deadline=request.deadline), host, hl_smi.FORMAT, MAIN, sums=MAIN)


PROBE = ProbeSpec(
    name="hl-smi",
    title=Text("Gaudi accelerators (hl-smi)", "Gaudi 加速器（hl-smi）"),
    provides=hl_smi.FORMAT.provides,
    main=MAIN,
    collect=collect,
    needs=Needs(binaries=("hl-smi",), files=("/sys/bus/pci/drivers/habanalabs",)),
    cost=Cost.SECONDS,
    deadline=10.0,
)
