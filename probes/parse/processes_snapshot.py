"""Snapshots of processes by the collector `processes`: who uses the GPUs, and which job, rank, pod, user that is."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from knowledge.observation import Observation, Scope, Status, Subject, gpu
from probes.base import Context, DocumentFormat
from probes.parse import _host_snapshot as shared
from probes.parse._host_snapshot import AS_ROOT, Snapshot, gap, mapping
from probes.parse._process_facts import Teller
from probes.parse._process_job_facts import tell_job
from probes.parse._process_jobs import jobs_of
from probes.parse._process_rows import Proc, processes
from probes.parse._process_tables import MAIN as MAIN_FACTS
from probes.parse._process_tables import PROVIDES, render_nodes, tell_minors
from probes.parse._smi_values import Reading

NAME, REVISION, SCHEMA = "processes-snapshot", 1, "gpudiag/processes/1"
MAIN = MAIN_FACTS  # what gets the reason when nothing is told
BEYOND_ROOT = "root is not enough here, CAP_SYS_PTRACE is missing: run gpudiag on the node itself"
EMPTY = "no process is seen in /proc: it is not mounted there, or something else is mounted over it"
_ENDED = re.compile(r"ESRCH\b|ENOENT\b")
_ALWAYS = ("/cmdline", "/environ", "/exe", "/status", "/limits", "/fd")  # what every process has while it runs
_BLIND = {
    "own_namespace": "only the processes of this container are seen: run gpudiag on the node, or with the node's pid namespace",
    "hidden": f"/proc hides the processes of other users (hidepid); {AS_ROOT}",
}


def sniff(head: str) -> int:
    """100 on the schema."""
    return shared.sniff(head, SCHEMA)


def parse(text: str, context: Context) -> list[Observation]:
    """Observations of one document; never raises."""
    document = shared.document(text, SCHEMA)
    emit = Snapshot(context, NAME, REVISION, document)
    procs = processes(document)
    if not document or not procs:
        cut = "the document is cut or is no JSON"
        why = gap(document) or Reading(None, Status.FAILED, EMPTY if document.get("processes") == [] else cut)
        for fact in MAIN:
            emit.add(fact, emit.node, why, "/proc")
        return emit.out
    _node(emit, document, procs)
    addresses = tell_minors(emit, document)
    teller = Teller(emit, document, procs)
    jobs = jobs_of(procs)
    of = {p.pid: job for job in jobs for p in job.members}
    for proc in procs.values():
        if proc.why == ("rank",) and proc.pid not in of:
            continue  # it stands beside a GPU's process, and has nothing to do with it
        if proc.detail:
            teller.tell(proc, of.get(proc.pid))
            _opens(emit, document, proc, addresses)
    for job in jobs:
        tell_job(emit, job, procs, teller.user)
    found = [_ended(o) for o in emit.out]
    if mapping(document.get("reader")).get("uid") == 0:
        return [replace(o, detail=o.detail.replace(AS_ROOT, BEYOND_ROOT)) for o in found]
    return found


def _ended(o: Observation) -> Observation:
    """`o`; where the process ended before it was read, that, which is no failure."""
    gone = _ENDED.match(o.detail)
    if not gone or o.subject.scope is Scope.NODE or not (gone[0] == "ESRCH" or o.source.call.endswith(_ALWAYS)):
        return o
    return replace(o, status=Status.NOT_APPLICABLE, detail="the process ended before this was read")


def _node(emit: Snapshot, document: Mapping[str, Any], procs: Mapping[int, Proc]) -> None:
    """Counts, and how much of the node could be seen."""
    kernel = any(p.kernel for p in procs.values())
    namespace = str(mapping(document.get("reader")).get("pid_namespace"))
    view = "whole" if kernel else "hidden" if namespace == "pid:[4026531836]" else "own_namespace"
    emit.add(
        "node.processes.view",
        emit.node,
        view,
        "/proc",
        f"{len(procs)} processes, kernel threads {'seen' if kernel else 'not seen'}",
    )
    emit.add("node.processes", emit.node, len(procs), "/proc", f"{len(procs)} processes")
    zombies = [p for p in procs.values() if p.state == "Z"]
    emit.add(
        "node.processes.zombie", emit.node, len(zombies), "/proc", ", ".join(f"{p.pid} {p.name}" for p in zombies[:8])
    )
    holders = [p for p in procs.values() if p.devices]
    counts = mapping(document.get("holders"))
    denied, looked = counts.get("denied"), counts.get("looked_at")
    shown = ", ".join(f"{p.pid} {p.name}" for p in holders[:8])
    reading: Reading | int = len(holders)
    if denied:
        why = f"open files of {denied} processes of other users cannot be seen, {looked} were looked at; {AS_ROOT}"
        reading = Reading(None, Status.DENIED, why)
    elif view != "whole":
        reading = Reading(None, Status.DENIED, _BLIND[view])
    emit.add("node.processes.on_gpu", emit.node, reading, "/proc/*/fd", shown)


def _opens(emit: Snapshot, document: Mapping[str, Any], proc: Proc, addresses: Mapping[int, str]) -> None:
    """The GPUs whose device files a process holds."""
    subject = Subject(Scope.PROCESS, str(proc.pid), emit.node)
    call = f"/proc/{proc.pid}/fd"
    found = False
    nodes = render_nodes(document)
    for path, about in sorted(proc.devices.items()):
        minor = path.removeprefix("/dev/nvidia")
        identifier = ""
        if minor.isascii() and minor.isdigit() and len(minor) < 4:
            told = mapping(about).get("minor")
            number = (
                told
                if isinstance(told, int) and not isinstance(told, bool) and mapping(about).get("major") == 195
                else int(minor)
            )
            identifier = addresses.get(number, f"minor:{number}")
        elif path.startswith("/dev/dri/"):
            identifier = nodes.get(path.rpartition("/")[2], "")
        if identifier:
            found = True
            target = gpu(identifier, emit.host)
            emit.add("process.opens_gpu", subject, f"{target.scope}:{target.id}", call, path)
    if found or proc.kernel:
        return
    # The executable is as guarded as the open files; of a zombie neither is left.
    guarded = gap(mapping(proc.detail.get("executable"))) if proc.state != "Z" else None
    denied = guarded is not None and guarded.status is Status.DENIED and not proc.devices
    emit.add("process.opens_gpu", subject, guarded if denied and guarded else Reading(None, Status.NONE_SEEN), call)


FORMAT = DocumentFormat(
    name=NAME,
    title="snapshot of processes (gpudiag)",
    revision=REVISION,
    provides=PROVIDES,
    sniff=sniff,
    parse=parse,
)
