"""Shapes of the data files: one module a shard, each with a pydantic model called `Entry`.

Only loading from YAML imports these modules; a compiled shard was checked when it was made.
"""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class Strict(BaseModel):
    """No unknown keys, no silent conversions."""

    model_config = ConfigDict(extra="forbid", strict=True)


class Words(Strict):
    """A sentence in both languages; the shipped data leaves neither empty."""

    en: str
    zh: str
