"""RDMA adapters from sysfs: ports, counters in two readings, and the interfaces behind them."""

from __future__ import annotations

from knowledge.language import Text
from knowledge.observation import Observation
from probes.host import Host
from probes.live import Cost, Needs, ProbeRequest, ProbeSpec
from probes.live._fetch import document
from probes.parse import rdma_snapshot

MAIN = ("node.ib.ports.total", "node.ib.ports.active", "node.ib.rails_down")


def collect(request: ProbeRequest, host: Host) -> list[Observation]:
    """Observations of the ports that were read, and of the adapters that did not answer."""
    reply = host.snapshot("rdma", deadline=request.deadline)
    return document(reply, host, rdma_snapshot.FORMAT, MAIN)


PROBE = ProbeSpec(
    name="rdma",
    title=Text("RDMA ports and their counters (sysfs)", "RDMA 端口及其计数器（sysfs）"),
    provides=rdma_snapshot.FORMAT.provides,
    main=MAIN,
    collect=collect,
    needs=Needs(files=("/sys/class/infiniband",)),
    cost=Cost.CHEAP,
    deadline=10.0,
)
