"""A scrape of dcgm-exporter (gpu-monitoring-tools 1.x to dcgm-exporter 4.x), or the same series from Prometheus.

* ``DCGM_FI_DEV_XID_ERRORS`` keeps the last code for ever: a state, not an event.
* A MIG instance for which the exporter gives no FB_* series has an unknown memory use, not 0.
* ``Hostname`` is the name of the exporter's pod unless the exporter was told its node.
"""

from __future__ import annotations

import re

from knowledge.identity import UNKNOWN_PCI, normalise_pci
from knowledge.observation import Event, Observation, Scope, Status, Subject, gpu, node
from knowledge.text import clean, digits
from probes.base import Context, DocumentFormat, lines_of
from probes.parse._prometheus import Exposition, Sample, exposition
from probes.parse._scrape import Scrape
from probes.parse._scrape_facts import DCGM_FACTS
from probes.parse._smi_values import Reading, blank, text_value

NAME, REVISION = "dcgm-exporter", 2
_SERIES = re.compile(r"^(?:DCGM_(?:FI|EXP)_[A-Z0-9_]{3,80}|dcgm_[a-z0-9_]{3,80})\s{0,2}\{", re.MULTILINE)
_ANY = re.compile(r"^# (?:HELP|TYPE) DCGM_(?:FI|EXP)_", re.MULTILINE)
# gpu-operator and helm charts name the daemon set's pods so.
_POD_NAME = re.compile(r"(?:[a-z0-9-]{0,60})dcgm-exporter-[a-z0-9]{5,10}(?:-[a-z0-9]{5})?")
_XID_COUNTS = ("dcgm_exp_xid_errors_count", "dcgm_fi_dev_xid_errors_active")
_HEALTH = "dcgm_exp_gpu_health_status"
_HEALTH_WORDS = {0: "pass", 10: "warn", 20: "fail"}
_FB = ("dcgm_fi_dev_fb_used", "dcgm_fi_dev_fb_free", "dcgm_fi_dev_fb_total", "dcgm_fb_used", "dcgm_fb_free")


def sniff(head: str) -> int:
    """100 on DCGM series, 90 on their HELP lines alone."""
    if _SERIES.search(head):
        return 100
    return 90 if _ANY.search(head) else 0


def parse(text: str, context: Context) -> list[Observation]:
    """Observations of one scrape."""
    return observed(exposition(lines_of(text)), context)


def observed(page: Exposition, context: Context) -> list[Observation]:
    """What the series of a page tell that are DCGM's."""
    return _Reader(Scrape(context, "dcgm", NAME, REVISION, page)).read()


_POD_LABELS = ("pod", "exported_pod", "pod_name", "kubernetes_pod_name")


def _label(sample: Sample, *names: str) -> str:
    return next((clean(sample.labels[n]).strip() for n in names if sample.labels.get(n, "").strip()), "")


