"""What the collector `nvml` prints (schema ``gpudiag/nvml/1``): NVML's calls and what each returned.

The facts are those of ``nvidia-smi -q``; each observation names the NVML call that told it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from knowledge.identity import UNKNOWN_PCI, normalise_pci
from knowledge.observation import Clock, Observation, Scope, Status, Subject
from knowledge.observation import gpu as gpu_subject
from knowledge.text import clean
from probes.base import Context, DocumentFormat
from probes.parse import _nvml_fields as fields
from probes.parse._json import loaded
from probes.parse._nvml_values import (
    CORRUPTED_INFOROM,
    LOST,
    MISMATCH,
    NO_LIBRARY,
    NO_PERMISSION,
    NOT_LOADED,
    REMEDY,
    RESET_REQUIRED,
    Raw,
    Take,
    code_of,
    cuda,
    failed,
    flag,
    number,
    odd,
    shown,
    text,
)
from probes.parse._smi_emit import CORE, Emitter, mig_id, total
from probes.parse._smi_values import Reading

NAME, REVISION, SCHEMA = "nvml-snapshot", 1, "gpudiag/nvml/1"
# Seconds without an answer after which a call hangs. Calls take microseconds to milliseconds; the first one after a
# quiet time opens the GPU, which takes a second or two without persistence mode.
HANGS_AFTER = 2.0
# ... and of the first call of all, which opens every GPU in turn: eight without persistence mode take 8 to 16 s.
OPENS_WITHIN = 20.0
# Share of a moment for which a thread that waits in a driver is not asleep; less is the noise of a look.
AWAKE = 0.05
_INIT, _HANDLE = "nvmlInitWithFlags", "nvmlDeviceGetHandleByIndex_v2"
_ACCOUNT = re.compile(r"nvmlDeviceGetAccountingStats\((\d{1,10})\)")
_PROFILE = re.compile(r"MIG (\d{1,2}(?:c\.\d{1,2})?g\.\d{1,4}gb(?:\+[a-z.]{1,12})?)")


def sniff(head: str) -> int:
    """100 when the schema stands near the top."""
    return 100 if re.search(r'"schema"\s{0,4}:\s{0,4}"gpudiag/nvml/', head[:400]) else 0


def complete(text_: str) -> bool:
    """True when the collector printed its document to the end."""
    return _document(text_) is not None


def _document(text_: str) -> Mapping[str, Any] | None:
    try:
        found = loaded(text_)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) and found.get("schema") == SCHEMA else None


def parse(text_: str, context: Context) -> list[Observation]:
    """Observations of one document; what was cut off is said, and nothing is taken from such a one."""
    document = _document(text_)
    if document is None:
        emit = _Emitter(context, {})
        reading = Reading(None, Status.FAILED, "the document ends early, or its schema is not gpudiag/nvml/1")
        emit.add("node.driver.state", emit.node, reading)
        return emit.out
    emit = _Emitter(context, document)
    _machine(emit, document)
    return emit.finish()


def _dict(raw: Raw) -> Mapping[str, Any]:
    return raw if isinstance(raw, dict) else {}


def _list(raw: Raw) -> Sequence[Any]:
    return raw if isinstance(raw, list) else ()


def _integer(raw: Raw) -> int | None:
    return raw if isinstance(raw, int) and not isinstance(raw, bool) and 0 <= raw < 1 << 63 else None


class _Emitter(Emitter):
    """Observations whose source is the NVML call."""

    def __init__(self, context: Context, document: Mapping[str, Any]) -> None:
        host = document.get("host")
        named = context if context.host or not isinstance(host, str) else replace(context, host=clean(host)[:255])
        super().__init__(named, NAME, REVISION)
        self.at = _integer(document.get("at_ns"))
        self.clock = Clock.NONE if self.at is None else Clock.REALTIME
        self._document = context

    def told(self, fact: str, subject: Subject, call: str, raw: Raw, reading: Reading) -> None:
        """One observation from what a call returned. `call` names its device: ``nvmlDeviceGetTemperature(3, GPU)``."""
        self.by(call)
        self.add(fact, subject, reading, None, f"{call}: {shown(raw)}")

    def by(self, call: str) -> None:
        """What is added from here on came from `call`."""
        self.context = replace(self._document, source=call, host=self.context.host)

    def _failed_readings(self) -> None:
        """Which core readings failed, for each GPU of which several were asked for. Emitter.finish calls it."""
        asked: dict[Subject, dict[str, bool]] = {}
        for o in self.out:
            if o.fact in CORE and o.subject.scope is Scope.GPU:
                asked.setdefault(o.subject, {})[o.fact] = o.status is Status.FAILED
        for subject, facts in asked.items():
            if len(facts) > 2:
                names = tuple(sorted(name for name, bad in facts.items() if bad))
                self.by("NVML")
                self.add("gpu.readings.failed", subject, names, None, "answered with an error: " + ", ".join(names))


# --- the machine --------------------------------------------------------------------------


def _machine(emit: _Emitter, document: Mapping[str, Any]) -> None:
    calls, hung = _dict(document.get("calls")), [_dict(h) for h in _list(document.get("hung"))]
    for fact, call, take in (
        ("node.driver.version", "nvmlSystemGetDriverVersion", text),
        ("node.driver.nvml_version", "nvmlSystemGetNVMLVersion", text),
        ("node.cuda.version", "nvmlSystemGetCudaDriverVersion_v2", cuda),
        ("node.gpu.count", "nvmlDeviceGetCount_v2", number()),
    ):
        if call in calls:
            emit.told(fact, emit.node, f"{call}()", calls[call], failed(calls[call]) or take(calls[call]))
    devices = [d for d in map(_dict, _list(document.get("devices"))) if _integer(d.get("index")) is not None]
    names = _addresses(devices, _list(document.get("proc_gpus")))
    waits = {h.get("device"): h for h in hung if _integer(h.get("device")) is not None}
    states = [_device(emit, d, names.get(d["index"]), waits.get(d["index"])) for d in devices]
    if devices:
        emit.by("nvmlDeviceGetHandleByIndex_v2()")
        listed = sum(_HANDLE not in _dict(d.get("calls")) for d in devices)
        emit.add("node.gpu.listed", emit.node, listed, None, f"{listed} of {len(devices)} devices gave a handle")
    opening = next((h for h in hung if h.get("device") is None), None)
    if opening is not None:
        _hangs(emit, opening)
    elif devices and all(state == "hung" for state in states):
        _hangs(emit, waits[devices[0]["index"]])
    else:
        _state(emit, document, calls, states)


def _hangs(emit: _Emitter, wait: Mapping[str, Any]) -> None:
    """No call comes back: the driver, or the library under it, does not answer."""
    call, seconds = _waited(wait)
    said = f"{call}: no answer in {seconds:g} s"
    emit.by(f"{call}()" if call.isidentifier() else call)
    enough = seconds >= (OPENS_WITHIN if wait.get("device") is None else HANGS_AFTER)
    if _asleep(wait) and (enough or (wait.get("state") == "D" and seconds >= HANGS_AFTER)):
        emit.add("node.driver.hung_call", emit.node, call, None, said)
        emit.add("node.driver.state", emit.node, "unresponsive", None, said)
    else:
        said += "" if _asleep(wait) else "; it was awake, and waits for a CPU or works"
        emit.add("node.driver.state", emit.node, Reading(None, Status.TIMEOUT, said), None, said)


def _asleep(wait: Mapping[str, Any]) -> bool:
    """Whether the thread that waits stands still: one that runs or waits for a CPU says nothing of the driver.

    Documents of before the collector looked at its threads do not say; they are believed.
    """
    share = wait.get("awake")
    return not (isinstance(share, int | float) and share >= AWAKE and wait.get("state") != "D")


def _waited(wait: Mapping[str, Any]) -> tuple[str, float]:
    seconds = wait.get("seconds")
    fine = isinstance(seconds, int | float) and not isinstance(seconds, bool) and 0 <= seconds < 1e6
    return clean(str(wait.get("call")))[:160] or "NVML", float(seconds) if fine and seconds is not None else 0.0


def _state(emit: _Emitter, document: Mapping[str, Any], calls: Mapping[str, Any], states: Sequence[str]) -> None:
    init = calls.get(_INIT)
    emit.by(f"{_INIT}()")
    if init is None:
        why = _dict(document.get("pynvml")).get("error", "NVML was not asked")
        reading = Reading(None, Status.UNSUPPORTED, f"{clean(str(why))[:160]}: install nvidia-ml-py for this Python")
        emit.add("node.driver.state", emit.node, reading, None, shown(document.get("pynvml")))
        return
    bad = failed(init)
    driver = isinstance(document.get("kernel_module"), str) or bool(_list(document.get("proc_gpus")))
    if bad is not None:
        emit.add(
            "node.driver.state",
            emit.node,
            _initial(init, bad, document.get("pci"), driver),
            None,
            f"{_INIT}(): {shown(init)}",
        )
    elif "lost" in states:
        lost = states.index("lost")
        emit.add("node.driver.state", emit.node, "lost_gpu", None, f"GPU {lost} answers NVML_ERROR_GPU_IS_LOST")
    elif calls.get("nvmlDeviceGetCount_v2") == 0:
        emit.add("node.driver.state", emit.node, "no_devices", None, "nvmlDeviceGetCount_v2(): 0")
    else:
        emit.add("node.driver.state", emit.node, "ok", None, f"{_INIT}(): {shown(init)}")


def _why(raw: Raw) -> str:
    return clean(str(_dict(raw).get("error", "not listed")))[:160]


def _initial(init: Raw, bad: Reading, pci: Raw, driver: bool) -> Reading:
    """State of the driver when nvmlInit fails. `pci`: NVIDIA's GPUs on the bus, as far as that could be listed.

    `driver`: the kernel module is there.
    """
    code = code_of(init)
    if code in (NOT_LOADED, NO_LIBRARY) and pci == []:
        return Reading(None, Status.UNSUPPORTED, "there is no NVIDIA GPU on the PCI bus and no driver that answers")
    if code in (NOT_LOADED, NO_LIBRARY) and pci is not None and not isinstance(pci, list) and not driver:
        # Nothing is wrong with a node without a GPU, and whether this is one is not known.
        why = f"{bad.detail.partition(': ')[2] or bad.detail}, and whether there is a GPU is not known: /sys/bus/pci/devices: {_why(pci)}"
        return Reading(None, Status.FAILED, why)
    if code == NO_PERMISSION:
        return Reading(
            None, Status.DENIED, f"{bad.detail.removesuffix(f': {REMEDY}')}: needs access to /dev/nvidiactl: {REMEDY}"
        )
    names = {NOT_LOADED: "not_loaded", MISMATCH: "library_mismatch", NO_LIBRARY: "library_missing", LOST: "lost_gpu"}
    return Reading(names.get(code, "nvml_failed") if code is not None else "nvml_failed")


def _addresses(devices: Sequence[Mapping[str, Any]], listed: Sequence[Any]) -> dict[int, str]:
    """PCI address of each device: its own answer; for those that give none, the driver's list of what it holds.

    NVML numbers GPUs by PCI address. The place in the sorted list counts only where the list has
    as many names as NVML has devices, and agrees with every GPU that does tell its address.
    """
    told: dict[int, str] = {}
    for device in devices:
        found = normalise_pci(clean(str(_dict(_dict(device.get("calls")).get("nvmlDeviceGetPciInfo_v3")).get("busId"))))
        if not found.startswith(UNKNOWN_PCI):
            told[device["index"]] = found
    held = sorted(normalise_pci(clean(name)) for name in listed if isinstance(name, str))
    agrees = len(held) == len(devices) and all(i < len(held) and held[i] == a for i, a in told.items())
    if agrees and not any(a.startswith(UNKNOWN_PCI) for a in held):
        told.update({d["index"]: held[d["index"]] for d in devices if d["index"] < len(held)})
    return told


# --- one GPU ------------------------------------------------------------------------------


class _Calls:
    """Results of one device's calls and field values, by the name of the call."""

    def __init__(self, device: Mapping[str, Any]) -> None:
        self.index = device["index"]
        self.raw: dict[str, Raw] = dict(_dict(device.get("calls")))
        self.raw.update({f"NVML_FI_DEV_{n}": v for n, v in _dict(device.get("fields")).items()})
        for error, those in _dict(device.get("field_errors")).items():
            kept = {"error": error, "code": _dict(those).get("code")}
            self.raw.update({f"NVML_FI_DEV_{n}": kept for n in _list(_dict(those).get("fields"))})
        refused = self.raw.get("nvmlDeviceGetFieldValues")
        if failed(refused) is not None:  # the one call for all of them
            self.raw.update(
                {f: refused for r in fields.GPU for f in r.calls if f.startswith("NVML_FI_") and f not in self.raw}
            )

    def find(self, names: Sequence[str], take: Take) -> tuple[str, Raw, Reading] | None:
        """The first of the calls that gives a value, else the first that was made; None when none was."""
        first = None
        for name in names:
            if name not in self.raw:
                continue
            raw = self.raw[name]
            reading = failed(raw) or take(raw)
            if reading.ok:
                return name, raw, reading
            first = first or (name, raw, reading)
        return first

    def title(self, name: str) -> str:
        """The call as it is written about this device."""
        if name.startswith("NVML_FI_"):
            return f"nvmlDeviceGetFieldValues({self.index}, {name})"
        bare, _, label = name.partition("(")
        return f"{bare}({self.index}, {label}" if label else f"{bare}({self.index})"


