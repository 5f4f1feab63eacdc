"""Shape of ``knowledge/data/dcgm_errors.yaml``."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, field_validator

from knowledge.schema.glossary import Bilingual, Sourced
from knowledge.schema.nccl import known_bucket


class Entry(Sourced):
    """One DCGM_FR_* code; see `knowledge.catalog.dcgm.DcgmError`."""

    name: str = Field(pattern=r"^(DCGM_FR_|GPU_)[A-Z0-9_]+$")
    code: int | None = Field(default=None, ge=0)
    alias_of: str = ""
    meaning: Bilingual
    severity: Literal["unknown", "monitor", "isolate", "triage", "config", "reset"]
    category: str = Field(pattern=r"^(none|(perf|software|hardware|internal)_[a-z]+)$")
    action: Literal["", "NONE", "COMPONENT_RESET", "RESTART_VM", "RESTART_BM", "CONTACT_SUPPORT"] = ""
    bucket: str
    step: Bilingual | None = None
    command: str = ""

    _bucket = field_validator("bucket")(known_bucket)
