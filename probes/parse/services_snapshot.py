"""Output of the collector `services`: units of systemd, or processes and sockets where there is no systemd."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from knowledge.observation import Observation, Scope, Status, Subject
from knowledge.text import digits
from probes.base import Context, DocumentFormat
from probes.parse import _host_snapshot as shared
from probes.parse._host_snapshot import Snapshot, gap, mapping, mappings, whole, words
from probes.parse._smi_values import Reading
from probes.parse._systemctl import ROLES, Unit, best, mount_point, units

NAME, REVISION, SCHEMA = "services-snapshot", 1, "gpudiag/services/1"
OF_UNIT = (
    "service.state", "service.role", "service.result", "service.restarts", "service.uptime", "service.enabled", "service.mount_point",
)  # fmt: skip
STATES = tuple(f"node.service.{role}.state" for role in ROLES)
PROVIDES = (*STATES, *OF_UNIT, "node.clock.synchronised", "node.clock.error", "node.driver.version")
UNSYNCHRONISED = 0x40  # STA_UNSYNC of adjtimex(2)
# Names of processes as the kernel cuts them, and what they do.
_PROCESSES = {
    "nv-fabricmanage": "fabric_manager", "nvidia-fabricma": "fabric_manager", "nvidia-persiste": "persistence",
    "nv-hostengine": "dcgm", "nvidia-imex": "imex", "nvidia-cuda-mps": "mps", "dockerd": "docker",
    "containerd": "container_runtime", "crio": "container_runtime", "kubelet": "kubelet", "k3s": "kubelet",
    "k3s-server": "kubelet", "k3s-agent": "kubelet", "rke2": "kubelet", "slurmd": "slurmd", "munged": "munge",
    "opensm": "subnet_manager", "chronyd": "time_sync", "ntpd": "time_sync", "systemd-timesyn": "time_sync",
    "ptp4l": "time_sync", "phc2sys": "time_sync",
}  # fmt: skip
# A socket that is handed into a container tells that somebody serves it outside.
_SOCKETS = {"/run/nvidia-persistenced/socket": "persistence"}
# NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.90.07  Fri May 31 09:35:42 UTC 2024
# NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  570.86.15  Release Build  (dvs-builder@...)
_DRIVER = re.compile(r"NVRM version: .{1,80}?\s(\d{2,4}\.\d{1,4}(?:\.\d{1,4})?)\s")
_BLIND = (
    "systemd does not answer here and the processes of the node cannot be seen "
    "(a container with a pid namespace of its own, or hidepid): run gpudiag on the node"
)


def sniff(head: str) -> int:
    """100 on the schema."""
    return shared.sniff(head, SCHEMA)


def parse(text: str, context: Context) -> list[Observation]:
    """Observations of one document."""
    document = shared.document(text, SCHEMA)
    emit = Snapshot(context, NAME, REVISION, document)
    if not document:
        reading = Reading(None, Status.FAILED, "the document is cut or is no JSON")
        for fact in STATES:
            emit.add(fact, emit.node, reading, emit.name)
        return emit.out
    answer = mapping(document.get("systemctl"))
    found = units(words(answer.get("text"))) if answer.get("exit") == 0 else []
    if found:
        uptime = document.get("uptime_s")
        tell(emit, found, "systemctl show", uptime if isinstance(uptime, int | float) else None)
    else:
        _processes(emit, document, answer)
    _clock(emit, mapping(document.get("clock")))
    line = document.get("driver")
    if isinstance(line, str):
        version = _DRIVER.search(line + " ")
        read = version[1] if version else Reading(None, Status.FAILED, "the line names no version")
        emit.add("node.driver.version", emit.node, read, "/proc/driver/nvidia/version", line)
    return emit.out


def tell(emit: Snapshot, found: Sequence[Unit], call: str, uptime: float | None) -> None:
    """What the units say of themselves and of the roles that they play. Uptime of the node in seconds, if known."""
    for unit in found:
        if unit.installed:
            _unit(emit, unit, f"{call} {unit.id}", uptime)
    for role, names in ROLES.items():
        mine = [unit for unit in found if unit.role == role]
        if not mine:
            continue
        state = best([unit.state for unit in mine])
        telling = next((unit for unit in mine if unit.state == state), mine[0])
        reading = state or Reading(None, Status.FAILED, f"ActiveState not understood: {telling.shown('ActiveState')}")
        shown = telling.shown("Id", "LoadState", "ActiveState", "SubState", "Result")
        emit.add(f"node.service.{role}.state", emit.node, reading, f"{call} {telling.id or names[0]}", shown)


def _unit(emit: Snapshot, unit: Unit, call: str, uptime: float | None) -> None:
    subject = Subject(Scope.OBJECT, unit.id, emit.node)
    reading = unit.state or Reading(None, Status.FAILED, "ActiveState is not understood")
    shown = unit.shown("LoadState", "ActiveState", "SubState", "Result", "ExecMainStatus")
    emit.add("service.state", subject, reading, call, shown)
    emit.add("service.role", subject, unit.role or "other", call, unit.shown("Id"))
    if point := mount_point(unit.id):
        emit.add("service.mount_point", subject, point, call, unit.shown("Id"))
    if result := unit.properties.get("Result"):
        emit.add("service.result", subject, result, call, unit.shown("Result", "ExecMainStatus"))
    restarts = digits(unit.properties.get("NRestarts", ""), 9)
    if restarts is not None:
        emit.add("service.restarts", subject, restarts, call, f"NRestarts={restarts}")
    enabled = unit.properties.get("UnitFileState")
    if enabled:
        on = enabled in ("enabled", "enabled-runtime", "alias", "static", "indirect", "generated")
        emit.add("service.enabled", subject, on, call, f"UnitFileState={enabled}")
    if uptime is not None:
        emit.add("service.uptime", subject, _age(unit, uptime), call, unit.shown("ActiveEnterTimestamp"))


def _age(unit: Unit, uptime: float) -> Reading | float:
    """Seconds since the unit became active, when it is."""
    since = digits(unit.properties.get("ActiveEnterTimestampMonotonic", ""))
    if unit.state != "running":
        return Reading(None, Status.NOT_APPLICABLE, "it is not active")
    if not since:
        return Reading(None, Status.UNSUPPORTED, "systemd does not say since when it is active")
    return round(max(0.0, uptime - since / 1e6), 1)


def _processes(emit: Snapshot, document: Mapping[str, Any], answer: Mapping[str, Any]) -> None:
    """Without systemd: what runs, and, when all processes can be seen, what does not."""
    listing = mapping(document.get("processes"))
    running = {
        role: process for process in reversed(mappings(listing.get("running")))
        if (role := _PROCESSES.get(str(process.get("comm")))) is not None
    }  # fmt: skip
    sockets = mapping(document.get("sockets"))
    handed = {role: path for path, role in _SOCKETS.items() if sockets.get(path) == "socket"}
    for role in ROLES:
        fact = f"node.service.{role}.state"
        if role in running:
            pid, comm = running[role].get("pid"), running[role].get("comm")
            emit.add(fact, emit.node, "running", f"/proc/{pid}/comm", f"{comm} (pid {pid})")
        elif role in handed:
            emit.add(fact, emit.node, "running", handed[role], f"{handed[role]} is a socket")
        elif listing.get("whole") is True:
            emit.add(fact, emit.node, "not_running", "/proc/*/comm", "no process of that name runs")
        else:
            emit.add(fact, emit.node, _blind(answer), str(answer.get("call", "systemctl show")))


def _blind(answer: Mapping[str, Any]) -> Reading:
    missing = gap(answer)
    if missing is not None and missing.status in (Status.TIMEOUT, Status.DENIED):
        return missing
    said = str(answer.get("stderr", "")).splitlines()
    denied = any("ccess denied" in line or "ermission denied" in line for line in said)
    why = f"{_BLIND}; systemctl says: {said[0]}" if said else _BLIND
    return Reading(None, Status.DENIED if denied else Status.UNSUPPORTED, why)


def _clock(emit: Snapshot, answer: Mapping[str, Any]) -> None:
    status, bound = whole(answer.get("status")), whole(answer.get("maxerror_us"))
    missing = gap(answer)
    if missing is None and (status is None or bound is None):
        missing = Reading(None, Status.FAILED, "the document holds no state of the clock")
    if missing is not None and missing.status is Status.DENIED:
        missing = Reading(
            None, Status.DENIED, f"{answer.get('error')}; this container forbids the call: run gpudiag on the node"
        )
    shown = f"adjtimex: status {status:#x}, maxerror {bound} us" if missing is None else ""
    synchronised = status is not None and not status & UNSYNCHRONISED
    error = (bound or 0) / 1e6
    emit.add("node.clock.synchronised", emit.node, missing or synchronised, "adjtimex", shown)
    emit.add("node.clock.error", emit.node, missing or error, "adjtimex", shown)


FORMAT = DocumentFormat(NAME, "gpudiag services snapshot", REVISION, PROVIDES, sniff, parse)