def _device(emit: _Emitter, device: Mapping[str, Any], address: str | None, wait: Mapping[str, Any] | None) -> str:
    """Facts of one GPU. How it fares: ok, lost or hung."""
    calls = _Calls(device)
    index = calls.index
    subject = gpu_subject(address or f"index:{index}", emit.host)
    emit.by(f"{_HANDLE}({index})")
    emit.add("gpu.index", subject, index, None, f"{_HANDLE}({index})")
    live: dict[str, Reading] = {}
    guest = calls.raw.get("nvmlDeviceGetVirtualizationMode") == 2
    for row in (*fields.GPU, *fields.FABRIC):
        found = calls.find(row.calls, row.take)
        if found is None:
            continue
        name, raw, reading = found
        if guest and reading.value == 0 and row.fact.startswith(("gpu.temperature.", "gpu.clock.")):
            reading = Reading(None, Status.UNSUPPORTED, "a vGPU guest cannot read it; NVML answers 0")
        emit.told(row.fact, subject, calls.title(name), raw, reading)
        if row.live:
            live[row.fact] = reading
    _events(emit, subject, calls)
    _ecc_sums(emit, subject, calls)
    _fan_and_inforom(emit, subject, calls)
    _rates(emit, subject, calls, _dict(device.get("gpm")))
    _links(emit, subject, calls, _dict(device.get("links")))
    instances = _mig(emit, subject, calls, device)
    _processes(emit, subject, calls, instances)
    return _reachable(emit, subject, calls, live, wait)


