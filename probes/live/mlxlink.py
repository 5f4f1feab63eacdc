"""``mlxlink``: link, bit errors and module of each port of an NVIDIA adapter. It reads; nothing is changed or cleared."""

from __future__ import annotations

import re

from knowledge.language import Text
from knowledge.observation import Observation, Scope, Status
from probes.host import Host
from probes.live import Cost, Needs, ProbeRequest, ProbeSpec
from probes.live._absent import absent
from probes.live._fetch import document, missing
from probes.parse import mlxlink

DEVICES = "/sys/class/infiniband/*"
MAIN = ("port.link.up",)
MOST = 32
_DEVICE = re.compile(r"mlx5_\w{1,20}")


def collect(request: ProbeRequest, host: Host) -> list[Observation]:
    """Observations of each device; where the tool is not there it is asked once."""
    devices = [path.rsplit("/", 1)[-1] for path in host.files(DEVICES)]
    devices = [name for name in devices if _DEVICE.fullmatch(name)][:MOST]
    found: list[Observation] = []
    for name in devices:
        reply = host.run(("mlxlink", "-d", name, "-m", "-c", "--json"), deadline=request.deadline)
        if reply.status in (Status.UNSUPPORTED, Status.NOT_ASKED):
            return found + missing(MAIN, host, reply, mlxlink.FORMAT)
        told = document(reply, host, mlxlink.FORMAT, MAIN, proof=MAIN)
        found += [o for o in told if o.subject.scope is not Scope.NODE] or told
    if not devices:
        return absent(MAIN, host, "/proc/net/dev", mlxlink.FORMAT, "there is no NVIDIA network adapter here")
    return found


PROBE = ProbeSpec(
    name="mlxlink",
    title=Text(
        "links, bit errors and modules of NVIDIA adapters (mlxlink)", "NVIDIA 网卡的链路、误码与模块（mlxlink）"
    ),
    provides=mlxlink.FORMAT.provides,
    main=MAIN,
    collect=collect,
    needs=Needs(
        binaries=("mlxlink",), files=("/sys/class/infiniband",), privileges=("root, to read the adapter's registers",)
    ),
    cost=Cost.SECONDS,
    default=False,
    deadline=20.0,
)
