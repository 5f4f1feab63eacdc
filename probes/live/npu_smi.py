"""``npu-smi info``: Ascend processors, their health, load and memory."""

from __future__ import annotations

from knowledge.language import Text
from knowledge.observation import Observation
from probes.host import Host
from probes.live import Cost, Needs, ProbeRequest, ProbeSpec
from probes.live._absent import absent
from probes.live._fetch import document
from probes.parse import npu_smi

THERE = "/dev/davinci*"
MODULE = "/sys/module/drv_davinci_intf_host/refcnt"
ARGV = ("npu-smi", "info")
MAIN = ("node.gpus.huawei",)


def collect(request: ProbeRequest, host: Host) -> list[Observation]:
    """Observations of the table; without a device of the driver the tool is not started."""
    if not host.files(THERE):
        return absent(MAIN, host, MODULE, npu_smi.FORMAT, "there is no device file of an Ascend processor")
    return document(host.run(ARGV, deadline=request.deadline), host, npu_smi.FORMAT, MAIN, sums=MAIN)


PROBE = ProbeSpec(
    name="npu-smi",
    title=Text("Ascend NPUs (npu-smi info)", "昇腾 NPU（npu-smi info）"),
    provides=npu_smi.FORMAT.provides,
    main=MAIN,
    collect=collect,
    needs=Needs(binaries=("npu-smi",), files=("/dev/davinci_manager",), privileges=("a user of the group HwHiAiUser",)),
    cost=Cost.SECONDS,
    deadline=10.0,
)
