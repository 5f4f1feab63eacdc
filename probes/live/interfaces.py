"""Interfaces with hardware behind them: flow control, error correction, the driver's counters in two readings; bonds."""

from __future__ import annotations

from knowledge.language import Text
from knowledge.observation import Observation
from probes.host import Host
from probes.live import Cost, Needs, ProbeRequest, ProbeSpec
from probes.live._absent import absent
from probes.live._fetch import document
from probes.parse import interfaces_snapshot

HARDWARE, BONDS = "/sys/class/net/*/device", "/proc/net/bonding/*"
MAIN = ("node.roce.interfaces", "node.roce.mtu.differing", "node.roce.pfc.differing", "node.roce.trust.differing")


def collect(request: ProbeRequest, host: Host) -> list[Observation]:
    """Observations of the interfaces; a machine without any (a container) is not asked further."""
    if not host.files(HARDWARE) and not host.files(BONDS):
        return absent(
            MAIN, host, "/proc/net/dev", interfaces_snapshot.FORMAT, "no network interface here has hardware behind it"
        )
    reply = host.snapshot("interfaces", deadline=request.deadline)
    return document(reply, host, interfaces_snapshot.FORMAT, MAIN)


PROBE = ProbeSpec(
    name="interfaces",
    title=Text("network interfaces: flow control, drops, modules, bonds", "网络接口：流控、丢弃、模块与 bond"),
    provides=interfaces_snapshot.FORMAT.provides,
    main=MAIN,
    collect=collect,
    needs=Needs(files=("/sys/class/net",)),
    cost=Cost.CHEAP,
    deadline=10.0,
)
