"""``nvidia-smi -q``: the inventory of GPUs and what the driver reports of each."""

from __future__ import annotations

from knowledge.language import Text
from knowledge.observation import Observation
from probes.host import Host
from probes.live import Cost, Needs, ProbeRequest, ProbeSpec
from probes.live._driver import unresponsive
from probes.live._fetch import document
from probes.parse import nvidia_smi_q

ARGV = ("nvidia-smi", "-q")
MAIN = ("node.driver.state", "node.gpu.count", "node.gpu.listed")


def collect(request: ProbeRequest, host: Host) -> list[Observation]:
    """Observations of the report, or of the sentence that the tool prints when the driver does not answer."""
    reply = host.run(ARGV, deadline=request.deadline)
    found = document(reply, host, nvidia_smi_q.FORMAT, MAIN, sums=("node.gpu.listed",))
    return unresponsive(found, reply, host, nvidia_smi_q.FORMAT)


PROBE = ProbeSpec(
    name="nvidia-smi",
    title=Text("GPU report of the NVIDIA driver (nvidia-smi -q)", "NVIDIA 驱动的 GPU 报告（nvidia-smi -q）"),
    provides=nvidia_smi_q.FORMAT.provides,
    main=MAIN,
    collect=collect,
    needs=Needs(binaries=("nvidia-smi",)),
    cost=Cost.SECONDS,  # it opens every GPU in turn, which takes seconds each without persistence mode
    side_effects=(
        Text(
            "wakes GPUs up that are idle while persistence mode is off",
            "在未启用 persistence mode 时会唤醒空闲的 GPU",
        ),
    ),
    deadline=60.0,
    instead_of="nvml",
)
