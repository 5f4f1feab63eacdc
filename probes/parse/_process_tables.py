"""What the parser of processes provides, and which GPU a device file stands for."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from knowledge.identity import is_pci, normalise_pci
from knowledge.observation import Status, gpu
from probes.parse._host_snapshot import Snapshot, gap, mapping
from probes.parse._smi_values import Reading

MAIN = ("node.processes", "node.processes.on_gpu")
_OF_NODE = ("node.processes.view", "node.processes.zombie")
_OF_PROCESS = (
    "process.comm", "process.command", "process.user", "process.owner", "process.parent", "process.state", "process.age",
    "process.cpu", "process.memory.resident", "process.threads", "process.switches", "process.switches.involuntary",
    "process.io.read", "process.io.write", "process.faults.major", "process.runqueue.wait", "process.cpus_allowed",
    "process.cpus_allowed.count", "process.memory_nodes", "process.limit.memlock", "process.limit.files",
    "process.oom_score_adj", "process.executable_deleted", "process.blocked_for", "process.wait_channel",
    "process.blocked_in", "process.lock_stuck", "process.env", "process.contained_by", "process.computes", "process.adopted",
    "process.in_container", "process.in_job", "process.opens_gpu",
)  # fmt: skip
_OF_OTHERS = (
    "container.runtime", "container.in_pod", "pod.name", "gpu.minor", "job.launcher", "job.name", "job.user", "job.ranks",
    "job.ranks.here", "job.ranks.expected_here", "job.ranks.missing_here", "job.spans_nodes", "job.env",
    "job.env.differing", "job.cpus", "job.cpus_per_rank", "job.omp_threads", "job.omp_threads_per_cpu",
    "job.limit.memlock", "rank.is_process", "rank.on_node",
)  # fmt: skip
PROVIDES = tuple(sorted({*MAIN, *_OF_NODE, *_OF_PROCESS, *_OF_OTHERS}))
_MINOR = re.compile(r"Device Minor:\s{0,20}(\d{1,3})$")  # Device Minor: 	 0


def tell_minors(emit: Snapshot, document: Mapping[str, Any]) -> dict[int, str]:
    """`gpu.minor` of each GPU that the driver lists; and the address by minor number."""
    numbers = mapping(document.get("device_numbers"))
    addresses: dict[int, str] = {}
    if why := gap(numbers):
        emit.add("gpu.minor", emit.node, why, "/proc/driver/nvidia/gpus")
        return addresses
    for address, line in sorted(mapping(numbers.get("nvidia")).items()):
        name = normalise_pci(address)
        if not is_pci(name):
            continue
        call = f"/proc/driver/nvidia/gpus/{address}/information"
        found = _MINOR.search(line.strip()) if isinstance(line, str) else None
        failed = gap(mapping(line)) or Reading(None, Status.FAILED, "no line that says Device Minor")
        reading = int(found[1]) if found else failed
        emit.add("gpu.minor", gpu(name, emit.host), reading, call, line if isinstance(line, str) else "")
        if found:
            addresses[int(found[1])] = name
    return addresses


def render_nodes(document: Mapping[str, Any]) -> dict[str, str]:
    """PCI address by name of a DRM render node."""
    nodes = mapping(mapping(document.get("device_numbers")).get("render"))
    named = {node: normalise_pci(str(link).rpartition("/")[2]) for node, link in nodes.items()}
    return {node: name for node, name in sorted(named.items()) if is_pci(name)}
