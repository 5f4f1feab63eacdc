"""A scrape of AMD's device-metrics-exporter: ``gpu_gfx_activity``, ``gpu_ecc_uncorrect_total`` and their kin.

The names are documented in capitals and printed in small letters; a prefix (``amd_``) may be configured. A GPU has a number
and a serial number there, and no address on the bus. The list of metrics: instinct.docs.amd.com, device-metrics-exporter,
"List of Available Metrics". ``gpu_gfx_activity`` speaks of an unpartitioned GPU only.
"""

from __future__ import annotations

import re

from knowledge.observation import Observation, Scope, Subject, gpu, node
from knowledge.text import clean
from probes.base import Context, DocumentFormat, lines_of
from probes.parse._prometheus import Exposition, Sample, exposition
from probes.parse._scrape import Scrape
from probes.parse._scrape_facts import AMD_EXPORTER_FACTS
from probes.parse._smi_values import Reading, blank, text_value
from probes.parse.amd_smi import all_ones

NAME, REVISION = "amd-device-metrics-exporter", 1
EXPORTER = "amd_device_metrics_exporter"
PREFIX = "amd_"
# gpu_gfx_activity{card_model="102-G30211-0C",...,gpu_id="2",...,serial_number="692409005408"} 0
_SERIES = re.compile(
    r"^(?:amd_)?(?:gpu_[a-z0-9_]{2,80}|pcie_[a-z_]{2,40})\{[^\n]{0,2000}?\b(?:gpu_compute_partition_type|serial_number)=",
    re.MULTILINE,
)
_LABELS = (
    ("card_series", "gpu.name"),
    ("serial_number", "gpu.serial"),
    ("vbios_version", "gpu.vbios"),
    ("driver_version", "gpu.driver.version"),
)
_BLOCK = re.compile(r"gpu_ecc_uncorrect_([a-z0-9_]{2,20})")
_VIOLATION = re.compile(r"gpu_violation_([a-z_]{2,40})_residency_percentage")
# What a GPU draws is told up to three times; the first of these counts.
_DRAWS = ("gpu_package_power", "gpu_average_package_power", "gpu_power_usage")
_REASONS = {
    "ppt": "power",
    "socket_thermal": "thermal",
    "hbm_thermal": "hbm_thermal",
    "vr_thermal": "vr_thermal",
    "processor_hot": "prochot",
}


def sniff(head: str) -> int:
    """100 on series of a GPU with the labels that only this exporter gives."""
    return 100 if _SERIES.search(head) else 0


def parse(text: str, context: Context) -> list[Observation]:
    """Observations of one scrape."""
    return observed(exposition(lines_of(text)), context)


def observed(page: Exposition, context: Context) -> list[Observation]:
    """What the series of a page tell that are this exporter's."""
    return _Reader(Scrape(context, EXPORTER, NAME, REVISION, page)).read()


