"""Samples of an inference server's metrics page by server, and what histograms tell: pure functions.

A page is one answer of a metrics endpoint. Between two pages of one server counters grow; where one is smaller than
before, the server was restarted in between and what stands in the later page counts from its new start.

Quantiles are those of Prometheus' ``histogram_quantile``: linear within the bucket that holds the rank, the upper bound
of the last finite bucket where the rank lies beyond it (prometheus.io/docs/prometheus/latest/querying/functions).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from typing import NamedTuple, TypeAlias

from knowledge.record import dataclass
from probes.parse._prometheus import Sample

Labels: TypeAlias = Mapping[str, str]
MAX_SERVERS = 64  # of one page; a federated page can hold a fleet


class Key(NamedTuple):
    """What tells the servers of a page from each other; each may be empty."""

    model: str
    rank: str = ""  # of data-parallel engines
    place: str = ""  # pod or instance, on a page that Prometheus wrote


@dataclass(frozen=True, slots=True)
class Histogram:
    """Cumulative counts by upper bound, as they are printed, and the sum of all that was observed."""

    counts: Mapping[float, float]
    total: float  # of all buckets
    sum: float | None = None
    sample: Sample | None = None  # a line to show

    def quantile(self, q: float) -> tuple[float, bool] | None:
        """The value below which the share `q` lies, and whether it is only a lower bound; None when nothing was observed."""
        if not self.total > 0:
            return None
        rank, below, before = q * self.total, 0.0, 0.0
        bounds = sorted(self.counts)
        for bound in bounds:
            count = max(before, self.counts[bound])  # of merged pages a count may fall short by rounding
            if count >= rank and count > 0:
                if math.isinf(bound):
                    break
                low = below if bound > 0 else bound
                part = (rank - before) / (count - before) if count > before else 1.0
                return min(bound, max(low, low + (bound - low) * part)), False
            below, before = bound, count
        finite = [b for b in bounds if not math.isinf(b)]
        return (finite[-1], True) if finite else None

    @property
    def mean(self) -> float | None:
        """The arithmetic mean; None when nothing was observed, or no sum is told."""
        return self.sum / self.total if self.sum is not None and self.total > 0 else None

    def since(self, earlier: Histogram) -> Histogram | None:
        """What was observed after `earlier`; None when a count went back, or the buckets are others."""
        if set(self.counts) != set(earlier.counts) or self.total < earlier.total:
            return None
        counts = {bound: count - earlier.counts[bound] for bound, count in self.counts.items()}
        if any(count < 0 for count in counts.values()):
            return None
        known = self.sum is not None and earlier.sum is not None
        grown = max(0.0, (self.sum or 0.0) - (earlier.sum or 0.0)) if known else None
        return Histogram(counts, self.total - earlier.total, grown, self.sample)


@dataclass(slots=True)
class Server:
    """The samples of one server on one page, by name; `common` are those that no single server owns."""

    key: Key
    own: dict[str, list[Sample]] = field(default_factory=dict)
    common: dict[str, list[Sample]] = field(default_factory=dict)

    def samples(self, name: str, labels: Labels = {}) -> list[Sample]:  # noqa: B006 - never written to
        """Samples of `name` with these labels."""
        found = self.own.get(name) or self.common.get(name, [])
        return [s for s in found if all(s.labels.get(k, "") == v for k, v in labels.items())] if labels else found

    def gauge(self, name: str, labels: Labels = {}) -> Sample | None:  # noqa: B006 - never written to
        """The sample of a level. Several workers may tell the same: the largest counts."""
        found = self.samples(name, labels)
        sound = [s for s in found if not math.isnan(s.value)]
        return max(sound or found, key=lambda s: (s.value, -s.line), default=None)

    def total(self, name: str, labels: Labels = {}) -> tuple[float, Sample] | None:  # noqa: B006 - never written to
        """The sum of a counter over its other labels, and a line to show."""
        found = [s for s in self.samples(name, labels) if math.isfinite(s.value) and s.value >= 0]
        return (sum(s.value for s in found), max(found, key=lambda s: (s.value, -s.line))) if found else None

    def histogram(self, name: str) -> Histogram | None:
        """The histogram `name`, summed over its other labels; None where it is not there or is broken."""
        counts: dict[float, float] = {}
        shown: Sample | None = None
        for sample in self.samples(f"{name}_bucket"):
            bound = _bound(sample.labels.get("le", ""))
            if bound is None or not math.isfinite(sample.value) or sample.value < 0:
                return None
            counts[bound] = counts.get(bound, 0.0) + sample.value
            shown = sample
        total = self.total(f"{name}_count")
        if math.inf not in counts and total is not None and counts:
            counts[math.inf] = total[0]
        if not counts or math.inf not in counts:
            return None
        summed = self.total(f"{name}_sum")
        return Histogram(counts, counts[math.inf], summed[0] if summed else None, total[1] if total else shown)


def _bound(text: str) -> float | None:
    try:
        bound = float(text)
    except ValueError:
        return None
    return None if math.isnan(bound) else bound


def pages(samples: Iterable[Sample]) -> list[list[Sample]]:
    """The answers that stand one behind the other in a text: a new one begins where the first series comes again."""
    out: list[list[Sample]] = []
    first: tuple[str, tuple[tuple[str, str], ...]] | None = None
    for sample in samples:
        series = sample.name, tuple(sorted(sample.labels.items()))
        if first is None or series == first:
            first = series
            out.append([])
        out[-1].append(sample)
    return out


# Of a server that runs as several workers only the first of each kind tells what all know.
_FOLLOWERS = ("tp_rank", "pp_rank", "moe_ep_rank")
_MODELS = ("model_name", "model", "served_model_name")
_RANKS = ("dp_rank", "engine")
_PLACES = ("exported_pod", "pod", "instance")


def servers(page: Sequence[Sample]) -> list[Server]:
    """The servers of a page, in the order in which they appear; at most `MAX_SERVERS`."""
    found: dict[Key, Server] = {}
    shared: list[tuple[Key, Sample]] = []
    for sample in page:
        if any(sample.labels.get(name, "0") not in ("0", "") for name in _FOLLOWERS):
            continue
        key = Key(*(_label(sample, names) for names in (_MODELS, _RANKS, _PLACES)))
        if not key.model:
            shared.append((key, sample))
        elif key in found or len(found) < MAX_SERVERS:
            _put(found.setdefault(key, Server(key)).own, sample)
    if not found and shared:
        for key, sample in shared:
            alone = Key("", "", key.place)
            if alone in found or len(found) < MAX_SERVERS:
                _put(found.setdefault(alone, Server(alone)).own, sample)
        return list(found.values())
    _share(found.values(), shared)
    return list(found.values())


def _share(found: Iterable[Server], shared: Sequence[tuple[Key, Sample]]) -> None:
    """Samples without a model belong to each server of their rank and place."""
    for server in found:
        for key, sample in shared:
            if key.rank in ("", server.key.rank) and key.place == server.key.place:
                _put(server.common, sample)


def _put(by_name: dict[str, list[Sample]], sample: Sample) -> None:
    by_name.setdefault(sample.name, []).append(sample)


def _label(sample: Sample, names: Iterable[str]) -> str:
    return next(_told(sample, names), "")


def _told(sample: Sample, names: Iterable[str]) -> Iterator[str]:
    for name in names:
        if text := sample.labels.get(name, "").strip():
            yield text
