"""What Prometheus scrapes: gauges of the newest round. What is cleared is gone from the next scrape."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import field

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector, CollectorRegistry

from assistant.watch.alerts import Alert, Phase
from knowledge.record import dataclass

STATES = ("ok", "degraded", "unhealthy", "unknown")
USABLE = ("yes", "impaired", "not_yet", "no", "unknown")


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Everything that the endpoint tells of the newest round. Times in seconds since 1970."""

    host: str
    version: str
    rules: int
    state: str
    usable: str
    ended: float
    seconds: float  # of the round
    cpu_seconds: float  # of the process and its children since the start
    resident: int  # bytes
    alerts: tuple[Alert, ...] = ()
    probes: tuple[tuple[str, bool, float], ...] = ()  # name, answered, seconds
    undecided: int = 0
    gpus: int = 0
    interval: float = 60.0


@dataclass
class Totals:
    """What only grows."""

    rounds: int = 0
    failed_rounds: int = 0
    changes: dict[str, int] = field(default_factory=dict)  # what happened -> how often
    webhooks_sent: int = 0
    webhooks_failed: int = 0  # tries that will be repeated
    webhooks_dropped: int = 0


class WatchCollector(Collector):
    """Turns a snapshot into metric families. Names follow Prometheus: base units, ``_total`` for counters."""

    def __init__(self, totals: Totals) -> None:
        self.totals = totals
        self.snapshot: Snapshot | None = None

    def collect(self) -> Iterator[Metric]:
        """The families, each with its series."""
        t = self.totals
        yield _counter("gpudiag_rounds", "Checks of this machine since the start.", t.rounds)
        yield _counter("gpudiag_rounds_failed", "Checks that broke.", t.failed_rounds)
        changes = CounterMetricFamily(
            "gpudiag_alert_changes", "Alerts that fired, escalated or were resolved.", labels=["what"]
        )
        for what in ("firing", "escalated", "resolved"):
            changes.add_metric([what], t.changes.get(what, 0))
        yield changes
        hooks = CounterMetricFamily("gpudiag_webhook_messages", "Messages to webhooks by outcome.", labels=["outcome"])
        for outcome, n in (("sent", t.webhooks_sent), ("retried", t.webhooks_failed), ("dropped", t.webhooks_dropped)):
            hooks.add_metric([outcome], n)
        yield hooks
        if self.snapshot is not None:
            yield from _families(self.snapshot)


def _families(s: Snapshot) -> Iterator[Metric]:
    info = GaugeMetricFamily("gpudiag_info", "Version of gpudiag and number of its rules.", labels=["version", "host"])
    info.add_metric([s.version, s.host], 1)
    yield info
    yield _gauge("gpudiag_rules", "Rules in force.", s.rules)
    yield _states("gpudiag_verdict", "Health of this machine: 1 for the state that holds.", "state", STATES, s.state)
    yield _states("gpudiag_usable", "Whether the machine can be used: 1 for the answer.", "usable", USABLE, s.usable)
    yield _gauge("gpudiag_last_check_timestamp_seconds", "When the newest check ended.", s.ended)
    yield _gauge("gpudiag_check_duration_seconds", "How long the newest check took.", s.seconds)
    yield _gauge("gpudiag_check_interval_seconds", "Time between two checks.", s.interval)
    yield _gauge("gpudiag_undecided_rules", "Rules that could not be decided for want of a fact.", s.undecided)
    yield _gauge("gpudiag_gpus", "GPUs that were seen.", s.gpus)
    cpu = CounterMetricFamily("gpudiag_cpu_seconds", "CPU time of gpudiag and its probes.")
    cpu.add_metric([], s.cpu_seconds)
    yield cpu
    yield _gauge("gpudiag_resident_memory_bytes", "Memory of gpudiag.", s.resident)
    up = GaugeMetricFamily("gpudiag_probe_up", "1 when the probe answered in the newest check.", labels=["probe"])
    took = GaugeMetricFamily("gpudiag_probe_duration_seconds", "How long the probe took.", labels=["probe"])
    for name, answered, seconds in s.probes:
        up.add_metric([name], float(answered))
        took.add_metric([name], seconds)
    yield up
    yield took
    labels = ["rule", "severity", "subject", "xid", "action", "phase"]
    finding = GaugeMetricFamily(
        "gpudiag_alert", "1 for each alert; phase holding: not seen at present, not cleared.", labels=labels
    )
    since = GaugeMetricFamily(
        "gpudiag_alert_since_timestamp_seconds", "When the fault was first seen.", labels=["rule", "subject"]
    )
    counts = dict.fromkeys(("warning", "error", "critical"), 0)
    for a in s.alerts:
        if a.phase is Phase.PENDING:
            continue
        xid = "" if a.last.xid is None else str(a.last.xid)
        finding.add_metric([a.last.rule, str(a.severity), a.last.subject, xid, a.last.bucket, str(a.phase)], 1)
        since.add_metric([a.last.rule, a.last.subject], a.first_seen / 1e9)
        counts[str(a.severity)] = counts.get(str(a.severity), 0) + 1
    yield finding
    yield since
    total = GaugeMetricFamily("gpudiag_alerts", "Alerts by severity.", labels=["severity"])
    for severity, n in counts.items():
        total.add_metric([severity], n)
    yield total


def _states(name: str, text: str, label: str, values: tuple[str, ...], now: str) -> Metric:
    family = GaugeMetricFamily(name, text, labels=[label])
    for value in values:
        family.add_metric([value], float(value == now))
    return family


def _gauge(name: str, text: str, value: float) -> Metric:
    return GaugeMetricFamily(name, text, value=value)


def _counter(name: str, text: str, value: float) -> Metric:
    return CounterMetricFamily(name, text, value=value)


def registry(collector: WatchCollector) -> CollectorRegistry:
    """A registry of our own: the default one would add metrics of the Python process."""
    made = CollectorRegistry(auto_describe=False)
    made.register(collector)
    return made
