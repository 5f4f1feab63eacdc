"""Facts and exporter metrics, both ways: what a scraped series tells, and what to query for a fact.

The table is ``knowledge/data/metrics.yaml``. ``metric value * factor = fact value``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import field
from functools import cache
from typing import Any

from knowledge.facts import Type, vocabulary
from knowledge.record import dataclass

_LANE = re.compile(r"(.{1,120})_L(\d{1,2})(_TOTAL)?", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Alias:
    """Another name of a metric, in some versions of its exporter."""

    name: str
    versions: str
    factor: float | None = None


@dataclass(frozen=True, slots=True)
class Metric:
    """One metric of one exporter and the fact that it carries."""

    name: str  # as the current exporter prints it; {lane} stands for a link number
    exporter: str  # "dcgm", "nvidia_gpu_exporter" or "amd_device_metrics_exporter"
    fact: str  # empty when `bits` gives the facts
    kind: str  # "gauge" or "counter"
    unit: str = ""  # of the metric, as printed
    factor: float = 1.0
    mig_fact: str = ""  # the fact when the series is of a MIG instance
    help_factors: Mapping[str, float] = field(default_factory=dict)  # unit named in the HELP line -> factor
    values: Mapping[int, str] = field(default_factory=dict)  # number -> word of an enum fact
    bits: Mapping[int, str] = field(default_factory=dict)  # mask -> bool fact
    aliases: tuple[Alias, ...] = ()

    @classmethod
    def from_plain(cls, data: Mapping[str, Any]) -> Metric:
        """From checked YAML."""
        return cls(
            name=data["name"], exporter=data["exporter"], fact=data.get("fact", ""), kind=data["kind"],
            unit=data.get("unit", ""), factor=float(data.get("factor", 1.0)), mig_fact=data.get("mig_fact", ""),
            help_factors={unit: float(f) for unit, f in data.get("help_factors", {}).items()},
            values={int(number, 0): word for number, word in data.get("values", {}).items()},
            bits={int(mask, 0): fact for mask, fact in data.get("bits", {}).items()},
            aliases=tuple(Alias(a["name"], a["versions"], a.get("factor")) for a in data.get("aliases", ())),
        )  # fmt: skip

    def facts(self) -> Iterator[str]:
        """Every fact that the metric can give."""
        yield from filter(None, (self.fact, self.mig_fact, *self.bits.values()))


@dataclass(frozen=True, slots=True)
class Match:
    """A scraped name in the table: its metric, the factor under this name, and the link it is about."""

    metric: Metric
    factor: float
    lane: int | None = None

    def convert(self, number: float, fact: str, help_text: str = "") -> bool | int | float | str | None:
        """The number as a value of `fact`; None when an enum does not know it."""
        metric = self.metric
        if metric.values:
            return metric.values.get(int(number)) if float(number).is_integer() else None
        factor = next((f for unit, f in metric.help_factors.items() if f"in {unit}" in help_text), self.factor)
        spec = vocabulary().get(fact)
        kind = spec.type if spec is not None else Type.FLOAT
        if kind is Type.BOOL:
            return number != 0
        # 12 digits: 0.022137 * 100 is 2.2137, not 2.2137000000000002
        return round(number * factor) if kind is Type.INT else float(f"{number * factor:.12g}")


class MetricTable:
    """All metrics, by exporter and name, and by fact."""

    def __init__(self, entries: Iterable[Metric]) -> None:
        self._names: dict[tuple[str, str], tuple[Metric, float]] = {}
        self._facts: dict[str, list[Metric]] = {}
        self.all = tuple(entries)
        for metric in self.all:
            self._names[metric.exporter, metric.name.lower()] = (metric, metric.factor)
            for alias in metric.aliases:
                factor = metric.factor if alias.factor is None else float(alias.factor)
                self._names[metric.exporter, alias.name.lower()] = (metric, factor)
            for fact in metric.facts():
                self._facts.setdefault(fact, []).append(metric)

    def find(self, exporter: str, name: str) -> Match | None:
        """What a scraped name means. Names of DCGM differ in case between versions."""
        known = self._names.get((exporter, name.lower()))
        if known is not None:
            return Match(*known)
        if lane := _LANE.fullmatch(name):
            pattern = f"{lane[1]}_L{{lane}}".lower()
            known = self._names.get((exporter, pattern))
            if known is not None:
                return Match(*known, lane=int(lane[2]))
        return None

    def for_fact(self, fact: str, exporter: str = "") -> tuple[Metric, ...]:
        """The metrics that carry `fact`, of one exporter or of all."""
        return tuple(m for m in self._facts.get(fact, ()) if exporter in ("", m.exporter))


@cache
def metrics() -> MetricTable:
    """The shipped table. FaultsError when the data file is wrong."""
    from knowledge.compiled import shard

    return MetricTable(Metric.from_plain(data) for data in shard("metrics"))
