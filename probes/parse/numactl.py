"""``numactl -H``: the NUMA nodes, their processors, their memory and how much of it is free."""

from __future__ import annotations

import re

from knowledge.observation import Observation, Status, Value, node
from knowledge.text import clean, excerpt
from probes.base import Context, DocumentFormat, Line, lines_of

NAME, REVISION = "numactl", 1
PROVIDES = (
    "node.numa.nodes", "node.numa.with_cpus", "node.numa.without_memory", "node.numa.free.min", "node.numa.free.node", "node.numa.free.max",
)  # fmt: skip
# available: 2 nodes (0-1)
_HEAD = re.compile(r"available: (\d{1,4}) nodes? \(([\d,-]{1,200})\)")
# node 0 cpus: 0 1 2 3      node 1 size: 515886 MB      node 1 free: 1021 MB
_CPUS = re.compile(r"node (\d{1,4}) cpus:((?: \d{1,5}){0,2048})")
_SIZE = re.compile(r"node (\d{1,4}) (size|free): (\d{1,12}) MB")


def sniff(head: str) -> int:
    """93 for its first line."""
    return 93 if any(_HEAD.fullmatch(clean(line.text[:300]).strip()) for line in lines_of(head)[:20]) else 0


def parse(text: str, context: Context) -> list[Observation]:
    """What each node has, of a listing that tells all of them."""
    out: list[Observation] = []
    cpus: dict[int, str] = {}
    announced = 0
    sizes: dict[tuple[int, str], tuple[int, Line]] = {}

    def add(fact: str, value: Value, line: Line) -> None:
        source, shown = context.at(NAME, REVISION, line.number), excerpt(clean(line.text.strip()), 300)
        out.append(Observation(fact, node(context.host), value, Status.OK, source, excerpt=shown))

    last: Line | None = None
    for line in lines_of(text):
        told = clean(line.text[:12000]).strip()
        if head := _HEAD.fullmatch(told):
            announced = int(head[1])
            add("node.numa.nodes", announced, line)
        elif own := _CPUS.fullmatch(told):
            cpus[int(own[1])] = own[2].strip()
        elif memory := _SIZE.fullmatch(told):
            sizes[int(memory[1]), memory[2]] = int(memory[3]), line
            last = line
    busy = sorted(n for n, listed in cpus.items() if listed)
    whole = len(cpus) == announced and all((n, word) in sizes for n in cpus for word in ("size", "free"))
    if last is None or not busy or not whole:
        return out
    add("node.numa.with_cpus", len(busy), last)
    add("node.numa.without_memory", tuple(f"node{n}" for n in busy if sizes[n, "size"][0] == 0), last)
    shares = sorted(
        (100 * sizes[n, "free"][0] / sizes[n, "size"][0], n)
        for n in busy
        if sizes[n, "size"][0] and sizes[n, "free"][0] <= sizes[n, "size"][0]
    )
    if shares:
        (least, which), line = shares[0], sizes[shares[0][1], "free"][1]
        add("node.numa.free.min", round(least, 2), line)
        add("node.numa.free.node", which, line)
        add("node.numa.free.max", round(shares[-1][0], 2), sizes[shares[-1][1], "free"][1])
    return out


FORMAT = DocumentFormat(NAME, "numactl -H", REVISION, PROVIDES, sniff, parse)
