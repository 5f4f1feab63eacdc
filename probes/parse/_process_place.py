"""Where a process runs, from its cgroup paths: container, pod, Slurm job and step.

The paths are what the runtimes and drivers (systemd, cgroupfs; cgroup v1 and v2) write; each pattern has a
verbatim sample. A container has its first twelve digits as name, as the tools show it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from knowledge.record import dataclass

SHORT = 12  # digits of a container's id that are shown and that name it on a node

_HEX = r"[0-9a-f]{64}"
# docker-4c2f...ef.scope   cri-containerd-4c2f...ef.scope   crio-4c2f...ef.scope   libpod-4c2f...ef.scope   nerdctl-4c2f...ef.scope
# kubelet-kubepods-besteffort-pod1b2c.slice:cri-containerd:4c2f...ef (containerd without the systemd driver under cgroup v1)
_SCOPE = re.compile(rf"(?:^|:)(docker|cri-containerd|crio|libpod|nerdctl)[-:]({_HEX})(?:\.scope)?$")
_BARE = re.compile(
    rf"({_HEX})"
)  # /docker/4c2f...ef   /kubepods/burstable/pod1b2c.../4c2f...ef   /libpod_parent/4c2f...ef
# pod0a6f1c2e-7c1b-4b0e-9f42-0c5f0e1f2a3b   kubepods-burstable-pod0a6f1c2e_7c1b_4b0e_9f42_0c5f0e1f2a3b.slice
# pod6f2b5c1f0e9d4b7a8c3d2e1f0a9b8c7d: a static pod, named by the hash of its file
_POD = re.compile(
    r"(?:^|-)pod([0-9a-f]{8}[-_][0-9a-f]{4}[-_][0-9a-f]{4}[-_][0-9a-f]{4}[-_][0-9a-f]{12}|[0-9a-f]{32})(?:\.slice(?::.*)?)?$"
)
_LXC = re.compile(r"/lxc(?:\.payload)?[./]([A-Za-z0-9_.-]{1,64})")  # /lxc.payload.web1/...   /lxc/web1/...
# /slurm/uid_1000/job_4711/step_0/task_3   /system.slice/gpu01_slurmstepd.scope/job_4711/step_batch/user/task_0
_SLURM = re.compile(r"(?:/slurm\S{0,80}?|slurmstepd\.scope)/job_(\d{1,10})(?:/step_(\d{1,10}|[a-z]{1,16}))?(?:/|$)")
_RUNTIMES = {
    "docker": "docker",
    "cri-containerd": "containerd",
    "crio": "cri-o",
    "libpod": "podman",
    "nerdctl": "containerd",
}


@dataclass(frozen=True, slots=True)
class Place:
    """Where a process runs; empty where its cgroup does not say."""

    container: str = ""  # short id, or the name of a system container
    runtime: str = ""  # docker, containerd, cri-o, podman, lxc, kubernetes (one of its runtimes), other
    pod: str = ""  # uid
    job: str = ""  # of Slurm
    step: str = ""  # 0, batch, extern, interactive
    line: str = ""  # of the cgroup file


def place_of(cgroup: Iterable[str]) -> Place:
    """The innermost place that the lines of /proc/PID/cgroup tell."""
    best = Place()
    for line in cgroup:
        found = _of_path(line.split(":", 2)[2] if line.count(":") >= 2 else line, line)
        if _weight(found) > _weight(best):
            best = found
    return best


def _weight(place: Place) -> tuple[bool, ...]:
    return (bool(place.container), bool(place.pod), bool(place.job), bool(place.step))


def _of_path(path: str, line: str) -> Place:
    container = runtime = pod = ""
    above = ""
    for part in path.split("/"):
        if found := _POD.search(part.partition(":")[0]):
            pod = found[1].replace("_", "-")
        if found := _SCOPE.search(part):
            container, runtime = found[2], _RUNTIMES[found[1]]
        elif _BARE.fullmatch(part):
            container = part
            runtime = (
                "docker"
                if above == "docker"
                else "podman"
                if above.startswith("libpod")
                else "kubernetes"
                if pod
                else "other"
            )
        above = part
    if not container and (found := _LXC.search(path)):
        return Place(found[1], "lxc", pod, "", "", line)
    slurm = _SLURM.search(path)
    job, step = (slurm[1], slurm[2] or "") if slurm else ("", "")
    return Place(container[:SHORT], runtime, pod, job, step, line)
