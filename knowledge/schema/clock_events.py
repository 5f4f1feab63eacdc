"""Shape of ``knowledge/data/clock_events.yaml``."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, field_validator

from knowledge.schema.glossary import Bilingual, Line, Sourced
from knowledge.schema.nccl import known_bucket


class Entry(Sourced):
    """One bit; see `knowledge.catalog.clock_events.ClockEvent`."""

    id: str = Field(pattern=r"^[a-z]+(_[a-z]+)*$")
    bit: int
    label: Line
    other_labels: list[Line] = []
    nvml: str = Field(pattern=r"^nvmlClocksEventReason\w+$")
    nvml_old: str = Field(pattern=r"^nvmlClocksThrottleReason\w+$")
    smi: str = ""
    smi_old: str = ""
    xml: str
    xml_old: str
    meaning: Bilingual
    fault: Literal["no", "depends", "yes"]
    fault_when: Bilingual
    check: Bilingual
    bucket: str

    _bucket = field_validator("bucket")(known_bucket)

    @field_validator("bit")
    @classmethod
    def _one_bit(cls, bit: int) -> int:
        if bit <= 0 or bit & (bit - 1):
            raise ValueError("exactly one bit is set")
        return bit
