"""The kernel log: from the journal, else the ring buffer, else the files that a syslog daemon writes."""

from __future__ import annotations

from knowledge.language import Text
from knowledge.observation import Observation, Status
from probes.host import Host, Reply
from probes.live import Cost, Needs, ProbeRequest, ProbeSpec
from probes.live._fetch import log, missing, reason, status_of
from probes.parse import kernel_log

# The journal first: its lines carry the year and the zone, and it reaches further back than the ring buffer.
COMMANDS = (("journalctl", "-k", "-o", "short-iso", "--no-pager"), ("dmesg",))
FILES = ("/var/log/kern.log", "/var/log/messages")
MAIN = ("log.kernel.readable", "xid", "sxid")


def collect(request: ProbeRequest, host: Host) -> list[Observation]:
    """Observations of the first source that answers with kernel output; else why none of them did."""
    asked: list[Reply] = []
    second: list[Observation] = []
    for call in (*COMMANDS, *FILES):
        reply = host.read(call) if isinstance(call, str) else host.run(call, deadline=request.deadline)
        asked.append(reply)
        found = log(reply, host, kernel_log.FORMAT)
        if any(o.fact == "log.kernel.readable" and o.status is Status.OK for o in found):
            return found
        if not second and any(o.status is Status.OK for o in found):
            second = found  # no kernel log, though a daemon's message of interest stands in it
    if second:
        return second
    why = "; ".join(reason(r) if not r.whole else f"{r.title}: holds no line of a kernel log" for r in asked)
    return missing(MAIN, host, asked[0], kernel_log.FORMAT, _worst(asked), why)


def _worst(asked: list[Reply]) -> Status:
    """What a person can do something about comes first: a missing privilege, then a source that hangs."""
    seen = {status_of(reply) for reply in asked}
    order = (Status.DENIED, Status.TIMEOUT, Status.FAILED, Status.UNSUPPORTED)
    return next((status for status in order if status in seen), Status.NOT_ASKED)


PROBE = ProbeSpec(
    name="kernel-log",
    title=Text("kernel log (journal, dmesg or syslog files)", "内核日志（journal、dmesg 或 syslog 文件）"),
    provides=kernel_log.FORMAT.provides,
    main=MAIN,
    collect=collect,
    needs=Needs(
        binaries=("journalctl", "dmesg"), privileges=("root", "group systemd-journal", "group adm"), files=FILES
    ),
    cost=Cost.SECONDS,
)
