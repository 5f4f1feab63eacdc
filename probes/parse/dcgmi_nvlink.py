"""``dcgmi nvlink -e`` (error counters, table or ``-j``) and ``dcgmi nvlink -s`` (link states)."""

from __future__ import annotations

import re
from collections.abc import Sequence

from knowledge.observation import Observation, Scope, Status, Subject, gpu
from knowledge.text import clean
from probes.base import Context, DocumentFormat, Line, lines_of
from probes.parse._dcgmi import ERROR, Box, boxes, number
from probes.parse._smi_emit import Emitter
from probes.parse._smi_fields import count
from probes.parse._smi_tree import Node
from probes.parse._smi_values import Reading
from probes.parse.nvlink_errors import COUNTERS, rate

NAME, REVISION = "dcgmi-nvlink", 1
_HEADER = "NVLINK Error Counts"
_STATUS = re.compile(r"NvLink Link Status", re.IGNORECASE)
_HOLDER = re.compile(r"\s{0,16}(gpuId|physicalId) (\d{1,6}):\s*")
#         U U D X _ _
_STATES = re.compile(r"\s{1,16}[UDX_N](?: [UDX_N]){0,600}\s*")
_WORDS = {"U": "active", "D": "inactive", "X": "disabled"}
# Warning: Unable to retrieve nvlink CRC FLIT Error count for link 3 for gpuId 0 - <reason>
_WARNING = re.compile(
    r"Warning: Unable to retrieve nvlink (.{1,60}?) count for link (\d{1,3}) for gpuId (\d{1,3})(?: - (.{0,160}))?"
)


def sniff(head: str) -> int:
    """100 on either headline."""
    if _HEADER in head:
        return 100
    return 100 if _STATUS.search(head) and "gpuId" in head else 0


def parse(text: str, context: Context) -> list[Observation]:
    """Observations of one or more outputs, one after another."""
    emit = Emitter(context, NAME, REVISION)
    lines = lines_of(text)
    for box in boxes(text):
        if _HEADER in box.headers:
            _errors(emit, box)
    for line in lines:
        if found := _WARNING.search(clean(line.text)):
            _warning(emit, found, line)
    _states(emit, lines)
    if not emit.out and (found := ERROR.search(clean(text))):
        reading = Reading(None, Status.FAILED, found[0].strip()[:200])
        emit.add("gpu.nvlink.active", gpu("unknown:not listed", emit.host), reading, None, reading.detail)
    return emit.finish()


def _errors(emit: Emitter, box: Box) -> None:
    index = next((number(h) for h in box.headers if h.startswith("GPU")), None)
    holder = gpu(f"index:{index}" if index is not None else "unknown:not named", emit.host)
    for section in box.root.children:
        lane = number(section.label) if section.key.startswith("link_") else None
        for counter in section.children:
            _counter(emit, holder, lane, counter)


def _counter(emit: Emitter, holder: Subject, lane: int | None, counter: Node) -> None:
    """A counter of one link, or (Blackwell) of all links of the GPU together."""
    fact = COUNTERS.get(counter.key)
    if fact is None:
        return
    subject = Subject(Scope.LINK, str(lane), holder) if lane is not None else holder
    if lane is None:
        fact = f"gpu.nvlink.{fact.removeprefix('link.')}"
    text = counter.value or ""
    emit.add(fact, subject, rate(text) if ".ber." in fact else count(text), counter.line, counter.excerpt)


def _warning(emit: Emitter, found: re.Match[str], line: Line) -> None:
    fact = COUNTERS.get(found[1].strip().lower().replace(" ", "_"))
    if fact is not None:
        subject = Subject(Scope.LINK, str(int(found[2])), gpu(f"index:{int(found[3])}", emit.host))
        reading = Reading(None, Status.FAILED, (found[4] or "DCGM has no value").strip())
        emit.add(fact, subject, reading, line.number, line.text)


def _states(emit: Emitter, lines: Sequence[Line]) -> None:
    holder: Subject | None = None
    for line in lines:
        text = clean(line.text)
        if found := _HOLDER.fullmatch(text):
            name = str(int(found[2]))
            holder = (
                gpu(f"index:{name}", emit.host) if found[1] == "gpuId" else Subject(Scope.NVSWITCH, name, emit.node)
            )
        elif holder is not None and _STATES.fullmatch(text):
            letters = text.split()
            for lane, letter in enumerate(letters):
                if letter in _WORDS:
                    subject = Subject(Scope.LINK, str(lane), holder)
                    emit.add("link.state", subject, _WORDS[letter], line.number, f"link {lane}: {letter}")
            if holder.scope is Scope.GPU and any(letter in _WORDS for letter in letters):
                emit.add("gpu.nvlink.active", holder, letters.count("U"), line.number, text)
                emit.add("gpu.nvlink.inactive", holder, letters.count("D"), line.number, text)
            holder = None


PROVIDES = tuple(sorted({
    *COUNTERS.values(), *(f"gpu.nvlink.{fact.removeprefix('link.')}" for fact in COUNTERS.values()), "link.state",
    "gpu.nvlink.active", "gpu.nvlink.inactive",
}))  # fmt: skip
FORMAT = DocumentFormat(NAME, "dcgmi nvlink -e or -s", REVISION, PROVIDES, sniff, parse)
