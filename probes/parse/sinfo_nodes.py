"""``sinfo``, ``sinfo -N``, ``sinfo -N -l``: the state of each node, and with ``-l`` why it is taken out.

A mark behind the state says more: ``*`` is a node that does not answer. A reason stands in the last column and may hold blanks.
"""

from __future__ import annotations

from knowledge.observation import Observation, Status, Value, node
from knowledge.text import clean, excerpt
from probes.base import Context, DocumentFormat, lines_of
from probes.parse.sinfo_reasons import nodes

NAME, REVISION = "sinfo-nodes", 1
PROVIDES = ("node.slurm.held", "node.slurm.reason", "node.slurm.state")
# PARTITION AVAIL  TIMELIMIT  NODES  STATE NODELIST
# NODELIST   NODES PARTITION       STATE CPUS    S:C:T MEMORY TMP_DISK WEIGHT AVAIL_FE REASON
_ALWAYS = {"PARTITION", "NODES", "STATE", "NODELIST"}
_MARKS = "*~#!%$@^-+"
# Words of slurm's node states, compact and long, in which no new job is started.
_HELD = ("drain", "drng", "down", "fail", "maint", "inval", "unk", "no_respond", "boot^")


def sniff(head: str) -> int:
    """95 for the heading."""
    return 95 if any(_heading(line.text) for line in lines_of(head)[:20]) else 0


def _heading(text: str) -> list[str]:
    words = text[:400].split()
    return words if set(words) >= _ALWAYS and all(word == word.upper() for word in words) else []


def parse(text: str, context: Context) -> list[Observation]:
    """State of each node that is listed; of one in several partitions the first row."""
    out: list[Observation] = []
    columns: list[str] = []
    seen: set[str] = set()
    for line in lines_of(text):
        if heading := _heading(line.text):
            columns = heading
            continue
        cells = line.text[:5000].split(None, len(columns) - 1) if columns else []
        if not cells or len(cells) != len(columns):
            continue
        row = dict(zip(columns, cells, strict=True))
        state, source = clean(row["STATE"])[:60], context.at(NAME, REVISION, line.number)
        held, shown = _held(state), excerpt(clean(line.text.strip()), 300)
        facts: dict[str, Value] = {"node.slurm.state": state, "node.slurm.held": held}
        if held:
            facts["node.slurm.reason"] = _reason(row.get("REASON", ""), state)
        for name in nodes(row["NODELIST"]):
            if name not in seen:
                seen.add(name)
                out += [Observation(f, node(name), v, Status.OK, source, excerpt=shown) for f, v in facts.items()]
    return out


def _held(state: str) -> bool:
    return state.lower().startswith(_HELD) or "*" in state.lstrip(_MARKS)


def _reason(told: str, state: str) -> str:
    word = clean(told).strip()
    if word and word.lower() != "none":
        return excerpt(word, 200)
    return f"{state.rstrip(_MARKS)}, does not answer" if "*" in state else state


FORMAT = DocumentFormat(NAME, "sinfo", REVISION, PROVIDES, sniff, parse)
