"""RDMA ports: their facts, and which of them are the compute rails of a node.

A GPU node has two kinds of ports: compute rails, all of one model and speed, and others for
storage and management. A port that is down prints a fallback rate (10 or 40 Gb/s), so its
kind is inferred from its siblings: the ports of the same adapter model and link layer.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from knowledge.observation import Scope, Status, Subject
from knowledge.record import dataclass
from probes.parse._app_emit import Emitter

FACTS = (
    "port.state",
    "port.phys_state",
    "port.rate",
    "port.link_layer",
    "port.lid",
    "port.guid",
    "port.adapter",
    "port.firmware",
    "node.ib.ports.total",
    "node.ib.ports.active",
    "node.ib.rails.expected",
    "node.ib.rails.active",
    "node.ib.rails.rate",
    "node.ib.rails_down",
    "node.ib.rails.down_ports",
    "node.ib.rails.slow_ports",
    "node.ib.others_down",
    "node.ib.unsorted.down_ports",
)

STATES = {"active": "active", "down": "down", "initializing": "init", "init": "init", "armed": "armed",
          "active_defer": "active", "nop": "unknown", "???": "unknown"}  # fmt: skip
PHYS_STATES = {"linkup": "linkup", "polling": "polling", "disabled": "disabled", "sleep": "sleep", "phytest": "phytest",
               "phy test": "phytest", "linkerrorrecovery": "recovery", "portconfigurationtraining": "training",
               "no state change": "unknown", "no state change.": "unknown"}  # fmt: skip
LAYERS = {"infiniband": "infiniband", "ib": "infiniband", "ethernet": "ethernet"}

# PCI device ids in decimal, as ibstat prints them, and the fastest port of the model in Gb/s.
# Source: NVIDIA's product pages; pci.ids.
MODELS = {
    "MT4113": ("Connect-IB", 56), "MT4115": ("ConnectX-4", 100), "MT4117": ("ConnectX-4 Lx", 50),
    "MT4119": ("ConnectX-5", 100), "MT4121": ("ConnectX-5 Ex", 100), "MT4123": ("ConnectX-6", 200),
    "MT4125": ("ConnectX-6 Dx", 200), "MT4127": ("ConnectX-6 Lx", 50), "MT4129": ("ConnectX-7", 400),
    "MT4131": ("ConnectX-8", 800), "MT41682": ("BlueField", 100), "MT41686": ("BlueField-2", 200),
    "MT41692": ("BlueField-3", 400),
}  # fmt: skip
# As many rails as GPUs: 8 in HGX and DGX systems, 16 in HGX-2. Smaller numbers say nothing.
COMPLETE = (8, 16)
# rate:            100 Gb/sec (1X NDR)
_LANES = re.compile(r"\((\d{1,2})X [A-Z]{2,5}\d{0,4}\)")


@dataclass(frozen=True, slots=True)
class Port:
    """One port as a tool prints it; None where the tool does not say."""

    device: str
    number: str
    line: int
    state: str | None = None
    phys_state: str | None = None
    rate: float | None = None  # Gb/s
    layer: str | None = None
    adapter: str = ""  # MT4129
    firmware: str = ""
    lid: int | None = None
    guid: str = ""
    excerpt: str = ""
    lanes: int | None = None  # 4 of ``(4X NDR)``

    @property
    def name(self) -> str:
        """``mlx5_0/1``."""
        return f"{self.device}/{self.number}"

    @property
    def active(self) -> bool:
        """True for a port that carries traffic."""
        return self.state == "active"

    @property
    def on_one_lane(self) -> bool:
        """True for an InfiniBand port that carries traffic on a single lane. Split cables have two lanes an end; of Ethernet one
        lane is a speed like any other (25GbE prints 1X EDR)."""
        return self.active and self.lanes == 1 and self.layer == "infiniband"


def lanes(rate: str) -> int | None:
    """The lanes of ``100 Gb/sec (1X NDR)``; None where they are not told."""
    found = _LANES.search(rate[:200])
    return int(found[1]) if found else None


def emit_port(emit: Emitter, port: Port, unknown: Iterable[tuple[str, str]] = ()) -> None:
    """The facts of one port; `unknown` names the facts that were printed and are not understood, with their text."""
    subject = Subject(Scope.PORT, port.name, emit.node)
    values = {
        "port.state": port.state,
        "port.phys_state": port.phys_state,
        "port.rate": port.rate,
        "port.link_layer": port.layer,
        "port.lid": port.lid,
        "port.guid": port.guid or None,
        "port.adapter": port.adapter or None,
        "port.firmware": port.firmware or None,
    }
    for name, value in values.items():
        if value is not None:
            emit.fact(name, subject, value, port.line, port.excerpt)
    for name, text in unknown:
        emit.missing(name, subject, Status.FAILED, f"not understood: {text}", line=port.line, excerpt=text)


def emit_node(emit: Emitter, ports: Sequence[Port], cut: str = "", line: int | None = None) -> None:
    """Counts of ports and rails. When `cut` says that the listing ends early, they are failed: ports are missing."""
    node = emit.node
    told = _looked_last([port for port in ports if port.state is not None])
    if cut:
        for name in ("node.ib.ports.total", "node.ib.ports.active", "node.ib.rails_down"):
            emit.missing(name, node, Status.FAILED, f"the listing ends early: {cut}", line=line, excerpt=cut)
        return
    if not told:
        return
    down = [port for port in told if not port.active]
    shown = f"{len(told) - len(down)} of {len(told)} ports active"
    if down:
        shown += "; not active: " + ", ".join(port.name for port in down)
    first = (down or told)[0].line
    emit.fact("node.ib.ports.total", node, len(told), first, shown)
    emit.fact("node.ib.ports.active", node, len(told) - len(down), first, shown)
    rails(emit, told)


def _looked_last(told: Sequence[Port]) -> Sequence[Port]:
    """Of ports that one text lists twice what it says last; all, where an active one has two addresses: then it is of two machines."""
    last = {port.name: port for port in told}
    same = all(port.lid == last[port.name].lid for port in told if port.active and last[port.name].active)
    return list(last.values()) if same else told


@dataclass(slots=True)
class Group:
    """Ports of one adapter model and link layer."""

    adapter: str
    layer: str
    ports: list[Port]

    @property
    def rate(self) -> float:
        """Gb/s of its fastest active port; of the model when none is active; 0 when neither is known."""
        active = [port.rate for port in self.ports if port.active and port.rate is not None]
        return max(active) if active else float(MODELS.get(self.adapter, ("", 0))[1])

    @property
    def title(self) -> str:
        """The model and the layer, for people."""
        model = MODELS.get(self.adapter, (self.adapter, 0))[0]
        return " ".join(word for word in (model, self.layer) if word) or "unnamed"


def groups(ports: Sequence[Port]) -> list[Group]:
    """Ports by model and link layer, the fastest group first.

    A model whose layer changes while a port is down (Ethernet is the fallback of a port
    that was never configured) stays with its own siblings when they are all of one layer.
    """
    found: dict[tuple[str, str], Group] = {}
    for port in ports:
        key = (port.adapter, port.layer or "")
        found.setdefault(key, Group(key[0], key[1], [])).ports.append(port)
    # a group in which nothing is active joins the one active group of its model
    for key, group in list(found.items()):
        alive = [
            g for k, g in found.items() if k != key and k[0] == key[0] and key[0] and any(p.active for p in g.ports)
        ]
        if not any(port.active for port in group.ports) and len(alive) == 1:
            alive[0].ports += group.ports
            del found[key]
    return sorted(found.values(), key=lambda group: (-group.rate, -len(group.ports), group.adapter, group.layer))


def rails(emit: Emitter, ports: Sequence[Port]) -> None:
    """How many compute rails there should be, are, and are lost; what was assumed stands in `detail`."""
    node = emit.node
    best, *others = groups(ports)
    if best.rate <= 0:
        detail = "neither rates nor the adapter model are known: which ports are compute rails cannot be told"
        emit.missing("node.ib.rails_down", node, Status.FAILED, detail, line=best.ports[0].line)
        down = [port for port in ports if not port.active]
        names, first = tuple(sorted(port.name for port in down)), (down or best.ports)[0]
        emit.fact("node.ib.unsorted.down_ports", node, names, first.line, first.excerpt, detail=detail)
        return
    active = [port for port in best.ports if port.active]
    narrow = [port for port in active if port.on_one_lane]
    full = [port for port in active if port not in narrow and port.rate in (None, best.rate)]
    slow = [port for port in active if port not in narrow and port.rate not in (None, best.rate)]
    lost = [port for port in best.ports if not port.active]
    rest = [port for group in others for port in group.ports if not port.active]
    assumed = f"the compute rails are taken to be the {best.title} ports at {best.rate:g} Gb/s"
    if lost and len(full) in COMPLETE and (len(full) + len(lost)) not in COMPLETE:
        # eight of eight are up: what is down beside them serves something else
        assumed += (
            f"; {len(full)} of them are active, a whole set, so the {len(lost)} that are down are taken for others"
        )
        rest, lost = rest + lost, []
    elif lost:
        assumed += "; ports of that model that are down are counted as rails"
    sisters = len(full) + sum(
        port.rate == best.rate for port in lost
    )  # a link that is up at their rate may not be active yet
    if slow and (len(full) + len(lost)) not in COMPLETE and (len(full) + len(lost) + len(slow)) in COMPLETE:
        assumed += f"; the {len(slow)} active at a lower rate complete the set"
    elif len(slow) == 1 and sisters > 1 and sisters == len(full) + len(lost) and sisters not in COMPLETE:
        # storage ports of the same model come in pairs, or beside a whole set: one that stands alone has lost lanes
        assumed += "; the only one of that model at a lower rate is taken for one of them"
    elif slow:
        assumed += f"; {len(slow)} of that model active at a lower rate are taken for others"
        slow = []
    if narrow:
        assumed += f"; a port on one lane of its cable has lost the others: {', '.join(port.name for port in narrow)}"
    _emit_rails(emit, best.rate, full, slow + narrow, lost, rest, assumed)


def _emit_rails(
    emit: Emitter,
    rate: float,
    full: Sequence[Port],
    slow: Sequence[Port],
    lost: Sequence[Port],
    rest: Sequence[Port],
    assumed: str,
) -> None:
    total = len(full) + len(slow) + len(lost)
    down, slower = (tuple(sorted(port.name for port in which)) for which in (lost, slow))
    shown = f"{len(full) + len(slow)} of {total} active, {len(full)} at {rate:g} Gb/s"
    shown += f"; not active: {', '.join(down)}" if down else ""
    shown += f"; slower: {', '.join(slower)}" if slower else ""
    line = [*lost, *slow, *full][0].line
    values: dict[str, int | float | tuple[str, ...]] = {
        "node.ib.rails.expected": total,
        "node.ib.rails.active": len(full) + len(slow),
        "node.ib.rails.rate": rate,
        "node.ib.rails_down": len(lost),
        "node.ib.rails.down_ports": down,
        "node.ib.rails.slow_ports": slower,
    }
    for name, value in values.items():
        of_slow = name == "node.ib.rails.slow_ports" and slow
        emit.fact(name, emit.node, value, slow[0].line if of_slow else line, shown, detail=assumed)
    others = ", ".join(sorted(port.name for port in rest))
    emit.fact(
        "node.ib.others_down",
        emit.node,
        len(rest),
        rest[0].line if rest else line,
        f"not active: {others}" if rest else shown,
        detail=assumed,
    )
