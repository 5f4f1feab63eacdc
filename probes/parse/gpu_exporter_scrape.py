"""A scrape of nvidia_gpu_exporter (metrics ``nvidia_smi_*``), which republishes ``nvidia-smi --query-gpu``.

Fields that nvidia-smi prints as N/A have no series there. The device label is the UUID without ``GPU-``.
"""

from __future__ import annotations

import re

from knowledge.identity import UNKNOWN_PCI, normalise_pci
from knowledge.observation import Observation, Scope, Status, Subject, gpu, node
from knowledge.text import clean, digits
from probes.base import Context, DocumentFormat, lines_of
from probes.parse._prometheus import Exposition, Sample, exposition
from probes.parse._scrape import Scrape
from probes.parse._scrape_facts import GPU_EXPORTER_FACTS
from probes.parse._smi_emit import Emitter
from probes.parse._smi_values import Reading, absent, blank, text_value

NAME, REVISION = "nvidia-gpu-exporter", 1
_SERIES = re.compile(r"^nvidia_smi_[a-z0-9_]{2,120}(?:\{| )", re.MULTILINE)
_NO_DEVICE = {
    "nvidia_smi_last_collect_success", "nvidia_smi_command_exit_code", "nvidia_smi_failed_scrapes_total",
    "nvidia_smi_compute_apps_last_collect_success",
}  # fmt: skip
_INFO = (
    ("index", "gpu.index"), ("name", "gpu.name"), ("vbios_version", "gpu.vbios"), ("serial", "gpu.serial"),
    ("compute_cap", "gpu.compute_capability"),
)  # fmt: skip
_MIB = 1048576


def sniff(head: str) -> int:
    """100 on nvidia_smi_* series."""
    return 100 if _SERIES.search(head) else 0


def parse(text: str, context: Context) -> list[Observation]:
    """Observations of one scrape."""
    return observed(exposition(lines_of(text)), context)


def observed(page: Exposition, context: Context) -> list[Observation]:
    """What the series of a page tell that are nvidia_gpu_exporter's."""
    scrape = Scrape(context, "nvidia_gpu_exporter", NAME, REVISION, page)
    processes = Emitter(context, NAME, REVISION)
    known = _devices(scrape, context)
    commands: dict[tuple[str, str], Sample] = {}
    for sample in scrape.page.samples:
        if not sample.name.startswith("nvidia_smi_"):
            continue
        if sample.name in _NO_DEVICE:
            _collection(scrape, sample, context)
            continue
        device = known.get(sample.labels.get("uuid", ""))
        if device is None:
            continue
        if sample.name in ("nvidia_smi_compute_app_used_memory_bytes", "nvidia_smi_compute_app_info"):
            key = (sample.labels.get("pid", ""), device.id)
            if sample.name.endswith("_bytes") or key not in commands:
                commands[key] = sample
        elif sample.name != "nvidia_smi_gpu_info":
            scrape.metric(sample, device, None)
    for (pid, _), sample in commands.items():
        _process(processes, pid, known[sample.labels.get("uuid", "")], sample)
    listed = [o for o in processes.finish() if o.subject.scope is Scope.PROCESS]
    return scrape.finish([context.host]) + listed


def _uuid(label: str) -> str:
    label = clean(label).strip()
    return label if label.startswith(("GPU-", "MIG-")) else f"GPU-{label}"


def _devices(scrape: Scrape, context: Context) -> dict[str, Subject]:
    """The GPU of each uuid label: by slot where the info series names it, else by UUID."""
    out: dict[str, Subject] = {}
    infos = [s for s in scrape.page.samples if s.name == "nvidia_smi_gpu_info"]
    for sample in [*infos, *scrape.page.samples]:
        label = sample.labels.get("uuid", "")
        if not label or label in out or not sample.name.startswith("nvidia_smi_"):
            continue
        address = normalise_pci(sample.labels.get("pci_bus_id", ""))
        identifier = _uuid(label) if address.startswith(UNKNOWN_PCI) else address
        out[label] = subject = gpu(identifier, context.host)
        scrape.add("gpu.uuid", subject, _uuid(label), sample)
    for sample in infos:
        if found := out.get(sample.labels.get("uuid", "")):
            _info(scrape, found, sample)
    if out:
        scrape.add("node.gpu.listed", node(context.host), len(out))
    return out


def _info(scrape: Scrape, subject: Subject, sample: Sample) -> None:
    for label, fact in _INFO:
        text = sample.labels.get(label, "")
        if not text:
            continue
        reading = text_value(text)
        if fact == "gpu.index":
            number = digits(text)
            reading = absent(text) or (
                Reading(number) if number is not None else Reading(None, Status.FAILED, f"not an index: {text[:40]!r}")
            )
        scrape.add(fact, subject, reading, sample)
    for label, fact in (("driver_version", "node.driver.version"), ("cuda_version", "node.cuda.version")):
        if text := sample.labels.get(label, ""):
            scrape.add(fact, node(subject.host), text_value(text), sample)


def _collection(scrape: Scrape, sample: Sample, context: Context) -> None:
    if sample.name == "nvidia_smi_last_collect_success":
        scrape.add("exporter.collect.success", node(context.host), blank(sample.value) or sample.value > 0, sample)


def _process(emit: Emitter, pid: str, holder: Subject, sample: Sample) -> None:
    if sample.name.endswith("_bytes"):
        memory = blank(sample.value) or Reading(round(sample.value / _MIB))
    else:
        memory = Reading(None, Status.UNSUPPORTED, "the exporter gives no memory series for the process")
    name = sample.labels.get("process_name")
    emit.process(pid, holder, memory, name=name, kind="C", line=sample.line, excerpt=sample.text)


FORMAT = DocumentFormat(NAME, "nvidia_gpu_exporter scrape", REVISION, GPU_EXPORTER_FACTS, sniff, parse)
