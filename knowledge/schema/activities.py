"""Shape of ``knowledge/data/activities.yaml``: what a thread does, told by the frames of its Python stack."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from knowledge.schema import Strict
from knowledge.schema.glossary import Bilingual

Name = Annotated[str, Field(pattern=r"^[a-z]+(_[a-z]+)*$")]
# "torch/optim/" a folder, "torch/_tensor.py" a file, "~/queue.py" of the standard library, "@/PIL/" of an installed package, "<...>" as it is
Place = Annotated[str, Field(pattern=r"^(<[^>]+>|([~@]/)?([A-Za-z0-9_.-]+/)*[A-Za-z0-9_-]+(\.py|/))$")]
Function = Annotated[str, Field(pattern=r"^(<[a-z]+>|[A-Za-z_][A-Za-z0-9_]*\*?)$")]
Call = Annotated[str, Field(pattern=r"^(@|\.?[A-Za-z_][A-Za-z0-9_.]*\*?(\(cpu\))?)$")]


class Frames(Strict):
    """Frames of some files; without functions all of them."""

    files: Annotated[list[Place], Field(min_length=1)]
    functions: list[Function] = []
    calls: list[Call] = []  # only where the frame's own line calls one of these


class Entry(Strict):
    """See `knowledge.activities.Activity`."""

    id: Name
    title: Bilingual  # a phrase behind "the thread is": "waiting for the data loader"
    rank: Annotated[int, Field(ge=0, le=100)]
    claims: Literal["all", "quiet", "leaf", "nothing"]
    blocked: bool = False
    frames: list[Frames] = []
    calls: list[Call] = []
    casts: list[Annotated[str, Field(pattern=r"^[a-z]+$")]] = []

    @model_validator(mode="after")
    def _known_once(self) -> Self:
        for calls in (self.calls, self.casts, *(f.functions for f in self.frames), *(f.files for f in self.frames)):
            if len(set(calls)) != len(calls):
                raise ValueError("something stands twice in one list")
        return self

    @model_validator(mode="after")
    def _narrow(self) -> Self:
        for place in (p for f in self.frames for p in f.files):
            if place[0] not in "<~@" and place.count("/") < (2 if place.endswith("/") else 1):
                raise ValueError(
                    f"{place!r} would fit the program's own files: write '@/{place}' for an installed package"
                )
        return self
