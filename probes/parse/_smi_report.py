"""The tree of an ``nvidia-smi -q`` report (text or XML) as observations."""

from __future__ import annotations

from collections.abc import Sequence

from knowledge.identity import UNKNOWN_PCI
from knowledge.observation import Scope, Status, Subject
from probes.parse._smi_emit import Emitter, mig_id, total
from probes.parse._smi_fields import GPU, HEAD, MIG, Field, count, mebibytes
from probes.parse._smi_tree import Node
from probes.parse._smi_values import LOST, Reading, absent

_OLD_SRAM = (
    "register_file", "l1_cache", "l2_cache", "texture_memory", "texture_shared", "texture_shm", "cbu",
)  # fmt: skip
PROVIDES: tuple[str, ...] = tuple(
    sorted({
        *(row.fact for row in (*GPU, *HEAD, *MIG)), "gpu.nvml.reachable", "gpu.readings.failed", "gpu.fan.state", "gpu.processes",
        "gpu.mig.devices", "node.driver.state", "node.gpu.listed", "process.uses_gpu", "process.uses_mig",
        "process.gpu_memory", "process.name", "process.gpu_contexts",
    })
)  # fmt: skip


def report(emit: Emitter, root: Node, incomplete: str = "") -> None:
    """All facts of one report. `incomplete` says why it ends early."""
    top = root.child("nvidia_smi_log") or root
    sections = [c for c in top.children if c.key.startswith("gpu:")]
    stamp = top.child("timestamp")
    if stamp is not None and stamp.value:
        emit.taken(stamp.value)
    for row in HEAD:
        _field(emit, emit.node, top, row)
    if top.child("driver_version") is not None:
        emit.add("node.driver.state", emit.node, "ok", None, "driver_version")
    if incomplete:
        emit.add("node.gpu.listed", emit.node, Reading(None, Status.FAILED, f"the report ends early: {incomplete}"))
    elif sections and UNKNOWN_PCI not in sections[0].key:  # a piece without its head lists nobody
        emit.add("node.gpu.listed", emit.node, len(sections))
    indices = _indices(top, sections)
    for position, section in enumerate(sections):
        _gpu(emit, section, position if indices else None)


def _indices(top: Node, sections: Sequence[Node]) -> bool:
    """True when the order of the sections is the driver's: all attached GPUs are listed."""
    attached = top.child("attached_gpus")
    reading = count(attached.value) if attached is not None and attached.value is not None else Reading(None)
    if reading.value != len(sections):
        return False
    if len(sections) > 1:
        return True
    minor = sections[0].child("minor_number") if sections else None  # one GPU, or one that was asked for
    return minor is not None and minor.value == "0"


def look_up(section: Node, paths: Sequence[str], row: Field) -> tuple[Reading, Node] | None:
    """The first value of a row's places, else the first reason why there is none; None when nothing was printed."""
    missing: tuple[Reading, Node] | None = None
    implied: tuple[Reading, Node] | None = None
    for path in paths:
        found = section.find(path)
        if found is None or found.value is None:
            continue
        if found.key != path.rsplit("/", 1)[-1]:  # a section that was printed as N/A answers for its fields
            if (reading := absent(found.value)) is not None:
                implied = implied or (reading, found)
            continue
        reading = row.convert(found.value)
        if reading.ok:
            return reading, found
        missing = missing or (reading, found)
    return missing or implied


def _field(emit: Emitter, subject: Subject, section: Node, row: Field) -> Reading | None:
    found = look_up(section, row.paths, row)
    if found is None:
        return None
    emit.add(row.fact, subject, found[0], found[1].line, found[1].excerpt)
    return found[0]


def _gpu(emit: Emitter, section: Node, index: int | None) -> None:
    subject = emit.gpu(section.key.partition(":")[2])
    guest = look_up(section, ("gpu_virtualization_mode/virtualization_mode",), _VIRTUALIZATION)
    is_guest = guest is not None and guest[0].value == "vgpu"
    readings: dict[str, Reading] = {}
    if index is not None:
        emit.add("gpu.index", subject, index, section.line, section.label)
    for row in GPU:
        found = look_up(section, row.paths, row)
        if found is None:
            continue
        reading, printed = found
        if is_guest and reading.value == 0 and row.fact.startswith(("gpu.temperature.", "gpu.clock.")):
            reading = Reading(None, Status.UNSUPPORTED, "a vGPU guest cannot read it; the tool prints 0")
        readings[row.fact] = reading
        emit.add(row.fact, subject, reading, printed.line, printed.excerpt)
    _fan(emit, subject, section, readings)
    _ecc_sums(emit, subject, section, readings)
    _reachable(emit, subject, section, readings)
    _mig(emit, subject, section)
    _processes(emit, subject, section)


_VIRTUALIZATION = next(row for row in GPU if row.fact == "gpu.virtualization")


def _fan(emit: Emitter, subject: Subject, section: Node, readings: dict[str, Reading]) -> None:
    """A fan that answers with an error is a fault; one that is N/A does not exist."""
    reading, printed = readings.get("gpu.fan.speed"), section.child("fan_speed")
    if reading is not None and printed is not None and reading.status in (Status.OK, Status.FAILED):
        emit.add("gpu.fan.state", subject, "ok" if reading.ok else "error", printed.line, printed.excerpt)


