"""The health log of each NVMe drive, read with nvme-cli: one admin command a drive, some milliseconds."""

from __future__ import annotations

import re

from knowledge.language import Text
from knowledge.observation import Observation, Status
from probes.host import Host, Reply
from probes.live import Cost, Needs, ProbeRequest, ProbeSpec
from probes.live._absent import absent
from probes.live._fetch import document, missing
from probes.parse import nvme_smart_log

CONTROLLERS = "/sys/class/nvme/nvme*"
MAIN = ("drive.warning.reliability",)
MOST, PATIENCE = 64, 2  # drives; and how many may stay silent before the others are not asked


def collect(request: ProbeRequest, host: Host) -> list[Observation]:
    """Observations of each drive; where there is none, that is the answer."""
    names = [n for path in host.files(CONTROLLERS) if re.fullmatch(r"nvme\d{1,4}", n := path.rpartition("/")[2])]
    if not names:
        why = "the kernel knows no NVMe drive"
        return absent(MAIN, host, "/sys/class/nvme/nvme0/model", nvme_smart_log.FORMAT, why)
    found: list[Observation] = []
    silent = 0
    for name in sorted(names, key=lambda n: (len(n), n))[:MOST]:
        argv = ("nvme", "smart-log", f"/dev/{name}", "-o", "json")
        reply = host.run(argv, deadline=min(1.0, request.deadline))
        found += document(reply, host, nvme_smart_log.FORMAT, MAIN, proof=MAIN) if _told(reply) else _why(reply, host)
        silent += reply.status is Status.TIMEOUT
        if silent >= PATIENCE or reply.status in (Status.UNSUPPORTED, Status.NOT_ASKED):
            break  # the tool is not there, or the bus hangs: the next drive would say the same
    return found


def _told(reply: Reply) -> bool:
    return b"critical_warning" in reply.data


def _why(reply: Reply, host: Host) -> list[Observation]:
    return missing(MAIN, host, reply, nvme_smart_log.FORMAT)


PROBE = ProbeSpec(
    name="nvme-smart",
    title=Text("health of NVMe drives (nvme smart-log)", "NVMe 硬盘健康状态（nvme smart-log）"),
    provides=nvme_smart_log.FORMAT.provides,
    main=MAIN,
    collect=collect,
    needs=Needs(binaries=("nvme",), privileges=("root",)),
    cost=Cost.CHEAP,
    deadline=2.0,
)
