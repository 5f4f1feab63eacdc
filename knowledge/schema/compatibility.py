"""Shape of ``knowledge/data/compatibility.yaml``."""

from __future__ import annotations

from typing import Literal, Self

from pydantic import Field, model_validator

from knowledge.schema.glossary import Sourced

_VERSION = r"^\d{1,4}(\.\d{1,4}){0,3}$"


class Entry(Sourced):
    """One row; see `knowledge.compatibility`."""

    id: str = Field(pattern=r"^(cuda|branch|cc)-[0-9.]+$")
    kind: Literal["cuda", "branch", "architecture"]
    version: str = Field(pattern=_VERSION)
    driver: str | None = Field(default=None, pattern=_VERSION)
    cuda: str | None = Field(default=None, pattern=_VERSION)
    end: str | None = Field(default=None, pattern=r"^\d{4}-\d\d-\d\d$")
    open: bool = False

    @model_validator(mode="after")
    def _fits_its_kind(self) -> Self:
        wanted = {"cuda": (True, False, False), "branch": (False, False, True), "architecture": (True, True, False)}
        if tuple(v is not None for v in (self.driver, self.cuda, self.end)) != wanted[self.kind]:
            raise ValueError("a cuda row has a driver, a branch an end, an architecture a driver and cuda")
        return self