def _reachable(
    emit: _Emitter, subject: Subject, calls: _Calls, live: Mapping[str, Reading], wait: Mapping[str, Any] | None
) -> str:
    fact = "gpu.nvml.reachable"
    lost = next((name for name, raw in calls.raw.items() if code_of(raw) == LOST), None)
    if lost is not None:
        emit.told(fact, subject, calls.title(lost), calls.raw[lost], Reading(False))
        return "lost"
    reset = next((name for name, raw in calls.raw.items() if code_of(raw) == RESET_REQUIRED), None)
    if reset is not None:
        emit.told("gpu.reset_required", subject, calls.title(reset), calls.raw[reset], Reading(True))
    if wait is not None:
        return _device_hangs(emit, subject, calls, wait)
    refused = calls.raw.get(_HANDLE)
    if refused is not None:
        reading = failed(refused) or odd(refused, "a handle")
        emit.told(
            fact, subject, calls.title(_HANDLE), refused, Reading(False) if reading.status is Status.FAILED else reading
        )
    elif any(r.ok for r in live.values()):
        emit.by(f"NVML({calls.index})")
        emit.add(fact, subject, True, None, f"{sum(r.ok for r in live.values())} live readings answered")
    elif sum(r.status is Status.FAILED for r in live.values()) >= 3:
        emit.by(f"NVML({calls.index})")
        why = next(r.detail for r in live.values() if r.status is Status.FAILED)
        emit.add(fact, subject, False, None, f"only errors: {why}")
    return "ok"


