"""``dcgmi health -c``: DCGM's health watches, as a table (DCGM 1 to 4) or with ``-j``."""

from __future__ import annotations

import re
from collections.abc import Sequence

from knowledge.observation import Event, Observation, Status, gpu
from knowledge.text import clean
from probes.base import Context, DocumentFormat, Line, lines_of
from probes.parse._dcgmi import ERROR, Box, between, boxes, number, rows
from probes.parse._smi_emit import Emitter
from probes.parse._smi_tree import Node
from probes.parse._smi_values import Reading, not_understood, slug

NAME, REVISION = "dcgmi-health", 2
_REPORT = re.compile(r"Health Monitor Report", re.IGNORECASE)
_OVERALL = re.compile(r"Overall Health:?\s{0,60}\|?\s{0,60}(Healthy|Warning|Failure|Internal error)", re.IGNORECASE)
_NOT_ENABLED = re.compile(r"Health watches not enabled", re.IGNORECASE)
# | GPU ID: 0        | Warning                                                 |     (DCGM 1 and 2)
_OLD_GPU = re.compile(r"GPU ID: (\d{1,3})")
# |                  | PCIe system: Warning - Detected more than 8 PCIe        |
_OLD_SYSTEM = re.compile(r"([A-Z][A-Za-z ]{1,20}?(?: system)?): (Healthy|Warning|Failure)(?: - (.{0,300}))?")
_OVERALL_WORDS = {"healthy": "healthy", "warning": "warning", "failure": "failure"}
_EVENT_WORDS = {"healthy": "pass", "warning": "warn", "failure": "fail"}


def sniff(head: str) -> int:
    """95 to 100 on the report's headline, 90 on its error sentences."""
    if _REPORT.search(head) and "Overall Health" in head:
        return 100
    if '"Overall Health"' in head or _OVERALL.search(head):
        return 95
    return 90 if _NOT_ENABLED.search(head) or "Unable to check health watches" in head else 0


def parse(text: str, context: Context) -> list[Observation]:
    """Observations of one report."""
    emit = Emitter(context, NAME, REVISION)
    lines = lines_of(text)
    overall = False
    for box in boxes(text):
        overall = _box(emit, box) or overall
    if not overall:
        overall = _old(emit, lines)
    if not overall:
        _without(emit, text)
    return emit.finish()


def _overall(emit: Emitter, text: str, line: int | None, quoted: str) -> None:
    word = _OVERALL_WORDS.get(text.strip().lower())
    reading = Reading(word) if word is not None else not_understood(text, "Healthy, Warning or Failure")
    emit.add("node.dcgm.health", emit.node, reading, line, quoted)
    if word == "healthy":
        emit.none_seen("dcgm_health_node", emit.node, "all health watches are healthy", quoted)


def _box(emit: Emitter, box: Box) -> bool:
    top = box.root.child("overall_health")
    if top is None or top.value is None:
        return False
    _overall(emit, top.value, top.line, top.excerpt)
    for group in box.root.children:
        if group.key == "overall_health":
            continue
        for entity in group.children:
            errors = entity.child("errors") or entity
            for system in errors.children:
                _incident(emit, group, entity, system)
    return True


def _incident(emit: Emitter, group: Node, entity: Node, system: Node) -> None:
    """One watch of one entity; the status is the first word, the message follows."""
    status, _, message = (system.value or "").strip().partition(" ")
    word = _EVENT_WORDS.get(status.lower())
    quoted = f"{group.label} {entity.label}, {system.label}: {system.value or ''}"
    index = number(entity.label) if group.key in ("gpu", "gpus") else None
    _event(emit, index, f"{group.label} {entity.label}", system.label, word, message, system.line, quoted)


def _event(
    emit: Emitter, index: int | None, where: str, system: str, word: str | None, message: str, line: int | None,
    quoted: str,
) -> None:  # fmt: skip
    fact = "dcgm_health" if index is not None else "dcgm_health_node"
    subject = gpu(f"index:{index}", emit.host) if index is not None else emit.node
    name = slug(system).removesuffix("_system")
    if word is None:
        emit.add(fact, subject, Reading(None, Status.FAILED, f"{system}: status not understood"), line, quoted)
    elif word != "pass":
        told = message.strip() if index is not None else f"{where}: {message.strip()}"
        emit.event(fact, subject, Event(None, {"system": name, "status": word, "message": told}), line, quoted)


def _old(emit: Emitter, lines: Sequence[Line]) -> bool:
    """Tables of DCGM 1 and 2, where one cell holds system, status and message."""
    top = next(((m, line) for line in lines if (m := _OVERALL.search(clean(line.text)))), None)
    if top is None:
        return False
    _overall(emit, top[0][1], top[1].number, top[1].text)
    index: int | None = None
    pending = above = ""
    open_row: tuple[str, str, Line] | None = None

    def close() -> None:
        if open_row is not None:
            system, status, line = open_row
            word, message = _EVENT_WORDS.get(status.lower()), pending
            _event(emit, index, "", system, word, message, line.number, f"{system}: {status} {message}")

    for left, right, line in rows(lines):
        if found := _OLD_GPU.search(left):
            close()
            index, open_row, pending = int(found[1]), None, ""
        elif index is None:
            continue
        elif found := _OLD_SYSTEM.match(right):
            close()
            open_row, pending = (found[1], found[2], line), found[3] or ""
        elif open_row is not None and not left.strip():
            pending += f"{between(above, line.text)}{right}"
        above = line.text
    close()
    return True


def _without(emit: Emitter, text: str) -> None:
    """Why there is no report."""
    if _NOT_ENABLED.search(text):
        reading = Reading(None, Status.NOT_ASKED, "the health watches are not enabled (dcgmi health -s a)")
    elif found := ERROR.search(clean(text)):
        reading = Reading(None, Status.FAILED, found[0].strip()[:200])
    else:
        return
    emit.add("node.dcgm.health", emit.node, reading, None, reading.detail)


PROVIDES = ("node.dcgm.health", "dcgm_health", "dcgm_health_node")
FORMAT = DocumentFormat(NAME, "dcgmi health -c", REVISION, PROVIDES, sniff, parse)
