"""Versions of the software around the GPUs. Each costs a start of the tool, so they are asked for by name."""

from __future__ import annotations

from knowledge.language import Text
from knowledge.observation import Observation, Status
from probes.host import Host
from probes.live import Cost, Needs, ProbeRequest, ProbeSpec
from probes.live._fetch import document
from probes.parse import crictl_images, tool_versions

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
# The runtime's socket answers to root alone. What runs comes first; where it names its image by a digest, what lies there.
PLUGIN = (
    ("crictl", "ps", "--name", "device-plugin", "-o", "json"),
    ("crictl", "images", "-o", "json", "nvcr.io/nvidia/k8s-device-plugin"),
)
MAIN = (*dict.fromkeys(fact for _, fact in CALLS), crictl_images.FACT)


def collect(request: ProbeRequest, host: Host) -> list[Observation]:
    """The version of each tool, or why it is not known: it is not installed, or the engine may not be asked."""
    found: list[Observation] = []
    for argv, fact in CALLS:
        reply = host.run(argv, deadline=min(3.0, request.deadline))
        found += document(reply, host, tool_versions.FORMAT, (fact,))
    return found + _device_plugin(request, host)


def _device_plugin(request: ProbeRequest, host: Host) -> list[Observation]:
    """The release of the device plugin that runs; where the runtime does not tell it, the only one whose image lies here."""
    told: list[Observation] = []
    for argv in PLUGIN:
        reply = host.run(argv, deadline=min(3.0, request.deadline))
        told = document(reply, host, crictl_images.FORMAT, (crictl_images.FACT,))
        if not reply.whole or told[0].status is not Status.UNSUPPORTED:
            break
    return told


PROBE = ProbeSpec(
    name="versions",
    title=Text("versions of the software around the GPUs", "GPU 周边软件的版本"),
    provides=(*tool_versions.FORMAT.provides, *crictl_images.FORMAT.provides),
    main=MAIN,
    collect=collect,
    needs=Needs(
        binaries=(*dict.fromkeys(argv[0] for argv, _ in CALLS), "crictl"),
        privileges=("group docker", "root for crictl"),
    ),
    cost=Cost.SECONDS,
    deadline=36.0,
    default=False,
)
