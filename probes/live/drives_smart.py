"""The health of every drive as smartctl reads it: SATA and SAS too. A disk that sleeps is left asleep."""

from __future__ import annotations

import re
from dataclasses import replace

from knowledge.language import Text
from knowledge.observation import Observation, Status
from probes.host import Host
from probes.live import Cost, Needs, ProbeRequest, ProbeSpec
from probes.live._absent import absent
from probes.live._fetch import document, missing
from probes.parse import smartctl

LISTED = ("/sys/block/sd*", "/sys/class/nvme/nvme*")
MAIN = ("drive.healthy",)
MOST = 128  # drives
_NAME = re.compile(r"(?:sd[a-z]{1,3}|nvme\d{1,4})\Z")


def collect(request: ProbeRequest, host: Host) -> list[Observation]:
    """Observations of each drive."""
    names = [n for pattern in LISTED for path in host.files(pattern) if _NAME.match(n := path.rpartition("/")[2])]
    if not names:
        why = "the kernel knows no SATA, SAS or NVMe drive"
        return absent(MAIN, host, "/sys/block/sda/device/model", smartctl.FORMAT, why)
    found: list[Observation] = []
    for name in names[:MOST]:
        argv = ("smartctl", "-j", "-x", "-n", "standby", f"/dev/{name}")
        reply = host.run(argv, deadline=min(10.0, request.deadline))
        if reply.status is Status.OK and reply.exit_code is not None and smartctl.sniff(reply.text[:65536]):
            # bits 2 and up of the exit code say what the document says: a failed check, old errors
            found += document(replace(reply, exit_code=0), host, smartctl.FORMAT, MAIN, proof=MAIN)
        else:
            found += missing(MAIN, host, reply, smartctl.FORMAT)
        if reply.status in (Status.UNSUPPORTED, Status.NOT_ASKED):
            break  # the tool is not there
    return found


PROBE = ProbeSpec(
    name="drives-smart",
    title=Text("health of all drives (smartctl)", "全部硬盘健康状态（smartctl）"),
    provides=smartctl.FORMAT.provides,
    main=MAIN,
    collect=collect,
    needs=Needs(binaries=("smartctl",), privileges=("root",), files=LISTED),
    cost=Cost.SECONDS,
    deadline=30.0,
    default=False,
)
