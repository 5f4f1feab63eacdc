"""Shape of ``knowledge/data/waits.yaml``: what a thread off the CPU waits for, told by the kernel's functions."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, field_validator

from knowledge.schema import Strict
from knowledge.schema.glossary import Bilingual

Name = Annotated[str, Field(pattern=r"^[a-z]+(_[a-z]+)*$")]
Function = Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]*\*?$")]  # of the kernel; "nfs_*": all that begin so


class Entry(Strict):
    """See `knowledge.waits.Wait`."""

    id: Name
    title: Bilingual  # a phrase behind "the thread is off the CPU": "waiting for NFS"
    rank: Annotated[int, Field(ge=0, le=100)]
    functions: list[Function] = []

    @field_validator("functions")
    @classmethod
    def _once(cls, functions: list[str]) -> list[str]:
        if len(set(functions)) != len(functions):
            raise ValueError("a function stands twice in one list")
        return functions
