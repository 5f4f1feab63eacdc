"""GPUs of AMD as their driver shows them in sysfs: sensors, error counters, bad memory pages. No tool of ROCm is needed."""

from __future__ import annotations

from knowledge.language import Text
from knowledge.observation import Observation
from probes.host import Host
from probes.live import Cost, Needs, ProbeRequest, ProbeSpec
from probes.live._absent import absent
from probes.live._fetch import document
from probes.parse import amdgpu_snapshot

BOUND = "/sys/bus/pci/drivers/amdgpu/0*"
MODULE = "/sys/module/amdgpu/refcnt"
MAIN = ("node.gpus.amd",)


def collect(request: ProbeRequest, host: Host) -> list[Observation]:
    """Observations of the snapshot; without a device of the driver none is taken."""
    if not host.files(BOUND):
        return absent(MAIN, host, MODULE, amdgpu_snapshot.FORMAT, "no device is bound to the driver amdgpu")
    reply = host.snapshot("amdgpu", deadline=request.deadline)
    return document(reply, host, amdgpu_snapshot.FORMAT, MAIN)


PROBE = ProbeSpec(
    name="amdgpu",
    title=Text("AMD GPUs (amdgpu driver, sysfs)", "AMD GPU（amdgpu 驱动，sysfs）"),
    provides=amdgpu_snapshot.FORMAT.provides,
    main=MAIN,
    collect=collect,
    needs=Needs(files=("/sys/bus/pci/drivers/amdgpu",)),
    cost=Cost.CHEAP,
    deadline=5.0,
)
