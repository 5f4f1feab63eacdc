"""Shape of ``knowledge/data/dcgm_fields/*.yaml``."""

from __future__ import annotations

from typing import Literal, Self

from pydantic import Field, model_validator

from knowledge.schema import Strict
from knowledge.schema.glossary import Bilingual, Line, Sourced


class Alias(Strict):
    """Another name of the same field."""

    name: str = Field(pattern=r"^[A-Za-z0-9_{}]+$")
    versions: Line


class Entry(Sourced):
    """One field, or one field for each n of a name with ``{n}``; see `knowledge.catalog.dcgm.DcgmField`."""

    name: str = Field(pattern=r"^DCGM_(FI|EXP)_[A-Z0-9_{}n]+$")
    id: int | None = Field(default=None, ge=1, lt=2000)
    ids: list[int] = []
    meaning: Bilingual
    unit: Literal["", "C", "W", "MHz", "MiB", "MB/s", "KB/s", "B/s", "B", "mJ", "ns", "ms", "s", "percent", "ratio",
                  "count", "cycles", "bool", "bitmask"] = ""  # fmt: skip
    kind: Literal["gauge", "counter", "label"]
    entity: Literal["gpu", "node", "vgpu", "link", "nvswitch", "cpu", "nic"] = "gpu"
    exported_by_default: bool
    listed_but_off: bool = False
    aliases: list[Alias] = []
    traps: Bilingual | None = None
    since: str = ""

    @model_validator(mode="after")
    def _numbered(self) -> Self:
        numbered = "{n}" in self.name
        if numbered != bool(self.ids):
            raise ValueError("a name with {n} has ids, any other has not")
        if self.name.startswith("DCGM_EXP_") != (self.id is None and not self.ids):
            raise ValueError("a field has an id; what the exporter computes itself has none")
        if any("{n}" in a.name for a in self.aliases) and not numbered:
            raise ValueError("an alias has {n} only when the name has it")
        if self.exported_by_default and self.listed_but_off:
            raise ValueError("a field cannot be exported and commented out")
        return self
