"""``nvidia-smi nvlink -s``: state and speed of each NVLink.

Links that a driver lists as ``<inactive>`` are down. The sentence that all links are inactive
stands on a machine without an NVLink bridge as well as on one whose fabric is not up: the
links are known to be down, the reason is not known.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from knowledge.observation import Observation, Scope, Status, Subject
from probes.base import Context, DocumentFormat, Line, lines_of
from probes.parse import _smi_errors
from probes.parse._smi_emit import Emitter, cleaned
from probes.parse._smi_fields import gigabytes_per_second
from probes.parse._smi_values import LOST, Reading, absent
from probes.parse.nvidia_smi_table import LISTED, listed_gpu

NAME, REVISION = "nvlink-status", 1
#          Link 0: 26.562 GB/s
#          Link 3: <inactive>
_LINK = re.compile(r"\s{0,20}Link (\d{1,3}):\s{1,8}(<\s?inactive\s?>|[\d.]{1,10} GB/s|\S.{0,60})", re.IGNORECASE)
# NVML: Unable to retrieve NVLink information as all links are inActive
_ALL_DOWN = re.compile(r"all links are inactive", re.IGNORECASE)
# NVML: Unable to retrieve NVLink information: Unknown Error
_ERROR = re.compile(r"(?:NVML: )?Unable to (?:retrieve|get|query) .{0,60}nvlink.{0,120}", re.IGNORECASE)
# Nvlink queries are not supported for Devices in MIG mode
_UNSUPPORTED = re.compile(r"nvlink .{0,40}not supported|does not support nvlink|nvlink is not supported", re.IGNORECASE)


def sniff(head: str) -> int:
    """100 on links with speeds or states, 90 on NVLink sentences below GPU lines."""
    links = [found[2] for line in head.splitlines()[:600] if (found := _LINK.fullmatch(line.rstrip()))]
    if any(value.endswith("GB/s") or value.startswith("<") for value in links):
        return 100 if LISTED_HEAD.search(head) else 80
    if _ALL_DOWN.search(head) or _ERROR.search(head) or _UNSUPPORTED.search(head):
        return 90 if LISTED_HEAD.search(head) else 40
    return 0


LISTED_HEAD = re.compile(r"^\s{0,8}GPU \d{1,3}: ", re.MULTILINE)


def parse(text: str, context: Context) -> list[Observation]:
    """Observations of one listing."""
    emit = Emitter(context, NAME, REVISION)
    read(emit, cleaned(lines_of(text)))
    return emit.finish()


def read(emit: Emitter, lines: Sequence[Line]) -> None:
    """Add the facts of one listing to `emit`."""
    _smi_errors.errors(emit, lines)
    holder: Subject | None = None
    states: dict[Subject, list[Reading]] = {}
    for line in lines:
        if (found := LISTED.fullmatch(line.text)) and not _LINK.fullmatch(line.text.rstrip()):
            holder = listed_gpu(emit, found, line)
        elif holder is None:
            continue
        elif found := _LINK.fullmatch(line.text.rstrip()):
            states.setdefault(holder, []).append(_link(emit, holder, found[1], found[2], line))
        elif _ALL_DOWN.search(line.text):
            emit.add("gpu.nvlink.active", holder, 0, line.number, line.text)
        elif _UNSUPPORTED.search(line.text):
            _without(emit, holder, Reading(None, Status.UNSUPPORTED, line.text.strip()[:160]), line)
        elif _ERROR.search(line.text):
            _without(emit, holder, Reading(None, Status.FAILED, line.text.strip()[:160]), line)
        if holder is not None and LOST.search(line.text):
            emit.add("gpu.nvml.reachable", holder, False, line.number, line.text)
    for subject, readings in states.items():
        bad = next((r for r in readings if not r.ok), None)
        for fact, wanted in (("gpu.nvlink.active", "active"), ("gpu.nvlink.inactive", "inactive")):
            number = sum(r.value == wanted for r in readings)
            emit.add(fact, subject, bad or number, None, f"{number} of {len(readings)} links are {wanted}")


def _link(emit: Emitter, holder: Subject, number: str, text: str, line: Line) -> Reading:
    subject = Subject(Scope.LINK, str(int(number)), holder)
    if text.startswith("<"):
        state = Reading("inactive")
    else:
        speed = gigabytes_per_second(text)
        emit.add("link.speed", subject, speed, line.number, line.text)
        bad = Reading(None, speed.status, speed.detail) if not speed.ok else (absent(text) or speed)
        state = Reading("active" if speed.value else "inactive") if speed.ok else bad
    emit.add("link.state", subject, state, line.number, line.text)
    return state


def _without(emit: Emitter, holder: Subject, reading: Reading, line: Line) -> None:
    for fact in ("gpu.nvlink.active", "gpu.nvlink.inactive"):
        emit.add(fact, holder, reading, line.number, line.text)


PROVIDES = (
    "link.state", "link.speed", "gpu.nvlink.active", "gpu.nvlink.inactive", "gpu.index", "gpu.name", "gpu.uuid",
    *_smi_errors.PROVIDES,
)  # fmt: skip
FORMAT = DocumentFormat(NAME, "nvidia-smi nvlink -s", REVISION, tuple(sorted(set(PROVIDES))), sniff, parse)