class _Reader:
    """Reads the series of one page, and what several of them say together."""

    def __init__(self, scrape: Scrape) -> None:
        self._scrape = scrape
        self._blocks: dict[Subject, dict[str, Sample]] = {}
        self._violations: dict[Subject, dict[str, Sample]] = {}
        self._counts: dict[Subject, dict[str, Sample]] = {}
        self._draws: dict[Subject, dict[str, Sample]] = {}

    def read(self) -> list[Observation]:
        hosts = set()
        devices: dict[str, set[Subject]] = {}
        for sample in self._scrape.page.samples:
            name = sample.name.lower().removeprefix(PREFIX)
            host = _label(sample, "node", "hostname", "exported_hostname") or self._scrape.context.host
            if name == "gpu_nodes_total":
                hosts.add(host)
                self._scrape.add("node.gpus.amd", node(host), blank(sample.value) or round(sample.value), sample)
            elif (device := self._device(sample, host)) is not None:
                hosts.add(host)
                devices.setdefault(host, set()).add(device)
                self._sample(name, sample, device)
        for device, blocks in self._blocks.items():
            self._bad_blocks(device, blocks)
        for device, reasons in self._violations.items():
            active = tuple(sorted(reason for reason, sample in reasons.items() if sample.value > 0))
            self._scrape.add("gpu.throttle.reasons", device, active, next(iter(reasons.values())))
        for device, counts in self._counts.items():
            self._errors(device, counts)
        for device, draws in self._draws.items():
            name = next(n for n in _DRAWS if n in draws)
            self._metric(name, draws[name], device)
        return self._scrape.finish(sorted(hosts))

    def _device(self, sample: Sample, host: str) -> Subject | None:
        number = sample.labels.get("gpu_id", "")
        if not re.fullmatch(r"\d{1,4}", number) or not _is_ours(sample):
            return None
        subject = gpu(f"amd:{int(number)}", host)
        self._scrape.add("gpu.vendor", subject, "amd", sample, timed=False)
        for label, fact in _LABELS:
            if text := sample.labels.get(label, ""):
                self._scrape.add(fact, subject, text_value(text), sample, timed=False)
        if pod := _label(sample, "exported_pod", "pod"):
            space = _label(sample, "exported_namespace", "namespace")
            owner = Subject(Scope.POD, f"{space}/{pod}" if space else pod, node(host))
            self._scrape.add("pod.uses_gpu", owner, f"gpu:{subject.id}", sample)
        return subject

    def _sample(self, name: str, sample: Sample, device: Subject) -> None:
        if name in ("gpu_ecc_correct_total", "gpu_ecc_uncorrect_total"):
            self._counts.setdefault(device, {})[name] = sample
        elif block := _BLOCK.fullmatch(name):
            self._blocks.setdefault(device, {})[block[1]] = sample
        elif (violation := _VIOLATION.fullmatch(name)) and violation[1] in _REASONS and blank(sample.value) is None:
            self._violations.setdefault(device, {})[_REASONS[violation[1]]] = sample
        elif name == "gpu_clock":
            if sample.labels.get("clock_type") == "system" and sample.labels.get("clock_index", "0") == "0":
                reading = blank(sample.value) or Reading(round(sample.value))
                self._scrape.add("gpu.clock.graphics", device, reading, sample)
        elif name in _DRAWS:
            self._draws.setdefault(device, {})[name] = sample
        else:
            self._metric(name, sample, device)

    def _metric(self, name: str, sample: Sample, device: Subject) -> None:
        """A series of the table, under the name that stands there."""
        renamed = Sample(name, sample.labels, sample.value, sample.line, sample.text, sample.at)
        self._scrape.metric(renamed, device, None)

    def _bad_blocks(self, device: Subject, blocks: dict[str, Sample]) -> None:
        counted = [n for n, s in blocks.items() if blank(s.value) is None]
        bad = tuple(sorted(n for n in counted if blocks[n].value > 0))
        if counted:
            self._scrape.add("gpu.ras.uncorrected.blocks", device, bad, blocks[bad[0] if bad else counted[0]])

    def _errors(self, device: Subject, counts: dict[str, Sample]) -> None:
        """Both counters of a sleeping GPU read as ones in every channel: those are no errors."""
        whole = {n: round(s.value) for n, s in counts.items() if blank(s.value) is None}
        asleep = all_ones(whole.get("gpu_ecc_correct_total"), whole.get("gpu_ecc_uncorrect_total"))
        for name, sample in counts.items():
            fact = "gpu.ras.corrected" if name == "gpu_ecc_correct_total" else "gpu.ras.uncorrected"
            self._scrape.add(fact, device, asleep or blank(sample.value) or Reading(whole.get(name)), sample)


def _is_ours(sample: Sample) -> bool:
    return not {"serial_number", "gpu_compute_partition_type", "card_series"}.isdisjoint(sample.labels)


def _label(sample: Sample, *names: str) -> str:
    return next((clean(found).strip() for n in names if (found := sample.labels.get(n))), "")


FORMAT = DocumentFormat(NAME, "AMD device-metrics-exporter scrape", REVISION, AMD_EXPORTER_FACTS, sniff, parse)
