"""What a report is made of."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

from knowledge.record import dataclass

if TYPE_CHECKING:
    from assistant.diagnosis import Diagnosis
    from probes.trace.breakdown.timeline import Timeline
    from probes.trace.breakdown.utilisation import HeatRow
    from probes.trace.model import (
        Diff,
        Iterations,
        KernelStat,
        MemoryUse,
        OpStat,
        Ranks,
        RankSummary,
        Roofline,
    )


class Digest(Protocol):
    """One rank's numbers (``probes.trace.verdict.digest``), as far as the report reads them."""

    @property
    def summary(self) -> RankSummary:
        """The temporal breakdown."""

    @property
    def iterations(self) -> Iterations | None:
        """Its iterations; None when they were not asked for."""

    @property
    def roofline(self) -> Roofline | None:
        """GEMMs and attention."""

    @property
    def memory(self) -> Sequence[MemoryUse]:
        """The allocators."""


@dataclass(frozen=True, slots=True)
class Flame:
    """A call tree laid out: frame i covers [x0, x0 + width) of `total_ns` at depth[i]; parents stand before children."""

    time: str  # gpu, cpu; stacks: sampled from outside
    depth: Sequence[int]
    x0: Sequence[int]
    width: Sequence[int]
    name: Sequence[int]  # in names
    kind: Sequence[int]  # 0 Python, 1 operator, 2 runtime call, 3 kernel, 4 other, 5 communication, 6 copy or set
    names: Sequence[str]
    total_ns: int
    lost_ns: int = 0  # in frames that were too narrow to keep
    least: float = 0.0  # share of the whole below which they were
    whose: str = ""  # where there are several


@dataclass(frozen=True, slots=True)
class Inputs:
    """Everything on the page. Whatever is empty leaves its section out."""

    digests: Sequence[Digest]
    diagnosis: Diagnosis
    ranks: Ranks | None = None
    diff: Diff | None = None
    flames: Sequence[Flame] = ()
    timeline: Timeline | None = None
    heat: Sequence[HeatRow] = ()  # streams of one trace
    rank_heat: Sequence[HeatRow] = ()
    kernels: Sequence[KernelStat] = ()
    ops: Sequence[OpStat] = ()
    lang: str = "en"
    title: str = ""
    files: Sequence[str] = ()  # as they were given: the commands name them
    above: Sequence[str] = ()  # sections of the caller's own, as HTML: they stand behind the findings
    kicker: str = ""  # what kind of page it is; empty: a trace report
    about: str = ""  # whose timeline, stacks, kernels and operators these are, where there are several traces

    @property
    def single(self) -> bool:
        """One trace: nothing on the page needs to say of which it is."""
        return len(self.digests) == 1

    @property
    def by_rank(self) -> list[Digest]:
        """In order of ranks; the first of `digests` is the one that is shown in detail."""
        return sorted(self.digests, key=lambda d: (d.summary.rank is None, d.summary.rank or 0))


def name_of(summary: RankSummary, lang: str) -> str:
    """A rank by its number, else by its file."""
    from pathlib import PurePath

    from knowledge.text import excerpt

    if summary.rank is not None:
        return f"rank {summary.rank}"
    return excerpt(PurePath(summary.file).name, 40) or ("trace" if lang != "zh" else "轨迹")
