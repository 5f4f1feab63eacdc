"""What the node's time service follows, and how far off the clock is. The service is only asked where it keeps its files."""

from __future__ import annotations

from knowledge.language import Text
from knowledge.observation import Observation
from probes.host import Host
from probes.live import Cost, Needs, ProbeRequest, ProbeSpec
from probes.live._absent import absent
from probes.live._fetch import document
from probes.parse import time_service

MAIN = time_service.MAIN
# Where each service keeps its state while it runs (a folder that only it and root may list), and how it is asked: some milliseconds.
ASKED = (
    ("/run/chrony*", ("chronyc", "-n", "tracking")),
    ("/run/systemd/timesync*", ("timedatectl", "timesync-status")),
)


def collect(request: ProbeRequest, host: Host) -> list[Observation]:
    """Observations of the first service that is there."""
    for pattern, argv in ASKED:
        if host.files(pattern):
            reply = host.run(argv, deadline=min(1.0, request.deadline))
            return document(reply, host, time_service.FORMAT, MAIN, proof=MAIN[:1])
    why = "neither chronyd nor systemd-timesyncd keeps its state here"
    return absent(MAIN, host, "/run/chrony/chronyd.pid", time_service.FORMAT, why)


PROBE = ProbeSpec(
    name="time-service",
    title=Text(
        "the clock's time source and offset (chronyc, timedatectl)", "时钟的时间源与偏差（chronyc、timedatectl）"
    ),
    provides=time_service.FORMAT.provides,
    main=MAIN,
    collect=collect,
    needs=Needs(binaries=("chronyc", "timedatectl")),
    cost=Cost.CHEAP,
    deadline=1.0,
)
