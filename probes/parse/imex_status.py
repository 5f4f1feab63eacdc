"""``nvidia-imex-ctl -N``: the nodes of an NVLink domain that share memory, and which of them do not reach each other."""

from __future__ import annotations

import re

from knowledge.observation import Observation, Status, Value, node
from knowledge.text import clean, excerpt
from probes.base import Context, DocumentFormat, Line, lines_of

NAME, REVISION = "imex-status", 1
PROVIDES = ("node.imex.domain", "node.imex.absent", "node.imex.unconnected")
# Node #2   - 10.9.0.13   - UNAVAILABLE          - Version: Unknown
_NODE = re.compile(r"\s{0,8}Node #(\d{1,4})\s{1,8}- (\S{1,80})\s{1,20}- ([A-Z_]{2,40})\s{0,40}(?:- .{0,100})?")
# Nodes From\\To  0   1   2             0        C   C   D
_HEAD = re.compile(r"\s{0,8}Nodes From\\To((?:\s{1,8}\d{1,4}){1,200})\s{0,8}")
_ROW = re.compile(r"\s{0,12}(\d{1,4})((?:\s{1,12}(?:[INRDACU-]|![VM]!)){1,200})\s{0,8}")
_STATE = re.compile(r"\s{0,8}Domain State: ([A-Z_]{2,20})\s{0,8}")


def sniff(head: str) -> int:
    """95 for a node of the list, or for the state of the domain."""
    lines = [line.text[:900] for line in lines_of(head)[:400]]
    legend = any("Connectivity Table Legend" in line for line in lines)
    return (
        95
        if (legend or any(_STATE.fullmatch(line) for line in lines)) and any(_NODE.fullmatch(line) for line in lines)
        else 0
    )


def parse(text: str, context: Context) -> list[Observation]:
    """State of the domain, nodes that are not ready, and pairs that are not connected; why not, where the text ends early."""
    out: list[Observation] = []
    names: dict[str, str] = {}
    absent: dict[str, Line] = {}
    apart: dict[str, Line] = {}
    columns: list[str] = []
    last, state = Line(1, ""), False

    def add(fact: str, value: Value, line: Line, shown: str = "") -> None:
        source = context.at(NAME, REVISION, line.number)
        out.append(
            Observation(
                fact,
                node(context.host),
                value,
                Status.OK,
                source,
                excerpt=excerpt(shown or clean(line.text.strip()), 300),
            )
        )

    for line in lines_of(text):
        told = clean(line.text[:2000])
        if found := _NODE.fullmatch(told):
            names[found[1]], last = found[2], line
            if found[3] != "READY":
                absent[f"{found[2]} {found[3]}"] = line
        elif found := _HEAD.fullmatch(told):
            columns = found[1].split()
        elif columns and (found := _ROW.fullmatch(told)):
            pairs = zip(columns, found[2].split(), strict=False)
            apart |= {
                f"{names.get(found[1], found[1])}-{names.get(to, to)} {cell}": line
                for to, cell in pairs
                if cell not in ("C", "-")
            }
        elif found := _STATE.fullmatch(told):
            add("node.imex.domain", found[1], line)
            state = True
    if names:
        for fact, told_of, what in (
            ("node.imex.absent", absent, "ready"),
            ("node.imex.unconnected", apart, "connected"),
        ):
            if told_of or fact == "node.imex.absent" or columns:
                shown = ", ".join(sorted(told_of)[:20]) or f"{len(names)} nodes, all {what}"
                add(fact, tuple(sorted(told_of)[:200]), next(iter(told_of.values()), last), shown)
    if not state:
        source = context.at(NAME, REVISION)
        detail = "the listing ends early: the state of the domain is missing"
        out.append(Observation("node.imex.domain", node(context.host), None, Status.FAILED, source, detail=detail))
    return out


FORMAT = DocumentFormat(NAME, "nvidia-imex-ctl -N", REVISION, PROVIDES, sniff, parse)