def _device_hangs(emit: _Emitter, subject: Subject, calls: _Calls, wait: Mapping[str, Any]) -> str:
    call, seconds = _waited(wait)
    titled = calls.title(call)
    said = f"{titled}: no answer in {seconds:g} s"
    emit.by(titled)
    late = Reading(None, Status.TIMEOUT, said)
    for fact in CORE:
        if not any(o.fact == fact and o.subject == subject for o in emit.out):
            emit.add(fact, subject, late, None, said)
    if seconds < HANGS_AFTER or not _asleep(wait):
        emit.add("gpu.nvml.reachable", subject, late, None, said)
        return "late"
    emit.add("gpu.nvml.hung_call", subject, call, None, said)
    emit.add("gpu.nvml.reachable", subject, False, None, said)
    return "hung"


def _events(emit: _Emitter, subject: Subject, calls: _Calls) -> None:
    """The reasons for which clocks are held down, bit by bit. A reason that the GPU cannot report is no "no"."""
    name = "nvmlDeviceGetCurrentClocksEventReasons"
    found = calls.find((name,), number())
    if found is None:
        return
    supported = calls.raw.get("nvmlDeviceGetSupportedClocksEventReasons")
    for fact, bit in fields.EVENT_REASONS.items():
        reading = found[2]
        if isinstance(reading.value, int):
            reading = Reading(bool(reading.value & bit))
            if not reading.value and isinstance(supported, int) and not supported & bit:
                reading = Reading(None, Status.UNSUPPORTED, "not among nvmlDeviceGetSupportedClocksEventReasons")
        emit.told(fact, subject, calls.title(name), found[1], reading)


