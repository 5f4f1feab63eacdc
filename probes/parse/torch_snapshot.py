"""Memory snapshots of PyTorch (``torch.cuda.memory._dump_snapshot``), pickled or as JSON, among other inputs.

A pickle is read without running anything of it (`probes.trace.allocator.pickled`).
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from knowledge.observation import Observation
from probes.base import Context, DocumentFormat, Progress
from probes.parse._by_path import each, from_text
from probes.parse.torch_trace import Lost

# {"segments": [{"device": 0, "address": ... ; {"device_traces": [[...
_KEYS = re.compile(r'\s{0,40}\{\s{0,40}"(?:segments|device_traces)"\s{0,20}:')


def sniff(head: str) -> int:
    """How sure it is that this is the beginning of a snapshot in JSON."""
    return 90 if _KEYS.match(head) and '"traceEvents"' not in head else 0


def is_pickle(head: bytes) -> bool:
    """Whether these are the first bytes of a pickled snapshot."""
    if not re.match(rb"\x80[\x02-\x05]", head):
        return False
    from probes.trace.allocator.snapshot import looks_like

    return looks_like(head)


def files(paths: Sequence[str], _progress: Progress | None = None, lost: Lost = lambda *_: None) -> list[Observation]:
    """What the snapshots tell of the allocator, one file a rank."""
    from probes.trace.allocator.snapshot import read_snapshot
    from probes.trace.verdict.snapshot_facts import memory_observations

    return each(paths, lambda path: memory_observations(path, read_snapshot(path)), lost)


def _parse(text: str, context: Context) -> list[Observation]:
    return from_text(text, context, "snapshot.json", files)


FORMAT = DocumentFormat(
    name="torch-memory-snapshot", title="torch memory snapshot", revision=1,
    provides=("trace.allocator.peak", "trace.allocator.fragmentation"), sniff=sniff, parse=_parse, files=files,
    binary=is_pickle,
)  # fmt: skip
