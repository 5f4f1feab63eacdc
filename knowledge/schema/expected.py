"""Shape of ``knowledge/data/expected.yaml``."""

from __future__ import annotations

from typing import Literal, Self

from pydantic import Field, model_validator

from knowledge.gpus import Certainty
from knowledge.schema.glossary import Bilingual, Line, Sourced


class Entry(Sourced):
    """What one measure of an active test reaches on one kind of hardware; see `knowledge.expected.Expected`."""

    id: str = Field(pattern=r"^[a-z0-9]+(-[a-z0-9]+)*$")
    measure: Literal["host_copy", "peer_copy", "all_reduce", "rdma_share"]
    pcie_generation: int | None = Field(default=None, ge=1, le=8)
    pcie_width: int | None = Field(default=None, ge=1, le=32)
    gpus: list[Line] = []  # ids of gpus.yaml
    ranks: int | None = Field(default=None, ge=2, le=128)
    typical: float = Field(gt=0, strict=False)
    floor: float = Field(gt=0, strict=False)
    certainty: Certainty = Field(strict=False)
    note: Bilingual | None = None

    @model_validator(mode="after")
    def _of_something(self) -> Self:
        if self.floor >= self.typical:
            raise ValueError("the floor lies below what is typical")
        needs = {
            "host_copy": self.pcie_generation and self.pcie_width, "peer_copy": self.gpus,
            "all_reduce": self.gpus and self.ranks, "rdma_share": True,
        }  # fmt: skip
        if not needs[self.measure]:
            raise ValueError(f"{self.measure} does not say of which hardware")
        return self
