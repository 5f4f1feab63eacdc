"""``nvidia-smi topo -m``: how GPUs and network adapters reach each other.

Not a default: the tool opens every GPU, and PCI addresses and NUMA nodes from sysfs tell most of it for nothing.
"""

from __future__ import annotations

from knowledge.language import Text
from knowledge.observation import Observation
from probes.host import Host
from probes.live import Cost, Needs, ProbeRequest, ProbeSpec
from probes.live._fetch import document
from probes.parse import nvidia_smi_topo

ARGV = ("nvidia-smi", "topo", "-m")
MAIN = ("gpu.nearest_nic", "gpu.peer.path", "gpu.numa")


def collect(request: ProbeRequest, host: Host) -> list[Observation]:
    """Observations of the matrix; a node with one GPU has no peers, and one without adapters no nearest one."""
    reply = host.run(ARGV, deadline=request.deadline)
    proof = ("gpu.cpu_affinity", "gpu.index")
    return document(reply, host, nvidia_smi_topo.FORMAT, MAIN, sums=("node.gpu.listed",), proof=proof)


PROBE = ProbeSpec(
    name="nvidia-smi-topo",
    title=Text("topology of GPUs and adapters (nvidia-smi topo -m)", "GPU 与网卡拓扑（nvidia-smi topo -m）"),
    provides=nvidia_smi_topo.FORMAT.provides,
    main=MAIN,
    collect=collect,
    needs=Needs(binaries=("nvidia-smi",)),
    cost=Cost.SECONDS,
    side_effects=(
        Text(
            "wakes GPUs up that are idle while persistence mode is off", "在未启用 persistence mode 时会唤醒空闲的 GPU"
        ),
    ),
    deadline=30.0,
    default=False,
)
