"""Shape of ``knowledge/data/tasks.yaml``: the verbs and things by which tasks are asked for, and ways to ask for advice."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from knowledge.schema import Strict
from knowledge.schema.howto import Phrases


class Entry(Strict):
    """See `knowledge.howto.spoken`."""

    id: str = Field(pattern=r"^[a-z0-9]+(-[a-z0-9]+)*$")
    kind: Literal["verb", "thing", "ask"]
    said: Phrases
