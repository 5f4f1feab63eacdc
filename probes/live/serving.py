"""Inference servers that run here: what their metrics pages tell, read over loopback."""

from __future__ import annotations

from knowledge.language import Text
from knowledge.observation import Observation, Status
from probes.host import Host
from probes.live import Cost, Needs, ProbeRequest, ProbeSpec
from probes.live._fetch import document, missing
from probes.parse import serving_snapshot

MAIN = ("node.serving.servers",)
# Without one of these nothing here computes: processes are not looked through for servers.
DEVICES = (
    "/dev/nvidia[0-9]*",
    "/dev/kfd",
    "/dev/dri/renderD*",
    "/dev/davinci[0-9]*",
    "/dev/accel/accel*",
    "/dev/mthreads*",
)
DRIVER = "/proc/driver/nvidia/version"
NONE = "no accelerator is seen here, so no inference server was looked for"


def collect(request: ProbeRequest, host: Host) -> list[Observation]:
    """Observations of the snapshot. Listings are asked for one after the other until one shows a device."""
    if not any(host.files(pattern) for pattern in DEVICES):
        driver = host.read(DRIVER)  # tells a machine without devices from a recording without listings
        if driver.status is not Status.OK:
            why = NONE if driver.status is Status.UNSUPPORTED else ""
            return missing(MAIN, host, driver, serving_snapshot.FORMAT, why=why)
    reply = host.snapshot("serving", deadline=request.deadline)
    return document(reply, host, serving_snapshot.FORMAT, MAIN)


PROBE = ProbeSpec(
    name="serving",
    title=Text(
        "inference servers: queue, batch, KV cache, latency (vLLM, SGLang, Triton, TGI)",
        "推理服务：队列、批次、KV 缓存、延迟（vLLM、SGLang、Triton、TGI）",
    ),
    provides=serving_snapshot.FORMAT.provides,
    main=MAIN,
    collect=collect,
    needs=Needs(
        files=("/dev/nvidia0", "/dev/kfd", "/dev/dri"),
        privileges=("root for servers of other users and in containers",),
    ),
    cost=Cost.CHEAP,
    side_effects=(
        Text(
            "asks each server once more for its metrics page, as Prometheus does",
            "像 Prometheus 一样向每个服务读取指标页",
        ),
    ),
    deadline=4.0,
)
