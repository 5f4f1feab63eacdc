"""Text of ``nvidia-smi -q`` (also ``-d`` selections), drivers 340 to 590.

What stands behind a ruled banner is another output, and left to the formats of files of several outputs.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from knowledge.identity import UNKNOWN_PCI
from knowledge.observation import Observation
from probes.base import Context, DocumentFormat, Line, lines_of
from probes.parse import _smi_errors
from probes.parse._smi_emit import Emitter
from probes.parse._smi_fields import GPU
from probes.parse._smi_report import PROVIDES, report
from probes.parse._smi_tree import GPU_HEAD, Node, gpu_key, text_tree

NAME, REVISION = "nvidia-smi-q", 3
_RULE = re.compile(r"#{20,200}\s{0,4}")
_FIELD = re.compile(r"^ {2,20}[A-Z][\w ./()-]{1,50}? {1,40}: \S", re.MULTILINE)
# Headings that only this report has, for a piece without its headline.
_SECTIONS = re.compile(
    r"^ {0,12}(?:Retired Pages|Remapped Rows|Row Remapper|Clocks (?:Throttle|Event) Reasons|FB Memory Usage|ECC Errors|"
    r"(?:GPU )?Power Readings|Bank Remap Availability Histogram|GPU Link Info|GPU Reset Status|Max Clocks|Fabric|Utilization|"
    r"Temperature|Ecc Mode|ECC Mode)\s{0,60}$",
    re.MULTILINE,
)

# Of what a GPU prints, the sections that hold fields
SECTIONS = frozenset(path.partition("/")[0] for row in GPU for path in row.paths if "/" in path)


def sniff(head: str) -> int:
    """100 on the headline (96 when other outputs may follow), 60 or 30 on a piece of a report."""
    if "==NVSMI LOG==" in head:
        return 96 if "#" * 20 in head else 100
    if "<nvidia_smi_log" in head or "|" in head[:200]:
        return 0
    has_gpu = any(GPU_HEAD.fullmatch(line.strip()) for line in head.splitlines()[:400])
    if has_gpu and _FIELD.search(head):
        return 60
    return 30 if _SECTIONS.search(head) and _FIELD.search(head) else 0


def read(emit: Emitter, lines: Sequence[Line]) -> None:
    """Add the facts of one report to `emit`."""
    _smi_errors.errors(emit, lines)
    root = text_tree(lines)
    if not any(c.key.startswith("gpu:") for c in root.children):
        for node in list(root.walk()):  # a piece that was pasted with its indentation
            if node.key.startswith("gpu:") and node not in root.children:
                root.children.append(node)
    if not any(c.key.startswith("gpu:") for c in root.children):
        root.children += _nameless(root)
    report(emit, root)


def _nameless(root: Node) -> list[Node]:
    """GPUs of a piece without the line that names one: where a section comes again, the next one begins."""
    found: list[Node] = []
    inside: set[int] = set()
    for child in root.walk():  # a prompt above the piece is the heading of all of it
        if child.key not in SECTIONS or not child.children or id(child) in inside:
            continue
        inside.update(id(below) for below in child.walk())
        if not found or found[-1].child(child.key) is not None:
            found.append(Node(gpu_key(f"{UNKNOWN_PCI}row {len(found)}"), line=child.line))
        found[-1].children.append(child)
    return found


def parse(text: str, context: Context) -> list[Observation]:
    """Observations of the first report in `text`."""
    emit = Emitter(context, NAME, REVISION)
    read(emit, _first(lines_of(text)))
    return emit.finish()


def _first(lines: Sequence[Line]) -> Sequence[Line]:
    """The lines up to a ruled banner behind the headline: what follows is another output."""
    start = next((i for i, line in enumerate(lines) if "==NVSMI LOG==" in line.text), 0)
    end = next((i for i in range(start, len(lines)) if _RULE.fullmatch(lines[i].text)), len(lines))
    return lines[:end]


FORMAT = DocumentFormat(
    NAME, "nvidia-smi -q text", REVISION, tuple(sorted({*PROVIDES, *_smi_errors.PROVIDES})), sniff, parse
)
