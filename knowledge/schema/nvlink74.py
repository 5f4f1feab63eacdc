"""Shape of ``knowledge/data/nvlink74.yaml``."""

from __future__ import annotations

from typing import Self

from pydantic import Field, model_validator

from knowledge.catalog.decode_nvlink74 import Certainty, LinkClass
from knowledge.schema import Strict, Words


class Entry(Strict):
    """Bits of one register that mean the same; see `knowledge.catalog.decode_nvlink74.BitGroup`."""

    id: str
    register_: int = Field(ge=1, le=7, alias="register")
    bits: list[int] = Field(min_length=1)
    class_: LinkClass = Field(strict=False, alias="class")
    certainty: Certainty = Field(strict=False)
    meaning: Words
    do: Words

    @model_validator(mode="after")
    def _bits(self) -> Self:
        if any(not 0 <= bit <= 31 for bit in self.bits) or len(set(self.bits)) != len(self.bits):
            raise ValueError("bits are different numbers from 0 to 31")
        if self.class_ is LinkClass.UNKNOWN:
            raise ValueError("unknown is for bits that are not listed")
        return self
