"""Shape of ``knowledge/data/workloads.yaml``: what a GPU is at while somebody reads its counters."""

from __future__ import annotations

from pydantic import Field

from knowledge.schema import Strict
from knowledge.schema.glossary import Bilingual
from knowledge.schema.howto import Phrases


class Entry(Strict):
    """See `knowledge.workloads.Workload`."""

    id: str = Field(pattern=r"^[a-z]+(-[a-z]+)*$")
    title: (
        Bilingual  # a phrase behind "for" ("training"), of a phase a clause behind "while" ("a checkpoint is written")
    )
    said: Phrases
    quiet: Bilingual | None = None  # why a GPU is idle there, a clause
