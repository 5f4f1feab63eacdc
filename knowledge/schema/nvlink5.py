"""Shape of ``knowledge/data/nvlink5.yaml``."""

from __future__ import annotations

import re
from typing import Literal, Self

from pydantic import Field, field_validator, model_validator

from knowledge.schema import Strict

_MASK = re.compile(r"[-01]{32}")
Action = Literal["IGNORE", "RESET_GPU", "XID_154_EVAL"]


def _checked(mask: str) -> str:
    if not _MASK.fullmatch(mask):
        raise ValueError("a mask is 32 characters of 0, 1 and -, bit 31 first")
    return mask


class Second(Strict):
    """A mask with an action of its own; it is looked at first."""

    mask_v1: str
    mask_v2: str
    action: Action

    _masks = field_validator("mask_v1", "mask_v2")(_checked)


class Entry(Strict):
    """One row of NVIDIA's decode sheet; see `knowledge.catalog.nvlink5.Row`."""

    id: str
    xid: int = Field(ge=144, le=150)
    unit_v1: str
    unit_v2: str
    mask_v1: str
    mask_v2: str
    status: list[int] = []
    action: Action
    second: Second | None = None
    investigate: Literal[
        "IGNORE", "CONTACT_SUPPORT", "SYMPATHETIC_REPORT_SOLO", "CHECK_NVLINK_FAILURE_FLOW",
        "REPORT_ISSUE (if seen >1 per day)", "INVESTIGATE_LINK_SI", "INVESTIGATE_LINK_SI_AND_CABLES",
        "INVESTIGATE_SW_USER", "INVESTIGATE_SW/USER", "INVESTIGATE_SW_USER_LINK_SI", "INVESTIGATE_PEER_DEVICE",
        "INVESTIGATE_HOST",
    ]  # fmt: skip
    severity: Literal["Non-fatal", "Non-fatal*", "Fatal", "Fatal**", "Link Fatal", "Link Fatal?"]
    origin: Literal["HW", "SW", "HW/SW", "FW", "NA"]
    impact: str

    _masks = field_validator("mask_v1", "mask_v2")(_checked)

    @model_validator(mode="after")
    def _status(self) -> Self:
        if any(not 0 <= s <= 0xFFFFFFFF for s in self.status):
            raise ValueError("a status is a 32-bit number")
        return self
