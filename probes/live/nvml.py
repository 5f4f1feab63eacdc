"""NVML: the driver and every GPU, asked call by call in a child process that may hang."""

from __future__ import annotations

from dataclasses import replace

from knowledge.language import Text
from knowledge.observation import Observation, Status
from probes.host import Host
from probes.live import Cost, Needs, ProbeRequest, ProbeSpec
from probes.live._driver import unresponsive
from probes.live._fetch import document
from probes.parse import nvml_snapshot

MAIN = ("node.driver.state", "node.gpu.count", "node.gpu.listed")


def collect(request: ProbeRequest, host: Host) -> list[Observation]:
    """Observations of the snapshot. Option ``quick``: only what changes from one moment to the next."""
    args = ("--quick",) if request.options.get("quick") else ()
    reply = host.snapshot("nvml", *args, deadline=request.deadline)
    if reply.status is Status.TIMEOUT and not reply.cut and nvml_snapshot.complete(reply.text):
        # It printed everything, and which call hangs, but a thread of it sleeps in the driver and cannot end.
        reply = replace(reply, status=Status.OK, detail="")
    found = document(reply, host, nvml_snapshot.FORMAT, MAIN, proof=("node.driver.state",))
    return unresponsive(found, reply, host, nvml_snapshot.FORMAT)


PROBE = ProbeSpec(
    name="nvml",
    title=Text("NVIDIA driver and GPUs (NVML)", "NVIDIA 驱动与 GPU（NVML）"),
    provides=nvml_snapshot.FORMAT.provides,
    main=MAIN,
    collect=collect,
    needs=Needs(files=("/dev/nvidiactl",)),
    cost=Cost.CHEAP,
    side_effects=(
        Text(
            "wakes GPUs up that are idle while persistence mode is off",
            "在未启用 persistence mode 时会唤醒空闲的 GPU",
        ),
    ),
    deadline=25.0,  # opening 8 GPUs without persistence mode takes a second or two each
)
