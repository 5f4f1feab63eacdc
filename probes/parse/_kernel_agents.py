"""What the agents of a node say of themselves: kubelet, Slurm's daemons, munge, GPFS, and any daemon that finds its disk full."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime

from knowledge.observation import Event, Observation, Scalar, Scope, Subject, node
from probes.parse._kernel_common import Reading, body, is_command, rx
from probes.parse._kernel_shape import Entry, Kind
from probes.parse._kernel_slurm import KILL_FAILED

EVENTS = ("daemon_disk_full", "kubelet_runtime_silent", "slurm_failure")
UNCOVERED = (
    "kubernetes_condition",
    "pod_refused",
)  # told by the API server too: a log alone does not say that there is none
TRIGGERS = (
    r"PLEG is not healthy", r"[Ee]viction manager: (?:must|able)", r"Attempting to reclaim", r"NodeReady", r"Munge (?:en|de)code failed",
    r"ENCODED: ", r"DECODED: ", r"(?:[Pp]rolog|[Ee]pilog).{0,60} failed", r"epilog error on ", r": exited with status 0x", r"fatal: ", r"slurm\w{1,5} version \S{1,20} started",
    r"[Nn]o space left on device", r"mmfsd is shutting down", r"unmounted by the system", r"Command: successful mount", r"mmfsd ready",
    r"Lost membership in cluster", r"devices unavailable for ",
)  # fmt: skip
HINTS = (
    "PLEG", "viction manager", "to reclaim", "NodeReady", "Munge ", "CODED: ", "rolog", "pilog", "exited with status 0x", "fatal: ", " started",
    "o space left", "mmfsd", "unmounted by", "successful mount", "Lost membership", "devices unavailable",
)  # fmt: skip
# "Skipping pod synchronization" err="PLEG is not healthy: pleg was last seen active 3m11.2s ago; threshold is 3m0s"
# ... PLEG is not healthy: pleg has yet to be successful        that is how each start of the kubelet begins
_PLEG = r"PLEG is not healthy: pleg was last seen active (\S{1,30}) ago"
# "Eviction manager: must evict pod(s) to reclaim" resourceName="ephemeral-storage"        "Attempting to reclaim" resourceName="memory"
# eviction_manager.go:344] eviction manager: must evict pod(s) to reclaim ephemeral-storage
_EVICTS = r"(?:must evict pod\(s\)|[Aa]ttempting) to reclaim\"? (?:resourceName=)?\"?([\w.-]{1,40})"
# "Eviction manager: able to reduce resource pressure without evicting pods." resourceName="ephemeral-storage"
_RELIEVED = r"able to reduce .{0,40}pressure without evicting"
# ... err="Allocate failed due to requested number of devices unavailable for nvidia.com/gpu. Requested: 8, Available: 7, which is unexpected" pod="ml/t-0"
_REFUSES = r"devices unavailable for ([\w.-]{1,60}/[\w.-]{1,60})\. Requested: (\d{1,6}), Available: (\d{1,6})"
_POD = r"\bpod=\"([\w.-]{1,63}/[\w.-]{1,253})\""
_PRESSURE = (("memory", "MemoryPressure"), ("pid", "PIDPressure"))  # what else it reclaims is of a disk
# error: Munge decode failed: Rewound credential        error: Munge encode failed: Failed to access "/run/munge/munge.socket.2": No such file
_MUNGE = (
    r"Munge (?:en|de)code failed: (?:(Rewound|Expired) credential|(Invalid credential)|(.{0,60}\bsocket\b.{0,120}))"
)
# auth/munge: _print_cred: ENCODED: Tue Nov 24 21:09:43 2026
_STAMP = r"\b(EN|DE)CODED: (\w{3} \w{3} [ \d]\d \d\d:\d\d:\d\d \d{4})"
# error: slurm_unpack_received_msg: [[gpu-044]:41220] auth_g_verify: REQUEST_PING has authentication error: Unspecified error
_PEER = r"\[\[([\w.-]{1,120})\]:\d{1,5}\] auth_g_verify"
# error: [job 91002] prolog failed status=1:0        error: Prolog for job 91002 failed        error: epilog failed status=1
_PROLOG = r"(?i)\b(prolog|epilog)\b.{0,60}? failed\b"
_JOB = r"(?i)\bjob(?:id)?[ =]{0,2}(\d{1,12})\b"
# error: prolog failed: rc:256 output:GPU 3: row remap pending
_OUTPUT = r"\brc:-?\d{1,6} output:(\S.{0,300})"
# slurmctld: error: _slurm_rpc_epilog_complete: epilog error on n7, draining the node
_EPILOG_OF = r"\bepilog error on ([\w.-]{1,120}), draining"
# error: /etc/slurm/prolog.d/50-gpucheck.sh: exited with status 0x0100
_SCRIPT = r"(/\S{1,300}): exited with status (0x[0-9a-fA-F]{4})"
# fatal: We were configured to autodetect nvml functionality, but ...        slurmd: fatal: Unable to determine this slurmd's NodeName
_FATAL = r"^(?:slurm\w{1,8}: )?fatal: (.{1,300})"
# slurmd version 23.11.4 started        slurmctld version 23.11.4 started on cluster c1
_STARTED = r"\bslurm(?:d|ctld|dbd) version \S{1,20} started\b"
# error: Unable to write /var/spool/slurmd/cred_state: No space left on device
_FULL = r"\b[Nn]o space left on device\b"
_PATH = r"(?:^|[\s'\"(=])(/[\w.+@/-]{2,200})"
# Words of limits that answer with the same error number: watches of files, cgroups, semaphores, shared memory.
_NO_DISK = r"(?i)inotify|fanotify|\bwatch|cgroup|semaphore|semget|shmget|/dev/shm|/sys/|epoll|\brdma\b|\bqueue pair"
# [E] File system scratch unmounted by the system with return code 301 reason code 217        [N] mmfsd is shutting down.
# [I] Command: successful mount scratch        [N] mmfsd ready        [E] Lost membership in cluster gpfs1.cluster. Unmounting file systems.
_GPFS = (
    r"\[[A-Z]\] (?:File [Ss]ystem (\S{1,100}) (?:is )?unmounted by the system|.{0,120}?(mmfsd is shutting down|Lost membership in cluster)|"
    r"Command: successful mount (\S{1,100})|(mmfsd ready))"
)
_EACH = ("prolog", "epilog")  # kinds of Slurm's failures of which each line is one
_OF_GPFS = ("mount", "mmfsd", "Lost membership")
_AROUND = 6  # lines in which Slurm tells one failure


def read(reading: Reading) -> None:
    """Each failure that an agent tells; nothing of what it says is over, later in the same log."""
    _kubelet(reading)
    _slurm(reading)
    _gpfs(reading)
    _disks(reading)


def stands(o: Observation) -> bool:
    """Whether an event tells how a daemon stands, once however often it says so; see `LogFormat.stands`."""
    if not isinstance(o.value, Event):
        return False
    if o.fact == "slurm_failure":
        return o.value.get("kind") not in _EACH
    gpfs = o.fact == "filesystem_stall" and o.value.get("filesystem") == "gpfs"
    return gpfs or o.fact in ("daemon_disk_full", "kubelet_runtime_silent", *UNCOVERED)


def _disks(reading: Reading) -> None:
    """Which daemon found which file system full, each once."""
    full: set[tuple[str, str, str]] = set()
    for entry in reading.entries:
        if (
            entry.kind is not Kind.DAEMON
            or not _said(entry, "o space left", _FULL)
            or rx(_NO_DISK).search(entry.message)
        ):
            continue
        path = rx(_PATH).search(entry.message)
        key = reading.host(entry), entry.tag, path[1] if path else ""
        if key not in full:
            full.add(key)
            fields: dict[str, Scalar] = {"daemon": entry.tag, "path": key[2], "text": body(entry.message)}
            reading.event("daemon_disk_full", reading.node(entry), entry, fields)


def _said(entry: Entry, hint: str, pattern: str) -> re.Match[str] | None:
    """What an agent says in `entry`; neither the kernel nor whoever writes about it."""
    if hint not in entry.message or entry.kind is Kind.KERNEL or not (found := rx(pattern).search(entry.message)):
        return None
    return None if is_command(entry, found.start()) else found


def _kubelet(reading: Reading) -> None:
    """Whether the container runtime answers it, and what it evicts pods for."""
    silent: dict[str, tuple[Entry, str]] = {}
    short: dict[tuple[str, str], tuple[Entry, str]] = {}
    for entry in reading.entries:
        host = reading.host(entry)
        if entry.boots or _said(entry, "NodeReady", r"\bNodeReady\b"):
            silent.pop(host, None)
        elif found := _said(entry, "PLEG", _PLEG):
            silent[host] = entry, found[1]
        elif found := _said(entry, "to reclaim", _EVICTS):
            short[host, next((c for word, c in _PRESSURE if word in found[1].lower()), "DiskPressure")] = (
                entry,
                found[1],
            )
        elif (found := _said(entry, "devices unavailable", _REFUSES)) and (pod := rx(_POD).search(entry.message)):
            wanted: dict[str, Scalar] = {"resource": found[1], "requested": int(found[2]), "available": int(found[3])}
            subject = Subject(Scope.POD, pod[1], reading.node(entry))
            reading.event("pod_refused", subject, entry, {"pod": pod[1].rpartition("/")[2], **wanted})
        elif _said(entry, "pressure", _RELIEVED):
            short = {key: told for key, told in short.items() if key[0] != host}
    for entry, since in silent.values():
        reading.event(
            "kubelet_runtime_silent", reading.node(entry), entry, {"since": since, "text": body(entry.message)}
        )
    for (_, condition), (entry, resource) in short.items():
        fields: dict[str, Scalar] = {
            "condition": condition,
            "reason": f"kubelet reclaims {resource}",
            "message": body(entry.message),
        }
        reading.event("kubernetes_condition", reading.node(entry), entry, fields)


def _slurm(reading: Reading) -> None:
    """Credentials that are refused, prologs that fail, daemons that give up until they are started again."""
    refused: dict[tuple[str, str], tuple[Entry, dict[str, Scalar]]] = {}
    fatal: dict[str, tuple[Entry, dict[str, Scalar]]] = {}
    for index, entry in enumerate(reading.entries):
        if entry.kind is not Kind.DAEMON or not entry.tag.startswith("slurm") or entry.tag == "slurmstepd":
            continue
        host, text = reading.host(entry), body(entry.message)
        if found := _said(entry, "Munge ", _MUNGE):
            kind = "clock" if found[1] else "key" if found[2] else "munge"
            after = reading.entries[index : index + _AROUND]
            peer = next((sent[1] for e in after if (sent := rx(_PEER).search(e.message))), None)
            apart = _apart(after) if found[1] else None
            refused.setdefault((host, kind), (entry, {"kind": kind, "apart_s": apart, "peer": peer, "text": text}))
        elif found := _said(entry, "fatal: ", _FATAL):
            fatal[host] = entry, {"kind": "fatal", "reason": body(found[1], 120), "text": text}
        elif _said(entry, " started", _STARTED):
            fatal.pop(host, None)
        elif found := _said(entry, "epilog error", _EPILOG_OF):
            reading.event("slurm_failure", node(found[1]), entry, {"kind": "epilog", "text": text})
        elif (
            entry.tag != "slurmctld" and KILL_FAILED not in entry.message and (found := _said(entry, "ailed", _PROLOG))
        ):
            job = rx(_JOB).search(entry.message)
            fields: dict[str, Scalar] = {"kind": found[1].lower(), "job": job[1] if job else None, "text": text}
            fields |= _script(reading.entries[max(0, index - _AROUND) : index])
            if output := rx(_OUTPUT).search(entry.message):
                fields["reason"] = body(output[1], 160)
            reading.event("slurm_failure", reading.node(entry), entry, fields)
    for entry, told in (*refused.values(), *fatal.values()):
        reading.event("slurm_failure", reading.node(entry), entry, told)


def _apart(entries: Sequence[Entry]) -> int | None:
    """Seconds between the clock that made a credential and the one that refused it, where Slurm prints both."""
    at: dict[str, datetime] = {}
    for entry in entries:
        if found := rx(_STAMP).search(entry.message):
            try:
                at.setdefault(found[1], datetime.strptime(found[2], "%a %b %d %H:%M:%S %Y"))
            except ValueError:
                return None
    return abs(round((at["EN"] - at["DE"]).total_seconds())) if len(at) == 2 else None


def _script(entries: Sequence[Entry]) -> dict[str, Scalar]:
    """The script that ended last ahead of a prolog's failure, and its exit code (the high byte of the wait status)."""
    for entry in reversed(entries):
        if found := rx(_SCRIPT).search(entry.message):
            return {"script": found[1], "exit_code": int(found[2], 16) >> 8}
    return {}


def _gpfs(reading: Reading) -> None:
    """File systems of GPFS that it unmounted, and its daemon where that has ended, until they are back."""
    down: dict[tuple[str, str], Entry] = {}
    for entry in reading.entries:
        host = reading.host(entry)
        if entry.boots:
            down = {key: told for key, told in down.items() if key[0] != host}
        elif found := _said(entry, "[", _GPFS) if any(word in entry.message for word in _OF_GPFS) else None:
            if found[1] or found[2]:
                down[host, found[1] or "mmfsd"] = entry
            else:
                down.pop((host, found[3] or "mmfsd"), None)
    for (_, name), entry in down.items():
        fields: dict[str, Scalar] = {
            "filesystem": "gpfs",
            "server": name,
            "state": "down",
            "severity": "error",
            "text": body(entry.message),
        }
        reading.event("filesystem_stall", reading.node(entry), entry, fields)
