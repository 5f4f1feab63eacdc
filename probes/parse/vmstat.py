"""``vmstat``: memory that goes to swap and comes back, time that waits for storage, tasks that are blocked.

The first line is the mean since the boot: with others below it, it is left out, and the rest is averaged. Swapping is told in
KiB a second (vmstat(8)); with ``-S`` the unit is another one and nowhere printed, so these options are not told apart.
"""

from __future__ import annotations

import re

from knowledge.observation import Observation, Status, node
from knowledge.text import clean, excerpt
from probes.around import bare
from probes.base import Context, DocumentFormat, Line, lines_of

NAME, REVISION = "vmstat", 1
#  r  b   swpd   free   buff  cache   si   so    bi    bo   in   cs us sy id wa st
_HEAD = re.compile(
    r"\s{0,8}r\s{1,8}b\s{1,12}swpd\s{1,12}free\s{1,12}\S{2,8}\s{1,12}\S{2,8}\s{1,12}si\s{1,8}so\s{1,8}bi\s{1,8}bo\s.{4,60}"
)
_ROW = re.compile(r"(?:\s{0,12}\d{1,14}){14,19}(?:\s{1,8}\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)?\s{0,8}")
_FACTS = {"si": ("node.swap.in", 1024), "so": ("node.swap.out", 1024), "wa": ("node.cpu.iowait", 1)}
BLOCKED = "node.tasks.blocked"


def sniff(head: str) -> int:
    """92 for its heading."""
    return 92 if any(_HEAD.fullmatch(clean(line.text[:300])) for line in lines_of(head)[:40]) else 0


def parse(text: str, context: Context) -> list[Observation]:
    """The means of the columns; blocked tasks in the last line, which failed where that is half a line."""
    text = bare(text).text  # the line of a shell behind it is no half line of the table
    columns: list[str] = []
    cut = ""
    rows: list[tuple[dict[str, int], Line]] = []
    for line in lines_of(text):
        told = clean(line.text[:300])
        if _HEAD.fullmatch(told):
            columns = told.split()
        elif told.startswith("procs "):
            continue
        elif columns and told.strip():
            cells = told.split()
            cut = "" if _ROW.fullmatch(told) and len(cells) >= len(columns) else told.strip()
            if not cut:
                rows.append(
                    ({name: int(cell) for name, cell in zip(columns, cells, strict=False) if cell.isdigit()}, line)
                )
    if cut or not rows:
        why = f"the listing ends early: {cut[:40]!r} is no whole line"
        at = context.at(NAME, REVISION)
        return [Observation(BLOCKED, node(context.host), None, Status.FAILED, at, detail=why)]
    looks = rows[1:] or rows
    last, line = looks[-1]
    source, shown = context.at(NAME, REVISION, line.number), excerpt(clean(line.text.strip()), 300)
    means = {
        fact: round(sum(row.get(name, 0) for row, _ in looks) / len(looks) / divisor, 2)
        for name, (fact, divisor) in _FACTS.items()
        if name in last
    }
    why = "" if len(rows) > 1 else "the mean since the boot"
    out = [
        Observation(fact, node(context.host), v, Status.OK, source, excerpt=shown, detail=why)
        for fact, v in means.items()
    ]
    return [*out, Observation(BLOCKED, node(context.host), last.get("b", 0), Status.OK, source, excerpt=shown)]


FORMAT = DocumentFormat(NAME, "vmstat", REVISION, (BLOCKED, *(fact for fact, _ in _FACTS.values())), sniff, parse)
