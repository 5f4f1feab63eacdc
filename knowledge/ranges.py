"""What is a good value: bands of measures such as MFU, temperature or PCIe bandwidth, with their sources."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from functools import cache
from typing import Any

from knowledge.compiled import shard
from knowledge.language import NO_TEXT, Text
from knowledge.record import dataclass
from knowledge.workloads import GENERAL, Workload


@dataclass(frozen=True, slots=True)
class Band:
    """Values from `low` (included) to `high` (not included); None where it is open."""

    low: float | None
    high: float | None
    rating: str  # good, fair, poor, bad; open: the value alone does not tell
    text: Text
    cases: Mapping[str, tuple[str, Text]] = field(default_factory=dict)  # rating and text for a kind of work, by its id

    def holds(self, value: float) -> bool:
        """Whether `value` lies in it."""
        return (self.low is None or value >= self.low) and (self.high is None or value < self.high)

    def among(self, kinds: Sequence[Workload]) -> tuple[Band, Workload | None]:
        """The band with what it is for the first of the kinds of work of which something is said, and that kind."""
        for kind in kinds:
            case = self.cases.get(kind.id) or self.cases.get(GENERAL.get(kind.id, ""))
            if case is not None:
                return replace(self, rating=case[0], text=case[1]), kind
        return self, None


@dataclass(frozen=True, slots=True)
class Range:
    """One measure. Bands, rows of what is normal in which case, or both."""

    id: str
    title: Text
    unit: str
    aliases: tuple[str, ...]
    about: Text
    depends: Text = NO_TEXT  # on what it depends, where bands alone would mislead
    bands: tuple[Band, ...] = ()
    rows: tuple[tuple[str, str], ...] = ()  # case, value
    shown_by: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()

    def band(self, value: float) -> Band | None:
        """Where `value` (in `unit`) lies; None when the measure has no bands, or for what is no number."""
        return next((b for b in self.bands if b.holds(value)), None)


@cache
def ranges() -> Mapping[str, Range]:
    """All measures by id. FaultsError when the data has faults."""
    return {d["id"]: _of(d) for d in shard("ranges")}


def _of(d: Mapping[str, Any]) -> Range:
    return Range(
        id=d["id"], title=Text.of(d["title"]), unit=d["unit"],
        aliases=(*d["aliases"]["en"], *d["aliases"]["zh"]), about=Text.of(d["about"]), depends=Text.of(d.get("depends")),
        bands=tuple(
            Band(b.get("from"), b.get("below"), b["rating"], Text.of(b["text"]),
                 {kind: (c["rating"], Text.of(c["text"])) for kind, c in (b.get("for") or {}).items()})
            for b in d.get("bands", ())
        ),
        rows=tuple((r["case"], r["value"]) for r in d.get("rows", ())),
        shown_by=tuple(d.get("shown_by", ())), sources=tuple(d["sources"]),
    )  # fmt: skip
