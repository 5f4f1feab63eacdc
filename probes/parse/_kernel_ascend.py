"""What Huawei's Ascend driver says at level ERROR.

Source of the lines: the driver's own log macros (``drv_pr_*``) and logs in public issues. Most such lines are a request
that the driver refused; which module says it, and how often, is what can be told without the vendor.
"""

from __future__ import annotations

from knowledge.observation import Scalar
from probes.parse._kernel_common import Reading, body, from_kernel, number, rx, within
from probes.parse._kernel_shape import Entry
from probes.parse._logtime import SECOND

EVENTS = ("ascend_driver_error",)
BURSTS = dict.fromkeys(EVENTS, 10 * SECOND)  # `LogFormat.bursts`
TRIGGERS = (r"\[ascend\] \[",)
HINTS = ("[ascend]",)
# [ascend] [devmm] [ERROR] [devmm_pin_user_pages_fast 124] <VLLM::Worker_TP:670605,670605> Get_user_pages_fast fail. (va=...)
# [ascend] [devmm] [ERROR] _devmm_ipc_node_open: Wlist verify fail
_ERROR = r"\[ascend\] \[(\w{1,32})\] \[ERROR\] (?:\[(\w{1,80}) \d{1,6}\] )?(?:<([^>]{0,40}?):(\d{1,10})(?:,\d{1,10})?> )?(.{1,400})"


def named(entry: Entry) -> bool:
    """True for a line of the driver."""
    return "[ascend] [" in entry.message


def read(reading: Reading) -> None:
    """Errors; the same module and function within ten seconds are one."""
    last: dict[tuple[str, str, str], Entry] = {}
    for entry in reading.entries:
        found = rx(_ERROR).search(entry.message) if "[ascend] [" in entry.message else None
        if not found or not from_kernel(entry, found.start()):
            continue
        key = (reading.host(entry), found[1], found[2] or "")
        before = last.get(key)
        last[key] = entry
        if before is not None and within(before, entry, 10 * SECOND):
            reading.again.add(entry.number)
            continue
        fields: dict[str, Scalar] = {
            "module": found[1], "function": found[2] or "", "process": found[3] or "", "pid": number(found[4]),
            "text": body(entry.message),
        }  # fmt: skip
        reading.event("ascend_driver_error", reading.node(entry), entry, fields)
