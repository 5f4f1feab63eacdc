"""What dcgm-exporter and nvidia_gpu_exporter scrapes have in common: metrics as facts, each once."""

from __future__ import annotations

from collections.abc import Sequence

from knowledge.metrics import Match, metrics
from knowledge.observation import Clock, Event, Observation, Scope, Status, Subject, Value, node
from knowledge.text import excerpt
from probes.base import Context
from probes.parse._prometheus import Exposition, Sample
from probes.parse._smi_values import Reading, blank


class Scrape:
    """Collects the observations of one scrape; a fact that several series repeat stands once."""

    def __init__(self, context: Context, exporter: str, probe: str, revision: int, page: Exposition) -> None:
        self.context, self.exporter, self.probe, self.revision = context, exporter, probe, revision
        self.page = page
        self.out: list[Observation] = []
        self._seen: dict[tuple[str, Subject], set[tuple[Value, Status, int | None]]] = {}

    def add(
        self, fact: str, subject: Subject, reading: Reading | Value, sample: Sample | None = None, *, timed: bool = True
    ) -> None:
        """One observation, unless the same was already made. What labels tell holds at any time."""
        value, status, detail = (
            (reading.value, reading.status, reading.detail)
            if isinstance(reading, Reading)
            else (reading, Status.OK, "")
        )
        at = sample.at if sample is not None and timed else None
        known = self._seen.setdefault((fact, subject), set())
        if not isinstance(value, Event):
            if (value, status, at) in known:
                return
            known.add((value, status, at))
        self.out.append(
            Observation(
                fact, subject, value, status,
                self.context.at(self.probe, self.revision, sample.line if sample is not None else None),
                at, Clock.REALTIME if at is not None else Clock.NONE,
                excerpt=excerpt(sample.text, 300) if sample is not None else "", detail=excerpt(detail),
            )
        )  # fmt: skip

    def metric(self, sample: Sample, device: Subject, instance: Subject | None) -> bool:
        """Facts of a sample whose name is in the table; False when it is not."""
        match = metrics().find(self.exporter, sample.name)
        if match is None:
            return False
        metric = match.metric
        if metric.bits:
            reading = blank(sample.value)
            for mask, fact in metric.bits.items():
                self.add(fact, device, reading or bool(int(sample.value) & mask), sample)
            return True
        fact, subject = metric.fact, device
        if instance is not None and metric.mig_fact:
            fact, subject = metric.mig_fact, instance
        elif match.lane is not None:
            subject = Subject(Scope.LINK, str(match.lane), device)
        elif fact.startswith(("node.", "exporter.")):
            subject = node(device.host)
        self.add(fact, subject, self.reading(match, fact, sample), sample)
        return True

    def reading(self, match: Match, fact: str, sample: Sample) -> Reading:
        """The sample's number as the fact's value; sentinels and unknown enum numbers have none."""
        if reading := blank(sample.value):
            return reading
        value = match.convert(sample.value, fact, self.page.helps.get(sample.name, ""))
        if value is None:
            return Reading(None, Status.FAILED, f"{sample.value:g} is no known value of {sample.name}")
        return Reading(value)

    def finish(self, hosts: Sequence[str]) -> list[Observation]:
        """All observations; lines that are no samples are told."""
        if self.page.malformed:
            first = self.page.malformed[0]
            sample = Sample("", {}, 0, first.number, first.text)
            for host in hosts or [self.context.host]:
                self.add("exporter.malformed_lines", node(host), len(self.page.malformed), sample)
        return self.out
