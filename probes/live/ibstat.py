"""``ibstat``: state and rate of each RDMA port."""

from __future__ import annotations

from knowledge.language import Text
from knowledge.observation import Observation
from probes.host import Host
from probes.live import Cost, Needs, ProbeRequest, ProbeSpec
from probes.live._fetch import document
from probes.parse import ibstat

ARGV = ("ibstat",)
MAIN = ("node.ib.ports.total", "node.ib.ports.active", "node.ib.rails_down")


def collect(request: ProbeRequest, host: Host) -> list[Observation]:
    """Observations of the ports that were printed; counts only when all of them were."""
    sums = tuple(fact for fact in ibstat.FORMAT.provides if fact.startswith("node.ib."))
    return document(host.run(ARGV, deadline=request.deadline), host, ibstat.FORMAT, MAIN, sums=sums)


PROBE = ProbeSpec(
    name="ibstat",
    title=Text("RDMA ports (ibstat)", "RDMA 端口（ibstat）"),
    provides=ibstat.FORMAT.provides,
    main=MAIN,
    collect=collect,
    needs=Needs(binaries=("ibstat",)),
    cost=Cost.CHEAP,
    instead_of="rdma",  # the same files of sysfs, without counters
)
