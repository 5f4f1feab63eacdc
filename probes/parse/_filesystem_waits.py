"""How long requests to storage take, from two readings: block devices, NFS servers; and the space of Lustre's targets.

/proc/diskstats: docs.kernel.org/admin-guide/iostats.html (fields 1, 4, 5, 8, 9, 10: requests, milliseconds, in flight, busy).
mountstats: net/sunrpc/stats.c and nfsiostat(8): an operation is requests, transmissions, major timeouts, bytes sent, bytes
received, milliseconds in the queue, on the way, in all, and since Linux 5.3 errors. The transport counts what it sent and what
came back. Lustre: /sys/fs/lustre/osc/TARGET/kbytestotal, kbytesavail, active.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from knowledge.observation import Scope, Status, Subject
from knowledge.record import dataclass
from knowledge.text import clean
from probes.parse._host_snapshot import Snapshot, gap, words
from probes.parse._smi_values import Reading

DEVICE = ("fs.read.wait", "fs.write.wait", "fs.device.busy", "fs.device.stalled")
RPC = ("fs.rpc.requests.recent", "fs.rpc.round_trip", "fs.rpc.round_trip.recent", "fs.rpc.queue.recent", "fs.rpc.errors.recent",
       "fs.rpc.unanswered")  # fmt: skip
SPACE = ("fs.target.size", "fs.target.available", "fs.target.used.share", "fs.target.active")
FACTS = (*DEVICE, *RPC, *SPACE)
SPACE_FILES = ("kbytestotal", "kbytesavail", "active")
_DATA = ("READ", "WRITE", "COMMIT")
_FILES = (
    *_DATA,
    "OPEN",
    "CREATE",
    "SETATTR",
    "LAYOUTGET",
)  # operations whose errors reach a program; LOOKUP fails in health
# A path below osc/ : scratch-OST0003-osc-ffff8881a2b3c000/kbytesavail
_CLIENT = re.compile(r"-osc-[0-9a-f]{8,16}$")


def number(text: str) -> int | None:
    """A count of the kernel; None for anything else."""
    return int(text) if text.isascii() and text.isdigit() and len(text) < 20 else None


# --- block devices -------------------------------------------------------------------------


def emit_device(emit: Snapshot, subject: Subject, device: str, disks: Mapping[str, Any]) -> None:
    """Waits of the block device behind one mount; nothing where the mount has none."""
    found = disks.get("devices")
    pair = found.get(device) if isinstance(found, dict) else None
    lines = words(pair)
    seconds = disks.get("seconds")
    if len(lines) != 2 or not isinstance(seconds, int | float) or isinstance(seconds, bool) or seconds <= 0:
        return
    before, after = ([number(w) for w in line.split()[3:14]] for line in lines)
    name = clean(lines[0].split()[2])[:40] if len(lines[0].split()) > 2 else device
    call = f"/proc/diskstats ({name})"
    if len(before) < 10 or len(after) < 10 or None in before[:10] or None in after[:10]:
        return
    grown = [int(b or 0) - int(a or 0) for a, b in zip(before, after, strict=False)]
    within = f" within {seconds} s"
    for fact, done, spent in (("fs.read.wait", 0, 3), ("fs.write.wait", 4, 7)):
        shown = f"{grown[done]} requests took {grown[spent]} ms in all{within}"
        none = Reading(None, Status.NOT_APPLICABLE, f"no such request ended{within}")
        emit.add(
            fact,
            subject,
            round(grown[spent] / grown[done], 2) if grown[done] > 0 <= grown[spent] else none,
            call,
            shown,
        )
    busy = min(100.0, max(0.0, round(grown[9] / (10 * seconds), 1)))
    emit.add("fs.device.busy", subject, busy, call, f"busy for {grown[9]} ms{within}")
    waiting = int(before[8] or 0) > 0 and int(after[8] or 0) > 0 and grown[0] <= 0 and grown[4] <= 0
    shown = f"{before[8]}, then {after[8]} requests in flight; {grown[0] + grown[4]} ended{within}"
    emit.add("fs.device.stalled", subject, waiting, call, shown)


# --- NFS -----------------------------------------------------------------------------------


@dataclass(slots=True)
class _Work:
    requests: int = 0
    queue: int = 0  # ms
    way: int = 0  # ms, from sending to the answer
    errors: int | None = None  # None where this kernel does not count them
    sent: int = 0  # by the transports
    received: int = 0


def emit_rpc(emit: Snapshot, subject: Subject, record: Mapping[str, Any], call: str) -> None:
    """What requests for data waited, in the window and since the mount."""
    first, second, third = (words(record.get(name)) for name in ("first", "second", "third"))
    before, after = _work(first), _work(second or first)
    if after.requests:
        shown = f"{after.requests} requests for data, {after.way} ms on the way"
        emit.add("fs.rpc.round_trip", subject, round(after.way / after.requests, 2), call, shown)
    if not second:
        return
    done, within = max(0, after.requests - before.requests), f" within {record.get('seconds', '?')} s"
    emit.add("fs.rpc.requests.recent", subject, done, call, f"{done} requests for data{within}")
    none = Reading(None, Status.NOT_APPLICABLE, f"no request for data ended{within}")
    for fact, spent in (
        ("fs.rpc.round_trip.recent", after.way - before.way), ("fs.rpc.queue.recent", after.queue - before.queue),
    ):  # fmt: skip
        value = round(spent / done, 2) if done and spent >= 0 else none
        emit.add(fact, subject, value, call, f"{spent} ms for {done} requests{within}")
    if after.errors is not None and before.errors is not None:
        grown = max(0, after.errors - before.errors)
        emit.add("fs.rpc.errors.recent", subject, grown, call, f"{before.errors}, then {after.errors} failed")
    else:
        none = Reading(None, Status.UNSUPPORTED, "this kernel does not count errors of operations")
        emit.add("fs.rpc.errors.recent", subject, none, call)
    _unanswered(emit, subject, [before, after, *([_work(third)] if third else [])], call)


def _unanswered(emit: Snapshot, subject: Subject, readings: Sequence[_Work], call: str) -> None:
    """Requests that were sent in the first half second and had no answer by the end of another one.

    What is sent and what is received differ for good after a retransmission: only what moves tells. The collector takes a
    third reading where the second one left a doubt.
    """
    before, after, last = readings[0], readings[1], readings[-1]
    if not after.sent:
        return
    sent, answers = after.sent - before.sent, last.received - before.received
    waiting = len(readings) > 2 and sent > 0 and answers == 0
    emit.add(
        "fs.rpc.unanswered", subject, waiting, call, f"{max(0, sent)} requests sent, {max(0, answers)} answers received"
    )


def _work(lines: Iterable[str]) -> _Work:
    """Sums over reads, writes and commits, and over the transports of one mount."""
    got = _Work()
    for line in lines:
        head, _, rest = line.strip().partition(": ")
        figures = rest.split()
        if head == "xprt" and len(figures) > 8 and figures[0] in ("tcp", "rdma"):
            sent, received = number(figures[6]), number(figures[7])
            got.sent, got.received = got.sent + (sent or 0), got.received + (received or 0)
            continue
        counts = [number(f) for f in figures[:9]]
        if head not in _FILES or len(counts) < 8 or None in counts:
            continue
        plain = [c or 0 for c in counts]
        if len(plain) > 8:
            got.errors = (got.errors or 0) + plain[8]
        if head in _DATA:
            got.requests, got.queue, got.way = got.requests + plain[0], got.queue + plain[5], got.way + plain[6]
    return got


# --- Lustre --------------------------------------------------------------------------------


def emit_space(emit: Snapshot, records: Sequence[Mapping[str, Any]]) -> None:
    """Space of each object storage target, from the files that tell it."""
    targets: dict[str, dict[str, Mapping[str, Any]]] = {}
    for record in records:
        path = record.get("path")
        if isinstance(path, str) and path.count("/") >= 3 and path.rsplit("/", 1)[-1] in SPACE_FILES:
            *_, device, kind = path.split("/")
            targets.setdefault(clean(_CLIENT.sub("", device)) or "-", {})[kind] = record
    for target, files in sorted(targets.items()):
        _target(emit, Subject(Scope.OBJECT, target, emit.node), files)


def _target(emit: Snapshot, subject: Subject, files: Mapping[str, Mapping[str, Any]]) -> None:
    values = {kind: number(str(record.get("text", "")).strip()) for kind, record in files.items()}
    total, left, active = (values.get(kind) for kind in SPACE_FILES)
    where = str(next(iter(files.values())).get("path", "")).rsplit("/", 1)[0]
    if "active" in files:
        record, call = files["active"], f"{where}/active"
        emit.add(
            "fs.target.active",
            subject,
            _reading(record, active) if active is None else active != 0,
            call,
            f"active: {active}",
        )
    for kind, fact, value in (("kbytestotal", "fs.target.size", total), ("kbytesavail", "fs.target.available", left)):
        if kind in files:
            shown = f"{kind}: {value}"
            emit.add(
                fact, subject, _reading(files[kind], value) if value is None else value >> 10, f"{where}/{kind}", shown
            )
    if total and left is not None and left <= total:
        shown = f"{left} of {total} KiB available"
        emit.add("fs.target.used.share", subject, round(100.0 * (total - left) / total, 2), where, shown)


def _reading(record: Mapping[str, Any], value: int | None) -> Reading:
    return gap(record) or Reading(None, Status.FAILED, f"not understood: {value}")
