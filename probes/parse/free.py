"""``free``: how much of the host's memory can still be had, and how much of its swap space is taken.

The unit of the numbers stands beside them only with ``-h``, so shares are told, and no sizes but that of no swap space.
"""

from __future__ import annotations

import re
from dataclasses import replace

from knowledge.observation import Observation, Status, node
from knowledge.text import clean, excerpt
from probes.base import Context, DocumentFormat, Line, lines_of

NAME, REVISION = "free", 2
PROVIDES = ("node.memory.available.share", "node.swap.used.share", "node.swap.total")
#                total        used        free      shared  buff/cache   available
_HEAD = re.compile(r"\s{4,40}total\s{1,20}used\s{1,20}free\s{1,20}shared\s{1,20}buff/cache\s{1,20}available\s{0,8}")
# Mem:           503Gi       498Gi       1.1Gi       2.0Gi       3.9Gi       812Mi
_ROW = re.compile(r"(Mem|Swap):((?:\s{1,24}\d{1,18}(?:\.\d{1,3})?(?:B|[KMGTP]i?)?){3,6})\s{0,8}")
_CELL = re.compile(r"(\d{1,18}(?:\.\d{1,3})?)(B|[KMGTP]i?)?")
_POWERS = {"": 0, "B": 0, "K": 1, "M": 2, "G": 3, "T": 4, "P": 5}


def sniff(head: str) -> int:
    """90 for its heading."""
    return 90 if any(_HEAD.fullmatch(line.text[:300]) for line in lines_of(head)[:400]) else 0


def parse(text: str, context: Context) -> list[Observation]:
    """Shares of memory and of swap space; of several rounds the last."""
    out: dict[str, Observation] = {}
    for line in lines_of(text):
        found = _ROW.fullmatch(clean(line.text[:300]))
        sizes = [_size(cell) for cell in found[2].split()] if found else []
        if found is None:
            continue
        if found[1] == "Swap" and sizes[0] == 0:
            fact, value = "node.swap.total", 0.0
            out["node.swap.used.share"] = replace(
                _told("node.swap.used.share", 0.0, line, context), value=None, status=Status.NOT_APPLICABLE,
                detail="there is no swap space",
            )  # fmt: skip
        elif found[1] == "Swap":
            fact, value = "node.swap.used.share", sizes[1] / sizes[0]
        elif sizes[0] > 0 and len(sizes) == 6:
            fact, value = "node.memory.available.share", sizes[5] / sizes[0]
        else:
            continue
        out[fact] = _told(fact, value, line, context)
    return list(out.values())


def _size(cell: str) -> float:
    found = _CELL.fullmatch(cell)
    return float(found[1]) * 1024.0 ** _POWERS[(found[2] or "")[:1]] if found else 0.0


def _told(fact: str, share: float, line: Line, context: Context) -> Observation:
    shown, source = excerpt(clean(line.text.strip())), context.at(NAME, REVISION, line.number)
    value = round(min(1.0, share) * 100, 1)
    return Observation(fact, node(context.host), value, Status.OK, source, excerpt=shown)


FORMAT = DocumentFormat(NAME, "free", REVISION, PROVIDES, sniff, parse)
