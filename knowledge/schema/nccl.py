"""Shape of ``knowledge/data/nccl/*.yaml``: signatures of NCCL and of PyTorch's NCCL watchdog."""

from __future__ import annotations

from typing import Literal, Self

import re2
from pydantic import Field, field_validator, model_validator

from knowledge.compiled import shard
from knowledge.schema.glossary import Bilingual, Line, Sourced


def known_bucket(name: str) -> str:
    """`name` when it is one of the action words of ``data/buckets.yaml``; ValueError otherwise."""
    names = [b["name"] for b in shard("buckets")]
    if name not in names:
        raise ValueError(f"{name!r} is not an action; allowed: {', '.join(names)}")
    return name


class Entry(Sourced):
    """One signature; see `knowledge.catalog.lookup.Signature` for the meaning of each key."""

    id: str = Field(pattern=r"^[a-z0-9]+(-[a-z0-9]+)*$")
    kind: Literal["signature", "result", "completion"]
    number: int | None = None
    symbol: str = ""
    pattern: Line
    when: str = ""
    sample: str = Field(min_length=1)
    near_miss: str = Field(min_length=1)
    title: Bilingual
    cause: Bilingual
    check: Bilingual
    bucket: str
    environment: list[Line] = []
    broader: bool = False
    overlaps: list[str] = []

    _bucket = field_validator("bucket")(known_bucket)

    @field_validator("pattern")
    @classmethod
    def _pattern(cls, pattern: str) -> str:
        try:
            re2.compile(pattern)
        except re2.error as error:
            raise ValueError(f"not an RE2 pattern: {error}") from error
        return pattern

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if (self.kind == "signature") != (self.number is None):
            raise ValueError("results and completion states carry a number, signatures do not")
        if self.id in self.overlaps:
            raise ValueError("an entry does not overlap with itself")
        return self
