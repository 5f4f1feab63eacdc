"""``sinfo -R``: the nodes that Slurm gives no work, and why. The reason is cut to the width of its column.

Only the heading says that there is none. A list of nodes is written as Slurm does: ``gpu[017,022-024],login1``.
"""

from __future__ import annotations

from collections.abc import Iterator

from knowledge.lazy import lazy
from knowledge.observation import Observation, Status, node
from knowledge.text import clean, excerpt
from probes.base import Context, DocumentFormat, Line, lines_of
from probes.parse.scontrol_node import SILENT

NAME, REVISION = "sinfo-reasons", 3
PROVIDES = ("node.slurm.answers", "node.slurm.held", "node.slurm.reason")
# REASON               USER      TIMESTAMP           NODELIST
_HEAD = lazy(r"\s{0,8}REASON\s{1,200}USER\S{0,10}\s{1,60}TIMESTAMP\s{1,60}(?:STATE\s{1,40})?NODELIST\s{0,20}")
# gres/gpu count repor slurm     2025-11-10T03:12:55 gpu[017,022]
_ROW = lazy(
    r"\s{0,8}(\S.{0,300}?)\s{1,200}([\w.()-]{1,60})\s{1,60}(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d|Unknown)\s{1,60}(?:[a-z][a-z*$~#!%@^+-]{1,20}\s{1,40})?(\S{1,4000})\s{0,20}"
)
_CALL = lazy(r"(?:.{0,120}[$#>] ?)?sinfo\b.{0,120}")
_PART = lazy(r"([\w.-]{1,120})(?:\[([\d,-]{1,2000})\])?(?:,|$)")
_MOST = 2000  # nodes of one row


def sniff(head: str) -> int:
    """95 for the heading."""
    return 95 if any(_HEAD.fullmatch(line.text[:400]) for line in lines_of(head)[:20]) else 0


def parse(text: str, context: Context) -> list[Observation]:
    """Held, and the reason, of each node that is listed."""
    out: list[Observation] = []
    for line in lines_of(text):
        if _HEAD.fullmatch(line.text[:400]) is None and (row := _ROW.fullmatch(line.text[:5000])):
            for name in nodes(row[4]):
                out += _facts(name, clean(row[1]).strip(), line, context)
    return out or _none_held(text, context)


def _none_held(text: str, context: Context) -> list[Observation]:
    """That no node is held, where nothing but the heading and the command was printed."""
    rest = [line for line in lines_of(text) if line.text.strip() and not _CALL.fullmatch(line.text[:400])]
    if len(rest) != 1 or _HEAD.fullmatch(rest[0].text[:400]) is None:
        return []
    source, shown = context.at(NAME, REVISION, rest[0].number), excerpt(clean(rest[0].text.strip()), 300)
    return [Observation("node.slurm.held", node(context.host), None, Status.NONE_SEEN, source, excerpt=shown)]


def _facts(name: str, reason: str, line: Line, context: Context) -> Iterator[Observation]:
    source, shown = context.at(NAME, REVISION, line.number), excerpt(clean(line.text.strip()), 300)
    yield Observation("node.slurm.held", node(name), True, Status.OK, source, excerpt=shown)
    if SILENT.match(reason):
        yield Observation("node.slurm.answers", node(name), False, Status.OK, source, excerpt=shown)
    yield Observation("node.slurm.reason", node(name), excerpt(reason, 200), Status.OK, source, excerpt=shown)


def nodes(listed: str) -> list[str]:
    """The names in a list of Slurm's: ``gpu[01-03,7]`` -> gpu01, gpu02, gpu03, gpu7; what cannot be read is left out."""
    out: list[str] = []
    for found in _PART.finditer(listed):
        if found[2] is None:
            out.append(found[1])
            continue
        for span in found[2].split(","):
            first, _, last = span.partition("-")
            if not first.isdigit() or (last and not last.isdigit()) or len(first) > 9 or len(last) > 9:
                continue
            end = min(int(last or first), int(first) + _MOST)
            out += [f"{found[1]}{number:0{len(first)}d}" for number in range(int(first), end + 1)]
            if len(out) > _MOST:
                return out[:_MOST]
    return out


FORMAT = DocumentFormat(NAME, "sinfo -R", REVISION, PROVIDES, sniff, parse)
