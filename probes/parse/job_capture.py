"""Captures from running jobs, ``capture.json``: by path where their traces lie beside them, by text where they do not."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from knowledge.observation import Observation
from probes.base import Context, DocumentFormat, Progress
from probes.capture.model import SCHEMA
from probes.capture.provides import FACTS
from probes.parse import _host_snapshot as shared
from probes.parse._by_path import each
from probes.parse.torch_trace import Lost

NAME, REVISION = "capture-snapshot", 1  # nobody has one lying about: named behind all else that tells a fact


def sniff(head: str) -> int:
    """100 on the schema."""
    return shared.sniff(head, SCHEMA)


def parse(text: str, context: Context) -> list[Observation]:
    """What a capture tells without the traces beside it. Nothing for text that is none."""
    from knowledge.errors import InputError
    from probes.capture import facts, manifest

    try:
        document = manifest.parsed(text, context.source)
    except InputError:
        return []
    return facts.observations(document, None, context.host, context.source)


def files(paths: Sequence[str], progress: Progress | None = None, lost: Lost = lambda *_: None) -> list[Observation]:
    """The same of files, each with its traces."""
    del progress
    return each(paths, _of, lost)


def _of(path: str) -> list[Observation]:
    from probes.capture import facts, manifest

    place = Path(path)
    return facts.observations(manifest.read(place), place.parent, source=path)


FORMAT = DocumentFormat(
    name=NAME, title="capture of a running job (gpudiag profile)", revision=REVISION, provides=FACTS, sniff=sniff, parse=parse,
    files=files,
)  # fmt: skip