class _Reader:
    def __init__(self, scrape: Scrape) -> None:
        self.scrape = scrape
        self.samples = [s for s in scrape.page.samples if s.name.lower().startswith("dcgm_")]
        names = {_label(s, "Hostname", "hostname", "node", "kubernetes_node") for s in self.samples} - {""}
        self.several = len(names) > 1
        self.attributed: dict[Subject, Sample | None] = {}
        self.pod_labels: dict[str, tuple[bool, Sample]] = {}
        self.memory: dict[Subject, tuple[bool, Sample]] = {}
        self.xids: dict[Subject, tuple[bool, Sample]] = {}
        self.health: dict[Subject, tuple[bool, Sample]] = {}

    def read(self) -> list[Observation]:
        """Every sample, then what the scrape as a whole tells."""
        for sample in self.samples:
            self.sample(sample)
        add = self.scrape.add
        mapped = any(name in s.labels for s in self.samples for name in _POD_LABELS)
        for host, (present, sample) in self.pod_labels.items():
            absent = Reading(None, Status.NOT_APPLICABLE, "the exporter runs without pod labels: not under Kubernetes")
            add("exporter.pod_labels.present", node(host), present if mapped else absent, sample)
        for subject, found in self.attributed.items():
            fact = "mig.pod_attributed" if subject.scope is Scope.MIG else "gpu.pod_attributed"
            add(fact, subject, found is not None, found)
        for subject, (given, sample) in self.memory.items():
            if not given:
                reason = "the exporter gives no FB_* series for this instance"
                add("mig.memory.used", subject, Reading(None, Status.UNSUPPORTED, reason), sample)
        for fact, families in (("xid_exported", self.xids), ("dcgm_health", self.health)):
            for subject, (found_any, sample) in families.items():
                if not found_any:
                    add(fact, subject, Reading(None, Status.NONE_SEEN, f"{sample.name} counts none"), sample)
        return self.scrape.finish(list(self.pod_labels))

    def host(self, sample: Sample) -> str:
        """The node of a series: a label that names one, else what the caller knows."""
        given = _label(sample, "node", "kubernetes_node", "Hostname", "hostname", "exported_hostname")
        if given and (self.several or not _POD_NAME.fullmatch(given)):
            return given
        return self.scrape.context.host

    def device(self, sample: Sample, host: str) -> Subject | None:
        """The GPU of a series: by slot, else by UUID, else by index; None for series of other things."""
        address = _label(sample, "pci_bus_id")
        uuid = _label(sample, "UUID", "uuid")
        index = digits(_label(sample, "gpu"))
        if address and not normalise_pci(address).startswith(UNKNOWN_PCI):
            subject = gpu(normalise_pci(address), host)
        elif uuid.startswith("GPU-"):
            subject = gpu(uuid, host)
        elif index is not None:
            subject = gpu(f"index:{index}", host)
        else:
            return None
        if uuid.startswith("GPU-"):
            self.scrape.add("gpu.uuid", subject, uuid, sample, timed=False)
        if index is not None:
            self.scrape.add("gpu.index", subject, index, sample, timed=False)
        if model := _label(sample, "modelName"):
            self.scrape.add("gpu.name", subject, text_value(model), sample, timed=False)
        if driver := _label(sample, "DCGM_FI_DRIVER_VERSION"):
            self.scrape.add("node.driver.version", node(host), text_value(driver), sample, timed=False)
        return subject

    def sample(self, sample: Sample) -> None:
        host = self.host(sample)
        device = self.device(sample, host)
        if device is None:
            return
        instance = self.instance(sample, device)
        self.pods(sample, host, device, instance)
        name = sample.name.lower()
        if instance is not None:
            given, first = self.memory.get(instance, (False, sample))
            self.memory[instance] = (given or name in _FB, first)
        if name in _XID_COUNTS:
            self.xid(sample, device)
        elif name == _HEALTH:
            self.watch(sample, device)
        else:
            self.scrape.metric(sample, device, instance)

    def instance(self, sample: Sample, device: Subject) -> Subject | None:
        number = digits(_label(sample, "GPU_I_ID"))
        if number is None:
            return None
        subject = Subject(Scope.MIG, str(number), device)
        if profile := _label(sample, "GPU_I_PROFILE"):
            self.scrape.add("mig.profile", subject, text_value(profile), sample, timed=False)
        return subject

    def pods(self, sample: Sample, host: str, device: Subject, instance: Subject | None) -> None:
        """Who was given the GPU. Prometheus renames the workload's labels to exported_* beside its own."""
        exported = any(k.startswith("exported_") for k in sample.labels)
        pod = _label(sample, "exported_pod") if exported else _label(sample, "pod", "pod_name")
        space = _label(sample, *(("exported_namespace",) if exported else ("namespace", "pod_namespace")))
        here = (bool(pod), sample)
        if host not in self.pod_labels or (pod and not self.pod_labels[host][0]):
            self.pod_labels[host] = here
        holder = instance or device
        for subject in dict.fromkeys((holder, device)):
            self.attributed[subject] = self.attributed.get(subject) or (sample if pod else None)
        if pod:
            owner = Subject(Scope.POD, f"{space}/{pod}" if space else pod, node(host))
            self.scrape.add("pod.uses_gpu", owner, f"gpu:{device.id}", sample)
            if instance is not None:
                self.scrape.add("pod.uses_mig", owner, f"mig:{instance.id}@gpu:{device.id}", sample)

    def xid(self, sample: Sample, device: Subject) -> None:
        code = digits(_label(sample, "xid", "err_code"))
        seen = bool(code) and blank(sample.value) is None and sample.value > 0
        self.xids[device] = (seen or self.xids.get(device, (False, sample))[0], sample)
        if seen:
            fields = {"count": int(sample.value), "window_ms": digits(_label(sample, "window_size_in_ms"))}
            self.scrape.add("xid_exported", device, Event(code, fields), sample)

    def watch(self, sample: Sample, device: Subject) -> None:
        word = _HEALTH_WORDS.get(int(sample.value)) if sample.value in (0, 10, 20) else None
        seen = word in ("warn", "fail")
        self.health[device] = (seen or word is None or self.health.get(device, (False, sample))[0], sample)
        if word is None:
            reading = blank(sample.value) or Reading(None, Status.FAILED, f"{sample.value:g} is no health status")
            self.scrape.add("dcgm_health", device, reading, sample)
        elif seen:
            fields = {"system": _label(sample, "health_watch").lower(), "status": word,
                      "message": _label(sample, "health_error_code", "health_error")}  # fmt: skip
            self.scrape.add("dcgm_health", device, Event(None, fields), sample)


FORMAT = DocumentFormat(NAME, "dcgm-exporter scrape", REVISION, DCGM_FACTS, sniff, parse)
