"""``sinfo``, ``sinfo -N``, ``sinfo -l``: the state of nodes, a row for those of one partition that are in the same.

The heading names the columns. A star behind a state says that the nodes do not answer; other marks (``~#!%$@^-``) are of power
saving, reboots and planned work (man sinfo, NODE STATE CODES).
"""

from __future__ import annotations

import re

from knowledge.observation import Observation, Status, Value, node
from knowledge.text import clean, excerpt
from probes.base import Context, DocumentFormat, Line, lines_of
from probes.parse.scontrol_node import SILENT
from probes.parse.sinfo_reasons import nodes

NAME, REVISION = "sinfo-nodes", 1
PROVIDES = ("node.slurm.answers", "node.slurm.held", "node.slurm.reason", "node.slurm.state")
# PARTITION AVAIL  TIMELIMIT  NODES  STATE NODELIST
# NODELIST   NODES PARTITION       STATE CPUS    S:C:T MEMORY TMP_DISK WEIGHT AVAIL_FE REASON
_HEADING = re.compile(
    r"(?=.{0,400}\bNODELIST\b)(?=.{0,400}\bSTATE\b)(?=.{0,400}\b(?:PARTITION|NODES)\b)[A-Z_:() ]{10,400}"
)
_STATE = re.compile(r"([a-z_]{2,20})([*~#!%$@^-]{0,3})(?:\+[a-z_+]{1,60})?")
# A node in one of these gets no new job; sinfo shortens the words to the width of its column.
HELD = frozenset(
    {
        "down",
        "drain",
        "drained",
        "drng",
        "draining",
        "fail",
        "failg",
        "failing",
        "inval",
        "maint",
        "unk",
        "unknown",
        "no_respond",
    }
)
_FREE = "none"  # a REASON that there is not


def sniff(head: str) -> int:
    """93 for a heading with the state and the names of nodes."""
    return 93 if any(_HEADING.fullmatch(line.text[:500].strip()) for line in lines_of(head)[:20]) else 0


def parse(text: str, context: Context) -> list[Observation]:
    """State, and whether work and answers are to be had, of each node that is listed."""
    columns: list[str] = []
    worst: dict[str, list[Observation]] = {}
    for line in lines_of(text):
        if _HEADING.fullmatch(line.text[:500].strip()):
            columns = line.text.split()
            continue
        cells = line.text[:5000].split(None, max(0, len(columns) - 1))
        row = dict(zip(columns, cells, strict=False))
        state = _STATE.fullmatch(row.get("STATE", ""))
        if (
            state is None
            or len(cells) < len(columns)
            or (row.get("NODES", "0").isdigit() and int(row.get("NODES", "1")[:9]) == 0)
        ):
            continue
        for name in nodes(row["NODELIST"]):
            worst.setdefault(name, _facts(name, state, row.get("REASON", _FREE), line, context))
    return [o for found in worst.values() for o in found]


def _facts(name: str, state: re.Match[str], reason: str, line: Line, context: Context) -> list[Observation]:
    source, shown = context.at(NAME, REVISION, line.number), excerpt(clean(line.text.strip()), 300)
    said = clean(reason).strip()
    silent = "*" in state[2] or SILENT.match(said) is not None
    values: dict[str, Value] = {
        "node.slurm.state": state[1].upper(),
        "node.slurm.held": silent or state[1] in HELD,
        "node.slurm.answers": not silent,
    }
    if said and said.lower() != _FREE:
        values["node.slurm.reason"] = excerpt(said, 200)
    return [Observation(fact, node(name), value, Status.OK, source, excerpt=shown) for fact, value in values.items()]


FORMAT = DocumentFormat(NAME, "sinfo", REVISION, PROVIDES, sniff, parse)
