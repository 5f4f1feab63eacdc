"""Shape of ``knowledge/data/known_issues/*.yaml``: faults of versions of software, as vendors and operators wrote of them."""

from __future__ import annotations

import re
from typing import Annotated, Literal, Self

from pydantic import Field, field_validator, model_validator

from knowledge.schema import Strict
from knowledge.schema.glossary import Bilingual

Version = Annotated[str, Field(pattern=r"^\d{1,5}(\.\d{1,5}){0,3}$")]


class Entry(Strict):
    """See `knowledge.known_issues.KnownIssue`."""

    id: Annotated[str, Field(pattern=r"^[a-z0-9]+([.-][a-z0-9]+)*$")]
    component: Literal["driver", "nccl", "dcgm", "fabric_manager", "cuda"]
    since: Version | None = None
    until: Version | None = None
    fixed_in: list[Version] = []
    gpus: str = ""
    words: str = ""
    rules: Annotated[list[str], Field(min_length=1)]
    codes: list[int] = []
    symptom: Bilingual  # a phrase behind "known issue of NCCL 2.18.1": "a hang of ..."
    workaround: Bilingual | None = None
    source: Annotated[str, Field(pattern=r"^https://\S+$")]

    @field_validator("gpus")
    @classmethod
    def _pattern(cls, text: str) -> str:
        re.compile(text)
        return text

    @model_validator(mode="after")
    def _bounded(self) -> Self:
        if not self.fixed_in and not self.until:
            raise ValueError("neither fixed_in nor until: it would be said of every version to come")
        return self
