"""The log of NVIDIA Fabric Manager: SXIDs and errors of NVSwitches."""

from __future__ import annotations

from knowledge.language import Text
from knowledge.observation import Observation
from probes.host import Host
from probes.live import Cost, Needs, ProbeRequest, ProbeSpec
from probes.live._fetch import log, missing
from probes.parse import fabricmanager_log

PATH = "/var/log/fabricmanager.log"
MAIN = ("log.fabricmanager.readable",)


def collect(request: ProbeRequest, host: Host) -> list[Observation]:  # noqa: ARG001 - a file needs no deadline
    """Observations of the log, or why it cannot be read. Nodes without NVSwitches have none."""
    reply = host.read(PATH)
    if found := log(reply, host, fabricmanager_log.FORMAT):
        return found
    why = f"{PATH}: is empty" if reply.whole else ""
    return missing(MAIN, host, reply, fabricmanager_log.FORMAT, why=why)


PROBE = ProbeSpec(
    name="fabric-manager-log",
    title=Text("Fabric Manager log", "Fabric Manager 日志"),
    provides=fabricmanager_log.FORMAT.provides,
    main=MAIN,
    collect=collect,
    needs=Needs(privileges=("root",), files=(PATH,)),
    cost=Cost.FREE,
)
