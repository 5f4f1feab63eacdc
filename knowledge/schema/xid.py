"""Shape of ``knowledge/data/xid/*.yaml``."""

from __future__ import annotations

from typing import Literal, Self

from pydantic import Field, model_validator

from knowledge.catalog.xid import Applies, Area, Immediate, Investigate, Severity, XidRole
from knowledge.schema import Strict, Words

Decode = Literal[
    "", "esr", "mmu", "pbdma", "channel", "previous", "dbe", "pmu", "remap", "class", "nvlink74", "bus", "storm",
    "contained", "ctxsw", "rpc", "gsp", "training", "residual", "init", "nvlink5", "recovery154", "repair",
    "companion", "timeout",
]  # fmt: skip
Cause = Literal["hardware", "driver", "application", "system_memory", "bus", "thermal", "framebuffer"]


class Conflict(Strict):
    """A public source that says otherwise."""

    source: str
    says: Words


class Columns(Strict):
    """NVIDIA's four product columns."""

    a100: Applies = Field(strict=False)
    h100: Applies = Field(strict=False)
    b100: Applies = Field(strict=False)
    gb200: Applies = Field(strict=False)


class Entry(Strict):
    """One XID; see `knowledge.catalog.xid.XidEntry` for the meaning of each key."""

    code: int = Field(ge=1, le=999)
    mnemonic: str
    driver_name: str = ""
    title: Words
    description: Words
    immediate: Immediate = Field(default=Immediate.BLANK, strict=False)
    investigate: Investigate = Field(default=Investigate.BLANK, strict=False)
    applies: Columns
    severity: Severity = Field(strict=False)
    scope: Area = Field(strict=False)
    role: XidRole = Field(strict=False)
    explains: list[int] = []
    explained_by: list[int] = []
    companion_of: int | None = None
    decode: Decode = ""
    recovery_since: Literal["", "R565", "R570", "R575", "introduction"] = ""
    causes: list[Cause] = []
    workflow: list[Words] = []
    confirm: list[Words] = []
    sources: list[str] = Field(min_length=1)
    conflicts: list[Conflict] = []

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if self.code in (*self.explains, *self.explained_by):
            raise ValueError("a code does not explain itself")
        if (self.role is XidRole.COMPANION) != (self.companion_of is not None):
            raise ValueError("role companion goes with companion_of")
        return self
