"""Output of the collector `filesystems`: mounts, what ``statvfs`` says of each, waits of devices and NFS servers, Lustre's targets.

A file system is a `Scope.OBJECT` of its node, named by its mount point; a Lustre target by its name.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from knowledge.observation import Observation, Scope, Status, Subject
from knowledge.record import dataclass
from knowledge.text import clean, digits
from probes.base import Context, DocumentFormat
from probes.parse import _filesystem_waits as waits
from probes.parse import _host_snapshot as shared
from probes.parse._host_snapshot import AS_ROOT, Snapshot, gap, mapping, mappings, whole, words
from probes.parse._smi_values import Reading

NAME, REVISION, SCHEMA = "filesystems-snapshot", 2, "gpudiag/filesystems/1"
MIB = 1 << 20
FIGURES = ("fs.size", "fs.available", "fs.used.share", "fs.inodes.used.share")
RPC = (
    "fs.rpc.requests", "fs.rpc.retransmissions", "fs.rpc.timeouts", "fs.rpc.retransmissions.recent",
    "fs.rpc.timeouts.recent", "fs.rpc.retransmissions.share",
)  # fmt: skip
PROVIDES = (
    "fs.state", "fs.mount_point", "fs.type", "fs.source", "fs.remote", *FIGURES, "fs.read_only", "fs.turned_read_only",
    "fs.errors", *RPC, "fs.soft", "fs.target.state", "fs.target.evictions", *waits.FACTS,
)  # fmt: skip
_READ_ONLY = 1  # ST_RDONLY of statvfs(3)
# errno -> what it says of the mount, where the kernel's answer is itself the evidence.
_BROKEN = {
    "ESTALE": "stale", "ENOTCONN": "disconnected", "ECONNREFUSED": "disconnected", "EHOSTDOWN": "disconnected",
    "ESHUTDOWN": "disconnected", "ECONNABORTED": "disconnected", "ECONNRESET": "disconnected",
    "EHOSTUNREACH": "disconnected", "ETIMEDOUT": "hung", "EIO": "io_error", "EUCLEAN": "io_error",
    "EBADMSG": "io_error",
}  # fmt: skip
_REMOTE = frozenset(
    {"nfs", "nfs4", "cifs", "smb3", "lustre", "ceph", "gpfs", "beegfs", "glusterfs", "9p", "virtiofs", "afs", "orangefs",
     "pvfs2", "wekafs", "panfs", "vboxsf"}
)  # fmt: skip
# import: ... target: scratch-OST0003_UUID ... state: FULL        (import of osc, mdc and mgc)
_TARGET = re.compile(r"^\s{0,12}target: (\S{1,120})", re.MULTILINE)
_STATE = re.compile(r"^\s{0,12}(?:current_)?state: ([A-Z_]{2,20})", re.MULTILINE)
# - [ 1732170000, EVICTED ]                                        (state_history of the file `state`)
_EVICTED = re.compile(r"^\s{0,8}- \[\s{0,4}\d{1,12},\s{0,4}EVICTED\s{0,4}\]", re.MULTILINE)
_STATES = {
    "FULL": "connected", "IDLE": "idle", "CONNECTING": "connecting", "DISCONN": "disconnected", "DISCONNECTED": "disconnected",
    "EVICTED": "evicted", "REPLAY": "recovering", "REPLAY_LOCKS": "recovering", "REPLAY_WAIT": "recovering",
    "RECOVER": "recovering", "NEW": "new", "CLOSED": "closed",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Mount:
    """The fields of a line of mountinfo that matter here."""

    point: str
    device: str  # 254:0
    type: str
    source: str
    own: frozenset[str]  # options of this mount
    shared: frozenset[str]  # options of the file system behind it
    line: str


def sniff(head: str) -> int:
    """100 on the schema."""
    return shared.sniff(head, SCHEMA)


def parse(text: str, context: Context) -> list[Observation]:
    """Observations of one document."""
    document = shared.document(text, SCHEMA)
    emit = Snapshot(context, NAME, REVISION, document)
    if not document:
        reading = Reading(None, Status.FAILED, "the document is cut or is no JSON")
        emit.add("fs.state", Subject(Scope.OBJECT, "file systems", emit.node), reading, emit.name)
        return emit.out
    table = str(document.get("table", "/proc/self/mountinfo"))
    without = gap(mapping(document.get("mounts")))
    if without is not None:
        emit.add("fs.state", Subject(Scope.OBJECT, "file systems", emit.node), without, table)
    for record in mappings(document.get("mounts")):
        mount = _mount(record.get("line"))
        if mount is not None:
            _one(emit, mount, record, table)
            subject = Subject(Scope.OBJECT, mount.point, emit.node)
            waits.emit_device(emit, subject, mount.device, mapping(document.get("disks")))
    for record in mappings(document.get("nfs")):
        _nfs(emit, record)
    targets = mappings(document.get("lustre"))
    waits.emit_space(emit, targets)
    targets = [t for t in targets if str(t.get("path", "")).rpartition("/")[2] not in waits.SPACE_FILES]
    _lustre(emit, targets)
    if not targets:
        _without_targets(emit)
    return emit.out


def _without_targets(emit: Snapshot) -> None:
    """A Lustre mount has targets: newer clients show them to root only."""
    for found in [o for o in emit.out if o.fact == "fs.type" and o.value == "lustre"]:
        why = f"the states of Lustre's targets are in debugfs, which {AS_ROOT}"
        emit.add("fs.target.state", found.subject, Reading(None, Status.DENIED, why), "/sys/kernel/debug/lustre")


def _mount(line: object) -> _Mount | None:
    """43 27 0:40 / /data rw,noatime - nfs4 filer:/x rw,hard; None for another shape."""
    if not isinstance(line, str):
        return None
    before, dash, after = line.partition(" - ")
    left, right = before.split(" "), after.split(" ")
    if not dash or len(left) < 6 or len(right) < 2:
        return None
    options = frozenset(right[2].split(",")) if len(right) > 2 else frozenset()
    own = frozenset(left[5].split(","))
    return _Mount(_unescaped(left[4]), left[2], clean(right[0]), _unescaped(right[1]), own, options, line)


def _unescaped(word: str) -> str:
    """``/my\\040data`` as people write it."""
    text = re.sub(r"\\([0-7]{3})", lambda found: chr(int(found[1], 8)), word)
    return " ".join(clean(text).split()) or "-"


def _one(emit: Snapshot, mount: _Mount, record: Mapping[str, Any], table: str) -> None:
    subject = Subject(Scope.OBJECT, mount.point, emit.node)
    remote = mount.type in _REMOTE or mount.type == "fuse" or mount.type.startswith("fuse.")
    for fact, value in (
        ("fs.mount_point", mount.point), ("fs.type", mount.type), ("fs.source", mount.source), ("fs.remote", remote),
    ):  # fmt: skip
        emit.add(fact, subject, value, table, mount.line)
    answer = mapping(record.get("statvfs"))
    _state(emit, subject, mount, answer)
    _figures(emit, subject, mount, answer)
    flag = whole(answer.get("flag"))
    read_only = "ro" in mount.own | mount.shared or "emergency_ro" in mount.shared or bool(flag and flag & _READ_ONLY)
    emit.add("fs.read_only", subject, read_only, table, mount.line)
    # mount(8) sets both options; the kernel, when an error makes it stop writing, only that of the file system.
    turned = (
        ("rw" in mount.own and "ro" in mount.shared) or "emergency_ro" in mount.shared or "shutdown" in mount.shared
    )
    emit.add("fs.turned_read_only", subject, turned and not remote, table, mount.line)
    if mount.type in ("nfs", "nfs4"):
        emit.add("fs.soft", subject, bool({"soft", "softerr"} & (mount.shared | mount.own)), table, mount.line)
    errors = digits(str(record.get("errors_count")))
    if errors is not None:
        emit.add("fs.errors", subject, errors, f"errors_count of {mount.source}", f"errors_count: {errors}")


def _state(emit: Snapshot, subject: Subject, mount: _Mount, answer: Mapping[str, Any]) -> None:
    call, missing = f"statvfs({mount.point})", gap(answer)
    name = str(answer.get("error", "")).partition(":")[0]
    reading: Reading | str
    if "hung" in answer:
        reading, shown = "hung", f"{call}: no answer within {answer.get('seconds', '?')} s"
    elif name in _BROKEN:
        reading, shown = _BROKEN[name], f"{call}: {answer['error']}"
    else:
        if missing is not None and missing.status is Status.DENIED and mount.type.startswith("fuse"):
            why = f"{answer['error']}; a FUSE mount without allow_other answers only the user who mounted it"
            missing = Reading(None, Status.DENIED, why)
        reading, shown = missing or "ok", f"{call}: {answer.get('error', 'answered')}"
    emit.add("fs.state", subject, reading, call, shown)


def _figures(emit: Snapshot, subject: Subject, mount: _Mount, answer: Mapping[str, Any]) -> None:
    """Sizes as ``df`` reckons: what only root may use counts as used."""
    call, missing = f"statvfs({mount.point})", gap(answer)
    names = ("frsize", "blocks", "bfree", "bavail", "files", "ffree", "favail")
    numbers = {name: whole(answer.get(name)) for name in names}
    if missing is None and None in numbers.values():
        missing = Reading(None, Status.FAILED, "the figures are incomplete")
    if missing is not None:
        for fact in FIGURES:
            emit.add(fact, subject, missing, call)
        return
    n = {name: value or 0 for name, value in numbers.items()}
    used, left = max(0, n["blocks"] - n["bfree"]), n["bavail"]
    shown = f"{call}: {n['blocks']} blocks of {n['frsize']} bytes, {n['bfree']} free, {left} available"
    none = Reading(None, Status.NOT_APPLICABLE, "the file system reports no size")
    emit.add("fs.size", subject, n["blocks"] * n["frsize"] // MIB if n["blocks"] else none, call, shown)
    emit.add("fs.available", subject, left * n["frsize"] // MIB if n["blocks"] else none, call, shown)
    emit.add("fs.used.share", subject, _share(used, used + left) if n["blocks"] and used + left else none, call, shown)
    none = Reading(None, Status.NOT_APPLICABLE, "the file system has no fixed number of inodes")
    taken, shown = max(0, n["files"] - n["ffree"]), f"{call}: {n['files']} inodes, {n['favail']} available"
    share = _share(taken, taken + n["favail"]) if n["files"] and taken + n["favail"] else none
    emit.add("fs.inodes.used.share", subject, share, call, shown)


def _share(part: int, of: int) -> float:
    return round(100.0 * part / of, 2)


# --- NFS -----------------------------------------------------------------------------------


@dataclass(slots=True)
class _Counted:
    requests: int = 0
    retransmissions: int = 0
    timeouts: int = 0
    operations: int = 0  # lines that were understood


def _count(lines: Sequence[str]) -> _Counted:
    """Sums over the operations: ``READ: 120 124 1 ...`` is requests, transmissions, major timeouts."""
    got = _Counted()
    for line in lines:
        head, _, rest = line.strip().partition(": ")
        figures = rest.split()
        if not head or " " in head or head in ("age", "xprt") or len(figures) < 8:
            continue
        counts = [n for word in figures[:3] if (n := digits(word, 19)) is not None]
        if len(counts) == 3:
            requests, sent, timeouts = counts
            got.requests += requests
            got.retransmissions += max(0, sent - requests)
            got.timeouts += timeouts
            got.operations += 1
    return got


def _nfs(emit: Snapshot, record: Mapping[str, Any]) -> None:
    call, point = "/proc/self/mountstats", record.get("mount")
    if not isinstance(point, str):
        missing = gap(record)
        if missing is not None:
            emit.add("fs.rpc.requests", Subject(Scope.OBJECT, "file systems", emit.node), missing, call)
        return
    subject = Subject(Scope.OBJECT, _unescaped(point), emit.node)
    first, second = _count(words(record.get("first"))), _count(words(record.get("second")))
    none = Reading(None, Status.FAILED, "mountstats counts no operation of this mount")
    if not second.operations:
        second = first
        recent: Reading | None = Reading(None, Status.FAILED, "there is no second reading")
    else:
        recent = None
    total = second
    shown = f"{total.requests} requests, {total.retransmissions} sent again, {total.timeouts} timeouts"
    within = f" within {record.get('seconds', '?')} s"
    counted = bool(total.operations)
    for fact, value in (
        ("fs.rpc.requests", total.requests), ("fs.rpc.retransmissions", total.retransmissions), ("fs.rpc.timeouts", total.timeouts),
        ("fs.rpc.retransmissions.share", _share(total.retransmissions, total.requests) if total.requests else none),
    ):  # fmt: skip
        emit.add(fact, subject, value if counted else none, call, shown)
    for fact, before, after in (
        ("fs.rpc.retransmissions.recent", first.retransmissions, second.retransmissions),
        ("fs.rpc.timeouts.recent", first.timeouts, second.timeouts),
    ):
        grown = max(0, after - before)
        emit.add(fact, subject, (recent or grown) if counted else none, call, f"{before}, then {after}{within}")
    waits.emit_rpc(emit, subject, record, call)


# --- Lustre --------------------------------------------------------------------------------


def _lustre(emit: Snapshot, records: Sequence[Mapping[str, Any]]) -> None:
    """One target has an `import` and a `state` file in the same directory, perhaps in two places."""
    seen: set[tuple[str, str]] = set()
    for record in records:
        path = record.get("path")
        if not isinstance(path, str) or path.count("/") < 3:
            continue
        *_, device, kind = path.split("/")
        text, missing = record.get("text"), gap(record)
        target = _name(device)
        subject = Subject(Scope.OBJECT, target, emit.node)
        fact = "fs.target.state" if kind == "import" else "fs.target.evictions"
        if (target, fact) in seen:
            continue
        if missing is not None or not isinstance(text, str):
            reading = missing or Reading(None, Status.FAILED, "the file holds no text")
            emit.add(fact, subject, reading, path)
        elif kind == "import":
            _import(emit, subject, path, text)
        else:
            emit.add(fact, subject, len(_EVICTED.findall(text)), path, _evictions(text))
        if missing is None:
            seen.add((target, fact))


def _name(device: str) -> str:
    """``scratch-OST0003-osc-ffff8881234`` is the client's view of ``scratch-OST0003``."""
    return clean(re.sub(r"-(?:osc|mdc|mgc)-[0-9a-f]{8,16}$", "", device)) or "-"


def _import(emit: Snapshot, subject: Subject, path: str, text: str) -> None:
    found, target = _STATE.search(text), _TARGET.search(text)
    word = found[1] if found else ""
    reading = _STATES.get(word) or Reading(None, Status.FAILED, f"state not understood: {word or 'not printed'}")
    shown = f"state: {word}" + (f" ({target[1]})" if target else "")
    emit.add("fs.target.state", subject, reading, path, shown)


def _evictions(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if _EVICTED.match(line)]
    return lines[-1] if lines else "no eviction among the last states"


FORMAT = DocumentFormat(NAME, "gpudiag filesystems snapshot", REVISION, PROVIDES, sniff, parse)