def _ecc_sums(emit: Emitter, subject: Subject, section: Node, readings: dict[str, Reading]) -> None:
    """SRAM and totals where a driver prints only their parts; a missing part makes the sum missing."""
    for window in ("volatile", "aggregate"):
        for kind, old in (("corrected", "single_bit"), ("uncorrected", "double_bit")):
            name = f"gpu.ecc.{window}.{kind}"
            if f"{name}.sram" not in readings:
                parts = _sram_parts(section, window, kind, old)
                if parts:
                    readings[f"{name}.sram"] = total(count(p.value or "") for p in parts)
                    quoted = "; ".join(p.excerpt for p in parts)
                    emit.add(f"{name}.sram", subject, readings[f"{name}.sram"], parts[0].line, quoted)
            halves = [readings.get(f"{name}.{part}") for part in ("sram", "dram")]
            if f"{name}.total" not in readings and halves[0] is not None and halves[1] is not None:
                both = total([halves[0], halves[1]])
                emit.add(f"{name}.total", subject, both, None, f"SRAM + DRAM {kind}, {window}")


def _sram_parts(section: Node, window: str, kind: str, old: str) -> list[Node]:
    where = section.find(f"ecc_errors/{window}")
    if where is None or where.key != window:
        return []
    if kind == "uncorrected":
        names = ("sram_uncorrectable_parity", "sram_uncorrectable_sec_ded", "sram_uncorrectable_secded")
        if new := [c for n in names for c in where.all(n) if c.value is not None]:
            return new
    locations = where.child(old)
    return [c for n in _OLD_SRAM for c in locations.all(n) if c.value is not None] if locations else []


def _reachable(emit: Emitter, subject: Subject, section: Node, readings: dict[str, Reading]) -> None:
    """Whether NVML still answers for this GPU: a lost one prints errors where live readings stand."""
    lost = next((n for n in section.walk() if LOST.search(n.value if n.value is not None else n.label)), None)
    if lost is not None:
        emit.add("gpu.nvml.reachable", subject, False, lost.line, lost.excerpt)
        return
    live = [readings[row.fact] for row in GPU if row.dynamic and row.fact in readings]
    emit.answers(subject, live or list(readings.values()), section.line, section.label)


def _mig(emit: Emitter, subject: Subject, section: Node) -> None:
    listed = section.child("mig_devices")
    devices = [*section.all("mig_device"), *(listed.all("mig_device") if listed else ())]
    for device in devices:
        instance = Subject(Scope.MIG, mig_id(_text(device, "gpu_instance_id"), _text(device, "compute_instance_id")),
                           subject)  # fmt: skip
        for row in MIG:
            _field(emit, instance, device, row)
    mode = section.find("mig_mode/current") or section.find("mig_mode/current_mig")
    if devices or (mode is not None and mode.value == "Enabled"):
        emit.add("gpu.mig.devices", subject, len(devices), section.line, section.label)


def _text(section: Node, name: str) -> str:
    found = section.child(name)
    return found.value.strip() if found is not None and found.value else ""


def _printed(section: Node, name: str) -> str | None:
    found = section.child(name)
    return None if found is None else (found.value or "").strip()


def _processes(emit: Emitter, subject: Subject, section: Node) -> None:
    listed = section.child("processes") or section.child("compute_processes")
    if listed is None:
        return
    entries = [*_text_processes(listed), *_xml_processes(listed)]
    if not entries and not listed.children:
        word = (listed.value or "").strip().lower()
        reading = absent(word) if word not in ("", "none") else None
        if reading is not None:
            emit.processes_unknown(subject, reading)
        else:
            emit.no_processes(subject)
    for pid, memory, name, kind, place in entries:
        used = mebibytes(memory.value or "") if memory is not None else None
        label = f"pid {pid} {name or ''} {memory.value if memory else ''}"
        instance = Subject(Scope.MIG, place, subject) if place else None
        emit.process(pid, subject, used, name=name, kind=kind, instance=instance,
                     line=memory.line if memory else listed.line, excerpt=label)  # fmt: skip


_Entry = tuple[str, Node | None, str | None, str, str]


def _text_processes(listed: Node) -> list[_Entry]:
    """``Process ID : 4242`` with its fields below it; the instance ids stand before it."""
    out: list[_Entry] = []
    instance = compute = ""
    for child in listed.children:
        match child.key:
            case "gpu_instance_id":
                instance, compute = (child.value or "").strip(), ""
            case "compute_instance_id":
                compute = (child.value or "").strip()
            case "process_id":
                place = mig_id(instance, compute) if instance.isdigit() else ""
                out.append((child.value or "", child.child("used_gpu_memory"), _printed(child, "name"),
                            _text(child, "type"), place))  # fmt: skip
    return out


def _xml_processes(listed: Node) -> list[_Entry]:
    out: list[_Entry] = []
    for info in listed.all("process_info"):
        instance = _text(info, "gpu_instance_id")
        place = mig_id(instance, _text(info, "compute_instance_id")) if instance.isdigit() else ""
        out.append((_text(info, "pid"), info.child("used_memory"), _printed(info, "process_name"),
                    _text(info, "type"), place))  # fmt: skip
    return out
