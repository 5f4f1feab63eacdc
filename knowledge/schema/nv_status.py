"""Shape of ``knowledge/data/nv_status.yaml``: the status numbers that NVIDIA's driver prints."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from knowledge.schema import Strict
from knowledge.schema.glossary import Bilingual


class Entry(Strict):
    """See `knowledge.catalog.nv_status.NvStatus`."""

    code: Annotated[int, Field(ge=1, le=0xFFFF)]
    name: Annotated[str, Field(pattern=r"^NV_ERR_[A-Z0-9_]+$")]
    title: Bilingual | None = None
    grave: bool = False
