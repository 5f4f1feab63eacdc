"""XID 74: what the seven registers of an NVLink line (generations 2 to 4) mean.

NVIDIA publishes the meaning of single bits (WORKFLOW_NVLINK_ERR) and calls the first, third, fourth
and fifth register valid for Hopper. Bits that it does not list are reported as unknown, never read.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum
from functools import cache

from knowledge.language import Text
from knowledge.record import dataclass

REGISTERS = 7


class LinkClass(StrEnum):
    """What a set bit calls for, weakest first."""

    IGNORE = "ignore"
    ECC_THRESHOLD = "ecc_threshold"  # corrected errors passed a threshold: go on
    SYMPATHETIC = "sympathetic"  # follows another error
    SYMPATHETIC_RESET = "sympathetic_reset"  # the same, and the fabric needs a reset
    REPORT_REPEATED = "report_repeated"
    FIELD_DIAG_REPEATED = "field_diag_repeated"
    UNKNOWN = "unknown"  # a bit that NVIDIA does not list: report it
    SIGNAL_INTEGRITY = "signal_integrity"
    MECHANICAL = "mechanical"
    ECC_PARITY = "ecc_parity"
    NOT_EXPECTED = "not_expected"

    @property
    def rank(self) -> int:
        """0 for the weakest."""
        return list(LinkClass).index(self)


class Certainty(StrEnum):
    """For which GPUs NVIDIA's text gives the meaning."""

    HOPPER = "hopper"  # in the workflow written for Hopper
    ALL = "all"  # also in the earlier text, which names no architecture
    NONE = "none"  # not published


@dataclass(frozen=True, slots=True)
class BitGroup:
    """Bits of one register that mean the same."""

    link_class: LinkClass
    certainty: Certainty
    meaning: Text
    do: Text


@dataclass(frozen=True, slots=True)
class SetBit:
    """One set bit of a line."""

    register: int  # 1 is the first word of the line
    bit: int  # 0 is the lowest
    group: BitGroup


@dataclass(frozen=True, slots=True)
class NvLink74Decode:
    """The set bits of a line, by register and bit."""

    bits: tuple[SetBit, ...]

    def of(self, register: int) -> tuple[int, ...]:
        """Numbers of the set bits of one register."""
        return tuple(b.bit for b in self.bits if b.register == register)

    @property
    def unknown(self) -> tuple[SetBit, ...]:
        """Set bits whose meaning NVIDIA has not published."""
        return tuple(b for b in self.bits if b.group.link_class is LinkClass.UNKNOWN)

    @property
    def link_class(self) -> LinkClass | None:
        """The strongest class among the set bits; None when no bit is set."""
        return max((b.group.link_class for b in self.bits), key=lambda c: c.rank, default=None)


_UNLISTED = BitGroup(
    LinkClass.UNKNOWN,
    Certainty.NONE,
    Text("not published by NVIDIA", "NVIDIA 未公布含义"),
    Text("Report it to NVIDIA.", "上报 NVIDIA。"),
)


@cache
def bit_groups() -> Mapping[tuple[int, int], BitGroup]:
    """(register, bit) -> what NVIDIA says about it."""
    from knowledge.compiled import shard

    out = {}
    for data in shard("nvlink74"):
        group = BitGroup(
            LinkClass(data["class"]), Certainty(data["certainty"]), Text.of(data["meaning"]), Text.of(data["do"])
        )
        out.update({(data["register"], bit): group for bit in data["bits"]})
    return out


def decode_nvlink74(registers: Sequence[int]) -> NvLink74Decode:
    """The set bits of the registers of one line, the first word first (at most seven, 32 bits each)."""
    known = bit_groups()
    return NvLink74Decode(
        tuple(
            SetBit(number, bit, known.get((number, bit), _UNLISTED))
            for number, word in enumerate(registers[:REGISTERS], 1)
            for bit in range(32)
            if word >> bit & 1
        )
    )
