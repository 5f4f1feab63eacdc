"""What NVIDIA's services say in the journal: fabric manager, persistence daemon, DCGM's host engine, IMEX.

The kernel's lines are the business of the probe `kernel_log`; the messages of systemd about a service are here.
"""

from __future__ import annotations

from dataclasses import replace

from knowledge.language import Text
from knowledge.observation import Clock, Event, Observation, Source, Status, node
from probes.host import Host, Reply
from probes.live import Cost, Needs, ProbeRequest, ProbeSpec
from probes.live._fetch import log, missing, reason, status_of
from probes.live._kernel_sources import REMEDIES, journal_fault, journal_kept
from probes.live.kernel_log import LOOKBACK
from probes.parse import kernel_log

LINES = 10_000
UNITS = (
    "nvidia-fabricmanager",
    "nvidia-persistenced",
    "nvidia-dcgm",
    "dcgm",
    "nv-hostengine",
    "nvidia-imex",
    "systemd-modules-load",
)
ARGV = (
    "journalctl", "--system", "--no-pager", "-a", "-o", "short-iso-precise", "--no-hostname", "-n", str(LINES),
    *(word for unit in UNITS for word in ("-u", f"{unit}.service")),
)  # fmt: skip
GIVEN = tuple(fact for fact in kernel_log.DAEMON_EVENTS if fact != "link_carrier")
# systemd tells each failure of a unit here. What the services themselves say goes to files of their own, too.
MAIN = ("fm_failed", "hostengine_failed", "nvidia_service_failed", "persistenced_failed")


def collect(request: ProbeRequest, host: Host) -> list[Observation]:
    """Failures of the last seven days, and the window in which there were no others."""
    reply = host.run(ARGV, deadline=request.deadline)
    if fault := journal_fault(reply):
        status, why = fault
        why = f"{why}; {REMEDIES['journal']}: run sudo gpudiag check" if status is Status.DENIED else why
        return missing(MAIN, host, reply, kernel_log.FORMAT, status, why)
    if reply.status is not Status.OK and not reply.data:
        return missing(MAIN, host, reply, kernel_log.FORMAT)
    since = None if host.as_of is None else host.as_of - LOOKBACK
    found = [o for o in log(reply, host, kernel_log.FORMAT) if o.fact in (*GIVEN, "node.fabricmanager.version")]
    events = [o for o in found if o.status is Status.OK and not _old(o, since)]
    if not reply.whole:
        return events + missing(MAIN, host, reply, kernel_log.FORMAT, status_of(reply), f"not whole: {reason(reply)}")
    kept = journal_kept(host, request.deadline)
    if kept is None:
        why = "how far back the journal reaches cannot be told"
        return events + missing(MAIN, host, reply, kernel_log.FORMAT, Status.FAILED, why)
    return events + _none(reply, host, found, kept, since)


def _old(o: Observation, since: int | None) -> bool:
    return since is not None and isinstance(o.value, Event) and o.at is not None and o.at < since


def _none(
    reply: Reply, host: Host, found: list[Observation], kept: tuple[int, int], since: int | None
) -> list[Observation]:
    start = max(kept[0], since or 0)
    if reply.data.count(b"\n") >= LINES:  # there are more: those that were printed reach back to the first of them
        windows = [o.window[0] for o in found if o.status is Status.NONE_SEEN and o.window]
        start = max(start, *windows) if windows else kept[1]
    none = Observation(
        "", node(host.name), None, Status.NONE_SEEN, Source(kernel_log.NAME, "journalctl -u nvidia-*", None, kernel_log.REVISION),
        at=kept[1], clock=Clock.REALTIME, window=(min(start, kept[1]), kept[1]), detail=kernel_log.NONE,
    )  # fmt: skip
    return [replace(none, fact=fact) for fact in MAIN]


PROBE = ProbeSpec(
    name="service-log",
    title=Text("journal of NVIDIA's services", "NVIDIA 服务的 journal 日志"),
    provides=(*GIVEN, "node.fabricmanager.version"),
    main=MAIN,
    collect=collect,
    needs=Needs(binaries=("journalctl",), privileges=("group systemd-journal", "group adm")),
    cost=Cost.CHEAP,
    deadline=10.0,
)
