"""``dcgmi health -c``: what the health watches of a running DCGM host engine have noticed."""

from __future__ import annotations

from knowledge.language import Text
from knowledge.observation import Observation
from probes.host import Host
from probes.live import Cost, Needs, ProbeRequest, ProbeSpec
from probes.live._fetch import document
from probes.parse import dcgmi_health

ARGV = ("dcgmi", "health", "-c", "-j")
MAIN = ("node.dcgm.health",)


def collect(request: ProbeRequest, host: Host) -> list[Observation]:
    """Observations of the report, or of the sentence that says why there is none. Watches are not switched on here."""
    reply = host.run(ARGV, deadline=request.deadline)
    return document(reply, host, dcgmi_health.FORMAT, MAIN, sums=MAIN)


PROBE = ProbeSpec(
    name="dcgm-health",
    title=Text("health watches of DCGM (dcgmi health -c)", "DCGM 健康监测（dcgmi health -c）"),
    provides=dcgmi_health.FORMAT.provides,
    main=MAIN,
    collect=collect,
    needs=Needs(binaries=("dcgmi",)),
    cost=Cost.CHEAP,
    deadline=5.0,
)
