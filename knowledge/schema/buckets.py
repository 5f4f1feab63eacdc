"""Shape of ``knowledge/data/buckets.yaml``."""

from __future__ import annotations

from typing import Literal

from knowledge.schema import Strict, Words


class Entry(Strict):
    """What one action word means in practice."""

    name: str
    text: Words
    until: Words | None = None
    command: str = ""
    risk: Literal["safe", "disruptive", "destructive"]
    usable: Literal["yes", "not_yet", "no"]
    mends: Literal["program", "machine"] = "machine"
    strength: int
    cured_by: list[Literal["reset", "reload", "reboot", "replace"]] | None = None
    runbook: str = ""
    source: str
