"""The log of NVIDIA Fabric Manager: SXIDs and errors of NVSwitches, of the last seven days where their age can be told."""

from __future__ import annotations

from dataclasses import replace

from knowledge.language import Text
from knowledge.observation import Clock, Event, Observation
from probes.host import Host
from probes.live import Cost, Needs, ProbeRequest, ProbeSpec
from probes.live._fetch import log, missing
from probes.live._kernel_sources import moved, of_zone, zone_of
from probes.live.kernel_log import LOOKBACK
from probes.parse import fabricmanager_log

PATH = "/var/log/fabricmanager.log"
MAIN = ("log.fabricmanager.readable",)


def collect(request: ProbeRequest, host: Host) -> list[Observation]:  # noqa: ARG001 - a file needs no deadline
    """Observations of the log, or why it cannot be read. Nodes without NVSwitches have none."""
    reply = host.read(PATH)
    if found := log(reply, host, fabricmanager_log.FORMAT):
        return _placed(found, host)
    why = f"{PATH}: is empty" if reply.whole else ""
    return missing(MAIN, host, reply, fabricmanager_log.FORMAT, why=why)


def _placed(found: list[Observation], host: Host) -> list[Observation]:
    """Times of the machine's zone as UTC; without what is too old to matter."""
    if host.as_of is None or not any(o.clock is Clock.LOCAL for o in found) or (zone := zone_of(host)) is None:
        return found
    since, spot = host.as_of - LOOKBACK, of_zone(zone, host.as_of, None)
    out = []
    for o in (moved(o, spot) for o in found):
        if isinstance(o.value, Event) and o.at is not None and o.at < since:
            continue
        if o.window:  # an old log that is silent since: Fabric Manager ran on, or is not there any more
            o = replace(o, window=(min(max(o.window[0], since), o.window[1]), o.window[1]))
        out.append(o)
    return out


PROBE = ProbeSpec(
    name="fabric-manager-log",
    title=Text("Fabric Manager log", "Fabric Manager 日志"),
    provides=fabricmanager_log.FORMAT.provides,
    main=MAIN,
    collect=collect,
    needs=Needs(privileges=("root",), files=(PATH,)),
    cost=Cost.FREE,
)
