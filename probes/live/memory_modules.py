"""Slots and modules of the host's memory, from the firmware's tables (dmidecode). They change when somebody opens the machine."""

from __future__ import annotations

from knowledge.language import Text
from knowledge.observation import Observation
from probes.host import Host
from probes.live import Cost, Needs, ProbeRequest, ProbeSpec
from probes.live._absent import absent
from probes.live._fetch import document
from probes.parse import dmidecode

TABLES = "/sys/firmware/dmi/tables/*"
ARGV = ("dmidecode", "-t", "memory")
MAIN = dmidecode.MAIN


def collect(request: ProbeRequest, host: Host) -> list[Observation]:
    """Observations of the tables; machines without them are not asked."""
    if not host.files(TABLES):
        why = "the firmware gives no DMI tables"
        return absent(MAIN, host, "/sys/firmware/dmi/tables/DMI", dmidecode.FORMAT, why)
    reply = host.run(ARGV, deadline=min(5.0, request.deadline))
    return document(reply, host, dmidecode.FORMAT, MAIN, proof=MAIN)


PROBE = ProbeSpec(
    name="memory-modules",
    title=Text("memory modules, channels and speeds (dmidecode)", "内存条、通道与速率（dmidecode）"),
    provides=dmidecode.FORMAT.provides,
    main=MAIN,
    collect=collect,
    needs=Needs(binaries=("dmidecode",), privileges=("root",)),
    cost=Cost.CHEAP,
    deadline=5.0,
    default=False,
)
