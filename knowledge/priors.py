"""Published causes of failure: used to order hypotheses that the evidence leaves equal, never to decide one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import StrEnum
from functools import cache
from typing import Any

from knowledge.catalog.cuda import Disagreement
from knowledge.language import Text
from knowledge.record import dataclass

# The only publication whose causes are root causes, counted, from one large fleet.
REFERENCE = "meta-llama3-405b"


class CauseClass(StrEnum):
    """What kind of thing failed."""

    GPU = "gpu"
    MEMORY = "memory"  # of the GPU
    NETWORK = "network"
    SOFTWARE = "software"
    HOST = "host"
    STORAGE = "storage"
    POWER = "power"
    COOLING = "cooling"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Cause:
    """One cause of a publication; `value` in the publication's unit."""

    id: str
    label: Text
    value: float
    cls: CauseClass


@dataclass(frozen=True, slots=True)
class Figure:
    """One number of a publication."""

    id: str
    value: float
    unit: str
    text: Text


@dataclass(frozen=True, slots=True)
class Publication:
    """What one source reports about one fleet."""

    id: str
    title: Text
    fleet: Text
    unit: str  # of the causes: count or percent; rate: figures only
    certainty: str  # read, or memory
    days: int | None = None
    gpus: int | None = None
    total: float | None = None
    causes: tuple[Cause, ...] = ()
    figures: tuple[Figure, ...] = ()
    note: Text | None = None
    sources: tuple[str, ...] = ()
    disagrees: tuple[Disagreement, ...] = ()

    @classmethod
    def from_plain(cls, data: Mapping[str, Any]) -> Publication:
        """From checked YAML."""
        note = data.get("note")
        return cls(
            id=data["id"], title=Text.of(data["title"]), fleet=Text.of(data["fleet"]), unit=data["unit"],
            certainty=data["certainty"], days=data.get("days"), gpus=data.get("gpus"), total=data.get("total"),
            causes=tuple(
                Cause(c["id"], Text.of(c["label"]), float(c["value"]), CauseClass(c["class"]))
                for c in data.get("causes", ())
            ),
            figures=tuple(
                Figure(f["id"], float(f["value"]), f["unit"], Text.of(f["text"])) for f in data.get("figures", ())
            ),
            note=Text.of(note) if note else None, sources=tuple(data["sources"]), disagrees=Disagreement.all_of(data),
        )  # fmt: skip

    def share(self, cause: str) -> float | None:
        """Share of one cause, 0 to 1, from the values and not from printed percentages; None when not listed."""
        found = next((c for c in self.causes if c.id == cause), None)
        return found.value / self._sum() if found else None

    def class_shares(self) -> dict[CauseClass, float]:
        """Shares by class, 0 to 1, largest first; they add up to 1."""
        total = self._sum()
        sums = {c: sum(x.value for x in self.causes if x.cls is c) for c in CauseClass}
        return {c: v / total for c, v in sorted(sums.items(), key=lambda item: (-item[1], item[0])) if v}

    def figure(self, identifier: str) -> Figure | None:
        """The figure called `identifier`."""
        return next((f for f in self.figures if f.id == identifier), None)

    def _sum(self) -> float:
        return sum(c.value for c in self.causes)


@cache
def publications() -> Mapping[str, Publication]:
    """All publications by id."""
    from knowledge.compiled import shard

    return {d["id"]: Publication.from_plain(d) for d in shard("priors")}


def order(classes: Iterable[CauseClass]) -> list[CauseClass]:
    """`classes` by their share in the reference fleet, most frequent first; what it does not list comes last.

    The shares are Meta's (16,384 H100, 54 days): a habit of the field, not of the reader's cluster.
    """
    shares = publications()[REFERENCE].class_shares()
    return sorted(set(classes), key=lambda c: (-shares.get(c, 0.0), c))
