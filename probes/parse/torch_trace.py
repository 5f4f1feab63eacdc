"""Profiler traces (torch.profiler, Kineto, and what writes the same events; exports of Nsight Systems) among other inputs.

A trace may be larger than memory, and several are one job, so it is read by path and not as a text: `files`.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from knowledge.errors import GpudiagError
from knowledge.language import Text
from knowledge.observation import Observation
from probes.base import Context, DocumentFormat, Progress
from probes.trace.verdict.provides import FACTS

if TYPE_CHECKING:
    from probes.trace.columns import Wanted
    from probes.trace.reading.reader import Trace

# {"schemaVersion": 1, "deviceProperties": [{"id": 0, ... ; {"traceEvents": [ ; [{"ph": "X", "cat": "kernel", ...
_KEYS = re.compile(r'"traceEvents"\s{0,20}:\s{0,20}\[')
_HEAD = re.compile(r'"(?:deviceProperties|baseTimeNanoseconds|distributedInfo|displayTimeUnit)"\s{0,20}:')
_EVENT = re.compile(r'"ph"\s{0,20}:\s{0,20}"[XMBEifs]"')
_TIMED = re.compile(r'"(?:ts|dur|cat)"\s{0,20}:')

Lost = Callable[[str, Text], None]  # a file that gave nothing, and why


def sniff(head: str) -> int:
    """How sure it is that this is the beginning of a trace."""
    start = head.lstrip()[:1]
    if start not in ("{", "["):
        return 0
    if _KEYS.search(head) or (_HEAD.search(head) and '"schemaVersion"' in head):
        return 100
    return 80 if _EVENT.search(head) and _TIMED.search(head) else 0


def files(paths: Sequence[str], progress: Progress | None = None, lost: Lost = lambda *_: None) -> list[Observation]:
    """What the traces of one job tell, one file a rank. A file that cannot be read is told to `lost`."""
    from probes.trace.across import ranks
    from probes.trace.columns import both
    from probes.trace.verdict import digest
    from probes.trace.verdict.facts import observations
    from probes.trace.verdict.named_facts import MOST

    found, timed, failed = [], [], {}
    needs = both(digest.NEEDS, ranks.NEEDS)
    for path in paths:
        try:
            trace = _read(path, needs, progress)
        except GpudiagError as fault:
            failed[path] = fault.message
            lost(path, Text(fault.message, fault.message))
            continue
        found.append(digest.digest(trace, top=MOST, named=MOST))
        if len(paths) > 1:
            timed.append(ranks.digest(trace, found[-1].window, found=found[-1].iterations, idle=found[-1].summary.idle))
    return observations(found, ranks.compare(timed, failed) if len(timed) > 1 else None) if found else []


def _read(path: str, needs: Wanted, progress: Progress | None) -> Trace:
    from probes.trace.reading import nsys
    from probes.trace.reading.reader import read

    with Path(path).open("rb") as file:
        head = file.read(16)
    return nsys.read_sqlite(path, needs) if is_database(head) else read(path, needs, progress=progress)


def is_database(head: bytes) -> bool:
    """Whether a file is an SQLite database: what `nsys export --type sqlite` writes."""
    return head.startswith(b"SQLite format 3\0")


def _parse(text: str, context: Context) -> list[Observation]:
    """The text of a trace, as of standard input: kept in a file for as long as it is read."""
    with tempfile.TemporaryDirectory(prefix="gpudiag-") as folder:
        name = Path(context.source).name if context.source not in ("-", "") else "trace.json"
        path = Path(folder) / (name or "trace.json")
        path.write_text(text, encoding="utf-8", errors="surrogatepass")
        return files([str(path)])


FORMAT = DocumentFormat(
    name="torch-trace", title="torch.profiler trace", revision=1, provides=FACTS, sniff=sniff, parse=_parse, files=files,
    binary=is_database,
)  # fmt: skip
