"""GPUs and accelerators of other vendors than NVIDIA: which there are, and of whose health nothing told.

The bus tells which devices there are and whose; drivers and tools of the vendors tell how they are. A device that only
the bus tells of is not in order: it is unknown, and `node.gpus.not_judged` names it. That a node has none is known where the
whole bus was read, shows GPUs of NVIDIA and nothing that may be another's, and nothing else tells of one.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence

from knowledge.derive._added import with_added
from knowledge.observation import Observation, Origin, Scope, Source, Status, Subject, gpu, node

# One of these, answered, is what the health of a device is judged by. That a card has no error counters is an answer.
JUDGED_BY = ("gpu.ras.uncorrected", "gpu.health.state")
_GRAPHICS = "VGA compatible controller"
_SPEAK = {"amdgpu_": "amd", "intel_gpu_": "intel"}  # whose GPU an event of the kernel log is about


def enrich(observations: Sequence[Observation]) -> list[Observation]:
    """The batch with `gpu.vendor` of what the bus shows, and the sets `node.gpus.*` of each node that has such devices."""
    seen = _Seen(observations)
    if not (seen.vendor or seen.spoke or seen.clear):
        return list(observations)
    return with_added(observations, _derived(seen))


class _Seen:
    """What the batch tells of such devices, by node and by the GPU that they are."""

    def __init__(self, observations: Sequence[Observation]) -> None:
        self.vendor: dict[Subject, Observation] = {}  # GPU -> what tells whose it is
        self.spoke: dict[Subject, tuple[str, Observation]] = {}  # GPU -> whose driver speaks of it in the log
        self.on_bus: set[Subject] = set()
        self.bound: dict[Subject, Observation] = {}
        self.listed: dict[Subject, Observation] = {}
        self.judged: set[Subject] = set()
        self.nvidia: set[str] = set()  # hosts with GPUs of NVIDIA
        self.on_bus_of: set[str] = set()  # hosts whose bus shows GPUs of NVIDIA
        self.clear: dict[str, Observation] = {}  # host -> that its bus shows no GPU of another vendor
        screens: set[Subject] = set()
        for o in observations:
            if o.source.call.startswith("history:"):
                continue
            self._take(o, screens)
        # Beside GPUs of NVIDIA a graphics card may be there for the screen alone: nobody asks for its health.
        self.screens = {g for g in screens if g.host in self.nvidia}

    def _take(self, o: Observation, screens: set[Subject]) -> None:
        ok = o.status is Status.OK
        if o.subject.scope is Scope.PCI:
            device = gpu(o.subject.id, o.subject.host)
            if o.fact == "pci.accelerator" and ok:
                self.vendor.setdefault(device, o)
                self.on_bus.add(device)
            elif o.fact == "pci.accelerator.bound" and ok:
                self.bound[device] = o
            elif o.fact == "pci.class" and ok and o.value == _GRAPHICS:
                screens.add(device)
        elif o.subject.scope is Scope.GPU and ok and (whose := _speaker(o.fact)):
            self.spoke.setdefault(o.subject, (whose, o))
        elif o.fact == "gpu.vendor" and ok and o.value != "nvidia" and o.origin is not Origin.DERIVED:
            self.vendor.setdefault(o.subject, o)
        elif o.fact == "gpu.vendor_index" and ok:
            self.listed.setdefault(o.subject, o)
        elif o.fact in JUDGED_BY and o.status.answered and o.value != "unknown":
            self.judged.add(o.subject)
        elif o.fact in ("node.pci.gpu_count", "node.gpu.count") and ok and isinstance(o.value, int) and o.value:
            self.nvidia.add(o.subject.host)
            if o.fact == "node.pci.gpu_count":
                self.on_bus_of.add(o.subject.host)
        elif o.fact == "node.pci.other_gpus" and ok and o.value == ():
            self.clear[o.subject.host] = o

    def alone(self) -> Iterable[tuple[str, Observation]]:
        """Hosts of which all GPUs are known to be NVIDIA's. What is told of a node without a name may be of any."""
        told = {device.host for device in (*self.vendor, *self.spoke)}
        for host, o in sorted(self.clear.items()):
            if host in self.on_bus_of and told.isdisjoint(("", host)) and not (host == "" and told):
                yield host, o


def _speaker(fact: str) -> str:
    return next((vendor for start, vendor in _SPEAK.items() if fact.startswith(start)), "")


def _derived(seen: _Seen) -> Iterable[Observation]:
    for host, o in seen.alone():
        yield _of("node.gpus.other", node(host), (), o, "all GPUs on the bus are NVIDIA's")
    # A log alone asks nobody to judge a GPU: it only tells whose it is.
    for device, (whose, o) in sorted(seen.spoke.items(), key=lambda item: str(item[0])):
        if device not in seen.vendor:
            yield _of("gpu.vendor", device, whose, o)
    hosts: dict[str, list[Subject]] = defaultdict(list)
    for device, first in sorted(seen.vendor.items(), key=lambda item: str(item[0])):
        hosts[device.host].append(device)
        if first.fact == "pci.accelerator":
            yield _of("gpu.vendor", device, str(first.value), first)
    for host, devices in sorted(hosts.items()):
        first = seen.vendor[devices[0]]
        yield _set("node.gpus.other", host, devices, first, _shown(seen, devices))
        unknown = [d for d in devices if d not in seen.judged and d not in seen.screens]
        yield _set("node.gpus.not_judged", host, unknown, first, _shown(seen, unknown) or "the health of each was told")
        told = [d for d in devices if d in seen.bound]
        if told:
            free = [d for d in told if seen.bound[d].value is False]
            yield _set("node.gpus.unbound", host, free, seen.bound[told[0]], f"{len(told) - len(free)} have a driver")
        yield from _unlisted(seen, host, devices)


def _unlisted(seen: _Seen, host: str, devices: Sequence[Subject]) -> Iterable[Observation]:
    """On the bus, and not in a list of their vendor's tool that has others. Without a list, or a bus, there is no answer."""
    makers = {str(seen.vendor[d].value) for d in devices if d in seen.listed}
    asked = [d for d in devices if d in seen.on_bus and str(seen.vendor[d].value) in makers]
    if asked:
        missing = [d for d in asked if d not in seen.listed]
        by = next(seen.listed[d] for d in devices if d in seen.listed)
        yield _set("node.gpus.unlisted", host, missing, by, f"{len(asked) - len(missing)} of {len(asked)} are listed")


def _shown(seen: _Seen, devices: Sequence[Subject]) -> str:
    return ", ".join(f"{d.id} {seen.vendor[d].value}" for d in devices[:8])


def _set(fact: str, host: str, devices: Sequence[Subject], of: Observation, shown: str) -> Observation:
    return _of(fact, node(host), tuple(d.id for d in devices), of, shown)


def _of(fact: str, subject: Subject, value: str | tuple[str, ...], of: Observation, shown: str = "") -> Observation:
    return Observation(
        fact, subject, value, source=Source("derived", of.source.call, of.source.line), at=of.at, clock=of.clock,
        excerpt=shown or of.excerpt, origin=Origin.DERIVED,
    )  # fmt: skip
