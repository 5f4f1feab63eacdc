"""The `open_files` collector's document: where processes with a GPU write, how far they are, and whether it moves."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Any

from knowledge.observation import Observation, Scope, Status, Subject
from knowledge.record import dataclass
from knowledge.text import clean, digits
from probes.base import Context, DocumentFormat
from probes.parse import _host_snapshot as shared
from probes.parse._host_snapshot import AS_ROOT, Snapshot, gap, mapping, mappings, whole
from probes.parse._smi_values import Reading

NAME, REVISION, SCHEMA = "open-files", 1, "gpudiag/open-files/1"
MIB = 1 << 20
PROVIDES = (
    "node.gpu_writers", "process.writes_to", "process.writing.files", "process.writing.folder", "process.writing.largest",
    "process.writing.rate", "process.writing.stalled", "fs.gpu_writers", "fs.gpu_writers.largest",
)  # fmt: skip
_SHOWN_FROM = MIB  # bytes written or moved from which a file is more than a log or a lock


@dataclass(slots=True)
class _Place:
    """What GPU processes write into one file system."""

    writers: set[str] = field(default_factory=set)
    largest: int = 0  # bytes


def sniff(head: str) -> int:
    """100 on the schema."""
    return shared.sniff(head, SCHEMA)


def parse(text: str, context: Context) -> list[Observation]:
    """Observations of one document."""
    document = shared.document(text, SCHEMA)
    emit = Snapshot(context, NAME, REVISION, document)
    missing = gap(document) if document else Reading(None, Status.FAILED, "the document is cut or is no JSON")
    if missing is not None:
        emit.add("node.gpu_writers", emit.node, missing, emit.name)
        return emit.out
    places: dict[str, _Place] = {}
    writers = 0
    seconds = document.get("seconds")
    span = float(seconds) if isinstance(seconds, int | float) and not isinstance(seconds, bool) and seconds > 0 else 0.0
    unread = 0
    for pid, record in sorted(mapping(document.get("processes")).items(), key=lambda item: (len(item[0]), item[0])):
        if digits(pid, 10) is None:
            continue
        unread += gap(mapping(record)) is not None
        writers += _process(emit, Subject(Scope.PROCESS, pid, emit.node), mapping(record), span, places)
    denied = (whole(document.get("denied")) or 0) + unread
    looked = f"{writers} of {len(mapping(document.get('processes')))} processes with a GPU write files"
    if denied and not writers:
        emit.add(
            "node.gpu_writers",
            emit.node,
            Reading(None, Status.DENIED, f"files of {denied} processes; {AS_ROOT}"),
            "/proc/*/fd",
        )
    else:
        emit.add("node.gpu_writers", emit.node, writers, "/proc/*/fd", looked)
    for point, place in sorted(places.items()):
        subject = Subject(Scope.OBJECT, point, emit.node)
        shown = (
            f"processes {', '.join(sorted(place.writers, key=int)[:8])}; up to {place.largest // MIB} MiB in one file"
        )
        emit.add("fs.gpu_writers", subject, len(place.writers), "/proc/*/fdinfo", shown)
        emit.add("fs.gpu_writers.largest", subject, place.largest // MIB, "/proc/*/fdinfo", shown)
    return emit.out


def _process(
    emit: Snapshot, subject: Subject, record: Mapping[str, Any], span: float, places: dict[str, _Place]
) -> int:
    """Emit one process; 1 when it writes."""
    found = []
    for file in mappings(record.get("files")):
        positions = file.get("pos")
        steps = [p for item in positions if (p := whole(item)) is not None] if isinstance(positions, list) else []
        if steps and (max(steps) >= _SHOWN_FROM or steps[-1] > steps[0]):
            found.append((max(steps), steps[-1] - steps[0] if len(steps) > 1 else None, file))
    if not found:
        return 0
    found.sort(key=lambda item: -item[0])
    call = f"/proc/{subject.id}/fdinfo"
    for size, _, file in found:
        point = _path(file.get("mount"))
        place = places.setdefault(point, _Place())
        place.writers.add(subject.id)
        place.largest = max(place.largest, size)
    size, _, file = found[0]
    moved = sum(step for _, step, _ in found if step and step > 0)
    shown = f"{_path(file.get('folder'))}: {size // MIB} MiB; {len(found)} files, +{moved // 1024} KiB in {span} s"
    emit.add("process.writes_to", subject, f"{Scope.OBJECT}:{_path(file.get('mount'))}", call, shown)
    emit.add("process.writing.files", subject, len(found), call, shown)
    emit.add("process.writing.folder", subject, _path(file.get("folder")), call, shown)
    emit.add("process.writing.largest", subject, size // MIB, call, shown)
    twice = span > 0 and any(step is not None for _, step, _ in found)
    once = Reading(None, Status.FAILED, "there is no second reading")
    emit.add("process.writing.rate", subject, round(moved / span / 1e9, 4) if twice else once, call, shown)
    blocked = whole(record.get("blocked"))
    stalled = bool(blocked) and moved == 0
    shown = f"{blocked} threads in state D at both readings; {shown}"
    emit.add("process.writing.stalled", subject, stalled if twice and blocked is not None else once, call, shown)
    return 1


def _path(value: object) -> str:
    return (" ".join(clean(value).split()) if isinstance(value, str) else "")[:200] or "-"


FORMAT = DocumentFormat(NAME, "gpudiag open files snapshot", REVISION, PROVIDES, sniff, parse)
