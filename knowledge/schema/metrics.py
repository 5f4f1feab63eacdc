"""Shape of ``knowledge/data/metrics.yaml``: facts and the exporter metrics that carry them."""

from __future__ import annotations

import re
from typing import Literal, Self

from pydantic import Field, field_validator, model_validator

from knowledge.schema import Strict

_METRIC = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(\{lane\})?")
_FACT = re.compile(r"[a-z][a-z0-9_]*(\.[a-z0-9_]+)*")


class Alias(Strict):
    """Another name of the same metric, and the versions of the exporter that use it."""

    name: str
    versions: str
    factor: float | None = Field(default=None, strict=False)


class Entry(Strict):
    """One metric; see `knowledge.metrics.Metric` for the meaning of each key."""

    name: str
    exporter: Literal["dcgm", "nvidia_gpu_exporter", "amd_device_metrics_exporter"]
    fact: str = ""
    mig_fact: str = ""
    kind: Literal["gauge", "counter"]
    unit: str = ""
    factor: float = Field(default=1.0, strict=False)
    help_factors: dict[str, float] = {}
    values: dict[str, str] = {}
    bits: dict[str, str] = {}
    aliases: list[Alias] = []

    @field_validator("name")
    @classmethod
    def _name(cls, name: str) -> str:
        if not _METRIC.fullmatch(name):
            raise ValueError("a metric name is letters, digits and underscores; {lane} may end it")
        return name

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if bool(self.fact) == bool(self.bits):
            raise ValueError("an entry names one fact, or gives the facts of its bits")
        for fact in filter(None, (self.fact, self.mig_fact, *self.bits.values())):
            if not _FACT.fullmatch(fact):
                raise ValueError(f"{fact!r} is not a fact name")
        if self.factor <= 0 or any(f <= 0 for f in self.help_factors.values()):
            raise ValueError("a factor is positive")
        for number in (*self.values, *self.bits):
            int(number, 0)
        return self
