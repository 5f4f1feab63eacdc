"""Snapshots of /proc and /sys by the collector `system`: processors, memory, pressure, limits, disks, network."""

from __future__ import annotations

import re

from knowledge.observation import Observation
from probes.base import Context, DocumentFormat
from probes.parse import _system_cpu, _system_group, _system_io, _system_machine, _system_memory
from probes.parse._system_doc import NAME, REVISION, SCHEMA, Out, Snapshot, gap_of

AREAS = (_system_machine, _system_cpu, _system_memory, _system_group, _system_io)
MAIN = ("node.cpu.busy", "node.memory.available", "node.kernel.version")  # what gets the reason when nothing is told
_SCHEMA = re.compile(rf'\s{{0,20}}\{{\s{{0,20}}"schema"\s{{0,5}}:\s{{0,5}}"{re.escape(SCHEMA)}"')


def sniff(head: str) -> int:
    """100 for a document that begins with the schema; 0 otherwise."""
    return 100 if _SCHEMA.match(head[:4096].lstrip("\ufeff")) else 0


def parse(text: str, context: Context) -> list[Observation]:
    """Observations of the node, its network interfaces and its GPUs; of a broken document, why there are none."""
    try:
        snapshot = Snapshot(text.lstrip("\ufeff"))
    except ValueError as error:
        source = context.at(NAME, REVISION)
        out = Out(Snapshot(f'{{"schema": "{SCHEMA}"}}'), context)
        gap = gap_of(source.call, f"the document cannot be read: {error}")
        out.gap(MAIN, gap, source.call)
        return out.found
    out = Out(snapshot, context)
    for area in AREAS:
        area.parse(out)
    return out.found


FORMAT = DocumentFormat(
    name=NAME,
    title="snapshot of /proc and /sys (gpudiag)",
    revision=REVISION,
    provides=tuple(sorted({fact for area in AREAS for fact in area.PROVIDES})),
    sniff=sniff,
    parse=parse,
)
