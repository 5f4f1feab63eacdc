"""``rocminfo``: the agents that ROCm's runtime sees, or why it sees none.

Source of the text: rocminfo.cc of ROCm/rocminfo. The driver's state and the user's rights come first, then one block for each
agent, CPUs as well; a GPU has the architecture as its name. Its unique id is no address, so it is known by its number among the GPUs.
"""

from __future__ import annotations

import re

from knowledge.observation import Observation
from probes.base import Context, DocumentFormat, Line
from probes.parse._app_emit import clean_lines
from probes.parse._vendor_emit import REFUSED, VendorEmitter, text_of

NAME, REVISION, VENDOR = "rocminfo", 1, "amd"
PROVIDES = ("node.gpus.amd", "gpu.vendor", "gpu.name", REFUSED)
# ROCk module is loaded        ROCk module version 6.10.5 is loaded        ROCk module is NOT loaded, possibly no GPU devices
_HEAD = re.compile(r"ROCk module (?:version \S{1,40} )?is (?:NOT )?loaded.{0,80}")
_TITLE = re.compile(r"HSA (?:System Attributes|Agents)\s{0,20}")
# Agent 2      Marketing Name:          AMD Instinct MI300X          Device Type:             GPU
_AGENT = re.compile(r"Agent \d{1,4}\s{0,20}")
_FIELD = re.compile(r" {2}(Marketing Name|Device Type):\s{1,30}(\S.{0,80}?)\s{0,40}")
_DENIED = re.compile(r"Unable to open /dev/kfd .{0,80}|.{1,80} is not member of \".{0,80}")
_DONE = re.compile(r"\*\*\* Done \*\*\*\s{0,8}")


def sniff(head: str) -> int:
    """96 for the state of the driver in the first lines, or the heading of the agents."""
    lines = [line.text.strip()[:200] for line in clean_lines(head)[:400]]
    return 96 if any(_HEAD.fullmatch(line) for line in lines[:5]) or any(map(_TITLE.fullmatch, lines)) else 0


def parse(text: str, context: Context) -> list[Observation]:
    """The GPUs among the agents; why there are none."""
    emit = VendorEmitter(NAME, REVISION, context, VENDOR)
    lines = clean_lines(text)
    told = [line.text.strip()[:300] for line in lines]
    if denied := next((line for line in told if _DENIED.fullmatch(line)), ""):
        return emit.failed(denied)
    if absent := next((line for line in told if "is NOT loaded" in line and _HEAD.fullmatch(line)), ""):
        return emit.failed(absent)
    gpus = _gpus(lines)
    if not any(_DONE.fullmatch(line) for line in told):
        return emit.failed("the listing ends early: its end mark is missing")
    emit.count(len(gpus))
    for index, (name, line) in enumerate(gpus):
        emit.put("gpu.name", emit.device(str(index)), text_of(name), line.number, line.text.strip())
    return emit.out


def _gpus(lines: list[Line]) -> list[tuple[str, Line]]:
    found: list[tuple[str, Line]] = []
    name: tuple[str, Line] | None = None
    for line in lines:
        if _AGENT.fullmatch(line.text[:60]):
            name = None
        elif (field := _FIELD.fullmatch(line.text[:200])) is None:
            continue
        elif field[1] == "Marketing Name":
            name = field[2], line
        elif field[2] == "GPU" and name is not None:
            found.append(name)
    return found


FORMAT = DocumentFormat(NAME, "rocminfo", REVISION, PROVIDES, sniff, parse)
