"""Kernel logs of every kind, with what happened, why and what to do: kernel_cases.yaml."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from knowledge.identity import normalise_pci


@dataclass(frozen=True)
class Case:
    """One entry of kernel_cases.yaml."""

    id: str
    shape: str
    log: str
    events: Mapping[str, Sequence[int]]
    root: Mapping[str, Any] | None
    action: str = ""
    others: Sequence[Sequence[Any]] = ()
    symptoms: Sequence[str] = ()
    quiet: bool = False

    @property
    def printed(self) -> set[tuple[str, int | None]]:
        """Every XID of the log, by GPU."""
        return {(normalise_pci(pci), code) for pci, codes in self.events.items() for code in codes}


@cache
def cases() -> tuple[Case, ...]:
    """Every entry."""
    text = Path(__file__).with_name("kernel_cases.yaml").read_text(encoding="utf-8")
    return tuple(Case(**entry) for entry in yaml.load(text, getattr(yaml, "CSafeLoader", yaml.SafeLoader)))
