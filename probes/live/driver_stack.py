"""The driver stack: what is loaded, what lies on disk for the next start, and what running jobs have mapped."""

from __future__ import annotations

from knowledge.language import Text
from knowledge.observation import Observation
from probes.host import Host
from probes.live import Cost, Needs, ProbeRequest, ProbeSpec
from probes.live._fetch import document
from probes.parse import stack_snapshot

MAIN = ("node.driver.installed_version", "node.driver.loaded_version", "node.kernel.newest")


def collect(request: ProbeRequest, host: Host) -> list[Observation]:
    """Observations of the snapshot."""
    reply = host.snapshot("stack", deadline=request.deadline)
    return document(reply, host, stack_snapshot.FORMAT, MAIN)


PROBE = ProbeSpec(
    name="driver-stack",
    title=Text(
        "versions of the NVIDIA driver and the software around it",
        "NVIDIA 驱动与 GPU 周边软件的版本",
    ),
    provides=stack_snapshot.FORMAT.provides,
    main=MAIN,
    collect=collect,
    needs=Needs(files=("/lib/modules", "/proc"), privileges=("root for processes of others",)),
    cost=Cost.CHEAP,
    deadline=4.0,
)
