"""GPCNeT: latency and bandwidth of a network alone and under congestion. A refusal to start is no fault of the network."""

from __future__ import annotations

import re

from knowledge.observation import Observation
from probes.base import Context, DocumentFormat, Line
from probes.parse import _app_bench
from probes.parse._app_emit import Emitter, clean_lines, number

NAME = "gpcnet"
REVISION = 1

_TITLE = re.compile(r"Network (?:Load )?Tests v(\d{1,3}\.\d{1,3})")
# ERROR: this application must be run on at least 10 nodes
_REFUSED = re.compile(r"(?:ERROR: )?this application must be run on at least (\d{1,4}) nodes", re.IGNORECASE)
_RANKS = re.compile(r"Test with (\d{1,7}) MPI ranks \((\d{1,6}) nodes\)")
_SECTION = re.compile(
    r"\|\s{1,60}((?:Isolated|Network)[^|]{1,80}?(?:Tests|Congestors|Key Results)[^|]{0,60}?)\s{1,60}\|\s*$"
)
_ROW = re.compile(
    r"\|\s{0,40}([A-Z][A-Za-z+ -]{2,40} \(\d{1,9} B\))\s{0,10}\|([^|]{1,30}\|[^|]{1,30}(?:\|[^|]{1,30}){0,6})\|\s*$"
)

FACTS = (
    *_app_bench.COMMON,
    "benchmark.network.nodes",
    "benchmark.network.ranks",
    "benchmark.network.latency.avg",
    "benchmark.network.latency.p99",
    "benchmark.network.bandwidth.avg",
    "benchmark.network.bandwidth.p99",
    "benchmark.network.congestion.avg",
    "benchmark.network.congestion.p99",
)


def sniff(head: str) -> int:
    """95 for the headline of GPCNeT or its refusal; 0 otherwise."""
    return 95 if _TITLE.search(head) or _REFUSED.search(head) else 0


def parse(text: str, context: Context) -> list[Observation]:
    """Tables of the run, each row under its section; or the reason why it did not start."""
    emit = Emitter(NAME, REVISION, context)
    section, header = "", ["Avg", "99%", "Units"]
    title: Line | None = None
    rows = 0
    for line in clean_lines(text):
        if refused := _REFUSED.search(line.text):
            _app_bench.named(emit, NAME, line)
            reason = f"needs at least {refused[1]} nodes"
            emit.fact("benchmark.refused", emit.document, reason, line.number, line.text)
            _app_bench.completed(emit, False, line)
            return emit.out
        if found := _TITLE.search(line.text):
            title = title or line
        elif found := _RANKS.search(line.text):
            emit.fact("benchmark.network.ranks", emit.document, int(found[1]), line.number, line.text)
            emit.fact("benchmark.network.nodes", emit.document, int(found[2]), line.number, line.text)
        elif found := _SECTION.match(line.text):
            section = " ".join(found[1].split())
        elif line.text.startswith("|") and "Avg" in line.text and "99%" in line.text:
            header = [cell.strip() for cell in line.text.strip(" |").split("|")]
            header = header[1:] if header[0] in ("Name", "") else header
        elif (found := _ROW.match(line.text)) and title:
            rows += _row(emit, section, found, header, line)
    if title:
        _app_bench.named(emit, NAME, title)
        _app_bench.completed(emit, rows > 0, title)
    return emit.out


def _row(emit: Emitter, section: str, found: re.Match[str], header: list[str], line: Line) -> int:
    cells = dict(zip(header, (cell.strip() for cell in found[2].split("|")), strict=False))
    subject = _app_bench.part(emit, f"{section}: {' '.join(found[1].split())}" if section else found[1])
    unit = cells.get("Units", "")
    kind = "latency" if unit.startswith("usec") else "bandwidth" if unit.startswith("MiB/s") else ""
    if not kind and cells.get("Avg", "").endswith("X"):
        kind = "congestion"
    done = 0
    for column, name in (("Avg", "avg"), ("99%", "p99")):
        value = number(cells.get(column, ""))
        if kind and value is not None:
            emit.fact(f"benchmark.network.{kind}.{name}", subject, value, line.number, line.text)
            done = 1
    return done


FORMAT = DocumentFormat(name=NAME, title="GPCNeT", revision=REVISION, provides=FACTS, sniff=sniff, parse=parse)
