"""The services that GPU nodes need, the clock, and whether the fabric manager fits the driver."""

from __future__ import annotations

from knowledge.language import Text
from knowledge.observation import Observation
from probes.host import Host
from probes.live import Cost, Needs, ProbeRequest, ProbeSpec
from probes.live._fetch import document
from probes.parse import services_snapshot, tool_versions

FABRIC_MANAGER = ("nv-fabricmanager", "--version")
FABRIC_STATE, FABRIC_VERSION = "node.service.fabric_manager.state", "node.fabricmanager.version"
MAIN = (*services_snapshot.STATES, "node.clock.synchronised")


def collect(request: ProbeRequest, host: Host) -> list[Observation]:
    """Observations of the snapshot; where the fabric manager is installed, also its version (some 10 ms)."""
    reply = host.snapshot("services", deadline=request.deadline)
    found = document(reply, host, services_snapshot.FORMAT, MAIN)
    if _has_fabric_manager(found):
        version = host.run(FABRIC_MANAGER, deadline=min(2.0, request.deadline))
        found += document(version, host, tool_versions.FORMAT, (FABRIC_VERSION,))
    return found


def _has_fabric_manager(found: list[Observation]) -> bool:
    state = next((o.value for o in found if o.fact == FABRIC_STATE), None)
    driver = any(o.fact == "node.driver.version" and o.status.answered for o in found)
    return state in ("running", "starting", "restarting", "stopped", "failed") or (state == "not_running" and driver)


PROBE = ProbeSpec(
    name="services",
    title=Text(
        "services of a GPU node: fabric manager, persistence, DCGM, containers, job agents, clock",
        "GPU 节点的服务：fabric manager、持久化、DCGM、容器、作业代理与时钟",
    ),
    provides=(*services_snapshot.FORMAT.provides, FABRIC_VERSION),
    main=MAIN,
    collect=collect,
    needs=Needs(binaries=("systemctl",), files=("/proc",)),
    cost=Cost.CHEAP,
    deadline=4.0,
)
