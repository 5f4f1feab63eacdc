"""Reports of Nsight Compute (``ncu --csv``, details or raw page) among other inputs."""

from __future__ import annotations

import re
from collections.abc import Sequence

from knowledge.observation import Observation
from probes.base import Context, DocumentFormat, Progress
from probes.parse._by_path import each, from_text
from probes.parse.torch_trace import Lost

# "ID","Process ID","Process Name","Host Name","Kernel Name",...,"Metric Name","Metric Unit","Metric Value"
_COLUMNS = re.compile(r'(?m)^"?ID"?,(?:[^\n]{0,2000},)?"?Kernel Name"?,')
_METRIC = re.compile(r'Metric Name|Section Name|[a-z]__[a-z]|"Address"|"Line No"')

FACTS = (
    "ncu.duration_us", "ncu.share", "ncu.bound", "ncu.compute.share", "ncu.memory.share", "ncu.tensor.share",
    "ncu.occupancy.possible", "ncu.occupancy.reached", "ncu.occupancy.limits", "ncu.fill", "ncu.stall.top",
    "ncu.stall.share", "ncu.line.top",
)  # fmt: skip


def sniff(head: str) -> int:
    """How sure it is that this is the beginning of a report."""
    return 95 if _COLUMNS.search(head) and _METRIC.search(head) else 0


def files(paths: Sequence[str], _progress: Progress | None = None, lost: Lost = lambda *_: None) -> list[Observation]:
    """What the reports tell, launch by launch."""
    from probes.trace.nsight.ncu import read_ncu
    from probes.trace.verdict.kernel_facts import profile_observations

    return each(paths, lambda path: profile_observations(path, read_ncu(path)), lost)


def _parse(text: str, context: Context) -> list[Observation]:
    return from_text(text, context, "report.csv", files)


FORMAT = DocumentFormat(
    name="ncu-report", title="ncu --csv report", revision=1, provides=FACTS, sniff=sniff, parse=_parse, files=files
)
