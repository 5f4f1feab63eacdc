"""Shape of ``knowledge/data/compatibility.yaml``."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from knowledge.schema.glossary import Sourced

_VERSION = r"^\d{1,4}(\.\d{1,4}){0,3}$"
_Arch = Annotated[str, Field(pattern=r"^(sm|compute)_\d{2,3}[af]?$")]
_NEEDS = {  # what a row of each kind has to have, besides its version
    "cuda": {"driver"},
    "branch": {"end"},
    "architecture": {"driver", "cuda"},
    "dcgm": {"driver"},
    "plugin": {"driver", "toolkit"},
    "torch": {"cuda", "architectures"},
}
_MAY = {"architecture": {"dcgm"}}


class Entry(Sourced):
    """One row; see `knowledge.compatibility`."""

    id: str = Field(pattern=r"^(cuda|branch|cc|dcgm|plugin|torch)-[0-9a-z.-]+$")
    kind: Literal["cuda", "branch", "architecture", "dcgm", "plugin", "torch"]
    version: str = Field(pattern=_VERSION)
    driver: str | None = Field(default=None, pattern=_VERSION)
    cuda: str | None = Field(default=None, pattern=_VERSION)
    end: str | None = Field(default=None, pattern=r"^\d{4}-\d\d-\d\d$")
    dcgm: str | None = Field(default=None, pattern=_VERSION)
    toolkit: str | None = Field(default=None, pattern=_VERSION)
    architectures: list[_Arch] | None = Field(default=None, min_length=1)
    open: bool = False

    @model_validator(mode="after")
    def _fits_its_kind(self) -> Self:
        names = ("driver", "cuda", "end", "dcgm", "toolkit", "architectures")
        have = {name for name in names if getattr(self, name) is not None}
        wanted = _NEEDS[self.kind]
        if not wanted <= have <= wanted | _MAY.get(self.kind, set()):
            raise ValueError(f"a row of the kind {self.kind} has {', '.join(sorted(wanted))} and nothing else")
        return self
