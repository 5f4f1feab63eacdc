"""``scontrol show node``: what Slurm thinks of its nodes, whether it gives them work, and the reason if it does not.

Fields are ``Key=value``, several on a line; Reason runs to the end of its line and ends in ``[user@time]``. State is one word
of the base and flags behind plus signs (``IDLE+DRAIN+INVALID_REG``), as Slurm 19 to 25 print it.
"""

from __future__ import annotations

from knowledge.lazy import lazy
from knowledge.observation import Clock, Event, Observation, Scalar, Status, Subject, Value, node
from knowledge.text import clean, digits, excerpt
from probes.base import Context, DocumentFormat
from probes.parse._logtime import Stamp, parse_iso

NAME, REVISION = "scontrol-node", 3
PROVIDES = (
    "node.slurm.state",
    "node.slurm.held",
    "node.slurm.reason",
    "node.slurm.gpus",
    "node.slurm.answers",
    "slurmctld_inval",
)
_NAME = lazy(r"(?m)^\s*NodeName=(\S{1,120})")
_STATE = lazy(r"(?m)^\s*State=([A-Z][A-Z_+*~#!%$@^-]{1,200})")
_GRES = lazy(r"\bGres=(\S{0,300})")
_GPUS = lazy(r"(?:^|,)gpu(?::[^:,()\s]{1,60})?:(\d{1,4})")
_REASON = lazy(r"(?m)^\s*Reason=(.{1,400}?)(?: \[(?P<by>[^\]\n]{1,80})\])?\s*$")
_COUNTS = lazy(r"(\S{1,40}) count reported lower than configured \((\d{1,6}) < (\d{1,6})\)")
# The reason that slurmctld gives a node that it set to DOWN by itself.
SILENT = lazy(r"(?i)not responding\b")
# A node with one of these gets no new job.
HELD = (
    "DRAIN",
    "DRAINED",
    "DRAINING",
    "DOWN",
    "FAIL",
    "FAILING",
    "INVAL",
    "INVALID_REG",
    "NOT_RESPONDING",
    "POWERED_DOWN",
    "MAINT",
)


def sniff(head: str) -> int:
    """95 for the name of a node and its state under each other."""
    return 95 if _NAME.search(head) and _STATE.search(head) else 0


def parse(text: str, context: Context) -> list[Observation]:
    """Facts of each node that the text lists."""
    out: list[Observation] = []
    starts = [*_NAME.finditer(text)]
    ends = [*(s.start() for s in starts[1:]), len(text)]
    for found, end in zip(starts, ends, strict=False):
        block = text[found.start() : end]
        _node(out, node(found[1]), block, text.count("\n", 0, found.start()) + 1, context)
    return out


def _node(out: list[Observation], here: Subject, block: str, line: int, context: Context) -> None:
    def add(fact: str, value: Value, at: int, when: Stamp | None = None) -> None:
        number = line + block.count("\n", 0, at)
        shown = excerpt(clean(block[at:].strip().partition("\n")[0]), 300)
        ns, clock = (when.value, when.clock) if when is not None else (None, Clock.NONE)
        source = context.at(NAME, REVISION, number)
        out.append(Observation(fact, here, value, Status.OK, source, ns, clock, excerpt=shown))

    state, reason, gres = _STATE.search(block), _REASON.search(block), _GRES.search(block)
    flags = [flag.rstrip("*~#!%$@^-") for flag in state[1].split("+")] if state else []
    if state:
        add("node.slurm.state", "+".join(flags), state.start())
        silent = "*" in state[1] or "NOT_RESPONDING" in flags or (reason and SILENT.match(reason[1]) is not None)
        add("node.slurm.held", silent or any(flag in HELD for flag in flags), state.start())
        add("node.slurm.answers", not silent, state.start())
    if gres and (counts := [n for c in _GPUS.findall(gres[1]) if (n := digits(c)) is not None]):
        add("node.slurm.gpus", sum(counts), gres.start())
    said = clean(reason[1]).strip() if reason else ""
    since = parse_iso(reason["by"].partition("@")[2]) if reason and reason["by"] else None
    if reason and said and said != "(null)":
        add("node.slurm.reason", excerpt(said, 200), reason.start(), since)
    short = _COUNTS.search(said)
    if reason and (short or {"INVAL", "INVALID_REG"} & set(flags)):
        fields: dict[str, Scalar] = {
            "reason": excerpt(said, 200), "resource": short[1] if short else None,
            "found": digits(short[2]) if short else None, "configured": digits(short[3]) if short else None,
            "text": excerpt(clean(reason[0].strip()), 300),
        }  # fmt: skip
        add("slurmctld_inval", Event(None, fields), reason.start(), since)


FORMAT = DocumentFormat(NAME, "scontrol show node", REVISION, PROVIDES, sniff, parse)
