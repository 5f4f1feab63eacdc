"""``amd-smi static`` and ``amd-smi metric``: AMD's GPUs through ROCm's own tool.

Not run by default: the driver's files (probe ``amdgpu``) tell the same counters in a fraction of the time. What the
tool has besides are the reasons of throttling. The states of xGMI are not asked for: asking clears them.
"""

from __future__ import annotations

from knowledge.language import Text
from knowledge.observation import Observation, Status
from probes.host import Host
from probes.live import Cost, Needs, ProbeRequest, ProbeSpec
from probes.live._absent import absent
from probes.live._fetch import document
from probes.parse import amd_smi

BOUND = "/sys/bus/pci/drivers/amdgpu/0*"
MODULE = "/sys/module/amdgpu/refcnt"
STATIC = ("amd-smi", "static", "--json")
METRIC = ("amd-smi", "metric", "--usage", "--power", "--temperature", "--ecc", "--mem-usage", "--json")
THROTTLE = ("amd-smi", "metric", "--throttle", "--json")
MAIN = ("node.gpus.amd",)


def collect(request: ProbeRequest, host: Host) -> list[Observation]:
    """Observations of the documents; those behind the first are tied to addresses by it."""
    if not host.files(BOUND):
        return absent(MAIN, host, MODULE, amd_smi.FORMAT, "no device is bound to the driver amdgpu")
    found = document(host.run(STATIC, deadline=request.deadline), host, amd_smi.FORMAT, MAIN, sums=MAIN)
    if not any(o.fact in MAIN and o.status is Status.OK for o in found):
        return found
    for argv in (METRIC, THROTTLE):
        reply = host.run(argv, deadline=request.deadline)
        if reply.whole:  # versions before 6.3 do not know --throttle
            found += [o for o in document(reply, host, amd_smi.FORMAT, ()) if o.fact not in MAIN]
    return found


PROBE = ProbeSpec(
    name="amd-smi",
    title=Text("AMD GPUs (amd-smi)", "AMD GPU（amd-smi）"),
    provides=amd_smi.FORMAT.provides,
    main=MAIN,
    collect=collect,
    needs=Needs(binaries=("amd-smi",), files=("/sys/bus/pci/drivers/amdgpu",)),
    cost=Cost.SECONDS,
    deadline=20.0,
    default=False,
)
