"""What a report of Nsight Compute says of one launch, as plain values."""

from __future__ import annotations

from enum import StrEnum
from math import prod

from knowledge.language import Text
from knowledge.record import dataclass


class Bound(StrEnum):
    """What holds a launch back (Nsight Compute's rule SOLBottleneck: 60 % of a peak, 10 points between the two)."""

    COMPUTE = "compute"
    MEMORY = "memory"
    BALANCED = "balanced"
    LATENCY = "latency"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Stall:
    """Why warps did not issue. Shares of one launch or line add up to at most 1: the rest was issued."""

    reason: str  # long_scoreboard, barrier, ...: ncu's word
    share: float  # of the samples, or of the cycles between two instructions of a warp
    samples: int | None = None


@dataclass(frozen=True, slots=True)
class SourceLine:
    """A line of source, or an instruction where the report holds no lines."""

    file: str
    line: int | None
    address: str
    text: str
    samples: int
    share: float  # of the launch's samples
    stalls: tuple[Stall, ...]


@dataclass(frozen=True, slots=True)
class Advice:
    """A change of the launch, by a short name for programs."""

    code: str
    text: Text


@dataclass(frozen=True, slots=True)
class KernelProfile:
    """One launch. Percentages are of the peak, 0 to 100, as ncu gives them."""

    id: str
    name: str
    device: str
    grid: tuple[int, ...] | None
    block: tuple[int, ...] | None
    duration_ns: float | None
    compute_pct: float | None  # SM throughput
    memory_pct: float | None  # the busiest part of the memory system
    dram_pct: float | None
    l1_pct: float | None
    l2_pct: float | None
    tensor_pct: float | None  # tensor pipe active: the proof that tensor cores are used
    occupancy_theoretical_pct: float | None
    occupancy_achieved_pct: float | None
    limits: dict[str, int]  # registers, shared memory, blocks, warps, barriers -> blocks per SM that fit
    limiters: tuple[str, ...]  # those with the least; more than one may bind
    registers: int | None  # per thread
    shared_bytes: int | None  # per block, static and dynamic
    waves: float | None  # blocks of the grid / blocks that the GPU holds at once
    sms: int | None
    bound: Bound
    stalls: tuple[Stall, ...]  # the greatest first
    lines: tuple[SourceLine, ...]  # the most sampled first
    advice: tuple[Advice, ...] = ()
    rules: tuple[str, ...] = ()  # ncu's own words

    @property
    def threads(self) -> int | None:
        """Threads of a block."""
        return prod(self.block) if self.block else None

    @property
    def blocks(self) -> int | None:
        """Blocks of the grid."""
        return prod(self.grid) if self.grid else None
