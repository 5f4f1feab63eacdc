"""``iblinkinfo``: every link of an InfiniBand fabric, with its state, and what it could be where it runs below both its ends.

Ports of a switch to which nothing is plugged are down and polling; a port of an adapter is judged by its node's ports.
"""

from __future__ import annotations

import re
from dataclasses import replace

from knowledge.observation import Observation
from probes.base import Context, DocumentFormat
from probes.parse._app_emit import Emitter, clean_lines
from probes.parse._app_ib import FACTS, PHYS_STATES, STATES, Port, emit_node, emit_port
from probes.parse.ib_errors import named

NAME, REVISION = "iblinkinfo", 1
BELOW = "port.link.could_be"
PROVIDES = (*FACTS, BELOW)
# CA: gpu07 mlx5_3:        Switch: 0xfc6a1c0300aa1100 MF0;sw-leaf-3:MQM9700/U1:
_OWNER = re.compile(r"(CA|Switch|Router): (?:0x[0-9a-f]{1,16} )?(.{1,120}?):?\s{0,20}")
#       0xa088c20300f1a2c8    118    1[  ] ==( 4X      106.25 Gbps Active/  LinkUp)==>       3   12[  ] "MF0;..." ( Could be 4X)
#            3   14[  ] ==(                Down/ Polling)==>             [  ] "" ( )
_LINK = re.compile(
    r"\s{1,20}(?:0x[0-9a-f]{1,16}\s{1,10})?\d{1,6}\s{1,10}(\d{1,3})\[.{0,8}\] ==\(\s{0,24}(?:(\d{1,2}X)\s{1,20}([\d.]{1,12}) Gbps\s{0,20})?"
    r"\s{0,24}(\w{1,20})/\s{0,20}(\w{1,30})\)==>(.{0,400})"
)
_COULD = re.compile(r"\(\s{0,4}(Could be .{1,120}?)\s{0,4}\)\s{0,20}$")


def sniff(head: str) -> int:
    """94 for the line of a link."""
    return 94 if any(_LINK.fullmatch(line.text[:800]) for line in clean_lines(head)[:2000]) else 0


def parse(text: str, context: Context) -> list[Observation]:
    """State of each port, and what its link could be; counts for each node whose adapters are listed."""
    kind, device, host = "", "unnamed", context.host
    out: list[Observation] = []
    adapters: dict[str, list[Port]] = {}
    for line in clean_lines(text):
        if owner := _OWNER.fullmatch(line.text[:200]):
            kind, (device, host) = owner[1], named(owner[2], context)
        elif found := _LINK.fullmatch(line.text[:800]):
            shown = line.text.strip()[:200]
            port = Port(
                device,
                found[1],
                line.number,
                STATES.get(found[4].lower()),
                PHYS_STATES.get(found[5].lower()),
                layer="infiniband",
                excerpt=shown,
            )
            emit = Emitter(NAME, REVISION, replace(context, host=host))
            emit_port(emit, port)
            if could := _COULD.search(found[6]):
                runs = f"runs at {found[2]} {found[3]} Gbps a lane; " if found[2] else ""
                emit.fact(BELOW, emit.out[0].subject, runs + could[1].replace("Could", "could"), line.number, shown)
            out += emit.out
            if kind == "CA":
                adapters.setdefault(host, []).append(port)
    for host, ports in adapters.items():
        emit = Emitter(NAME, REVISION, replace(context, host=host))
        emit_node(emit, ports)
        out += emit.out
    return out


FORMAT = DocumentFormat(NAME, "iblinkinfo", REVISION, PROVIDES, sniff, parse)
