"""Formats that are read by path, file by file: one that cannot be read is lost, the others are not."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from knowledge.errors import GpudiagError
from knowledge.language import Text
from knowledge.observation import Observation
from probes.base import Context
from probes.parse.torch_trace import Lost


def each(paths: Sequence[str], read: Callable[[str], Iterable[Observation]], lost: Lost) -> list[Observation]:
    """What `read` makes of each file; a fault of one is told to `lost`."""
    out: list[Observation] = []
    for path in paths:
        try:
            out += read(path)
        except GpudiagError as fault:
            lost(path, Text(fault.message, fault.message))
    return out


def from_text(
    text: str, context: Context, name: str, files: Callable[[list[str]], list[Observation]]
) -> list[Observation]:
    """`files` of a text that stands in no file of its own; `name` where the source has none."""
    with tempfile.TemporaryDirectory(prefix="gpudiag-") as folder:
        path = Path(folder) / (Path(context.source).name.strip("-") or name)
        path.write_text(text, encoding="utf-8", errors="surrogatepass")
        return files([str(path)])
