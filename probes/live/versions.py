"""Versions of the software around the GPUs. Each costs a start of the tool, so they are asked for by name."""

from __future__ import annotations

from knowledge.language import Text
from knowledge.observation import Observation
from probes.host import Host
from probes.live import Cost, Needs, ProbeRequest, ProbeSpec
from probes.live._fetch import document
from probes.parse import tool_versions

# The client of Docker answers alone; the engine only to root and to members of the group docker.
CALLS = (
    (("nv-fabricmanager", "--version"), "node.fabricmanager.version"),
    (("nvidia-imex", "--version"), "node.version.imex"),
    (("dcgmi", "--version"), "node.dcgm.version"),
    (("nvidia-ctk", "--version"), "node.version.container_toolkit"),
    (("docker", "--version"), "node.version.docker"),
    (("docker", "version", "--format", "Docker Engine version {{.Server.Version}}"), "node.version.docker_server"),
    (("containerd", "--version"), "node.version.container_runtime"),
    (("kubelet", "--version"), "node.version.kubelet"),
    (("slurmd", "-V"), "node.version.slurm"),
    (("ofed_info", "-s"), "node.version.rdma_stack"),
)
MAIN = tuple(dict.fromkeys(fact for _, fact in CALLS))


def collect(request: ProbeRequest, host: Host) -> list[Observation]:
    """The version of each tool, or why it is not known: it is not installed, or the engine may not be asked."""
    found: list[Observation] = []
    for argv, fact in CALLS:
        reply = host.run(argv, deadline=min(3.0, request.deadline))
        found += document(reply, host, tool_versions.FORMAT, (fact,))
    return found


PROBE = ProbeSpec(
    name="versions",
    title=Text("versions of the software around the GPUs", "GPU 周边软件的版本"),
    provides=tool_versions.FORMAT.provides,
    main=MAIN,
    collect=collect,
    needs=Needs(binaries=tuple(dict.fromkeys(argv[0] for argv, _ in CALLS)), privileges=("group docker",)),
    cost=Cost.SECONDS,
    deadline=30.0,
    default=False,
)
