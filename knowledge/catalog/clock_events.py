"""Clock event reasons ("throttle reasons"): what holds a GPU's clocks down, and whether that is a fault."""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import StrEnum
from functools import cache
from typing import Any

from knowledge.catalog.cuda import Disagreement
from knowledge.language import Text
from knowledge.record import dataclass


class Fault(StrEnum):
    """Whether the reason tells of a fault."""

    NO = "no"
    DEPENDS = "depends"  # see `fault_when`
    YES = "yes"


@dataclass(frozen=True, slots=True)
class ClockEvent:
    """One bit of the mask that NVML, DCGM and nvidia-smi print."""

    id: str  # hw_power_brake_slowdown
    bit: int
    label: str  # in nvidia-smi -q
    names: tuple[str, ...]  # every name, old and new: NVML, --query-gpu, XML, labels
    meaning: Text
    fault: Fault
    fault_when: Text
    check: Text
    bucket: str  # a word of data/buckets.yaml
    sources: tuple[str, ...] = ()
    disagrees: tuple[Disagreement, ...] = ()

    @classmethod
    def from_plain(cls, data: Mapping[str, Any]) -> ClockEvent:
        """From checked YAML."""
        keys = ("label", "nvml", "nvml_old", "smi", "smi_old", "xml", "xml_old")
        names = [data["id"], *(data[k] for k in keys if data.get(k)), *data.get("other_labels", ())]
        return cls(
            id=data["id"], bit=data["bit"], label=data["label"], names=tuple(dict.fromkeys(names)),
            meaning=Text.of(data["meaning"]), fault=Fault(data["fault"]), fault_when=Text.of(data["fault_when"]),
            check=Text.of(data["check"]), bucket=data["bucket"], sources=tuple(data["sources"]),
            disagrees=Disagreement.all_of(data),
        )  # fmt: skip


@cache
def all_events() -> tuple[ClockEvent, ...]:
    """Every reason, by bit."""
    from knowledge.compiled import shard

    return tuple(sorted((ClockEvent.from_plain(d) for d in shard("clock_events")), key=lambda e: e.bit))


def decode(mask: int) -> tuple[tuple[ClockEvent, ...], int]:
    """The reasons set in `mask`, and the bits that no reason is known for. A negative mask holds none."""
    if mask < 0:
        return (), 0
    found = tuple(e for e in all_events() if e.bit & mask)
    return found, mask & ~sum(e.bit for e in found)


def find(name: str) -> ClockEvent | None:
    """The reason called `name` by NVML, nvidia-smi (either age) or its bit (``0x80``, ``128``); else None."""
    number = re.fullmatch(r"(0x[0-9a-f]{1,16})|([0-9]{1,6})", name.strip().lower(), re.ASCII)
    if number:
        bit = int(number[1], 16) if number[1] else int(number[2])
        return next((e for e in all_events() if e.bit == bit), None)
    return _by_name().get(_plain(name))


@cache
def _by_name() -> Mapping[str, ClockEvent]:
    return {_plain(name): e for e in all_events() for name in e.names}


def _plain(name: str) -> str:
    return re.sub(r"[\s_.]+", " ", name).strip().casefold()
