"""``xpu-smi``: Intel's GPUs, the health of their parts, their load and their errors."""

from __future__ import annotations

import re
from collections.abc import Iterable

from knowledge.language import Text
from knowledge.observation import Observation, Status
from probes.host import Host
from probes.live import Cost, Needs, ProbeRequest, ProbeSpec
from probes.live._absent import absent
from probes.live._fetch import document
from probes.parse import xpu_smi

BOUND = ("/sys/bus/pci/drivers/xe/0*", "/sys/bus/pci/drivers/i915/0*")
MODULE = "/sys/module/xe/refcnt"
DISCOVERY = ("xpu-smi", "discovery", "-j")
HEALTH = ("xpu-smi", "health", "-l")
MAIN = ("node.gpus.intel",)
MOST = 16  # GPUs of which the errors are asked for, one call each
_INDEX = re.compile(r"intel:(\d{1,3})")


def collect(request: ProbeRequest, host: Host) -> list[Observation]:
    """The list of GPUs, the health of all, and the metrics of each; nothing is started for a processor's own graphics."""
    bound = [path for pattern in BOUND for path in host.files(pattern)]
    if all(path.endswith("0000:00:02.0") for path in bound):
        return absent(MAIN, host, MODULE, xpu_smi.FORMAT, "no card is bound to the drivers xe or i915")
    found = document(host.run(DISCOVERY, deadline=request.deadline), host, xpu_smi.FORMAT, MAIN, sums=MAIN)
    calls = [HEALTH, *(("xpu-smi", "stats", "-d", str(number), "-j") for number in _listed(found)[:MOST])]
    for argv in calls if len(calls) > 1 else ():
        reply = host.run(argv, deadline=request.deadline)
        if reply.whole:
            found += [o for o in document(reply, host, xpu_smi.FORMAT, ()) if o.fact not in MAIN]
        if reply.status is Status.TIMEOUT:
            break  # what hangs once hangs again
    return found


def _listed(found: Iterable[Observation]) -> list[int]:
    told = (str(o.value) for o in found if o.fact == "gpu.vendor_index" and o.status is Status.OK)
    return sorted({int(match[1]) for text in told if (match := _INDEX.fullmatch(text))})


PROBE = ProbeSpec(
    name="xpu-smi",
    title=Text("Intel GPUs (xpu-smi)", "英特尔 GPU（xpu-smi）"),
    provides=xpu_smi.FORMAT.provides,
    main=MAIN,
    collect=collect,
    needs=Needs(binaries=("xpu-smi",), files=("/sys/bus/pci/drivers/xe", "/sys/bus/pci/drivers/i915")),
    cost=Cost.SECONDS,
    deadline=10.0,
)
