"""perftest's ``ib_write_bw`` between two RDMA ports of this node, or from a port to itself where there is no second one.

Options: perftest's man page. A server on the first port, a client on the second, both on this machine (the way of
``run_perftest_loopback`` of github.com/linux-rdma/perftest). Between two ports of one fabric the messages go out to the switch and come back, so cables and ports are
measured; from a port to itself they turn round in the adapter, and only the adapter and its PCIe link are. Ports come from
/sys/class/infiniband: active ones that are no management or storage adapters of another rate.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from knowledge.language import Text
from knowledge.lazy import lazy
from knowledge.observation import Status
from probes.active import ActiveTest, Refused, Step
from probes.active._common import ADAPTERS
from probes.host import Host
from probes.parse._active_facts import PERFTEST

BASE = "/sys/class/infiniband"
SECONDS = 5
TCP_PORT = "18777"  # not perftest's own 18515, where somebody's server may listen
MOST = 16  # runs: a node has 8 to 10 adapters
_RATE = lazy(r"(\d{1,4}(?:\.\d)?) Gb/sec")  # 400 Gb/sec (4X NDR)
_NAME = lazy(r"[A-Za-z0-9_.-]{1,40}")


class Port(NamedTuple):
    """One active port."""

    device: str
    number: int
    rate: float  # Gb/s
    layer: str  # InfiniBand, Ethernet


def ports(host: Host) -> list[Port]:
    """The active ports of the highest rate: the compute rails."""
    found = []
    for path in host.files(f"{BASE}/*/ports/*/state"):
        _, _, _, _, device, _, number, _ = path.split("/")
        if not _NAME.fullmatch(device) or device.startswith("-") or not number.isdigit():
            continue
        texts = [_text(host, f"{BASE}/{device}/ports/{number}/{name}") for name in ("state", "rate", "link_layer")]
        rate = _RATE.match(texts[1])
        if "ACTIVE" in texts[0] and rate is not None:
            found.append(Port(device, int(number), float(rate[1]), texts[2]))
    best = max((p.rate for p in found), default=0.0)
    return sorted((p for p in found if p.rate == best), key=lambda p: (_natural(p.device), p.number))


def pairs(found: Sequence[Port]) -> list[tuple[Port, Port]]:
    """Each port once, two of one link layer together; one that is left over with the first, or with itself when alone."""
    out: list[tuple[Port, Port]] = []
    for layer in sorted({p.layer for p in found}):
        here = [p for p in found if p.layer == layer]
        out += list(zip(here[::2], here[1::2], strict=False))
        if len(here) % 2:
            out.append((here[-1], here[0]))
    return out[:MOST]


def _steps(host: Host, gpus: tuple[int, ...]) -> Sequence[Step] | Refused:
    del gpus
    found = ports(host)
    if not found:
        return Refused(Text("no RDMA port is active here", "此处没有活动的 RDMA 端口"))
    return tuple(_step(a, b) for a, b in pairs(found))


def _step(a: Port, b: Port) -> Step:
    common = ("-F", "--report_gbits", "-D", str(SECONDS), "-s", "1048576", "-q", "4", "-p", TCP_PORT)
    server = ("ib_write_bw", "-d", a.device, "-i", str(a.number), *common)
    client = ("ib_write_bw", "-d", b.device, "-i", str(b.number), *common, "localhost")
    return Step(client, SECONDS + 3.0, SECONDS + 30.0, server, f"{b.device}/{b.number} to {a.device}/{a.number}")


def _text(host: Host, path: str) -> str:
    reply = host.read(path)
    return reply.text.strip()[:200] if reply.status is Status.OK else ""


def _natural(name: str) -> tuple[object, ...]:
    """mlx5_2 before mlx5_10."""
    return tuple((0, int(w), "") if w.isdigit() else (1, 0, w) for w in re.split(r"(\d{1,9})", name) if w)


TEST = ActiveTest(
    name="ib-write-bw",
    title=Text("bandwidth of the RDMA ports of this node", "本节点 RDMA 端口带宽"),
    binaries=("ib_write_bw",),
    level=2,
    cost=ADAPTERS,
    seconds=4 * (SECONDS + 3.0),
    main=("benchmark.rdma.bw.largest",),
    provides=PERFTEST,
    steps=_steps,
    progress=lambda _: None,  # one line, at its end
    whole_node=True,
)
