"""``ethtool -m``: modules and cables of interfaces that have a link. Needs root, and a moment for each over a slow bus."""

from __future__ import annotations

from knowledge.language import Text
from knowledge.observation import Observation, Scope, Status
from probes.host import Host
from probes.live import Cost, Needs, ProbeRequest, ProbeSpec
from probes.live._absent import absent
from probes.live._fetch import document, missing
from probes.parse import ethtool_module

HARDWARE = "/sys/class/net/*/device"
MAIN = ("optics.alarms",)
MOST = 32


def collect(request: ProbeRequest, host: Host) -> list[Observation]:
    """Observations of each module; where the tool is not there it is asked once."""
    names = [path.split("/")[4] for path in host.files(HARDWARE)][:MOST]
    linked = [name for name in names if host.read(f"/sys/class/net/{name}/carrier").text.strip() == "1"]
    found: list[Observation] = []
    for name in linked:
        reply = host.run(("ethtool", "-m", name), deadline=request.deadline)
        if reply.status in (Status.UNSUPPORTED, Status.NOT_ASKED):
            return found + missing(MAIN, host, reply, ethtool_module.FORMAT)
        told = document(reply, host, ethtool_module.FORMAT, MAIN, proof=("optics.type", *MAIN))
        found += [o for o in told if o.subject.scope is Scope.OBJECT] or told
    if not linked:
        return absent(
            MAIN, host, "/proc/net/dev", ethtool_module.FORMAT, "no interface with hardware behind it has a link"
        )
    return found


PROBE = ProbeSpec(
    name="optics",
    title=Text("modules and cables of interfaces (ethtool -m)", "网络接口的光模块与线缆（ethtool -m）"),
    provides=ethtool_module.FORMAT.provides,
    main=MAIN,
    collect=collect,
    needs=Needs(binaries=("ethtool",), privileges=("root, to read a module",)),
    cost=Cost.SECONDS,
    default=False,
    deadline=10.0,
)
