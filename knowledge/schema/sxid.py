"""Shape of ``knowledge/data/sxid/*.yaml``."""

from __future__ import annotations

from typing import Annotated, Self

from pydantic import Field, model_validator

from knowledge.catalog.sxid import DriverSeverity, GuideSeverity, Recovery, Unit
from knowledge.schema import Strict, Words
from knowledge.schema.xid import Conflict

Word = Annotated[DriverSeverity, Field(strict=False)]


class Chips(Strict):
    """What the driver reports on each chip; several words where it depends on the instance."""

    lr10: list[Word] = []
    ls10: list[Word] = []


class Entry(Strict):
    """One SXid; see `knowledge.catalog.sxid.SxidEntry` for the meaning of each key."""

    code: int = Field(ge=10000, le=99999)
    mnemonic: str
    unit: Unit = Field(strict=False)
    guide_name: str = ""
    text: str = ""
    severity_guide: GuideSeverity = Field(default=GuideSeverity.BLANK, strict=False)
    severity_driver: Chips = Chips()
    device_fatal: bool = False
    always_fatal: bool = False
    recovery: Recovery = Field(default=Recovery.BLANK, strict=False)
    title: Words
    conflicts: list[Conflict] = []

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if self.always_fatal != (self.severity_guide is GuideSeverity.ALWAYS_FATAL):
            raise ValueError("always_fatal goes with severity_guide always_fatal")
        return self