def _ecc_sums(emit: _Emitter, subject: Subject, calls: _Calls) -> None:
    """SRAM errors where NVML tells only its parts (Volta and older), and totals that it does not tell."""
    have = {o.fact: Reading(o.value if isinstance(o.value, int) else None, o.status, o.detail)
            for o in emit.out if o.subject == subject and o.fact.startswith("gpu.ecc.")}  # fmt: skip
    for window in ("volatile", "aggregate"):
        for kind in ("corrected", "uncorrected"):
            name, label = (
                f"gpu.ecc.{window}.{kind}",
                f"nvmlDeviceGetMemoryErrorCounter({kind.upper()}, {window.upper()}, ",
            )
            parts = {n: calls.raw[n] for n in calls.raw if n.startswith(label) and not n.endswith(("DRAM)", "SRAM)"))}
            good = [v for v in parts.values() if _integer(v) is not None]
            if good and not have.get(f"{name}.sram", Reading(None, Status.FAILED)).ok:
                _forget(emit, f"{name}.sram", subject)
                have[f"{name}.sram"] = total(number()(v) for v in good)
                emit.by(f"{label}*)".replace("(", f"({calls.index}, ", 1))
                emit.add(f"{name}.sram", subject, have[f"{name}.sram"], None, f"sum of {shown(good)}")
            halves = [have.get(f"{name}.{place}") for place in ("sram", "dram")]
            if not have.get(f"{name}.total", Reading(None, Status.FAILED)).ok and all(
                h is not None and h.ok for h in halves
            ):
                _forget(emit, f"{name}.total", subject)
                emit.by(f"{label}*)".replace("(", f"({calls.index}, ", 1))
                emit.add(f"{name}.total", subject, total(h for h in halves if h), None, f"SRAM + DRAM {kind}, {window}")


