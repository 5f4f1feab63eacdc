"""``hl-smi``: Gaudi accelerators, their uncorrected errors, load and memory."""

from __future__ import annotations

from knowledge.language import Text
from probes.live import Cost, Needs, ProbeSpec
from probes.live._tables import Driver, printed
from probes.parse import hl_smi

THERE = "/sys/bus/pci/drivers/habanalabs/0*"
MODULE = "/sys/module/habanalabs/refcnt"
ARGV = ("hl-smi",)
MAIN = ("node.gpus.habana",)
# without a device of the driver the tool is not started
DRIVER = Driver(THERE, MODULE, "no device is bound to the driver habanalabs")

PROBE = ProbeSpec(
    name="hl-smi",
    title=Text("Gaudi accelerators (hl-smi)", "Gaudi 加速器（hl-smi）"),
    provides=hl_smi.FORMAT.provides,
    main=MAIN,
    collect=printed(hl_smi.FORMAT, ARGV, MAIN, DRIVER),
    needs=Needs(binaries=("hl-smi",), files=("/sys/bus/pci/drivers/habanalabs",)),
    cost=Cost.SECONDS,
    deadline=10.0,
)
