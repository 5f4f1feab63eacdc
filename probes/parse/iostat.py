"""``iostat -x``: which disk is busiest, how busy it is, and how long its requests take.

Of several reports the last counts: the first is the mean since the boot.
"""

from __future__ import annotations

import re

from knowledge.observation import Observation, Status, Value, node
from knowledge.text import clean, excerpt
from probes.around import bare
from probes.base import Context, DocumentFormat, Line, lines_of
from probes.parse._sysstat_title import titled

NAME, REVISION = "iostat", 2
PROVIDES = (
    "node.cpu.iowait", "node.disk.busiest", "node.disk.busiest.busy", "node.disk.busiest.await", "node.disk.busiest.read_await",
)  # fmt: skip
# Device            r/s     rkB/s   rrqm/s  %rrqm r_await rareq-sz     w/s ...  aqu-sz  %util
_HEAD = re.compile(r"Device:?\s{1,60}(?=.{0,400}await)(?=.{0,400}%util)\S.{10,400}")
# avg-cpu:  %user   %nice %system %iowait  %steal   %idle
_CPU = re.compile(r"avg-cpu:\s{1,12}%user\s{1,12}%nice\s{1,12}%system\s{1,12}%iowait\s{1,12}%steal\s{1,12}%idle\s{0,8}")
_NUMBER = re.compile(r"\d{1,12}(?:[.,]\d{1,4})?")


def sniff(head: str) -> int:
    """92 for the heading of its extended table."""
    return 92 if any(_HEAD.fullmatch(clean(line.text[:500]).strip()) for line in lines_of(head)[:60]) else 0


def parse(text: str, context: Context) -> list[Observation]:
    """The busiest disk of the last report; failed where its table is cut."""
    context = titled(text, context)
    text = bare(text).text  # the line of a shell behind it is no half line of the table
    columns: list[str] = []
    rows: list[tuple[str, dict[str, float], Line]] = []
    waits: tuple[float, Line] | None = None
    above, cut = "", ""
    for line in lines_of(text):
        told = clean(line.text[:600]).strip()
        if _HEAD.fullmatch(told):
            columns, rows = told.split(), []
        elif _CPU.fullmatch(told):
            columns, rows = [], []
        elif _CPU.fullmatch(above) and len(cells := told.split()) == 6 and _NUMBER.fullmatch(cells[3]):
            waits = float(cells[3].replace(",", ".")), line
        elif columns and len(cells := told.split()) == len(columns) and all(map(_NUMBER.fullmatch, cells[1:])):
            rows.append((cells[0], _figures(columns, cells), line))
        elif columns and told:
            cut = f"the listing ends early: {told[:40]!r} is no whole row"
        above = told or above
    out = [_told("node.cpu.iowait", *waits, context)] if waits else []
    if cut or not rows:
        why = cut or "the listing ends early: its last report has no disks"
        at = context.at(NAME, REVISION)
        out.append(Observation("node.disk.busiest", node(context.host), None, Status.FAILED, at, detail=why))
    if rows := [row for row in rows if not row[0].startswith(("loop", "ram"))]:
        name, row, line = max(rows, key=lambda found: (found[1]["%util"], _await(found[1])))
        values: list[tuple[str, Value]] = [("", name), (".busy", row["%util"]), (".await", _await(row))]
        if "r_await" in row:  # of fewer than one read a second the mean says nothing
            values.append((".read_await", row["r_await"] if row.get("r/s", 0.0) >= 1 else 0.0))
        for part, value in values:
            out.append(_told(f"node.disk.busiest{part}", value, line, context))
    return out


def _figures(columns: list[str], cells: list[str]) -> dict[str, float]:
    """The numbers of a row by their columns; some languages print a comma in them."""
    return {n: float(c.replace(",", ".")) for n, c in zip(columns[1:], cells[1:], strict=True)}


def _await(row: dict[str, float]) -> float:
    """ms of a request; of reads and writes their mean, by how many there were."""
    if "await" in row:
        return row["await"]
    reads, writes = row.get("r/s", 0.0), row.get("w/s", 0.0)
    total = reads * row.get("r_await", 0.0) + writes * row.get("w_await", 0.0)
    return round(total / (reads + writes), 2) if reads + writes else 0.0


def _told(fact: str, value: Value, line: Line, context: Context) -> Observation:
    shown = excerpt(clean(line.text.strip()), 300)
    return Observation(
        fact, node(context.host), value, Status.OK, context.at(NAME, REVISION, line.number), excerpt=shown
    )


FORMAT = DocumentFormat(NAME, "iostat -x", REVISION, PROVIDES, sniff, parse)