def _forget(emit: _Emitter, fact: str, subject: Subject) -> None:
    emit.out = [o for o in emit.out if not (o.fact == fact and o.subject == subject)]


def _fan_and_inforom(emit: _Emitter, subject: Subject, calls: _Calls) -> None:
    fan = calls.find(("nvmlDeviceGetFanSpeed",), number())
    if fan is not None and fan[2].status in (Status.OK, Status.FAILED) and code_of(fan[1]) != LOST:
        emit.told("gpu.fan.state", subject, calls.title(fan[0]), fan[1], Reading("ok" if fan[2].ok else "error"))
    name = "nvmlDeviceValidateInforom"
    if name in calls.raw:
        raw = calls.raw[name]
        reading = Reading(True) if raw is None else failed(raw) or odd(raw, "nothing")
        corrupt = code_of(raw) == CORRUPTED_INFOROM
        emit.told("gpu.inforom.valid", subject, calls.title(name), raw, Reading(False) if corrupt else reading)


def _rates(emit: _Emitter, subject: Subject, calls: _Calls, gpm: Mapping[str, Any]) -> None:
    """Activity and throughput. PCIe is counted on every GPU, the rest by GPM."""
    _activity(emit, subject, f"nvmlGpmMetricsGet({calls.index}", gpm)
    for fact, call, metric in fields.RATES:
        found = calls.find((call,), fields.kilobytes) if call else None
        if (found is None or not found[2].ok) and (metric in gpm or failed(gpm) is not None):
            raw = gpm.get(metric, gpm)
            reading = failed(raw) or fields.gigabytes(raw)
            emit.told(fact, subject, f"nvmlGpmMetricsGet({calls.index}, {metric})", raw, reading)
        elif found is not None:
            emit.told(fact, subject, calls.title(call), found[1], found[2])


def _activity(emit: _Emitter, subject: Subject, call: str, gpm: Mapping[str, Any]) -> None:
    """Profiling counters between two samples, of a GPU or of a MIG instance."""
    refused = failed(gpm)
    for metric, end in fields.ACTIVITY:
        if refused is not None or metric in gpm:
            raw = gpm.get(metric, gpm)
            reading = refused or failed(raw) or fields.percent(raw)
            emit.told(f"{subject.scope}.activity.{end}", subject, f"{call}, {metric})", raw, reading)


# --- links, MIG, processes ----------------------------------------------------------------


def _links(emit: _Emitter, subject: Subject, calls: _Calls, links: Mapping[str, Any]) -> None:
    """Every link that the device has. Where none is up it may be a card without a bridge: their states say no more
    than their number."""
    call = "nvmlDeviceGetNvLinkState"
    states: dict[str, Reading] = {}
    for number_, link in _numbered(links):
        raw = link.get(call)
        if link.get("nvmlDeviceGetNvLinkCapability(VALID)") == 0:
            continue
        reading = failed(raw) or flag(raw)
        states[number_] = Reading("active" if reading.value else "inactive") if reading.ok else reading
    if not states:
        none = calls.find((f"{call}(0)",), flag)
        if none is not None:
            for fact in ("gpu.nvlink.active", "gpu.nvlink.inactive"):
                emit.told(fact, subject, f"{call}({calls.index}, 0)", none[1], none[2])
        return
    bad = next((r for r in states.values() if not r.ok), None)
    up = sum(r.value == "active" for r in states.values())
    emit.by(f"{call}({calls.index}, *)")
    emit.add("gpu.nvlink.active", subject, bad or up, None, f"{up} of {len(states)} links are active")
    if not up and bad is None:
        return
    down = sum(r.value == "inactive" for r in states.values())
    emit.add("gpu.nvlink.inactive", subject, bad or down, None, f"{down} of {len(states)} links are inactive")
    for number_, link in _numbered(links):
        if number_ in states:
            _link(emit, Subject(Scope.LINK, number_, subject), calls, link, states[number_])


