"""``npu-smi info``: Ascend processors, their health, load and memory."""

from __future__ import annotations

from knowledge.language import Text
from probes.live import Cost, Needs, ProbeSpec
from probes.live._tables import Driver, printed
from probes.parse import npu_smi

THERE = "/dev/davinci*"
MODULE = "/sys/module/drv_davinci_intf_host/refcnt"
ARGV = ("npu-smi", "info")
MAIN = ("node.gpus.huawei",)
# without a device of the driver the tool is not started
DRIVER = Driver(THERE, MODULE, "there is no device file of an Ascend processor")

PROBE = ProbeSpec(
    name="npu-smi",
    title=Text("Ascend NPUs (npu-smi info)", "昇腾 NPU（npu-smi info）"),
    provides=npu_smi.FORMAT.provides,
    main=MAIN,
    collect=printed(npu_smi.FORMAT, ARGV, MAIN, DRIVER),
    needs=Needs(binaries=("npu-smi",), files=("/dev/davinci_manager",), privileges=("a user of the group HwHiAiUser",)),
    cost=Cost.SECONDS,
    deadline=10.0,
)