def _numbered(links: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    for name, link in links.items():
        if name.isascii() and name.isdigit() and len(name) < 4:
            yield str(int(name)), _dict(link)


def _link(emit: _Emitter, subject: Subject, calls: _Calls, link: Mapping[str, Any], state: Reading) -> None:
    call = "nvmlDeviceGetNvLinkState"
    emit.told("link.state", subject, f"{call}({calls.index}, {subject.id})", link.get(call), state)
    for row in (*fields.LINK, *fields.LINK_UP):
        first: tuple[str, Raw, Reading] | None = None
        for name in row.calls:
            field = f"{name}[{subject.id}]"
            if name not in link and field not in calls.raw:
                continue
            raw = link[name] if name in link else calls.raw[field]
            reading = failed(raw) or row.take(raw)
            title = calls.title(
                field
                if name not in link
                else name.replace("(", f"({subject.id}, ", 1)
                if "(" in name
                else f"{name}({subject.id})"
            )
            first = (title, raw, reading) if first is None or (reading.ok and not first[2].ok) else first
        if first is not None:
            emit.told(row.fact, subject, *first)


def _mig(emit: _Emitter, subject: Subject, calls: _Calls, device: Mapping[str, Any]) -> dict[tuple[int, int], Subject]:
    """The MIG devices, by GPU instance and compute instance."""
    found: dict[tuple[int, int], Subject] = {}
    entries = [_dict(m) for m in _list(device.get("mig"))]
    for entry in entries:
        own = _Calls({"index": calls.index, "calls": entry.get("calls")})
        gi, ci = (_integer(own.raw.get(f"nvmlDeviceGet{name}InstanceId")) for name in ("Gpu", "Compute"))
        if gi is None or ci is None:
            continue
        instance = found[gi, ci] = Subject(Scope.MIG, mig_id(str(gi), str(ci)), subject)
        where = f"{calls.index}, MIG {entry.get('index')}"
        for row in fields.MIG:
            if (told := own.find(row.calls, row.take)) is not None:
                emit.told(
                    row.fact, instance, own.title(told[0]).replace(f"({calls.index}", f"({where}", 1), told[1], told[2]
                )
        if _integer(entry.get("index")) is not None:
            emit.add("mig.index", instance, entry["index"], None, f"nvmlDeviceGetMigDeviceHandleByIndex({where[:-1]})")
        profile = _PROFILE.search(str(own.raw.get("nvmlDeviceGetName")))
        if profile is not None:
            emit.told(
                "mig.profile",
                instance,
                f"nvmlDeviceGetName({where})",
                own.raw["nvmlDeviceGetName"],
                Reading(profile[1]),
            )
        _activity(emit, instance, f"nvmlGpmMetricsGet({where}", _dict(entry.get("gpm")))
    if device.get("mig") is not None:
        emit.by(f"nvmlDeviceGetMigDeviceHandleByIndex({calls.index}, *)")
        emit.add("gpu.mig.devices", subject, len(entries), None, f"{len(entries)} MIG devices")
    return found


_LISTS = (
    ("nvmlDeviceGetComputeRunningProcesses_v3", "C"), ("nvmlDeviceGetGraphicsRunningProcesses_v3", "G"),
    ("nvmlDeviceGetMPSComputeRunningProcesses_v3", "M+C"),
)  # fmt: skip
_NO_MEMORY = Reading(None, Status.UNSUPPORTED, "NVML_VALUE_NOT_AVAILABLE: the driver does not tell it for this process")


def _processes(emit: _Emitter, subject: Subject, calls: _Calls, instances: Mapping[tuple[int, int], Subject]) -> None:
    for call, kind in _LISTS:
        raw = calls.raw.get(call)
        if isinstance(raw, list):
            emit.no_processes(subject)
            for entry in map(_dict, raw):
                _process(emit, subject, calls.title(call), kind, entry, instances)
        elif kind == "C" and raw is not None:
            emit.processes_unknown(subject, failed(raw) or odd(raw, "a list"))
    for name in calls.raw:
        if (found := _ACCOUNT.fullmatch(name)) is not None:
            raw = calls.raw[name]
            most = _integer(_dict(raw).get("maxMemoryUsage"))
            process = Subject(Scope.PROCESS, found[1], emit.node)
            reading = failed(raw) or (_NO_MEMORY if most is None else number(1 / (1 << 20))(most))
            emit.told("process.gpu_memory_max", process, calls.title(name), raw, reading)
    emit.by("nvmlDeviceGetComputeRunningProcesses_v3()")
    _shares(emit, calls)


def _process(
    emit: _Emitter, subject: Subject, call: str, kind: str, entry: Mapping[str, Any],
    instances: Mapping[tuple[int, int], Subject],
) -> None:  # fmt: skip
    pid, memory = _integer(entry.get("pid")), _integer(entry.get("usedGpuMemory"))
    if pid is None:
        return
    place = instances.get((_integer(entry.get("gpuInstanceId")) or 0, _integer(entry.get("computeInstanceId")) or 0))
    used = _NO_MEMORY if memory is None else number(1 / (1 << 20))(memory)
    emit.process(str(pid), subject, used, kind=kind, instance=place, excerpt=f"{call}: {shown(entry)}")


def _shares(emit: _Emitter, calls: _Calls) -> None:
    """The newest sample of each process."""
    call = "nvmlDeviceGetProcessUtilization"
    newest: dict[int, Mapping[str, Any]] = {}
    for sample in map(_dict, _list(calls.raw.get(call))):
        pid, time = _integer(sample.get("pid")), _integer(sample.get("timeStamp"))
        if pid is not None and time is not None and time >= newest.get(pid, sample)["timeStamp"]:
            newest[pid] = sample
    context = emit.context
    for pid, sample in sorted(newest.items()):
        emit.by(calls.title(call))
        emit.share(str(pid), number()(sample.get("smUtil")), None, f"{calls.title(call)}: {shown(sample)}")
    emit.context = context


PROVIDES = tuple(sorted({
    *(row.fact for row in (*fields.GPU, *fields.FABRIC, *fields.MIG, *fields.LINK, *fields.LINK_UP)),
    *fields.EVENT_REASONS, *(fact for fact, _, _ in fields.RATES),
    *(f"{scope}.activity.{end}" for scope in ("gpu", "mig") for _, end in fields.ACTIVITY),
    "node.driver.state", "node.driver.version", "node.driver.nvml_version", "node.driver.hung_call", "node.cuda.version",
    "node.gpu.count", "node.gpu.listed", "gpu.index", "gpu.nvml.reachable", "gpu.nvml.hung_call", "gpu.readings.failed",
    "gpu.fan.state", "gpu.inforom.valid", "gpu.nvlink.active", "gpu.nvlink.inactive", "gpu.processes", "gpu.mig.devices",
    "link.state", "mig.index", "mig.profile", "process.uses_gpu", "process.uses_mig", "process.gpu_memory",
    "process.gpu_memory_max", "process.gpu_contexts", "process.gpu_utilization",
}))  # fmt: skip
FORMAT = DocumentFormat(NAME, "NVML snapshot", REVISION, PROVIDES, sniff, parse)
